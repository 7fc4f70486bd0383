"""What is finished although its caller is cancelled: closing, and what must not be done by halves.

anyio's shields hold off its own scopes. `asyncio.Task.cancel`, by which `asyncio.timeout` and
`asyncio.wait_for` end a wait, strikes through them: there the work gets a task of its own.
"""

import asyncio
import functools
import math
import time
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

import anyio
from anyio import to_thread

from lance_sdk._io.at_exit import EXIT_BUDGET
from lance_sdk._io.tasks.task_spawner import on_trio

P = ParamSpec("P")
T = TypeVar("T")

_working: set["asyncio.Task[Any]"] = set()
"""asyncio itself holds its tasks by weak references only."""


def closing(
    function: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Have a function that closes something do so to the end.

    A caller that is cancelled waits for it two seconds longer at most; then it goes on alone.
    """

    @functools.wraps(function)
    async def whole(*args: P.args, **options: P.kwargs) -> T:
        return await finish(functools.partial(function, *args, **options), EXIT_BUDGET)

    return whole


async def finish(work: Callable[[], Coroutine[Any, Any, T]], budget: float = math.inf) -> T:
    """Do some work to its end; a cancellation of the caller goes on after it.

    Args:
        work: what is to be done.
        budget: seconds that a caller waits who was cancelled.
    """
    if on_trio():
        return await _shielded(work)
    task = _started(work())
    if (cancelled := await _end_of(task, budget)) is not None:
        raise cancelled
    return task.result()


async def take(taking: Callable[[], T], give_back: Callable[[T], object]) -> T:
    """Call a function in a thread; what it took is given back where the caller was cancelled.

    Args:
        taking: returns what it took.
        give_back: gets that.
    """
    if on_trio():  # where a thread is not abandoned
        return await to_thread.run_sync(taking)
    task = _started(to_thread.run_sync(taking))
    if (cancelled := await _end_of(task, math.inf)) is None:
        return task.result()
    if not task.cancelled() and task.exception() is None:
        await finish(functools.partial(to_thread.run_sync, give_back, task.result()))
    raise cancelled


async def _shielded(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with anyio.CancelScope(shield=True):
        return await work()
    raise AssertionError("nothing cancels a scope that nobody has")


def _started(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    task = asyncio.get_running_loop().create_task(work)
    _working.add(task)
    task.add_done_callback(_done)
    return task


def _done(task: "asyncio.Task[Any]") -> None:
    _working.discard(task)
    if not task.cancelled():
        task.exception()  # it is told, or nobody waits for it any more


async def _end_of(task: "asyncio.Task[Any]", budget: float) -> asyncio.CancelledError | None:
    """Wait for a task; return what cancelled the caller meanwhile."""
    cancelled, until = None, math.inf
    with anyio.CancelScope(shield=True):
        while not task.done() and (left := until - time.monotonic()) > 0:
            try:
                await asyncio.wait([task], timeout=None if left == math.inf else left)
            except asyncio.CancelledError as error:
                cancelled, until = error, min(until, time.monotonic() + budget)
    return cancelled
