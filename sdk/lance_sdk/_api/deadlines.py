"""When a wait ends."""

import math
from time import monotonic

from lance_sdk._api.arguments.unit_parsing import shorten


def deadline_after(timeout: float) -> float:
    """Return the monotonic time at which a wait of ``timeout`` seconds ends.

    Raises:
        TypeError: it is not a number.
    """
    try:
        deadline = monotonic() + timeout
    except TypeError:
        deadline = math.nan
    if math.isnan(deadline):  # no time is after it: a wait would not end
        raise TypeError(
            f"timeout={shorten(timeout)}: expected seconds as a number, such as 5 or 0.5, or None"
        )
    return deadline
