"""Records out of the topics that a group gives to this member, for tasks."""
# ruff: noqa: ASYNC109 - both APIs take the same parameters

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from inspect import isawaitable
from time import monotonic
from typing import Any, Final, Literal, Unpack

from anyio import to_thread
from anyio.lowlevel import checkpoint

from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.arguments.unit_parsing import Duration
from lance_sdk._api.deadlines import deadline_after
from lance_sdk._errors.base import LanceError
from lance_sdk.aio._iteration import UntilNone
from lance_sdk.aio._lifecycle import AsyncLifecycle
from lance_sdk.config import ConsumerConfig
from lance_sdk.errors import DeadlineExceeded
from lance_sdk.groups._member.aio_reader import AsyncTopicReader
from lance_sdk.groups._member.factory import build_member
from lance_sdk.groups._member.member_reader import MemberReader
from lance_sdk.groups._member.membership import LONGEST_WAIT, Membership, SeekTarget, Topic
from lance_sdk.groups._member.rebalance_listener import RebalanceListener
from lance_sdk.groups._member.settings import OnAssigned, OnGone, check_settings
from lance_sdk.groups._member.wakeup import AsyncWakeup
from lance_sdk.groups._protocol.membership import Change, CommitCall
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_sdk.options import ClientOptions, ConsumerOptions
from lance_sdk.types import Record, RecordBatch
from lance_sdk.url import URL

__all__ = ["AsyncGroupConsumer"]

_log = logging.getLogger("lance_sdk.groups")
_CLOSING: Final = 2.0
"""Seconds that closing the connection to the topics may take."""


@shows_options(ConsumerConfig)
class AsyncGroupConsumer(Membership, AsyncLifecycle):
    """Reads the topics that a group gives to this member, and commits to the group.

    ::

        async with AsyncGroupConsumer(
            "lance://localhost:1992",
            group="billing",
            topics=["orders", "refunds"],
            coordinator="lance://localhost:19920",
        ) as consumer:
            async for record in consumer:
                print(record.topic, record.value)

    Heartbeats are sent by a task of its own; an application that never lets the event loop run
    stops them all the same. Topics come and go where the application waits for records: there,
    and nowhere else, the callbacks are called, and awaited where they are async. One task reads.

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
        self._reader = AsyncTopicReader(self._settings.server, self._settings.options)
        self._starts: dict[int, SeekTarget] = {}
        self._news = AsyncWakeup()
        self._armed: tuple[object, object] = (None, None)
        self._pending: list[CommitCall] = []

    # Records

    def __aiter__(self) -> AsyncIterator[Record]:
        """Yield records of all topics; ends with ``stop_at_end`` when all are at their end.

        Raises:
            GroupRefused: the coordinator does not let this member in.
            ConsumeError: a topic cannot be consumed from here.
            UsageError: the consumer is not open.
        """
        return UntilNone(self._next_record)

    def batches(self) -> AsyncIterator[RecordBatch]:
        """Yield records as batches, the faster way; ends and raises as iteration does."""
        return UntilNone(self.poll)

    async def _next_record(self) -> Record | None:
        reading = self._reading
        if self._member.changes or self._commit_due():
            await self._attend()
        while (record := next(reading.records, None)) is None:
            if await self._next(None) is None:
                return None
        reading.note(record)
        return record

    async def poll(
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
        await self._attend()
        most = self._limit(max_records)
        batch = self._reading.rest()
        if batch is None:
            batch = await self._next(timeout)
        return None if batch is None else self._reading.whole(self._piece(batch, most))

    async def _next(self, timeout: float | None) -> RecordBatch | None:
        deadline = deadline_after(LONGEST_WAIT if timeout is None else timeout)
        while True:
            self._news.clear()
            await self._attend()
            self._arm()
            found = self._reader.take(self._reading.taken)
            if found is not None:
                topic, batch = found
                return self._reading.hand_over(topic.id, batch)
            now = monotonic()
            if self._reader.look(lambda core: core.ended):
                return None
            if timeout is not None and now >= deadline:
                await checkpoint()  # who polls without waiting still lets the others run
                return None
            await self._news.wait(min(deadline, self._attention_at(now)) - now)

    def _arm(self) -> None:
        """Have the waiting end when the member has a change to tell, or records have come."""
        self._driver.check()
        gate = self._member.changes.gate()
        before, reading = self._armed
        if gate is not before and not self._driver.add_callback(gate, self._news.wake):
            self._news.wake()
        self._armed = gate, self._reader.arm(self._news.wake, reading)
        if self._member.changes:
            self._news.wake()

    # Topics come and go

    async def seek(self, topic: Topic, where: SeekTarget) -> None:
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

    async def pause(self, *topics: Topic) -> None:
        """Hand nothing of these topics out and fetch nothing until `resume`.

        The member keeps them, and heartbeats go on. A topic that goes to somebody else is not
        paused there, nor when it comes back.

        Args:
            *topics: assigned topics, or their names.

        Raises:
            UsageError: one is not assigned to this member.
        """
        self._pause(topics)

    async def resume(self, *topics: Topic) -> None:
        """Go on with paused topics; with others it does nothing.

        Args:
            *topics: assigned topics, or their names.

        Raises:
            UsageError: one is not assigned to this member.
        """
        self._resume(topics)

    async def lag(self) -> dict[TopicIdentity, int]:
        """Return the bytes between position and end of each assigned topic, in one round trip.

        Raises:
            DeadlineExceeded: the server did not answer within ``request_timeout``.
            UsageError: the consumer is not open.
        """
        self._driver.check()
        return self._lags(await self._reader.ends(self.assignment))

    async def _attend(self) -> None:
        """Do what is due: changes of topics, and commits."""
        self._driver.check()
        self._reading.done()
        while True:
            self._member.handle_timeout(monotonic())
            change = self._member.changes.first()
            if change is None:
                break
            await self._apply(change, self._settings.rebalance_timeout)
        if places := self._places():
            self._submit_unattended(places)
        self._commit_automatically()
        if added := self._added():
            self._member.extend(added)
            self._driver.wake()

    async def _apply(self, change: Change, limit: float) -> None:
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
                await _awaited(self._rebalance.tell(change))
                if change.revoked:
                    last = self._reading.last_words(change.revoked, places)
                    await self._finish_commits(last, limit)
            finally:
                if self._rebalance.told is change:
                    self._applied(change)

    def _applied(self, change: Change) -> None:
        """Let go of topics that are given up, and read those that are new."""
        self._reading.drop(change.revoked)
        for each in change.assigned:
            self._begin_reading(each.topic)
        self._member.applied(change)
        self._driver.wake()

    # Commits

    async def commit(self, timeout: float | None = None) -> None:
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
        if not await self._driver.wait(call, timeout):
            raise DeadlineExceeded("the commit was not answered in time", maybe_applied=True)
        self._take_result(call)

    def _submit(self, commits: Sequence[Commit]) -> CommitCall:
        call = CommitCall(commits)
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

    async def _finish_commits(self, commits: Sequence[Commit], limit: float) -> None:
        """Commit before topics are given up; a failure means that others read them again."""
        calls, self._pending = self._pending, []
        if commits:
            calls.append(self._submit(commits))
        until = monotonic() + limit
        for call in calls:
            await self._driver.wait(call, max(0.0, until - monotonic()))
            self._log_failure(call)

    def _log_failure(self, call: CommitCall) -> None:
        try:
            self._take_result(call)
        except LanceError as error:
            _log.warning("%s: an automatic commit failed: %s", self._name, error)

    # Opening and closing

    async def _begin(self) -> None:
        """Find the topics before joining the group."""
        await self._reader.open()
        try:
            self._enter(await self._reader.find_topics(self._settings.topics))
            if self._settings.store is not None:
                await to_thread.run_sync(self._settings.store.open)
        except BaseException:
            await self._reader.close(0.0)
            raise
        await super()._begin()

    async def _finish(self, until: float, *, failed: bool) -> float:
        """Give up every topic in good order, and leave."""
        self._reading.leave()
        topics = self._reading.topics
        if topics and self._driver.usage_error is None:
            change = Change(self.generation, revoked=topics)
            try:
                await self._apply(change, until - monotonic())
            except Exception:  # noqa: BLE001 - a callback may raise anything; closing goes on
                _log.exception("%s: a callback raised while closing", self._name)
        return await super()._finish(until, failed=failed)

    async def _end(self, timeout: float) -> None:
        await self._reader.close(min(timeout, _CLOSING))

    def __del__(self) -> None:
        super().__del__()
        if (reader := getattr(self, "_reader", None)) is not None:
            reader.let_go()


async def _awaited(result: object) -> None:
    """Wait for a callback that is async."""
    if isawaitable(result):
        await result
