"""Limits on what one connection may read: memory for answers, bytes per second."""

from collections.abc import Callable
from typing import Final

from lance_server.lwp.refusals import Refusal
from lance_server.runtime.memory_quota import MemoryBudget
from lance_spec.enums import ErrorCode

_SMALLEST_WAIT_MS: Final = 1


class PostponedError(Exception):
    """A request cannot be begun now; whoever asked is woken when it can."""


class TokenBucket:
    """Lets bytes through at a rate, and a second's worth at once (design section 17.5).

    Args:
        rate: bytes per second; 0 means any number.
        now: the current time in seconds.

    Attributes:
        is_endless: whether any number of bytes is let through.
    """

    def __init__(self, rate: int, now: float) -> None:
        self.is_endless = not rate
        self._rate = rate
        self._left = float(rate)
        self._updated = now

    def __repr__(self) -> str:
        return f"<TokenBucket {self._left:.0f} left at {self._rate} bytes/s>"

    def wait(self, now: float) -> float:
        """Return for how many seconds nothing may be read; 0 when something may be."""
        if not self._rate:
            return 0.0
        self._left = min(self._rate, self._left + max(0.0, now - self._updated) * self._rate)
        self._updated = max(self._updated, now)
        # Debts are paid back: an answer is as large as it is, and known only afterwards.
        return 0.0 if self._left > 0 else (1.0 - self._left) / self._rate

    def take(self, size: int) -> None:
        """Note that bytes were read."""
        if self._rate:
            self._left -= size


class ReadGate:
    """Decides when one connection may begin to read.

    Args:
        memory: the server's budget.
        bucket: the connection's rate.
        wake: called when a postponed read may be tried again.

    Attributes:
        reserved: bytes set aside for reads that are under way.
    """

    def __init__(self, memory: MemoryBudget, bucket: TokenBucket, wake: Callable[[], None]) -> None:
        self._memory = memory
        self._bucket = bucket
        self._wake = wake
        self.reserved = 0

    def __repr__(self) -> str:
        return f"<ReadGate {self._bucket!r} {self.reserved} bytes reserved>"

    def wait(self, now: float) -> float:
        """Return for how many seconds the connection has read enough."""
        return self._bucket.wait(now)

    def free_bytes(self) -> int:
        """Return how large an answer may be that is read at once, at any rate; 0 for none."""
        return self._memory.free_bytes() if self._bucket.is_endless else 0

    def begin(self, size: int) -> None:
        """Set memory aside for an answer of at most ``size`` bytes.

        Raises:
            PostponedError: memory is short; `wake` is called when it is not.
        """
        if not self._memory.may_hold(size, self._wake):
            raise PostponedError
        self.reserved += size

    def end(self, reserved: int, size: int) -> None:
        """Note that an answer of ``size`` bytes was read where ``reserved`` were set aside."""
        assert reserved <= self.reserved, "only what was set aside is given back"
        self.reserved -= reserved
        self._bucket.take(size)

    def close(self) -> None:
        """Wait for nothing any more."""
        self._memory.forget(self._wake)


def rate_limited(seconds: float) -> Refusal:
    """Return the answer to a Fetch that comes too early (LWP section 12.3)."""
    wait = max(_SMALLEST_WAIT_MS, int(seconds * 1000))
    return Refusal(
        ErrorCode.RATE_LIMITED,
        f"Rate limit exceeded: read again in {wait} ms",
        details={"retry_after_ms": wait},
        text="Rate limit exceeded",
    )
