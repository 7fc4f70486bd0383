"""The vectors are well formed, and the codec does what each of them says."""

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
from lance_spec.dialect import DEPLOYED, DIALECTS, SPECIFIED
from lance_spec.errors import DecodeError
from lance_spec.explain import explain
from lance_spec.families import message
from lance_spec.frames import Frame, FrameKind, FrameSplitter
from lance_spec.messages.lwp import PAYLOADS
from lance_spec.records import decode_records, scan_records
from lance_spec.strategies import codec
from lance_spec.vectors import Vector
from lance_spec.vectors._check import check
from lance_spec.vectors._faults import CHECKSUMS


def each_of(family: str, kind: str = "", **facts: Any) -> pytest.MarkDecorator:
    """Run a test with every vector of a family, or of one kind of group."""
    chosen = [
        vector
        for vector in vectors.load(family)
        if (not kind or vector.group["type"] == kind)
        and all(vector.group.get(name) == value for name, value in facts.items())
    ]
    assert chosen
    return pytest.mark.parametrize("vector", chosen, ids=lambda vector: vector.id)


def actions(vector: Vector) -> set[str]:
    """What a receiver may do."""
    return {outcome["action"] for outcome in vector.outcomes}


def decode_error(act: Callable[[], object]) -> DecodeError | None:
    """The error that decoding raises, if it does."""
    try:
        act()
    except DecodeError as error:
        return error
    return None


@each_of("crc")
def test_checksums_are_computed_as_published(vector: Vector) -> None:
    """A valid checksum is the one that is computed, an invalid one is not."""
    computed = f"{CHECKSUMS[vector.group['algorithm']](vector.data):08x}"
    assert (computed == vector.test["crc"]) is (vector.result == "valid")


@each_of("crc")
def test_checksums_travel_little_endian(vector: Vector) -> None:
    """LWP section 9.3: least significant byte first."""
    assert bytes.fromhex(vector.test["wire"])[::-1].hex() == vector.test["crc"]


@each_of("frame_decode")
def test_frames_are_split_as_the_vectors_say(vector: Vector) -> None:
    """Accepted with these fields, refused for this reason, or waited for."""
    splitter = FrameSplitter((DIALECTS[vector.group["dialect"]["name"]],))
    frames = splitter.receive_data(vector.data)
    assert any(_agrees(outcome, splitter, frames, vector) for outcome in vector.outcomes)


@each_of("frame_decode")
def test_frames_are_judged_alike_in_any_portions(vector: Vector) -> None:
    """LWP section 17.3: what arrives byte by byte is what arrives at once."""
    splitter = FrameSplitter((DIALECTS[vector.group["dialect"]["name"]],))
    frames = [
        frame for place in range(len(vector.data))
        for frame in splitter.receive_data(vector.data[place : place + 1])
    ]  # fmt: skip
    assert any(_agrees(outcome, splitter, frames, vector) for outcome in vector.outcomes)


def _agrees(
    outcome: dict[str, Any], splitter: FrameSplitter, frames: list[Frame], vector: Vector
) -> bool:
    """Whether a splitter did what an outcome says."""
    if outcome["action"] == "close":
        fault = splitter.fault
        return fault is not None and not frames and _is_fault(outcome, fault)
    if splitter.fault is not None:
        return False
    if outcome["action"] == "wait":
        return not frames and splitter.pending == len(vector.data)
    return len(frames) == 1 and splitter.pending == 0 and _has_fields(frames[0], vector)


def _is_fault(outcome: dict[str, Any], fault: Any) -> bool:
    found = (fault.kind.value, fault.field, fault.offset)
    return found == (outcome["reason"], outcome["field"], outcome["offset"])


def _has_fields(frame: Frame, vector: Vector) -> bool:
    """An error is answered by the floor above; the frame itself is read."""
    fields = vector.test.get("fields")
    if fields is None:
        return True
    names = ("batch_id", "timestamp_ns", "record_count", "topic_id", "payload_crc")
    return (
        frame.kind is FrameKind[fields["kind"]]
        and frame.flags == fields["flags"]
        and len(frame.payload) == fields["payload_length"]
        and all(getattr(frame, name) == int(fields[name]) for name in names)
    )


@each_of("frame_decode")
def test_both_dialects_at_once_agree_with_the_one_that_fits(vector: Vector) -> None:
    """A receiver that accepts either dialect reads an accepted frame under the right one."""
    splitter = FrameSplitter((SPECIFIED, DEPLOYED))
    frames = splitter.receive_data(vector.data)
    if vector.result == "valid" and actions(vector) == {"accept"}:
        assert len(frames) == 1
        assert splitter.dialect is DIALECTS[vector.group["dialect"]["name"]]


@each_of("frame_decode")
def test_closed_connections_are_explained(vector: Vector) -> None:
    """Whatever closes a connection is named by the explanation, unless the other dialect fits."""
    if actions(vector) == {"close"} and not vector.id.endswith("header-crc-other"):
        named = {fault.split(" ", 1)[0] for fault in explain(vector.data).faults}
        assert vector.outcomes[0]["field"] in named


@each_of("tlv_decode", "TlvDecode")
def test_chains_of_records_are_read_as_the_vectors_say(vector: Vector) -> None:
    """Every record of a valid chain; of an invalid one, where it breaks and why."""
    error = decode_error(lambda: decode_records(vector.data))
    fault = scan_records(vector.data).fault
    if "accept" in actions(vector):
        records = [(each["type"], bytes.fromhex(each["value"])) for each in vector.test["records"]]
        assert decode_records(vector.data) == records
        return
    (outcome,) = vector.outcomes
    assert error is not None
    assert fault is not None
    assert (fault.index, fault.offset) == (outcome["index"], outcome["offset"])
    assert fault.truncated is (outcome["code"] == 4)


def check_message(vector: Vector) -> None:
    """Hold a generated class against a vector."""
    cls = codec(vector.test.get("message", vector.group.get("message")))
    (outcome,) = vector.outcomes
    if outcome["action"] == "accept":
        decoded = cls.decode(vector.data)
        assert _fields_of(decoded, cls.__name__) == _expected(vector, cls.__name__)
        assert decoded.encode() == vector.data
        return
    error = decode_error(lambda: cls.decode(vector.data))
    assert error is not None
    assert (error.field, error.offset) == (outcome["field"], outcome["offset"])


def _fields_of(decoded: Any, name: str) -> dict[str, Any]:
    return {field.name: getattr(decoded, field.name) for field in message(name).given}


def _expected(vector: Vector, name: str) -> dict[str, Any]:
    given = {field.name: field for field in message(name).given}
    shown = {each: value for each, value in vector.test["fields"].items() if each != "whole"}
    assert set(shown) == set(given)
    return {each: _value(given[each].is_integer, value) for each, value in shown.items()}


def _value(is_integer: bool, value: Any) -> Any:
    return int(value) if is_integer else bytes.fromhex(value)


@each_of("tlv_decode", "ValueDecode")
def test_typed_values_are_read_as_the_vectors_say(vector: Vector) -> None:
    """LWP section 8.3: the inside of KeyValue, Timestamped and KeyTimestamped."""
    check_message(vector)


@each_of("tlv_decode", "ExtendedRecord")
def test_extended_records_are_read_as_the_vectors_say(vector: Vector) -> None:
    """AMB-12: the other reading of type 0xFF."""
    check_message(vector)


@each_of("control_payload")
def test_control_payloads_are_read_as_the_vectors_say(vector: Vector) -> None:
    """Every command's payload, whole, cut, and with a byte too many."""
    check_message(vector)


@each_of("fetch_response")
def test_fetch_responses_are_read_as_the_vectors_say(vector: Vector) -> None:
    """Both forms, and each mistaken for the other (AMB-05)."""
    check_message(vector)


@each_of("fetch_response")
def test_whole_records_of_an_answer_are_counted_in_bytes(vector: Vector) -> None:
    """AMB-19: an answer may end inside a record."""
    fields = vector.test.get("fields", {})
    if "whole" in fields:
        assert scan_records(bytes.fromhex(fields["data"])).end == fields["whole"]


def test_there_are_enough_of_them() -> None:
    """A floor under the number of vectors, so that none gets lost unnoticed."""
    assert sum(len(vectors.load(family).tests) for family in vectors.FAMILIES) >= 540


def test_every_command_has_vectors() -> None:
    """No form of a payload is left without a test."""
    families = ("control_payload", "fetch_response")
    tested = {vector.group["message"] for each in families for vector in vectors.load(each)}
    assert tested == {form.__name__ for forms in PAYLOADS.values() for form in forms}


def test_the_vectors_are_well_formed() -> None:
    """Schema, ids, pairs and faults of every family."""
    assert check(vectors.root()) == []


def test_the_vectors_are_what_their_generator_writes() -> None:
    """The generator shares no code with the packages under test."""
    arguments = [sys.executable, "-m", "generate", "--check"]
    finished = subprocess.run(
        arguments, cwd=vectors.root(), capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


def test_the_generator_imports_nothing_it_tests() -> None:
    """Otherwise a bug could appear on both sides."""
    for file in (vectors.root() / "generate").glob("*.py"):
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
    return check(folder)


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
