"""Tells callbacks and hooks about a member's topics: the same for both APIs, but for waiting."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lance_sdk._io.hook_runner import HookRunner
from lance_sdk.groups._member.settings import GroupSettings, OnAssigned, OnGone
from lance_sdk.groups._protocol.membership import Change, CommitCall
from lance_sdk.groups.errors import CommitRefused
from lance_sdk.hooks import CommitEvent, RebalanceEvent
from lance_sdk.offsets.contract import Commit


class RebalanceListener:
    """Calls what the application gave.

    Args:
        source: the client, for hooks.
        settings: of the member.
        on_assigned: told of new topics.
        on_revoked: told of topics that are given up.
        on_lost: told of topics that are gone.

    Attributes:
        commits: recorded, counted by topic.
        failed_commits: not recorded.
        rebalances: changes of topics.
        told: the last change that the application was told of.
    """

    def __init__(
        self,
        source: str,
        settings: GroupSettings,
        on_assigned: OnAssigned | None,
        on_revoked: OnGone | None,
        on_lost: OnGone | None,
    ) -> None:
        self._source = source
        self._group = settings.group
        self._hooks = HookRunner(settings.options.get("hooks", ()))
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._on_lost = on_lost
        self.commits = 0
        self.failed_commits = 0
        self.rebalances = 0
        self.told: Change | None = None

    def tell(self, change: Change) -> object:
        """Tell the application of a change, once; an async callback's awaitable is returned."""
        if self.told is change:
            return None
        callback, topics = self._of_kind(change)
        self.rebalances += 1
        self.told = change  # in the step before the call: Ctrl-C comes before both, or in the call
        return None if callback is None else callback(topics)

    def _of_kind(self, change: Change) -> tuple[Callable[[Any], object] | None, Sequence[Any]]:
        """Return the callback for a change, which is of one kind, and the topics."""
        if change.lost:
            return self._on_lost, change.lost
        if change.revoked:
            return self._on_revoked, change.revoked
        return self._on_assigned, change.assigned

    @contextmanager
    def timed(self, change: Change, member: str) -> Iterator[None]:
        """Tell the hooks of a change after it was applied."""
        began = time.monotonic()
        yield
        if self._hooks:
            event = RebalanceEvent(
                source=self._source,
                group=self._group,
                member=member,
                generation=change.generation,
                assigned=tuple(each.topic.label for each in change.assigned),
                revoked=tuple(topic.label for topic in change.revoked),
                lost=tuple(topic.label for topic in change.lost),
                seconds=time.monotonic() - began,
            )
            self._hooks.call("on_rebalance", event)

    def recorded(self, call: CommitCall) -> list[Commit]:
        """Return which commits of a call were recorded, and tell the hooks of all."""
        error = call.error
        refused = error.codes if isinstance(error, CommitRefused) else {}
        whole = error is not None and not refused
        kept = []
        for commit in call.commits:
            failed = whole or commit.topic.label in refused
            self.failed_commits += failed
            self.commits += not failed
            if not failed:
                kept.append(commit)
            if self._hooks:
                self._hooks.call("on_commit", self._event(commit, error if failed else None))
        return kept

    def _event(self, commit: Commit, error: Exception | None) -> CommitEvent:
        return CommitEvent(
            source=self._source,
            topic=commit.topic.label,
            consumer=self._group,
            offset=commit.offset,
            seconds=max(0.0, (time.time_ns() - commit.committed_at_ns) / 1e9),
            error=error,
            generation=commit.generation,
        )
