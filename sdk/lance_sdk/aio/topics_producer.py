"""A producer of several topics, partitioned or not, for tasks (AMB-59)."""
# ruff: noqa: ASYNC109 - both APIs take the same parameters

from dataclasses import replace
from time import monotonic
from types import TracebackType
from typing import Any, Self, Unpack

import anyio

from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.arguments.unit_parsing import positive, seconds, shorten
from lance_sdk._api.deadlines import deadline_after
from lance_sdk._io.at_exit import leaving_time, warn_of_lost_block
from lance_sdk._io.tasks.uncancelled import closing
from lance_sdk.aio.delivery import AsyncDelivery
from lance_sdk.aio.partitions import AsyncPartitionedProducer
from lance_sdk.config import ProducerConfig
from lance_sdk.errors import ClosedError, ConfigError, NotOpenError, RecordsLost, UsageError
from lance_sdk.options import ProducerOptions
from lance_sdk.stats import ProducerStats
from lance_sdk.topics.routing import Partitioner, merged
from lance_sdk.types import CloseReport
from lance_sdk.url import URL, parse_url
from lance_sdk.values.keyed import Time

__all__ = ["AsyncTopicsProducer"]


@shows_options(ProducerConfig)
class AsyncTopicsProducer:
    """Sends records to several topics of a server, partitioned or not.

    ::

        async with AsyncTopicsProducer("lance://localhost:1992") as producer:
            await producer.send(b"paid", topic="orders", key=b"order-17")
            await producer.send(b"hello", topic="news")

    It opens a topic when the first record is sent to it; then it has a connection for the topic,
    or for each of its partitions. Records of a key keep their order, and so do those of a topic
    without partitions. Any number of tasks may send.

    Args:
        url: where the topics are; a topic in it is where records go for which none is named.
        partitioner: gives a key its partition; by default the one that the server describes.
        refresh_interval: seconds after which it asks, while records are sent to a topic, whether
            that has got more partitions. Those take records from then on, and **keys move**.
        **options: the fields of `lance_sdk.config.ProducerConfig`, for each topic. With
            ``journal`` each topic has a folder of its own in that folder.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """

    def __init__(
        self,
        url: str | URL,
        *,
        partitioner: Partitioner | None = None,
        refresh_interval: float = 30.0,
        **options: Unpack[ProducerOptions],
    ) -> None:
        self._server = parse_url(url)
        self._options: Any = options
        self._partitioner = partitioner
        self._interval = positive("refresh_interval", refresh_interval)
        config = self._server.configure(ProducerConfig, options)
        self._close_timeout = seconds("close_timeout", config.close_timeout)
        self._targets: dict[str, AsyncPartitionedProducer] = {}
        self._opening = anyio.Lock()
        self._usage_error: UsageError | None = NotOpenError(f"{self!r} is not open")

    def __repr__(self) -> str:
        return f"<AsyncTopicsProducer {self._server} topics={len(self._targets)}>"

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that were sent to, in their order."""
        return tuple(self._targets)

    async def open(self) -> Self:
        """Get ready, and open the topic of the URL; an ``async with`` block does it by itself.

        Raises:
            LanceError: that topic cannot be opened.
            UsageError: it is open already, or was closed.
        """
        if not isinstance(self._usage_error, NotOpenError):
            raise self._usage_error or UsageError(f"{self!r} is open already")
        self._usage_error = None
        if self._server.topic is not None:
            await self._target(self._server.topic)
        return self

    async def send(
        self,
        value: Any,
        *,
        topic: str | None = None,
        key: bytes | str | None = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        record_type: int | None = None,
    ) -> AsyncDelivery:
        """Hand one record over.

        Args:
            value: as for `lance_sdk.AsyncProducer.send`.
            topic: where it goes; by default to the topic of the URL.
            key: decides the partition; without one, partitions take turns.
            partition: sends to this one, whatever the key.
            timestamp: as for `lance_sdk.AsyncProducer.send`.
            record_type: likewise.

        Returns:
            A handle to await, or to ignore.

        Raises:
            ConfigError: no topic is named, or there is no partition of this number.
            TopicNotFound: the topic does not exist.
            LanceError: as for `lance_sdk.AsyncProducer.send`.
            UsageError: the producer is not open.
        """
        target = self._targets.get(topic or self._server.topic or "")
        if target is None:
            target = await self._target(topic)
        return await target.send(
            value, key=key, partition=partition, timestamp=timestamp, record_type=record_type
        )

    def _check(self) -> None:
        if self._usage_error is not None:
            raise self._usage_error

    async def _target(self, topic: str | None) -> AsyncPartitionedProducer:
        """Return the producer of a topic, opened."""
        if topic is None:
            raise ConfigError(f"send() needs topic=: {self._server} names none")
        if not isinstance(topic, str):
            raise ConfigError(f"topic={shorten(topic)}: expected text, the name of a topic")
        async with self._opening:
            self._check()
            if (found := self._targets.get(topic)) is None:
                url = replace(self._server, topic=topic, topic_id=None)
                found = AsyncPartitionedProducer(
                    url,
                    partitioner=self._partitioner,
                    refresh_interval=self._interval,
                    **self._options,
                )
                await found.open()
                self._targets[topic] = found
                try:
                    self._check()
                except ClosedError:  # meanwhile
                    await found.close(0.0)
                    raise
        return found

    async def flush(self, timeout: float | None = None) -> None:
        """Send what waits, and wait until everything handed over so far is acknowledged.

        Args:
            timeout: seconds to wait; by default as long as ``delivery_timeout`` allows.

        Raises:
            DeliveryError: the first failure among the records waited for.
            DeadlineExceeded: not all are settled yet; their delivery goes on.
        """
        until = None if timeout is None else deadline_after(timeout)
        for target in list(self._targets.values()):
            await target.flush(None if until is None else max(0.0, until - monotonic()))

    def stats(self) -> dict[str, tuple[ProducerStats, ...]]:
        """Return the counters of each topic's partitions as they stand now, by topic."""
        return {name: target.stats() for name, target in list(self._targets.items())}

    @closing
    async def close(self, timeout: float | None = None) -> CloseReport:
        """Finish and disconnect; always returns.

        Args:
            timeout: seconds for what is not acknowledged yet; by default ``close_timeout``.

        Returns:
            What was delivered and what was not, of all topics.
        """
        until = deadline_after(self._close_timeout if timeout is None else timeout)
        self._usage_error = ClosedError(f"{self!r} is closed; make a new one")
        targets = list(self._targets.values())
        return merged([await each.close(max(0.0, until - monotonic())) for each in targets])

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        report = await self.close(leaving_time(kind))
        if kind is None and report.lost:
            raise RecordsLost(report)
        warn_of_lost_block(report.lost, repr(self), error)
