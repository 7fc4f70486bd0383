"""When a consumer's position is committed, and as what: the same for both APIs."""

import math
import time
from typing import Final

from lance_sdk._api.arguments.unit_parsing import seconds
from lance_sdk._api.consumer_position import ConsumerPosition
from lance_sdk._protocol.consume.fetcher import Fetcher
from lance_sdk.config import ConsumerConfig
from lance_sdk.errors import UsageError
from lance_sdk.hooks import CommitEvent
from lance_sdk.offsets.consumer_ids import consumer_id
from lance_sdk.offsets.contract import (
    Commit,
    Fingerprint,
    TopicIdentity,
    check_consumer_name,
)
from lance_spec.limits import DEFAULT_TOPIC_ID

_AFTER_FAILURE: Final = 1.0
"""Seconds."""
SERVER: Final = "server"
"""The ``offsets`` option that keeps commits at the server."""


class CommitPlan:
    """What is to be committed, and when.

    Args:
        config: the consumer's settings.
        fetcher: knows the topic.
        cursor: knows how far the application has come.
        label: how events name the topic.

    Attributes:
        wanted: whether positions are committed at all.
        automatic: whether that happens without being asked for.
        at_server: whether the server keeps them.
        consumer: the name they are committed under.
        committed: the offset committed last, by this consumer or found at the start.
        due: when the next automatic commit may be made; infinite without any.
    """

    def __init__(
        self, config: ConsumerConfig, fetcher: Fetcher, cursor: ConsumerPosition, label: str
    ) -> None:
        self._fetcher = fetcher
        self._cursor = cursor
        self._label = label
        self._interval = seconds("commit_interval", config.commit_interval)
        self._careful = config.auto_commit == "processed"
        self.wanted = config.offsets is not None
        self.automatic = self.wanted and config.auto_commit != "off"
        self.at_server = config.offsets == SERVER
        self.generation = config.generation
        self.consumer = check_consumer_name(config.consumer) if config.consumer else ""
        self._found = config.start != "beginning" and not isinstance(config.start, int)
        self.committed: int | None = None
        self.due = math.inf

    def __repr__(self) -> str:
        return f"<CommitPlan {self.consumer!r} committed={self.committed}>"

    @property
    def consumer_id(self) -> int:
        """The number that stands for the consumer at the server."""
        return consumer_id(self.consumer)

    @property
    def topic(self) -> TopicIdentity:
        """Which topic it is, as its server tells it."""
        info = self._fetcher.topic
        return TopicIdentity(DEFAULT_TOPIC_ID) if info is None else TopicIdentity.of(info)

    def begin(self, found: Commit | None) -> None:
        """Take note of what was committed before."""
        self.committed = None if found is None else found.offset
        self.later()

    def later(self, *, failed: bool = False) -> None:
        """Put the next automatic commit off; a store that failed is left in peace for a while."""
        pause = max(self._interval, _AFTER_FAILURE) if failed else self._interval
        self.due = time.monotonic() + pause if self.automatic else math.inf

    def pending(self, *, failed: bool = False) -> int | None:
        """Return the offset that an automatic commit would commit; None when it is committed.

        Args:
            failed: whether the application left what it was given with an exception.
        """
        cursor = self._cursor
        offset = cursor.unfinished if failed and self._careful else cursor.position
        if offset is None and self.committed is None and self._found:
            # Where it begins is decided once: the next time the end would be another one.
            offset = self._fetcher.offset
        return None if offset == self.committed else offset

    def commit(self, offset: int | None, position: int | None) -> Commit:
        """Return what `commit()` is to keep.

        Args:
            offset: the offset that was asked for, or None for the position.
            position: after what was handed out.

        Raises:
            UsageError: there is no store, no position yet, or it lies ahead of what was handed
                out.
            TypeError: it is not an offset.
        """
        if not self.wanted:
            raise UsageError("nowhere to commit to: give the consumer offsets= and consumer=")
        if offset is not None and not isinstance(offset, int):
            raise TypeError(
                f"commit() takes a byte offset, not {type(offset).__name__}; pass the record's "
                "next_offset, or nothing to commit all that was handed out"
            )
        if position is None:
            raise UsageError("there is no position to commit yet: poll first, or seek")
        if offset is not None and offset > position:
            raise UsageError(
                f"commit({offset}) is ahead of what was handed out, {position}; commit a record's "
                f"next_offset, or call commit() without an offset"
            )
        return self.make(position if offset is None else offset)

    def make(self, offset: int) -> Commit:
        """Return a commit of an offset, with the fingerprint of what stands before it."""
        return Commit(
            consumer=self.consumer,
            topic=self.topic,
            offset=offset,
            fingerprint=Fingerprint.of(self._cursor.records_before(offset), offset),
            generation=self.generation,
            committed_at_ns=time.time_ns(),
        )

    def event(
        self, source: str, offset: int, began: float, error: Exception | None = None
    ) -> CommitEvent:
        """Return what hooks are told of a commit."""
        return CommitEvent(
            source=source,
            topic=self._label,
            consumer=self.consumer,
            offset=offset,
            seconds=time.monotonic() - began,
            error=error,
            generation=self.generation or None,
        )
