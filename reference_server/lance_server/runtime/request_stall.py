"""Whether requests are served at all: the readiness probe asks (design section 10.6)."""

from typing import Final

STALL_SECONDS: Final = 10.0
"""Seconds without a completed request, while some wait, after which a server is not ready."""


class RequestStall:
    """Notices that requests wait and none completes.

    Requests whose answer waits for its own peer to read do not count, and neither does a
    subscription that waits for data.
    """

    def __init__(self) -> None:
        self._completed = 0
        self._since: float | None = None
        self._seconds = 0.0

    def __repr__(self) -> str:
        return f"<RequestStall {self._seconds:.1f} s>"

    def note(self, completed: int, now: float, *, waiting: bool) -> None:
        """Note how many requests were completed since the start, and whether some wait now."""
        if not waiting or completed != self._completed or self._since is None:
            self._since = now
        self._completed = completed
        self._seconds = now - self._since

    @property
    def reason(self) -> str | None:
        """Why the server is not ready, or None."""
        if self._seconds < STALL_SECONDS:
            return None
        return f"requests wait, and none was completed for {self._seconds:.0f} s"
