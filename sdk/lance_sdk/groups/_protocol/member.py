"""A member of a group: joins, shows that it lives, learns what to read, commits, leaves.

It is the application of a session with the coordinator, and does all of this on the driver's
clock, whatever the program is busy with.

::

    OUTSIDE ── GroupJoin ──> JOINING ── GroupJoinAck ──> INSIDE ── GroupLeave ──> GONE
       ^                                                   │ heartbeats, syncs, commits
       └──────── refused: unknown member ──────────────────┘

What it holds survives a lost connection and a coordinator's restart. When nothing was heard of
the coordinator for a session timeout, others may have it, and it counts as lost. A commit that
the coordinator refuses because it does not know the member waits until the member is inside
again. A member that stays outside for a session timeout says why, at every look, and goes on
trying.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.connection import Connection, Request
from lance_sdk._protocol.events import Event, Notice
from lance_sdk._protocol.request_tracker import PendingRequest
from lance_sdk.errors import ConfigError, RemoteProtocolError, ServerError
from lance_sdk.groups._protocol.assignment_changes import Changes
from lance_sdk.groups._protocol.calls import GroupCaller
from lance_sdk.groups._protocol.limits import Refusal
from lance_sdk.groups._protocol.membership import (
    AssignedTopic,
    Change,
    CommitCall,
    MembershipPhase,
    SubscriptionRequest,
)
from lance_sdk.groups._protocol.wire import commit_of, join_of, meant, topic_commit
from lance_sdk.groups.errors import (
    CommitRefused,
    CoordinatorLost,
    GroupRefused,
    NotAMember,
    code_of,
    forgotten,
    no_coordinator,
    refused,
)
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_spec.bodies import TopicInfo
from lance_spec.enums import Command
from lance_spec.errors import DecodeError
from lance_spec.messages import groups as m

_MAX_JOINS: Final = 8
"""Joins in a row without an assignment after which the coordinator is given up."""
_FENCE: Final = 0.9
"""Part of the session timeout after which a member that hears nothing stops by itself: its
clock and the coordinator's need not agree to the last."""


class MemberHandler(GroupCaller):
    """The application of a session with a coordinator.

    Args:
        subscription: what it asks for; `enter` completes them.
        retry: delays after a refusal that may pass.
        timeout: seconds that a call may take.
        progress: called upon every answer.
        events: where outcomes and notices collect.
        secret: of this process, so that its new connection can replace an old one.
        asleep: returns the seconds that the machine was suspended, which no monotonic clock
            counts and the coordinator's does.

    Attributes:
        name: in the group, once the coordinator has said it.
        phase: where the membership stands.
        generation: of the last sync.
        strategy: under which the group works.
        held: topics that it owns, by number; those to be released among them.
        changes: what the application has not been told yet.
        brief: the coordinator ends connections after an answer: each request takes one.
    """

    def __init__(
        self,
        subscription: SubscriptionRequest,
        retry: Backoff,
        *,
        timeout: float,
        progress: Callable[[], object],
        events: list[Event],
        secret: int = 0,
        asleep: Callable[[], float] = float,
    ) -> None:
        super().__init__(timeout=timeout, progress=progress, events=events)
        self._secret = secret
        self._asleep = asleep
        self._sequence = 0
        self._since: dict[int, int] = {}
        self._outside_since = math.inf
        self._last_refusal: LanceError | None = None
        self._subscription = subscription
        self._retry = retry
        self._identities: dict[int, TopicIdentity] = {}
        self._joined_for: tuple[TopicIdentity, ...] = ()
        self._asked: Request | None = None
        self._connected = False
        self._closing = False
        self._wants_sync = False
        self._joins = 0
        self._retry_at = -math.inf
        self._heartbeat_at = -math.inf
        self._heartbeat_every = subscription.session_timeout / 3
        self._session_timeout = subscription.session_timeout
        self._alive_until = math.inf
        self._release_by: dict[int, float] = {}
        self.name = subscription.member
        self.phase = MembershipPhase.OUTSIDE
        self.generation = 0
        self.strategy = subscription.strategy
        self.held: dict[int, TopicIdentity] = {}
        self.changes = Changes(events)
        self.brief = False

    def __repr__(self) -> str:
        return (
            f"<MemberHandler {self.name!r} of {self._subscription.group!r} {self.phase.name} "
            f"generation={self.generation} held={len(self.held)}>"
        )

    # What the client calls

    def enter(self, subscription: SubscriptionRequest) -> None:
        """Ask for these topics, once the session is open."""
        self._subscription = subscription
        self._identities = {topic.id: topic for topic in subscription.topics}

    def extend(self, topics: Iterable[TopicIdentity]) -> None:
        """Ask for these topics besides; what is held stays held."""
        more = tuple(each for each in topics if each.id not in self._identities)
        self._subscription = replace(self._subscription, topics=(*self._subscription.topics, *more))
        self._identities.update((each.id, each) for each in more)

    @property
    def topics(self) -> tuple[TopicIdentity, ...]:
        """The topics that it asks for."""
        return self._subscription.topics

    def applied(self, change: Change) -> None:
        """Take note that the application has applied a change: it gave up what was revoked.

        Where an exception cuts this short, it is done again, perhaps when the member has got a
        topic back meanwhile: that one it keeps.
        """
        for topic in change.revoked:
            if self._since.get(topic.id, 0) <= change.generation:
                self._forget(topic.id)
        self._wants_sync = self._wants_sync or bool(change.revoked)
        self.changes.applied(change)

    def submit(self, call: PendingRequest, now: float) -> None:
        """Queue a call; one that can never be answered fails at once."""
        if isinstance(call, CommitCall):
            self._sequence += 1
            call.sequence = self._sequence
        super().submit(call, now)
        if self.changes.error is not None:
            super().abort(self.changes.error, now)

    # What the session calls

    @property
    def drained(self) -> bool:
        """Whether there is nothing left to say, or nobody to say it to."""
        if not self._closing:
            return False
        inside = self.phase is MembershipPhase.INSIDE and self.changes.error is None
        return not (inside and (self._connected or self.brief))

    @property
    def due(self) -> float:
        """When a connection is needed again."""
        inside = self.phase is MembershipPhase.INSIDE and not (self._wants_sync or self._closing)
        return self._heartbeat_at if inside and super().drained else self._retry_at

    def ready(self, connection: Connection, topic: TopicInfo | None, now: float) -> None:
        """Use this connection, and show at once that the member lives."""
        super().ready(connection, topic, now)
        self._connected = True
        self._outside_since = min(self._outside_since, now)
        self._heartbeat_at = now

    def fill(self, connection: Connection, now: float) -> None:
        """Send what is due."""
        self._fence(now)
        if self._asked is None and self.changes.error is None:
            self._ask_membership(connection, now)
        if self.phase is MembershipPhase.INSIDE:
            super().fill(connection, now)

    def _ask_membership(self, connection: Connection, now: float) -> None:
        if self.phase is MembershipPhase.OUTSIDE:
            if now >= self._retry_at and not self._closing:
                self._ask_join(connection, now)
        elif self._closing and super().drained:
            self._ask_leave(connection, now)
        elif self._subscription.topics != self._joined_for and now >= self._retry_at:
            self._ask_join(connection, now)
        elif self._wants_sync:
            self._ask_sync(connection, now)
        elif now >= self._heartbeat_at:
            self._ask_heartbeat(connection, now)

    def next_deadline(self) -> float:
        """Return when something may be due."""
        due = min(super().next_deadline(), self._alive_until - self._asleep())
        due = min([due, *self._release_by.values()])
        if self.phase is MembershipPhase.OUTSIDE and self.changes.trouble is None:
            due = min(due, self._outside_since + self._session_timeout)
        if not self._connected or self._asked is not None:
            return due
        if self.phase is MembershipPhase.OUTSIDE:
            return min(due, self._retry_at) if self._retry_at > -math.inf else due
        return min(due, self._heartbeat_at)

    def handle_timeout(self, now: float) -> None:
        """Stop by itself where the coordinator may have given the topics away."""
        super().handle_timeout(now)
        self._fence(now)
        if (
            self.phase is MembershipPhase.OUTSIDE
            and now >= self._outside_since + self._session_timeout
        ):
            self.changes.trouble = self._last_refusal or CoordinatorLost(
                f"the coordinator of group {self._subscription.group!r} was not heard of for "
                f"{now - self._outside_since:.1f} s; the member goes on looking for it"
            )
            self.changes.tell_trouble()
        late = [topic_id for topic_id, at in self._release_by.items() if now >= at]
        if late:
            self._lose(late, "they were not released in time")

    def _fence(self, now: float) -> None:
        """Stop by itself where the coordinator may have given the topics away."""
        if now + self._asleep() < self._alive_until:
            return
        self._alive_until = math.inf
        if self.phase is MembershipPhase.INSIDE:
            self._step_out(now)
        self._lose(list(self.held), "the coordinator was not heard of for a session timeout")

    def _step_out(self, now: float) -> None:
        self.phase, self._outside_since = MembershipPhase.OUTSIDE, now

    def lost(self, now: float) -> None:
        """Forget what was asked; it is asked again on the next connection."""
        super().lost(now)
        if self._asked is not None and self._asked.command == Command.GROUP_SYNC:
            self._wants_sync = True
        self._connected = False
        self._asked = None

    def close(self, now: float) -> None:
        """Leave, after what is to be committed."""
        super().close(now)
        self._closing = True

    def abort(self, error: LanceError, now: float) -> None:
        """End the membership with this error."""
        super().abort(error, now)
        self.phase = MembershipPhase.GONE
        self.changes.fail(error)

    def _give_up_for_good(self, error: LanceError, now: float) -> None:
        """Be of no use any more: who waits for a commit learns it at once."""
        self.changes.fail(error)
        super().abort(error, now)

    # Requests

    def _ask_join(self, connection: Connection, now: float) -> None:
        topics = self._subscription.topics
        message = join_of(self._subscription, self.name, self.generation, self._since, self._secret)

        def joined(answer: m.GroupJoinAck, at: float) -> None:
            self._joined_for = topics
            self._joined(answer, at)

        self._ask(connection, message, m.GroupJoinAck, joined, now)

    def _ask_sync(self, connection: Connection, now: float) -> None:
        self._wants_sync = False
        message = m.GroupSync(**self._who, owned=sorted(self.held))
        self._ask(connection, message, m.GroupAssignment, self._synced, now)

    def _ask_heartbeat(self, connection: Connection, now: float) -> None:
        self._heartbeat_at = now + self._heartbeat_every
        self._ask(
            connection, m.GroupHeartbeat(**self._who), m.GroupHeartbeatAck, self._acknowledged, now
        )

    def _ask_leave(self, connection: Connection, now: float) -> None:
        self._ask(connection, m.GroupLeave(**self._who), m.GroupLeaveAck, self._left, now)

    @property
    def _who(self) -> dict[str, Any]:
        """How every request of a member begins."""
        return {
            "group": self._subscription.group,
            "member": self.name,
            "generation": self.generation,
        }

    def _ask(
        self,
        connection: Connection,
        message: Any,
        answer: Any,
        take: Callable[[Any, float], None],
        now: float,
    ) -> None:
        asleep = self._asleep()

        def answered(code: int, payload: memoryview, at: float) -> None:
            self._asked = None
            try:
                if code == Command.GROUP_ERROR:
                    error = m.GroupError.decode(payload)
                    self._refused_membership(refused(error.code, error.message), at)
                else:
                    self._alive_until = now + asleep + self._session_timeout * _FENCE
                    take(answer.decode(payload), at)
            except (DecodeError, ConfigError, Refusal) as error:
                message = f"a coordinator's answer makes no sense: {error}"
                raise RemoteProtocolError(message) from None
            self._progress()

        def failed(error: ServerError, at: float) -> None:
            self._asked = None
            self._refused_membership(error if error.retryable else no_coordinator(error), at)

        codes = frozenset({answer.COMMAND, Command.GROUP_ERROR})
        self._asked = Request(message.COMMAND, message.encode(), codes, answered, failed)
        connection.ask(self._asked, now)

    def _request(self, call: PendingRequest, command: Command, expects: Command) -> Request:
        if isinstance(call, CommitCall):
            topics = [topic_commit(self._newest(commit)) for commit in call.commits]
            since = [commit.generation for commit in call.commits]
            order = [m.CommitOrder(sequence=call.sequence, since=since)] if self._secret else []
            call.payload = m.GroupCommit(**self._who, topics=topics, order=order).encode()
        return super()._request(call, command, expects)

    def _kept(self, call: PendingRequest, error: LanceError, now: float) -> bool:
        """Keep a commit until the member is known again; its number says which one is later."""
        if not isinstance(error, NotAMember) or self._closing:
            return False
        if self.phase is MembershipPhase.INSIDE:
            self._join_again(error, now)
        self._sent.remove(call)
        earlier = [each for each in self._queue if each.deadline <= call.deadline]
        self._queue.insert(len(earlier), call)
        return True

    def _newest(self, commit: Commit) -> Commit:
        """Return the last commit of this topic that waits for an answer.

        A commit that is sent again must not move a position back that a later one has moved
        already: a coordinator that was restarted does not know what it had recorded.
        """
        calls = [each for each in (*self._sent, *self._queue) if isinstance(each, CommitCall)]
        for call in sorted(calls, key=lambda each: each.sequence, reverse=True):
            for each in call.commits:
                if each.topic == commit.topic and each.generation == commit.generation:
                    return each
        return commit

    # Answers

    def _joined(self, answer: m.GroupJoinAck, now: float) -> None:
        self.phase, self._outside_since = MembershipPhase.INSIDE, math.inf
        self._last_refusal = self.changes.trouble = None
        self.name, self.strategy = answer.member, answer.strategy
        self._session_timeout = answer.session_timeout_ms / 1000
        self._heartbeat_every = answer.heartbeat_interval_ms / 1000
        self._heartbeat_at = now + self._heartbeat_every
        self._wants_sync = True
        self._joins += 1

    def _synced(self, answer: m.GroupAssignment, now: float) -> None:
        self._joins = 0
        self._retry.reset()
        self.generation = answer.generation
        self._heartbeat_at = now + self._heartbeat_every
        fresh = []
        for carried in answer.assigned:
            identity = self._asked_for(carried.topic)
            if identity.id not in self.held:
                commit = commit_of(self._subscription.group, carried)
                fresh.append(AssignedTopic(identity, commit, answer.generation))
                self._since[identity.id] = answer.generation
            self.held[identity.id] = identity
            self._release_by.pop(identity.id, None)
        revoked = [each for each in answer.revoked if each not in self._release_by]
        self._release_by.update(dict.fromkeys(revoked, now + answer.deadline_ms / 1000))
        lost = self._drop(answer.lost)
        self._wants_sync = self._wants_sync or bool(lost)  # it may get them again
        self.changes.tell(
            Change(
                generation=answer.generation,
                assigned=tuple(fresh),
                revoked=tuple(self.held[each] for each in revoked if each in self.held),
                lost=lost,
            )
        )

    def _asked_for(self, carried: m.GroupTopic) -> TopicIdentity:
        if (topic := meant(carried, self._identities)) is None:
            raise RemoteProtocolError(f"topic #{carried.topic_id} was assigned and not asked for")
        return topic

    def _acknowledged(self, answer: m.GroupHeartbeatAck, now: float) -> None:
        del now
        self._wants_sync = self._wants_sync or answer.changed

    def _left(self, answer: m.GroupLeaveAck, now: float) -> None:
        del answer, now
        self.phase = MembershipPhase.GONE
        self._alive_until = math.inf

    def _refused_membership(self, error: LanceError, now: float) -> None:
        """Join again, now or later, or give up."""
        if self._closing:
            self.phase = MembershipPhase.GONE
        elif self.phase is MembershipPhase.INSIDE and self._unknown(error):
            self._join_again(error, now)
        elif self._secret and _says(error, m.GroupErrorCode.INVALID_REQUEST):
            self._secret = 0  # an older coordinator cannot read what newer members add
        elif error.retryable or isinstance(error, NotAMember):
            self._last_refusal = error
            self._retry_at = now + self._retry.next_delay()
            self._heartbeat_at = self._retry_at
            self._events.append(Notice(f"the coordinator refused a request: {error}", "group"))
        elif self.phase is MembershipPhase.INSIDE and self._subscription.topics != self._joined_for:
            self._withdraw(error)
        else:
            self._give_up_for_good(error, now)

    def _withdraw(self, error: LanceError) -> None:
        """Stay with the topics that the coordinator knows: it refuses those that came later."""
        known = {topic.id for topic in self._joined_for}
        later = [topic for topic in self._subscription.topics if topic.id not in known]
        names = ", ".join(topic.label for topic in later)
        self._subscription = replace(self._subscription, topics=self._joined_for)
        self._identities = {topic.id: topic for topic in self._joined_for}
        self._events.append(Notice(f"topics {names} were refused: {error}", "group"))

    def _unknown(self, error: LanceError) -> bool:
        """Whether joining helps: the member was forgotten, or its old connection seems alive."""
        taken = self._secret and _says(error, m.GroupErrorCode.NAME_TAKEN)
        return isinstance(error, NotAMember) or bool(taken)

    def _join_again(self, error: LanceError, now: float) -> None:
        self._step_out(now)  # it keeps its topics, and names them when it joins
        if self._joins >= _MAX_JOINS:
            self._give_up_for_good(forgotten(self._joins, error), now)
        elif self._joins > 1:
            self._retry_at = now + self._retry.next_delay()

    def _settle(
        self, call: PendingRequest, result: object, error: LanceError | None = None
    ) -> None:
        if isinstance(result, m.GroupCommitAck) and error is None:
            error = self._judge(result)
        super()._settle(call, result, error)

    def _judge(self, answer: m.GroupCommitAck) -> CommitRefused | None:
        codes = {
            self._identities[each.topic_id].label: code_of(each.code)
            for each in answer.results
            if each.code and each.topic_id in self._identities
        }
        if any(code != m.GroupErrorCode.STORE_FAILED for code in codes.values()):
            self._wants_sync = True
        return CommitRefused(codes) if codes else None

    # Changes

    def _lose(self, topic_ids: Sequence[int], why: str) -> None:
        lost = self._drop(topic_ids)
        self._wants_sync = True
        if lost:
            names = ", ".join(topic.label for topic in lost)
            self._events.append(Notice(f"topics {names} are lost to this member: {why}", "lost"))
        self.changes.tell(Change(self.generation, lost=lost))

    def _drop(self, topic_ids: Iterable[int]) -> tuple[TopicIdentity, ...]:
        dropped = [self._forget(topic_id) for topic_id in topic_ids]
        return tuple(topic for topic in dropped if topic is not None)

    def _forget(self, topic_id: int) -> TopicIdentity | None:
        self._release_by.pop(topic_id, None)
        self._since.pop(topic_id, None)
        return self.held.pop(topic_id, None)


def _says(error: LanceError, code: m.GroupErrorCode) -> bool:
    return isinstance(error, GroupRefused) and error.code == code
