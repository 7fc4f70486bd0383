"""The circuit breaker in front of the disk (design section 26)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from lance_server.runtime.sync import new_lock


class CircuitState(IntEnum):
    """Whether writes go through."""

    CLOSED = 0
    OPEN = 1
    HALF_OPEN = 2


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When the circuit opens, and when it closes again.

    Attributes:
        failure_threshold: failures in a row that open it.
        success_threshold: successes in a row that close it again.
        reset_timeout: seconds after which an open circuit lets writes through on trial.
        failure_window: seconds after which a failure no longer counts.
    """

    failure_threshold: int = 5
    success_threshold: int = 3
    reset_timeout: float = 30.0
    failure_window: float = 60.0


class CircuitBreaker:
    """Keeps writes from a disk that has failed again and again. Called from any thread.

    Args:
        policy: its numbers.
        clock: returns the time in seconds.

    Attributes:
        is_open: whether writes are kept away, or let through on trial only.
        trips: how often it opened.
    """

    def __init__(
        self,
        policy: BreakerPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._policy = policy or BreakerPolicy()
        self._clock = clock
        self._lock = new_lock()
        self.is_open = False
        self._failures = 0
        self._successes = 0
        self._changed_at = clock()
        self.trips = 0

    def __repr__(self) -> str:
        return f"<CircuitBreaker {self.state.name} {self._failures} failures, {self.trips} trips>"

    @property
    def state(self) -> CircuitState:
        """Whether writes go through."""
        if not self.is_open:
            return CircuitState.CLOSED
        return CircuitState.OPEN if self.retry_after > 0 else CircuitState.HALF_OPEN

    @property
    def retry_after(self) -> float:
        """Seconds until writes go through on trial; 0 when they go through now."""
        if not self.is_open:
            return 0.0
        return max(0.0, self._changed_at + self._policy.reset_timeout - self._clock())

    def succeeded(self) -> None:
        """Note that the disk did what it was asked for."""
        if not self._failures and not self.is_open:
            return
        with self._lock:
            if self.state is CircuitState.HALF_OPEN:
                self._successes += 1
                if self._successes >= self._policy.success_threshold:
                    self._close()
            elif not self.is_open:
                self._failures = 0

    def failed(self) -> None:
        """Note that the disk refused."""
        with self._lock:
            now = self._clock()
            if self.is_open:
                # Only on trial it counts: an attempt to bring one topic back, which goes on while
                # the circuit is open, must not put off the trial for the others.
                if self.state is CircuitState.HALF_OPEN:
                    self._open(now)
                return
            if now - self._changed_at > self._policy.failure_window:
                self._failures = 0
            self._failures += 1
            if self._failures >= self._policy.failure_threshold:
                self._open(now)
            else:
                self._changed_at = now

    def trip(self) -> None:
        """Open it by hand."""
        with self._lock:
            self._open(self._clock())

    def reset(self) -> None:
        """Close it by hand."""
        with self._lock:
            self._close()

    def _open(self, now: float) -> None:
        if not self.is_open:
            self.trips += 1
        self.is_open = True
        self._changed_at = now
        self._successes = 0

    def _close(self) -> None:
        self.is_open = False
        self._failures = self._successes = 0
        self._changed_at = self._clock()
