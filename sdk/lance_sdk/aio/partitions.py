"""Topics in partitions, for tasks: see `lance_sdk.partitions`."""
# ruff: noqa: ASYNC109 - both APIs take the same parameters

from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import monotonic
from types import TracebackType
from typing import Any, Self, Unpack

from lance_sdk._api.unit_parsing import seconds
from lance_sdk.aio.client import AsyncClient
from lance_sdk.aio.delivery import AsyncDeliveries, AsyncDelivery
from lance_sdk.aio.producer import AsyncProducer
from lance_sdk.config import ProducerConfig
from lance_sdk.errors import NotOpenError, RecordsLost
from lance_sdk.options import ProducerOptions
from lance_sdk.partitions import (
    Partitioner,
    Router,
    merged,
    options_of,
    partition_of,
    route,
    shared_options,
)
from lance_sdk.stats import ProducerStats
from lance_sdk.types import Buffer, CloseReport
from lance_sdk.url import URL, parse_url
from lance_sdk.values.keyed import Time

__all__ = ["AsyncPartitionedProducer"]


class AsyncPartitionedProducer:
    """Sends records to partitions: those of one key to one, in their order.

    It has a producer, and a connection, for each partition. Any number of tasks may send.

    Args:
        url: the partitioned topic; where ``partitions`` are given, a topic in it is left aside.
        partitions: by default those that the server describes (AMB-59). On a server that keeps
            no descriptions their names, see `lance_sdk.partitions.partition_names`: every
            program that writes gives the same ones in the same order.
        partitioner: gives a key its partition; by default the one that the server describes, and
            without a description that of Kafka's clients.
        **options: the fields of `lance_sdk.config.ProducerConfig`, for each partition;
            ``create_topic=True`` creates partitions that are missing. With ``journal`` each
            partition has a folder of its own in that folder.

    Raises:
        ConfigError: for a URL, names or an option that cannot be used.
    """

    def __init__(
        self,
        url: str | URL,
        partitions: Sequence[str] | None = None,
        *,
        partitioner: Partitioner | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        self._server = parse_url(url)
        self._options: Any = options
        self._partitioner = partitioner
        self._producers: list[AsyncProducer[Any]] = []
        self._router: Router | None = None
        config = self._server.configure(ProducerConfig, options)
        self._close_timeout = seconds("close_timeout", config.close_timeout)
        if partitions is None:
            self._server.require_name()
        else:
            self._take(Router(partitions, partitioner or partition_of))

    def __repr__(self) -> str:
        return f"<AsyncPartitionedProducer {len(self._producers)} of {self._server.topic!r}>"

    def _take(self, router: Router) -> None:
        self._router = router
        self._producers = [
            AsyncProducer(
                replace(self._server, topic=name, topic_id=None),
                **options_of(name, self._options),
            )
            for name in router.names
        ]

    @property
    def partitions(self) -> tuple[str, ...]:
        """The names of the partitions; none before they are known."""
        return () if self._router is None else self._router.names

    async def open(self) -> Self:
        """Connect to all partitions; an ``async with`` block does it by itself.

        Raises:
            ConfigError: the topic's description names another partitioner.
            LanceError: one cannot be opened; none stays open then.
        """
        if self._router is None:
            server = replace(self._server, topic=None)
            async with AsyncClient(server, **shared_options(self._options)) as client:
                topics = await client.list_topics()
            self._take(route(topics, self._server.topic or "", self._partitioner))
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
            UsageError: the producer is not open.
            LanceError: as for `lance_sdk.AsyncProducer.send`.
        """
        if self._router is None:
            raise NotOpenError(f"{self!r} is not open")
        producer = self._producers[self._router.place(key, partition)]
        return await producer.send(value, key=key, timestamp=timestamp, record_type=record_type)

    async def send_many_raw(
        self, raws: Iterable[Buffer], record_type: int
    ) -> list[AsyncDeliveries]:
        """Hand many records of one type over as they are stored; this is how records are copied.

        Args:
            raws: the stored bytes of each, as for `lance_sdk.AsyncProducer.send_many_raw`; the key
                that the type calls for decides the partition.
            record_type: the TLV type of all of them.

        Returns:
            A handle for each partition that got some.

        Raises:
            UsageError: the producer is not open.
            LanceError: as for `lance_sdk.AsyncProducer.send_many_raw`.
        """
        if self._router is None:
            raise NotOpenError(f"{self!r} is not open")
        shares = self._router.shares(raws, record_type)
        return [
            await self._producers[index].send_many_raw(share, record_type)
            for index, share in shares.items()
        ]

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
