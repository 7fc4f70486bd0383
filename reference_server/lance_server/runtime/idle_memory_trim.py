"""Memory that is given back to the system while nothing happens."""

from collections.abc import Callable
from typing import Final

from lance_server.telemetry.counters import Counters
from lance_spec.codec.buffers import give_back

REST: Final = 1.0
"""Seconds without a frame after which freed memory is given back."""


class IdleMemoryTrim:
    """Notices that a server has nothing to do, once each time.

    While there is work, what answers were read into is kept for the next ones; a server that
    was busy once should not hold it for good.

    Args:
        counters: what the server counts.
        now: the current time in seconds.
        give_back: gives freed memory back to the system.
    """

    def __init__(
        self, counters: Counters, now: float, give_back: Callable[[], object] = give_back
    ) -> None:
        self._counters = counters
        self._give_back = give_back
        self._seen = counters.frames_in
        self._since = now
        self._is_done = True

    def __repr__(self) -> str:
        return f"<IdleMemoryTrim since {self._since:.1f}, {'' if self._is_done else 'not '}done>"

    def tick(self, now: float) -> None:
        """Look whether a frame has come since the last look."""
        if self._counters.frames_in != self._seen:
            self._seen, self._since, self._is_done = self._counters.frames_in, now, False
        elif not self._is_done and now - self._since >= REST:
            self._is_done = True
            self._give_back()
