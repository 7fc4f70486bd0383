"""How long the oldest un-acknowledged frame waits, without a time stamp for each frame."""

from collections import deque
from typing import Final

_RESOLUTION: Final = 0.05
"""Seconds: frames appended within this time share one mark."""
_MOST: Final = 4096
"""Marks to keep; beyond it, every second one goes, and ages get coarser."""


class Ages:
    """Marks of which frame was appended when."""

    def __init__(self) -> None:
        self._marks: deque[tuple[int, float]] = deque()
        self._resolution = _RESOLUTION
        self._due = -1.0

    def __repr__(self) -> str:
        return f"<Ages {len(self._marks)} marks every {self._resolution} s>"

    def appended(self, fsn: int, now: float) -> None:
        """Note that a frame was appended."""
        if now < self._due:
            return
        self._marks.append((fsn, now))
        self._due = now + self._resolution
        if len(self._marks) > _MOST:
            self._marks = deque(list(self._marks)[::2])
            self._resolution *= 2

    def acked(self, fsn: int) -> None:
        """Forget marks that only acknowledged frames use."""
        marks = self._marks
        while len(marks) > 1 and marks[1][0] <= fsn + 1:
            marks.popleft()
        if len(marks) <= 1:
            self._resolution = _RESOLUTION

    def of(self, fsn: int, now: float) -> float | None:
        """Return the age of a frame in seconds, never too young; None when it is older."""
        if not self._marks or fsn < self._marks[0][0]:
            return None
        appended = next(at for first, at in reversed(self._marks) if first <= fsn)
        return max(0.0, now - appended)
