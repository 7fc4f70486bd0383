"""Batches out, acknowledgements in: identity, order, window, retries, refusals, deadlines."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk._protocol.events import Close, Notice
from lance_sdk._protocol.produce.send_settings import draw_nonce
from lance_sdk.errors import (
    BufferFull,
    DeliveryExpired,
    DeliveryFailed,
    InvalidPayload,
    RecordTooLarge,
    ServerBackpressure,
)
from lance_sdk.testing import LoadedDice
from lance_spec.bodies import TopicInfo
from lance_spec.dialect import DEPLOYED
from lance_spec.enums import ErrorCode
from lance_spec.frames import Frame, FrameKind, encode_backpressure
from lance_spec.limits import MAX_RECORD_VALUE


def test_batch_ids_are_a_nonce_and_a_counter(producer: Any) -> None:
    """AMB-25: 24 random bits, then 40 bits that count from 1."""
    rig = producer.build()
    rig.wire.connect()
    rig.send()
    rig.send()
    ids = [frame.batch_id for frame in rig.wire.take(FrameKind.INGEST)]
    assert ids == [(0xABCDEF << 40) | 1, (0xABCDEF << 40) | 2]


def test_the_nonce_is_never_zero() -> None:
    """A batch id of 40 bits would be known within one connection only."""

    class RandomSource(LoadedDice):
        rolls = iter([0, 0, 7])

        def getrandbits(self, k: int, /) -> int:
            return next(self.rolls) % 2**k

    assert draw_nonce(RandomSource()) == 7


def test_the_frame_carries_topic_time_and_count(producer: Any) -> None:
    """LWP section 4.1."""
    rig = producer.build()
    rig.wire.connect()
    rig.batcher.append(b"a", 1, rig.clock.now)
    rig.send(b"b")
    (frame,) = rig.wire.take(FrameKind.INGEST)
    assert (frame.topic_id, frame.record_count) == (1, 2)
    assert frame.timestamp_ns == int(rig.clock.now * 1e9)
    assert bytes(frame.payload) == b"\x01\x01\0\0\0a\x01\x01\0\0\0b"


def test_an_acknowledged_batch_settles(producer: Any) -> None:
    """And is announced once."""
    rig = producer.build()
    rig.wire.connect()
    batch = rig.send()
    (frame,) = rig.wire.take(FrameKind.INGEST)
    rig.wire.ack(frame.batch_id)
    assert batch.done
    assert rig.wire.settled().count(batch) == 1
    assert rig.sender.drained


def test_the_window_bounds_what_is_in_flight(producer: Any) -> None:
    """The next batch leaves when an earlier one is acknowledged."""
    rig = producer.build(max_in_flight=2)
    rig.wire.connect()
    for _ in range(3):
        rig.send()
    sent = rig.wire.take(FrameKind.INGEST)
    assert len(sent) == 2
    rig.wire.ack(sent[0].batch_id)
    assert len(rig.wire.take(FrameKind.INGEST)) == 1


def test_a_lost_connection_repeats_the_same_frames_first(producer: Any) -> None:
    """Same id, timestamp, content and order; then whatever is newer (AMB-25)."""
    rig = producer.build()
    rig.wire.connect()
    rig.send(b"one")
    rig.send(b"two")
    before = [bytes_of(frame) for frame in rig.wire.take(FrameKind.INGEST)]
    rig.wire.cut()
    rig.send(b"three")
    rig.wire.advance(5.0)
    rig.wire.connect()
    after = [bytes_of(frame) for frame in rig.wire.take(FrameKind.INGEST)]
    assert after[:2] == before
    assert len(after) == 3
    assert rig.sender.retries == 2


def bytes_of(frame: Frame) -> tuple[int, int, int, int, bytes]:
    """Return what must not change between two sendings of a frame."""
    return (
        frame.batch_id,
        frame.timestamp_ns,
        frame.record_count,
        frame.topic_id,
        bytes(frame.payload),
    )


def test_a_late_ack_of_a_settled_batch_is_ignored(producer: Any) -> None:
    """It was given up; the ack changes nothing."""
    rig = producer.build(delivery_timeout=1.0)
    rig.wire.connect()
    batch = rig.send()
    (frame,) = rig.wire.take(FrameKind.INGEST)
    rig.wire.advance(1.0)
    rig.wire.ack(frame.batch_id)
    assert isinstance(batch.failure(), DeliveryExpired)
    assert rig.sender.stray_acks == 1


def test_an_ack_of_what_was_never_sent_is_the_peers_fault(producer: Any) -> None:
    """The connection is of no use: its server is confused."""
    rig = producer.build()
    rig.wire.connect()
    rig.wire.ack(12345)
    rig.wire.hang_up()
    assert "acknowledged batch 0x3039, which was never sent" in str(rig.wire.events[-1].error)


def test_a_refused_batch_fails_alone(producer: Any) -> None:
    """details.batch_id names it; the others go on (AMB-10)."""
    rig = producer.build()
    rig.wire.connect()
    bad, good = rig.send(b"bad"), rig.send(b"good")
    first, second = rig.wire.take(FrameKind.INGEST)
    rig.wire.error(ErrorCode.INVALID_PAYLOAD, "broken chain", batch_id=first.batch_id)
    rig.wire.ack(second.batch_id)
    failure = bad.failure()
    assert isinstance(failure, DeliveryFailed)
    assert isinstance(failure.cause, InvalidPayload)
    assert not failure.maybe_applied
    assert good.failure() is None


def test_a_batch_refused_for_the_moment_is_sent_again(producer: Any) -> None:
    """Error 0x31 refuses the frame, not the data (AMB-35); the pause is a backoff."""
    rig = producer.build()
    rig.wire.connect()
    batch = rig.send()
    (first,) = rig.wire.take(FrameKind.INGEST)
    rig.wire.error(ErrorCode.BACKPRESSURE, "full", batch_id=first.batch_id)
    assert rig.wire.take(FrameKind.INGEST) == []
    rig.wire.advance(0.1)
    (again,) = rig.wire.take(FrameKind.INGEST)
    assert bytes_of(again) == bytes_of(first)
    rig.wire.ack(again.batch_id)
    assert batch.failure() is None


def test_a_rate_limit_is_respected(producer: Any) -> None:
    """retry_after_ms says how long (LWP section 12.3)."""
    rig = producer.build()
    rig.wire.connect()
    rig.send()
    (first,) = rig.wire.take(FrameKind.INGEST)
    rig.wire.error(ErrorCode.RATE_LIMITED, "slow", batch_id=first.batch_id, retry_after_ms=700)
    rig.wire.advance(0.69)
    assert rig.wire.take(FrameKind.INGEST) == []
    rig.wire.advance(0.01)
    assert len(rig.wire.take(FrameKind.INGEST)) == 1


def test_backpressure_halves_the_window(producer: Any) -> None:
    """LWP section 4.4: reduce the rate by half; what is in flight is the rate."""
    rig = producer.build(max_in_flight=8)
    rig.wire.connect()
    for _ in range(20):
        rig.send()
    sent = rig.wire.take(FrameKind.INGEST)
    assert len(sent) == 8
    rig.wire.send(encode_backpressure(rig.speaks))
    assert rig.sender.window.size == 4
    rig.wire.ack(*(frame.batch_id for frame in sent[:2]))
    assert rig.wire.take(FrameKind.INGEST) == []


def test_acknowledgements_restore_the_window(producer: Any) -> None:
    """LWP section 4.4: the normal rate may be resumed after acks."""
    rig = producer.build(max_in_flight=8)
    rig.wire.connect()
    for _ in range(8):
        rig.send()
    sent = rig.wire.take(FrameKind.INGEST)
    rig.wire.send(encode_backpressure(rig.speaks))
    rig.wire.ack(*(frame.batch_id for frame in sent))
    assert rig.sender.window.size == 8


def test_backpressure_never_stops_a_producer(producer: Any) -> None:
    """However often it is asked, one batch may be in flight."""
    rig = producer.build()
    rig.wire.connect()
    for _ in range(10):
        rig.wire.send(encode_backpressure(rig.speaks))
    assert rig.sender.window.size == 1
    rig.send()
    assert len(rig.wire.take(FrameKind.INGEST)) == 1


def test_an_error_in_answer_to_nothing_ends_the_connection(producer: Any) -> None:
    """With nothing in flight no batch can be meant."""
    rig = producer.build()
    rig.wire.connect()
    rig.wire.error(ErrorCode.INTERNAL_ERROR, "going down")
    rig.wire.hang_up()
    assert "going down" in str(rig.wire.events[-1].error)


def test_delivery_timeout_counts_from_the_first_record(producer: Any) -> None:
    """Sent or not, acknowledged or not: after that time the batch has failed."""
    rig = producer.build(delivery_timeout=2.0, linger=1.0)
    rig.wire.connect()
    rig.batcher.append(b"a", 1, rig.clock.now)
    batch = rig.batcher.last
    rig.wire.advance(1.99)
    assert not batch.done
    rig.wire.advance(0.01)
    failure = batch.failure()
    assert isinstance(failure, DeliveryExpired)
    assert failure.maybe_applied
    assert failure.retryable
    assert "sent once" in str(failure)


def test_a_batch_that_never_left_was_not_applied(producer: Any) -> None:
    """Without a connection the outcome is certain."""
    rig = producer.build(delivery_timeout=2.0)
    rig.wire.connect()
    rig.wire.cut()
    batch = rig.send()
    for _ in range(6):
        rig.wire.advance(0.5)
        if rig.wire.actions:
            rig.session.dial_failed([("tcp", None, OSError("refused"))], rig.clock.now)
            rig.wire.actions.clear()
    failure = batch.failure()
    assert isinstance(failure, DeliveryExpired)
    assert not failure.maybe_applied
    assert "never sent" in str(failure)


def test_a_gate_opens_when_there_is_room(producer: Any) -> None:
    """Who waits for the buffer is let go by acknowledgements."""
    rig = producer.build(capacity=2000, max_bytes=1000)
    rig.wire.connect()
    for _ in range(2):
        rig.send(bytes(990))
    with pytest.raises(BufferFull):
        rig.batcher.append(b"xxxxxxxxxx", 1, rig.clock.now)
    gate = rig.sender.gate(15)
    assert not gate.done
    first, _ = rig.wire.take(FrameKind.INGEST)
    rig.wire.ack(first.batch_id)
    assert gate.done


def test_a_gate_is_open_when_there_is_room_already(producer: Any) -> None:
    """The acknowledgement may have come before the waiter."""
    rig = producer.build()
    assert rig.sender.gate(10).done


def test_the_report_counts_what_nobody_has_seen(producer: Any) -> None:
    """A failure that the program looked at is not reported again at the end."""
    rig = producer.build()
    rig.wire.connect()
    seen, unseen = rig.send(b"1"), rig.send(b"2")
    for frame in rig.wire.take(FrameKind.INGEST):
        rig.wire.error(ErrorCode.INVALID_PAYLOAD, "no", batch_id=frame.batch_id)
    seen.observed = True
    report = rig.sender.failures.report(delivered=5)
    assert (report.delivered, report.lost, report.maybe_applied) == (5, 1, 0)
    assert report.error is unseen.failure()


@given(steps=st.lists(st.sampled_from(["send", "send", "ack", "cut", "refuse", "wait"])))
def test_every_batch_settles_once_or_is_outstanding(new_producer: Any, steps: list[str]) -> None:
    """Whatever the network does, no batch is lost and none is announced twice."""
    rig = new_producer().build(max_in_flight=3)
    rig.wire.connect()
    batches = []
    arrived: list[int] = []
    for step in steps:
        arrived += [frame.batch_id for frame in rig.wire.take(FrameKind.INGEST)]
        if step == "send":
            batches.append(rig.send(len(batches).to_bytes(2, "big")))
        elif step == "ack" and arrived:
            rig.wire.ack(arrived.pop(0))
        elif step == "refuse" and arrived:
            rig.wire.error(ErrorCode.BACKPRESSURE, "full", batch_id=arrived.pop(0))
        elif step == "cut":
            arrived.clear()
            rig.wire.cut()
        rig.wire.advance(60.0 if step == "wait" else 5.0)
        if rig.wire.actions:
            rig.wire.actions = rig.wire.actions[-1:]
            arrived.clear()
            if isinstance(rig.wire.actions[0], Close):
                rig.wire.hang_up()
                rig.wire.advance(60.0)
            rig.wire.connect()
    outstanding = rig.sender.outstanding()
    for batch in batches:
        assert rig.wire.settled().count(batch) == int(batch.done)
        assert batch.done != (batch in outstanding)


@given(cuts=st.lists(st.integers(0, 4), max_size=6))
def test_batches_are_stored_in_order_through_any_number_of_cuts(
    new_producer: Any, cuts: list[int]
) -> None:
    """A server with a duplicate window stores each batch once, in the order of sending."""
    rig = new_producer().build(max_in_flight=4)
    rig.wire.connect()
    for number in range(20):
        rig.send(number.to_bytes(1, "big"))
    stored: dict[int, bytes] = {}
    for survivors in (*cuts, None, *[None] * 20):
        frames = rig.wire.take(FrameKind.INGEST)
        for frame in frames[:survivors]:
            stored.setdefault(frame.batch_id, bytes(frame.payload))
        if survivors is None:
            rig.wire.ack(*(frame.batch_id for frame in frames))
        else:
            rig.wire.cut()
            rig.wire.advance(10.0)
            rig.wire.connect()
    assert [payload[5] for payload in stored.values()] == list(range(20))
    assert rig.sender.acked_batches == 20


def test_a_batch_that_the_server_cannot_take_fails_alone(producer: Any) -> None:
    """Sealed before it was known who listens: a deployed server takes five bytes less (AMB-32)."""
    producer.dialects, producer.speaks = (DEPLOYED,), DEPLOYED
    rig = producer.build(capacity=1 << 26)
    large, small = rig.send(bytes(MAX_RECORD_VALUE)), rig.send(b"small")
    rig.wire.connect()
    (frame,) = rig.wire.take(FrameKind.INGEST)
    rig.wire.ack(frame.batch_id)
    assert isinstance(large.failure(), RecordTooLarge)
    assert small.done
    assert small.failure() is None


def test_a_batch_for_another_node_follows_the_leader(producer: Any) -> None:
    """NotLeader: reconnect to leader_addr and send the same frame there (LWP section 12.4)."""
    rig = producer.build()
    rig.wire.connect()
    batch = rig.send()
    (first,) = rig.wire.take(FrameKind.INGEST)
    rig.wire.error(
        ErrorCode.NOT_LEADER, "not here", batch_id=first.batch_id, leader_addr="10.0.0.7:2000"
    )
    rig.wire.hang_up()
    rig.wire.advance(0.0)
    assert (rig.wire.actions[0].host, rig.wire.actions[0].port) == ("10.0.0.7", 2000)
    rig.wire.connect()
    (again,) = rig.wire.take(FrameKind.INGEST)
    assert bytes_of(again) == bytes_of(first)
    rig.wire.ack(again.batch_id)
    assert batch.failure() is None


def test_a_refused_batch_expires_with_the_knowledge_that_nothing_was_stored(producer: Any) -> None:
    """It is not sent once more when the answer would come too late; the error has the refusal."""
    rig = producer.build(delivery_timeout=2.0)
    rig.wire.connect()
    batch = rig.send()
    for _ in range(50):
        for frame in rig.wire.take(FrameKind.INGEST):
            assert rig.clock.now < batch.deadline - 0.5 or batch.attempts == 1
            rig.wire.error(ErrorCode.BACKPRESSURE, "disk full", batch_id=frame.batch_id)
        rig.wire.advance(0.05)
    failure = batch.failure()
    assert isinstance(failure, DeliveryExpired)
    assert not failure.maybe_applied
    assert "nothing of it was stored. The server last said: disk full" in str(failure)
    assert isinstance(failure.__cause__, ServerBackpressure)
    assert failure.attempts == batch.attempts > 1


def test_a_refusal_after_an_attempt_without_an_answer_is_doubtful(producer: Any) -> None:
    """The first attempt may be in the log, whatever became of the second."""
    rig = producer.build()
    rig.wire.connect()
    batch = rig.send()
    assert rig.wire.take(FrameKind.INGEST)
    rig.wire.cut()
    rig.wire.advance(1.0)
    rig.wire.connect()
    (frame,) = rig.wire.take(FrameKind.INGEST)
    rig.wire.error(ErrorCode.PAYLOAD_TOO_LARGE, "the limit is lower now", batch_id=frame.batch_id)
    failure = batch.failure()
    assert isinstance(failure, DeliveryFailed)
    assert failure.maybe_applied


def test_a_late_refusal_of_an_expired_batch_falls_on_no_other(producer: Any) -> None:
    """A text error names no batch: the one that expired may be meant, and the other is settled."""
    rig = producer.build(delivery_timeout=2.0)
    rig.wire.connect()
    expired = rig.send(b"first")
    rig.wire.advance(2.0)
    assert isinstance(expired.failure(), DeliveryExpired)
    later = rig.send(b"second")
    rig.wire.take(FrameKind.INGEST)
    rig.wire.error(ErrorCode.INVALID_PAYLOAD, "no", batch_id=None)
    assert not later.done
    rig.wire.ack(later.batch_id)
    assert later.done
    assert later.failure() is None


def test_a_topic_created_again_is_told_of(producer: Any) -> None:
    """What was not acknowledged goes into the later topic, and the log says so."""
    rig = producer.build()
    rig.wire.connect()
    rig.send()
    rig.wire.cut()
    rig.wire._topic = TopicInfo(id=2, name="orders", created_at=2)
    rig.clock.advance(1.0)
    rig.wire.connect()
    [told] = [each for each in rig.wire.events if isinstance(each, Notice)]
    assert "number 2 now, before 1); unacknowledged records (1) go" in told.message
