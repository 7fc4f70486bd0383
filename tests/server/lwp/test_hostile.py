"""Any bytes at all: a session answers or closes, and never stumbles."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server.testing import SessionPeer
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.frames import FrameSplitter, encode_header
from lance_spec.records import encode_records

dialects = st.sampled_from([SPECIFIED, DEPLOYED])
payloads = st.one_of(
    st.binary(max_size=80),
    st.lists(st.binary(max_size=8), max_size=4).map(encode_records),
    st.integers(0, 3).map(lambda topic: topic.to_bytes(4, "little") + bytes(20)),
)
small = st.integers(0, 5)
frames = st.tuples(
    st.integers(0, 255),
    st.one_of(st.integers(0, 0x90), st.integers(0, 2**64 - 1)),
    small,
    small,
    payloads,
)


def encoded(dialect: Dialect, frame: tuple[int, int, int, int, bytes]) -> bytes:
    """Return a frame with any flags, ids and payload, and right checksums."""
    flags, batch_id, count, topic_id, payload = frame
    header = encode_header(
        dialect,
        flags,
        batch_id=batch_id,
        timestamp_ns=1,
        record_count=count,
        topic_id=topic_id,
        payload=payload,
    )
    return header + payload


@settings(deadline=None)
@given(
    dialect=dialects,
    sent=st.lists(frames, max_size=12),
    flips=st.lists(st.integers(0, 2**16), max_size=2),
    cuts=st.lists(st.integers(0, 2**11), max_size=4),
)
def test_every_stream_is_answered_with_frames_or_closed(
    dialect: Dialect,
    sent: list[tuple[int, int, int, int, bytes]],
    flips: list[int],
    cuts: list[int],
) -> None:
    """Whatever flags, codes, ids and payloads come, in whatever pieces, bits flipped or not."""
    peer = SessionPeer(dialect)
    stream = bytearray(b"".join(encoded(dialect, frame) for frame in sent))
    for flip in flips:
        if stream:
            stream[flip // 8 % len(stream)] ^= 1 << flip % 8
    bounds = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    for start, end in pairwise(bounds):
        peer.send(bytes(stream[start:end]))
        peer.work()
    peer.wait(1.0)
    peer.work()
    answers = b"".join(peer.session.data_to_send())
    splitter = FrameSplitter((dialect,))
    splitter.receive_data(answers)
    assert (splitter.fault, splitter.pending) == (None, 0)
    assert not peer.session.owed
    assert peer.session._owed_bytes == 0


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=10))
def test_noise_closes_without_a_word(pieces: list[bytes]) -> None:
    """Bytes that are no LWP get no answer, and nothing of them is kept."""
    peer = SessionPeer()
    for piece in pieces:
        peer.send(piece)
    peer.work()
    assert peer.session.data_to_send() == []
    if sum(map(len, pieces)) >= 44:
        assert peer.session.closing is not None
        assert peer.session.partial_bytes == 0
