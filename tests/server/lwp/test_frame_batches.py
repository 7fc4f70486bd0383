"""Batches that arrive together are treated as if each had come alone."""

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server.log.dedup import FIRST_LASTING_ID
from lance_server.lwp import ingest
from lance_server.storage.contract import read_file
from lance_server.telemetry.distribution import Distribution
from lance_server.testing import SessionPeer, the_error, told
from lance_spec.codec import ingest_runs
from lance_spec.codec.ingest_runs import PrecedingBatch
from lance_spec.dialect import DEPLOYED
from lance_spec.enums import Command, ErrorCode, Flag
from lance_spec.frames import Frame, FrameKind

PEER = SessionPeer()
COMPRESSED = Flag.BATCH_MODE | Flag.COMPRESSED


def batch(counter: int, count: int = 1) -> bytes:
    """Return a batch of one record with a lasting id, whatever its header says."""
    return PEER.ingest(FIRST_LASTING_ID + counter, count=count)


ids = st.sampled_from(
    [0, *range(1, 5), *(FIRST_LASTING_ID * n + c for n in (1, 2) for c in (1, 2))]
)
odd = st.one_of(
    st.builds(PEER.ingest, ids, count=st.just(3)),
    st.builds(PEER.ingest, ids, flags=st.just(Flag.BATCH_MODE | Flag.ENCRYPTED)),
    st.builds(PEER.ingest, ids, topic_id=st.sampled_from([1, 9]), timestamp_ns=st.integers(0, 1)),
    st.builds(PEER.raw_ingest, st.sampled_from([b"", b"\1\x09", b"\0\0\0\0\1"]), ids),
    st.builds(
        PEER.raw_ingest, st.just(lz4.frame.compress(b"\1\0\0\0\0")), ids, flags=st.just(COMPRESSED)
    ),
    st.just(PEER.keepalive()),
    st.just(PEER.fetch()),
    st.just(PEER.control(Command.GET_TOPIC, b"\1\0\0\0")),
)


@st.composite
def rising(draw: st.DrawFn) -> list[bytes]:
    """Several batches of one producer, as producers send them, perhaps with one in their midst."""
    first, count = draw(st.integers(0, 12)), draw(st.integers(1, 8))
    values = draw(st.lists(st.binary(max_size=6), min_size=1, max_size=3))
    topics = draw(st.lists(st.integers(0, 1), min_size=1, max_size=3))
    base = draw(st.sampled_from([1, FIRST_LASTING_ID]))
    frames = [
        PEER.ingest(base + first + step, values, topic_id=topics[step % len(topics)])
        for step in range(count)
    ]
    return [*frames, draw(odd)] if draw(st.booleans()) else frames


turns = st.lists(
    st.lists(rising() | odd.map(lambda one: [one]), max_size=5), min_size=1, max_size=4
)


def outcome(peer: SessionPeer) -> dict[str, object]:
    """Return all that is to be seen of what became of batches."""
    stored: list[bytes | str] = []
    for topic in peer.log.engine.topics_with_default():
        for segment in topic.partition.segment_list:
            stored.append(read_file(peer.disk, segment.data_path, 1 << 20))
            stored.append(read_file(peer.disk, segment.sidecar_path, 1 << 20))
        window = topic.partition._window
        stored.append(repr((window._recent.rows, window._highest)))
    return {**counts(peer), "stored": stored, "highest": peer.session._ingest._highest_id}


def counts(peer: SessionPeer) -> dict[str, object]:
    """Return the counters, with what the distributions hold."""
    counters = peer.counters
    return {
        name: value.cumulative() if isinstance(value, Distribution) else value
        for name in counters.__dataclass_fields__
        if not name.endswith("_latency")  # one value for all answers of a turn
        and isinstance(value := getattr(counters, name), int | Distribution)
    }


@settings(deadline=None, max_examples=60)
@given(turns, st.sampled_from([1, 4, 4096]))
def test_together_is_as_one_by_one(turns: list[list[list[bytes]]], remembered: int) -> None:
    """Answers, stored bytes, sidecars, windows and counters are the same to the last bit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "_REMEMBERED", remembered)
        together, alone = SessionPeer(), SessionPeer()
        for peer in together, alone:
            peer.exchange(peer.create("one"))
        for number, turn in enumerate(turns):
            now_ns = 2_000_000_000_000_000_000 - number  # the clock is set back each time
            for peer in together, alone:
                patch.setattr(peer.log.engine, "clock", lambda now_ns=now_ns: now_ns)
            frames = [frame for part in turn for frame in part]
            together.session.receive_data(b"".join(frames), 0.0)
            for frame in frames:
                alone.session.receive_data(frame, 0.0)
            owed = [peer.session._owed_bytes for peer in (together, alone)]
            assert owed[0] == owed[1]
            for peer in together, alone:
                peer.log.scheduler.run_soon()
                peer.work()
            answers = [b"".join(peer.session.data_to_send()) for peer in (together, alone)]
            assert answers[0] == answers[1]
        assert outcome(together) == outcome(alone)


def test_batches_in_one_read_are_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that rise within one read are stored together, and acknowledged in order."""
    taken: list[int] = []
    counting = ingest_runs.count_run

    def noting(
        frames: list[Frame],
        first: int,
        most: int,
        preceding: PrecedingBatch,
        *,
        validates: bool,
    ) -> int:
        taken.append(counting(frames, first, most, preceding, validates=validates))
        return taken[-1]

    monkeypatch.setattr(ingest, "count_run", noting)
    peer = SessionPeer()
    answers = peer.exchange(*(batch(number) for number in range(50)))
    assert told(answers) == [FIRST_LASTING_ID + number for number in range(50)]
    assert taken == [49]
    peer.exchange(*(batch(number) for number in range(50, 60)))
    assert taken == [49, 10], "a later read goes on where this one ended"


def test_batches_of_many_topics_in_one_read_are_taken_together() -> None:
    """They are stored where they belong, by one flush, and acknowledged in order."""
    peer = SessionPeer()
    topics = [peer.log.create_topic(f"topic-{number}").id for number in range(7)]
    frames = [
        peer.ingest(FIRST_LASTING_ID + number, topic_id=topics[number % 7]) for number in range(50)
    ]
    before = peer.log.engine.flusher.flushes
    assert told(peer.exchange(*frames)) == [FIRST_LASTING_ID + number for number in range(50)]
    assert peer.log.engine.flusher.flushes == before + 1
    assert [peer.log.end(topic_id) for topic_id in topics] == [80, *[70] * 6]


def test_of_many_topics_those_are_refused_that_cannot_be_written() -> None:
    """Each batch is answered by what became of its own topic, in order."""
    peer = SessionPeer()
    topics = [peer.log.create_topic(f"topic-{number}").id for number in range(3)]
    frames = [
        peer.ingest(FIRST_LASTING_ID + number, topic_id=topics[number % 3]) for number in range(6)
    ]
    closed = peer.log.engine.topic(topics[1]).partition
    closed.closed = "the disk failed"
    answers = peer.exchange(*frames)
    assert [each.kind for each in answers] == [
        *(FrameKind.ACK, FrameKind.CONTROL, FrameKind.ACK) * 2
    ]
    assert told([each for each in answers if each.kind is FrameKind.ACK]) == [
        FIRST_LASTING_ID + number for number in (0, 2, 3, 5)
    ]
    assert peer.session._owed_bytes == peer.session.unacked_batches == 0


def test_a_topic_that_is_not_durable_yet_holds_up_only_what_comes_after_it() -> None:
    """Batches before it are acknowledged; those after it when it is durable, in order."""
    peer = SessionPeer()
    topics = [peer.log.create_topic(f"topic-{number}").id for number in range(3)]
    peer.send(peer.ingest(FIRST_LASTING_ID, topic_id=topics[1]))  # its flush is running
    numbers = range(1, 7)
    frames = [
        peer.ingest(FIRST_LASTING_ID + number, topic_id=topics[number % 3]) for number in numbers
    ]
    peer.send(*frames)
    assert not peer.received()
    peer.work()
    assert told(peer.received()) == [FIRST_LASTING_ID + number for number in (0, *numbers)]


def test_a_run_ends_where_a_batch_is_refused() -> None:
    """The one in the middle gets its error, those around it their acks, in order."""
    peer = SessionPeer()
    frames = [batch(number, count=2 if number == 3 else 1) for number in range(6)]
    first, second, third, error, *rest = peer.exchange(*frames)
    assert told([first, second, third, *rest]) == [FIRST_LASTING_ID + n for n in (0, 1, 2, 4, 5)]
    assert the_error([error]).details["batch_id"] == FIRST_LASTING_ID + 3


def test_a_run_that_was_stored_is_known_when_it_comes_again() -> None:
    """On the same connection and on another one nothing is stored twice."""
    peer = SessionPeer()
    frames = [batch(number) for number in range(20)]
    peer.exchange(*frames)
    end = peer.log.end()
    assert len(told(peer.exchange(*frames))) == 20
    peer.reconnect()
    assert len(told(peer.exchange(*frames))) == 20
    assert (peer.log.end(), peer.counters.duplicates) == (end, 40)


def test_other_content_under_an_id_of_a_run_is_refused() -> None:
    """Within one connection an id stands for one batch (AMB-25)."""
    peer = SessionPeer()
    peer.exchange(*(batch(number) for number in range(5)))
    error = the_error(peer.exchange(PEER.ingest(FIRST_LASTING_ID + 3, [b"other"])))
    assert error.code is ErrorCode.INVALID_PAYLOAD


def test_deployed_batches_go_one_by_one() -> None:
    """Their checksum is not the stored one, and each may be stored as it is."""
    peer = SessionPeer(DEPLOYED)
    answers = peer.exchange(*(peer.ingest(number) for number in range(1, 9)))
    assert told(answers) == list(range(1, 9))
