"""The offset store of a member whose coordinator keeps no offsets; all of it may take time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import time_ns
from typing import Any

from lance_sdk._api.offset_store import sync_store
from lance_sdk._errors.base import LanceError
from lance_sdk.groups._protocol.position_claims import Claim
from lance_sdk.offsets.contract import MAX_GENERATION, Commit, OffsetStore, TopicIdentity
from lance_sdk.offsets.errors import StaleGeneration, StoreUnavailable
from lance_spec.messages.groups import GroupErrorCode


class OffsetStoreAdapter:
    """Satisfies `lance_sdk.groups._protocol.position_claims.ClaimStore`.

    Args:
        group: name of the group, under which its members share offsets.
        offsets: the ``offsets`` option: a URL, or a store, which the caller closes.
    """

    def __init__(self, group: str, offsets: Any) -> None:
        self._group = group
        self._offsets = offsets
        self._store: OffsetStore | None = None
        self._claimed: dict[int, TopicIdentity] = {}
        self.closed = False

    def __repr__(self) -> str:
        return f"<OffsetStoreAdapter {self._group!r} {self._store!r} closed={self.closed}>"

    def open(self) -> None:
        """Open the store, before anything else.

        Raises:
            ConfigError: there is no such kind of store, or it is one for tasks.
            StoreUnavailable: it cannot be opened.
        """
        self._store = sync_store(self._offsets)

    def claim(
        self, topics: Sequence[TopicIdentity], generation: int
    ) -> Mapping[int, Claim | LanceError]:
        """Claim topics; return by number the claim of each, or why there is none."""
        return {topic.id: self._claim(topic, generation) for topic in topics}

    def _claim(self, topic: TopicIdentity, generation: int) -> Claim | LanceError:
        try:
            claim = self._claim_anew(topic, generation)
        except LanceError as error:
            return error
        except Exception as error:  # noqa: BLE001 - a custom store may raise anything
            return StoreUnavailable(f"claiming {topic.label!r} failed: {error!r}")
        self._claimed[topic.id] = topic
        return claim

    def _claim_anew(self, topic: TopicIdentity, generation: int) -> Claim:
        store = self._open
        try:
            return Claim(store.claim(self._group, topic, generation), generation)
        except StaleGeneration as stale:
            # The coordinator began to count again: the store's own count fences off who was before.
            fence = min(stale.current + 1, MAX_GENERATION)
            return Claim(store.claim(self._group, topic, fence), fence)

    def save(self, commits: Sequence[Commit]) -> Mapping[int, GroupErrorCode]:
        """Keep commits; return by number what became of each."""
        return {commit.topic.id: self._save(commit) for commit in commits}

    def _save(self, commit: Commit) -> GroupErrorCode:
        try:
            self._open.save(replace(commit, committed_at_ns=time_ns()))
        except StaleGeneration:
            return GroupErrorCode.STALE_GENERATION
        except Exception:  # noqa: BLE001 - a custom store may raise anything
            return GroupErrorCode.STORE_FAILED
        return GroupErrorCode.NONE

    def release(self, topics: Sequence[TopicIdentity]) -> None:
        """End the use of topics."""
        for topic in topics:
            if self._claimed.pop(topic.id, None) is not None and self._store is not None:
                self._store.release(self._group, topic)

    def close(self) -> None:
        """End the use of every topic, and close the store if it was opened here."""
        self.closed = True
        store, self._store = self._store, None
        if store is None:
            return
        if isinstance(self._offsets, str):
            store.close()
            return
        for topic in self._claimed.values():
            store.release(self._group, topic)

    @property
    def _open(self) -> OffsetStore:
        assert self._store is not None, "it was opened before the session"
        return self._store
