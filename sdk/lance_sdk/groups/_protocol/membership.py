"""A member's subscription, its assignment, and its state."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lance_sdk._protocol.request_tracker import PendingRequest
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_spec.enums import Command
from lance_spec.messages.groups import GroupCommitAck


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRequest:
    """What a member asks for.

    Attributes:
        group: name of the group.
        member: name in it; empty leaves it to the coordinator.
        topics: that it reads.
        strategy: name of the way in which topics are divided; empty leaves it open.
        session_timeout: seconds of silence after which it is taken for dead.
        rebalance_timeout: seconds that it may need to give topics up.
        client: what it is, for people.
        metadata: for a custom strategy.
    """

    group: str
    member: str
    topics: tuple[TopicIdentity, ...]
    strategy: str
    session_timeout: float
    rebalance_timeout: float
    client: str
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class AssignedTopic:
    """A topic that a member was given.

    Attributes:
        topic: its identity.
        commit: how far the group has come in it; None where it never committed.
        generation: under which the member owns it.
    """

    topic: TopicIdentity
    commit: Commit | None
    generation: int


@dataclass(frozen=True, slots=True)
class Change:
    """What changed in a member's topics.

    Attributes:
        generation: of the group.
        assigned: topics that are new.
        revoked: topics to finish, commit and release.
        lost: topics that are not its own any more.
    """

    generation: int
    assigned: tuple[AssignedTopic, ...] = ()
    revoked: tuple[TopicIdentity, ...] = ()
    lost: tuple[TopicIdentity, ...] = ()

    def parts(self) -> list["Change"]:
        """Return it one kind after the other: what interrupts one leaves the others to be told."""
        parts = (
            Change(self.generation, lost=self.lost),
            Change(self.generation, revoked=self.revoked),
            Change(self.generation, assigned=self.assigned),
        )
        return [part for part in parts if part.assigned or part.revoked or part.lost]


class MembershipPhase(Enum):
    """Where a membership stands."""

    OUTSIDE = "outside"
    INSIDE = "inside"
    GONE = "gone"


class CommitCall(PendingRequest):
    """A GroupCommit that somebody waits for.

    Args:
        commits: how far the member is, by topic, each under the generation of its assignment.

    Attributes:
        sequence: its number among the member's commits; given when it is submitted.
    """

    __slots__ = ("commits", "sequence")

    def __init__(self, commits: Sequence[Commit]) -> None:
        # The payload is made when it is sent: the member's name may be new by then.
        super().__init__(
            Command.GROUP_COMMIT,
            b"",
            Command.GROUP_COMMIT_ACK,
            GroupCommitAck.decode,
            repeatable=True,
        )
        self.commits = tuple(commits)
        self.sequence = 0
