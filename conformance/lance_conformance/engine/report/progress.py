"""How far a run has come, on a terminal and nowhere else."""

import sys
from typing import TextIO


class Progress:
    """One line that is written over and over.

    Args:
        label: What is going on.
        stream: Where to; nothing is written unless it is a terminal.
    """

    def __init__(self, label: str, stream: TextIO = sys.stderr) -> None:
        self._label = label
        self._stream = stream
        self._shows = stream.isatty()

    def update(self, done: int, total: int, doing: str = "") -> None:
        """Show how much is done."""
        if self._shows:
            self._stream.write(f"\r\x1b[K{self._label} {done}/{total} {doing}")
            self._stream.flush()

    def clear(self) -> None:
        """Leave the line empty."""
        if self._shows:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
