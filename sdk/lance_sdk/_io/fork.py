"""After ``os.fork()`` the child has the parent's objects but none of its threads.

What was open in the parent is marked in the child: its lock may be held by a thread that does
not exist there, and its socket belongs to the parent. The next use says so.
"""

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """What can be told that it is in a forked child now."""

    def forked(self) -> None:
        """Let go of descriptors and locks, and refuse further use."""
        ...


_open: "weakref.WeakSet[Forkable]" = weakref.WeakSet()


def register(pump: Forkable) -> None:
    """Mark ``pump`` in every child forked from now on."""
    _open.add(pump)


def unregister(pump: Forkable) -> None:
    """Forget ``pump``."""
    _open.discard(pump)


def _after_fork_in_child() -> None:
    pumps = list(_open)
    _open.clear()
    for pump in pumps:
        pump.forked()


os.register_at_fork(after_in_child=_after_fork_in_child)
