"""What feeds bring to the task that reads; it does not know the consumer, see `Inbox`."""
# ruff: noqa: ASYNC109 - as `Inbox` has it

from collections import deque

import anyio

from lance_sdk.groups._aio_feed import AsyncFeed
from lance_sdk.groups._feed import Delivery


class AsyncInbox:
    """Deliveries in the order in which they came."""

    def __init__(self) -> None:
        self._items: deque[tuple[AsyncFeed, Delivery]] = deque()
        self._filled = anyio.Event()

    def deliver(self, feed: AsyncFeed, delivery: Delivery) -> None:
        """Put a delivery in."""
        self._items.append((feed, delivery))
        self._filled.set()

    def wake(self) -> None:
        """Have the reader look up."""
        self._filled.set()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._items

    async def take(self, timeout: float) -> tuple[AsyncFeed, Delivery] | None:
        """Wait for a delivery; None when there is something else, or the time ran out."""
        if not self._items:
            with anyio.move_on_after(max(timeout, 0.0)):
                await self._filled.wait()
        self._filled = anyio.Event()
        return self._items.popleft() if self._items else None
