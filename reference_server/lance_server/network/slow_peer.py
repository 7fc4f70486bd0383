"""Whether a peer moves: the difference between a slow line and a dead one."""

from typing import Final

FAIR_RATE: Final = 16 * 1024
"""Bytes per second below which a transfer counts as stalled."""


class SlowPeerDetector:
    """Watches a count of moved bytes.

    Args:
        now: the current time in seconds.
    """

    __slots__ = ("_fair_at", "_fair_total", "_moved_at", "_total")

    def __init__(self, now: float) -> None:
        self._total = self._fair_total = 0
        self._moved_at = self._fair_at = now

    def __repr__(self) -> str:
        return f"<SlowPeerDetector {self._total} bytes at {self._moved_at:.1f}>"

    def note(self, total: int, now: float) -> None:
        """Note how many bytes have moved since the beginning."""
        if total != self._total:
            self._total, self._moved_at = total, now
        if total - self._fair_total > (now - self._fair_at) * FAIR_RATE:
            self._fair_total, self._fair_at = total, now

    def restart(self, now: float) -> None:
        """Begin to measure: until now there was nothing to move."""
        self._moved_at = self._fair_at = now
        self._fair_total = self._total

    def idle_for(self, now: float) -> float:
        """Return for how many seconds not one byte has moved."""
        return now - self._moved_at

    def slow_for(self, now: float) -> float:
        """Return for how many seconds less than `FAIR_RATE` has moved."""
        return now - self._fair_at
