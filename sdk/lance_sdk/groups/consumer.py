"""Records out of the topics that a group gives to this member, for threads."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Unpack

from lance_sdk._face import Face
from lance_sdk._tree import LanceError
from lance_sdk._units import Duration
from lance_sdk.client import Client
from lance_sdk.errors import DeadlineExceeded
from lance_sdk.groups._assembly import build_member
from lance_sdk.groups._core.membership import Change, CommitCall
from lance_sdk.groups._feed import Feed, TopicConsumer
from lance_sdk.groups._inbox import Inbox
from lance_sdk.groups._membership import LONGEST_WAIT, Membership
from lance_sdk.groups._progress import Resume
from lance_sdk.groups._reading import Reading
from lance_sdk.groups._settings import GroupSettings, OnAssigned, OnGone, check_settings
from lance_sdk.groups._telling import Telling
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_sdk.options import ClientOptions, ConsumerOptions
from lance_sdk.types import Record, RecordBatch
from lance_sdk.url import URL

if TYPE_CHECKING:
    from lance_sdk._core.outcome import Outcome

__all__ = ["GroupConsumer"]

_log = logging.getLogger("lance_sdk.groups")


class GroupConsumer(Membership, Face):
    """Reads the topics that a group gives to this member, and commits to the group.

    ::

        with GroupConsumer(
            "lance://localhost:1992",
            group="billing",
            topics=["orders", "refunds"],
            coordinator="lance://localhost:19920",
        ) as consumer:
            for record in consumer:
                print(record.topic, record.value)

    Heartbeats are sent by a thread of its own, however long the application takes. Topics come
    and go where the application waits for records: there, and nowhere else, the callbacks are
    called. One thread reads.

    Args:
        url: where the topics are, see `lance_sdk.url`; a topic in it is left aside.
        group: name of the group.
        topics: names or numbers of the topics that this member can read.
        coordinator: where the group's `Coordinator` is.
        member: name in the group; by default the coordinator makes one up. A program that keeps
            its name gets its topics back when it is restarted within its session timeout.
        strategy: ``range``, ``round-robin``, ``sticky`` or one of the coordinator's own; by
            default the group's.
        session_timeout: silence after which the coordinator gives the topics to others.
        rebalance_timeout: time that giving topics up may take, from the moment the coordinator
            says so; what is not released then is lost.
        on_assigned: called with the topics that are new, before their first record.
        on_revoked: called with the topics that go to others in good order; what it commits counts.
        on_lost: called with the topics that others may have already.
        metadata: bytes that a custom strategy wants to know.
        protocol: ``text`` for a published coordinator, which needs ``offsets``, a store that all
            members of the group reach, and has no token, strategy or metadata.
        coordinator_options: keywords of the connection to the coordinator, as `Client` has
            them; the timeouts are those of ``options`` where nothing else is said.
        **options: the fields of `lance_sdk.config.ConsumerConfig`, for each topic's consumer;
            ``start`` counts where the group has no commit. ``auto_commit`` and
            ``commit_interval`` are the group's.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """

    def __init__(
        self,
        url: str | URL,
        *,
        group: str,
        topics: Sequence[str | int],
        coordinator: str | URL,
        member: str = "",
        strategy: str = "",
        session_timeout: Duration = 30.0,
        rebalance_timeout: Duration = 60.0,
        on_assigned: OnAssigned | None = None,
        on_revoked: OnGone | None = None,
        on_lost: OnGone | None = None,
        metadata: bytes = b"",
        protocol: Literal["lwp", "text"] = "lwp",
        coordinator_options: ClientOptions | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        self._settings = check_settings(
            url,
            group=group,
            topics=topics,
            member=member,
            strategy=strategy,
            session_timeout=session_timeout,
            rebalance_timeout=rebalance_timeout,
            metadata=metadata,
            protocol=protocol,
            options=options,
        )
        about: Mapping[str, Any] = coordinator_options or {}
        self._core, self._member = build_member(coordinator, self._settings, about)
        super().__init__(self._core)
        self._telling = Telling(self._name, self._settings, on_assigned, on_revoked, on_lost)
        self._reading = Reading(self._settings)
        self._feeds: dict[int, Feed] = {}
        self._ended: set[int] = set()
        self._starts: dict[int, int | str] = {}
        self._inbox = Inbox()
        self._armed: Outcome | None = None
        self._pending: CommitCall | None = None

    # Records

    def __iter__(self) -> Iterator[Record]:
        """Yield records of all topics; ends with ``stop_at_end`` when all are at their end.

        Raises:
            GroupRefused: the coordinator does not let this member in.
            ConsumeError: a topic cannot be consumed from here.
            UsageError: the consumer is not open.
        """
        reading = self._reading
        while True:
            records = reading.records
            for record in records:
                reading.note(record)
                yield record
                if self._member.changes or monotonic() >= reading.commit_at:
                    self._attend()
                if reading.records is not records:
                    break  # the topic went to somebody else, or the application sought
            else:
                if self._next(None, whole=False) is None:
                    return

    def batches(self) -> Iterator[RecordBatch]:
        """Yield records as batches, the faster way; ends and raises as iteration does."""
        while (batch := self.poll()) is not None:
            yield batch

    def poll(self, timeout: float | None = None) -> RecordBatch | None:
        """Return the next records of some topic as a batch.

        Args:
            timeout: seconds to wait for some; by default until there are some.

        Returns:
            The batch; None when the time ran out, or at the end of all with ``stop_at_end``.

        Raises:
            GroupRefused: the coordinator does not let this member in.
            ConsumeError: a topic cannot be consumed from here.
            UsageError: the consumer is not open.
        """
        self._attend()
        return self._reading.rest() or self._next(timeout, whole=True)

    def _next(self, timeout: float | None, *, whole: bool) -> RecordBatch | None:
        deadline = monotonic() + (LONGEST_WAIT if timeout is None else timeout)
        while True:
            self._attend()
            if self._at_end:
                return None
            now = monotonic()
            found = self._receive(min(deadline, self._attention_at(now)) - now)
            if found is not None:
                feed, batch = found
                self._reading.hand_over(feed.topic.id, batch, whole=whole)
                return batch
            if timeout is not None and monotonic() >= deadline and self._inbox.empty:
                return None

    def _receive(self, timeout: float) -> tuple[Feed, RecordBatch] | None:
        """Take a delivery; None when it was something else, or the time ran out."""
        self._arm()
        if (item := self._inbox.take(timeout)) is None:
            return None
        feed, delivery = item
        if self._feeds.get(feed.topic.id) is not feed:
            return None  # the topic went to somebody else
        if isinstance(delivery, Exception):
            raise delivery
        if delivery is None:
            self._ended.add(feed.topic.id)
            return None
        feed.taken()
        return feed, delivery

    def _arm(self) -> None:
        """Have the inbox wake up when the member has a change to tell."""
        with self._pump.lock:
            self._pump.check()
            gate = self._member.changes.gate()
        if gate is self._armed:
            return
        self._armed = gate
        if not self._pump.add_callback(gate, self._inbox.wake) or self._member.changes:
            self._inbox.wake()

    # Topics come and go

    def seek(self, topic: TopicIdentity, where: int | Literal["beginning", "end"]) -> None:
        """Go on from somewhere else in one topic; also in ``on_assigned``.

        Args:
            topic: one of the assigned topics.
            where: ``beginning``, ``end``, or an ``offset`` or ``next_offset`` of a record.

        Raises:
            ConfigError: when it is none of these.
            UsageError: the topic is not assigned to this member.
        """
        self._move(topic, where)
        self._starts[topic.id] = where
        if topic.id in self._feeds:
            self._feeds.pop(topic.id).stop()
            self._feed(topic)

    def _attend(self) -> None:
        """Do what is due: changes of topics, and the automatic commit."""
        self._pump.check()
        self._reading.done()
        while True:
            with self._pump.lock:
                change = self._member.changes.take()
            if change is None:
                break
            self._apply(change)
        self._commit_automatically()

    def _apply(self, change: Change) -> None:
        with self._telling.timed(change, self._member.name):
            self._stop_feeds(change.lost)
            self._reading.drop(change.lost)
            self._telling.lost(change.lost)
            self._give_up(change.revoked, self._settings.rebalance_timeout)
            self._reading.begin(change.assigned)
            try:
                self._telling.assigned(change.assigned)
            finally:
                for each in change.assigned:
                    self._feed(each.topic)

    def _give_up(self, topics: Sequence[TopicIdentity], limit: float) -> None:
        """Finish topics in good order."""
        if not topics:
            return
        self._stop_feeds(topics)
        try:
            self._telling.revoked(topics)
            self._finish_commits(self._reading.last_words(topics), limit)
        finally:
            self._reading.drop(topics)
            with self._pump.lock:
                self._member.release(topics)
            self._pump.wake()

    def _feed(self, topic: TopicIdentity) -> None:
        progress = self._reading.progress.get(topic.id)
        if progress is None:
            return
        moved = self._starts.pop(topic.id, None)
        commit = None if moved is not None else progress.resume_at
        resume = Resume(commit, self._settings.start if moved is None else moved, topic)
        make = partial(_consumer, self._settings, topic)
        feed = Feed(topic, resume, make, self._inbox.deliver)
        self._feeds[topic.id] = feed
        self._ended.discard(topic.id)
        feed.start()

    def _stop_feeds(self, topics: Sequence[TopicIdentity]) -> None:
        for topic in topics:
            feed = self._feeds.pop(topic.id, None)
            self._ended.discard(topic.id)
            if feed is not None:
                feed.stop()

    # Commits

    def commit(self, timeout: float | None = None) -> None:
        """Commit everything that was handed out, and wait until it is durable.

        Args:
            timeout: seconds to wait; by default ``request_timeout``.

        Raises:
            CommitRefused: some topics belong to others now, or could not be stored.
            GroupRefused: the coordinator refused.
            DeadlineExceeded: no answer in time; it may have been recorded.
            UsageError: the consumer is not open.
        """
        self._pump.check()
        self._reading.done()
        commits = self._reading.commits()
        if not commits:
            return
        call = self._submit(commits)
        if not self._pump.wait(call, timeout):
            raise DeadlineExceeded("the commit was not answered in time", maybe_applied=True)
        self._take_result(call)

    def _submit(self, commits: Sequence[Commit]) -> CommitCall:
        call = CommitCall(commits)
        with self._pump.lock:
            self._pump.check()
            self._member.submit(call, monotonic())
        self._pump.wake()
        return call

    def _take_result(self, call: CommitCall) -> None:
        self._reading.committed(self._telling.recorded(call))
        if call.error is not None:
            raise call.error.with_traceback(None)

    def _commit_automatically(self) -> None:
        if self._pending is not None:
            if not self._pending.done:
                return
            pending, self._pending = self._pending, None
            self._log_failure(pending)
        if commits := self._reading.automatic(monotonic()):
            self._pending = call = self._submit(commits)
            if not self._pump.add_callback(call, self._inbox.wake):
                self._inbox.wake()

    def _finish_commits(self, commits: Sequence[Commit], limit: float) -> None:
        """Commit before topics are given up; a failure means that others read them again."""
        if commits:
            call = self._submit(commits)
            self._pump.wait(call, max(0.0, limit))
            self._log_failure(call)

    def _log_failure(self, call: CommitCall) -> None:
        try:
            self._take_result(call)
        except LanceError as error:
            _log.warning("%s: an automatic commit failed: %s", self._name, error)

    # Opening and closing

    def _begin(self) -> None:
        """Find the topics before joining the group."""
        with Client(self._settings.server, **self._settings.client_options) as client:
            found = [client.get_topic(topic) for topic in self._settings.topics]
        self._member.enter(self._settings.wishes([TopicIdentity.of(topic) for topic in found]))
        if self._settings.keeper is not None:
            self._settings.keeper.open()
        super()._begin()

    def _finish(self, until: float, *, failed: bool) -> float:
        """Give up every topic in good order, and leave."""
        self._reading.leave()
        topics = self._reading.topics
        self._stop_feeds(topics)
        if topics and self._pump.guard is None:
            change = Change(self.generation, revoked=topics)
            try:
                with self._telling.timed(change, self.member):
                    self._give_up(topics, until - monotonic())
            except Exception:  # noqa: BLE001 - a callback may raise anything; closing goes on
                _log.exception("%s: a callback raised while closing", self._name)
        return super()._finish(until, failed=failed)

    def __del__(self) -> None:
        super().__del__()
        for feed in getattr(self, "_feeds", {}).values():
            feed.let_go()


def _consumer(settings: GroupSettings, topic: TopicIdentity, start: object) -> TopicConsumer:
    return TopicConsumer(settings.topic_url(topic), **settings.consumer_options(start))
