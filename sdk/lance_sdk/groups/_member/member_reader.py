"""A member's work on its topics, without waiting: the same for both APIs."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from lance_sdk._api.consumer_position import rest_of
from lance_sdk.groups._member.progress import TopicProgress
from lance_sdk.groups._protocol.membership import AssignedTopic
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_sdk.types import Record, RecordBatch

if TYPE_CHECKING:
    from lance_sdk.groups._member.settings import GroupSettings
    from lance_sdk.groups._member.topics_settings import TopicsSettings


class MemberReader:
    """Knows what was handed to the application, what is done, and what is to be committed.

    Args:
        settings: of the member, or of the consumer of several topics.

    Attributes:
        progress: of the topics that the member reads, by number.
        records: the records of the current batch that have not been handed out; replaced when
            they are not wanted any more.
        taken: the batch that was taken last and has arrived here.
        commit_at: when the next automatic commit is due; never, when there is none.
    """

    def __init__(self, settings: "GroupSettings | TopicsSettings") -> None:
        self._settings = settings
        self._batch: RecordBatch | None = None
        self._of: TopicProgress | None = None
        self._last: Record | None = None
        self._whole = False
        self._done = False
        self.progress: dict[int, TopicProgress] = {}
        self.records: Iterator[Record] = iter(())
        self.taken: RecordBatch | None = None
        self.commit_at = math.inf if settings.auto_commit == "off" else 0.0

    def __repr__(self) -> str:
        return f"<MemberReader {list(self.progress.values())!r}>"

    @property
    def topics(self) -> tuple[TopicIdentity, ...]:
        """The topics, by name."""
        found = (each.topic for each in self.progress.values())
        return tuple(sorted(found, key=lambda topic: topic.label))

    # Topics come and go

    def begin(self, assigned: Iterable[AssignedTopic]) -> None:
        """Take topics up; what was assigned under the same generation before stays as it is."""
        for each in assigned:
            before = self.progress.get(each.topic.id)
            if before is None or before.generation != each.generation:
                self.progress[each.topic.id] = TopicProgress(self._settings.group, each)

    def drop(self, topics: Iterable[TopicIdentity]) -> None:
        """Let topics go; what is left of a batch of theirs is not handed out."""
        for topic in topics:
            gone = self.progress.pop(topic.id, None)
            if gone is not None and gone is self._of:
                self._forget()

    def moved(self, topic_id: int, offset: int | None) -> None:
        """Take note that the application goes on from elsewhere."""
        progress = self.progress[topic_id]
        progress.moved(offset)
        if progress is self._of:
            self._forget()

    def _forget(self) -> None:
        self._batch = self._of = self._last = None
        self.records = iter(())

    # Records

    def hand_over(self, topic_id: int, batch: RecordBatch) -> RecordBatch:
        """Take note that a batch was taken, of which no record is handed out yet; return it."""
        records = iter(batch)
        # In one step: Ctrl-C comes before, and the batch is reclaimed, or after it.
        self._of = self.progress[topic_id]
        self._whole = self._done = False
        self._last, self.records, self._batch, self.taken = None, records, batch, batch
        return batch

    def whole(self, batch: RecordBatch) -> RecordBatch:
        """Take note that the batch at hand, or its beginning, is handed out whole; return it."""
        nothing: Iterator[Record] = iter(())
        self._batch, self._whole, self._last, self.records = batch, True, None, nothing
        return batch

    def split(self, most: int) -> tuple[int, RecordBatch, list[RecordBatch]]:
        """Return the topic of the batch at hand, its first records, and the others.

        The others are to be put back, the first of them last.
        """
        assert self._batch is not None, "it was handed over"
        assert self._of is not None, "it was handed over"
        whole, first = self._batch, pieces(self._batch, most)[0]
        at = first.next_offset - whole.offset
        left = whole.count - first.count
        rest = replace(whole, offset=first.next_offset, count=left, data=whole.data[at:])
        others = pieces(rest, self._settings.max_poll_records or left)
        return self._of.topic.id, first, others[::-1]

    def note(self, record: Record) -> None:
        """Take note that a record is handed out."""
        self._last, self._done = record, False

    def done(self) -> None:
        """Take note that the application is done with what was handed to it."""
        if self._of is None or self._batch is None:
            return
        self._done = True
        if self._whole:
            self._of.passed(self._batch, self._batch.next_offset)
        elif self._last is not None:
            self._of.passed(self._batch, self._last.next_offset)

    def position(self, topic_id: int) -> int | None:
        """Return where the next record of a topic begins that was not handed out."""
        progress = self.progress[topic_id]
        if progress is self._of and self._batch is not None:
            if self._whole:
                return self._batch.next_offset
            return self._batch.offset if self._last is None else self._last.next_offset
        return progress.offset

    def leave(self) -> None:
        """Take note that the application goes away: it may not be done with what it has."""
        if self._settings.auto_commit == "interval":
            self.done()
        elif self._of and self._batch and self._last is not None and not self._done:
            self._of.passed(self._batch, self._last.offset)

    def rest(self) -> RecordBatch | None:
        """Return what is left of a batch that was begun record by record."""
        if (rest := self._left()) is not None:
            self._batch, self._last = rest, None
        return rest

    def resume(self) -> None:
        """Go on in a batch that a loop has left: Ctrl-C in it may have ended the iterator."""
        if (rest := self._left()) is not None:
            self.records = iter(rest)

    def give_back(self, topic_id: int) -> RecordBatch | None:
        """Return what is left of a batch of this topic, which is not handed out for now."""
        if self._of is None or self._of is not self.progress.get(topic_id):
            return None
        rest, batch = self._left(), self._batch
        if rest is None or batch is None:
            return None
        self.records = iter(())
        count = batch.count - rest.count
        self._batch = replace(batch, count=count, data=batch.data[: rest.offset - batch.offset])
        return rest

    def _left(self) -> RecordBatch | None:
        batch, last = self._batch, self._last
        if batch is None or self._whole:
            return None
        return rest_of(batch, batch.offset if last is None else last.next_offset)

    def found(self, places: Iterable[tuple[int, int]]) -> None:
        """Take note of places that were looked for.

        Where a group begins without a commit, for example at the end, is decided once: a later
        owner must not look for the end again, and pass over what came in between.
        """
        for topic_id, offset in places:
            progress = self.progress.get(topic_id)
            if progress is not None and progress.offset is None:
                progress.found(offset)

    def place_commits(self) -> list[Commit]:
        """Return places that were looked for as commits, until these are `submitted`."""
        made = (each.place_commit for each in self.progress.values())
        return [commit for commit in made if commit is not None]

    def submitted(self, commits: Iterable[Commit]) -> None:
        """Take note that these are on their way."""
        for commit in commits:
            progress = self.progress.get(commit.topic.id)
            if progress is not None and progress.place_commit is commit:
                progress.place_commit = None

    # Commits

    def commits(self, topics: Sequence[TopicIdentity] | None = None) -> list[Commit]:
        """Return what there is to be committed, of these topics or all."""
        wanted = self.progress if topics is None else {topic.id for topic in topics}
        found = (each for topic_id, each in self.progress.items() if topic_id in wanted)
        return [progress.commit() for progress in found if progress.due]

    @property
    def automatic_due(self) -> bool:
        """Whether there is something that an automatic commit would commit."""
        off = self.commit_at == math.inf
        return not off and any(progress.due for progress in self.progress.values())

    def automatic(self, now: float) -> list[Commit]:
        """Return what is to be committed without being asked to."""
        if now < self.commit_at:
            return []
        self.commit_at = now + self._settings.commit_interval
        return self.commits()

    def last_words(
        self, topics: Sequence[TopicIdentity], found: Iterable[Commit] = ()
    ) -> list[Commit]:
        """Return what is to be committed of topics before they are given up.

        Args:
            topics: that are given up.
            found: where the group begins in topics; committed in any case.
        """
        last = {commit.topic.id: commit for commit in found}
        if self._settings.auto_commit != "off":
            last |= {commit.topic.id: commit for commit in self.commits(topics)}
        return list(last.values())

    def committed(self, commits: Iterable[Commit]) -> None:
        """Take note that these were recorded."""
        for commit in commits:
            progress = self.progress.get(commit.topic.id)
            if progress is not None and progress.generation == commit.generation:
                progress.committed = commit.offset


def pieces(batch: RecordBatch, most: int) -> list[RecordBatch]:
    """Return a batch in pieces of so many records at most."""
    if batch.count <= most or batch.opaque:
        return [batch]
    ends = [record.next_offset for record in islice(batch, most - 1, None, most)]
    if not ends or ends[-1] < batch.next_offset:
        ends.append(batch.next_offset)
    begins = [batch.offset, *ends[:-1]]
    return [
        replace(
            batch,
            offset=begin,
            count=min(most, batch.count - number * most),
            data=batch.data[begin - batch.offset : end - batch.offset],
        )
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True))
    ]
