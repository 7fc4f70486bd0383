"""Answering keepalives without ever taking part in a storm (AMB-23)."""

from typing import Final

_BURST: Final = 256


class KeepaliveGate:
    """Lets a burst of keepalives be answered at once, and beyond it one a second.

    None is dropped: those that are late are counted and handed out by `due`.

    Args:
        now: the current time in seconds.
        burst: how many may be answered at once after a quiet time.
    """

    def __init__(self, now: float, burst: int = _BURST) -> None:
        self._burst = burst
        self._allowed = float(burst)
        self._updated = now
        self.deferred = 0

    def __repr__(self) -> str:
        return f"<KeepaliveGate {self._allowed:.1f} of {self._burst}, {self.deferred} deferred>"

    def admit(self, now: float) -> bool:
        """Return whether a keepalive that arrived now is answered now."""
        self._refill(now)
        if self.deferred or self._allowed < 1:
            self.deferred += 1
            return False
        self._allowed -= 1
        return True

    def due(self, now: float) -> int:
        """Return how many deferred keepalives are to be answered now."""
        self._refill(now)
        ready = min(self.deferred, int(self._allowed))
        self.deferred -= ready
        self._allowed -= ready
        return ready

    def _refill(self, now: float) -> None:
        self._allowed = min(self._burst, self._allowed + max(0.0, now - self._updated))
        self._updated = max(self._updated, now)
