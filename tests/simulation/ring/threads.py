"""What the ring takes from ``threading``, made of threads of the simulated world."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from greenlet import getcurrent, greenlet
from tests.simulation.world import SimLock, World

from lance_sdk._api import interruptible
from lance_sdk.journal._ring import shared_state, workers
from lance_sdk.journal._slot import side_files
from lance_sdk.journal.qwp import dictionary


class _Waiters:
    """Threads that wait to be told something."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: dict[greenlet, list[bool]] = {}

    def wait(self, timeout: float | None) -> bool:
        """Wait; return whether it was told before the time was over."""
        me = getcurrent()
        told = self._waiting[me] = []
        alarm = None
        if timeout is not None and timeout < SimThreading.TIMEOUT_MAX:
            alarm = self._world.call_later(timeout, lambda: self._give_up(me))
        self._world.wait()
        if alarm is not None:
            alarm.cancel()
        return bool(told)

    def _give_up(self, thread: greenlet) -> None:
        if self._waiting.pop(thread, None) is not None:
            self._world.wake(thread)

    def tell(self) -> None:
        """Let all of them go on."""
        waiting, self._waiting = self._waiting, {}
        for thread, told in waiting.items():
            told.append(True)
            self._world.wake(thread)


class SimEvent:
    """An event."""

    def __init__(self, world: World) -> None:
        self._waiters = _Waiters(world)
        self._is_set = False

    def set(self) -> None:
        """Let all who wait go on, now and later."""
        self._is_set = True
        self._waiters.tell()

    def clear(self) -> None:
        """Let those who come later wait."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set."""
        return self._is_set or self._waiters.wait(timeout) or self._is_set


class SimThread:
    """A thread."""

    def __init__(self, world: World, target: Callable[[], None]) -> None:
        self._world = world
        self._target = target
        self._ended = SimEvent(world)
        self._alive = False

    def start(self) -> None:
        """Begin."""
        self._alive = True
        self._world.spawn(self._run)

    def _run(self) -> None:
        try:
            self._target()
        finally:
            self._alive = False
            self._ended.set()

    def is_alive(self) -> bool:
        """Whether it has begun and not ended."""
        return self._alive

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        self._ended.wait(timeout)


class SimThreading:
    """Stands for the module ``threading``."""

    TIMEOUT_MAX = threading.TIMEOUT_MAX

    def __init__(self, world: World) -> None:
        self._world = world

    def Lock(self) -> SimLock:  # noqa: N802 - as the module has it
        """Return a lock."""
        return SimLock(self._world)

    def Event(self) -> SimEvent:  # noqa: N802
        """Return an event."""
        return SimEvent(self._world)

    def Thread(  # noqa: N802
        self, *, target: Callable[[], None], name: str, daemon: bool
    ) -> SimThread:
        """Return a thread."""
        assert daemon, f"{name} must not keep a process from ending"
        return SimThread(self._world, target)


@contextmanager
def simulated(world: World) -> Iterator[None]:
    """Let the ring use threads of a world inside a ``with`` block."""
    modules: tuple[Any, ...] = (shared_state, workers, side_files, dictionary)
    latched: tuple[Any, ...] = (interruptible, workers)
    before, latch = [module.threading for module in modules], interruptible.Latch
    for module in modules:
        module.threading = SimThreading(world)
    for module in latched:
        module.Latch = partial(SimEvent, world)
    try:
        yield
    finally:
        for module in latched:
            module.Latch = latch
        for module, right in zip(modules, before, strict=True):
            module.threading = right
