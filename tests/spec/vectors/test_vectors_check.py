"""The vectors are well formed and generated, and slips in them are found."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lance_spec import __main__ as command
from lance_spec import vectors
from lance_spec.ir.families import message
from lance_spec.vectors._check import check
from lance_spec.vectors._faults import HEADER

CHECKOUT = Path(__file__).parents[3] / "vectors"
"""Where the generator is; it stays at home when the vectors are installed."""


def test_the_vectors_are_well_formed() -> None:
    """Schema, ids, pairs and faults of every family."""
    assert check(vectors.root()) == []


def test_the_vectors_are_what_their_generator_writes() -> None:
    """The generator shares no code with the packages under test."""
    arguments = [sys.executable, "-m", "generate", "--check"]
    finished = subprocess.run(arguments, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


def test_the_generator_imports_nothing_it_tests() -> None:
    """Otherwise a bug could appear on both sides."""
    files = list((CHECKOUT / "generate").rglob("*.py"))
    assert files
    for file in files:
        assert not re.search(r"\blance_(?!sdk)", file.read_text()), file.name


def test_every_family_has_a_schema_that_is_one() -> None:
    """Nothing is held against a file that nobody wrote, or that says nothing."""
    schemas = {path.name: path for path in (vectors.root() / "schema").glob("*.json")}
    assert set(schemas) == {
        f"{name}_v1.schema.json" for name in (*vectors.FAMILIES, "container", "server_case")
    }
    for path in schemas.values():
        jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the vectors to damage."""
    copy = tmp_path / "vectors"
    ignored = shutil.ignore_patterns("generate", "adapters", "ids.lock")
    shutil.copytree(vectors.root(), copy, ignore=ignored)
    return copy


def damage(folder: Path, family: str, change: Callable[[dict[str, Any]], object]) -> list[str]:
    """Change a family's file and return what the check says."""
    path = folder / f"{family}.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return check(folder, [family])


def find(document: dict[str, Any], test_id: str) -> dict[str, Any]:
    """The test with an id."""
    tests = (test for group in document["testGroups"] for test in group["tests"])
    return next(test for test in tests if test["id"] == test_id)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: d.update(numberOfTests=1), "numberOfTests is 1"),
        (lambda d: d["notes"].pop("Magic"), "the flag Magic has no note"),
        (lambda d: d["notes"].update(Idle=d["notes"]["Magic"]), "the note Idle has no test"),
        (
            lambda d: find(d, "specified-ack").update(id="specified-keepalive"),
            "specified-keepalive is the id of a test",
        ),
        (lambda d: find(d, "specified-ack").pop("clause"), "'clause' is a required property"),
        (lambda d: find(d, "specified-ack").update(level="OUGHT"), "'OUGHT' is not one of"),
        (lambda d: find(d, "specified-ack").update(result="acceptable"), "is not one of"),
        (lambda d: find(d, "specified-ack").update(bytes="4C"), "does not match"),
        (lambda d: find(d, "specified-version-2").pop("fault"), "'fault' is a required property"),
        (
            lambda d: find(d, "specified-stray-payload-crc").pop("ambiguity"),
            "'ambiguity' is a required property",
        ),
        (
            lambda d: find(d, "specified-stray-payload-crc").update(ambiguity="AMB-99"),
            "AMB-99 is not a row",
        ),
        (
            lambda d: find(d, "specified-version-2").update(pairOf="nobody"),
            "nobody is not in the file",
        ),
        (
            lambda d: find(d, "specified-version-2").update(pairOf="specified-version-0"),
            "is not a valid test without a fault",
        ),
        (
            lambda d: find(d, "specified-version-2")["fault"].update(value=3),
            "with its fault is",
        ),
        (
            lambda d: find(d, "specified-header-crc-bit-3")["fault"].update(bit=4),
            "with its fault is",
        ),
        (
            lambda d: find(d, "specified-cut-at-20")["fault"].update(length=9999),
            "does not apply",
        ),
        (
            lambda d: find(d, "specified-payload-byte-3")["fault"].update(bit=9999),
            "does not apply",
        ),
    ],
)  # fmt: skip
def test_the_check_finds(
    folder: Path, change: Callable[[dict[str, Any]], object], complaint: str
) -> None:
    """Each kind of slip in a file is found and named."""
    assert any(complaint in problem for problem in damage(folder, "frame_decode", change))


def test_a_second_fault_is_found(folder: Path) -> None:
    """A vector with two faults does not say which of them an implementation noticed."""

    def add_a_fault(document: dict[str, Any]) -> None:
        test = find(document, "specified-version-2")
        test["bytes"] = test["bytes"][:-1] + "1"

    assert any("with its fault is" in each for each in damage(folder, "frame_decode", add_a_fault))


@pytest.mark.parametrize(
    ("test_id", "change", "complaint"),
    [
        (
            "fluvio-Batch-attributes-is-16",
            lambda test: test["fault"].pop("reseal"),
            "with its fault is",
        ),
        (
            "fluvio-Batch-attributes-is-16",
            lambda test: test["fault"]["reseal"].update(start=20),
            "with its fault is",
        ),
        (
            "fluvio-ProduceRequest-version-7-in-version-8",
            lambda test: test.update(version=9),
            "is read in version 9, it should be 8",
        ),
        (
            "fluvio-ProduceRequest-version-7-in-version-8",
            lambda test: (test.update(version=7), test["fault"].update(version=7)),
            "changes nothing",
        ),
        (
            "fluvio-ProduceRequest-cut-at-0",
            lambda test: test.update(version=7),
            "is read in version 7, it should be 24",
        ),
        (
            "fluvio-ProduceRequest-one",
            lambda test: test.pop("version"),
            "'version' is a required property",
        ),
    ],
)
def test_the_check_finds_in_messages_with_versions(
    folder: Path, test_id: str, change: Callable[[dict[str, Any]], object], complaint: str
) -> None:
    """A checksum that was not made right again, and a version nobody speaks of, are faults too."""

    def narrow_and_change(document: dict[str, Any]) -> None:
        message = test_id.split("-")[1]
        groups = document["testGroups"]
        document["testGroups"] = [each for each in groups if each["message"] == message]
        change(find(document, test_id))

    found = damage(folder, "fluvio_message", narrow_and_change)
    assert any(complaint in problem for problem in found), found


def test_faults_know_the_header_as_the_grammar_does() -> None:
    """The check works without loading the grammar, and must not differ from it."""
    assert {each.name: each.size for each in message("Header").fields} == HEADER


def test_what_was_captured_says_from_whom(folder: Path) -> None:
    """A program, its version, and how its bytes were come by."""

    def forget(document: dict[str, Any]) -> None:
        for group in document["testGroups"]:
            group["source"].pop("how", None)

    assert any("'how' is a required" in each for each in damage(folder, "rustlog_message", forget))


LOCK = CHECKOUT / "ids.lock"
"""What published tests ask."""


def test_every_test_is_in_the_list_of_ids() -> None:
    """An id once published keeps its bytes; the generator refuses anything else."""
    listed = {line.split(" ")[0] for line in LOCK.read_text().splitlines()}
    assert listed >= {vector.id for family in vectors.FAMILIES for vector in vectors.load(family)}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("crc-ieee-a ", "crc-ieee-a 0", "crc-ieee-a has other bytes than before"),
        ("crc-ieee-a ", "crc-ieee-gone ", "crc-ieee-gone is gone"),
        ("crc-ieee-a-other ", "crc-ieee-a-other 0 withdrawn ", "an id is not used again"),
    ],
)
def test_an_id_keeps_its_bytes(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    """A test that changes needs a new id, and a withdrawn id is not used again."""
    folder = tmp_path / "vectors"
    shutil.copytree(CHECKOUT / "generate", folder / "generate")
    shutil.copy(CHECKOUT.parent / "pyproject.toml", tmp_path)
    lines = [line.replace(old, new, 1) for line in LOCK.read_text().splitlines()]
    lines = [
        line.split(" withdrawn")[0] + " withdrawn" if "withdrawn" in line else line
        for line in lines
    ]
    (folder / "ids.lock").write_text("\n".join(lines) + "\n")
    arguments = [sys.executable, "-m", "generate"]
    finished = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    assert complaint in finished.stdout
    assert not (folder / "crc.json").exists()


def test_a_checksum_test_stands_beside_the_same_bytes(folder: Path) -> None:
    """A wrong checksum of other bytes proves nothing."""

    def change(document: dict[str, Any]) -> None:
        find(document, "crc-ieee-a-other")["bytes"] = "62"

    assert any("are not those of" in problem for problem in damage(folder, "crc", change))


def test_an_unreadable_file_is_reported(folder: Path) -> None:
    """The check goes on with the other families."""
    (folder / "crc.json").write_text("{")
    (problem,) = check(folder, ["crc", "tlv_decode"])
    assert problem.startswith("crc.json: cannot be read")


def test_the_command_reports_how_many_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """``python -m lance_spec vectors check`` exits 0 when all is well."""
    assert command.main(["vectors", "check", "--family", "frame_decode"]) == 0
    assert "frame_decode: 290 tests" in capsys.readouterr().out


def test_the_command_exits_1_on_a_problem(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script can tell."""
    (folder / "crc.json").write_text("{")
    monkeypatch.setattr(vectors, "root", lambda: folder)
    assert command.main(["vectors", "check", "--family", "crc"]) == 1
    assert "crc.json" in capsys.readouterr().out


def test_a_family_that_does_not_exist_is_refused() -> None:
    """The error lists the families there are."""
    with pytest.raises(ValueError, match="frame_decode"):
        vectors.load("frames")


def test_vectors_that_are_not_installed_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to do."""
    monkeypatch.setattr(vectors, "_PACKAGE", tmp_path / "spec" / "lance_spec")
    with pytest.raises(FileNotFoundError, match="install lance-sdk"):
        vectors.root()
    vectors.load.cache_clear()
    assert command.main(["vectors", "list"]) == 2


def test_installed_vectors_are_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel carries them inside the package."""
    monkeypatch.setattr(vectors, "_PACKAGE", tmp_path)
    (tmp_path / "_vectors").mkdir()
    (tmp_path / "_vectors" / "crc.json").write_text("{}")
    assert vectors.root() == tmp_path / "_vectors"


DECIDED = (
    *("AMB-02", "AMB-05", "AMB-12", "AMB-14", "AMB-15", "AMB-16", "AMB-17", "AMB-20", "AMB-27"),
    *("AMB-33", "AMB-38", "SF-02", "SF-03", "SF-04", "SF-08", "SF-32", "FLV-01", "RL-01"),
)
"""Rows that decide about bytes."""


@pytest.mark.parametrize("row", DECIDED)
def test_rows_of_the_register_have_vectors(row: str) -> None:
    """What a row decides about bytes is fixed by tests."""
    assert vectors.citing(row)
