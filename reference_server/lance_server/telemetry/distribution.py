"""How a quantity is spread: cumulative counts for a scrape, recent values for a decision."""

import math
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from lance_server.runtime.sync import new_lock

NANOSECOND_BOUNDS: Final = (
    10_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
    100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 10_000_000_000,
)  # fmt: skip
"""10 µs to 10 s."""

COUNT_BOUNDS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 50_000)
"""Records in a batch."""

_GATHERED: Final = 256
"""Values that are kept as they came before they are counted: that is quicker for all at once."""


class Distribution:
    """Counts values by size. Called from any thread.

    Args:
        bounds: upper bounds of the counted ranges, ascending.
        recent: how many of the last values `percentile` looks at.
    """

    def __init__(self, bounds: Sequence[int], recent: int = 128) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0
        self._recent: deque[int] = deque(maxlen=recent)
        self._new: list[int] = []
        self._lock = new_lock()

    def __repr__(self) -> str:
        values = self.cumulative()[0][-1][1]
        return f"<Distribution of {values:.0f} values, p99 {self.percentile(0.99)}>"

    def observe(self, value: int) -> None:
        """Count a value."""
        self._new.append(value)  # which is whole without the lock
        if len(self._new) >= _GATHERED:
            with self._lock:
                self._sort_in()

    def observe_all(self, values: Sequence[int]) -> None:
        """Count several values."""
        self._new += values
        if len(self._new) >= _GATHERED:
            with self._lock:
                self._sort_in()

    def _sort_in(self) -> None:
        """Count what was gathered; the lock is held."""
        values = self._new[:]
        del self._new[: len(values)]  # others may have added some meanwhile
        for value, times in Counter(values).items():
            self._counts[bisect_left(self._bounds, value)] += times
        self._sum += sum(values)
        self._recent.extend(values)

    def percentile(self, share: float) -> int:
        """Return the value that ``share`` of the recent ones do not exceed; 0 without any."""
        with self._lock:
            self._sort_in()
            values = sorted(self._recent)
        return values[math.ceil(share * len(values)) - 1] if values else 0

    def forget_recent(self) -> None:
        """Begin again with the recent values."""
        with self._lock:
            self._sort_in()
            self._recent.clear()

    @property
    def bounds(self) -> Sequence[int]:
        """The upper bounds of the counted ranges; one more range has no bound."""
        return self._bounds

    def counts(self) -> tuple[list[int], int]:
        """Return how many values there are in each range, and the sum of all."""
        with self._lock:
            self._sort_in()
            return list(self._counts), self._sum

    def cumulative(self) -> tuple[list[tuple[str, float]], int]:
        """Return how many values there are up to each bound, and the sum of all."""
        counts, total = self.counts()
        names = [*map(str, self._bounds), "+Inf"]
        return list(zip(names, map(float, accumulate(counts)), strict=True)), total
