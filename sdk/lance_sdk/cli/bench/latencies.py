"""How long things took, in bounded memory, exact to one part in 128."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

PERCENTILES: Final[Mapping[str, float]] = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_BITS: Final = 7
"""Significant bits that are kept of a number of nanoseconds."""


class Latencies:
    """Counts durations in buckets that grow with them.

    Attributes:
        count: how many.
    """

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self._highest = 0
        self.count = 0

    def __repr__(self) -> str:
        return f"<Latencies count={self.count} max={self._highest}ns>"

    def add(self, nanoseconds: int, times: int = 1) -> None:
        """Count a duration, once or for several records that shared it."""
        self._buckets[_bucket(nanoseconds)] += times
        self._highest = max(self._highest, nanoseconds)
        self.count += times

    def add_all(self, durations: Iterable[int]) -> None:
        """Count many durations in nanoseconds."""
        for nanoseconds in durations:
            self.add(nanoseconds)

    def seconds(self) -> dict[str, float]:
        """Return the percentiles and the maximum; empty when nothing was counted."""
        if not self.count:
            return {}
        found = {name: self._below(share) / 1e9 for name, share in PERCENTILES.items()}
        return {**found, "max": self._highest / 1e9}

    def _below(self, share: float) -> int:
        """Return the bucket that the given share of durations lies in or below."""
        rank = share * self.count
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                return bucket
        return self._highest


def _bucket(nanoseconds: int) -> int:
    shift = max(0, nanoseconds.bit_length() - _BITS)
    return nanoseconds >> shift << shift
