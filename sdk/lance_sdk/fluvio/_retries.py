"""When a request that failed is made again, and when not any more."""

import random
import time
from collections.abc import Callable
from typing import Final

from lance_sdk._protocol.backoff import Backoff, RandomSource
from lance_sdk.errors import ConnectFailed, ConnectionLost, LanceError
from lance_sdk.fluvio.errors import PASSING, FluvioRefused, FluvioUnreachable
from lance_spec.messages.fluvio import ErrorCode

_BASE: Final = 0.02
_CAP: Final = 1.0
_DICE: Final = random.SystemRandom()


class Retries:
    """Tells how long to wait after each failure in a row (AMB-42).

    Args:
        seconds: how long to go on after the first one.
        clock: monotonic seconds.
        dice: the randomness.
    """

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        dice: RandomSource = _DICE,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._backoff = Backoff(_BASE, _CAP, dice)
        self._until: float | None = None

    def __repr__(self) -> str:
        return f"<Retries for {self._seconds:g} s, until {self._until}>"

    def after(self, error: LanceError) -> float:
        """Return the seconds to wait.

        Raises:
            LanceError: the error, when it has gone on for too long.
        """
        now = self._clock()
        if self._until is None:
            self._until = now + self._seconds
        delay = self._backoff.next_delay()
        if now + delay > self._until:
            raise error
        return delay

    def progressed(self) -> None:
        """Note that it works again."""
        self._until = None
        self._backoff.reset()


def time_left(deadline: float | None) -> float | None:
    """Return the seconds until a deadline (monotonic), never below 0; None when there is none."""
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)


def is_passing(error: LanceError, *, again: bool) -> bool:
    """Whether the same request may succeed later.

    Args:
        error: why it failed.
        again: whether it may be made again when it may have been carried out.
    """
    if isinstance(error, FluvioRefused):
        return error.retryable and error.code in PASSING | {ErrorCode.TOPIC_NOT_FOUND}
    if isinstance(error, ConnectionLost):
        return again or not error.maybe_applied
    if isinstance(error, FluvioUnreachable):
        return error.met
    return isinstance(error, ConnectFailed)
