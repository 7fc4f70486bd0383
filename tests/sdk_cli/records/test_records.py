"""How records look on stdout."""

import base64
import json
from collections.abc import Callable

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.cli.records.json_lines import checked
from lance_sdk.cli.records.record_format import as_json, as_lines
from lance_sdk.testing import FakePeer, FakeServer
from lance_sdk.types import RecordBatch
from lance_spec.enums import Command, ErrorCode, RecordType
from lance_spec.frames import Frame
from lance_spec.messages.lwp import Fetch
from lance_spec.records import encode_record, encode_records

Call = Callable[..., Result]


def batch(*records: tuple[int, bytes], offset: int = 0) -> RecordBatch:
    """A batch as a consumer gets it."""
    data = b"".join(encode_record(value, kind) for kind, value in records)
    return RecordBatch("orders", offset, len(records), data)


def objects(*records: tuple[int, bytes], offset: int = 0) -> list[dict[str, object]]:
    """The JSON objects of a batch."""
    return [json.loads(line) for line in as_json(batch(*records, offset=offset)).splitlines()]


def test_a_record_is_a_line() -> None:
    """Values come out byte for byte, each ended by a newline."""
    assert as_lines(batch((1, b"one"), (1, b""), (2, b"\xff")), b"\n") == b"one\n\n\xff\n"


def test_the_separator_may_be_a_zero_byte() -> None:
    """As the input of produce --null."""
    assert as_lines(batch((1, b"a\nb")), b"\0") == b"a\nb\0"


def test_json_gives_topic_offset_type_and_value() -> None:
    """One object a line, with everything needed to find the record again."""
    assert objects((RecordType.RAW_DATA, b"hello"), offset=70) == [
        {"topic": "orders", "offset": 70, "type": "raw_data", "encoding": "utf-8", "value": "hello"}
    ]


def test_offsets_go_on_by_the_records_sizes() -> None:
    """An offset names the record's first byte in the log."""
    assert [each["offset"] for each in objects((1, b"abc"), (1, b""), (1, b"x"))] == [0, 8, 13]


@given(st.binary())
def test_json_holds_any_value(value: bytes) -> None:
    """The encoding field says how to get the bytes back."""
    (found,) = objects((1, value))
    text = str(found["value"])
    decoded = base64.b64decode(text) if found["encoding"] == "base64" else text.encode()
    assert decoded == value


def test_application_types_are_numbers() -> None:
    """LWP section 8.2 names no type from 0x80 to 0xFE."""
    assert objects((0x90, b"x"))[0]["type"] == 0x90


def test_json_lines_pass_through_the_check() -> None:
    """Any JSON value will do."""
    batches = [[b'{"a": 1}', b"[]"], [b"null", "\N{SNOWMAN}".join(['"'] * 2).encode()]]
    assert list(checked(batches)) == batches


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"NaN", b"\xff", b"[" * 100_000],
    ids=["empty", "cut", "nan", "utf8", "deep"],
)
def test_a_line_that_is_not_json_is_named(line: bytes) -> None:
    """The error tells the line's number, and the lines before it are passed on."""
    found = checked([[b"1"], [b"2", line, b"3"]])
    assert next(found) == [b"1"]
    assert next(found) == [b"2"]
    with pytest.raises(Failure, match=r"line 3 is not JSON: .*--type raw"):
        next(found)


@pytest.mark.parametrize(("way", "code", "out"), [("skip", 0, "b\n"), ("stop", 1, "")])
def test_damage_is_skipped_where_that_is_asked_for(
    lwp: Call, way: str, code: int, out: str
) -> None:
    """What was skipped is told; without the option reading stops there."""
    with FakeServer() as server:
        server.topics.append(1, encode_records([b"a", b"b"]))

        def damaged(peer: FakePeer, frame: Frame) -> bool:
            lost = frame.batch_id == Command.FETCH and not Fetch.decode(frame.payload).start_offset
            if lost:
                peer.error(ErrorCode.STORAGE_ERROR, "damaged", next_offset=6)
            return lost

        server.on_control = damaged
        done = lwp("consume", server.url(), "--on-damage", way)
    assert (done.exit_code, done.stdout) == (code, out)
    assert ("skipped offsets 0 to 6" in done.stderr) == (way == "skip")
