"""Gives clients that are open at the interpreter's end a bounded time to finish.

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

    def close_at_exit(self, timeout: float) -> None:
        """Finish within ``timeout`` seconds, and tell what was not delivered."""
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
        driver.close_at_exit(max(0.0, deadline - time.monotonic()))


AT_EXIT = "when the interpreter ended"
"""When something was lost, for `warn_of_loss`."""


def warn_of_loss(lost: int, when: str, *, what: str = "records") -> None:
    """Say how many records were lost where no caller can be told; nothing when none was."""
    if lost:
        warnings.warn(
            f"{lost} {what} were not delivered {when}; "
            f"use `with`, or call close() before the program ends",
            DeliveryWarning,
            stacklevel=1,
        )


def leaving_time(kind: type[BaseException] | None) -> float | None:
    """Return the seconds to leave a block in; None where the block's own timeout counts.

    Args:
        kind: of what ended the block: Ctrl-C, SystemExit and a cancelled task are in a hurry.
    """
    hurry = kind is not None and not issubclass(kind, Exception)
    return EXIT_BUDGET if hurry else None


def warn_of_lost_block(
    lost: int, name: str, error: BaseException | None, *, what: str = "records"
) -> None:
    """Warn of what was lost when an exception ended a block; the exception comes first."""
    try:
        warn_of_loss(lost, f"when an exception ended the block of {name}", what=what)
    except DeliveryWarning as warning:  # warnings are errors
        if error is not None:
            error.add_note(str(warning))


atexit.register(_close_all)
