"""When a wait ends."""

from time import monotonic

from lance_sdk._api.arguments.unit_parsing import shorten


def deadline_after(timeout: float) -> float:
    """Return the monotonic time at which a wait of ``timeout`` seconds ends.

    Raises:
        TypeError: it is not a number.
    """
    try:
        return monotonic() + timeout
    except TypeError:
        raise TypeError(
            f"timeout={shorten(timeout)}: expected seconds as a number, such as 5 or 0.5, or None"
        ) from None
