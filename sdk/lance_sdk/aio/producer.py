"""Records into a topic, for tasks."""
# ruff: noqa: ASYNC109 - both APIs take the same parameters

from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Final, Generic, TypeVar, Unpack, overload

from anyio import to_thread
from anyio.lowlevel import cancel_shielded_checkpoint

from lance_sdk._api.arguments.record_arguments import RecordMaker
from lance_sdk._api.arguments.sendable import Plain, V, with_values
from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.producer_core import ACK_SHARE, DISK_GRACE, build_producer
from lance_sdk._api.room_wait import RoomWait
from lance_sdk._io.tasks.uncancelled import take
from lance_sdk._protocol.produce.batcher import add_record, stored_size
from lance_sdk._protocol.produce.delivery import Batch, first_failure
from lance_sdk._protocol.produce.delivery_failures import buffer_full
from lance_sdk.aio._lifecycle import AsyncLifecycle
from lance_sdk.aio.delivery import AsyncDeliveries, AsyncDelivery, wait_for_all
from lance_sdk.config import ProducerConfig
from lance_sdk.errors import BufferFull, DeadlineExceeded
from lance_sdk.options import SendOptions
from lance_sdk.stats import ProducerStats
from lance_sdk.types import Buffer, CloseReport
from lance_sdk.url import URL
from lance_sdk.values.contract import Codec
from lance_sdk.values.keyed import Time
from lance_spec.enums import RecordType

__all__ = ["AsyncProducer"]

T = TypeVar("T")
_RAW: Final = int(RecordType.RAW_DATA)


@shows_options(ProducerConfig)
class AsyncProducer(AsyncLifecycle, Generic[V]):
    """Sends records to one topic: batched, pipelined, acknowledged when durable.

    ::

        async with AsyncProducer("lance://localhost:1992/orders", create_topic=True) as producer:
            delivery = await producer.send(b"first")
            await producer.send_many([b"second", b"third"])
            await producer.flush()

    The constructor does no I/O and binds to no event loop. Any number of tasks may send.
    Cancelling a task never takes back what it has sent.

    Args:
        url: where the topic lives, see `lance_sdk.url`.
        **options: the fields of `lance_sdk.config.ProducerConfig`; they override the URL's.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """

    @overload
    def __init__(
        self: "AsyncProducer[Plain]",
        url: str | URL,
        *,
        values: None = None,
        **options: Unpack[SendOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: "AsyncProducer[T | None]",
        url: str | URL,
        *,
        values: type[T],
        **options: Unpack[SendOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: "AsyncProducer[Any]",
        url: str | URL,
        *,
        values: Codec | Callable[..., Any] | str | None,
        **options: Unpack[SendOptions],
    ) -> None: ...
    def __init__(
        self,
        url: str | URL,
        *,
        values: Codec | Callable[..., Any] | str | None = None,
        **options: Unpack[SendOptions],
    ) -> None:
        self._core = build_producer(url, with_values(values, options))
        super().__init__(self._core)
        config = self._core.config
        self._sender = self._core.sender
        self._batcher = self._core.batcher
        self._batcher.waiter = self._driver
        self._driver.place = self._sender.place
        self._driver.count_lost = self._sender.failures.count_unseen
        self._driver.count_delivered = self._sender.count_delivered
        self._maker = RecordMaker(config.values, allow_unsafe=config.allow_unsafe_types)
        self._plain: Any = self._maker.plain

    def __repr__(self) -> str:
        return self._core.show("AsyncProducer", self._state)

    async def send(
        self,
        value: V,
        *,
        key: bytes | str | None = None,
        timestamp: Time | None = None,
        record_type: int | None = None,
    ) -> AsyncDelivery:
        """Hand one record over; it leaves with its batch.

        Args:
            value: the record's bytes, up to 16 MiB; with ``values=`` whatever that encodes; a
                Protocol Buffers message; or None for a tombstone.
            key: stands before the value (LWP section 8.3); text is written as UTF-8.
            timestamp: likewise: nanoseconds since the Unix epoch, or a datetime with a time zone.
            record_type: the TLV type (LWP section 8.2), when it is not the value's own; not one
                with a key or a time, see `send_raw`.

        Returns:
            A handle to await, or to ignore.

        Raises:
            BufferFull: ``on_full="raise"``, or ``block_timeout`` passed.
            RecordTooLarge: the record is over the limit.
            UnsafeRecordType: the type cannot be sent (AMB-13).
            LocalProtocolError: LWP has no room for such a key, time or combination.
            UsageError: the producer is not open.
        """
        if (
            type(value) is not self._plain
            or key is not None
            or timestamp is not None
            or record_type is not None
        ):
            dialect = self._session.dialect
            return await self._add(
                *self._maker.make(
                    value, dialect, key=key, timestamp=timestamp, record_type=record_type
                )
            )
        plain: Any = value
        batcher = self._batcher
        if add_record is not None:
            delivery = add_record(batcher, plain, _RAW, AsyncDelivery)
            return await self._add(plain, _RAW) if delivery is None else delivery
        index = batcher.add(plain, _RAW)
        return await self._add(plain, _RAW) if index < 0 else AsyncDelivery(batcher.last, index)

    async def send_many(
        self, values: Iterable[V], *, record_type: int | None = None
    ) -> AsyncDeliveries:
        """Hand many records over; faster than `send` in a loop.

        Args:
            values: the records' values, as for `send`; taken as they are needed.
            record_type: the TLV type of all of them, when it is not their own.

        Returns:
            One handle for all.

        Raises:
            BufferFull: as for `send`; the records before the one at fault are sent.
            RecordTooLarge: likewise.
            UnsafeRecordType: the type cannot be sent (AMB-13).
            LocalProtocolError: LWP has no room for a value.
            UsageError: the producer is not open.
        """
        batches: list[Batch] = []
        count = 0
        for chunk, kind in self._maker.chunks(values, record_type, self._session.dialect):
            await self._add_all(chunk, kind, batches)
            count += len(chunk)
        return AsyncDeliveries(batches, count)

    async def send_raw(self, raw: Buffer, record_type: int) -> AsyncDelivery:
        """Hand over one record as it is stored; this is how a record is copied.

        Args:
            raw: the stored bytes, `lance_sdk.Record.raw`: with the key and the time that the
                type calls for (LWP section 8.3); ``values=`` is not asked.
            record_type: their TLV type (LWP section 8.2), `lance_sdk.Record.type`.

        Returns:
            A handle to await, or to ignore.

        Raises:
            BufferFull: as for `send`.
            RecordTooLarge: likewise.
            UnsafeRecordType: the type cannot be sent (AMB-13).
            LocalProtocolError: the bytes are not laid out as the type says.
            TypeError: they are not bytes.
            UsageError: the producer is not open.
        """
        return await self._add(*self._maker.make_raw(raw, record_type, self._session.dialect))

    async def send_many_raw(self, raws: Iterable[Buffer], record_type: int) -> AsyncDeliveries:
        """Hand over many records of one type as they are stored, see `send_raw`.

        Args:
            raws: the stored bytes of each; taken as they are needed.
            record_type: the TLV type of all of them.

        Returns:
            One handle for all.

        Raises:
            BufferFull: as for `send_many`.
            RecordTooLarge: likewise.
            UnsafeRecordType: as for `send_raw`.
            LocalProtocolError: likewise.
            TypeError: likewise.
            UsageError: the producer is not open.
        """
        batches: list[Batch] = []
        count = 0
        for chunk in self._maker.raw_chunks(raws, record_type, self._session.dialect):
            await self._add_all(chunk, record_type, batches)
            count += len(chunk)
        return AsyncDeliveries(batches, count)

    async def send_records(self, records: Iterable[tuple[Buffer, int]]) -> list[AsyncDelivery]:
        """Hand over stored records of any types at once, so that they share batches.

        Args:
            records: the stored bytes and the TLV type of each, as for `send_raw`.

        Returns:
            A handle for each, in their order.

        Raises:
            BufferFull: as for `send`; none was handed over.
            RecordTooLarge: one is over the limit, or ``buffer_bytes`` has no room for all of them
                together; none was handed over.
            UnsafeRecordType: as for `send_raw`.
            LocalProtocolError: likewise.
            TypeError: likewise.
            UsageError: the producer is not open.
        """
        made = self._maker.pairs(records, self._session.dialect)
        try:
            deliveries = self._try_to_add_all(made)
        except BufferFull as full:
            return await self._add_patiently(made, full)
        await self._yield_to_driver()
        return deliveries

    async def flush(self, timeout: float | None = None) -> None:
        """Send what waits, and wait until everything handed over so far is acknowledged.

        Args:
            timeout: seconds to wait; by default as long as ``delivery_timeout`` allows.

        Raises:
            DeliveryError: the first failure among the records waited for, or among those that
                failed before and that no one has looked at; `StillInJournal` when the journal is
                what keeps it.
            DeadlineExceeded: not all are settled yet; their delivery goes on.
            UsageError: the producer is not open.
        """
        self._driver.check()
        batches = self._sender.flush()
        self._driver.wake()
        await wait_for_all(batches, timeout)
        before = self._sender.failures.take_unseen()
        if (failure := first_failure(batches) or before) is not None:
            raise failure

    def stats(self) -> ProducerStats:
        """Return the counters as they stand now."""
        return self._core.stats()

    async def _begin(self) -> None:
        if (spill := self._core.spill) is not None:
            await take(spill.open, lambda _: spill.close(0.0))
            self._sender.spooler.opened()
        self._core.open_session(monotonic())

    async def _finish(self, until: float, *, failed: bool) -> float:
        del failed
        if self._core.spill is None or self._driver.usage_error is not None:
            return until
        batches = [] if self._sender.spooler.active else self._sender.flush()
        self._driver.wake()
        try:
            await wait_for_all(batches, ACK_SHARE * max(0.0, until - monotonic()))
        except DeadlineExceeded:  # what the server does not take, the journal keeps
            self._sender.spill()
        return max(until, monotonic() + DISK_GRACE)

    async def _end(self, timeout: float) -> None:
        if (spill := self._core.spill) is None:
            return
        await to_thread.run_sync(spill.close, timeout)
        self._sender.settle_journal(monotonic())
        self._driver.announce()

    def _report(self) -> CloseReport:
        return self._sender.failures.report(self._sender.acked_records)

    async def _add(self, value: bytes, record_type: int) -> AsyncDelivery:
        """Add one record, opening and sealing batches as needed."""
        self._driver.check()
        try:
            index = self._batcher.append(value, record_type, monotonic())
        except BufferFull as full:
            return (await self._add_patiently([(value, record_type)], full))[0]
        delivery = AsyncDelivery(self._batcher.last, index)
        if self._batcher.attention:
            await self._wake_driver()
        return delivery

    async def _wake_driver(self) -> None:
        """Have the driver look at the batches, and wait for it once one of them is full.

        Records that a task hands over without waiting for anything else share a batch.
        """
        if self._batcher.queue and self._batcher.queue[0].sealed:
            await self._yield_to_driver()
            return
        self._batcher.attention = False
        self._driver.wake()

    async def _yield_to_driver(self) -> None:
        """Let the driver run: a loop that only sends would otherwise starve it.

        Shielded, because the record is handed over already and its handle must not get lost.
        """
        self._batcher.attention = False
        self._driver.wake()
        await cancel_shielded_checkpoint()

    async def _add_all(self, values: list[bytes], record_type: int, batches: list[Batch]) -> None:
        """Add values, waiting for room where that is the policy."""
        done = 0
        while done < len(values):
            self._driver.check()
            try:
                done += self._batcher.extend(values[done:], record_type, monotonic(), batches)
            except BufferFull as full:
                [delivery] = await self._add_patiently([(values[done], record_type)], full)
                batches.append(delivery._batch)  # noqa: SLF001 - its own handle
                done += 1
            await self._yield_to_driver()

    def _try_to_add_all(self, records: list[tuple[bytes, int]]) -> list[AsyncDelivery]:
        """Add all records, or none."""
        self._driver.check()
        placed = self._batcher.append_all(records, monotonic())
        return [AsyncDelivery(batch, index) for batch, index in placed]

    async def _add_patiently(
        self, records: list[tuple[bytes, int]], full: BufferFull
    ) -> list[AsyncDelivery]:
        """Add all records when there is room for them, within ``block_timeout``."""
        if self._core.config.on_full == "raise":
            raise buffer_full(full, self._sender.place()) from None
        waiting = RoomWait(self._core, stored_size(records))
        while True:
            gate = waiting.gate()
            self._driver.wake()
            if not await self._driver.wait(gate, waiting.left()):
                raise waiting.error(full)
            try:
                deliveries = self._try_to_add_all(records)
            except BufferFull:
                continue
            self._driver.wake()
            return deliveries
