"""Waits that end with Ctrl-C, even where the signal came a moment before them."""

import threading
from typing import Final

_LOOK: Final = 1.0
"""Seconds. A signal that arrives between the interpreter's last look and the wait for a lock
interrupts neither; it is seen when the wait ends."""


def wait_on(what: threading.Condition | threading.Event, left: float) -> bool:
    """Wait ``left`` seconds at most; return False only when they are over.

    Args:
        what: an event, or a condition whose lock is held.
        left: seconds; may be infinite.

    Returns:
        Whether to look again: something was announced, or there is time left.
    """
    return what.wait(min(left, _LOOK)) or left > _LOOK
