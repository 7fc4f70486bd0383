"""Memory that is about to be filled."""

from collections.abc import Callable
from typing import Final

from lance_spec._native import accelerator

unfilled: Final[Callable[[int], bytearray]] = accelerator.unfilled if accelerator else bytearray
"""Return a buffer of so many bytes, of which nothing is known: every one is to be written.

Without the compiled loops they are zeros, which costs as much again as filling them does.
"""


def keep_freed(size: int, largest: int) -> bool:
    """Let the process keep freed memory for its next buffers, instead of giving it back.

    A page that was given back is cleared and mapped anew when it is touched, which costs several
    times what filling it does. For a program that owns its process, once, at its start.

    Args:
        size: how many free bytes are kept at most, where they are at the end of the heap.
        largest: the largest block that is kept, in bytes; at most 32 MiB.

    Returns:
        Whether that is so: only the GNU C library can be told, and only by the compiled loops.
    """
    return accelerator is not None and bool(accelerator.keep_freed(size, largest))


def give_back() -> bool:
    """Give back to the system what `keep_freed` let the process keep.

    It takes up to some milliseconds, and more once the memory is needed again: for a program
    that has nothing to do.

    Returns:
        Whether that was done; where nothing is kept on purpose, nothing happens.
    """
    return accelerator is not None and bool(accelerator.give_back())
