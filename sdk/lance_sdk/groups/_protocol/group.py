"""One group at its coordinator: who is in it, who owns which topic, and how that changes.

A topic has an owner, who was told so, and a target, who is meant to own it. A rebalance sets
new targets and a new generation. An owner that is not the target any more keeps the topic
until it releases it, leaves, dies, or its time is up; only then, and only when no commit of it
is being stored, can its target have it. So a topic never has two owners, and a new owner
starts where the old one's last confirmed commit stands.
"""

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from lance_sdk.groups._protocol.group_metadata import (
    Assigned,
    Assignment,
    Joining,
    Member,
    MemberTopics,
    Topic,
)
from lance_sdk.groups._protocol.limits import Limits, Refusal
from lance_sdk.groups.strategies import STICKY, Strategy
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_spec.messages.groups import GroupErrorCode, GroupState

_log = logging.getLogger("lance_sdk.groups")


@dataclass(slots=True, eq=False)
class Group:
    """The state of one group.

    Attributes:
        name: of the group.
        strategy: how topics are divided.
        limits: how much it takes in.
        is_alive: tells whether a link's connection still stands.
        settle_for: seconds in which the members of an earlier life of the group may come back
            before topics are divided among those that are there.
        generation: rises with every new division of the topics, and when some are taken away.
        settled_at: when that time is over; None when it is, or was never needed.
        members: by name.
        topics: by number.
        sift: whether there may be topics that no member reads any more.
    """

    name: str
    strategy: Strategy
    limits: Limits
    is_alive: Callable[[object], bool]
    settle_for: float = 0.0
    generation: int = 0
    settled_at: float | None = math.inf
    members: dict[str, Member] = field(default_factory=dict)
    topics: dict[int, Topic] = field(default_factory=dict)
    sift: bool = False

    def __repr__(self) -> str:
        return (
            f"<Group {self.name!r} {self.state.name} generation={self.generation} "
            f"members={len(self.members)} topics={len(self.topics)}>"
        )

    @property
    def state(self) -> GroupState:
        """What the group is doing."""
        if not self.members:
            return GroupState.EMPTY
        waiting = self.settled_at is not None or any(t.moving for t in self.topics.values())
        return GroupState.REBALANCING if waiting else GroupState.STABLE

    # Joining

    def admit(self, joining: Joining, now: float) -> list[TopicIdentity]:
        """Check whether a member can join; return the topics that are new to the group.

        Raises:
            Refusal: NAME_TAKEN, LIMIT_EXCEEDED or UNKNOWN_TOPIC.
        """
        self.tick(now)
        known = self.members.get(joining.name)
        if known is not None:
            self._check_link(known, joining.link, joining.secret)
        elif len(self.members) >= self.limits.members:
            raise self.limits.exceeded("members in this group", self.limits.members)
        for identity in joining.topics:
            self._check_identity(identity)
        fresh = [identity for identity in joining.topics if identity.id not in self.topics]
        if len(self.topics) + len(fresh) > self.limits.topics:
            raise self.limits.exceeded("topics in this group", self.limits.topics)
        return fresh

    def drop_earlier(self, identity: TopicIdentity) -> list[TopicIdentity]:
        """Forget earlier topics of a name that was created again; return them."""
        gone = [
            topic.identity
            for topic in self.topics.values()
            if topic.identity.older_than(identity) and topic.identity.id != identity.id
        ]
        for each in gone:
            del self.topics[each.id]
        return gone

    def drop_unwanted(self) -> list[TopicIdentity]:
        """Forget topics that no member reads and none holds; return them."""
        if not self.sift or not self.members:
            return []
        wanted: set[int] = set().union(*(each.view.topics for each in self.members.values()))
        unwanted = [topic for topic in self.topics.values() if topic.identity.id not in wanted]
        gone = [t.identity for t in unwanted if t.owner is None and not t.saving]
        self.sift = len(gone) < len(unwanted)
        for each in gone:
            del self.topics[each.id]
        return gone

    def learn(self, identity: TopicIdentity, position: Commit | None, fence: int = 0) -> None:
        """Take a topic in, and how far an earlier life of the group had come in it.

        Args:
            identity: the topic.
            position: the last commit that its store knows.
            fence: the highest generation that its store knows.
        """
        fence = max(fence, 0 if position is None else position.generation)
        self.topics[identity.id] = Topic(identity, position, fence)
        self.generation = max(self.generation, fence)

    def join(self, joining: Joining, now: float) -> Member:
        """Take a member in, or back, after `admit` and with every topic learnt."""
        known = self.members.get(joining.name)
        if known is not None and known.joining.secret != joining.secret:
            self._replace(known)
        member = Member(joining, joining.link, now, generation=joining.generation)
        self.members[joining.name] = member
        self.generation = max(self.generation, joining.generation)
        if self.settled_at == math.inf:
            self.settled_at = now + self.settle_for if self.generation else None
        self._recognise(member)
        if known is None or known.view != member.view:
            self._rebalance(now)
        return member

    def _replace(self, known: Member) -> None:
        """Give what a process of the same name had to the next one, and fence the first off."""
        self.generation += 1
        for topic in self.topics.values():
            if topic.owner == known.name:
                topic.release()

    def _check_identity(self, identity: TopicIdentity) -> None:
        known = self.topics.get(identity.id)
        difference = None if known is None else known.identity.difference(identity)
        if difference is None:
            later = (t.identity for t in self.topics.values() if identity.older_than(t.identity))
            difference = next((f"created again as #{each.id}" for each in later), None)
        if difference is not None:
            message = f"topic {identity.label!r} is another one to this group: {difference}"
            raise Refusal(GroupErrorCode.UNKNOWN_TOPIC, message)

    def _recognise(self, member: Member) -> None:
        """Let a member go on with what it holds from an earlier life of the group.

        Somebody may have got the topic after it, while it was suspended: its store then knows a
        later generation, or the later owner comes back, too. The later assignment counts, unless
        the other one has committed already.
        """
        for topic_id in member.joining.owned & member.view.topics:
            topic, since = self.topics[topic_id], member.joining.held_since(topic_id)
            if since < topic.fence:
                continue
            free = topic.owner is None and topic.target is None
            idle = topic.recognised and not topic.committed and not topic.saving
            later = idle and since > topic.since
            if free or later:
                topic.target = member.name
                topic.give(member.name, since, recognised=True)

    # What members ask

    def sync(self, name: str, link: object, held: Iterable[int], now: float) -> Assignment:
        """Release what a member does not hold any more, and tell it what is its own.

        Raises:
            Refusal: UNKNOWN_MEMBER or NAME_TAKEN.
        """
        member, holds = self.heard(name, link, now), frozenset(held)
        for topic_id, topic in self.topics.items():
            if topic.owner == name and topic_id not in holds:
                topic.release()
                self.sift = True
        share = self._share(member).without(self._held_from_before(holds))
        fresh = [t for t in map(self.topics.__getitem__, share.assigned) if t.owner is None]
        if any(self.generation <= max(topic.since, topic.fence) for topic in fresh):
            self.generation += 1  # each assignment has its own: commits of the last one are stale
        for topic in fresh:
            topic.give(name, self.generation)
        member.told, member.generation = share, self.generation
        ends = [self.topics[topic_id].release_by for topic_id in share.revoked]
        return Assignment(
            generation=self.generation,
            assigned=tuple(
                Assigned(topic.identity, topic.position)
                for topic in sorted(
                    (self.topics[topic_id] for topic_id in share.assigned),
                    key=lambda topic: topic.identity.label,
                )
            ),
            revoked=tuple(sorted(share.revoked)),
            lost=tuple(sorted(holds - share.assigned - share.revoked)),
            left=max(0.0, min(ends) - now) if ends else 0.0,
        )

    def _held_from_before(self, holds: frozenset[int]) -> frozenset[int]:
        """Return topics that a member holds under an assignment that does not count any more.

        It loses them before it can get them anew: it would commit under the old assignment.
        """
        known = holds & self.topics.keys()
        return frozenset(topic_id for topic_id in known if self.topics[topic_id].owner is None)

    def heartbeat(self, name: str, link: object, now: float) -> bool:
        """Note that a member lives; return whether it has to sync.

        Raises:
            Refusal: UNKNOWN_MEMBER or NAME_TAKEN.
        """
        member = self.heard(name, link, now)
        return member.told != self._share(member) or member.generation != self.generation

    def leave(self, name: str, link: object, now: float) -> None:
        """Let a member go; its topics are free at once.

        Raises:
            Refusal: UNKNOWN_MEMBER or NAME_TAKEN.
        """
        self.heard(name, link, now)
        self._remove(name)
        self._rebalance(now)

    def heard(self, name: str, link: object, now: float) -> Member:
        """Return a member that is heard of.

        Raises:
            Refusal: UNKNOWN_MEMBER or NAME_TAKEN.
        """
        self.tick(now)
        member = self.members.get(name)
        if member is None:
            message = f"group {self.name!r} has no member {name!r}: join again"
            raise Refusal(GroupErrorCode.UNKNOWN_MEMBER, message)
        self._check_link(member, link)
        member.link, member.seen = link, now
        return member

    def _check_link(self, member: Member, link: object, secret: int = 0) -> None:
        """Let a member change its connection; another process cannot take its name.

        A connection that only looks alive, because its other end is gone without a word, gives
        way to the one whose member knows the secret.
        """
        same = secret != 0 and secret == member.joining.secret
        if member.link is not link and self.is_alive(member.link) and not same:
            message = f"another connection has the name {member.name!r} and is alive"
            raise Refusal(GroupErrorCode.NAME_TAKEN, message)

    def _share(self, member: Member) -> MemberTopics:
        """Return the topics that a member owns or can have, and those that it has to give up."""
        name = member.name
        assigned = (
            topic_id
            for topic_id, topic in self.topics.items()
            if topic.target == name and topic.owner in {None, name} and not topic.released
        )
        revoked = (
            topic_id
            for topic_id, topic in self.topics.items()
            if topic.owner == name and topic.moving and not topic.released
        )
        return MemberTopics(frozenset(assigned), frozenset(revoked))

    # Commits

    def begin_commit(
        self, member: Member, commit: Commit, sequence: int = 0
    ) -> GroupErrorCode | None:
        """Judge a commit.

        Args:
            member: who commits.
            commit: with the generation under which the member was given the topic.
            sequence: rises with each commit of the member's process; 0 from older members.

        Returns:
            None: it must be stored, and `end_commit` called; NONE: it was recorded already, or a
            later one was; else why it is refused.
        """
        topic = self.topics.get(commit.topic.id)
        if topic is None or topic.identity.difference(commit.topic) is not None:
            return GroupErrorCode.UNKNOWN_TOPIC
        if topic.owner != member.name or topic.released:
            return GroupErrorCode.NOT_OWNER
        if not topic.since <= commit.generation <= self.generation:
            return GroupErrorCode.STALE_GENERATION
        if sequence and sequence <= topic.sequence:
            return GroupErrorCode.NONE
        topic.saving += 1
        member.busy += 1
        return None

    def end_commit(
        self, member: Member, commit: Commit, now: float, *, stored: bool, sequence: int = 0
    ) -> None:
        """Take note that a commit was stored, or could not be."""
        member.busy -= 1
        member.seen = max(member.seen, now)
        topic = self.topics.get(commit.topic.id)
        if topic is None:  # created again meanwhile
            return
        if stored:
            topic.position, topic.fence, topic.committed = commit, commit.generation, True
            topic.sequence = max(topic.sequence, sequence)
        topic.saved()

    # What time does

    def tick(self, now: float) -> None:
        """Remove the dead, and take away what was held too long."""
        dead = [member for member in self.members.values() if now >= member.expires_at]
        for member in dead:
            _log.warning(
                "group %r: member %r (%s) was silent for %.1f s and is taken for dead",
                self.name,
                member.name,
                member.joining.client,
                now - member.seen,
            )
            self._remove(member.name)
        settled = self.settled_at is not None and now >= self.settled_at
        if settled:
            self.settled_at = None
        if dead or settled:
            self._rebalance(now)
        self._take_away(now)

    def next_deadline(self) -> float:
        """Return when `tick` may have something to do."""
        due = [member.expires_at for member in self.members.values()]
        due += [topic.release_by for topic in self.topics.values() if not topic.released]
        if self.settled_at is not None:
            due.append(self.settled_at)
        return min(due, default=math.inf)

    def _take_away(self, now: float) -> None:
        late = [t for t in self.topics.values() if now >= t.release_by and not t.released]
        if not late:
            return
        self.generation += 1  # so that stores refuse the old owner, who still has the old one
        for topic in late:
            _log.warning(
                "group %r: member %r did not release topic %r in time and loses it",
                self.name,
                topic.owner,
                topic.identity.label,
            )
            topic.release()

    def _remove(self, name: str) -> None:
        del self.members[name]
        for topic in self.topics.values():
            if topic.owner == name:
                topic.release()
            if topic.target == name:
                topic.target = None

    def _rebalance(self, now: float) -> None:
        if self.settled_at is not None:
            return
        self.generation += 1
        self.sift = True
        owners = self._divide()
        for topic_id, topic in self.topics.items():
            topic.target = owners.get(topic_id)
            if not topic.moving:
                topic.release_by = math.inf
            elif topic.release_by == math.inf and topic.owner in self.members:
                owner = self.members[topic.owner]
                topic.release_by = now + owner.joining.rebalance_timeout

    def _divide(self) -> dict[int, str]:
        members = [self.members[name].view for name in sorted(self.members)]
        topics = sorted((t.identity for t in self.topics.values()), key=lambda each: each.label)
        present = {
            topic_id: name
            for topic_id, topic in self.topics.items()
            for name in (topic.target, topic.owner)  # an owner that is present replaces the target
            if name in self.members
        }
        try:
            return self.strategy.owners(members, topics, present)
        except Exception:  # noqa: BLE001 - a custom strategy may raise anything
            _log.exception(
                "group %r: strategy %r failed; topics are divided by %r instead",
                self.name,
                self.strategy.name,
                STICKY.name,
            )
            return STICKY.owners(members, topics, present)
