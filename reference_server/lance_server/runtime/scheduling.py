"""When work runs: on the event loop, later, or on a worker thread.

The log is written against this seam, so that its tests step through every interleaving by
hand, without threads and without a clock.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Protocol, TypeAlias

from lance_server.runtime.completion import Completion, T

Job: TypeAlias = Callable[[], None]


class Timer(Protocol):
    """A call that has not happened yet."""

    def cancel(self) -> None:
        """Do not make the call."""
        ...


class Scheduler(Protocol):
    """What the log needs from the event loop. Methods are called on the loop's thread."""

    def call_soon(self, job: Job) -> object:
        """Run ``job`` on the loop's thread, after what is already due."""
        ...

    def call_later(self, delay: float, job: Job) -> Timer:
        """Run ``job`` on the loop's thread in ``delay`` seconds."""
        ...

    def run(self, pool: str, work: Callable[[], T]) -> Completion[T]:
        """Run ``work`` on a thread of a pool; the outcome is settled on the loop's thread."""
        ...


class WorkerPool:
    """A bounded number of daemon threads that take jobs in order.

    Daemon threads of its own rather than an executor: an interpreter that ends while a disk
    hangs must not wait for it, and the drain at exit still needs threads to run on.
    """

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._limit = threads
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._waiting = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<WorkerPool {self._name}: {len(self._threads)} of {self._limit} threads>"

    def begin(self) -> None:
        """Start the first thread now: an interpreter that ends may start none (Python 3.12.0)."""
        with self._lock:
            self._start_thread()

    def submit(self, job: Job) -> None:
        """Run ``job`` on a thread of this pool; it must not raise.

        Raises:
            RuntimeError: there is no thread, and none can be started.
        """
        with self._lock:
            if self._waiting >= len(self._threads) < self._limit:
                self._grow()
            self._waiting += 1
        self._jobs.put(job)

    def _grow(self) -> None:
        try:
            self._start_thread()
        except RuntimeError:
            if not self._threads:  # else the existing threads must suffice
                raise

    def _start_thread(self) -> None:
        name = f"lance-{self._name}-{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._lock:
                self._waiting -= 1

    def close(self, timeout: float) -> bool:
        """Let the threads end after what is queued; return whether they did in time."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in self._threads)


class LoopScheduler:
    """The scheduler of a running server: an asyncio loop and its worker pools.

    Args:
        loop: the loop.
        more: threads of further pools, by name.
    """

    POOLS = {"flush": 2, "read": 4, "meta": 1, "wal": 1}  # noqa: RUF012 - a constant table
    """Threads per pool. Two flushes may overlap, so that one stalled sync does not hold up
    other topics; four reads keep a disk queue busy; topic files have a single writer; the
    write-ahead log is given room beside everything else."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, more: Mapping[str, int] | None = None
    ) -> None:
        self._loop = loop
        pools = {**self.POOLS, **(more or {})}
        self._pools = {name: WorkerPool(name, size) for name, size in pools.items()}

    def __repr__(self) -> str:
        return f"<LoopScheduler {list(self._pools.values())}>"

    def begin(self) -> None:
        """Start a thread of each pool, so that there is one however late it is needed."""
        for pool in self._pools.values():
            pool.begin()

    def call_soon(self, job: Job) -> object:
        """Run ``job`` on the loop's thread, after what is already due."""
        return self._loop.call_soon(job)

    def call_later(self, delay: float, job: Job) -> Timer:
        """Run ``job`` on the loop's thread in ``delay`` seconds."""
        return self._loop.call_later(delay, job)

    def run(self, pool: str, work: Callable[[], T]) -> Completion[T]:
        """Run ``work`` on a thread of a pool; the outcome is settled on the loop's thread."""
        outcome: Completion[T] = Completion()
        self._pools[pool].submit(lambda: self._perform(work, outcome))
        return outcome

    def _perform(self, work: Callable[[], T], outcome: Completion[T]) -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - whoever waits for the outcome gets it
            self._post(lambda problem=error: outcome.fail(problem))  # type: ignore[misc]
        else:
            self._post(lambda: outcome.settle(value))

    def _post(self, job: Job) -> None:
        # A closed loop means that the server is gone, and with it whoever waited.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(job)

    def close(self, timeout: float) -> bool:
        """End all threads; return whether they ended in time."""
        ended = [pool.close(timeout) for pool in self._pools.values()]
        return all(ended)
