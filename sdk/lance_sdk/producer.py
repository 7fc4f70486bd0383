"""Records into a topic, for threads."""

from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Final, Generic, TypeVar, Unpack, overload

from lance_sdk._api.arguments.record_arguments import RecordMaker
from lance_sdk._api.arguments.sendable import Plain, V, with_values
from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.lifecycle import Lifecycle
from lance_sdk._api.producer_core import ACK_SHARE, DISK_GRACE, build_producer
from lance_sdk._api.room_wait import RoomWait
from lance_sdk._protocol.produce.batcher import add_record, stored_size
from lance_sdk._protocol.produce.delivery import Batch, first_failure
from lance_sdk._protocol.produce.delivery_failures import buffer_full
from lance_sdk.config import ProducerConfig
from lance_sdk.delivery import Deliveries, Delivery, wait_for_all
from lance_sdk.errors import BufferFull, DeadlineExceeded
from lance_sdk.options import SendOptions
from lance_sdk.stats import ProducerStats
from lance_sdk.types import Buffer, CloseReport
from lance_sdk.url import URL
from lance_sdk.values.contract import Codec
from lance_sdk.values.keyed import Time
from lance_spec.enums import RecordType

__all__ = ["Producer"]

T = TypeVar("T")
_RAW: Final = int(RecordType.RAW_DATA)


@shows_options(ProducerConfig)
class Producer(Lifecycle, Generic[V]):
    """Sends records to one topic: batched, pipelined, acknowledged when durable.

    ::

        with Producer("lance://localhost:1992/orders", create_topic=True) as producer:
            delivery = producer.send(b"first")
            producer.send_many([b"second", b"third"])
            producer.flush()

    The constructor does no I/O. Any number of threads may send. Records of one thread keep
    their order; a batch that the server refuses for the moment is sent again after those that
    were in flight with it.

    Args:
        url: where the topic lives, see `lance_sdk.url`.
        **options: the fields of `lance_sdk.config.ProducerConfig`; they override the URL's.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """

    @overload
    def __init__(
        self: "Producer[Plain]",
        url: str | URL,
        *,
        values: None = None,
        **options: Unpack[SendOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: "Producer[T | None]",
        url: str | URL,
        *,
        values: type[T],
        **options: Unpack[SendOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: "Producer[Any]",
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
        if self._core.spill is None:
            self._driver.batches = self._sender
        self._driver.place = self._sender.place
        self._driver.count_lost = self._sender.failures.count_unseen
        self._driver.count_delivered = self._sender.count_delivered
        self._maker = RecordMaker(config.values, allow_unsafe=config.allow_unsafe_types)
        self._plain: Any = self._maker.plain

    def __repr__(self) -> str:
        return self._core.show("Producer", self._state)

    def send(
        self,
        value: V,
        *,
        key: bytes | str | None = None,
        timestamp: Time | None = None,
        record_type: int | None = None,
    ) -> Delivery:
        """Hand one record over; it leaves with its batch.

        Args:
            value: the record's bytes, up to 16 MiB; with ``values=`` whatever that encodes; a
                Protocol Buffers message; or None for a tombstone.
            key: stands before the value (LWP section 8.3); text is written as UTF-8.
            timestamp: likewise: nanoseconds since the Unix epoch, or a datetime with a time zone.
            record_type: the TLV type (LWP section 8.2), when it is not the value's own; not one
                with a key or a time, see `send_raw`.

        Returns:
            A handle to wait on, or to ignore.

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
            return self._add(
                *self._maker.make(
                    value, dialect, key=key, timestamp=timestamp, record_type=record_type
                )
            )
        plain: Any = value
        batcher = self._batcher
        if add_record is not None:
            delivery = add_record(batcher, plain, _RAW, Delivery)
            return self._add(plain, _RAW) if delivery is None else delivery
        with self._driver.lock:
            index = batcher.add(plain, _RAW)
            if index >= 0:
                return Delivery(batcher.last, index)
        return self._add(plain, _RAW)

    def send_many(self, values: Iterable[V], *, record_type: int | None = None) -> Deliveries:
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
            self._add_all(chunk, kind, batches)
            count += len(chunk)
        return Deliveries(batches, count)

    def send_raw(self, raw: Buffer, record_type: int) -> Delivery:
        """Hand over one record as it is stored; this is how a record is copied.

        Args:
            raw: the stored bytes, `lance_sdk.Record.raw`: with the key and the time that the
                type calls for (LWP section 8.3); ``values=`` is not asked.
            record_type: their TLV type (LWP section 8.2), `lance_sdk.Record.type`.

        Returns:
            A handle to wait on, or to ignore.

        Raises:
            BufferFull: as for `send`.
            RecordTooLarge: likewise.
            UnsafeRecordType: the type cannot be sent (AMB-13).
            LocalProtocolError: the bytes are not laid out as the type says.
            TypeError: they are not bytes.
            UsageError: the producer is not open.
        """
        return self._add(*self._maker.make_raw(raw, record_type, self._session.dialect))

    def send_many_raw(self, raws: Iterable[Buffer], record_type: int) -> Deliveries:
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
            self._add_all(chunk, record_type, batches)
            count += len(chunk)
        return Deliveries(batches, count)

    def send_records(self, records: Iterable[tuple[Buffer, int]]) -> list[Delivery]:
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
            return self._try_to_add_all(made)
        except BufferFull as full:
            return self._add_patiently(made, full)

    def flush(self, timeout: float | None = None) -> None:
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
        with self._driver.lock:
            self._driver.check()
            self._driver.mend()
            batches = self._sender.flush()
        self._driver.wake()
        wait_for_all(batches, timeout)
        with self._driver.lock:
            before = self._sender.failures.take_unseen()
        if (failure := first_failure(batches) or before) is not None:
            raise failure

    def stats(self) -> ProducerStats:
        """Return the counters as they stand now."""
        with self._driver.lock:
            return self._core.stats()

    def _begin(self) -> None:
        if (spill := self._core.spill) is not None:
            spill.open()
            self._sender.spooler.opened()
        self._core.open_session(monotonic())

    def _finish(self, until: float, *, failed: bool) -> float:
        del failed
        if self._core.spill is None or self._driver.usage_error is not None:
            return until
        with self._driver.lock:
            batches = [] if self._sender.spooler.active else self._sender.flush()
        self._driver.wake()
        try:
            wait_for_all(batches, ACK_SHARE * max(0.0, until - monotonic()))
        except DeadlineExceeded:  # what the server does not take, the journal keeps
            with self._driver.lock:
                self._sender.spill()
        return max(until, monotonic() + DISK_GRACE)

    def _end(self, timeout: float) -> None:
        if (spill := self._core.spill) is None:
            return
        spill.close(timeout)
        with self._driver.lock:
            self._sender.settle_journal(monotonic())
        self._driver.announce()

    def _report(self) -> CloseReport:
        with self._driver.lock:
            return self._sender.failures.report(self._sender.acked_records)

    def _add(self, value: bytes, record_type: int) -> Delivery:
        """Add one record, opening and sealing batches as needed."""
        try:
            return self._try_to_add(value, record_type)
        except BufferFull as full:
            return self._add_patiently([(value, record_type)], full)[0]

    def _try_to_add(self, value: bytes, record_type: int) -> Delivery:
        driver, batcher = self._driver, self._batcher
        with driver.lock:
            driver.check()
            now = monotonic()
            index = batcher.append(value, record_type, now)
            delivery = Delivery(batcher.last, index)
            if batcher.attention:
                driver.push(now)
                batcher.attention = False
        return delivery

    def _add_all(self, values: list[bytes], record_type: int, batches: list[Batch]) -> None:
        """Add values, waiting for room where that is the policy."""
        driver, batcher = self._driver, self._batcher
        done = 0
        while done < len(values):
            try:
                with driver.lock:
                    driver.check()
                    done += batcher.extend(values[done:], record_type, monotonic(), batches)
                    batcher.attention = False
            except BufferFull as full:
                [delivery] = self._add_patiently([(values[done], record_type)], full)
                batches.append(delivery._batch)  # noqa: SLF001 - its own handle
                done += 1
            driver.wake()

    def _try_to_add_all(self, records: list[tuple[bytes, int]]) -> list[Delivery]:
        """Add all records, or none."""
        driver, batcher = self._driver, self._batcher
        try:
            with driver.lock:
                driver.check()
                placed = batcher.append_all(records, monotonic())
                batcher.attention = False
        finally:
            driver.wake()
        return [Delivery(batch, index) for batch, index in placed]

    def _add_patiently(self, records: list[tuple[bytes, int]], full: BufferFull) -> list[Delivery]:
        """Add all records when there is room for them, within ``block_timeout``."""
        driver = self._driver
        if self._core.config.on_full == "raise":
            with driver.lock:
                raise buffer_full(full, self._sender.place()) from None
        waiting = RoomWait(self._core, stored_size(records))
        while True:
            with driver.lock:
                driver.check()  # closed meanwhile, nobody would settle the gate
                gate = waiting.gate()
            driver.wake()
            if not driver.wait(gate, waiting.left()):
                with driver.lock:
                    raise waiting.error(full)
            try:
                return self._try_to_add_all(records)
            except BufferFull:
                continue
