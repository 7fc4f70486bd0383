"""TLV record chains (LWP section 8)."""

from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_spec.enums import RecordType
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.limits import MAX_RECORD_VALUE
from lance_spec.records import (
    decode_records,
    encode_record,
    encode_records,
    part_records,
    record_bounds,
    scan_records,
)

HELLO_WORLD = bytes.fromhex("010500000068656c6c6f0105000000776f726c64")
values = st.lists(st.binary(max_size=300), max_size=20)


def test_the_specification_example() -> None:
    """Two records, "hello" and "world", are the 20 bytes of LWP section 8.6."""
    assert encode_records([b"hello", b"world"]) == HELLO_WORLD
    assert decode_records(HELLO_WORLD) == [(1, b"hello"), (1, b"world")]


def test_a_tombstone_is_five_bytes() -> None:
    """Null has type 0xFF and no value (AMB-12)."""
    assert encode_record(b"", RecordType.NULL) == b"\xff\0\0\0\0"


@given(values, st.integers(0, 255))
def test_what_is_encoded_is_decoded(chain: list[bytes], record_type: int) -> None:
    """Any values of any type survive."""
    data = encode_records(chain, record_type)
    assert decode_records(data) == [(record_type, value) for value in chain]
    assert data == b"".join(encode_record(value, record_type) for value in chain)


@given(values, st.integers(0, 6500))
def test_a_scan_finds_the_last_whole_record(chain: list[bytes], cut: int) -> None:
    """Wherever a chain is cut, the scan ends after its last whole record and says what lacks."""
    data = encode_records(chain)[:cut]
    scan = scan_records(data)
    whole = encode_records(chain[: scan.count])
    assert data[: scan.end] == whole
    assert (scan.fault is None) == (scan.end == len(data))
    if scan.fault:
        assert scan.fault.offset == scan.end
        assert scan.fault.needed > len(data) - scan.end


@given(st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=300)), max_size=20))
def test_values_are_parted_where_they_are(chain: list[tuple[int, bytes]]) -> None:
    """They end up back to back in front, what is outside of the view stays as it is."""
    data = b"".join(encode_record(value, kind) for kind, value in chain)
    buffer = bytearray(b"xx" + data + b"yy")
    kinds, offsets = part_records(memoryview(buffer)[2:-2])
    places = list(pairwise(array("i", offsets)))
    assert [(k, buffer[2 + a : 2 + b]) for k, (a, b) in zip(kinds, places, strict=True)] == chain
    assert (buffer[:2], buffer[-2:]) == (b"xx", b"yy")


@given(values.filter(bool), st.integers(1, 6500))
def test_a_cut_chain_is_not_parted(chain: list[bytes], cut: int) -> None:
    """Nothing is moved, and the error is that of everything else that wants whole records."""
    data = encode_records(chain)[:-cut]
    buffer = bytearray(data)
    if scan_records(data).fault is None:
        part_records(buffer)
        return
    with pytest.raises(DecodeError) as parting:
        part_records(buffer)
    with pytest.raises(DecodeError) as reading:
        record_bounds(data)
    assert (buffer, str(parting.value)) == (data, str(reading.value))


def test_a_scan_takes_views() -> None:
    """A scan works on a view of a larger buffer."""
    assert scan_records(memoryview(b"xx" + HELLO_WORLD)[2:]).count == 2


@pytest.mark.parametrize("cut", range(1, len(HELLO_WORLD)))
def test_a_cut_chain_is_no_chain(cut: int) -> None:
    """Decoding is exact: a record that is cut is an error, except between records."""
    if cut == 10:
        assert len(decode_records(HELLO_WORLD[:cut])) == 1
    else:
        with pytest.raises(DecodeError, match=r"Record\.\[[01]\] at byte (0|10): expected a whole"):
            decode_records(HELLO_WORLD[:cut])


def test_a_length_over_the_limit_can_never_be_whole() -> None:
    """16 MiB is the largest value; a longer one is named, not waited for (LWP section 8.7)."""
    data = b"\x01" + (MAX_RECORD_VALUE + 1).to_bytes(4, "little")
    fault = scan_records(data).fault
    assert fault is not None
    assert not fault.truncated
    with pytest.raises(DecodeError, match="over the limit of 16777216"):
        decode_records(data)


def test_a_value_over_the_limit_is_not_encoded() -> None:
    """A value of more than 16 MiB is refused."""
    with pytest.raises(EncodeError, match="at most 16777216 bytes"):
        encode_record(bytes(MAX_RECORD_VALUE + 1))


def test_a_type_is_a_byte() -> None:
    """A type outside 0x00 to 0xFF is refused."""
    with pytest.raises(EncodeError, match=r"Record\.type"):
        encode_record(b"", 256)
