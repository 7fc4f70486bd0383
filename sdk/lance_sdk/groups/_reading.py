"""What a member does with its topics, without waiting for anything: the same for both faces."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lance_sdk.groups._core.membership import AssignedTopic
from lance_sdk.groups._progress import Progress
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_sdk.types import Record, RecordBatch

if TYPE_CHECKING:
    from lance_sdk.groups._settings import GroupSettings


class Reading:
    """Knows what was handed to the application, what is done, and what is to be committed.

    Args:
        settings: of the member.

    Attributes:
        progress: of the topics that the member reads, by number.
        records: the records of the current batch that have not been handed out; replaced when
            they are not wanted any more.
        commit_at: when the next automatic commit is due; never, when there is none.
    """

    def __init__(self, settings: "GroupSettings") -> None:
        self._settings = settings
        self._batch: RecordBatch | None = None
        self._of: Progress | None = None
        self._last: Record | None = None
        self._whole = False
        self._done = False
        self.progress: dict[int, Progress] = {}
        self.records: Iterator[Record] = iter(())
        self.commit_at = math.inf if settings.auto_commit == "off" else 0.0

    def __repr__(self) -> str:
        return f"<Reading {list(self.progress.values())!r}>"

    @property
    def topics(self) -> tuple[TopicIdentity, ...]:
        """The topics, by name."""
        found = (each.topic for each in self.progress.values())
        return tuple(sorted(found, key=lambda topic: topic.label))

    # Topics come and go

    def begin(self, assigned: Iterable[AssignedTopic]) -> None:
        """Take topics up."""
        for each in assigned:
            self.progress[each.topic.id] = Progress(self._settings.group, each)

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

    def hand_over(self, topic_id: int, batch: RecordBatch, *, whole: bool) -> None:
        """Take note that a batch is handed out, whole or record by record."""
        self._batch, self._of, self._last = batch, self.progress[topic_id], None
        self._whole, self._done = whole, False
        self.records = iter(()) if whole else iter(batch)

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

    def leave(self) -> None:
        """Take note that the application goes away: it may not be done with what it has."""
        if self._settings.auto_commit == "interval":
            self.done()
        elif self._of and self._batch and self._last is not None and not self._done:
            self._of.passed(self._batch, self._last.offset)

    def rest(self) -> RecordBatch | None:
        """Return what is left of a batch that was begun record by record."""
        batch, last = self._batch, self._last
        if batch is None or self._whole:
            return None
        at = batch.offset if last is None else last.next_offset
        if at >= batch.next_offset:
            return None
        count = sum(1 for _ in self.records)
        rest = replace(batch, offset=at, count=count, data=batch.data[at - batch.offset :])
        self._batch, self._last, self._whole = rest, None, True
        return rest

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

    def last_words(self, topics: Sequence[TopicIdentity]) -> list[Commit]:
        """Return what is to be committed of topics before they are given up."""
        return [] if self._settings.auto_commit == "off" else self.commits(topics)

    def committed(self, commits: Iterable[Commit]) -> None:
        """Take note that these were recorded."""
        for commit in commits:
            progress = self.progress.get(commit.topic.id)
            if progress is not None and progress.generation <= commit.generation:
                progress.committed = commit.offset
