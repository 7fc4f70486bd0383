"""After ``os.fork()`` the child has the parent's objects but none of its threads.

What was open in the parent is marked in the child: its lock may be held by a thread that does
not exist there, and its socket belongs to the parent. The next use says so.
"""

import weakref
from typing import Protocol

from lance_sdk._io.platform import call_after_fork


class Forkable(Protocol):
    """What can be told that it is in a forked child now."""

    def forked(self) -> None:
        """Let go of descriptors and locks, and refuse further use."""
        ...


_open: "weakref.WeakSet[Forkable]" = weakref.WeakSet()


def register(driver: Forkable) -> None:
    """Mark ``driver`` in every child forked from now on."""
    _open.add(driver)


def unregister(driver: Forkable) -> None:
    """Forget ``driver``."""
    _open.discard(driver)


def _after_fork_in_child() -> None:
    drivers = list(_open)
    _open.clear()
    for driver in drivers:
        driver.forked()


call_after_fork(_after_fork_in_child)
