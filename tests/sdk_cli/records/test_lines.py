"""Cutting a byte stream into records."""

import io
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.cli.records.line_splitter import read_records


def pieces(*chunks: bytes) -> Callable[[int], bytes]:
    """A reader that returns these chunks, one a call, then the end."""
    source = iter([*chunks, b""])
    return lambda _size: next(source)


def cut(*chunks: bytes, separator: bytes = b"\n", limit: int = 100) -> list[bytes]:
    """All records of a stream that arrives in these chunks."""
    found = read_records(pieces(*chunks), separator=separator, limit=limit)
    return [record for records in found for record in records]


def test_the_newline_ends_a_record_and_is_no_part_of_it() -> None:
    """Two lines are two records."""
    assert cut(b"one\ntwo\n") == [b"one", b"two"]


def test_the_last_line_need_not_be_ended() -> None:
    """What stands after the last newline is a record."""
    assert cut(b"one\ntwo") == [b"one", b"two"]


def test_an_empty_line_is_an_empty_record() -> None:
    """Nothing is skipped silently."""
    assert cut(b"\n\na\n") == [b"", b"", b"a"]


def test_an_empty_stream_has_no_record() -> None:
    """No input, no record."""
    assert cut() == []


def test_a_carriage_return_belongs_to_the_record() -> None:
    """Only the separator is taken off."""
    assert cut(b"one\r\n") == [b"one\r"]


def test_records_may_be_separated_by_zero_bytes() -> None:
    """Then newlines are content."""
    assert cut(b"a\nb\0c\0", separator=b"\0") == [b"a\nb", b"c"]


def test_what_one_read_brings_is_handed_on_at_once() -> None:
    """A slow stream's complete lines do not wait for later ones."""
    found = read_records(pieces(b"one\ntw", b"o\n"), separator=b"\n", limit=100)
    assert next(found) == [b"one"]


@given(data=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=8))
def test_the_cut_of_the_stream_makes_no_difference(data: bytes, cuts: list[int]) -> None:
    """However the bytes arrive, the records are those of the whole."""
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    chunks = [data[a:b] for a, b in pairwise(edges)]
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert cut(*chunks, limit=200) == expected


def test_a_record_as_long_as_the_limit_is_taken() -> None:
    """The limit is inclusive."""
    assert cut(b"12345\n", limit=5) == [b"12345"]


@pytest.mark.parametrize("chunks", [[b"ok\n123456\n"], [b"ok\n123", b"45", b"6"]])
def test_a_record_over_the_limit_is_named_by_its_line(chunks: list[bytes]) -> None:
    """The error says which line, and what to do."""
    with pytest.raises(Failure, match=r"line 2 is longer than the 5 bytes .* split it"):
        cut(*chunks, limit=5)


def test_the_records_before_a_faulty_one_are_yielded_first() -> None:
    """One bad line does not take the good ones before it along."""
    found = read_records(pieces(b"a\nb\n123456\nc\n"), separator=b"\n", limit=5)
    assert next(found) == [b"a", b"b"]
    with pytest.raises(Failure, match="line 3"):
        next(found)


def test_an_endless_line_is_refused_before_it_is_read_to_its_end() -> None:
    """Memory stays bounded by the limit, not by the stream."""
    endless = io.BytesIO(b"x" * 10_000_000)
    with pytest.raises(Failure, match="line 1"):
        list(read_records(endless.read1, separator=b"\n", limit=1_000_000))
    assert endless.tell() < 2_000_000
