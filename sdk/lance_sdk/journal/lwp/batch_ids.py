"""Giving frames their identity: batch id, time and topic, fixed once and for all (SF-32)."""

import threading
import time
from collections.abc import Callable
from typing import Final

from lance_sdk._api.interruptible import acquire
from lance_sdk.journal._ring.journal import Journal
from lance_sdk.journal.errors import JournalFull
from lance_spec.limits import BATCH_COUNTER_BITS
from lance_spec.messages.store_forward import StoredBatch

_COUNTER: Final = (1 << BATCH_COUNTER_BITS) - 1


class BatchIdAssigner:
    """Stores batches under the batch id that their frame number gives them.

    One batch at a time: a frame's number is in its content, so nobody else may take it meanwhile.

    Args:
        journal: where frames go.
        redraw: returns a nonce (AMB-25): now, and whenever 2^40 numbers are used up.
        store_timeout: seconds to wait for others who are storing, unless told otherwise.
        wall_ns: nanoseconds since the Unix epoch.
    """

    def __init__(
        self,
        journal: Journal,
        redraw: Callable[[], int],
        store_timeout: float,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._journal = journal
        self._redraw = redraw
        self._store_timeout = store_timeout
        self._wall_ns = wall_ns
        self._lock = threading.Lock()
        self._nonce = redraw()
        self._era = (journal.next_fsn + 1) >> BATCH_COUNTER_BITS

    def __repr__(self) -> str:
        return f"<BatchIdAssigner nonce={self._nonce:#x}>"

    def append(
        self,
        topic_number: int,
        record_count: int,
        records: bytes,
        timeout: float | None = None,
        *,
        batch_id: int = 0,
        timestamp_ns: int = 0,
    ) -> int:
        """Store a batch; return its frame number.

        Args:
            topic_number: the slot's number of the topic.
            record_count: number of records.
            records: the records as TLV, uncompressed.
            timeout: seconds to wait for room; None means as configured, 0 does not wait.
            batch_id: the identifier that the batch was sent under already; 0 gives it one.
            timestamp_ns: the time that belongs to that identifier.

        Raises:
            JournalFull: there was no room in time, or others wait for it already.
            JournalError: see `Journal.append`.
        """
        store_timeout = self._store_timeout if timeout is None else timeout
        taken: list[bool] = []
        try:
            if not acquire(self._lock, store_timeout, taken):
                where = str(self._journal.path or "memory")
                raise JournalFull("reserving", store_timeout, where=where)
            stamp = batch_id or self._next_id()
            # A clock before 1970 has no number here, and 0 would mean that there is no time.
            when = timestamp_ns if batch_id else max(1, self._wall_ns())
            frame = StoredBatch(topic_number, stamp, when, record_count, records)
            return self._journal.append(frame.encode(), timeout=timeout)
        finally:
            if True in taken:
                self._lock.release()

    def _next_id(self) -> int:
        counter = self._journal.next_fsn + 1
        if counter >> BATCH_COUNTER_BITS != self._era:
            self._nonce = self._redraw()
            self._era = counter >> BATCH_COUNTER_BITS
        return self.batch_id(counter - 1)

    def batch_id(self, fsn: int) -> int:
        """Return the identifier that frame ``fsn`` gets, or got since the nonce was drawn."""
        return self._nonce << BATCH_COUNTER_BITS | (fsn + 1) & _COUNTER
