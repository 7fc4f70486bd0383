"""Records into batches: size, count and linger.

Invariants, each with a property test:

- a batch is sealed at the latest ``linger`` after its first record, and before that as soon as
  nothing is in flight (`Sender.fill`): ``linger`` bounds the delay under load and is none at rest;
- a batch that reached ``max_bytes`` or ``max_records`` is sealed at once;
- a record that does not fit seals the open batch at once and opens the next;
- no batch is over ``max_bytes`` unless it holds a single record;
- records leave in the order in which they came, and nothing delays one batch for another.

The open batch is always the last of the queue, so there is no state in which a record stands
in two places or in none, wherever a KeyboardInterrupt strikes.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.produce.delivery import Batch
from lance_sdk.errors import BufferFull, ClosedError, RecordTooLarge
from lance_spec._native import accelerator
from lance_spec.dialect import Dialect
from lance_spec.limits import MAX_RECORD_VALUE, RECORD_HEADER_SIZE

_NO_TYPE = -1
"""Type of no record: whatever comes, `Batcher.append` looks at it."""
add_record: Final = accelerator.add_to_batch if accelerator else None
"""`Batcher.add` and the record's handle in one step for all threads, which needs no lock; None
without the compiled loops."""

if TYPE_CHECKING or accelerator is None:

    class _BatcherFields:
        """Where the fields are that the compiled step reads and writes."""

        __slots__ = ("bound", "last", "plain_type", "used", "values")
else:
    _BatcherFields = accelerator.BatcherFields


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a batch is full, and how much may wait.

    Attributes:
        max_bytes: payload size of a full batch.
        max_records: records of a full batch.
        linger: seconds from a batch's first record until it is sealed.
        capacity: bytes of all records that are not settled.
        delivery_timeout: seconds from a batch's first record until it fails.
    """

    max_bytes: int
    max_records: int
    linger: float
    capacity: int
    delivery_timeout: float


def stored_size(records: Iterable[tuple[bytes, int]]) -> int:
    """Return how many bytes records take with their headers."""
    return sum(RECORD_HEADER_SIZE + len(value) for value, _ in records)


class Batcher(_BatcherFields):
    """Collects records into batches, oldest first in `queue`.

    The common case, one more record of the same type into a batch with room, is `add`: it asks
    nothing but whether `used` stays below `bound`, which was computed with every limit in mind.
    Whatever changes a limit for the worse, or counts what is there, first takes the bound away,
    and `append` looks at everything again.

    Args:
        limits: when a batch is full.

    Attributes:
        waiter: the driver's side of waiting, handed to every delivery.
        queue: batches not yet sent; only the last may be open.
        last: the batch that the last record went to; an empty sealed one before the first.
        values: where the compiled step puts a record of that batch.
        used: bytes in the open batch.
        bound: what `used` must stay below for a record to be taken without a further look.
        plain_type: the only type of record that is taken so.
        attention: set when a batch was opened or sealed: the driver's deadline may have moved.
    """

    __slots__ = (
        "_capacity",
        "_full_at",
        "_limits",
        "_max_bytes",
        "_max_value",
        "_refusal",
        "_sealed_bytes",
        "attention",
        "queue",
        "waiter",
    )

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._max_bytes = limits.max_bytes
        self._max_value = MAX_RECORD_VALUE
        self._full_at = limits.max_records - 1
        self._capacity = limits.capacity
        self._refusal: LanceError | None = None
        self._sealed_bytes = 0
        self.waiter: object = None
        self.queue: deque[Batch] = deque()
        self.last = Batch(_NO_TYPE, 0.0, 0.0, None)
        self.last.seal()
        self.values = self.last.values
        self.used = 0
        self.bound = 0
        self.plain_type = _NO_TYPE
        self.attention = False

    def __repr__(self) -> str:
        return f"<Batcher queued={len(self.queue)} buffered={self.buffered}>"

    @property
    def buffered(self) -> int:
        """Bytes of all records not yet settled."""
        return self._sealed_bytes + self.used

    def add(self, value: bytes, record_type: int) -> int:
        """Put one record into the open batch, `last`, if there is plainly room for it.

        The clients do the same in their ``send``, without the call.

        Returns:
            Its index in the batch; -1 when `append` must have a look.
        """
        used = self.used + RECORD_HEADER_SIZE + len(value)
        if used >= self.bound or record_type != self.plain_type:
            return -1
        self.used = used  # before the record itself: an interrupt here errs on the safe side
        values = self.last.values
        index = len(values)
        values.append(value)
        return index

    def append(self, value: bytes, record_type: int, now: float) -> int:
        """Put one record into a batch, `last`, opening and sealing batches as needed.

        Returns:
            Its index in the batch.

        Raises:
            BufferFull: nothing was added.
            RecordTooLarge: nothing was added.
            ClosedError: nothing was added, and nothing will be.
        """
        size = RECORD_HEADER_SIZE + len(value)
        self.bound = 0
        if self.buffered + size > self._capacity:
            raise self._full(size)
        batch = self._batch_for(size, record_type, now)
        self.used += size
        batch.add(value, record_type)
        count = len(batch.values)
        if self.used >= self._max_bytes or count > self._full_at:
            self.seal()
        else:
            self.plain_type = _NO_TYPE if batch.mixed else record_type
            self.values = batch.values
            self.bound = self._bound_for(count)  # last: it lets the compiled step use the others
        return count - 1

    def append_all(
        self, records: Sequence[tuple[bytes, int]], now: float
    ) -> list[tuple[Batch, int]]:
        """Put records of any types into batches, all of them or none.

        Returns:
            The batch of each, and its index there.

        Raises:
            BufferFull: nothing was added.
            RecordTooLarge: nothing was added; one is too large, or all together are.
            ClosedError: nothing was added, and nothing will be.
        """
        self._check_sizes(max((len(value) for value, _ in records), default=0))
        size = stored_size(records)
        if self.buffered + size > self._capacity:
            raise self._full(size, len(records))
        placed = []
        for value, kind in records:
            index = self.append(value, kind, now)
            placed.append((self.last, index))
        return placed

    def _bound_for(self, count: int) -> int:
        """Return what may be filled without a look: every record takes at least its header."""
        limit = min(max(self._max_bytes, self.used), self._capacity - self._sealed_bytes)
        return min(limit, self.used + RECORD_HEADER_SIZE * (self._full_at - count + 1))

    def extend(
        self, values: Sequence[bytes], record_type: int, now: float, batches: list[Batch]
    ) -> int:
        """Put records into batches until the buffer is full.

        Args:
            values: the records' values.
            record_type: the type of all of them.
            now: the time.
            batches: gets every batch that a record went to, once, at its end.

        Returns:
            How many were added.

        Raises:
            BufferFull: not even the first was added.
            RecordTooLarge: likewise, of the record at fault.
        """
        added = 0
        while added < len(values):
            try:
                added += self._add_some(values[added:], record_type, now)
            except (BufferFull, RecordTooLarge):
                if not added:
                    raise
                break
            if not batches or batches[-1] is not self.last:
                batches.append(self.last)
        return added

    def _add_some(self, values: Sequence[bytes], record_type: int, now: float) -> int:
        """Add as many values as plainly fit, by halves of what fits if all are as the first."""
        bound, self.bound = self.bound, 0
        size = RECORD_HEADER_SIZE + len(values[0])
        fitting = (bound - 1 - self.used) // size if record_type == self.plain_type else 1
        values = values[: max(1, fitting)]
        while len(values) > 1:
            used = self.used + RECORD_HEADER_SIZE * len(values) + sum(map(len, values))
            if used < bound:
                self.used = used
                self.last.values.extend(values)
                self.bound = bound
                return len(values)
            values = values[: len(values) // 2]
        self.append(values[0], record_type, now)
        return 1

    def _batch_for(self, size: int, record_type: int, now: float) -> Batch:
        """Return an open batch that takes ``size`` bytes of this type."""
        if self.last.sealed or self.used + size > self._max_bytes:
            self._roll(size, record_type, now)
        return self.last

    def _roll(self, size: int, record_type: int, now: float) -> None:
        self._check_sizes(size - RECORD_HEADER_SIZE)
        self.seal()
        batch = Batch(record_type, now, now + self._limits.delivery_timeout, self.waiter)
        self.queue.append(batch)
        self.last = batch
        self.attention = True

    def _check_sizes(self, largest: int) -> None:
        if largest > self._max_value:
            raise RecordTooLarge(
                f"record of {largest} bytes: the largest this server takes is {self._max_value}; "
                "send it in parts, or store it elsewhere and send its place"
            )

    def refuse(self, error: LanceError) -> None:
        """Take no record any more; `append` raises ClosedError from now on."""
        self.seal()
        self._capacity = -1
        self._refusal = error

    def _full(self, size: int, count: int = 1) -> LanceError:
        if self._refusal is not None:
            return ClosedError(f"the producer takes no more records: {self._refusal}")
        if size > self._capacity and count > 1:
            return RecordTooLarge(
                f"{count} records, {size} bytes with their headers, do not fit into "
                f"buffer_bytes={self._capacity} together; hand over fewer at once, or raise "
                "buffer_bytes"
            )
        if size > self._capacity:
            return RecordTooLarge(
                f"record of {size - RECORD_HEADER_SIZE} bytes does not fit into "
                f"buffer_bytes={self._capacity}; raise buffer_bytes"
            )
        return BufferFull(
            f"{self.buffered} of buffer_bytes={self._capacity} wait for acknowledgement; "
            f"slow down, raise buffer_bytes, or use on_full='block' or 'journal'"
        )

    def seal(self) -> None:
        """Close the open batch, if there is one, so that it can be sent."""
        batch = self.last
        self.bound = 0
        self.plain_type = _NO_TYPE
        if not batch.sealed:
            # Counted before the call, in which an interrupt may strike: what is given back was
            # counted, whatever becomes of it.
            batch.reserved += self.used
            self._sealed_bytes += self.used
            self.used = 0
            batch.seal()
            self.values = batch.values
            self.attention = True

    def put(self, batch: Batch) -> None:
        """Queue a sealed batch that was made elsewhere, after everything that is there."""
        self.seal()
        batch.reserved = batch.size
        self._sealed_bytes += batch.size
        self.queue.append(batch)
        self.attention = True

    def next_sealed(self) -> Batch | None:
        """Take the oldest batch that is ready to be sent."""
        queue = self.queue
        while queue:
            batch = queue[0]
            if not batch.sealed:
                if batch is self.last:
                    break
                batch.seal()  # left behind, empty, where an interrupt struck between two steps
            queue.popleft()
            if batch.count:
                return batch
            self.release(batch)  # counted for a record that an interrupt kept out
        return None

    def release(self, batch: Batch) -> None:
        """Give a settled batch's bytes back to the buffer."""
        reserved, batch.reserved = batch.reserved, 0
        assert reserved <= self._sealed_bytes, "only what was counted is given back"
        self._sealed_bytes -= reserved

    def fits(self, size: int) -> bool:
        """Whether records that are stored as ``size`` bytes would be taken, or refused for good."""
        return self.buffered + size <= max(self._capacity, 0)

    @property
    def roomy(self) -> bool:
        """Whether waiters should try again: not at each freed byte, but with room for many."""
        return self.buffered <= self._capacity * 3 // 4

    def fit(self, dialect: Dialect) -> None:
        """Respect what the server at hand can take (AMB-32); batches made already stay."""
        self._max_bytes = min(self._limits.max_bytes, dialect.max_payload)
        self._max_value = min(MAX_RECORD_VALUE, dialect.max_payload - RECORD_HEADER_SIZE)

    def next_deadline(self) -> float:
        """Return when the open batch has lingered long enough."""
        batch = self.last
        if batch.sealed:
            return math.inf
        return batch.created + self._limits.linger

    def handle_timeout(self, now: float) -> None:
        """Seal the open batch when its time has come."""
        if now >= self.next_deadline():
            self.seal()
