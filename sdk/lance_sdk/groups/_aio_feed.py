"""One topic's consumer in a task of its own, at most one batch ahead of the application."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from lance_sdk.aio.consumer import AsyncConsumer
from lance_sdk.errors import InvalidOffset, OffsetOutOfRange
from lance_sdk.groups._progress import Resume
from lance_sdk.offsets.contract import TopicIdentity

if TYPE_CHECKING:
    from lance_sdk.groups._feed import Delivery


class AsyncFeed:
    """Reads one topic and delivers its batches, each after the one before was taken.

    Args:
        topic: the topic.
        resume: where to begin.
        make: makes its consumer, from where to begin.
        deliver: called with each batch, and with what ends the topic.
    """

    def __init__(
        self,
        topic: TopicIdentity,
        resume: Resume,
        make: Callable[[object], AsyncConsumer],
        deliver: "Callable[[AsyncFeed, Delivery], object]",
    ) -> None:
        self.topic = topic
        self._resume = resume
        self._make = make
        self._deliver = deliver
        self._wanted = anyio.Semaphore(1)
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()

    def __repr__(self) -> str:
        return f"<AsyncFeed {self.topic.label}>"

    def taken(self) -> None:
        """Let the next batch come."""
        self._wanted.release()

    async def stop(self) -> None:
        """Stop reading; what is delivered afterwards is not wanted."""
        self._scope.cancel()
        with anyio.CancelScope(shield=True):  # closing a consumer takes bounded time
            await self._ended.wait()

    async def run(self) -> None:
        """Read until stopped, or until the topic ends."""
        try:
            with self._scope:
                await self._read()
        except Exception as error:  # noqa: BLE001 - raised where the application waits
            self._deliver(self, error)
        finally:
            self._ended.set()

    async def _read(self) -> None:
        while True:
            try:
                await self._read_from(self._resume.start)
            except (InvalidOffset, OffsetOutOfRange):
                if not self._resume.checking:
                    raise
                self._resume.skip_check()
            else:
                return

    async def _read_from(self, start: object) -> None:
        async with self._make(start) as consumer:
            async for batch in consumer.batches():
                rest = self._resume.take(replace(batch, topic=self.topic.label))
                if rest is None:
                    continue
                await self._wanted.acquire()
                self._deliver(self, rest)
        self._deliver(self, None)
