"""Requests that wait for their turn."""

from collections import deque
from itertools import islice
from typing import Final

from lance_spec.frames import Frame

FRAME_COST: Final = 512
"""What a frame that waits costs beside its payload, in bytes of memory, as measured."""

MOST_QUEUED: Final = 1024
"""Requests of one connection that may wait for their turn; beyond it nothing is read from it."""


def cost(frame: Frame) -> int:
    """Return the memory that a frame costs while it waits."""
    return len(frame.payload) + FRAME_COST


class PendingRequests:
    """Frames in the order of receipt, each with a copy of its payload.

    Attributes:
        frames: the frames.
        size: memory they cost, in bytes.
    """

    def __init__(self) -> None:
        self.frames: deque[Frame] = deque()
        self.size = 0

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return f"<PendingRequests {len(self.frames)}, {self.size} bytes>"

    def add(self, frame: Frame) -> None:
        """Keep a frame after the others."""
        self.frames.append(self._kept(frame))

    def add_first(self, frame: Frame) -> None:
        """Keep a frame before the others: it was their turn, and could not be served yet."""
        self.frames.appendleft(self._kept(frame))

    def _kept(self, frame: Frame) -> Frame:
        frame.payload = memoryview(bytes(frame.payload))
        self.size += cost(frame)
        return frame

    def take(self) -> Frame:
        """Return the next frame; only while there are some."""
        frame = self.frames.popleft()
        self.size -= cost(frame)
        return frame

    def first(self, most: int) -> list[Frame]:
        """Return up to so many of the next frames, which stay."""
        return list(islice(self.frames, most))

    def drop(self, count: int) -> None:
        """Forget so many of the next frames; there must be so many."""
        self.size -= sum([cost(self.frames.popleft()) for _ in range(count)])

    def take_all(self) -> list[Frame]:
        """Return all frames."""
        frames = list(self.frames)
        self.clear()
        return frames

    def clear(self) -> None:
        """Forget all."""
        self.frames.clear()
        self.size = 0
