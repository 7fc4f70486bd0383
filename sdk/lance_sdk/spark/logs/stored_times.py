"""When a server stored records, for those that have no time of their own (AMB-61)."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lance_sdk.errors import Unsupported
from lance_sdk.spark.rows.columns import Parted
from lance_sdk.spark.rows.keyed_columns import TIMED
from lance_sdk.types import BatchTimes

_TIMED: Final = bytes(TIMED)


class StoredTimes:
    """Times of the batches of a range; the server is asked when the range has come so far.

    Args:
        ask: returns the times of the batches from one offset to another.
        start: byte offset at which the range begins.
        end: byte offset at which it ends.
    """

    def __init__(self, ask: Callable[[int, int], BatchTimes], start: int, end: int) -> None:
        self._ask = ask
        self._next = start
        self._end = end
        self._offsets: np.ndarray[Any, Any] = np.zeros(0, np.int64)
        self._times: np.ndarray[Any, Any] = np.zeros(0, np.uint64)

    def of(self, records: Parted, offset: int) -> np.ndarray[Any, Any] | None:
        """Return when each record was stored, in nanoseconds; 0 where the server has forgotten.

        Args:
            records: the next ones of the range.
            offset: of the first byte that was parted.

        Returns:
            None where no record needs it, or the server cannot tell.
        """
        if not records.kinds.translate(None, _TIMED):
            return None
        places: np.ndarray[Any, Any] = records.places() + offset
        try:
            self._reach(int(places[0]), int(places[-1]))
        except Unsupported:
            self._next = self._end  # it is not asked again
        if not len(self._offsets):
            return None
        numbers = np.searchsorted(self._offsets, places, side="right") - 1
        return np.where(numbers < 0, np.uint64(0), self._times[numbers])

    def _reach(self, first: int, last: int) -> None:
        """Know the batches of some records, and forget those before them."""
        kept = max(0, int(np.searchsorted(self._offsets, first, side="right")) - 1)
        self._offsets, self._times = self._offsets[kept:], self._times[kept:]
        while self._next <= last and self._next < self._end:
            found = self._ask(self._next, self._end)
            self._offsets = np.append(self._offsets, np.array(found.offsets, np.int64))
            self._times = np.append(self._times, np.array(found.times_ns, np.uint64))
            if found.next_offset <= self._next:
                break
            self._next = found.next_offset
