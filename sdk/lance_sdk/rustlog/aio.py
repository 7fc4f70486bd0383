"""The client for tasks, on asyncio and trio."""

from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Self, TypeVar

import anyio

from lance_sdk._api.other_systems import Tls, parse_address, tls_context
from lance_sdk.errors import ClosedError
from lance_sdk.rustlog import _asks
from lance_sdk.rustlog._asks import Ask
from lance_sdk.rustlog._async_connection import AsyncRustlogConnection
from lance_sdk.rustlog._wire import Wire, checked_timeout
from lance_sdk.rustlog.errors import RustlogError
from lance_sdk.rustlog.types import (
    DEFAULT_PORT,
    Dialect,
    RustlogBatch,
    RustlogRecord,
    StoredRecords,
)

__all__ = ["AsyncRustlogClient"]

T = TypeVar("T")
_MAX_BYTES = 1024 * 1024


class AsyncRustlogClient:
    """Asks a RustLog broker; tasks may share it, and take turns.

    It connects with the first request, and again after a connection was lost. A request is never
    sent twice: whether one that got no answer was carried out is for the caller to find out
    (``maybe_applied`` of the error).

    Args:
        address: host and port, such as ``localhost:9092``.
        dialect: ``binary``, as RustLog's programs speak, or ``json``, as its specification says.
        timeout: seconds for connecting, and for each request.
        tls: a context, True for the system's authorities, or nothing for a plain connection;
            published brokers have no other.

    Raises:
        ConfigError: an option cannot be used.
    """

    def __init__(
        self,
        address: str,
        *,
        dialect: Dialect = "binary",
        timeout: float = 10.0,
        tls: Tls = None,
    ) -> None:
        self._address = parse_address(address, DEFAULT_PORT)
        self._dialect: Dialect = dialect
        Wire(dialect)
        self._timeout = checked_timeout(timeout)
        self._tls = tls_context(tls)
        self._lock = anyio.Lock()
        self._connection: AsyncRustlogConnection | None = None
        self._closed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else "connected" if self._connection else "idle"
        return (
            f"<AsyncRustlogClient {self._address[0]}:{self._address[1]} {self._dialect}, {state}>"
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; a request of another task is waited for."""
        async with self._lock:
            self._closed = True
            await self._drop()

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _run(self, ask: Ask[T]) -> T:
        wire = Wire(self._dialect)
        frame = wire.frame(ask)
        async with self._lock:
            connection = await self._connected()
            try:
                return await connection.exchange(wire, frame, ask)
            except RustlogError:
                raise
            except BaseException:
                await self._drop()  # an answer that comes late would be taken for the next one's
                raise

    async def _connected(self) -> AsyncRustlogConnection:
        if self._closed:
            raise ClosedError(f"{self!r}: make a new one")
        if self._connection is not None and not self._connection.usable:
            await self._drop()
        if self._connection is None:
            self._connection = await AsyncRustlogConnection.open(
                self._address, self._timeout, self._tls
            )
        return self._connection

    # Records -----------------------------------------------------------------------------------

    async def produce(
        self, topic: str, records: Iterable[bytes], *, partition: int = 0
    ) -> StoredRecords:
        """Append records to a partition, in one request of at most 10 MiB.

        Args:
            topic: name of the topic.
            records: their bytes.
            partition: number of the partition.

        Raises:
            NoSuchPartition: there is none.
            RecordTooLarge: they do not fit a request.
        """
        return await self._run(_asks.produce(topic, records, partition))

    async def fetch(
        self,
        topic: str,
        offset: int = 0,
        *,
        partition: int = 0,
        max_bytes: int = _MAX_BYTES,
        group: str | None = None,
    ) -> RustlogBatch:
        """Read records of a partition.

        Args:
            topic: name of the topic.
            offset: number of the first record wanted.
            partition: number of the partition.
            max_bytes: most bytes wanted; one record comes in any case, but none for 0 in the
                binary dialect.
            group: begin where this group has committed instead. In the binary dialect the offset
                is not looked at then, and a group without a commit gets nothing; in JSON the
                higher of both counts.

        Raises:
            NoSuchPartition: there is none.
            RustlogError: the records cannot be read; the message says where to go on.
        """
        return await self._run(_asks.fetch(topic, offset, partition, max_bytes, group))

    async def records(
        self, topic: str, offset: int = 0, *, partition: int = 0, max_bytes: int = _MAX_BYTES
    ) -> AsyncIterator[RustlogRecord]:
        """Yield the records from an offset to the end of the partition, fetching as needed."""
        while batch := await self.fetch(topic, offset, partition=partition, max_bytes=max_bytes):
            for record in batch.records:
                yield record
            offset = batch.next_offset

    # Groups ------------------------------------------------------------------------------------

    async def commit(self, group: str, topic: str, offset: int, *, partition: int = 0) -> None:
        """Commit the offset that a group reads next.

        Raises:
            RustlogError: it is not kept.
        """
        await self._run(_asks.commit(group, topic, offset, partition))

    async def committed(self, group: str, topic: str, *, partition: int = 0) -> int | None:
        """Return the offset that a group has committed, or None."""
        return await self._run(_asks.committed(group, topic, partition))

    # Topics and the broker; only in the binary dialect -----------------------------------------

    async def create_topic(self, name: str, *, partitions: int = 1) -> None:
        """Create a topic.

        Raises:
            TopicExists: there is one of this name.
            RustlogError: it cannot be created.
            Unsupported: the dialect is ``json``.
        """
        await self._run(_asks.create_topic(name, partitions))

    async def topics(self) -> dict[str, int]:
        """Return how many partitions each topic has, by name."""
        return await self._run(_asks.topics())

    async def describe_topic(self, name: str) -> dict[int, int]:
        """Return the offset after the last record of each partition; published brokers say 0.

        Raises:
            NoSuchPartition: there is no such topic.
        """
        return await self._run(_asks.describe_topic(name))

    async def describe_partition(self, topic: str, partition: int) -> int:
        """Return the offset after the last record of a partition; published brokers say 0.

        Raises:
            NoSuchPartition: there is no such partition.
        """
        return await self._run(_asks.describe_partition(topic, partition))

    async def metrics(self) -> str:
        """Return what the broker counts, in Prometheus' text form."""
        return await self._run(_asks.metrics())

    async def ping(self) -> None:
        """Return when the broker has answered."""
        await self._run(_asks.ping())
