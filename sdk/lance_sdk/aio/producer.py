"""Records into a topic, for tasks."""
# ruff: noqa: ASYNC109 - both faces take the same parameters

from collections.abc import Iterable
from time import monotonic
from typing import Final, Unpack

from anyio.lowlevel import cancel_shielded_checkpoint

from lance_sdk._assembly import build_producer
from lance_sdk._core.delivery import Batch, first_failure
from lance_sdk._records import as_bytes, check_null, check_type, chunks
from lance_sdk._units import seconds
from lance_sdk.aio._face import AsyncFace
from lance_sdk.aio.delivery import AsyncDeliveries, AsyncDelivery, wait_for_all
from lance_sdk.errors import BufferFull
from lance_sdk.options import ProducerOptions
from lance_sdk.stats import ProducerStats
from lance_sdk.types import Buffer, CloseReport
from lance_sdk.url import URL
from lance_spec.enums import RecordType

__all__ = ["AsyncProducer"]

_RAW: Final = RecordType.RAW_DATA


class AsyncProducer(AsyncFace):
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

    def __init__(self, url: str | URL, **options: Unpack[ProducerOptions]) -> None:
        self._core = build_producer(url, options)
        super().__init__(self._core)
        self._sender = self._core.sender
        self._batcher = self._core.batcher
        self._batcher.waiter = self._pump
        self._blocks = self._core.config.on_full == "block"
        self._patience = seconds("block_timeout", self._core.config.block_timeout)

    def __repr__(self) -> str:
        return self._core.show("AsyncProducer", self._state)

    async def send(self, value: Buffer, *, record_type: int = RecordType.RAW_DATA) -> AsyncDelivery:
        """Hand one record over; it leaves with its batch.

        Args:
            value: the record's bytes, up to 16 MiB.
            record_type: its TLV type (LWP section 8.2).

        Returns:
            A handle to await, or to ignore.

        Raises:
            BufferFull: ``on_full="raise"``, or ``block_timeout`` passed.
            RecordTooLarge: the record is over the limit.
            UnsafeRecordType: the type cannot be sent (AMB-13).
            UsageError: the producer is not open.
        """
        if type(value) is not bytes:
            value = as_bytes(value)
        if record_type is not _RAW:  # the default; anything else is looked at
            self._check_type(record_type)
            check_null(value, record_type)
        pump, batcher = self._pump, self._batcher
        index = batcher.add(value, record_type)
        if index < 0:
            pump.check()
            try:
                index = batcher.append(value, record_type, monotonic())
            except BufferFull as full:
                return await self._add_patiently(value, record_type, full)
        delivery = AsyncDelivery(batcher.last, index)
        if batcher.attention:
            await self._yield_to_pump()
        return delivery

    async def send_many(
        self, values: Iterable[Buffer], *, record_type: int = RecordType.RAW_DATA
    ) -> AsyncDeliveries:
        """Hand many records over; faster than `send` in a loop.

        Args:
            values: the records' bytes; taken as they are needed.
            record_type: the TLV type of all of them.

        Returns:
            One handle for all.

        Raises:
            BufferFull: as for `send`; the records before the one at fault are sent.
            RecordTooLarge: likewise.
            UnsafeRecordType: the type cannot be sent (AMB-13).
            UsageError: the producer is not open.
        """
        self._check_type(record_type)
        batches: list[Batch] = []
        count = 0
        for chunk in chunks(values, record_type):
            await self._add(chunk, record_type, batches)
            count += len(chunk)
        return AsyncDeliveries(batches, count)

    async def flush(self, timeout: float | None = None) -> None:
        """Send what waits, and wait until everything handed over so far is acknowledged.

        Args:
            timeout: seconds to wait; by default as long as ``delivery_timeout`` allows.

        Raises:
            DeliveryError: the first failure among the records waited for.
            DeadlineExceeded: not all are settled yet; their delivery goes on.
            UsageError: the producer is not open.
        """
        self._pump.check()
        batches = self._sender.flush()
        self._pump.wake()
        await wait_for_all(batches, timeout)
        if (failure := first_failure(batches)) is not None:
            raise failure

    def stats(self) -> ProducerStats:
        """Return the counters as they stand now."""
        return self._core.stats()

    def _report(self) -> CloseReport:
        return self._sender.failures.report(self._sender.acked_records)

    def _check_type(self, record_type: int) -> None:
        config = self._core.config
        check_type(record_type, self._session.dialect, allow_unsafe=config.allow_unsafe_types)

    async def _yield_to_pump(self) -> None:
        """Let the pump run: a loop that only sends would otherwise starve it.

        Shielded, because the record is handed over already and its handle must not get lost.
        """
        self._batcher.attention = False
        self._pump.wake()
        await cancel_shielded_checkpoint()

    async def _add(self, values: list[bytes], record_type: int, batches: list[Batch]) -> None:
        """Add values, waiting for room where that is the policy."""
        done = 0
        while done < len(values):
            self._pump.check()
            try:
                done += self._batcher.extend(values[done:], record_type, monotonic(), batches)
            except BufferFull as full:
                delivery = await self._add_patiently(values[done], record_type, full)
                batches.append(delivery._batch)  # noqa: SLF001 - its own handle
                done += 1
            await self._yield_to_pump()

    async def _add_patiently(
        self, value: bytes, record_type: int, full: BufferFull
    ) -> AsyncDelivery:
        """Add one record when there is room for it, within ``block_timeout``."""
        if not self._blocks:
            raise full
        deadline = monotonic() + self._patience
        while True:
            gate = self._sender.gate(len(value))
            self._pump.wake()
            if not await self._pump.wait(gate, max(0.0, deadline - monotonic())):
                raise full
            self._pump.check()
            try:
                index = self._batcher.append(value, record_type, monotonic())
            except BufferFull:
                continue
            self._pump.wake()
            return AsyncDelivery(self._batcher.last, index)
