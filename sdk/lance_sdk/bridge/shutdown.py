"""Ctrl-C and SIGTERM, in a way that leaves nothing half noted."""

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Final, NoReturn, Self, TypeVar

from lance_sdk._api import interruptible

T = TypeVar("T")
_WAITING: Final = b"stopping when what is under way is stored; another signal ends at once\n"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class _Interrupted(BaseException):
    """A signal came while nothing was under way that it could tear."""


class Stop:
    """Takes the first signal as a wish to end, and the second as an order.

    What waits for a source is interrupted at once; what is being stored is finished. Used in a
    ``with`` block of the main thread.

    Attributes:
        asked: the signal that asked for the end, or None.
    """

    def __init__(self) -> None:
        self.asked: signal.Signals | None = None
        self._waiting = False
        self._before: dict[signal.Signals, object] = {}

    def __repr__(self) -> str:
        return f"<Stop {'not asked for' if self.asked is None else self.asked.name}>"

    def __enter__(self) -> Self:
        self._before = {each: signal.signal(each, self._received) for each in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)  # type: ignore[arg-type]

    def _received(self, number: int, _frame: FrameType | None) -> None:
        if self.asked is not None:
            raise KeyboardInterrupt
        self.asked = signal.Signals(number)
        with suppress(OSError):
            os.write(sys.stderr.fileno(), _WAITING)  # a buffer may be in use right now
        if self._waiting:
            raise _Interrupted

    def until(self, batches: Iterable[T]) -> Iterator[T]:
        """Yield what a source yields, until the end is asked for."""
        source = iter(batches)
        while self.asked is None:
            try:
                found = self._next(source)
            except _Interrupted:
                return
            if found is None:
                return
            yield found

    def _next(self, source: Iterator[T]) -> T | None:
        try:
            self._waiting = True
            if self.asked is not None:
                return None
            return next(source, None)
        finally:
            self._waiting = False

    def pause(self, seconds: float) -> None:
        """Wait, unless the end is asked for."""
        if self.asked is None:
            try:
                self._waiting = True
                interruptible.pause(seconds)
            except _Interrupted:
                return
            finally:
                self._waiting = False

    def end(self) -> NoReturn:
        """End the command as the signal would have ended it."""
        if self.asked is signal.SIGTERM:
            sys.exit(128 + signal.SIGTERM)
        raise KeyboardInterrupt
