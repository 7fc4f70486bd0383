"""The producer that tests rehearse with, and the fixtures that come with the package."""

from collections.abc import Callable

import pytest

from lance_sdk.errors import BufferFull, DeadlineExceeded, DeliveryFailed
from lance_sdk.testing import FakeServer, ManualClock, ProducerRehearsal
from lance_spec.dialect import DEPLOYED
from lance_spec.enums import ErrorCode


def test_a_lone_record_leaves_at_once() -> None:
    """Nothing is in flight that could be waited for, so linger does not hold it."""
    producer = ProducerRehearsal(linger=60)
    producer.send(b"one")
    assert producer.sent == [[b"one"]]


def test_a_batch_leaves_when_its_linger_is_over() -> None:
    """While another one is in flight: not a moment earlier, by the clock of the test."""
    producer = ProducerRehearsal(linger=0.5)
    producer.send(b"one")
    producer.send(b"two")
    producer.advance(0.499)
    assert producer.sent == [[b"one"]]
    producer.advance(0.001)
    assert producer.sent == [[b"one"], [b"two"]]


def test_what_gathered_leaves_when_nothing_is_in_flight_any_more() -> None:
    """An acknowledgement ends the wait, however long linger is."""
    producer = ProducerRehearsal(linger=60)
    for value in (b"one", b"two", b"three"):
        producer.send(value)
    assert producer.sent == [[b"one"]]
    producer.acknowledge()
    assert producer.sent == [[b"one"], [b"two", b"three"]]


def test_an_acknowledgement_settles_the_delivery() -> None:
    """And counts."""
    producer = ProducerRehearsal(linger=0)
    delivery = producer.send(b"one")
    assert not delivery.done()
    producer.acknowledge()
    assert delivery.done()
    assert producer.stats().acked_records == 1


def test_a_delivery_can_be_asked_but_does_not_wait() -> None:
    """There is nobody who could acknowledge in the meantime."""
    producer = ProducerRehearsal(linger=0)
    delivery = producer.send(b"one")
    with pytest.raises(DeadlineExceeded):
        delivery.result()
    producer.acknowledge()
    assert delivery.result().attempts == 1


def test_callbacks_are_called_when_the_answer_is_there() -> None:
    """Once, and at once where it was there before."""
    producer = ProducerRehearsal(linger=0)
    told: list[str] = []
    delivery = producer.send(b"one")
    delivery.add_done_callback(lambda _: told.append("waited"))
    assert told == []
    producer.acknowledge()
    delivery.add_done_callback(lambda _: told.append("late"))
    assert told == ["waited", "late"]


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
def test_a_refusal_fails_the_delivery(dialect: str) -> None:
    """With the code that the test names; a deployed server's text names no batch."""
    if dialect == "deployed":
        producer = ProducerRehearsal(linger=0, dialect=DEPLOYED)
    else:
        producer = ProducerRehearsal(linger=0)
    delivery = producer.send(b"one")
    producer.refuse(ErrorCode.TOPIC_DELETED, "Topic 1 not found")
    producer.advance(5.0)
    assert delivery.done()
    assert isinstance(delivery.exception(), DeliveryFailed)


def test_a_connection_lives_as_long_as_the_test_lets_time_pass() -> None:
    """Keepalives are answered."""
    producer = ProducerRehearsal(linger=100)
    producer.send(b"one")
    producer.advance(100)
    assert producer.sent == [[b"one"]]
    assert producer.stats().connects == 1


def test_what_was_unanswered_is_sent_again_after_reconnecting() -> None:
    """The same values, once."""
    producer = ProducerRehearsal(linger=0, backoff_base=1.0)
    producer.send(b"one")
    producer.lose_connection()
    producer.advance(2.0)
    producer.reconnect()
    assert producer.sent == [[b"one"], [b"one"]]
    producer.acknowledge()
    assert producer.stats().acked_records == 1


def test_reconnecting_before_the_delay_is_over_is_a_mistake_of_the_test() -> None:
    """It is told."""
    producer = ProducerRehearsal(linger=0, backoff_base=1.0)
    producer.lose_connection()
    with pytest.raises((AssertionError, IndexError)):
        producer.reconnect()


def test_a_full_buffer_is_refused_at_once() -> None:
    """There is no thread to wait for room."""
    producer = ProducerRehearsal(linger=0, batch_bytes=100, buffer_bytes=100)
    producer.send(b"x" * 90)
    with pytest.raises(BufferFull):
        producer.send(b"x" * 90)


def test_the_fixtures_come_with_the_package(
    lance_fake_server: FakeServer,
    lance_clock: ManualClock,
    lance_rehearsal: Callable[..., ProducerRehearsal],
) -> None:
    """Nothing has to be imported; a rehearsal runs on the fixture's clock."""
    assert lance_fake_server.accepted == 0
    assert lance_rehearsal(linger=0).clock is lance_clock
