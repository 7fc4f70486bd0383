"""How records look on stdout."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.cli._exit import Failure
from lance_sdk.cli._json_lines import checked
from lance_sdk.cli._records import as_json, as_lines
from lance_sdk.types import RecordBatch
from lance_spec.enums import RecordType
from lance_spec.records import encode_record


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
