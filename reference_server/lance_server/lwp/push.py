"""Subscriptions: what is stored is pushed to who asked for it (LWP section 5.12, AMB-21)."""

from collections.abc import Callable
from dataclasses import dataclass

from lance_server.log.log_manager import Topic
from lance_server.log.reading.reader import Fetched, Range
from lance_server.lwp.flow_control.throttle import PostponedError, ReadGate
from lance_server.lwp.refusals import Refusal
from lance_server.lwp.responses import (
    Answer,
    as_refusal,
    error_frame,
    fetch_response,
    room_for_headers,
)
from lance_server.lwp.service import Service
from lance_server.lwp.topic_access import permitted_topic
from lance_server.runtime.completion import Completion
from lance_server.security.access import Right
from lance_server.security.authorizer import Authorizer
from lance_spec.dialect import Dialect
from lance_spec.enums import ErrorCode
from lance_spec.limits import END_OFFSET


@dataclass(slots=True)
class _Subscription:
    """One topic that is pushed.

    Attributes:
        topic: the topic.
        cursor: where the next push begins.
        max_bytes: most data in one push.
        reading: a read that waits for the disk, or None.
        reserved: bytes set aside for it.
    """

    topic: Topic
    cursor: int
    max_bytes: int
    reading: Completion[Fetched] | None = None
    reserved: int = 0


class Subscriptions:
    """What one connection is subscribed to: at most once to each topic.

    Args:
        service: what all connections share.
        authorizer: judges the client.
        reads: decides when the connection may read.
        wake: called when there may be something to push.

    Attributes:
        by_topic: the topics that are pushed, by id, with how far each is.
    """

    def __init__(
        self, service: Service, authorizer: Authorizer, reads: ReadGate, wake: Callable[[], None]
    ) -> None:
        self._engine = service.engine
        self._counters = service.counters
        self._authorizer = authorizer
        self._reads = reads
        self._wake = wake
        self.by_topic: dict[int, _Subscription] = {}

    def __len__(self) -> int:
        return len(self.by_topic)

    def __repr__(self) -> str:
        return f"<Subscriptions to topics {sorted(self.by_topic)}>"

    @property
    def topic_ids(self) -> list[int]:
        """The topics that are pushed."""
        return sorted(self.by_topic)

    def add(self, topic: Topic, offset: int, max_bytes: int) -> int:
        """Subscribe to a topic and return the offset that the first push begins at.

        Raises:
            Refusal: it is subscribed to already, or no byte may be pushed.
        """
        if topic.id in self.by_topic:
            raise Refusal(
                ErrorCode.INVALID_PAYLOAD,
                f"This connection is subscribed to topic {topic.id}; unsubscribe first",
            )
        if not max_bytes:
            raise Refusal(ErrorCode.INVALID_PAYLOAD, "max_batch_bytes must be at least 1")
        end = topic.partition.end_offset
        if end < offset < END_OFFSET:
            raise Refusal(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {offset} is beyond the end of the topic, {end}",
                details={"end_offset": end},
            )
        cursor = min(offset, end)
        self.by_topic[topic.id] = _Subscription(topic, cursor, max_bytes)
        topic.partition.watch(self._wake)
        return cursor

    def remove(self, topic_id: int) -> None:
        """Unsubscribe; nothing more is pushed of this topic."""
        subscription = self.by_topic.pop(topic_id, None)
        if subscription is not None:
            subscription.topic.partition.unwatch(self._wake)
            self._reads.end(subscription.reserved, 0)

    def clear(self) -> None:
        """Unsubscribe from everything."""
        for topic_id in list(self.by_topic):
            self.remove(topic_id)

    def next_push(self, dialect: Dialect, now: float) -> Answer | None:
        """Return the next frame to push, or None when there is nothing at the moment."""
        if self._reads.wait(now) > 0:
            return None  # asked again as time passes
        for subscription in list(self.by_topic.values()):
            try:
                fetched = self._read(subscription, dialect)
            except Exception as error:  # noqa: BLE001 - as_refusal lets mistakes through
                self.remove(subscription.topic.id)
                self._counters.errors += 1
                return error_frame(dialect, _of_topic(as_refusal(error), subscription.topic))
            if fetched is not None:
                self._turn(subscription)
                self._counters.bytes_pushed += len(fetched.buffer) - room_for_headers(dialect)
                subscription.cursor = fetched.next_offset
                topic = subscription.topic
                end = topic.partition.end_offset
                return fetch_response(dialect, fetched, end, topic_id=topic.id)
        return None

    def _read(self, subscription: _Subscription, dialect: Dialect) -> Fetched | None:
        """Return what follows a subscription's cursor, once there is something."""
        topic_id = subscription.topic.id
        topic = permitted_topic(
            self._engine, self._authorizer, Right.READ, topic_id, text="Topic not found"
        )
        if subscription.reading is not None:
            return self._finish_read(subscription, subscription.reading)
        ahead = topic.partition.end_offset - subscription.cursor
        if ahead <= 0:
            return None
        size = min(ahead, subscription.max_bytes, dialect.max_fetch_data)
        try:
            self._reads.begin(size)
        except PostponedError:
            return None
        subscription.reserved = size  # given back by `remove` when the read is refused
        fetched = self._begin_read(subscription, topic, dialect)
        if isinstance(fetched, Completion):
            subscription.reading = fetched
            fetched.wake(self._wake)
            return None
        subscription.reserved = 0
        self._reads.end(size, len(fetched.buffer))
        return fetched

    def _finish_read(
        self, subscription: _Subscription, reading: Completion[Fetched]
    ) -> Fetched | None:
        if not reading.done:
            return None
        subscription.reading = None
        reserved, subscription.reserved = subscription.reserved, 0
        size = 0 if reading.error else len(reading.result().buffer)
        self._reads.end(reserved, size)
        return reading.result()

    def _begin_read(
        self, subscription: _Subscription, topic: Topic, dialect: Dialect
    ) -> Fetched | Completion[Fetched]:
        wanted = Range(
            start=subscription.cursor,
            max_bytes=min(subscription.max_bytes, dialect.max_fetch_data),
            room=room_for_headers(dialect),
        )
        return self._engine.fetch(topic, wanted)

    def _turn(self, subscription: _Subscription) -> None:
        """Put a subscription after the others, so that each gets its turn."""
        topic_id = subscription.topic.id
        self.by_topic[topic_id] = self.by_topic.pop(topic_id)


def _of_topic(refusal: Refusal, topic: Topic) -> Refusal:
    """Say which subscription an error ends."""
    details = {**refusal.details, "topic_id": topic.id}
    return Refusal(refusal.code, refusal.message, details=details, text=refusal.text)
