"""One account for the memory that clients can make a listener use; who needs more waits."""

import asyncio


class Account:
    """Counts bytes against a limit. Belongs to the event loop's thread.

    When nothing is left, one request at a time goes on all the same: requests that each wait for
    what the others hold would never end. So it is exceeded by the size of one request at most.

    Args:
        limit: the most bytes.

    Attributes:
        limit: the most bytes.
        used: bytes that are held now.
    """

    def __init__(self, limit: int) -> None:
        self.used = 0
        self.limit = limit
        self._favourite: Share | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def __repr__(self) -> str:
        return f"<Account {self.used} of {self.limit} bytes, {len(self._waiters)} waiting>"

    async def take(self, share: "Share", size: int) -> None:
        """Hold so many bytes, once they are there."""
        while self.used + size > self.limit and not self._favours(share):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        self.used += size

    def _favours(self, share: "Share") -> bool:
        if self._favourite is None:
            self._favourite = share
        return self._favourite is share

    def give(self, share: "Share", size: int) -> None:
        """Give all back that a share holds."""
        self.used -= size
        if self._favourite is share:
            self._favourite = None
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class Share:
    """What one request holds."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._size = 0

    def __repr__(self) -> str:
        return f"<Share {self._size} of {self._account!r}>"

    async def grow(self, size: int) -> None:
        """Hold more, once it is there."""
        await self._account.take(self, size)
        self._size += size

    def release(self) -> None:
        """Give everything back."""
        size, self._size = self._size, 0
        self._account.give(self, size)
