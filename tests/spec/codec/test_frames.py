"""Splitting a byte stream into frames, and encoding frames (LWP section 3)."""

from copy import copy
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_spec.checksum import CRC32C
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, Flag
from lance_spec.frames import (
    FaultKind,
    Frame,
    FrameKind,
    FrameSplitter,
    encode_ack,
    encode_backpressure,
    encode_control,
    encode_header,
    encode_keepalive,
)
from lance_spec.limits import HEADER_SIZE, MAX_PAYLOAD

EITHER = (SPECIFIED, DEPLOYED)
DIALECTS = pytest.mark.parametrize("dialect", EITHER, ids=str)


def ingest(dialect: Dialect, payload: bytes, batch_id: int = 1, flags: int = 0x04) -> bytes:
    """Return a whole frame that carries a payload."""
    return (
        encode_header(dialect, flags, batch_id=batch_id, record_count=1, payload=payload) + payload
    )


def split(data: bytes, *dialects: Dialect) -> tuple[list[Frame], FrameSplitter]:
    """Return what a fresh splitter makes of a stream, and the splitter."""
    splitter = FrameSplitter(dialects or EITHER)
    return splitter.receive_data(data), splitter


def faulty(data: bytes, *dialects: Dialect) -> FaultKind | None:
    """Return the rule that a stream breaks."""
    fault = split(data, *dialects)[1].fault
    return fault.kind if fault else None


def patched(data: bytes, place: int, *values: int) -> bytes:
    """Return the bytes with some of them replaced."""
    return data[:place] + bytes(values) + data[place + len(values) :]


def resealed(data: bytes, place: int, *values: int, dialect: Dialect = SPECIFIED) -> bytes:
    """Change guarded header bytes and make the header CRC right again."""
    changed = patched(data, place, *values)
    return patched(changed, 8, *dialect.checksum(changed[:8]).to_bytes(4, "little"))


def test_keepalive_bytes_are_the_published_constants() -> None:
    """The header CRC of a Keepalive is 0B 8B A2 A3, or 06 1E 9C 53 in IEEE (AMB-02)."""
    assert encode_keepalive(SPECIFIED) == bytes.fromhex("4c414e43012000000b8ba2a3") + bytes(32)
    assert encode_keepalive(DEPLOYED) == bytes.fromhex("4c414e4301200000061e9c53") + bytes(32)


def test_ack_bytes_are_the_published_constants() -> None:
    """An Ack carries the batch id and zeros (LWP section 4.2)."""
    expected = bytes.fromhex("4c414e43010800005e09c2650100000000000000") + bytes(24)
    assert encode_ack(DEPLOYED, 1) == expected


@DIALECTS
def test_the_first_header_proves_the_dialect(dialect: Dialect) -> None:
    """With both polynomials allowed, the first header decides which is spoken."""
    _, splitter = split(encode_keepalive(dialect))
    assert splitter.dialect == dialect


def test_a_proven_dialect_stays() -> None:
    """A connection that began in one polynomial may not go on in the other."""
    assert faulty(encode_keepalive(SPECIFIED) + encode_keepalive(DEPLOYED)) is (
        FaultKind.BAD_HEADER_CRC
    )


@DIALECTS
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (encode_keepalive, FrameKind.KEEPALIVE),
        (encode_backpressure, FrameKind.BACKPRESSURE),
        (lambda dialect: encode_ack(dialect, 7), FrameKind.ACK),
        (lambda dialect: encode_control(dialect, Command.LIST_TOPICS), FrameKind.CONTROL),
        (lambda dialect: ingest(dialect, b"x"), FrameKind.INGEST),
        (lambda dialect: encode_header(dialect, 0), FrameKind.NONE),
    ],
)
def test_the_flags_decide_the_kind(dialect: Dialect, data: object, kind: FrameKind) -> None:
    """Each kind of frame has its flag (LWP section 3.3)."""
    assert callable(data)
    (frame,), _ = split(data(dialect))
    assert frame.kind is kind


def test_two_kind_flags_are_ambiguous_when_specified() -> None:
    """A strict dialect does not choose between kind flags (AMB-33)."""
    (frame,), _ = split(encode_header(SPECIFIED, Flag.ACK | Flag.KEEPALIVE))
    assert frame.kind is FrameKind.AMBIGUOUS


def test_control_wins_over_other_kind_flags_when_deployed() -> None:
    """The published server takes Control before every other kind (AMB-33)."""
    (frame,), _ = split(encode_header(DEPLOYED, Flag.CONTROL | Flag.KEEPALIVE))
    assert frame.kind is FrameKind.CONTROL


def test_a_payload_without_kind_flag_is_ingest_when_deployed() -> None:
    """The published server takes any payload without a kind flag as Ingest."""
    (frame,), _ = split(ingest(DEPLOYED, b"x", flags=0))
    assert frame.kind is FrameKind.INGEST


def test_a_payload_without_kind_flag_has_no_kind_when_specified() -> None:
    """A strict dialect leaves a frame without kind flag without a kind (AMB-33)."""
    (frame,), _ = split(ingest(SPECIFIED, b"x", flags=0))
    assert frame.kind is FrameKind.NONE


@DIALECTS
@pytest.mark.parametrize(
    ("place", "value", "kind"),
    [(0, 0x4D, FaultKind.BAD_MAGIC), (4, 2, FaultKind.BAD_VERSION)],
)
def test_wrong_magic_and_version_are_named(
    dialect: Dialect, place: int, value: int, kind: FaultKind
) -> None:
    """Magic and version are judged before anything else (LWP sections 11.1, 11.2)."""
    assert faulty(resealed(encode_keepalive(dialect), place, value, dialect=dialect)) is kind


@DIALECTS
@pytest.mark.parametrize("bit", range(32))
def test_every_bit_of_the_header_crc_counts(dialect: Dialect, bit: int) -> None:
    """A header CRC that is off by any bit is refused (LWP section 11.3)."""
    frame = bytearray(encode_keepalive(dialect))
    frame[8 + bit // 8] ^= 1 << bit % 8
    assert faulty(bytes(frame)) is FaultKind.BAD_HEADER_CRC


def test_reserved_bits_are_refused_when_specified() -> None:
    """Reserved bytes and flag bit 7 must be 0 (AMB-33)."""
    keepalive = encode_keepalive(SPECIFIED)
    assert faulty(resealed(keepalive, 6, 1)) is FaultKind.RESERVED_BITS
    assert faulty(resealed(keepalive, 7, 1)) is FaultKind.RESERVED_BITS
    assert faulty(resealed(keepalive, 5, 0xA0)) is FaultKind.RESERVED_BITS


def test_reserved_bits_are_ignored_when_deployed() -> None:
    """The published server looks at neither reserved bytes nor flag bit 7."""
    keepalive = encode_keepalive(DEPLOYED)
    for place, value in ((6, 1), (5, 0xA0)):
        frames, splitter = split(resealed(keepalive, place, value, dialect=DEPLOYED))
        assert [frame.kind for frame in frames] == [FrameKind.KEEPALIVE]
        assert splitter.fault is None


@DIALECTS
def test_a_wrong_payload_crc_is_refused(dialect: Dialect) -> None:
    """The payload CRC is judged whenever there is a payload (LWP section 11.3)."""
    frame = ingest(dialect, b"payload")
    assert faulty(patched(frame, 36, frame[36] ^ 1)) is FaultKind.BAD_PAYLOAD_CRC
    assert faulty(patched(frame, HEADER_SIZE, 0)) is FaultKind.BAD_PAYLOAD_CRC


def test_a_payload_crc_without_payload_is_tolerated() -> None:
    """A payload CRC that covers nothing is not looked at (AMB-33)."""
    assert faulty(patched(encode_keepalive(SPECIFIED), 36, 1)) is None


def test_an_oversize_frame_is_refused_on_its_header() -> None:
    """A length over the limit is refused before any payload arrives (AMB-17)."""
    header = patched(encode_keepalive(SPECIFIED), 32, *(MAX_PAYLOAD + 1).to_bytes(4, "little"))
    _, splitter = split(header)
    assert splitter.fault is not None
    assert splitter.fault.kind is FaultKind.OVERSIZE
    assert splitter.fault.header is not None
    assert splitter.fault.header.kind is FrameKind.KEEPALIVE


def test_an_oversize_frame_is_refused_on_a_header_that_arrives_in_pieces() -> None:
    """Where the header is cut makes no difference to the size limit."""
    header = patched(encode_keepalive(SPECIFIED), 32, 0xFF, 0xFF, 0xFF, 0xFF)
    splitter = FrameSplitter(EITHER)
    for byte in header:
        splitter.receive_data(bytes([byte]))
    assert splitter.fault is not None
    assert splitter.fault.kind is FaultKind.OVERSIZE
    assert splitter.pending == 0


def test_frames_before_a_fault_are_still_returned() -> None:
    """What was whole and right before the fault is handed out."""
    frames, splitter = split(
        encode_ack(SPECIFIED, 1) + encode_ack(SPECIFIED, 2) + b"GET / HTTP/1.1"
    )
    assert [frame.batch_id for frame in frames] == [1, 2]
    assert splitter.fault is not None
    assert splitter.fault.offset == 2 * HEADER_SIZE


def test_nothing_is_read_after_a_fault() -> None:
    """A stream that broke a rule is never trusted again."""
    splitter = FrameSplitter(EITHER)
    splitter.receive_data(b"nonsense")
    assert splitter.receive_data(encode_keepalive(SPECIFIED)) == []


def test_foreign_protocols_are_refused_at_their_first_bytes() -> None:
    """A peer that speaks something else need not send a whole header to be found out."""
    assert faulty(b"GET") is FaultKind.BAD_MAGIC
    assert faulty(b"\x16") is FaultKind.BAD_MAGIC
    assert faulty(b"LAN") is None


def test_an_unknown_command_stays_a_number() -> None:
    """The code of an unknown command is kept as it came."""
    (frame,), _ = split(encode_control(SPECIFIED, 0x7777))
    assert frame.command == 0x7777


def test_a_frame_can_be_copied() -> None:
    """The copy has the same fields and is another object."""
    (frame,), _ = split(ingest(SPECIFIED, b"payload", batch_id=7))
    copied = copy(frame)
    copied.topic_id += 1
    assert copied == replace(frame, topic_id=frame.topic_id + 1)


frames_and_cuts = st.tuples(
    st.sampled_from(EITHER),
    st.lists(st.binary(max_size=200), min_size=1, max_size=8),
    st.lists(st.integers(0, 1500), max_size=12),
)


@given(frames_and_cuts)
def test_cuts_never_change_the_frames(case: tuple[Dialect, list[bytes], list[int]]) -> None:
    """However a stream is cut into reads, the same frames come out."""
    dialect, payloads, cuts = case
    stream = b"".join(ingest(dialect, payload, i) for i, payload in enumerate(payloads, 1))
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    splitter = FrameSplitter(EITHER)
    found = [
        (frame.batch_id, bytes(frame.payload))
        for start, stop in pairwise(places)
        for frame in splitter.receive_data(stream[start:stop])
    ]
    assert splitter.fault is None
    assert found == list(enumerate(payloads, 1))
    assert splitter.pending == 0


@given(
    st.sampled_from(EITHER),
    st.lists(st.binary(max_size=300), min_size=1, max_size=8),
    st.lists(st.integers(1, 200), min_size=1, max_size=12),
)
def test_bytes_that_are_received_in_place_make_the_same_frames(
    dialect: Dialect, payloads: list[bytes], sizes: list[int]
) -> None:
    """Each read goes where the splitter has room for it, as far as that reaches."""
    stream = memoryview(b"".join(ingest(dialect, each, i) for i, each in enumerate(payloads, 1)))
    splitter, found, reads = FrameSplitter(EITHER), [], 0
    while stream:
        room, size = splitter.room(), sizes[reads % len(sizes)]
        piece = stream[: min(size, len(room) or size)]
        if room:
            room[: len(piece)] = piece
        read = room[: len(piece)] if room else piece
        found += [(each.batch_id, bytes(each.payload)) for each in splitter.receive_data(read)]
        stream, reads = stream[len(piece) :], reads + 1
    assert found == list(enumerate(payloads, 1))
    assert (splitter.fault, splitter.pending, len(splitter.room())) == (None, 0, 0)


def test_a_header_alone_has_little_set_aside_for_it() -> None:
    """However much it announces: a few times what has arrived."""
    header = patched(encode_keepalive(SPECIFIED), 32, *MAX_PAYLOAD.to_bytes(4, "little"))
    _, splitter = split(header)
    assert 0 < len(splitter.room()) < 10 * HEADER_SIZE


@given(st.binary(max_size=400), st.integers(1, 50))
def test_no_bytes_make_it_raise(noise: bytes, step: int) -> None:
    """Whatever arrives, in whatever portions, ends in frames or in a fault."""
    splitter = FrameSplitter(EITHER, max_payload=64)
    stream = encode_keepalive(SPECIFIED)[:32] + noise
    for start in range(0, len(stream), step):
        splitter.receive_data(stream[start : start + step])
    assert splitter.fault is not None or splitter.pending < HEADER_SIZE + 64


def test_a_payload_outlives_the_next_read_when_it_came_in_pieces() -> None:
    """A frame assembled from several reads owns its payload."""
    splitter = FrameSplitter(EITHER)
    data = ingest(SPECIFIED, b"first") + ingest(SPECIFIED, b"second", 2)
    assert splitter.receive_data(data[:46]) == []
    one, _two = splitter.receive_data(data[46:])
    splitter.receive_data(ingest(SPECIFIED, b"third", 3)[:47])
    assert bytes(one.payload) == b"first"


def test_a_splitter_needs_a_dialect() -> None:
    """Without a dialect there is nothing to judge by."""
    with pytest.raises(ValueError, match="at least one dialect"):
        FrameSplitter(())


def test_state_is_visible() -> None:
    """The repr shows dialect, position and what is pending."""
    _, splitter = split(encode_keepalive(SPECIFIED) + b"LANC")
    assert repr(splitter) == "<FrameSplitter dialect=specified offset=44 pending=4 fault=None>"


def test_header_crc_covers_the_first_eight_bytes_only() -> None:
    """Bytes 0 to 7 are guarded, the rest of the header is not (AMB-03)."""
    header = encode_header(SPECIFIED, Flag.KEEPALIVE, batch_id=99)
    assert int.from_bytes(header[8:12], "little") == CRC32C(header[:8])
