"""One topic's consumer on a thread of its own, at most one batch ahead of the application."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from lance_sdk.consumer import Consumer
from lance_sdk.errors import ClosedError, InvalidOffset, OffsetOutOfRange
from lance_sdk.groups._progress import Resume
from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.types import RecordBatch

Delivery: TypeAlias = RecordBatch | Exception | None
"""A batch, what ended the topic, or None at its end with ``stop_at_end``."""

_CLOSING: Final = 2.0
"""Seconds that closing a topic's connection may take."""


class TopicConsumer(Consumer):
    """The consumer of one topic of a group."""

    def let_go(self) -> None:
        """Start closing without waiting."""
        self._pump.let_go()


class Feed:
    """Reads one topic and delivers its batches, each after the one before was taken.

    Args:
        topic: the topic.
        resume: where to begin.
        make: makes its consumer, from where to begin.
        deliver: called on the feed's thread with each batch, and with what ends the topic.
    """

    def __init__(
        self,
        topic: TopicIdentity,
        resume: Resume,
        make: Callable[[object], TopicConsumer],
        deliver: "Callable[[Feed, Delivery], object]",
    ) -> None:
        self.topic = topic
        self._resume = resume
        self._make = make
        self._deliver = deliver
        self._consumer: TopicConsumer | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._wanted = threading.Semaphore(1)
        self._thread = threading.Thread(target=self._run, name=repr(self), daemon=True)

    def __repr__(self) -> str:
        return f"<Feed {self.topic.label}>"

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def taken(self) -> None:
        """Let the next batch come."""
        self._wanted.release()

    def stop(self) -> None:
        """Stop reading; what is delivered afterwards is not wanted."""
        with self._lock:
            self._stopped = True
            consumer = self._consumer
        self._wanted.release()
        if consumer is not None:
            consumer.close(0.0)
        self._thread.join(_CLOSING)

    def let_go(self) -> None:
        """Stop without waiting: the consumer was dropped without being closed."""
        self._stopped = True
        self._wanted.release()
        if self._consumer is not None:
            self._consumer.let_go()

    def _run(self) -> None:
        try:
            self._read()
        except ClosedError as error:
            if not self._stopped:
                self._deliver(self, error)
        except Exception as error:  # noqa: BLE001 - raised where the application waits
            self._deliver(self, error)

    def _read(self) -> None:
        while not self._stopped:
            try:
                self._read_from(self._resume.start)
            except (InvalidOffset, OffsetOutOfRange):
                if not self._resume.checking:
                    raise
                self._resume.skip_check()
            else:
                return

    def _read_from(self, start: object) -> None:
        with self._lock:
            if self._stopped:
                return
            self._consumer = self._make(start)
        with self._consumer as consumer:
            for batch in consumer.batches():
                rest = self._resume.take(replace(batch, topic=self.topic.label))
                if rest is None:
                    continue
                self._wanted.acquire()
                self._deliver(self, rest)  # after a stop nobody looks at it
        self._deliver(self, None)
