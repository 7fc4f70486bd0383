"""How fast records follow each other."""

import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from lance_sdk._api.interruptible import pause
from lance_sdk.cli.console.exit_codes import Failure


class Timed(Protocol):
    """A record that may tell its time."""

    @property
    def timestamp_ns(self) -> int | None:
        """Nanoseconds since the Unix epoch, or None."""
        ...

    @property
    def where(self) -> str:
        """Its place, in words."""
        ...


T = TypeVar("T", bound=Timed)


class RateLimiter:
    """Cuts lists of records where the next one has to wait, and waits.

    Args:
        rate: records a second; None for no limit.
        speed: how many times as fast as the records' own times say; None leaves them aside.
        clock: seconds, as from ``time.monotonic``.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        *,
        rate: float | None = None,
        speed: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = pause,
    ) -> None:
        self._rate = rate
        self._speed = speed
        self._clock = clock
        self._sleep = sleep
        self._began: float | None = None
        self._first_ns: int | None = None
        self._passed = 0

    def split(self, records: list[T]) -> Iterator[list[T]]:
        """Yield the records in groups, each as soon as it is due.

        Raises:
            Failure: a record tells no time, and its time sets the pace.
        """
        if self._rate is None and self._speed is None:
            if records:
                yield records
            return
        ready: list[T] = []
        for record in records:
            wait = self._due(record) - self._clock()
            if wait > 0:
                if ready:
                    yield ready
                    ready = []
                self._sleep(wait)
            ready.append(record)
        if ready:
            yield ready

    def _due(self, record: Timed) -> float:
        if self._began is None:
            self._began = self._clock()
        if self._rate is not None:
            self._passed += 1
            return self._began + (self._passed - 1) / self._rate
        assert self._speed is not None
        when = record.timestamp_ns
        if when is None:
            raise Failure(f"{record.where} has no time; use --rate instead of --speed")
        if self._first_ns is None:
            self._first_ns = when
        return self._began + (when - self._first_ns) / 1e9 / self._speed
