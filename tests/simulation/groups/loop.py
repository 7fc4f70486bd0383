"""An event loop whose time is simulated, and whose processes can be stopped."""

import asyncio
import contextvars
import selectors
from collections.abc import Callable
from typing import Any, Final

PROCESS: Final[contextvars.ContextVar[str]] = contextvars.ContextVar("process", default="world")
"""The process whose code runs."""


_TICK: Final = 1e-6
"""Seconds that a turn of the loop takes: nothing happens in no time."""


class StuckError(Exception):
    """Nothing will ever happen again, and somebody waits."""


class _Selector(selectors.SelectSelector):
    """Waits for nothing: it lets simulated time pass."""

    def __init__(self, pass_time: Callable[[float | None], None]) -> None:
        super().__init__()
        self._pass_time = pass_time

    def select(self, timeout: float | None = None) -> list[Any]:
        """Let the time pass that there is nothing to do."""
        self._pass_time(timeout)
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Runs callbacks in simulated time.

    Attributes:
        now: the time, in seconds.
        stopped_until: processes that do not run now, and until when.
        asleep: seconds for which each process's machine was suspended.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        self.stopped_until: dict[str, float] = {}
        self.asleep: dict[str, float] = {}
        super().__init__(_Selector(self._pass))

    def _pass(self, timeout: float | None) -> None:
        if timeout is None:
            raise StuckError("nothing is left to happen")
        self.now += timeout + _TICK

    def time(self) -> float:
        """Return the simulated time."""
        return self.now

    def monotonic(self) -> float:
        """Return the time as the running process's monotonic clock tells it."""
        return self.now - self.asleep.get(PROCESS.get(), 0.0)

    def stop_process(self, name: str, seconds: float, *, suspended: bool = False) -> None:
        """Let a process stand still, as SIGSTOP does, or its machine be suspended."""
        self.stopped_until[name] = max(self.stopped_until.get(name, 0.0), self.now + seconds)
        if suspended:
            self.asleep[name] = self.asleep.get(name, 0.0) + seconds

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        """Run a callback soon; not before its process runs again."""
        return super().call_soon(self._held(callback, context), *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        """Run a callback at a time; not before its process runs again."""
        return super().call_at(when, self._held(callback, context), *args, context=context)

    def _held(self, callback: Any, context: Any) -> Any:
        name = PROCESS.get() if context is None else context.get(PROCESS, "world")
        if name == "world":
            return callback

        def run(*args: Any) -> None:
            until = self.stopped_until.get(name, 0.0)
            if until > self.now:
                super(SimulatedLoop, self).call_at(until, run, *args, context=context)
            else:
                callback(*args)

        return run
