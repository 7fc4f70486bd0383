"""Streams of frames that begin with their length are cut alike however they arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_spec.codec.length_prefix import PrefixSplitter
from lance_spec.messages import rustlog
from lance_spec.strategies.frames import cuts


def framed(*payloads: bytes) -> bytes:
    """Payloads, each behind its length."""
    return b"".join(len(each).to_bytes(4) + each for each in payloads)


@given(payloads=st.lists(st.binary(max_size=40), max_size=5), data=st.data())
def test_payloads_come_out_however_the_stream_is_cut(
    payloads: list[bytes], data: st.DataObject
) -> None:
    """Pieces of any size, empty ones too, give the same payloads in order."""
    splitter = PrefixSplitter(maximum=40)
    found: list[bytes] = []
    for piece in data.draw(cuts(framed(*payloads))):
        found += splitter.receive_data(piece)
    assert (found, splitter.pending, splitter.fault) == (payloads, 0, None)


@given(payload=st.binary(min_size=1, max_size=40), missing=st.integers(1, 44))
def test_an_unfinished_frame_waits(payload: bytes, missing: int) -> None:
    """What is there is kept and counted."""
    splitter = PrefixSplitter(maximum=40)
    there = framed(payload)[: max(0, len(payload) + 4 - missing)]
    assert splitter.receive_data(there) == []
    assert splitter.pending == len(there)


@pytest.mark.parametrize("length", [11, 2**31, 2**32 - 1])
def test_a_frame_too_large_is_refused_by_its_length_alone(length: int) -> None:
    """None of its bytes is waited for or kept; a negative length is a large one."""
    splitter = PrefixSplitter(maximum=10)
    assert splitter.receive_data(framed(b"ok") + length.to_bytes(4) + b"xyz") == [b"ok"]
    assert str(splitter.fault) == f"Frame.length at byte 6: expected 0 to 10, got {length}"
    assert splitter.pending == 0


def test_a_frame_too_small_is_refused() -> None:
    """RustLog has no frame without payload."""
    splitter = PrefixSplitter(maximum=10_485_760, minimum=1)
    wire = rustlog.Frame(payload=rustlog.Ping().encode()).encode()
    assert splitter.receive_data(wire + bytes(4)) == [b"\xff"]
    assert splitter.fault is not None
    assert splitter.fault.offset == 5


def test_nothing_is_read_after_a_fault() -> None:
    """Where a frame ends is not known any more."""
    splitter = PrefixSplitter(maximum=1)
    splitter.receive_data(b"\xff\xff\xff\xff")
    assert splitter.receive_data(framed(b"a")) == []
    assert splitter.pending == 0


def test_a_splitter_shows_its_state() -> None:
    """For whoever debugs a connection."""
    splitter = PrefixSplitter(maximum=9)
    splitter.receive_data(framed(b"a") + b"\x00")
    assert repr(splitter) == "<PrefixSplitter at byte 5; 1 bytes pending>"
    splitter.receive_data(b"\xff\xff\xff")
    assert repr(splitter).endswith("fault: Frame.length at byte 5: expected 0 to 9, got 16777215>")
