"""A group's state at its coordinator: members, topics, and assignments."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_sdk.groups.strategies import MemberView
from lance_sdk.offsets.contract import Commit, TopicIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What a member brings when it joins.

    Attributes:
        name: that it wants.
        link: stands for its connection.
        topics: that it reads.
        session_timeout: seconds of silence after which it is taken for dead.
        rebalance_timeout: seconds that it may take to give topics up.
        owned: numbers of the topics that it still holds from before.
        generation: the last that it knew.
        since: generation under which it was given each topic that it holds, where it knows.
        secret: of its process; 0 from older members, who have none.
        client: what it is, for people.
        metadata: for a custom strategy.
    """

    name: str
    link: object
    topics: tuple[TopicIdentity, ...]
    session_timeout: float
    rebalance_timeout: float
    owned: frozenset[int] = frozenset()
    generation: int = 0
    since: Mapping[int, int] = field(default_factory=dict)
    secret: int = 0
    client: str = ""
    metadata: bytes = b""

    def held_since(self, topic_id: int) -> int:
        """Return the generation under which it was given a topic that it holds."""
        return self.since.get(topic_id, self.generation)


@dataclass(frozen=True, slots=True)
class MemberTopics:
    """The topics of one member, by number.

    Attributes:
        assigned: that are its own, or will be once it syncs.
        revoked: that it owns until it releases them.
    """

    assigned: frozenset[int] = frozenset()
    revoked: frozenset[int] = frozenset()

    def without(self, topic_ids: frozenset[int]) -> "MemberTopics":
        """Return it without some topics that are not owned yet."""
        return MemberTopics(self.assigned - topic_ids, self.revoked)


@dataclass(slots=True, eq=False)
class Member:
    """A member of a group.

    Attributes:
        joining: what it brought.
        link: stands for the connection that it uses.
        seen: when it was last heard of.
        busy: commits of it that are being stored.
        generation: of its last sync.
        told: what it was told in its last sync.
    """

    joining: Joining
    link: object
    seen: float
    busy: int = 0
    generation: int = 0
    told: MemberTopics = MemberTopics()

    @property
    def name(self) -> str:
        """Unique in the group."""
        return self.joining.name

    @property
    def view(self) -> MemberView:
        """The member as a strategy sees it."""
        topics = frozenset(topic.id for topic in self.joining.topics)
        return MemberView(self.name, topics, self.joining.metadata)

    @property
    def expires_at(self) -> float:
        """When it is taken for dead; never while its own commit is being stored."""
        return math.inf if self.busy else self.seen + self.joining.session_timeout


@dataclass(slots=True, eq=False)
class Topic:
    """A topic of a group.

    Attributes:
        identity: what it is.
        position: how far the group has come in it.
        fence: highest generation that is known to its store.
        owner: name of the member that was told to own it.
        since: generation in which the owner got it.
        recognised: whether the owner brought it from an earlier life of the group.
        sequence: number of the last commit that the owner's process has recorded.
        committed: whether the owner has recorded any.
        target: name of the member that is meant to own it.
        release_by: when an owner that is not the target any more loses it.
        saving: commits of it that are being stored.
        released: whether the owner gave it up while one was being stored.
    """

    identity: TopicIdentity
    position: Commit | None = None
    fence: int = 0
    owner: str | None = None
    since: int = 0
    recognised: bool = False
    sequence: int = 0
    committed: bool = False
    target: str | None = None
    release_by: float = math.inf
    saving: int = 0
    released: bool = False

    @property
    def moving(self) -> bool:
        """Whether its owner has to give it up."""
        return self.owner is not None and self.owner != self.target

    def give(self, owner: str, since: int, *, recognised: bool = False) -> None:
        """Make a member its owner."""
        self.owner, self.since, self.recognised = owner, since, recognised
        self.sequence, self.committed = 0, False

    def release(self) -> None:
        """End its ownership; while a commit is being stored, as soon as that is done."""
        self.released = self.saving > 0
        if not self.released:
            self.owner, self.release_by = None, math.inf

    def saved(self) -> None:
        """Take note that a commit of it is not being stored any more."""
        self.saving -= 1
        if self.released and not self.saving:
            self.release()


@dataclass(frozen=True, slots=True)
class Assigned:
    """A topic that a member owns.

    Attributes:
        identity: what it is.
        position: how far the group has come in it, where it has.
    """

    identity: TopicIdentity
    position: Commit | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member is told when it syncs.

    Attributes:
        generation: of the group.
        assigned: topics that it owns.
        revoked: numbers of those that it owns until it releases them.
        lost: numbers of those that it thought it held.
        left: seconds left to release.
    """

    generation: int
    assigned: tuple[Assigned, ...]
    revoked: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    left: float = 0.0
