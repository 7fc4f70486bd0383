"""How far a member is in a topic: what was handed out, what is done, what is committed."""

from time import time_ns

from lance_sdk._errors.base import LanceError
from lance_sdk.groups._protocol.membership import AssignedTopic
from lance_sdk.offsets.contract import Commit, Fingerprint, TopicIdentity
from lance_sdk.types import RecordBatch


class TopicProgress:
    """Where the application is in one topic.

    Args:
        group: name of the group.
        assigned: the topic, and where the group stands in it.

    Attributes:
        topic: the topic.
        generation: under which it is owned.
        offset: where the next record to be processed begins; None until that is known.
        resume_at: the commit that the group had when the topic was assigned.
        committed: offset of the last commit; None where there is none.
        place_commit: the commit of a place that was looked for, until it is submitted.
    """

    def __init__(self, group: str, assigned: AssignedTopic) -> None:
        self._group = group
        self.topic: TopicIdentity = assigned.topic
        self.generation = assigned.generation
        self.resume_at = assigned.commit
        self.committed = _committed(assigned)
        self.offset = self.committed
        self.place_commit: Commit | None = None
        self._batch: RecordBatch | None = None

    def __repr__(self) -> str:
        return f"<TopicProgress {self.topic.label} offset={self.offset} committed={self.committed}>"

    def passed(self, batch: RecordBatch, offset: int) -> None:
        """Take note that the records of a batch are done up to an offset."""
        self._batch, self.offset = batch, offset

    def moved(self, offset: int | None) -> None:
        """Take note that the application goes on from elsewhere."""
        self._batch, self.offset = None, offset

    def found(self, offset: int) -> None:
        """Take note of the place that was looked for."""
        self.place_commit = self._commit_of(offset, None)
        self.moved(offset)

    @property
    def due(self) -> bool:
        """Whether there is something to commit."""
        return self.offset is not None and self.offset != self.committed

    def commit(self) -> Commit:
        """Return the commit of what is done."""
        assert self.offset is not None, "something is done"
        batch, mark = self._batch, None
        if batch is not None and not batch.opaque:
            mark = Fingerprint.of(batch.data[: self.offset - batch.offset], self.offset)
        return self._commit_of(self.offset, mark)

    def _commit_of(self, offset: int, mark: Fingerprint | None) -> Commit:
        return Commit(
            consumer=self._group,
            topic=self.topic,
            offset=offset,
            fingerprint=mark,
            generation=self.generation,
            committed_at_ns=time_ns(),
        )


def _committed(assigned: AssignedTopic) -> int | None:
    """Return how far a topic is committed; what is of an earlier topic of its name is not."""
    commit = assigned.commit
    if commit is None:
        return None
    try:
        commit.check_topic(assigned.topic)
    except LanceError:
        return None
    return commit.offset
