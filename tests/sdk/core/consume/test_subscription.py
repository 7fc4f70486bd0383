"""Subscriptions under a manual clock: a server that does not push is found out (AMB-21)."""

from typing import Any

import pytest

from lance_sdk._protocol.consume import fetcher
from lance_sdk._protocol.events import Notice
from lance_sdk.errors import RemoteProtocolError, Unsupported
from lance_spec.dialect import DEPLOYED, SPECIFIED
from lance_spec.enums import Command, Flag
from lance_spec.frames import FrameKind, encode_header
from lance_spec.messages.lwp import FetchResponse, Subscribe, SubscribeAck, Unsubscribe
from lance_spec.records import encode_record

ONE = encode_record(b"one")


def commands(rig: Any) -> list[Command]:
    """Take the control requests that are on the wire, and remember the last."""
    frames = rig.wire.take(FrameKind.CONTROL)
    rig.last = frames[-1] if frames else None
    return [frame.command for frame in frames]


def subscribe(rig: Any, log: Any) -> Subscribe:
    """Answer what the consumer asks until it subscribes."""
    for _ in range(10):
        for frame in rig.wire.take(FrameKind.CONTROL):
            if frame.command is Command.SUBSCRIBE:
                return Subscribe.decode(frame.payload)
            log.answer(frame)
        rig.wire.advance(0.06)
    raise AssertionError(f"no Subscribe: {rig.fetcher!r}")


def begin(rig: Any, request: Subscribe) -> None:
    """Acknowledge a subscription."""
    ack = SubscribeAck(request.consumer_id, request.start_offset).encode()
    rig.wire.control(Command.SUBSCRIBE_ACK, ack)
    rig.subscriber = request.consumer_id


def subscribed(consumer: Any, data: bytes = b"") -> Any:
    """Return a consumer that has read everything and is subscribed."""
    rig = consumer.build(mode="auto")
    rig.wire.connect()
    begin(rig, subscribe(rig, rig.log(data)))
    return rig


def push(rig: Any, start: int, data: bytes, topic_id: int = 1) -> None:
    """Send a FetchResponse that nobody asked for."""
    payload = FetchResponse(start + len(data), len(data), 1, data).encode()
    header = encode_header(
        SPECIFIED,
        Flag.CONTROL,
        batch_id=Command.FETCH_RESPONSE,
        topic_id=topic_id,
        payload=payload,
    )
    rig.wire.send(header + payload)


def test_a_push_is_a_record(consumer: Any) -> None:
    """It needs no Fetch, and no polling goes on beside it."""
    rig = subscribed(consumer, ONE)
    push(rig, len(ONE), encode_record(b"two"))
    assert rig.drain() == [b"one", b"two"]
    rig.wire.advance(0.5)
    assert commands(rig) == []


def test_a_push_of_another_topic_breaks_the_protocol(consumer: Any) -> None:
    """The connection is of no use after it."""
    rig = subscribed(consumer)
    push(rig, 0, ONE, topic_id=9)
    assert rig.drain() == []
    assert isinstance(rig.session.connection.fault, RemoteProtocolError)


def test_what_is_pushed_after_an_unsubscribe_is_taken_until_its_ack(consumer: Any) -> None:
    """The Ack bears the consumer's number (AMB-22)."""
    rig = subscribed(consumer)
    rig.fetcher.pause(None, rig.clock.now)
    assert commands(rig) == [Command.UNSUBSCRIBE]
    assert Unsubscribe.decode(rig.last.payload).consumer_id == rig.subscriber
    push(rig, 0, ONE)
    rig.wire.ack(rig.subscriber)
    rig.fetcher.resume()
    assert rig.drain() == [b"one"]


def test_a_server_that_keeps_records_back_is_found_out(consumer: Any) -> None:
    """After two looks that found something it is polled; a notice says so."""
    rig = subscribed(consumer)
    log = rig.log(b"")
    for look in range(2):
        log.data += ONE
        rig.wire.advance(1.0)
        assert commands(rig) == [Command.UNSUBSCRIBE]
        rig.wire.ack(rig.subscriber)
        if look == 0:
            begin(rig, subscribe(rig, log))
    for _ in range(5):
        log.serve()
        rig.wire.advance(0.06)
    assert rig.drain() == [b"one", b"one"]
    notices = [event.kind for event in rig.wire.events if isinstance(event, Notice)]
    assert notices == ["push"]
    with pytest.raises(AssertionError, match="no Subscribe"):
        subscribe(rig, log)


def test_a_server_that_pushes_is_looked_at_rarely(consumer: Any) -> None:
    """A push shows that it works."""
    rig = subscribed(consumer)
    push(rig, 0, ONE)
    rig.wire.advance(5.0)
    assert commands(rig) == []
    rig.wire.advance(11.0)
    assert Command.UNSUBSCRIBE in commands(rig)


def test_a_subscription_that_begins_elsewhere_is_ended(consumer: Any) -> None:
    """A Fetch then says what is wrong there."""
    rig = consumer.build(mode="auto")
    rig.wire.connect()
    request = subscribe(rig, rig.log(b""))
    rig.wire.control(Command.SUBSCRIBE_ACK, SubscribeAck(request.consumer_id, 7).encode())
    assert commands(rig) == [Command.UNSUBSCRIBE]


def test_no_subscription_where_the_end_is_the_goal(consumer: Any) -> None:
    """stop_at_end reads what is there and ends."""
    rig = consumer.build(mode="auto", stop_at_end=True)
    rig.wire.connect()
    assert rig.log(ONE).consume() == [b"one"]


def test_push_mode_where_nothing_is_pushed(consumer: Any) -> None:
    """Ends the opening (AMB-21)."""
    consumer.speaks, consumer.dialects = DEPLOYED, (DEPLOYED,)
    rig = consumer.build(mode="push")
    rig.wire.connect()
    with pytest.raises(Unsupported):
        raise rig.session.failure


def test_a_server_that_never_stops_pushing_is_cut_off(
    consumer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory stays bounded whatever a server does."""
    monkeypatch.setattr(fetcher, "_ON_THE_WAY", 10_000)
    rig = subscribed(consumer)
    record = encode_record(bytes(995))
    for number in range(20):
        push(rig, number * len(record), record)
    assert isinstance(rig.session.connection.fault, RemoteProtocolError)
    assert rig.fetcher.fetch_buffer.buffered <= 4000 + 10_000 + len(record)
