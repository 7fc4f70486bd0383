"""Topics in partitions, for tasks: see `lance_sdk.partitions`."""
# ruff: noqa: ASYNC109 - both APIs take the same parameters

from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from types import TracebackType
from typing import Any, Self, Unpack

from lance_sdk._units import seconds
from lance_sdk.aio.delivery import AsyncDelivery
from lance_sdk.aio.producer import AsyncProducer
from lance_sdk.errors import RecordsLost
from lance_sdk.options import ProducerOptions
from lance_sdk.partitions import Partitioner, Router, merged, partition_of
from lance_sdk.stats import ProducerStats
from lance_sdk.types import CloseReport
from lance_sdk.url import URL, parse_url
from lance_sdk.values.keyed import Time

__all__ = ["AsyncPartitionedProducer"]


class AsyncPartitionedProducer:
    """Sends records to partitions: those of one key to one, in their order.

    It has a producer, and a connection, for each partition. Any number of tasks may send.

    Args:
        url: where the partitions are; a topic in it is left aside.
        partitions: their names, see `partition_names`; every program that writes names the same
            ones in the same order.
        partitioner: gives a key its partition; by default as Kafka's clients do.
        **options: the fields of `lance_sdk.config.ProducerConfig`, for each partition;
            ``create_topic=True`` creates partitions that are missing.

    Raises:
        ConfigError: for a URL, names or an option that cannot be used.
    """

    def __init__(
        self,
        url: str | URL,
        partitions: Sequence[str],
        *,
        partitioner: Partitioner = partition_of,
        **options: Unpack[ProducerOptions],
    ) -> None:
        server = parse_url(url)
        self._router = Router(partitions, partitioner)
        self._producers = [
            AsyncProducer(replace(server, topic=name, topic_id=None), **options)
            for name in self._router.names
        ]
        self._close_timeout = seconds("close_timeout", self._producers[0]._config.close_timeout)  # noqa: SLF001 - the same for all

    def __repr__(self) -> str:
        return f"<AsyncPartitionedProducer {len(self._producers)} of {self._router.names[0]!r}>"

    @property
    def partitions(self) -> tuple[str, ...]:
        """The names of the partitions."""
        return self._router.names

    async def open(self) -> Self:
        """Connect to all partitions; an ``async with`` block does it by itself.

        Raises:
            LanceError: one cannot be opened; none stays open then.
        """
        for number, producer in enumerate(self._producers):
            try:
                await producer.open()
            except BaseException:
                for each in self._producers[:number]:
                    await each.close(0.0)
                raise
        return self

    async def send(
        self,
        value: Any,
        *,
        key: bytes | str | None = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        record_type: int | None = None,
    ) -> AsyncDelivery:
        """Hand one record over.

        Args:
            value: as for `lance_sdk.AsyncProducer.send`.
            key: decides the partition; without one, partitions take turns.
            partition: sends to this one, whatever the key.
            timestamp: as for `lance_sdk.AsyncProducer.send`.
            record_type: likewise.

        Returns:
            A handle to wait on, or to ignore.

        Raises:
            ConfigError: there is no partition of this number.
            LanceError: as for `lance_sdk.AsyncProducer.send`.
        """
        producer = self._producers[self._router.place(key, partition)]
        return await producer.send(value, key=key, timestamp=timestamp, record_type=record_type)

    async def flush(self, timeout: float | None = None) -> None:
        """Send what waits, and wait until everything handed over so far is acknowledged.

        Args:
            timeout: seconds to wait; by default as long as ``delivery_timeout`` allows.

        Raises:
            DeliveryError: the first failure among the records waited for.
            DeadlineExceeded: not all are settled yet; their delivery goes on.
        """
        until = None if timeout is None else monotonic() + timeout
        for producer in self._producers:
            await producer.flush(None if until is None else max(0.0, until - monotonic()))

    def stats(self) -> tuple[ProducerStats, ...]:
        """Return the counters of each partition as they stand now."""
        return tuple(producer.stats() for producer in self._producers)

    async def close(self, timeout: float | None = None) -> CloseReport:
        """Finish and disconnect; always returns.

        Args:
            timeout: seconds for what is not acknowledged yet; by default ``close_timeout``.

        Returns:
            What was delivered and what was not, of all partitions.
        """
        until = monotonic() + (self._close_timeout if timeout is None else timeout)
        return merged([await each.close(max(0.0, until - monotonic())) for each in self._producers])

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        report = await self.close()
        if kind is None and report.lost:
            raise RecordsLost(report)
