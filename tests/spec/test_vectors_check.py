"""The vectors are well formed and generated, and slips in them are found."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lance_spec import __main__ as command
from lance_spec import vectors
from lance_spec.vectors._check import check

CHECKOUT = Path(__file__).parents[2] / "vectors"
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
    files = list((CHECKOUT / "generate").glob("*.py"))
    assert files
    for file in files:
        assert "lance_" not in file.read_text().replace("lance_sdk", ""), file.name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the vectors to damage."""
    copy = tmp_path / "vectors"
    shutil.copytree(vectors.root(), copy)
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
            "AMB-99 is no row",
        ),
        (
            lambda d: find(d, "specified-version-2").update(pairOf="nobody"),
            "nobody is not in the file",
        ),
        (
            lambda d: find(d, "specified-version-2").update(pairOf="specified-version-0"),
            "is no valid test without a fault",
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


def test_a_checksum_test_stands_beside_the_same_bytes(folder: Path) -> None:
    """A wrong checksum of other bytes proves nothing."""

    def change(document: dict[str, Any]) -> None:
        find(document, "crc-ieee-a-other")["bytes"] = "62"

    assert any("are not those of" in problem for problem in damage(folder, "crc", change))


def test_an_unreadable_file_is_reported(folder: Path) -> None:
    """The check goes on with the other families."""
    (folder / "crc.json").write_text("{")
    assert check(folder)[0].startswith("crc.json: cannot be read")


def test_the_command_reports_how_many_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """``python -m lance_spec vectors check`` exits 0 when all is well."""
    assert command.main(["vectors", "check"]) == 0
    assert "frame_decode: 278 tests" in capsys.readouterr().out


def test_the_command_exits_1_on_a_problem(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script can tell."""
    (folder / "crc.json").write_text("{")
    monkeypatch.setattr(command, "root", lambda: folder)
    assert command.main(["vectors", "check"]) == 1
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


def test_installed_vectors_are_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel carries them inside the package."""
    monkeypatch.setattr(vectors, "_PACKAGE", tmp_path)
    (tmp_path / "_vectors").mkdir()
    (tmp_path / "_vectors" / "crc.json").write_text("{}")
    assert vectors.root() == tmp_path / "_vectors"


@pytest.mark.parametrize("row", ["AMB-02", "AMB-05", "AMB-12", "AMB-17", "AMB-27", "AMB-33"])
def test_rows_of_the_register_have_vectors(row: str) -> None:
    """What a row decides about bytes is fixed by tests."""
    assert vectors.citing(row)
