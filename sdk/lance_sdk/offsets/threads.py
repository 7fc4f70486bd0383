"""Any store for tasks: its calls run in worker threads, on asyncio and trio alike."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import anyio
from anyio import to_thread

from lance_sdk.offsets.contract import AsyncOffsetStore, Commit, OffsetStore, TopicIdentity

__all__ = ["in_threads"]

T = TypeVar("T")


def in_threads(store: OffsetStore) -> AsyncOffsetStore:
    """Return a store whose methods can be awaited; one call runs at a time."""
    return _Threaded(store)


class _Threaded:
    def __init__(self, store: OffsetStore) -> None:
        self._store = store
        self._limiter: anyio.CapacityLimiter | None = None

    def __repr__(self) -> str:
        return f"<in_threads {self._store!r}>"

    async def claim(
        self, consumer: str, topic: TopicIdentity, generation: int = 0
    ) -> Commit | None:
        return await self._run(lambda: self._store.claim(consumer, topic, generation))

    async def save(self, commit: Commit) -> None:
        await self._run(lambda: self._store.save(commit))

    async def release(self, consumer: str, topic: TopicIdentity) -> None:
        await self._run(lambda: self._store.release(consumer, topic))

    async def commits(self, consumer: str | None = None) -> Sequence[Commit]:
        return await self._run(lambda: self._store.commits(consumer))

    async def forget(self, consumer: str, topic: TopicIdentity) -> bool:
        return await self._run(lambda: self._store.forget(consumer, topic))

    async def close(self) -> None:
        await self._run(self._store.close)

    async def _run(self, call: Callable[[], T]) -> T:
        # Not abandoned on cancellation: whoever goes on must know whether a commit was kept.
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(1)
        return await to_thread.run_sync(call, limiter=self._limiter)
