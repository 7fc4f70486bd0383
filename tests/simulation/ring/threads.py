"""What the ring takes from ``threading``, made of threads of the simulated world."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any

from greenlet import getcurrent, greenlet
from tests.simulation.world import SimLock, World

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


class SimCondition:
    """A condition variable."""

    def __init__(self, world: World, lock: SimLock) -> None:
        self._lock = lock
        self._waiters = _Waiters(world)

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self._lock.__exit__(kind, error, trace)

    def wait(self, timeout: float | None = None) -> bool:
        """Let the lock go, wait, and take it again."""
        self._lock.__exit__(KeyboardInterrupt, None, None)  # no interruption in between
        told = self._waiters.wait(timeout)
        self._lock.__enter__()
        return told

    def notify_all(self) -> None:
        """Let all who wait go on."""
        self._waiters.tell()


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

    def Condition(self, lock: SimLock) -> SimCondition:  # noqa: N802
        """Return a condition."""
        return SimCondition(self._world, lock)

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
    before = [module.threading for module in modules]
    latch = workers.Latch
    for module in modules:
        module.threading = SimThreading(world)
    workers.Latch = partial(SimEvent, world)  # type: ignore[assignment,misc]  # as above
    try:
        yield
    finally:
        workers.Latch = latch  # type: ignore[misc]  # as above
        for module, right in zip(modules, before, strict=True):
            module.threading = right
