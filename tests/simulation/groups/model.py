"""What was handed out and committed, and what must never happen."""

from dataclasses import dataclass, field

from tests.simulation.groups.server import RECORD

from lance_sdk.offsets import Commit, TopicIdentity


class ViolationError(AssertionError):
    """A promise was broken."""


@dataclass(eq=False)
class Model:
    """Watches one group.

    Attributes:
        handed: by topic number the records that were handed to an application.
        committed: by topic number the last commit that was stored.
        begins: by topic number where the group has begun.
        owners: by topic number and generation whose commits were taken.
        restores: how often the store has gone back to an earlier state.
    """

    handed: dict[int, set[int]] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    begins: dict[int, int] = field(default_factory=dict)
    owners: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)
    restores: int = 0

    def hand_out(self, topic: TopicIdentity, numbers: list[int]) -> None:
        """Take note that records were handed out."""
        self.handed.setdefault(topic.id, set()).update(numbers)

    def taken(self, commit: Commit, member: str, secret: int, owner_now: str | None) -> None:
        """Take note that a member's commit was taken.

        Raises:
            ViolationError: the topic is another one's, or another one's commit was taken in the
                same generation.
        """
        if owner_now != member:
            raise ViolationError(
                f"commit of {commit.topic.label} was taken from {member}, it belongs to {owner_now}"
            )
        key = commit.topic.id, commit.generation
        owner = self.owners.setdefault(key, (member, secret))
        if owner != (member, secret):
            raise ViolationError(
                f"two owners of topic {commit.topic.label} in one generation: {owner[0]}, {member}"
            )

    def stored(self, commit: Commit, end: int) -> None:
        """Take note that a commit is in the store.

        Raises:
            ViolationError: it went back, or beyond what was handed out.
        """
        topic = commit.topic
        last = self.committed.get(topic.id)
        if last is not None and commit.offset < last:
            raise ViolationError(f"commit of {topic.label} went back: {last} to {commit.offset}")
        if last is None and topic.id not in self.begins:
            self.begins[topic.id] = commit.offset if commit.offset > self._reached(topic.id) else 0
        begin = self.begins.get(topic.id, 0)
        if commit.offset > max(self._reached(topic.id), begin) or commit.offset > end:
            raise ViolationError(f"commit of {topic.label} beyond what was handed out")
        self.committed[topic.id] = commit.offset

    def _reached(self, topic_id: int) -> int:
        return (max(self.handed.get(topic_id, ()), default=-1) + 1) * RECORD

    def restored(self, commits: list[Commit]) -> None:
        """Take note that the store has gone back to an earlier state."""
        self.restores += 1
        self.owners.clear()  # an old file does not know their generations, and gives them again
        self.committed = {commit.topic.id: commit.offset for commit in commits}
        kept = self.begins.items()
        self.begins = {number: at for number, at in kept if number in self.committed}

    def confirmed(self, topic: TopicIdentity, offset: int | None) -> None:
        """Take note that a member was told that a commit is durable.

        Raises:
            ViolationError: it is not in the store.
        """
        stored = self.committed.get(topic.id, -1)
        if offset is not None and offset > stored:
            raise ViolationError(
                f"a commit of {topic.label} was confirmed, {offset}, but {stored} is stored"
            )

    def check_committed(self, topic: TopicIdentity, count: int) -> None:
        """Check that everything of a topic that was handed out is committed.

        Raises:
            ViolationError: it is not, though nothing happened for a while.
        """
        stored = self.committed.get(topic.id, 0)
        if stored < count * RECORD:
            raise ViolationError(f"{topic.label} is committed to {stored} of {count * RECORD}")

    def check_everything_came(self, topic: TopicIdentity, count: int) -> None:
        """Check that every record of a topic was handed out.

        Raises:
            ViolationError: one was passed over.
        """
        first = self.begins.get(topic.id, 0) // RECORD
        missing = set(range(first, count)) - self.handed.get(topic.id, set())
        if missing:
            raise ViolationError(
                f"{len(missing)} records of {topic.label} were passed over, first {min(missing)}"
            )
