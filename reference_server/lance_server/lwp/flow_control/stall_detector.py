"""How the disk keeps up with one connection, and what its client was told of it (AMB-28)."""

from typing import Final

STALL_AFTER: Final = 1.0
"""Seconds that the disk may take before the client is told to slow down (AMB-28)."""

STALL_REPEAT: Final = 5.0
"""Seconds after which it is told again: the frame also shows that the server is alive."""


class StallDetector:
    """Watches the answers of one connection.

    Args:
        now: the current time in seconds.

    Attributes:
        is_stalled: whether answers have waited for too long, and still do.
    """

    def __init__(self, now: float) -> None:
        self._progress_at = now
        self._produced_at = self._warned_at = self._stalled_at = now - STALL_REPEAT
        self.is_stalled = False

    def __repr__(self) -> str:
        return f"<StallDetector {'stalled' if self.is_stalled else 'fine'}>"

    def begins(self, now: float) -> None:
        """Note that answers begin to be owed."""
        self._progress_at = now

    def progresses(self, now: float) -> None:
        """Note that answers became ready."""
        self._progress_at = now
        self.is_stalled = False

    def produces(self, now: float, *, first: bool) -> None:
        """Note that the client sent a batch, the first or not of what is owed an answer now."""
        self._produced_at = now
        if first:
            self._progress_at = now

    def is_producer(self, now: float) -> bool:
        """Whether the client sent a batch a moment ago."""
        return now - self._produced_at < STALL_AFTER

    def stalls(self, now: float) -> bool:
        """Return whether the client is to hear of a stall now; only while answers are owed."""
        if now - self._progress_at < STALL_AFTER:
            return False
        if self.is_stalled and now - self._stalled_at < STALL_REPEAT:
            return False
        self.is_stalled, self._stalled_at = True, now
        return True

    def may_warn(self, now: float) -> bool:
        """Return whether the client was told to slow down long enough ago; notes that it is."""
        if now - self._warned_at < STALL_REPEAT:
            return False
        self._warned_at = now
        return True
