"""How far a member is in a topic: what was handed out, what is done, what is committed."""

from time import time_ns

from lance_sdk.errors import ConsumeError
from lance_sdk.groups._core.membership import AssignedTopic
from lance_sdk.offsets.contract import Commit, Fingerprint, TopicIdentity
from lance_sdk.types import RecordBatch
from lance_spec.records import scan_records


class Progress:
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
    """

    def __init__(self, group: str, assigned: AssignedTopic) -> None:
        self._group = group
        self.topic: TopicIdentity = assigned.topic
        self.generation = assigned.generation
        self.resume_at = assigned.commit
        self.committed = None if assigned.commit is None else assigned.commit.offset
        self.offset = self.committed
        self._batch: RecordBatch | None = None

    def __repr__(self) -> str:
        return f"<Progress {self.topic.label} offset={self.offset} committed={self.committed}>"

    def passed(self, batch: RecordBatch, offset: int) -> None:
        """Take note that the records of a batch are done up to an offset."""
        self._batch, self.offset = batch, offset

    def moved(self, offset: int | None) -> None:
        """Take note that the application goes on from elsewhere."""
        self._batch, self.offset = None, offset

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
        return Commit(
            consumer=self._group,
            topic=self.topic,
            offset=self.offset,
            fingerprint=mark,
            generation=self.generation,
            committed_at_ns=time_ns(),
        )


class Resume:
    """Goes on behind a commit only where the records before it are still the ones (AMB-30).

    Args:
        commit: where to go on; None where there is nothing to check.
        start: where a consumer begins that has no commit.
        topic: the topic as its server tells it.

    Attributes:
        start: where the consumer has to begin.

    Raises:
        TopicChanged: the commit is one of another topic.
    """

    def __init__(self, commit: Commit | None, start: str | int, topic: TopicIdentity) -> None:
        self._commit = commit
        self._seen = bytearray()
        self.start = start
        if commit is None:
            return
        commit.check_topic(topic)
        mark = commit.fingerprint
        self.start = commit.offset if mark is None else mark.start

    @property
    def checking(self) -> bool:
        """Whether records have to be seen before any can be handed out."""
        return self._commit is not None and self._commit.fingerprint is not None

    def skip_check(self) -> int:
        """Go on without it: retention took the records; identity alone decides (AMB-30)."""
        assert self._commit is not None, "there was something to check"
        self.start = offset = self._commit.offset
        self._commit = None
        return offset

    def take(self, batch: RecordBatch) -> RecordBatch | None:
        """Return what is left of a batch to be handed out.

        Raises:
            TopicChanged: the log holds other records than those that were read.
        """
        commit = self._commit
        if commit is None or commit.fingerprint is None:
            return batch
        data, left = batch.data, commit.offset - batch.offset
        if batch.offset != commit.fingerprint.start + len(self._seen):
            raise ConsumeError(f"a gap before offset {commit.offset}", batch.offset)
        self._seen += data[:left]
        if len(data) < left:
            return None
        commit.check_records(bytes(self._seen))
        self._commit = None
        rest = data[left:]
        if not rest:
            return None
        return RecordBatch(batch.topic, commit.offset, scan_records(rest).count, rest)
