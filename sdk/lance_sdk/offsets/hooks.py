"""Hooks after a commit, around any store."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from lance_sdk.offsets.contract import Commit, OffsetStore, TopicIdentity

__all__ = ["AfterCommit", "HookedStore"]

AfterCommit: TypeAlias = Callable[[Commit, Commit | None], object]
"""Called with a commit that was kept, and the one before it, as far as this object knows."""

_log = logging.getLogger("lance_sdk.offsets")


class HookedStore:
    """Calls hooks after every commit that was kept; satisfies `OffsetStore`.

    A hook cannot undo a commit. One that raises is logged, once, and counted, and the others
    are called all the same.

    Args:
        store: where the offsets are kept.
        hooks: called in this order, in the thread that commits.

    Attributes:
        failures: how often a hook raised.
    """

    def __init__(self, store: OffsetStore, hooks: Iterable[AfterCommit]) -> None:
        self._store = store
        self._hooks = tuple(hooks)
        self._last: dict[tuple[str, str], Commit] = {}
        self._told: set[int] = set()
        self.failures = 0

    def __repr__(self) -> str:
        return f"<HookedStore {self._store!r} hooks={len(self._hooks)} failures={self.failures}>"

    def claim(self, consumer: str, topic: TopicIdentity, generation: int = 0) -> Commit | None:
        """Begin to use an offset; see `OffsetStore.claim`."""
        commit = self._store.claim(consumer, topic, generation)
        if commit is not None:
            self._last[consumer, topic.label] = commit
        return commit

    def save(self, commit: Commit) -> None:
        """Keep a commit, then call the hooks; see `OffsetStore.save`."""
        self._store.save(commit)
        key = commit.consumer, commit.topic.label
        before, self._last[key] = self._last.get(key), commit
        for number, hook in enumerate(self._hooks):
            try:
                hook(commit, before)
            except Exception as error:  # noqa: BLE001 - user code may raise anything
                self._failed(number, error)

    def _failed(self, number: int, error: Exception) -> None:
        self.failures += 1
        if number not in self._told:
            self._told.add(number)
            text = "the hook %r raised after a commit; the commit stands"
            _log.error(text, self._hooks[number], exc_info=error)

    def release(self, consumer: str, topic: TopicIdentity) -> None:
        """End the use of an offset; see `OffsetStore.release`."""
        self._last.pop((consumer, topic.label), None)
        self._store.release(consumer, topic)

    def commits(self, consumer: str | None = None) -> Sequence[Commit]:
        """Return commits; see `OffsetStore.commits`."""
        return self._store.commits(consumer)

    def forget(self, consumer: str, topic: TopicIdentity) -> bool:
        """Remove a commit; see `OffsetStore.forget`."""
        self._last.pop((consumer, topic.label), None)
        return self._store.forget(consumer, topic)

    def close(self) -> None:
        """Close the store."""
        self._store.close()
