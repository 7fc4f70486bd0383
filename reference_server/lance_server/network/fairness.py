"""Fair shares of the event loop: work is done in bounded slices, and others run in between.

A client that pipelines gives a listener more work than one turn of the loop should take. Each
listener counts its requests against a `WorkSlice` and lets the loop go on when it is used up.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

SLICE_REQUESTS: Final = 256
"""Requests of one connection that are served before the others get their turn."""

SLICE_SECONDS: Final = 0.001
"""Seconds after which they get it, however few requests were served."""


class WorkSlice:
    """What one connection may do in one turn of the event loop.

    Args:
        clock: returns the time in seconds.

    Attributes:
        is_over: whether the connection has had its share; `begin` gives it the next one.
        left: requests that it may be served yet.
    """

    __slots__ = ("_clock", "_until", "is_over", "left")

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.begin()

    def __repr__(self) -> str:
        return f"<WorkSlice {self.left} requests left>"

    def begin(self) -> None:
        """Begin the next share; called once a turn of the loop."""
        self.left = SLICE_REQUESTS
        self._until = self._clock() + SLICE_SECONDS
        self.is_over = False

    def take(self, requests: int = 1) -> None:
        """Count requests that were served."""
        self.left -= requests
        if self.left <= 0 or self._clock() >= self._until:
            self.is_over = True

    async def step(self) -> None:
        """Count a request that was served, and let the loop go on when the share is used up."""
        self.take()
        if self.is_over:
            await asyncio.sleep(0)
            self.begin()
