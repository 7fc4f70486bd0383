"""What is still open when the interpreter ends gets a bounded time to finish.

Daemon threads still run while ``atexit`` callbacks do, so the pumps can flush. New threads
cannot be started then, and none is.
"""

import atexit
import time
import warnings
import weakref
from typing import Protocol

from lance_sdk.errors import DeliveryWarning

EXIT_BUDGET = 2.0
"""Seconds that all open pumps together may take."""


class Closable(Protocol):
    """What can be closed within a time."""

    def close_at_exit(self, timeout: float) -> int:
        """Finish within ``timeout`` seconds; return the number of records that were lost."""
        ...


_open: "weakref.WeakSet[Closable]" = weakref.WeakSet()


def register(pump: Closable) -> None:
    """Close ``pump`` when the interpreter ends."""
    _open.add(pump)


def unregister(pump: Closable) -> None:
    """Forget ``pump``."""
    _open.discard(pump)


def _close_all() -> None:
    deadline = time.monotonic() + EXIT_BUDGET
    for pump in list(_open):
        lost = pump.close_at_exit(max(0.0, deadline - time.monotonic()))
        if lost:
            warnings.warn(
                f"{lost} records were not delivered when the interpreter ended; "
                f"use `with`, or call close() before the program ends",
                DeliveryWarning,
                stacklevel=1,
            )


atexit.register(_close_all)
