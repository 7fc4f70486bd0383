"""Tasks that belong to an event loop, and to no block of the task that starts them.

A task group ties its tasks to the block that opened it, so blocks would have to be left in the
reverse order in which they were entered. What runs here can be ended from anywhere, in any order.
"""

import asyncio
import contextvars
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

_tasks: set["asyncio.Task[None]"] = set()
"""asyncio itself holds its tasks by weak references only."""


class CallSoon(Protocol):
    """Calls a function in an event loop; may be used in any thread, and in a finalizer."""

    def __call__(self, function: Callable[[], object], /) -> object:
        """Call it soon.

        Raises:
            RuntimeError: the event loop has ended.
        """
        ...


def on_trio() -> bool:
    """Whether the running task is one of trio's; otherwise it is one of asyncio's."""
    trio: Any = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()  # in_trio_task() is missing in older releases
    except RuntimeError:
        return False
    return True


def start(function: Callable[[], Coroutine[Any, Any, None]], name: str) -> CallSoon:
    """Run ``function`` in a task of its own, until it returns or the event loop ends.

    Args:
        function: an async function that raises nothing but what cancels it.
        name: for whoever looks at the tasks.

    Returns:
        What calls into the event loop that runs it.
    """
    if on_trio():
        import trio  # noqa: PLC0415 - it is there, as its task is running

        trio.lowlevel.spawn_system_task(function, name=name, context=contextvars.copy_context())
        return trio.lowlevel.current_trio_token().run_sync_soon
    loop = asyncio.get_running_loop()
    task = loop.create_task(function(), name=name)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return loop.call_soon_threadsafe


def uninterrupted(
    function: Callable[..., Coroutine[Any, Any, None]],
) -> Callable[..., Coroutine[Any, Any, None]]:
    """Return the function for a task below one of `start`: Ctrl-C does not strike there.

    On trio it strikes in whichever task is running, and would end the whole event loop; it
    belongs to the application's main task. asyncio gives it to that one by itself.
    """
    if not on_trio():
        return function
    import trio  # noqa: PLC0415 - it is there, as its task is running

    protected: Callable[..., Coroutine[Any, Any, None]] = trio.lowlevel.enable_ki_protection(
        function
    )
    return protected
