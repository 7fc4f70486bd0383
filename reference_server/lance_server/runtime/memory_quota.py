"""Memory quotas: `MemoryBudget` for the whole server, `Quota` for one listener of another protocol.

The budget bounds all the memory that clients can make the server hold (LWP section 11, design
6.1): unfinished frames, frames that wait for their turn, responses that a slow reader has not
taken, reads under way, and batches that are not durable yet. Below 80 % of the budget nothing
happens. From there on reads wait, producers are told to slow down, and no client begins a new
frame; from 95 % on whatever would need more is refused. A connection that holds much and moves
nothing is closed first.

Nobody waits for memory that only waiters hold: a read waits while a read is under way, while
batches are on their way to the disk, or while an answer is in front of a peer. The disk ends the
first two; the third ends when the peer reads, or is closed because it does not
(``slow_peer_timeout``). It never waits for what is *idle*: requests that may be waiting themselves,
and what is known of earlier batches. When that is all that is held, the first waiter goes on, and
the budget is exceeded by its answer at most. Requests are bounded where they are read; what is
known of batches is forgotten while memory is short.
"""

import asyncio
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from lance_server.runtime.disk_backlog import Backlog

_HIGH: Final = 0.80
_CRITICAL: Final = 0.95
_FEW: Final = 64 * 1024


class MemoryLevel(IntEnum):
    """How much of the budget is in use."""

    NORMAL = 0
    HIGH = 1
    CRITICAL = 2


_NORMAL: Final = (
    MemoryLevel.NORMAL
)  # taking a member from its class costs more than all the rest here


class MemoryBudget:
    """Counts what is held. Belongs to the event loop's thread.

    Args:
        limit: the budget in bytes.
        backlog: what the log holds because it is not durable yet.

    Attributes:
        limit: the budget in bytes.
        held: bytes that connections hold.
        idle: of these, bytes that neither the disk nor a peer that reads will ever give back.
        on_relief: called when something was given back while somebody waited for it.
    """

    def __init__(self, limit: int, backlog: Backlog | None = None) -> None:
        self.limit = limit
        self.held = 0
        self.idle = 0
        self._backlog = backlog or Backlog()
        self.on_relief: Callable[[], None] = lambda: None
        self._high = int(limit * _HIGH)
        self._critical = int(limit * _CRITICAL)
        self._waiters: dict[Callable[[], None], int] = {}
        self._asking: Callable[[], None] | None = None
        """Who asked last and has to wait."""

    def __repr__(self) -> str:
        return (
            f"<MemoryBudget {self.used} of {self.limit} bytes, {self.level.name}, "
            f"{len(self._waiters)} waiting>"
        )

    @property
    def used(self) -> int:
        """Bytes in use now."""
        return self.held + self._backlog.size

    @property
    def level(self) -> MemoryLevel:
        """How tight memory is."""
        used = self.held + self._backlog.size
        if used < self._high:
            return _NORMAL
        return MemoryLevel.HIGH if used < self._critical else MemoryLevel.CRITICAL

    def free_bytes(self) -> int:
        """Return how much more may be held without asking: nobody waits, and it fits."""
        return 0 if self._waiters else self._high - self.held - self._backlog.size

    @property
    def is_short(self) -> bool:
        """Whether somebody has to wait for memory."""
        return bool(self._waiters) or self.level is not MemoryLevel.NORMAL

    def new_holder(self) -> "HeldMemory":
        """Return a new holder, for which nothing is held yet."""
        return HeldMemory(self)

    def may_hold(self, size: int, waiter: Callable[[], None]) -> bool:
        """Return whether ``size`` more bytes fit below the first mark.

        When they do not, ``waiter`` is called once they do, in the order of asking. A few bytes
        may go up to the second mark, so that who is at the end of a topic is not held up.
        """
        if size <= _FEW and self.used < self._critical:
            self.forget(waiter)
            return True
        first = next(iter(self._waiters), waiter)
        if first is waiter and self._fits(size):
            self._waiters.pop(waiter, None)
            return True
        self._waiters.setdefault(waiter, size)
        self._asking = waiter
        return False

    def forget(self, waiter: Callable[[], None]) -> None:
        """Stop waiting."""
        if self._waiters.pop(waiter, None) is not None and self._waiters:
            self.on_relief()

    def serve_waiters(self) -> None:
        """Call the waiters whose turn it is; each takes what it asked for, or waits again.

        One that does not ask again has nothing to ask for any more, or asks later: it leaves, so
        that the others do not wait for it.
        """
        for waiter, size in list(self._waiters.items()):
            if not self._fits(size):
                break
            self._asking = None
            waiter()
            if self._has_to_wait(waiter):
                break
            self._waiters.pop(waiter, None)

    def _has_to_wait(self, waiter: Callable[[], None]) -> bool:
        """Whether it asked last, and was told to wait."""
        return self._asking is waiter

    def _fits(self, size: int) -> bool:
        used = self.used
        return used + size <= self._high or used <= self.idle

    def _change(self, amount: int) -> None:
        self.held += amount
        assert self.held >= 0, "only what was held is given back"
        if amount < 0 and self._waiters:
            self.on_relief()


class HeldMemory:
    """What one connection holds.

    Attributes:
        size: bytes held.
        idle: of these, bytes that neither the disk nor a peer that reads will ever give back.
    """

    __slots__ = ("_budget", "idle", "size")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self.size = self.idle = 0

    def __repr__(self) -> str:
        return f"<HeldMemory {self.size} bytes>"

    def update(self, size: int, idle: int = 0) -> None:
        """Note how much is held now, and how much of it nobody is about to give back."""
        if idle != self.idle:
            self._budget.idle += idle - self.idle
            self.idle = idle
        if size != self.size:
            amount, self.size = size - self.size, size
            self._budget._change(amount)  # noqa: SLF001 - a holder is a part of its budget


class Quota:
    """Counts the bytes that clients of one listener hold. Belongs to the event loop's thread.

    A listener either waits for memory (`HeldQuota.wait_for`) or is told that there is none
    (`HeldQuota.hold`). Where requests wait and nothing is left, one of them goes on all the same:
    requests that each wait for what the others hold would never end. So the limit is exceeded by
    the size of one request at most.

    Args:
        limit: the most bytes.

    Attributes:
        limit: the most bytes.
        used: bytes that are held now.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._exempt: HeldQuota | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def __repr__(self) -> str:
        return f"<Quota {self.used} of {self.limit} bytes, {len(self._waiters)} waiting>"

    def new_holder(self) -> "HeldQuota":
        """Return a new holder, for which nothing is held yet."""
        return HeldQuota(self)

    def change(self, by: int) -> bool:
        """Note bytes that are held, or given back; return whether the limit is kept."""
        self.used += by
        assert self.used >= 0, "only what was held is given back"
        return self.used <= self.limit

    async def wait_for(self, held: "HeldQuota", size: int) -> None:
        """Hold so many bytes for a holder, once they are there."""
        while self.used + size > self.limit and not self._exempts(held):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        self.used += size

    def _exempts(self, held: "HeldQuota") -> bool:
        if self._exempt is None:
            self._exempt = held
        return self._exempt is held

    def release(self, held: "HeldQuota", size: int) -> None:
        """Give back all that a holder holds."""
        assert size <= self.used, "only what was held is given back"
        self.used -= size
        if self._exempt is held:
            self._exempt = None
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class HeldQuota:
    """What one request or one connection holds of a quota, by purpose."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._held: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<HeldQuota {self._held} of {self._quota!r}>"

    async def wait_for(self, size: int) -> None:
        """Hold so many more bytes, once they are there."""
        await self._quota.wait_for(self, size)
        self._held["request"] = self._held.get("request", 0) + size

    def hold(self, purpose: str, size: int) -> bool:
        """Hold so many bytes for a purpose from now on; return whether the limit is kept."""
        before = self._held.get(purpose, 0)
        self._held[purpose] = size
        return self._quota.change(size - before) or size <= before

    def add(self, purpose: str, by: int) -> bool:
        """Hold more bytes for a purpose; return whether the limit is kept."""
        return self.hold(purpose, self._held.get(purpose, 0) + by)

    def release(self) -> None:
        """Give everything back."""
        size = sum(self._held.values())
        self._held.clear()
        self._quota.release(self, size)
