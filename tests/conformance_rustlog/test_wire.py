"""The kit's codec and the golden server's, on the vectors: captured bytes of published programs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_conformance.engine.expectations import Violation
from lance_conformance.rustlog.golden.rules import BinaryOnly, Both
from lance_conformance.rustlog.golden.state import Refused
from lance_conformance.rustlog.wire import binary, jsonform
from lance_conformance.rustlog.wire.annotate import FrameFormatter
from lance_conformance.rustlog.wire.frame import (
    MAX_FRAME,
    Decoder,
    Heard,
    framed,
    heard,
    write,
)
from lance_conformance.rustlog.wire.layout import REQUESTS
from lance_conformance.rustlog.wire.message import Message, UnreadableError

VECTORS = Path(__file__).parents[2] / "vectors"
LAST = {"MetricsRequest": "MetricsFetchRequest", "MetricsResponse": "MetricsFetchResponse"}
"""What this kit calls otherwise than the vectors."""


def vectors(file: str, side: str) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    """Name of the message, bytes and the test itself, of one side."""
    for group in json.loads((VECTORS / file).read_text(encoding="utf-8"))["testGroups"]:
        message = LAST.get(group.get("message", ""), group.get("message", ""))
        for test in group["tests"]:
            if message.endswith(side) or group.get("side") == side:
                yield message.removesuffix(side), bytes.fromhex(test["bytes"]), test


def ids(rows: list[tuple[str, bytes, dict[str, Any]]]) -> list[str]:
    """How the vectors are named in a test report."""
    return [test["id"] for _, _, test in rows]


REQUEST = list(vectors("rustlog_message.json", "Request"))
ANSWER = list(vectors("rustlog_message.json", "Response"))
JSON_REQUEST = list(vectors("rustlog_json.json", "request"))
JSON_ANSWER = list(vectors("rustlog_json.json", "answer"))


def is_valid(test: dict[str, Any]) -> bool:
    """Whether a vector holds right bytes."""
    return bool(test["result"] == "valid")


def right(rows: list[tuple[str, bytes, dict[str, Any]]]) -> list[tuple[str, bytes, dict[str, Any]]]:
    """The valid ones."""
    return [row for row in rows if is_valid(row[2])]


def told(value: Any) -> Any:
    """A field of a vector: hex for bytes, decimal text for wide numbers, in lists too."""
    if isinstance(value, list):
        return tuple(told(each) for each in value)
    if isinstance(value, dict):
        return tuple(told(each) for each in value.values())
    if isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() else value


@pytest.mark.parametrize(("name", "data", "test"), ANSWER, ids=ids(ANSWER))
def test_answers_are_read_as_the_vectors_say(name: str, data: bytes, test: dict[str, Any]) -> None:
    """Right ones with their fields; of others the kit says that they are none."""
    found = heard(data) if data else Heard(b"")
    if not is_valid(test):
        assert found.message is None
        return
    assert found.message is not None
    assert found.message.name == ("Error" if name == "Error" else name)
    for field, value in test["fields"].items():
        seen = found.message.fields[field]
        if name == "Fetch" and field == "records":
            assert seen == tuple(bytes.fromhex(each) for each in value)
        elif isinstance(seen, str):
            assert seen == value
        else:
            assert seen == told(value)


@pytest.mark.parametrize(("name", "data", "test"), right(REQUEST), ids=ids(right(REQUEST)))
def test_requests_are_written_as_the_vectors_say(
    name: str, data: bytes, test: dict[str, Any]
) -> None:
    """Byte for byte what published clients send, and the golden server reads it back."""
    wide = {field for field, kind in REQUESTS[name] if kind == "u64"}
    fields = {k: int(v) if k in wide else v for k, v in test["fields"].items()}
    if "records" in fields:
        fields["records"] = [bytes.fromhex(each) for each in fields["records"]]
    assert binary.write(Message(name, fields)) == data
    request = BinaryOnly().decode(data)
    assert request.name == name
    assert list(request.fields.values()) == [fields[field] for field, _ in REQUESTS[name]]


SHORT = [row for row in REQUEST if row[2].get("outcome", {}).get("reason") == "short" and row[1]]


@pytest.mark.parametrize(("name", "data", "test"), SHORT, ids=ids(SHORT))
def test_the_golden_server_refuses_what_is_cut_short(
    name: str, data: bytes, test: dict[str, Any]
) -> None:
    """With code 2."""
    with pytest.raises(Refused) as refusal:
        BinaryOnly().decode(data)
    assert (refusal.value.code, bool(name and test)) == (2, True)


@pytest.mark.parametrize(("name", "data", "test"), JSON_ANSWER, ids=ids(JSON_ANSWER))
def test_json_answers_are_read_as_the_vectors_say(
    name: str, data: bytes, test: dict[str, Any]
) -> None:
    """Right ones are answers, others are none."""
    del name
    if not is_valid(test):
        with pytest.raises(UnreadableError):
            jsonform.read(data)
        return
    [(variant, members)] = test["fields"].items()
    found = jsonform.read(data)
    assert found.name == variant
    assert set(found.fields) >= set(members)


@pytest.mark.parametrize(("name", "data", "test"), JSON_REQUEST, ids=ids(JSON_REQUEST))
def test_the_golden_server_reads_json_as_the_vectors_say(
    name: str, data: bytes, test: dict[str, Any]
) -> None:
    """It takes the right ones and refuses the others."""
    del name
    if not is_valid(test):
        with pytest.raises(Refused):
            Both().json_request(data)
        return
    [(variant, members)] = test["fields"].items()
    request = Both().json_request(data)
    assert request.name == variant
    assert request.fields["topic"] == members["topic"]


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=5), st.data())
def test_frames_are_found_however_they_are_cut(payloads: list[bytes], data: st.DataObject) -> None:
    """The decoder does not care for segments."""
    stream = b"".join(map(framed, payloads))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    decoder, found = Decoder(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        decoder.feed(stream[start:end])
        while (event := decoder.next()) is not None:
            assert isinstance(event, Heard)
            found.append(event.payload)
    assert found == payloads
    assert decoder.pending == 0


@pytest.mark.parametrize("size", [0, MAX_FRAME + 1, 2**32 - 1])
def test_a_length_that_no_frame_has_ends_the_stream(size: int) -> None:
    """The kit does not wait for it, however much follows."""
    decoder = Decoder()
    decoder.feed(size.to_bytes(4, "big") + b"\0" * 100)
    for _ in range(2):
        event = decoder.next()
        assert isinstance(event, Violation)
        assert (event.reason, str(size) in event.message) == ("field:length", True)


@given(st.binary(min_size=1, max_size=60))
def test_no_bytes_from_a_target_can_stop_the_kit(payload: bytes) -> None:
    """They are an answer, or they are told not to be one; and they can be shown."""
    event = heard(payload)
    assert (event.message is None) == bool(event.reason)
    assert str(event)
    rows = list(FrameFormatter().rows(framed(payload), "received", None))
    assert rows[0].data == framed(payload)[:4]
    assert payload.startswith(rows[1].data)


def test_a_count_beyond_the_frame_is_not_believed() -> None:
    """Nothing is made for four billion records."""
    event = heard(b"\2" + b"\xff" * 4)
    assert event.reason == "field:records"


def test_a_request_is_shown_field_by_field() -> None:
    """With the fault where it is."""
    fields = {"topic": "demo", "partition": 1, "records": [b"one", b""]}
    frame = write(Message("Produce", fields))
    rows = list(FrameFormatter().rows(frame, "sent", "partition"))
    assert [row.field for row in rows] == ["length", "type", "topic", "partition", "records"]
    assert [row.field for row in rows if row.fault] == ["partition"]
    assert "'demo'" in rows[2].meaning
    assert b"".join(row.data for row in rows[:2]) == frame[:5]


def test_a_request_that_is_cut_short_is_shown_as_far_as_it_goes() -> None:
    """The rest stands under the field that is not whole."""
    frame = framed(b"\4\0\2g1\0\4de")
    rows = list(FrameFormatter().rows(frame, "sent", "topic"))
    assert [(row.field, row.data) for row in rows][-2:] == [
        ("group", b"\0\2g1"),
        ("topic", b"\0\4de"),
    ]
    assert rows[-1].fault


def test_json_is_shown_as_text() -> None:
    """In one line, whatever characters it has."""
    frame = framed('{"Error":{"message":"ä\x1b"}}'.encode())
    anatomy = FrameFormatter()
    assert anatomy.text(frame, "received") == '{"Error":{"message":"ä "}}'
    assert anatomy.text(framed(b"\t"), "sent") is None
    assert [row.field for row in anatomy.rows(frame, "received", None)][:2] == ["length", "payload"]


def test_a_stream_is_cut_at_its_lengths() -> None:
    """What is no frame stays in one piece."""
    anatomy = FrameFormatter()
    assert anatomy.frames(framed(b"a") + framed(b"bc") + b"\0\0") == [
        framed(b"a"),
        framed(b"bc"),
        b"\0\0",
    ]
    assert anatomy.frames(b"\xff" * 6) == [b"\xff" * 6]
