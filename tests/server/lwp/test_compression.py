"""Compressed payloads: opened within bounds, or refused (AMB-20)."""

from contextlib import suppress

import lz4.block
import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server.lwp.compression import decompress
from lance_server.lwp.refusals import Refusal
from lance_spec.enums import ErrorCode


@settings(deadline=None)
@given(st.binary(max_size=2000))
def test_frames_and_blocks_are_opened(data: bytes) -> None:
    """The LZ4 frame format, and the bare block that published clients send (AMB-20)."""
    assert decompress(lz4.frame.compress(data), 2000) == data
    block = lz4.block.compress(data, store_size=False)
    assert decompress(block, 2000) == data


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_opened_or_refused(data: bytes) -> None:
    """Nothing from the network crashes it."""
    for payload in (data, b"\x04\x22\x4d\x18" + data):
        with suppress(Refusal):
            assert len(decompress(payload, 500)) <= 500


@pytest.mark.parametrize("size", [1001, 64 << 20])
def test_a_bomb_is_refused_before_it_unfolds(size: int) -> None:
    """The limit holds for what comes out, whatever the frame promises."""
    with pytest.raises(Refusal) as refused:
        decompress(lz4.frame.compress(bytes(size)), 1000)
    assert refused.value.code is ErrorCode.PAYLOAD_TOO_LARGE


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda frame: frame[:-1], "cut short"),
        (lambda frame: frame + b"x", "1 bytes follow"),
        (lambda frame: frame + frame, "bytes follow"),
        (lambda frame: frame[:4] + bytes([frame[4] | 1]) + frame[5:], "dictionary"),
        (lambda frame: frame[:0], "neither"),
    ],
    ids=["cut", "trailing byte", "two frames", "dictionary", "empty"],
)
def test_exactly_one_frame_is_asked_for(change: object, word: str) -> None:
    """No remainder, no second frame, no dictionary (AMB-20)."""
    frame = lz4.frame.compress(b"records" * 10)
    assert callable(change)
    with pytest.raises(Refusal, match=word):
        decompress(change(frame), 1000)
