"""What is still open when the interpreter ends gets a bounded time to finish.

Daemon threads still run while ``atexit`` callbacks do, so the drivers can flush. New threads
cannot be started then, and none is.
"""

import atexit
import time
import warnings
import weakref
from typing import Protocol

from lance_sdk.errors import DeliveryWarning

EXIT_BUDGET = 2.0
"""Seconds that all open drivers together may take."""


class Closable(Protocol):
    """What can be closed within a time."""

    def close_at_exit(self, timeout: float) -> int:
        """Finish within ``timeout`` seconds; return the number of records that were lost."""
        ...


_open: "weakref.WeakSet[Closable]" = weakref.WeakSet()


def register(driver: Closable) -> None:
    """Close ``driver`` when the interpreter ends."""
    _open.add(driver)


def unregister(driver: Closable) -> None:
    """Forget ``driver``."""
    _open.discard(driver)


def _close_all() -> None:
    deadline = time.monotonic() + EXIT_BUDGET
    for driver in list(_open):
        lost = driver.close_at_exit(max(0.0, deadline - time.monotonic()))
        warn_of_loss(lost, "when the interpreter ended")


def warn_of_loss(lost: int, when: str) -> None:
    """Say how many records were lost where no caller can be told; nothing when none was."""
    if lost:
        warnings.warn(
            f"{lost} records were not delivered {when}; "
            f"use `with`, or call close() before the program ends",
            DeliveryWarning,
            stacklevel=1,
        )


atexit.register(_close_all)
