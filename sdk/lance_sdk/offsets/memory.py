"""Offsets in memory: for tests, and for programs that begin again each time."""

import threading
from collections.abc import Sequence
from dataclasses import replace

from lance_sdk.offsets.contract import Commit, TopicIdentity, check_consumer_name
from lance_sdk.offsets.errors import StaleGeneration, StaleTopic, StoreLocked

__all__ = ["MemoryStore"]


class MemoryStore:
    """Keeps offsets as long as the object lives; satisfies `OffsetStore`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commits: dict[tuple[str, str], Commit] = {}
        self._generations: dict[tuple[str, str], int] = {}
        self._claimed: set[tuple[str, str]] = set()

    def __repr__(self) -> str:
        return f"<MemoryStore commits={len(self._commits)} claimed={len(self._claimed)}>"

    def claim(self, consumer: str, topic: TopicIdentity, generation: int = 0) -> Commit | None:
        """Begin to use an offset; see `OffsetStore.claim`."""
        key = check_consumer_name(consumer), topic.label
        with self._lock:
            if key in self._claimed:
                raise StoreLocked(f"{consumer}/{topic.label} in this MemoryStore", None)
            self._raise_generation(key, generation)
            self._claimed.add(key)
            return self._commits.get(key)

    def save(self, commit: Commit) -> None:
        """Keep a commit; see `OffsetStore.save`."""
        key = check_consumer_name(commit.consumer), commit.topic.label
        with self._lock:
            last = self._commits.get(key)
            if last is not None and commit.topic.older_than(last.topic):
                raise StaleTopic(key[1])
            self._raise_generation(key, commit.generation)
            self._commits[key] = commit

    def _raise_generation(self, key: tuple[str, str], generation: int) -> None:
        current = self._generations.get(key, 0)
        if generation < current:
            raise StaleGeneration(key[1], generation, current)
        self._generations[key] = generation
        if (commit := self._commits.get(key)) is not None:
            self._commits[key] = replace(commit, generation=generation)

    def release(self, consumer: str, topic: TopicIdentity) -> None:
        """End the use of an offset; see `OffsetStore.release`."""
        with self._lock:
            self._claimed.discard((check_consumer_name(consumer), topic.label))

    def commits(self, consumer: str | None = None) -> Sequence[Commit]:
        """Return commits; see `OffsetStore.commits`."""
        with self._lock:
            keys = sorted(key for key in self._commits if consumer in {None, key[0]})
            return [self._commits[key] for key in keys]

    def forget(self, consumer: str, topic: TopicIdentity) -> bool:
        """Remove a commit; see `OffsetStore.forget`."""
        with self._lock:
            key = check_consumer_name(consumer), topic.label
            self._generations.pop(key, None)
            return self._commits.pop(key, None) is not None

    def close(self) -> None:
        """Release everything; the commits stay."""
        with self._lock:
            self._claimed.clear()
