"""Log lines that peers cause: as many as help, and a count of the others."""

import logging
import time
from collections.abc import Callable
from typing import Final

MOST_LINES: Final = 10
"""Lines of one kind in a window; further ones are counted and left out."""

WINDOW_SECONDS: Final = 10.0


class PeerLogFilter(logging.Filter):
    """Lets the first lines of each kind through in each window of time.

    The next line that passes says how many were left out before it. A kind is a level and a
    message before its arguments are filled in.

    Args:
        clock: returns the time in seconds.

    Attributes:
        left_out: lines that were left out since the process began.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[int, str], _Kind] = {}
        self.left_out = 0

    def __repr__(self) -> str:
        return f"<PeerLogFilter {self.left_out} left out>"

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written."""
        now = self._clock()
        kind = self._kinds.setdefault((record.levelno, str(record.msg)), _Kind(now))
        if now - kind.since >= WINDOW_SECONDS:
            if kind.left_out:
                record.msg = f"{record.msg} ({kind.left_out} more like this were left out)"
            kind.since, kind.lines, kind.left_out = now, 0, 0
        kind.lines += 1
        if kind.lines <= MOST_LINES:
            return True
        kind.left_out += 1
        self.left_out += 1
        return False


class _Kind:
    """The lines of one kind in the current window."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.lines = 0
        self.left_out = 0


PEER_LINES: Final = PeerLogFilter()
"""The filter of every logger of this process whose lines peers cause."""


def peer_logger(name: str) -> logging.Logger:
    """Return the logger of a module whose lines peers cause."""
    logger = logging.getLogger(name)
    logger.addFilter(PEER_LINES)
    return logger
