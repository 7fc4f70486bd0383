"""Batches on their way, and the handles that applications hold on their records.

One batch carries one latch for all its records, made only when somebody waits. One handle is made
for every record: the compiled code fills its two fields without a call.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.produce.compression import Compression, compress
from lance_sdk.errors import DeliveryError
from lance_sdk.types import RecordMetadata
from lance_spec._native import accelerator
from lance_spec.dialect import Dialect
from lance_spec.enums import Flag
from lance_spec.records import encode_record, encode_records

_ANSWER_TIME = 1.0
"""Seconds before its deadline from which on a refused batch is not sent again."""


class Batch(Completion):
    """Records that travel in one Ingest frame; settles when they are acknowledged or fail.

    Args:
        record_type: type of the first record.
        created: when that record came.
        deadline: when the batch fails if it is not acknowledged.
        waiter: the driver's side of waiting.

    Attributes:
        values: the records' values, until the batch is sealed.
        count: number of records, once it is.
        size: bytes of the records as TLV, once it is.
        reserved: bytes of the buffer that are counted for it, and given back when it is settled.
        sealed: no record is added any more.
        batch_id: identifier on the wire, fixed at the first sending (AMB-25); 0 before.
        timestamp_ns: header timestamp, fixed with it.
        topic_id: the topic it was last sent to.
        attempts: how often it was handed to a connection.
        doubtful: whether an attempt had no answer, or one that leaves open what was stored.
        last_error: what the server last said about it, or what ended the connection it was on.
        observed: whether the application looked at the result.
        sent_at: when it was last handed to a connection.
        settled_at: when it was settled.
        ticket: what the journal called it, once it was handed over; None before.
    """

    __slots__ = (
        "_compressed",
        "_failure",
        "_payload",
        "_types",
        "attempts",
        "batch_id",
        "count",
        "created",
        "deadline",
        "doubtful",
        "last_error",
        "observed",
        "record_type",
        "reserved",
        "sealed",
        "sent_at",
        "settled_at",
        "size",
        "ticket",
        "timestamp_ns",
        "topic_id",
        "values",
        "waiter",
    )

    def __init__(self, record_type: int, created: float, deadline: float, waiter: object) -> None:
        super().__init__()
        self._types: list[int] | None = None
        self._payload = b""
        self._compressed: bytes | None = None
        self._failure: DeliveryError | None = None
        self.record_type = record_type
        self.created = created
        self.deadline = deadline
        self.waiter: Any = waiter
        self.values: list[bytes] = []
        self.count = 0
        self.size = self.reserved = 0
        self.sealed = False
        self.batch_id = 0
        self.timestamp_ns = 0
        self.topic_id = 0
        self.attempts = 0
        self.doubtful = False
        self.last_error: Exception | None = None
        self.observed = False
        self.sent_at = created
        self.settled_at = created
        self.ticket: int | None = None

    def __repr__(self) -> str:
        state = "done" if self.done else "sealed" if self.sealed else "open"
        count = self.count or len(self.values)
        return f"<Batch {self.batch_id:#x} {state} records={count} attempts={self.attempts}>"

    @property
    def mixed(self) -> bool:
        """Whether its records are of several types."""
        return self._types is not None

    def add(self, value: bytes, record_type: int) -> None:
        """Append one record of any type."""
        if self._types is None and record_type != self.record_type:
            self._types = [self.record_type] * len(self.values)
        if self._types is not None:
            del self._types[len(self.values) :]  # what an interrupted call may have left behind
            self._types.append(record_type)
        self.values.append(value)

    def seal(self) -> None:
        """Take no more records and encode those that are there."""
        if self._types is None:
            self._payload = encode_records(self.values, self.record_type)
        else:
            self._payload = b"".join(map(encode_record, self.values, self._types))
        self.count = len(self.values)
        self.size = len(self._payload)
        self.sealed = True  # last: an interrupt before this leaves an open batch as it was
        self.values = []

    def payload(self) -> bytes:
        """Return the records as TLV, as they are stored."""
        return self._payload

    def wire(self) -> tuple[Flag, bytes]:
        """Return flags and payload as they are sent: the same at every sending (AMB-25)."""
        if self._compressed is None:
            return Flag.BATCH_MODE, self._payload
        return Flag.BATCH_MODE | Flag.COMPRESSED, self._compressed

    def prepare(self, compression: Compression, dialect: Dialect) -> None:
        """Decide, before the first sending, whether the payload is compressed (AMB-20)."""
        self._compressed = compress(self._payload, compression, dialect)

    def let_go(self) -> None:
        """Let the bytes go: they are kept elsewhere."""
        self._payload = b""
        self._compressed = None

    def finish(self, now: float, failure: DeliveryError | None = None) -> bool:
        """Settle as acknowledged, or as failed, and let the bytes go."""
        if self.done:
            return False
        self.settled_at = now
        self._failure = failure
        self.let_go()
        return self.settle(None, failure)

    def too_late(self, now: float) -> bool:
        """Whether another attempt could only make a refusal doubtful: its answer would come late.

        A batch of which it is known that nothing was stored expires with that knowledge.
        """
        if self.last_error is None or self.doubtful:
            return False
        return self.deadline - now < min(_ANSWER_TIME, (self.deadline - self.created) / 4)

    def failure(self) -> DeliveryError | None:
        """Return why the batch was not delivered, without an earlier raiser's traceback."""
        return None if self._failure is None else self._failure.with_traceback(None)


if TYPE_CHECKING or accelerator is None:

    class _HandleFields:
        """Where the fields are that the compiled step fills."""

        __slots__ = ("_batch", "_index")
else:
    _HandleFields = accelerator.HandleFields


class DeliveryHandle(_HandleFields):
    """What both APIs' handles share: a batch, and the place of a record in it."""

    __slots__ = ()

    def __init__(self, batch: Batch, index: int) -> None:
        self._batch = batch
        self._index = index

    def __repr__(self) -> str:
        batch = self._batch
        state = "pending" if not batch.done else "failed" if batch.error else "delivered"
        return f"<{type(self).__name__} {state} batch={batch.batch_id:#x} index={self._index}>"

    def done(self) -> bool:
        """Whether the record was acknowledged or failed."""
        return self._batch.done

    def exception(self) -> DeliveryError | None:
        """Return why the record was not delivered; None when it was, or is not settled yet."""
        if self._batch.done:
            self._batch.observed = True
        return self._batch.failure()

    def add_done_callback(self, callback: Callable[[Self], object]) -> None:
        """Call ``callback(delivery)`` once the record is settled.

        It runs on the driver's thread or task, never under a lock, and must not block; at once
        and in the caller when the record is settled already. What it raises is logged.
        """
        if not callable(callback):
            raise TypeError(
                f"add_done_callback() takes a function, not {type(callback).__name__}; it is "
                "called with the delivery, as in delivery.add_done_callback(print)"
            )
        batch = self._batch
        batch.observed = True
        if not batch.waiter.add_callback(batch, lambda: callback(self)):
            callback(self)

    def _metadata(self) -> RecordMetadata:
        """Return the receipt of a settled batch, or raise why there is none."""
        batch = self._batch
        batch.observed = True
        if (failure := batch.failure()) is not None:
            raise failure
        return RecordMetadata(batch.topic_id, batch.batch_id, self._index, batch.attempts)


def first_failure(batches: list[Batch]) -> DeliveryError | None:
    """Return why the first failed one of settled batches failed; marks all as observed."""
    failure = None
    for batch in batches:
        batch.observed = True
        if failure is None:
            failure = batch.failure()
    return failure
