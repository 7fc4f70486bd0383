"""One group at its coordinator, whatever its members do."""

import os

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lance_sdk.groups._protocol.group_metadata import Member
from lance_sdk.groups.strategies import RANGE, ROUND_ROBIN, STICKY, Strategy
from lance_sdk.offsets import Commit, TopicIdentity
from lance_spec.messages.groups import GroupState

from .group_core import REBALANCE, SESSION, TOPICS, commit, join, new_group

EXAMPLES = int(os.environ.get("LANCE_GROUP_EXAMPLES", "120"))
NAMES = ["a", "b", "c"]
WHICH = st.integers(0, 5)
FEW = TOPICS[:3]


class GroupMachine(RuleBasedStateMachine):
    """Members that join, stall, die, come back, release late or never; stores that are slow."""

    @initialize(strategy=st.sampled_from([RANGE, ROUND_ROBIN, STICKY]))
    def begin(self, strategy: Strategy) -> None:
        """Begin without members."""
        self.group = new_group(strategy)
        self.now = 0.0
        self.held: dict[str, dict[int, int]] = {}
        self.links: dict[str, object] = {}
        self.generations: dict[str, int] = {}
        self.saving = list[tuple[Member, Commit]]()
        self.stored: dict[int, int] = {}
        self.highest = 0

    @precondition(lambda self: len(self.links) < len(NAMES))
    @rule(reads=st.sampled_from([FEW, FEW, FEW[:2], FEW[1:]]))
    def join(self, reads: tuple[TopicIdentity, ...]) -> None:
        """A process starts, perhaps under the name of one that is gone."""
        name = next(each for each in NAMES if each not in self.links)
        self.links[name] = [name]
        self.held[name] = {}
        join(self.group, name, self.now, link=self.links[name], topics=reads)
        self.generations[name] = 0

    def one_of(self, which: int) -> str:
        """Return one of the processes that run."""
        names = sorted(self.links)
        return names[which % len(names)]

    def is_member(self, name: str) -> bool:
        """Return whether the coordinator takes this process for a member, at this instant."""
        self.group.tick(self.now)
        return name in self.group.members

    @precondition(lambda self: self.links)
    @rule(which=WHICH)
    def die(self, which: int) -> None:
        """A process dies."""
        name = self.one_of(which)
        old = self.links.pop(name)
        member = self.group.members.get(name)
        if member is not None and member.link is old:
            member.link = "broken!"

    @precondition(lambda self: self.links)
    @rule(which=WHICH, keep=st.sampled_from([{0, 1, 2}, {0, 1, 2}, {0}, {1, 2}, set()]))
    def release(self, which: int, keep: set[int]) -> None:
        """A member releases some topics."""
        self.sync(self.one_of(which), keep)

    def sync(self, name: str, keep: set[int]) -> None:
        """A member syncs, and holds only what is to be kept."""
        held = {topic_id: at for topic_id, at in self.held[name].items() if topic_id in keep}
        if not self.is_member(name):
            self.held[name] = {}
            return
        told = self.group.sync(name, self.links[name], held, self.now)
        self.generations[name] = told.generation
        for each in told.assigned:
            start = 0 if each.position is None else each.position.offset
            if each.identity.id not in held:
                assert start == self.stored.get(each.identity.id, 0)
                assert all(made.topic.id != each.identity.id for _, made in self.saving)
            assert self.who_could_commit(each.identity.id) == [name]
            held.setdefault(each.identity.id, start)
        for topic_id in told.lost:
            del held[topic_id]
        self.held[name] = held

    @precondition(lambda self: self.links)
    @rule(which=WHICH)
    def follow(self, which: int) -> None:
        """A member does all that it is told to."""
        name = self.one_of(which)
        member = self.group.members.get(name)
        if member is not None:
            self.sync(name, {0, 1, 2})
            self.sync(name, set(self.held[name]) - member.told.revoked)

    @precondition(lambda self: self.links)
    @rule(which=WHICH)
    def heartbeat(self, which: int) -> None:
        """A member shows that it lives."""
        name = self.one_of(which)
        if self.is_member(name):
            self.group.heartbeat(name, self.links[name], self.now)

    @precondition(lambda self: self.links)
    @rule(which=WHICH)
    def leave(self, which: int) -> None:
        """A member leaves in good order."""
        name = self.one_of(which)
        if self.is_member(name):
            self.group.leave(name, self.links.pop(name), self.now)

    @precondition(lambda self: self.links)
    @rule(which=WHICH, pick=WHICH, read=st.integers(1, 99))
    def commit(self, which: int, pick: int, read: int) -> None:
        """A member has read on and commits; the store takes its time."""
        name = self.one_of(which)
        member, held = self.group.members.get(name), sorted(self.held[name])
        if member is None or not held:
            return
        topic = held[pick % len(held)]
        offset = self.held[name][topic] + read
        made = commit(topic, offset, self.generations[name])
        if self.group.begin_commit(member, made) is None:
            assert offset > self.stored.get(topic, 0), "a commit that goes back was accepted"
            self.held[name][topic] = offset
            self.saving.append((member, made))

    @precondition(lambda self: self.saving)
    @rule(stored=st.booleans())
    def store_answers(self, stored: bool) -> None:
        """The store has kept the oldest commit, or failed."""
        member, made = self.saving.pop(0)
        if stored:
            self.stored[made.topic.id] = made.offset
        self.group.end_commit(member, made, self.now, stored=stored)

    @rule(seconds=st.sampled_from([0.1, 0.1, 1.0, 4.0, 11.0]))
    def time_passes(self, seconds: float) -> None:
        """Time passes; the coordinator looks at its clock in between or not."""
        self.now += seconds
        self.group.tick(self.now)

    def who_could_commit(self, topic_id: int) -> list[str]:
        """Return the members whose commit would be taken, whatever generation they name."""
        able = []
        for name, member in self.group.members.items():
            probe, seen = commit(topic_id, 1, self.group.generation), member.seen
            if self.group.begin_commit(member, probe) is None:
                able.append(name)
                self.group.end_commit(member, probe, self.now, stored=False)
                member.seen = seen
        return able

    @invariant()
    def one_owner(self) -> None:
        """No two members could both commit a topic, and targets are members."""
        for topic_id, topic in self.group.topics.items():
            assert topic.target is None or topic.target in self.group.members
            assert len(self.who_could_commit(topic_id)) <= 1

    @invariant()
    def generation_never_falls(self) -> None:
        """The generation only rises."""
        assert self.group.generation >= self.highest
        self.highest = self.group.generation

    @invariant()
    def somebody_is_waited_for_at_most_until_the_deadline(self) -> None:
        """While topics change hands there is an instant at which that ends."""
        pending = any(t.moving and not t.released for t in self.group.topics.values())
        if pending:
            assert self.group.next_deadline() < self.now + max(SESSION, REBALANCE) + 1

    def teardown(self) -> None:
        """When all settle down, every topic that is read has its one owner."""
        if not hasattr(self, "group"):
            return
        while self.saving:
            self.store_answers(stored=True)
        for _ in range(4):
            for name in list(self.group.members):
                self.links.setdefault(name, [name])
                self.held.setdefault(name, {})
                keep = {t.identity.id for t in self.group.topics.values() if not t.moving}
                self.sync(name, keep)
        read = {t.id for m in self.group.members.values() for t in m.joining.topics}
        owned = [topic_id for name in self.group.members for topic_id in self.held[name]]
        assert sorted(owned) == sorted(read)
        assert self.group.state in {GroupState.STABLE, GroupState.EMPTY}


GroupMachine.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=40, deadline=None
)
TestGroup = GroupMachine.TestCase
TestGroup.__doc__ = "Whatever members do, a topic has one owner and no commit is lost."
