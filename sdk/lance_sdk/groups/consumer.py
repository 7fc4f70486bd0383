"""Records out of the topics that a group gives to this member, for threads."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, Final, Literal, Unpack

from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.arguments.unit_parsing import Duration
from lance_sdk._api.deadlines import deadline_after
from lance_sdk._api.lifecycle import Lifecycle
from lance_sdk._errors.base import LanceError
from lance_sdk.config import ConsumerConfig
from lance_sdk.errors import DeadlineExceeded
from lance_sdk.groups._member.factory import build_member
from lance_sdk.groups._member.member_reader import MemberReader
from lance_sdk.groups._member.membership import LONGEST_WAIT, Membership, SeekTarget, Topic
from lance_sdk.groups._member.reader import TopicReader
from lance_sdk.groups._member.rebalance_listener import RebalanceListener
from lance_sdk.groups._member.settings import OnAssigned, OnGone, check_settings
from lance_sdk.groups._member.wakeup import Wakeup
from lance_sdk.groups._protocol.membership import Change, CommitCall
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_sdk.options import ClientOptions, ConsumerOptions
from lance_sdk.types import Record, RecordBatch
from lance_sdk.url import URL

__all__ = ["GroupConsumer"]

_log = logging.getLogger("lance_sdk.groups")
_CLOSING: Final = 2.0
"""Seconds that closing the connection to the topics may take."""


@shows_options(ConsumerConfig)
class GroupConsumer(Membership, Lifecycle):
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
        topics: names or numbers of the topics that this member can read; the name of a
            partitioned topic stands for its partitions, also for those that are added later.
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
        max_poll_records: most records that a batch of `poll` or `batches` has; 0 leaves batches
            as they arrive.
        refresh_interval: seconds between two looks for partitions that were added; the member
            joins again for them, and reads from their beginning where ``start`` is the end.
            With ``protocol="text"`` there is none: open the members again.
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
        max_poll_records: int = 0,
        refresh_interval: Duration = 30.0,
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
            max_poll_records=max_poll_records,
            refresh_interval=refresh_interval,
            protocol=protocol,
            options=options,
        )
        about: Mapping[str, Any] = coordinator_options or {}
        self._core, self._member = build_member(coordinator, self._settings, about)
        super().__init__(self._core)
        self._rebalance = RebalanceListener(
            self._name, self._settings, on_assigned, on_revoked, on_lost
        )
        self._reading = MemberReader(self._settings)
        self._reader = TopicReader(self._settings.server, self._settings.options)
        self._starts: dict[int, SeekTarget] = {}
        self._news = Wakeup()
        self._armed: tuple[object, object] = (None, None)
        self._pending: list[CommitCall] = []

    # Records

    def __iter__(self) -> Iterator[Record]:
        """Yield records of all topics; ends with ``stop_at_end`` when all are at their end.

        Raises:
            GroupRefused: the coordinator does not let this member in.
            ConsumeError: a topic cannot be consumed from here.
            UsageError: the consumer is not open.
        """
        reading = self._reading
        reading.resume()
        while True:
            records = reading.records
            for record in records:
                reading.note(record)
                yield record
                if self._member.changes or self._commit_due():
                    self._attend()
                if reading.records is not records:
                    break  # the topic went to somebody else, or the application sought
            else:
                if self._next(None) is None:
                    return

    def batches(self) -> Iterator[RecordBatch]:
        """Yield records as batches, the faster way; ends and raises as iteration does."""
        while (batch := self.poll()) is not None:
            yield batch

    def poll(
        self, timeout: float | None = None, *, max_records: int | None = None
    ) -> RecordBatch | None:
        """Return the next records of some topic as a batch.

        Args:
            timeout: seconds to wait for some; by default until there are some.
            max_records: most records in the batch; by default ``max_poll_records``.

        Returns:
            The batch; None when the time ran out, or at the end of all with ``stop_at_end``.

        Raises:
            GroupRefused: the coordinator does not let this member in.
            CoordinatorLost: it was not heard of for a session timeout.
            ConsumeError: a topic cannot be read on; see `errors`.
            UsageError: the consumer is not open.
        """
        self._attend()
        most = self._limit(max_records)
        batch = self._reading.rest()
        if batch is None:
            batch = self._next(timeout)
        return None if batch is None else self._reading.whole(self._piece(batch, most))

    def _next(self, timeout: float | None) -> RecordBatch | None:
        deadline = deadline_after(LONGEST_WAIT if timeout is None else timeout)
        while True:
            self._news.clear()
            self._attend()
            self._arm()
            found = self._reader.take(self._reading.taken)
            if found is not None:
                topic, batch = found
                return self._reading.hand_over(topic.id, batch)
            now = monotonic()
            if self._reader.look(lambda core: core.ended):
                return None
            if timeout is not None and now >= deadline:
                return None
            if not self._news.wait(min(deadline, self._attention_at(now)) - now):
                self._reader.wake()  # Ctrl-C may have come between a change and the wake-up
                self._driver.wake()

    def _arm(self) -> None:
        """Have the waiting end when the member has a change to tell, or records have come."""
        with self._driver.lock:
            self._driver.check()
            gate = self._member.changes.gate()
        before, reading = self._armed
        if gate is not before and not self._driver.add_callback(gate, self._news.wake):
            self._news.wake()
        self._armed = gate, self._reader.arm(self._news.wake, reading)
        if self._member.changes:
            self._news.wake()

    # Topics come and go

    def seek(self, topic: Topic, where: SeekTarget) -> None:
        """Go on from somewhere else in one topic; also in ``on_assigned``, and after its error.

        Args:
            topic: one of the assigned topics, or its name.
            where: ``beginning``, ``end``, an ``offset`` or ``next_offset`` of a record, or a
                datetime with a time zone (AMB-37).

        Raises:
            ConfigError: when it is none of these.
            UsageError: the topic is not assigned to this member.
        """
        self._move(topic, where)

    def pause(self, *topics: Topic) -> None:
        """Hand nothing of these topics out and fetch nothing until `resume`.

        The member keeps them, and heartbeats go on. A topic that goes to somebody else is not
        paused there, nor when it comes back.

        Args:
            *topics: assigned topics, or their names.

        Raises:
            UsageError: one is not assigned to this member.
        """
        self._pause(topics)

    def resume(self, *topics: Topic) -> None:
        """Go on with paused topics; with others it does nothing.

        Args:
            *topics: assigned topics, or their names.

        Raises:
            UsageError: one is not assigned to this member.
        """
        self._resume(topics)

    def lag(self) -> dict[TopicIdentity, int]:
        """Return the bytes between position and end of each assigned topic, in one round trip.

        Raises:
            DeadlineExceeded: the server did not answer within ``request_timeout``.
            UsageError: the consumer is not open.
        """
        self._driver.check()
        return self._lags(self._reader.ends(self.assignment))

    def _attend(self) -> None:
        """Do what is due: changes of topics, and commits."""
        self._driver.check()
        self._reading.done()
        while True:
            with self._driver.lock:
                self._member.handle_timeout(monotonic())
                change = self._member.changes.first()
            if change is None:
                break
            self._apply(change, self._settings.rebalance_timeout)
        if places := self._places():
            self._submit_unattended(places)
        self._commit_automatically()
        if added := self._added():
            with self._driver.lock:
                self._member.extend(added)
            self._driver.wake()

    def _apply(self, change: Change, limit: float) -> None:
        """Tell the application of a change, and do what it says.

        What an exception cuts short is done again at the next look, but for the callback, until
        the change counts as applied.
        """
        with self._rebalance.timed(change, self._member.name):
            places = self._places() if change.revoked else []
            self._stop_reading((*change.lost, *change.revoked))
            self._reading.drop(change.lost)
            self._reading.begin(change.assigned)
            try:
                self._rebalance.tell(change)
                if change.revoked:
                    last = self._reading.last_words(change.revoked, places)
                    self._finish_commits(last, limit)
            finally:
                if self._rebalance.told is change:
                    self._applied(change)

    def _applied(self, change: Change) -> None:
        """Let go of topics that are given up, and read those that are new."""
        self._reading.drop(change.revoked)
        for each in change.assigned:
            self._begin_reading(each.topic)
        with self._driver.lock:
            self._member.applied(change)
        self._driver.wake()

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
        self._driver.check()
        self._reading.done()
        commits = self._reading.commits()
        if not commits:
            return
        call = self._submit(commits)
        if not self._driver.wait(call, timeout):
            raise DeadlineExceeded("the commit was not answered in time", maybe_applied=True)
        self._take_result(call)

    def _submit(self, commits: Sequence[Commit]) -> CommitCall:
        call = CommitCall(commits)
        with self._driver.lock:
            self._driver.check()
            self._member.submit(call, monotonic())
        self._driver.wake()
        self._reading.submitted(commits)
        return call

    def _submit_unattended(self, commits: Sequence[Commit]) -> None:
        call = self._submit(commits)
        self._pending.append(call)
        if not self._driver.add_callback(call, self._news.wake):
            self._news.wake()

    def _take_result(self, call: CommitCall) -> None:
        self._reading.committed(self._rebalance.recorded(call))
        if call.error is not None:
            raise call.error.with_traceback(None)

    def _commit_automatically(self) -> None:
        for call in [each for each in self._pending if each.done]:
            self._pending.remove(call)
            self._log_failure(call)
        if not self._pending and (commits := self._reading.automatic(monotonic())):
            self._submit_unattended(commits)

    def _finish_commits(self, commits: Sequence[Commit], limit: float) -> None:
        """Commit before topics are given up; a failure means that others read them again."""
        calls, self._pending = self._pending, []
        if commits:
            calls.append(self._submit(commits))
        until = monotonic() + limit
        for call in calls:
            self._driver.wait(call, max(0.0, until - monotonic()))
            self._log_failure(call)

    def _log_failure(self, call: CommitCall) -> None:
        try:
            self._take_result(call)
        except LanceError as error:
            _log.warning("%s: an automatic commit failed: %s", self._name, error)

    # Opening and closing

    def _begin(self) -> None:
        """Find the topics before joining the group."""
        self._reader.open()
        try:
            self._enter(self._reader.find_topics(self._settings.topics))
            if self._settings.store is not None:
                self._settings.store.open()
        except BaseException:
            self._reader.close(0.0)
            raise
        super()._begin()

    def _finish(self, until: float, *, failed: bool) -> float:
        """Give up every topic in good order, and leave."""
        self._reading.leave()
        topics = self._reading.topics
        if topics and self._driver.usage_error is None:
            change = Change(self.generation, revoked=topics)
            try:
                self._apply(change, until - monotonic())
            except Exception:  # noqa: BLE001 - a callback may raise anything; closing goes on
                _log.exception("%s: a callback raised while closing", self._name)
        return super()._finish(until, failed=failed)

    def _end(self, timeout: float) -> None:
        self._reader.close(min(timeout, _CLOSING))

    def __del__(self) -> None:
        super().__del__()
        if (reader := getattr(self, "_reader", None)) is not None:
            reader.let_go()
