"""The coordinator's answers: each request of a member, with the store in between.

The rules are `lance_sdk.groups._protocol.group`; here they meet the messages and the store. Nothing
waits while a group is being changed, so requests of different members cannot mix; what a
store call interrupts is only the request that waits for it.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from time import monotonic, time_ns
from typing import Final, TypeAlias

import anyio

from lance_sdk.errors import ConfigError
from lance_sdk.groups._coordinator.group_description import describe
from lance_sdk.groups._protocol.group import Group
from lance_sdk.groups._protocol.group_metadata import Assignment, Joining, Member
from lance_sdk.groups._protocol.limits import Limits, Refusal
from lance_sdk.groups._protocol.wire import (
    commit_of,
    identities_of,
    invalid,
    milliseconds,
    order_of,
    standing_of,
    topic_position,
)
from lance_sdk.groups.strategies import STICKY, Strategy
from lance_sdk.offsets.contract import (
    AsyncOffsetStore,
    Commit,
    TopicIdentity,
    check_consumer_name,
)
from lance_sdk.offsets.errors import OffsetStoreError, StaleGeneration, StaleTopic
from lance_spec.checksum import Buffer
from lance_spec.enums import Command
from lance_spec.errors import DecodeError
from lance_spec.messages import groups as m
from lance_spec.messages.groups import GroupErrorCode

Answer: TypeAlias = tuple[Command, bytes]

_log = logging.getLogger("lance_sdk.groups")

_MESSAGE: Final = 1000
"""Characters of an explanation that are sent."""


@dataclass(eq=False)
class CoordinatorLink:
    """A member's connection.

    Attributes:
        peer: its address.
        open: whether it stands.
    """

    peer: str
    open: bool = True


def _stands(link: object) -> bool:
    return isinstance(link, CoordinatorLink) and link.open


@dataclass(eq=False)
class GroupService:
    """Every group of a coordinator.

    Attributes:
        store: where offsets are kept.
        strategies: by name.
        limits: how much is taken in.
        heartbeat_interval: seconds between heartbeats, unless a session is shorter.
        clock: tells the time, in seconds.
        may_store: whether the store is still this coordinator's.
        groups: by name.
    """

    store: AsyncOffsetStore
    strategies: Mapping[str, Strategy]
    limits: Limits
    heartbeat_interval: float
    clock: Callable[[], float] = monotonic
    may_store: Callable[[], bool] = lambda: True
    groups: dict[str, Group] = field(default_factory=dict)
    _lock: anyio.Lock | None = None
    _saving: dict[tuple[str, int], anyio.Lock] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<GroupService groups={len(self.groups)} store={self.store!r}>"

    async def answer(self, command: int, payload: Buffer, link: CoordinatorLink) -> Answer | None:
        """Answer a request; None when the command does not belong to groups."""
        handler = self._handlers.get(command)
        if handler is None:
            return None
        try:
            return await handler(payload, link)
        except Refusal as refusal:
            return self._refused(refusal)
        except DecodeError as error:
            return self._refused(invalid(str(error)))
        except ConfigError as error:
            return self._refused(invalid(str(error)))

    @property
    def _handlers(self) -> dict[int, Callable[[Buffer, CoordinatorLink], Awaitable[Answer]]]:
        return {
            Command.GROUP_JOIN: self._join,
            Command.GROUP_SYNC: self._sync,
            Command.GROUP_HEARTBEAT: self._heartbeat,
            Command.GROUP_COMMIT: self._commit,
            Command.GROUP_FETCH_COMMITTED: self._fetch_committed,
            Command.GROUP_LEAVE: self._leave,
            Command.GROUP_DESCRIBE: self._describe,
        }

    def _refused(self, refusal: Refusal) -> Answer:
        message = str(refusal)[:_MESSAGE]
        error = m.GroupError(code=refusal.code, generation=0, message=message)
        return Command.GROUP_ERROR, error.encode()

    @property
    def _joining(self) -> anyio.Lock:
        """Keeps two joins from loading one topic; made on the loop that serves, not before."""
        if self._lock is None:
            self._lock = anyio.Lock()
        return self._lock

    def group(self, name: str) -> Group:
        """Return a group.

        Raises:
            Refusal: UNKNOWN_GROUP.
        """
        group = self.groups.get(name)
        if group is None:
            message = f"there is no group {name!r}: join it to create it"
            raise Refusal(GroupErrorCode.UNKNOWN_GROUP, message)
        group.tick(self.clock())
        return group

    # Requests

    async def _join(self, payload: Buffer, link: CoordinatorLink) -> Answer:
        asked = m.GroupJoin.decode(payload)
        secret, since = standing_of(asked)
        joining = Joining(
            name=check_consumer_name(asked.member or f"member-{token_hex(8)}"),
            link=link,
            topics=identities_of(asked.topics),
            session_timeout=self.limits.session_timeout(asked.session_timeout_ms),
            rebalance_timeout=self.limits.rebalance_timeout(asked.rebalance_timeout_ms),
            owned=frozenset(asked.owned),
            generation=asked.generation,
            since=since,
            secret=secret,
            client=asked.client,
            metadata=asked.metadata,
        )
        group, member = await self.join(check_consumer_name(asked.group), joining, asked.strategy)
        answer = m.GroupJoinAck(
            member=member.name,
            generation=group.generation,
            state=group.state,
            session_timeout_ms=milliseconds(joining.session_timeout),
            heartbeat_interval_ms=milliseconds(
                min(self.heartbeat_interval, joining.session_timeout / 3)
            ),
            strategy=group.strategy.name,
        )
        return Command.GROUP_JOIN_ACK, answer.encode()

    async def join(self, name: str, joining: Joining, strategy: str) -> tuple[Group, Member]:
        """Have a member join a group, which is made when it is not there.

        Raises:
            Refusal: it cannot join.
        """
        async with self._joining:
            group = self.groups.get(name) or await self._make(name, strategy)
            self._check_strategy(group, strategy)
            self.groups[name] = group
            for identity in group.admit(joining, self.clock()):
                with anyio.CancelScope(shield=True):  # what was claimed must be known
                    await self._release(group, group.drop_earlier(identity))
                    group.learn(identity, *await self._claim(group, identity))
            member = group.join(joining, self.clock())
            await self._release(group, group.drop_unwanted())
            return group, member

    async def _release(self, group: Group, topics: Iterable[TopicIdentity]) -> None:
        """Give back what the store keeps for topics that the group has forgotten."""
        for topic in topics:
            self._saving.pop((group.name, topic.id), None)
            try:
                await self.store.release(group.name, topic)
            except OffsetStoreError as error:
                _log.warning("group %r: topic %r: %s", group.name, topic.label, error)

    async def _make(self, name: str, strategy: str) -> Group:
        if len(self.groups) >= self.limits.groups:
            await self._forget_an_empty_group()
        chosen = self._strategy(strategy or STICKY.name)
        try:
            commits = await self.store.commits(name)
        except OffsetStoreError as error:
            raise Refusal(GroupErrorCode.STORE_FAILED, str(error)) from None
        generation = max((commit.generation for commit in commits), default=0)
        return Group(
            name=name,
            strategy=chosen,
            limits=self.limits,
            is_alive=_stands,
            settle_for=self.heartbeat_interval,
            generation=generation,
        )

    async def _forget_an_empty_group(self) -> None:
        for name, group in self.groups.items():
            group.tick(self.clock())
            if not group.members:
                del self.groups[name]
                await self._release(group, [topic.identity for topic in group.topics.values()])
                return
        raise self.limits.exceeded("groups", self.limits.groups)

    def _check_strategy(self, group: Group, name: str) -> None:
        if not name or name == group.strategy.name:
            return
        if group.members:
            message = f"the group works under {group.strategy.name!r}, not {name!r}"
            raise Refusal(GroupErrorCode.STRATEGY_REFUSED, message)
        group.strategy = self._strategy(name)

    def _strategy(self, name: str) -> Strategy:
        if name not in self.strategies:
            known = ", ".join(sorted(self.strategies))
            message = f"this coordinator knows no strategy {name!r}: it knows {known}"
            raise Refusal(GroupErrorCode.STRATEGY_REFUSED, message)
        return self.strategies[name]

    async def _claim(self, group: Group, identity: TopicIdentity) -> tuple[Commit | None, int]:
        """Claim a topic under the generation that its store knows; return commit and generation.

        A higher one would refuse the commits of a member that still holds the topic.
        """
        fence = 0
        try:
            try:
                return await self.store.claim(group.name, identity, fence), fence
            except StaleGeneration as stale:
                fence = stale.current
                return await self.store.claim(group.name, identity, fence), fence
        except OffsetStoreError as error:
            raise Refusal(GroupErrorCode.STORE_FAILED, str(error)) from None

    async def _sync(self, payload: Buffer, link: CoordinatorLink) -> Answer:
        asked = m.GroupSync.decode(payload)
        group = self.group(asked.group)
        told = group.sync(asked.member, link, asked.owned, self.clock())
        await self._release(group, group.drop_unwanted())
        return Command.GROUP_ASSIGNMENT, _assignment(group, told).encode()

    async def _heartbeat(self, payload: Buffer, link: CoordinatorLink) -> Answer:
        asked = m.GroupHeartbeat.decode(payload)
        group = self.group(asked.group)
        changed = group.heartbeat(asked.member, link, self.clock())
        answer = m.GroupHeartbeatAck(
            generation=group.generation, state=group.state, changed=changed
        )
        return Command.GROUP_HEARTBEAT_ACK, answer.encode()

    async def _commit(self, payload: Buffer, link: CoordinatorLink) -> Answer:
        asked = m.GroupCommit.decode(payload)
        if len(asked.topics) > self.limits.topics:
            raise self.limits.exceeded("topics in one commit", self.limits.topics)
        sequence, since = order_of(asked)
        group = self.group(asked.group)
        member = group.heard(asked.member, link, self.clock())
        results = []
        for each, generation in zip(asked.topics, since, strict=True):
            commit = commit_of(group.name, _as_position(each, generation))
            assert commit is not None
            code = await self._keep(group, member.name, commit, sequence)
            results.append(m.TopicCommitResult(topic_id=each.topic.topic_id, code=code))
        answer = m.GroupCommitAck(generation=group.generation, results=results)
        return Command.GROUP_COMMIT_ACK, answer.encode()

    async def _keep(self, group: Group, name: str, commit: Commit, sequence: int) -> GroupErrorCode:
        """Judge and store a commit, one at a time of each topic: stores may overtake."""
        async with self._saving.setdefault((group.name, commit.topic.id), anyio.Lock()):
            member = group.members.get(name)
            if member is None:
                return GroupErrorCode.NOT_OWNER
            code = group.begin_commit(member, commit, sequence)
            if code is not None:
                return code
            code = GroupErrorCode.STORE_FAILED
            try:
                with anyio.CancelScope(shield=True):  # what was stored must be known
                    code = await self._save(commit)
            finally:
                stored = code is GroupErrorCode.NONE
                group.end_commit(member, commit, self.clock(), stored=stored, sequence=sequence)
            return code

    async def _save(self, commit: Commit) -> GroupErrorCode:
        if not self.may_store():
            return GroupErrorCode.STORE_FAILED
        try:
            await self.store.save(commit)
        except StaleGeneration:
            return GroupErrorCode.STALE_GENERATION
        except StaleTopic:
            return GroupErrorCode.UNKNOWN_TOPIC
        except OffsetStoreError:
            return GroupErrorCode.STORE_FAILED
        return GroupErrorCode.NONE

    async def _fetch_committed(self, payload: Buffer, link: CoordinatorLink) -> Answer:
        del link
        asked = m.GroupFetchCommitted.decode(payload)
        group, wanted = self.group(asked.group), set(asked.topics)
        found = [
            topic_position(topic.identity, topic.position)
            for topic_id, topic in sorted(group.topics.items())
            if not wanted or topic_id in wanted
        ]
        answer = m.GroupCommitted(generation=group.generation, topics=found)
        return Command.GROUP_COMMITTED, answer.encode()

    async def _leave(self, payload: Buffer, link: CoordinatorLink) -> Answer:
        asked = m.GroupLeave.decode(payload)
        group = self.group(asked.group)
        group.leave(asked.member, link, self.clock())
        await self._release(group, group.drop_unwanted())
        answer = m.GroupLeaveAck(generation=group.generation)
        return Command.GROUP_LEAVE_ACK, answer.encode()

    async def _describe(self, payload: Buffer, link: CoordinatorLink) -> Answer:
        del link
        asked, now = m.GroupDescribe.decode(payload), self.clock()
        if asked.group:
            described = [describe(self.group(asked.group), now, whole=True)]
        else:
            described = [describe(self.group(name), now, whole=False) for name in self.groups]
        described.sort(key=lambda each: each.group)
        return Command.GROUP_DESCRIPTION, m.GroupDescription(groups=described).encode()


def _assignment(group: Group, told: Assignment) -> m.GroupAssignment:
    return m.GroupAssignment(
        generation=told.generation,
        state=group.state,
        deadline_ms=milliseconds(told.left) if told.revoked else 0,
        assigned=[topic_position(each.identity, each.position) for each in told.assigned],
        revoked=list(told.revoked),
        lost=list(told.lost),
    )


def _as_position(asked: m.TopicCommit, generation: int) -> m.TopicPosition:
    position = m.GroupPosition(
        offset=asked.offset,
        generation=generation,
        committed_at_ns=time_ns(),
        fingerprint=asked.fingerprint,
    )
    return m.TopicPosition(topic=asked.topic, position=position)
