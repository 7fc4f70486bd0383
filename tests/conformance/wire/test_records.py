"""TLV records and the answers that the kit reads."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_conformance.wire.control import read_fetched, read_json, read_offset
from lance_conformance.wire.tlv import boundaries, record, records


def test_the_example_of_the_document() -> None:
    """LWP section 8.6: two records, "hello" and "world"."""
    expected = "01 05 00 00 00 68 65 6c 6c 6f 01 05 00 00 00 77 6f 72 6c 64"
    assert records([b"hello", b"world"]) == bytes.fromhex(expected)


@given(st.lists(st.binary(max_size=30), max_size=6), st.binary(max_size=4))
def test_boundaries_are_where_records_end(values: list[bytes], rest: bytes) -> None:
    """Boundaries are the running lengths of the records; less than a header adds none."""
    ends = [0]
    for value in values:
        ends.append(ends[-1] + len(record(value)))
    assert boundaries(records(values) + rest) == ends


def test_a_cut_record_adds_no_boundary() -> None:
    """The last boundary is the end of the last whole record."""
    assert boundaries(record(b"abc") + record(b"defg")[:-1]) == [0, 8]


def test_both_forms_of_a_fetch_response() -> None:
    """16 bytes of header as in section 5.9, or 24 as in 5.9.1 (AMB-05)."""
    short = read_fetched(struct.pack("<QII", 30, 10, 2) + b"x" * 10, 16)
    assert (short.next_offset, short.bytes_returned, short.record_count) == (30, 10, 2)
    long = read_fetched(struct.pack("<QQQ", 20, 30, 99) + b"x" * 10, 24)
    assert (long.next_offset, long.bytes_returned, long.record_count) == (30, 10, None)
    assert short.data == long.data == b"x" * 10


def test_a_fetch_response_without_its_header_is_refused() -> None:
    """The error says how long it is and how long its header would be."""
    with pytest.raises(ValueError, match="of 15 bytes, its header alone is 16"):
        read_fetched(bytes(15), 16)


@pytest.mark.parametrize("payload", [b"", b"[]", b"7", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_none(payload: bytes) -> None:
    """Neither other JSON nor hostile JSON gets through."""
    assert read_json(payload) is None


def test_a_catching_up_frame_is_8_bytes() -> None:
    """Any other size carries no offset."""
    assert read_offset(struct.pack("<Q", 77)) == 77
    assert read_offset(bytes(7)) is None
