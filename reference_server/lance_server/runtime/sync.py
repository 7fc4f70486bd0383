"""Locks and queues between the server's threads.

All parts of the store ask here, so that a simulation can put its own in their place and decide
itself which thread goes on. They are made once for each object: nothing is looked up later.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Lock(Protocol):
    """A lock that is held inside a ``with`` block."""

    def __enter__(self) -> bool:
        """Wait for the lock, and hold it."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """Let others have it."""
        ...


class Queue(Protocol[T]):
    """An unbounded queue between threads."""

    def put(self, item: T) -> None:
        """Add an item; never waits."""
        ...

    def get(self) -> T:
        """Remove and return the oldest item; waits for one."""
        ...


@dataclass(frozen=True, slots=True)
class Primitives:
    """Where locks and queues come from.

    Attributes:
        lock: makes a lock.
        queue: makes a queue.
    """

    lock: Callable[[], Lock] = threading.Lock
    queue: Callable[[], Queue[Any]] = SimpleQueue


_in_use = Primitives()


def new_lock() -> Lock:
    """Return a lock that nobody holds."""
    return _in_use.lock()


def new_queue() -> Queue[Any]:
    """Return an empty queue."""
    return _in_use.queue()


@contextmanager
def replaced(primitives: Primitives) -> Iterator[None]:
    """Make locks and queues of another kind inside a ``with`` block, in the whole process."""
    global _in_use  # noqa: PLW0603 - one process is either simulated or not
    before, _in_use = _in_use, primitives
    try:
        yield
    finally:
        _in_use = before
