"""Claims of a member in its offset store, when its coordinator keeps no offsets."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.events import Event, Notice, OffloadedTask
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_spec.messages.groups import GroupErrorCode


@dataclass(frozen=True, slots=True)
class Claim:
    """A topic whose offset is this member's.

    Attributes:
        commit: where the group stood; None where it never committed.
        generation: of what this member commits; the store refuses those of earlier owners.
    """

    commit: Commit | None
    generation: int


Claimed: TypeAlias = Mapping[int, Claim | LanceError]
"""By number the claim of each topic, or why there is none."""
Codes: TypeAlias = Mapping[int, GroupErrorCode]
"""By number what became of the commit of each topic."""


class ClaimStore(Protocol):
    """An offset store, as claims use it; all of it may take time."""

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        ...

    def claim(self, topics: Sequence[TopicIdentity], generation: int) -> Claimed:
        """Claim topics."""
        ...

    def save(self, commits: Sequence[Commit]) -> Codes:
        """Keep commits."""
        ...

    def release(self, topics: Sequence[TopicIdentity]) -> None:
        """End the use of topics."""
        ...

    def close(self) -> None:
        """End the use of everything."""
        ...


class Claims:
    """Claims topics as they are assigned, and lets go of those that are not held any more.

    Args:
        store: does what takes time.
        events: where its offloaded tasks collect.

    Attributes:
        held: claims by the number of the topic.
        wanted: numbers of topics that were assigned and are not told to the member yet: where a
            connection ends in between, their claims are there for the next answer.
        topics: what the member reads, by number.
        generation: of the last assignment that was told to the member in full; -1 where there
            is none.
    """

    def __init__(self, store: ClaimStore, events: list[Event]) -> None:
        self._store = store
        self._events = events
        self._claiming = False
        self._later: list[Callable[[float], None]] = []
        self.held: dict[int, Claim] = {}
        self.wanted: Collection[int] = ()
        self.topics: dict[int, TopicIdentity] = {}
        self.generation = -1

    def __repr__(self) -> str:
        return f"<Claims held={sorted(self.held)} claiming={self._claiming}>"

    def claim(
        self, topic_ids: Sequence[int], generation: int, then: Callable[[float], None]
    ) -> None:
        """Claim those topics that are not claimed yet, and go on; one claim at a time.

        Where connections end early the same topics are asked for again, while their first claim
        is under way: a second one would find them taken, by this member.
        """
        if self._claiming:
            self._later.append(partial(self._claim_rest, topic_ids, generation, then))
            return

        def done(result: Claimed | None, error: LanceError | None, now: float) -> None:
            self._claiming = False
            for topic_id in missing:
                claim = error if result is None else result[topic_id]
                if isinstance(claim, Claim):
                    self.held[topic_id] = claim
                else:
                    self._warn(self.topics[topic_id], claim)
            then(now)
            later, self._later = self._later, []
            for each in later:
                each(now)

        missing = [topic_id for topic_id in topic_ids if topic_id not in self.held]
        self._claiming = True
        topics = [self.topics[topic_id] for topic_id in missing]
        self._do(partial(self._store.claim, topics, generation), done)

    def _claim_rest(
        self,
        topic_ids: Sequence[int],
        generation: int,
        then: Callable[[float], None],
        now: float,
    ) -> None:
        if all(topic_id in self.held for topic_id in topic_ids):
            then(now)
        else:
            self.claim(topic_ids, generation, then)

    def save(self, commits: Sequence[Commit], then: Callable[[Codes, float], None]) -> None:
        """Keep commits, and tell what became of each."""

        def done(result: Codes | None, error: LanceError | None, now: float) -> None:
            del error  # the store tells failures in its codes
            codes: Codes = {} if result is None else result
            for commit in commits:
                topic_id = commit.topic.id
                if topic_id in self.held and codes.get(topic_id) is GroupErrorCode.NONE:
                    self.held[topic_id] = Claim(commit, commit.generation)
            then(codes, now)

        self._do(partial(self._store.save, commits), done)

    def keep(self, held: Collection[int]) -> None:
        """Let go of what is not held any more, so that others can have it."""
        if self._claiming:
            return  # what is being claimed is held only after that
        kept = {*held, *self.wanted}
        gone = [topic_id for topic_id in self.held if topic_id not in kept]
        for topic_id in gone:
            del self.held[topic_id]
        if gone:
            topics = [self.topics[topic_id] for topic_id in gone]
            self._do(partial(self._store.release, topics), self._released)

    def _released(self, result: object, error: LanceError | None, now: float) -> None:
        del result, now
        if error is not None:
            self._events.append(
                Notice(f"the offset store did not release its claim: {error}", "group")
            )

    def close(self) -> None:
        """Let go of everything; asked for again until it is done."""
        if not self._store.closed:
            self._do(self._store.close, self._released)

    def _warn(self, topic: TopicIdentity, why: LanceError | None) -> None:
        text = f"topic {topic.label!r} cannot be begun yet, its offset is not to be had: {why}"
        self._events.append(Notice(text, "group"))

    def _do(
        self, work: Callable[[], Any], done: Callable[[Any, LanceError | None, float], None]
    ) -> None:
        self._events.append(OffloadedTask(work, done))
