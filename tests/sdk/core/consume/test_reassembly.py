"""Whole records out of bytes that were cut anywhere (AMB-19)."""

from hypothesis import given
from hypothesis import strategies as st

from lance_sdk._protocol.consume.reassembly import Reassembly
from lance_spec.records import decode_records, encode_record, encode_records


def test_whole_records_come_out_at_once() -> None:
    """With their offset, their number and their bytes."""
    pieces = Reassembly(40)
    data = encode_records([b"a", b"bc"])
    assert pieces.add(data) == (40, 2, data)
    assert (pieces.offset, pieces.held) == (40 + len(data), 0)


def test_a_cut_record_is_held_back() -> None:
    """Its beginning is kept, its offset is where the next batch will begin."""
    pieces = Reassembly(0)
    data = encode_records([b"a", b"bcd"])
    assert pieces.add(data[:-2]) == (0, 1, data[:6])
    assert (pieces.offset, pieces.held, pieces.next_fetch) == (6, 6, 12)
    assert pieces.needed == 8
    assert pieces.add(data[-2:]) == (6, 1, data[6:])


def test_a_length_over_the_limit_is_no_record() -> None:
    """The records before it are good; the offset of the fault is named."""
    pieces = Reassembly(100)
    good = encode_record(b"a")
    assert pieces.add(good + b"\x01\xff\xff\xff\xff") == (100, 1, good)
    assert pieces.fault is not None
    assert pieces.fault.offset == 106


def test_dropping_what_is_held_goes_back_to_the_records_start() -> None:
    """So that it can be fetched again as a whole."""
    pieces = Reassembly(7)
    pieces.add(b"\x01\x09")
    pieces.drop_held()
    assert (pieces.next_fetch, pieces.needed) == (7, 0)


@given(
    values=st.lists(st.binary(max_size=40), max_size=30),
    cuts=st.lists(st.integers(1, 30), min_size=1, max_size=400),
    base=st.integers(0, 2**40),
)
def test_any_cut_yields_exactly_the_records(
    values: list[bytes], cuts: list[int], base: int
) -> None:
    """Whatever the pieces, the records come out once, in order, at true offsets."""
    stream = encode_records(values)
    pieces, position = Reassembly(base), 0
    found: list[bytes] = []
    for size in cuts:
        batch = pieces.add(stream[position : position + size])
        position += size
        if batch is not None:
            offset, count, data = batch
            assert stream[offset - base :].startswith(data)
            records = decode_records(data)
            assert len(records) == count
            found += [value for _, value in records]
    assert found == values[: len(found)]
    if position >= len(stream):
        assert found == values
        assert pieces.held == 0
