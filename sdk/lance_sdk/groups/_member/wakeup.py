"""Wakes the thread or task that reads a group's records when there is news."""

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

    def wait(self, timeout: float) -> bool:
        """Wait for news, for so long or until it is time to look around; return whether it came."""
        return self._news.wait(min(max(timeout, 0.0), interruptible.LOOK))


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
