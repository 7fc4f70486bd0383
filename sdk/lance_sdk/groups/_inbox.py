"""What feeds bring to the thread that reads.

Feeds and wake-ups know the inbox, not the consumer: one that is dropped without being closed
can then be noticed.
"""

import queue
from time import monotonic
from typing import TypeAlias

from lance_sdk._waits import LOOK
from lance_sdk.groups._feed import Delivery, Feed

Item: TypeAlias = tuple[Feed, Delivery] | None
"""A delivery, or None: look up."""


class Inbox:
    """Deliveries in the order in which they came, from any thread."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()

    def deliver(self, feed: Feed, delivery: Delivery) -> None:
        """Put a delivery in."""
        self._items.put((feed, delivery))

    def wake(self) -> None:
        """Have the reader look up."""
        self._items.put(None)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return self._items.empty()

    def take(self, timeout: float) -> Item:
        """Wait for a delivery; None when there is something else, or the time ran out."""
        deadline = monotonic() + timeout
        while True:
            left = max(deadline - monotonic(), 0.0)
            try:
                return self._items.get(timeout=min(left, LOOK))
            except queue.Empty:
                if left <= LOOK:
                    return None
