"""Allowed answers to subscriptions and commits."""

from collections.abc import Collection

from lance_conformance.engine.expectations import ANOTHER_KIND, Allowed
from lance_conformance.server.expect import Event
from lance_conformance.wire.consumers import read_consumer_at
from lance_conformance.wire.frame import Command, Frame, FrameKind, command_name


def consumer_ack(
    command: int, consumer: int, offsets: Collection[int] | None, cite: str
) -> Allowed:
    """A SubscribeAck or a CommitAck.

    Args:
        command: Which of the two.
        consumer: The consumer that it must name.
        offsets: The offsets that it may name, `None` for any.
        cite: The clause or ambiguity.
    """

    def judge(event: Event) -> str | None:
        if not isinstance(event, Frame) or event.kind is not FrameKind.CONTROL:
            return ANOTHER_KIND
        if event.batch_id != command:
            return ANOTHER_KIND
        said = read_consumer_at(event.payload)
        if said is None:
            return "body:size"
        if said.consumer != consumer:
            return "field:consumer_id"
        return None if offsets is None or said.offset in offsets else "field:offset"

    where = "" if offsets is None else f" at {' or '.join(map(str, offsets))}"
    return Allowed(f"{command_name(command)} of consumer {consumer:#x}{where}", cite, judge)


def subscribe_ack(consumer: int, *offsets: int, cite: str) -> Allowed:
    """A SubscribeAck of this consumer, at one of these offsets where some are given."""
    return consumer_ack(Command.SUBSCRIBE_ACK, consumer, offsets or None, cite)


def commit_ack(consumer: int, *offsets: int, cite: str) -> Allowed:
    """A CommitAck of this consumer, at one of these offsets where some are given."""
    return consumer_ack(Command.COMMIT_ACK, consumer, offsets or None, cite)


def unsubscribe_ack(cite: str) -> Allowed:
    """The Ack of an Unsubscribe; whose id it has is only the register's rule (5.13/ack-id)."""

    def judge(event: Event) -> str | None:
        right = isinstance(event, Frame) and event.kind is FrameKind.ACK
        return None if right else ANOTHER_KIND

    return Allowed("an Ack frame", cite, judge)


def pushed(topic_id: int, cite: str) -> Allowed:
    """A push of the one topic of a connection: that its header names it is the register's rule."""
    return _pushed((topic_id, 0), f"FetchResponse with topic {topic_id} or 0 in its header", cite)


def pushed_under(topic_id: int, cite: str) -> Allowed:
    """A push of one of several topics: only its header tells which (5.12/push-topic)."""
    return _pushed((topic_id,), f"FetchResponse with topic {topic_id} in its header", cite)


def _pushed(topic_ids: Collection[int], words: str, cite: str) -> Allowed:
    def judge(event: Event) -> str | None:
        if not isinstance(event, Frame) or event.batch_id != Command.FETCH_RESPONSE:
            return ANOTHER_KIND
        return None if event.topic_id in topic_ids else "field:topic_id"

    return Allowed(words, cite, judge)
