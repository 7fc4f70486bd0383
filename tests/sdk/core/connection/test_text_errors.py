"""Errors in text name no batch: how the one they are about is found (AMB-10)."""

from typing import Any

from lance_sdk.errors import (
    DeliveryFailed,
    TopicNotFound,
)
from lance_spec.dialect import DEPLOYED
from lance_spec.enums import ErrorCode
from lance_spec.frames import FrameKind, encode_keepalive


def deployed(producer: Any, **options: int) -> Any:
    """Return a producer at a server that answers errors in text."""
    producer.dialects, producer.speaks = (DEPLOYED,), DEPLOYED
    rig = producer.build(**options)
    rig.wire.connect()
    return rig


def test_a_text_error_with_one_batch_in_flight_is_about_that_one(producer: Any) -> None:
    """There is no other it could be about (AMB-10)."""
    rig = deployed(producer)
    batch = rig.send()
    assert len(rig.wire.take(FrameKind.INGEST)) == 1
    rig.wire.error(ErrorCode.TOPIC_NOT_FOUND, "Unknown topic")
    failure = batch.failure()
    assert isinstance(failure, DeliveryFailed)
    assert isinstance(failure.cause, TopicNotFound)


def test_a_text_error_with_several_in_flight_stops_sending(producer: Any) -> None:
    """Until it is clear which one it was about, nothing new leaves (AMB-10)."""
    rig = deployed(producer)
    for _ in range(3):
        rig.send()
    rig.wire.take(FrameKind.INGEST)
    rig.wire.error(ErrorCode.TOPIC_NOT_FOUND, "Unknown topic")
    rig.send()
    assert rig.wire.take(FrameKind.INGEST) == []
    assert len(rig.wire.take(FrameKind.KEEPALIVE)) == 1


def test_two_barriers_find_the_batch_a_text_error_was_about(producer: Any) -> None:
    """Whatever is unacknowledged after two keepalives was refused, perhaps after storing."""
    rig = deployed(producer)
    batches = [rig.send() for _ in range(3)]
    sent = rig.wire.take(FrameKind.INGEST)
    rig.wire.error(ErrorCode.TOPIC_NOT_FOUND, "Unknown topic")
    waiting = rig.send()
    rig.wire.ack(sent[0].batch_id)
    rig.wire.send(encode_keepalive(DEPLOYED))
    rig.wire.ack(sent[2].batch_id)
    assert not batches[1].done
    rig.wire.send(encode_keepalive(DEPLOYED))
    assert [batch.failure() is None for batch in batches if batch.done] == [True, False, True]
    failure = batches[1].failure()
    assert failure is not None
    assert failure.maybe_applied
    (frame,) = rig.wire.take(FrameKind.INGEST)
    rig.wire.ack(frame.batch_id)
    assert waiting.failure() is None


def test_a_connection_lost_in_doubt_ends_the_doubt(producer: Any) -> None:
    """Everything unacknowledged is sent again; the server will judge again."""
    rig = deployed(producer)
    for _ in range(3):
        rig.send()
    rig.wire.take(FrameKind.INGEST)
    rig.wire.error(ErrorCode.TOPIC_NOT_FOUND, "Unknown topic")
    rig.wire.cut()
    rig.wire.advance(0.1)
    rig.wire.connect()
    assert len(rig.wire.take(FrameKind.INGEST)) == 3
