"""State and decisions of a reader of several topics, without waiting: the same for both APIs."""

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from lance_sdk._api.consumer_core import as_start
from lance_sdk._errors.base import LanceError
from lance_sdk.errors import TopicDeleted, TopicNotFound, UsageError
from lance_sdk.groups._member.topics_settings import fitting, new_topics, wholes_of
from lance_sdk.groups._protocol.multi_fetcher import MultiFetcher
from lance_sdk.groups.stats import GroupStats
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_sdk.types import RecordBatch

if TYPE_CHECKING:
    from lance_sdk._protocol.request_tracker import PendingRequest
    from lance_sdk.groups._member.member_reader import MemberReader
    from lance_sdk.groups._member.progress import TopicProgress
    from lance_sdk.groups._member.rebalance_listener import RebalanceListener
    from lance_sdk.groups._member.settings import GroupSettings
    from lance_sdk.groups._protocol.member import MemberHandler
    from lance_sdk.groups._protocol.membership import CommitCall
    from lance_spec.bodies import TopicInfo

_log = logging.getLogger("lance_sdk.groups")

LONGEST_WAIT: Final = 3600.0
"""Seconds; every wait ends, and is begun again."""
Topic: TypeAlias = TopicIdentity | str
"""A topic that is assigned to this member, or its name."""
SeekTarget: TypeAlias = int | datetime | Literal["beginning", "end"]
"""An ``offset`` or ``next_offset`` of a record, a time, or an end of the log."""
Work: TypeAlias = Callable[[MultiFetcher, float], object]


class ReadingSettings(Protocol):
    """What reading several topics depends on."""

    @property
    def start(self) -> Any:
        """Where a topic begins that has no commit."""
        ...

    @property
    def max_poll_records(self) -> int:
        """Most records of one batch; 0 leaves batches as they arrive."""
        ...

    @property
    def refresh_interval(self) -> float:
        """Seconds between two looks for topics that came later."""
        ...


class TopicsView:
    """Several topics that are read, beside what waits: positions, pauses and errors of each."""

    _settings: "ReadingSettings"
    _reading: "MemberReader"
    _reader: Any
    _starts: dict[int, SeekTarget]
    _pending: "list[CommitCall]"
    _news: Any
    _wholes: frozenset[str] = frozenset()
    _refresh_at = math.inf
    _listing: "PendingRequest | None" = None
    _late: frozenset[int] = frozenset()
    _paused_early: frozenset[TopicIdentity] = frozenset()
    """Topics that ``on_assigned`` paused before their reading began."""

    @property
    def assignment(self) -> tuple[TopicIdentity, ...]:
        """The topics that are read now, by name."""
        return self._reading.topics

    @property
    def errors(self) -> Mapping[TopicIdentity, LanceError]:
        """Why topics cannot be read on.

        Each is raised by every look at records until the application helps: `seek` goes on
        elsewhere, `pause` leaves the topic alone. The others are not touched by it.
        """
        found: dict[TopicIdentity, LanceError] = self._reader.look(MultiFetcher.errors)
        return found

    @property
    def paused(self) -> tuple[TopicIdentity, ...]:
        """The topics that are paused."""
        return (*self._reader.look(MultiFetcher.paused), *self._paused_early)

    def position(self, topic: Topic) -> int | None:
        """Return where the next record of a topic begins that the application has not got.

        Args:
            topic: one of the assigned topics, or its name.

        Returns:
            A byte offset; None while it is looked for, as with ``start="end"``.

        Raises:
            UsageError: the topic is not assigned to this consumer.
        """
        topic_id = self._assigned(topic).id
        known = self._reading.position(topic_id)
        return self._reader.look(lambda core: core.position(topic_id)) if known is None else known

    def committed(self, topic: Topic) -> int | None:
        """Return the last commit in a topic, as far as it is known here.

        Args:
            topic: one of the assigned topics, or its name.

        Returns:
            A byte offset; None where there is none.

        Raises:
            UsageError: the topic is not assigned to this consumer.
        """
        return self._reading.progress[self._assigned(topic).id].committed

    def _assigned(self, topic: Topic) -> TopicIdentity:
        """Return one of the assigned topics.

        Raises:
            UsageError: it is none of them.
        """
        for each in self._reading.progress.values():
            if topic in {each.topic, each.topic.label}:
                return each.topic
        label = topic if isinstance(topic, str) else topic.label
        raise UsageError(f"topic {label!r} is not assigned to this consumer now")

    def _attention_at(self, now: float) -> float:
        """Return when to look up although there is no news."""
        if not self._pending and self._reading.automatic_due:
            return min(self._refresh_at, max(self._reading.commit_at, now))
        return min(self._refresh_at, now + LONGEST_WAIT)

    def _look_around(self) -> "list[TopicInfo] | None":
        """Return the topics of the server now and then; None while there is no answer."""
        if self._listing is None:
            if monotonic() < self._refresh_at:
                return None
            self._listing = self._reader.ask_for_topics(self._news.wake)
            self._refresh_at = math.inf
        if not self._listing.done:
            return None
        told, self._listing = self._listing, None
        self._refresh_at = monotonic() + self._settings.refresh_interval
        if told.error is not None:
            if not told.error.retryable:
                raise told.error.with_traceback(None)
            _log.warning("%r: no look for new topics: %s", self, told.error)
        found: list[TopicInfo] | None = told.value
        return found

    def _begin_reading(self, topic: TopicIdentity) -> None:
        """Begin to read a topic, where it is assigned and not read yet."""
        progress = self._reading.progress.get(topic.id)
        if progress is None or self._reader.look(lambda core: core.reads(topic.id)):
            return
        begin, paused = self._begin_at(topic, progress), topic in self._paused_early

        def work(core: MultiFetcher, now: float) -> None:
            begin(core, now)
            if paused:
                core.pause(topic.id, None, now)

        self._reader.do(work)
        self._starts.pop(topic.id, None)
        self._paused_early -= {topic}

    def _places(self) -> list[Commit]:
        """Return commits of places that were looked for, and are not committed yet."""
        if found := self._reader.look(MultiFetcher.found):
            self._reading.found(found)
            self._reader.look(lambda core: core.noted(found))
        return self._reading.place_commits()

    def _begin_at(self, topic: TopicIdentity, progress: "TopicProgress") -> Work:
        """Return what begins to read a topic: where it was moved, after its commit, or anew."""
        moved = self._starts.get(topic.id)
        commit = progress.resume_at if moved is None else None
        where = self._start_of(topic) if moved is None else moved
        try:
            if commit is not None:
                commit.check_topic(topic)
                where = commit.offset
        except LanceError as error:
            failure = error  # belongs to this topic, and is raised where records are waited for
        else:
            return lambda core, now: core.add(topic, as_start(where), commit, now)

        def fail(core: MultiFetcher, now: float) -> None:
            core.add(topic, "beginning", None, now)
            core.fail(failure, topic.id)

        return fail

    def _start_of(self, topic: TopicIdentity) -> Any:
        """Return where a topic begins without a commit.

        All that is in one that came late was stored since: it is read from its beginning.
        """
        start = self._settings.start
        return "beginning" if start == "end" and topic.id in self._late else start

    def _gone(
        self, listed: "Sequence[TopicInfo]", named: Collection[str | int]
    ) -> list[TopicIdentity]:
        """Return topics that are deleted and read to their end, and that nobody named."""
        there = {topic.id for topic in listed}
        return [
            topic
            for topic, error in self.errors.items()
            if topic.id not in there
            and isinstance(error, TopicDeleted | TopicNotFound)
            and not {topic.id, topic.label} & set(named)
            and topic.label.rpartition("-")[0] not in self._wholes
        ]

    def _stop_reading(self, topics: Sequence[TopicIdentity]) -> None:
        def remove(core: MultiFetcher, now: float) -> None:
            for topic in topics:
                core.remove(topic.id, now)

        self._paused_early -= frozenset(topics)
        if topics and self._reader.usable:
            self._reader.do(remove)

    def _move(self, topic: Topic, where: SeekTarget) -> None:
        """Have reading go on elsewhere; also in ``on_assigned``, before it has begun."""
        identity, start = self._assigned(topic), as_start(where)
        self._reading.moved(identity.id, where if isinstance(where, int) else None)

        def seek(core: MultiFetcher, now: float) -> None:
            if core.reads(identity.id):
                core.seek(identity.id, start, now)
            else:
                self._starts[identity.id] = where

        self._reader.do(seek)

    def _pause(self, topics: Sequence[Topic]) -> None:
        for identity in [self._assigned(each) for each in topics]:
            self._reader.do(partial(self._pause_one, identity))

    def _pause_one(self, topic: TopicIdentity, core: MultiFetcher, now: float) -> None:
        """Pause a topic; also in ``on_assigned``, before its reading has begun."""
        if core.reads(topic.id):
            core.pause(topic.id, self._reading.give_back(topic.id), now)
        else:
            self._paused_early |= {topic}

    def _resume(self, topics: Sequence[Topic]) -> None:
        for identity in [self._assigned(each) for each in topics]:
            self._paused_early -= {identity}
            self._reader.do(partial(self._resume_one, identity.id))

    @staticmethod
    def _resume_one(topic_id: int, core: MultiFetcher, _now: float) -> None:
        if core.reads(topic_id):
            core.resume(topic_id)

    def _lags(self, ends: Mapping[int, int]) -> dict[TopicIdentity, int]:
        found = {}
        for topic in self.assignment:
            if topic.id in ends:
                position = self.position(topic)
                at = ends[topic.id] if position is None else position
                found[topic] = max(0, ends[topic.id] - at)
        return found

    def _piece(self, batch: RecordBatch, most: float) -> RecordBatch:
        """Hand out so many records, and put the others back."""
        if batch.count <= most:
            return batch
        topic_id, first, others = self._reading.split(int(most))
        self._reader.do(lambda core, _: [core.put_back(topic_id, each) for each in others])
        return first

    def _commit_due(self) -> bool:
        return monotonic() >= self._reading.commit_at

    def _limit(self, max_records: int | None) -> float:
        return max_records or self._settings.max_poll_records or math.inf


class Membership(TopicsView):
    """Base of `GroupConsumer` and `AsyncGroupConsumer`, beside what waits."""

    _core: Any
    _settings: "GroupSettings"
    _member: "MemberHandler"
    _rebalance: "RebalanceListener"
    _state: Any

    def _enter(self, found: "Sequence[TopicInfo]") -> None:
        """Ask for these topics; where some are partitions, also for those that come later."""
        self._member.enter(
            self._settings.subscription([TopicIdentity.of(topic) for topic in found])
        )
        self._wholes = wholes_of(found, self._settings.topics)
        if self._wholes and self._settings.store is None:  # the text protocol cannot carry it
            self._refresh_at = monotonic() + self._settings.refresh_interval

    def _added(self) -> tuple[TopicIdentity, ...]:
        """Return partitions that this member does not ask for yet."""
        found = fitting(self._look_around() or (), self._wholes, None)
        added = tuple(new_topics(found, self._member.topics))
        self._late |= {topic.id for topic in added}
        return added

    def __repr__(self) -> str:
        names = ",".join(topic.label for topic in self.assignment)
        who = f"{type(self).__name__} {self._settings.group}"
        return f"<{who} {self._state} {self._member!r} [{names}]>"

    @property
    def member(self) -> str:
        """The member's name in the group."""
        return self._member.name

    @property
    def generation(self) -> int:
        """The group's generation, as far as this member knows."""
        return self._member.generation

    def stats(self) -> GroupStats:
        """Return the counters as they stand now."""
        fetchers = self._reader.look(MultiFetcher.fetchers)
        told = self._rebalance
        return GroupStats(
            member=self.member,
            generation=self.generation,
            topics=len(self.assignment),
            records=sum(each.fetch_buffer.records for each in fetchers),
            fetched_bytes=sum(each.fetch_buffer.received_bytes for each in fetchers),
            buffered_bytes=sum(each.fetch_buffer.buffered for each in fetchers),
            fetches=sum(each.fetches for each in fetchers),
            pushes=sum(each.pushes for each in fetchers),
            commits=told.commits,
            failed_commits=told.failed_commits,
            rebalances=told.rebalances,
            server=self._reader.stats(),
            coordinator=self._core.stats(),
        )
