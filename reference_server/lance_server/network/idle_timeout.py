"""When a connection has been silent for too long (LWP section 11.4)."""

from lance_server.network.slow_peer import FAIR_RATE


class IdleTimeout:
    """Watches what arrives on one connection.

    Args:
        limit: seconds without a frame that are too long.
        now: the current time in seconds.
    """

    def __init__(self, limit: float, now: float) -> None:
        self.limit = limit
        self._since = now
        self._received = 0

    def __repr__(self) -> str:
        return f"<IdleTimeout since {self._since:.1f}, {self._received} bytes of a frame>"

    def heard(self, size: int) -> None:
        """Note bytes that arrived."""
        self._received += size

    def heard_frame(self, now: float) -> None:
        """Note that a frame is complete."""
        self._since, self._received = now, 0

    def owes(self, now: float) -> None:
        """Note that the peer still waits for answers: its silence counts from their end."""
        self._since = now

    def is_too_long(self, now: float) -> bool:
        """Whether no frame has arrived in time; an unfinished one must at least grow (AMB-17)."""
        if now - self._since < self.limit:
            return False
        if self._received >= self.limit * FAIR_RATE:
            self.heard_frame(now)
            return False
        return True
