"""Frames: built leniently, read strictly."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_conformance.engine.expectations import Violation
from lance_conformance.wire.control import KEEPALIVE, LIST_TOPICS, fetch, ingest
from lance_conformance.wire.crc import crc32_ieee, crc32c
from lance_conformance.wire.frame import (
    HEADER_SIZE,
    Command,
    Decoder,
    Flag,
    Frame,
    FrameKind,
    faulty_field,
)

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
FRAMES = st.builds(
    Frame,
    flags=st.sampled_from([0x04, 0x05, 0x08, 0x10, 0x20, 0x40]),
    batch_id=U64,
    timestamp_ns=U64,
    record_count=U32,
    topic_id=U32,
    payload=st.binary(max_size=60),
)


def read(data: bytes) -> Frame | Violation | None:
    """What a fresh decoder makes of these bytes."""
    decoder = Decoder(crc32c)
    decoder.feed(data)
    return decoder.next()


@pytest.mark.parametrize(
    ("flags", "castagnoli", "ieee"),
    [
        (Flag.KEEPALIVE, "0b8ba2a3", "061e9c53"),
        (Flag.BATCH_MODE, "05d438dc", "3af0d86c"),
        (Flag.ACK, "da4eb77a", "5e09c265"),
        (Flag.BACKPRESSURE, "950d4432", "96fbf777"),
        (Flag.CONTROL, "c6f08385", "26d54b1b"),
    ],
)
def test_header_checksums_on_the_wire(flags: Flag, castagnoli: str, ieee: str) -> None:
    """Bytes 8-11 of each kind of frame, computed by hand."""
    frame = Frame(flags=flags)
    assert frame.encode(crc32c)[8:12].hex() == castagnoli
    assert frame.encode(crc32_ieee)[8:12].hex() == ieee


def test_a_keepalive_byte_by_byte() -> None:
    """LWP Appendix A.1 with the right checksum."""
    expected = "4c414e43 01200000 0b8ba2a3" + "00" * 32
    assert KEEPALIVE.encode(crc32c) == bytes.fromhex(expected)


def test_a_fetch_byte_by_byte() -> None:
    """A Fetch of topic 1 from 0, at most 65536 bytes, in the deployed dialect."""
    expected = (
        "4c414e43 01400000 26d54b1b 1000000000000000 0000000000000000 00000000 10000000"
        "85ebc85b 00000000 01000000 0000000000000000 00000100"
    )
    assert fetch(1, 0, 65536).encode(crc32_ieee) == bytes.fromhex(expected)


@given(st.lists(FRAMES, max_size=4), st.lists(st.integers(0, 400), max_size=8))
def test_segmentation_does_not_matter(frames: list[Frame], cuts: list[int]) -> None:
    """Wherever a stream is cut, the same frames come out."""
    stream = b"".join(frame.encode(crc32c) for frame in frames)
    decoder = Decoder(crc32c)
    seen = []
    ends = sorted(min(cut, len(stream)) for cut in cuts)
    for start, end in zip([0, *ends], [*ends, len(stream)], strict=True):
        decoder.feed(stream[start:end])
        while (found := decoder.next()) is not None:
            assert isinstance(found, Frame), found
            seen.append(found)
    assert [frame.encode(crc32c) for frame in seen] == [frame.encode(crc32c) for frame in frames]
    assert decoder.pending == 0


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"magic": b"LANX"}, "bad-magic"),
        ({"version": 2}, "bad-version"),
        ({"flags": 0xA0}, "flag-bit-7"),
        ({"reserved": 1}, "reserved-not-zero"),
        ({"header_crc": 0}, "bad-crc:header"),
        ({"payload_crc": 1}, "field:payload_crc"),
        ({"payload_length": 2**32 - 1}, "oversize-frame"),
    ],
)
def test_each_fault_has_a_reason(fault: dict[str, int], reason: str) -> None:
    """A frame with one fault is a violation of that rule and of no other."""
    found = read(replace(KEEPALIVE, **fault).encode(crc32c))
    assert isinstance(found, Violation)
    assert found.reason == reason


def test_a_wrong_payload_checksum_is_a_violation() -> None:
    """The payload is checked, too, and the message says where and what would be right."""
    found = read(replace(ingest(1, 1, [b"x"]), payload_crc=7).encode(crc32c))
    assert isinstance(found, Violation)
    assert found.reason == "bad-crc:payload"
    assert "byte 36 is 0x00000007" in found.message


def test_nothing_follows_a_violation() -> None:
    """A stream that went wrong stays wrong, whatever comes next."""
    decoder = Decoder(crc32c)
    decoder.feed(b"X" * HEADER_SIZE)
    first = decoder.next()
    decoder.feed(KEEPALIVE.encode(crc32c))
    assert decoder.next() == first


@given(st.binary(max_size=300))
def test_no_bytes_break_the_decoder(data: bytes) -> None:
    """Whatever arrives is a frame, a violation, or not enough."""
    assert isinstance(read(data), Frame | Violation | type(None))


@given(FRAMES, st.data())
def test_every_truncation_asks_for_more(frame: Frame, data: st.DataObject) -> None:
    """Of a frame that is not complete nothing is reported."""
    whole = frame.encode(crc32c)
    assert read(whole[: data.draw(st.integers(0, len(whole) - 1))]) is None


def test_kinds() -> None:
    """Exactly one kind flag makes a kind."""
    kinds = {flags: Frame(flags=flags).kind for flags in (0x08, 0x10, 0x20, 0x40, 0x28, 0x00)}
    assert list(kinds.values()) == [
        FrameKind.ACK,
        FrameKind.BACKPRESSURE,
        FrameKind.KEEPALIVE,
        FrameKind.CONTROL,
        FrameKind.OTHER,
        FrameKind.OTHER,
    ]


def test_one_fault_is_found() -> None:
    """The field in which a stimulus differs from its twin."""
    assert faulty_field(KEEPALIVE, replace(KEEPALIVE, version=2)) == "version"


@pytest.mark.parametrize("wrong", [KEEPALIVE, replace(KEEPALIVE, version=2, reserved=1)])
def test_a_stimulus_has_exactly_one_fault(wrong: Frame) -> None:
    """A stimulus without a fault, or with two, is a mistake of the kit."""
    with pytest.raises(ValueError, match="in one field, not in"):
        faulty_field(KEEPALIVE, wrong)


def test_frames_say_what_they_are() -> None:
    """Frames read well in a report."""
    assert str(LIST_TOPICS) == "Control LIST_TOPICS (0x3) (0 bytes of payload)"
    assert str(Frame(flags=Flag.ACK, batch_id=7)) == "Ack of batch 0x7 (0 bytes of payload)"
    assert "flags 0x28" in str(Frame(flags=0x28))
    assert str(Frame(flags=Flag.CONTROL, batch_id=Command.FETCH)).startswith("Control FETCH")
