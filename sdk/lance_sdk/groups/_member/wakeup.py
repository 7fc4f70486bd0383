"""Wakes the thread or task that reads a group's records when there is news."""

from time import monotonic

import anyio

from lance_sdk._api import interruptible


class Wakeup:
    """Wakes one thread; `clear` first, then look, then `wait`: no news is missed.

    Drivers know it and not the consumer: one that is dropped without being closed can then be
    noticed.
    """

    def __init__(self) -> None:
        self._news = interruptible.Latch()

    def clear(self) -> None:
        """Forget the news that there was."""
        self._news = interruptible.Latch()

    def wake(self) -> None:
        """Tell that there is news; from any thread."""
        self._news.set()

    def wait(self, timeout: float) -> None:
        """Wait for news."""
        news, deadline = self._news, monotonic() + timeout
        while (left := deadline - monotonic()) > 0 and not news.wait(min(left, interruptible.LOOK)):
            pass


class AsyncWakeup:
    """The same for one task."""

    def __init__(self) -> None:
        self._news = anyio.Event()

    def clear(self) -> None:
        """Forget the news that there was."""
        self._news = anyio.Event()

    def wake(self) -> None:
        """Tell that there is news."""
        self._news.set()

    async def wait(self, timeout: float) -> None:  # noqa: ASYNC109 - as for threads
        """Wait for news."""
        with anyio.move_on_after(max(timeout, 0.0)):
            await self._news.wait()
