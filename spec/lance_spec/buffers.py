"""Memory that is about to be filled."""

from collections.abc import Callable
from typing import Final

from lance_spec._native import accelerator

unfilled: Final[Callable[[int], bytearray]] = accelerator.unfilled if accelerator else bytearray
"""Return a buffer of so many bytes, of which nothing is known: every one is to be written.

Without the compiled loops they are zeros, which costs as much again as filling them does.
"""
