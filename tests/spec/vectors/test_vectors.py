"""The vectors are well formed, and the codec does what each of them says."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from lance_spec import vectors
from lance_spec.dialect import DEPLOYED, DIALECTS, SPECIFIED
from lance_spec.errors import DecodeError
from lance_spec.explain import explain
from lance_spec.frames import Frame, FrameKind, FrameSplitter
from lance_spec.ir.families import composed, families, message
from lance_spec.messages import fluvio, groups, qwp, replication, rustlog
from lance_spec.messages.lwp import PAYLOADS
from lance_spec.records import decode_records, scan_records
from lance_spec.strategies.frames import codec
from lance_spec.vectors import Vector
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
        assert splitter.dialect == DIALECTS[vector.group["dialect"]["name"]]


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


@each_of("engine_message")
def test_engine_messages_are_read_as_the_vectors_say(vector: Vector) -> None:
    """Sidecars, indexes, the write-ahead log, replication: whole, cut, damaged."""
    (outcome,) = vector.outcomes
    if outcome["action"] == "accept" or outcome["reason"] != "checksum":
        check_message(vector)
    else:
        assert not codec(vector.group["message"]).decode(vector.data).crc_ok()


@each_of("engine_message")
def test_checksums_of_engine_messages_hold_where_the_vectors_are_valid(vector: Vector) -> None:
    """A valid sidecar header or entry has the right checksum."""
    if vector.result == "valid" and vector.group["message"].startswith("Sidecar"):
        assert codec(vector.group["message"]).decode(vector.data).crc_ok()


@each_of("fetch_response")
def test_whole_records_of_an_answer_are_counted_in_bytes(vector: Vector) -> None:
    """AMB-19: an answer may end inside a record."""
    fields = vector.test.get("fields", {})
    if "whole" in fields:
        assert scan_records(bytes.fromhex(fields["data"])).end == fields["whole"]


NESTING = {
    "group_message": "groups",
    "replication_message": "replication",
    "qwp_message": "qwp",
    "fluvio_message": "fluvio",
    "rustlog_message": "rustlog",
    "slot_message": "store_forward",
}
"""Families of vectors, and the family of the grammar that each is about."""


@pytest.mark.parametrize(("family", "grammar"), NESTING.items())
def test_every_message_has_vectors(family: str, grammar: str) -> None:
    """Sections of columns are tested in their tables, since they mean nothing without one."""
    declared = {**families(), **composed()}[grammar]
    names = {each.name for each in declared.messages}
    sections = {name for name in names if name.endswith("Column") or name[-1].isdigit()}
    tested = {vector.group["message"] for vector in vectors.load(family)}
    assert tested == names - (sections if grammar == "qwp" else set())


@pytest.mark.parametrize(("family", "grammar"), NESTING.items())
def test_every_message_has_faults_of_its_own(family: str, grammar: str) -> None:
    """Messages that only carry text to the end are the ones that nothing is wrong with."""
    found = vectors.load(family)
    faulty = {vector.group["message"] for vector in found if "fault" in vector.test}
    open_ended = {"LockHolder", "FailedSentinel"} if grammar == "store_forward" else set()
    assert {vector.group["message"] for vector in found} - faulty == open_ended


def test_every_type_of_column_has_vectors() -> None:
    """Whole, with nulls, without rows, and with faults."""
    types = {vector.group.get("column") for vector in vectors.load("qwp_message")} - {None}
    assert types == set(qwp.ColumnType)


@pytest.mark.parametrize(
    ("family", "message_name", "field", "names"),
    [
        ("fluvio_message", "Outcome", "code", fluvio.ErrorCode),
        ("rustlog_message", "ErrorResponse", "code", rustlog.ErrorCode),
        ("qwp_message", "ErrorResponse", "status", qwp.Status),
        ("group_message", "GroupError", "code", set(groups.GroupErrorCode) - {0}),
        ("group_message", "GroupJoinAck", "state", groups.GroupState),
        ("replication_message", "LogRecord", "kind", replication.RecordKind),
    ],
)
def test_every_code_has_vectors(
    family: str, message_name: str, field: str, names: Iterable[int]
) -> None:
    """Each with what goes with it."""
    seen = {
        int(vector.test["fields"][field])
        for vector in vectors.load(family)
        if vector.group["message"] == message_name and vector.result == "valid"
    }
    assert {int(each) for each in names} <= seen


@pytest.mark.parametrize("family", vectors.FAMILIES)
def test_faults_are_in_most_families(family: str) -> None:
    """What must be refused is half of a format; some read whatever there is."""
    found = vectors.load(family)
    none = {"frame_encode", "tlv_encode", "consumer_id", "error_payload", "packed_field"}
    assert any("fault" in vector.test for vector in found) is (family not in none)


def test_every_command_has_vectors() -> None:
    """No form of a payload is left without a test."""
    families = ("control_payload", "fetch_response")
    tested = {vector.group["message"] for each in families for vector in vectors.load(each)}
    assert tested == {form.__name__ for forms in PAYLOADS.values() for form in forms}
