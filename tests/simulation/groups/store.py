"""An offset store that takes its time, fails, and comes back with an old file."""

import asyncio
from collections.abc import Callable, Sequence
from random import Random

from lance_sdk.offsets import Commit, MemoryStore, StoreUnavailable, TopicIdentity


class SimulatedStore:
    """Keeps commits in memory, as its file would; satisfies `AsyncOffsetStore`.

    Args:
        random: decides how long it takes.
        on_stored: called with each commit that is durable.

    Attributes:
        slow: seconds that a call takes at most.
        broken: whether calls fail.
        past: states that a backup may bring back.
    """

    def __init__(self, random: Random, on_stored: Callable[[Commit], None]) -> None:
        self._random = random
        self._on_stored = on_stored
        self._kept = MemoryStore()
        self._turn = asyncio.Lock()
        self._life = 0
        self.slow = 0.01
        self.broken = False
        self.past: list[MemoryStore] = []

    async def claim(
        self, consumer: str, topic: TopicIdentity, generation: int = 0
    ) -> Commit | None:
        """Begin to use an offset."""
        life = self._life
        async with self._turn:
            await self._take_time(life)
            return self._kept.claim(consumer, topic, generation)

    async def save(self, commit: Commit) -> None:
        """Keep a commit."""
        life = self._life
        async with self._turn:
            await self._take_time(life)
            self._kept.save(commit)
            self._on_stored(commit)
            await self._take_time(life)

    async def release(self, consumer: str, topic: TopicIdentity) -> None:
        """End the use of an offset."""
        self._kept.release(consumer, topic)

    async def commits(self, consumer: str | None = None) -> Sequence[Commit]:
        """Return commits."""
        life = self._life
        async with self._turn:
            await self._take_time(life)
            return self._kept.commits(consumer)

    async def forget(self, consumer: str, topic: TopicIdentity) -> bool:
        """Remove a commit."""
        return self._kept.forget(consumer, topic)

    async def close(self) -> None:
        """Release everything."""
        self._kept.close()

    async def _take_time(self, life: int) -> None:
        await asyncio.sleep(self._random.uniform(0.0, self.slow))
        if life != self._life:
            await asyncio.Future()  # the process that asked is dead
        if self.broken:
            raise StoreUnavailable("the disk is gone")

    def remember(self) -> None:
        """Make a backup."""
        self.past.append(_copy(self._kept))

    def crash(self) -> None:
        """End the process that uses it: what it was about to do is not done."""
        self._life += 1

    def reopen(self, *, old: bool) -> list[Commit]:
        """Open the file again, or a backup of it; return its commits."""
        self._kept = _copy(self._random.choice(self.past) if old and self.past else self._kept)
        self._turn = asyncio.Lock()
        self._life += 1
        return list(self._kept.commits())


def _copy(store: MemoryStore) -> MemoryStore:
    """Return what another process would find."""
    copy = MemoryStore()
    copy._commits = dict(store._commits)
    copy._generations = dict(store._generations)
    return copy
