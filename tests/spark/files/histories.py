"""What random histories of a server share: what was sent, and streaming queries that follow."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.checkpoint import TopicCheckpoint, decode_checkpoint
from lance_sdk.spark.streaming.streams import StreamOffsets

Rows = list[tuple[int, bytes]]
LIMITS = (1, 200, 2**62)
"""Bytes that a micro-batch may take."""


class History(Protocol):
    """What a server lives through.

    Attributes:
        random: decides what happens.
        eras: the topics that there were of the name, in order.
    """

    random: Random
    eras: Sequence["Era"]

    def options(self, **said: str) -> Options:
        """Return the options of a query."""
        ...

    def note_begin(self) -> None:
        """Note where the topic begins now: retention may have gone on while something was read."""
        ...

    def lags(self, planned: TopicCheckpoint | None) -> bool:
        """Whether what is read ends before a micro-batch that was planned from something else."""
        ...

    def rows(self, splits: Any) -> Rows:
        """Read splits as tasks would."""
        ...


@dataclass
class Era:
    """A topic of the name, from its creation to its deletion.

    Attributes:
        topic: its number.
        sent: every record that was ever handed to the server, in order.
        acked: how many of them were acknowledged.
        begin: where the topic may begin at most: retention drops nothing without saying so.
        deleted: whether its deletion was asked for.
    """

    topic: int
    sent: Rows = field(default_factory=list)
    acked: int = 0
    begin: int = 0
    deleted: bool = False

    def check(self, found: Rows, acked: int) -> None:
        """Compare what a query found with what was sent, of which so many were acknowledged."""
        kept = [row for row in self.sent[:acked] if row[0] >= self.begin]
        if not found:
            assert not kept
            return
        first = self.place(found[0])
        self.compare(found, first, acked)
        assert first + len(found) >= acked
        assert all(offset < self.begin for offset, _ in self.sent[:first])

    def place(self, row: tuple[int, bytes]) -> int:
        """Return which of the records a row is: their values differ."""
        return [value for _, value in self.sent].index(row[1])

    def has(self, row: tuple[int, bytes]) -> bool:
        """Whether a row is a record of this topic."""
        return any(value == row[1] for _, value in self.sent)

    def compare(self, found: Rows, first: int, acked: int) -> None:
        """Compare rows with the records from a place on.

        A batch that is not acknowledged may be stored farther on: a server that was killed does
        not use the offsets of a torn tail again.
        """
        wanted = self.sent[first : first + len(found)]
        assert [value for _, value in found] == [value for _, value in wanted]
        settled = max(0, acked - first)
        assert found[:settled] == wanted[:settled]
        assert [offset for offset, _ in found] == sorted({offset for offset, _ in found})


class Follower:
    """A streaming query that is started again before each of its micro-batches.

    Args:
        history: what it reads.
        waits: how often, of 1, it reads a micro-batch later than it plans it.
        said: its options.
    """

    def __init__(self, history: History, *, waits: float = 0.0, **said: str) -> None:
        self._history = history
        self._said = said
        self._waits = waits
        self._is_strict = said.get("failOnDataLoss") != "false"
        self._at: Any = None
        self._pending: Any = None
        self._reads_next = 0
        """Which record of the era comes next, where nothing is lost."""
        self._era: Era | None = None

    def go_on(self) -> None:
        """Start from the checkpoint and plan a micro-batch, or read the one that is planned.

        Between the two the query is started again, and the server may have done anything.
        """
        if self._lags():
            return  # it would wait, and nothing moves while it is looked at
        try:
            if self._pending is None:
                self._pending = self._planned()
            if self._pending is None or self._history.random.random() < self._waits:
                return
            if self._lags():
                return
            end = self._pending
            rows = self._history.rows(self._started().splits(end))
        except DataLost:
            assert self._is_strict
            self._history.note_begin()
            assert self._may_lose()
            self._at = self._pending = None  # a new query
            return
        self._history.note_begin()
        self._take(rows, decode_checkpoint(end).get("orders"))
        self._at, self._pending = end, None

    def _lags(self) -> bool:
        known = self._pending or self._at
        return bool(known) and self._history.lags(decode_checkpoint(known).get("orders"))

    def _started(self) -> StreamOffsets:
        options = self._history.options(**self._said)
        return StreamOffsets(open_log(options), options, sleep=lambda _: None)

    def _planned(self) -> Any:
        progress = self._started()
        if self._at is None:
            self._at = json.loads(json.dumps(progress.initial()))
            begin = decode_checkpoint(self._at).get("orders")
            self._era = None if begin is None else self._history.eras[-1]
            self._reads_next = 0 if begin is None else self._place(begin.offset)
        limit = self._history.random.choice(LIMITS)
        end = json.loads(json.dumps(progress.advance(self._at, limit)))
        return None if end == self._at else end

    def _place(self, offset: int) -> int:
        era = self._history.eras[-1]
        settled = era.sent[: era.acked]
        return next((n for n, row in enumerate(settled) if row[0] >= offset), len(settled))

    def _may_lose(self) -> bool:
        """Whether retention or a deletion took something that this query had before it."""
        era = self._history.eras[-1]
        if self._era is not era or era.deleted:
            return True
        begin = era.sent[self._reads_next][0] if self._reads_next < len(era.sent) else None
        return begin is not None and begin < era.begin

    def _take(self, rows: Rows, planned: TopicCheckpoint | None) -> None:
        """Hold what was delivered against what was sent, from where the last batch ended."""
        if planned is None or planned.start == planned.offset:  # nothing, or of a new topic
            assert not rows
            return
        era = next(each for each in self._history.eras if each.topic == planned.topic.id)
        self._has_whole_range(rows, planned, era)
        if not rows:
            return
        if era is not self._era:
            assert self._era is None or not self._is_strict
            self._era, self._reads_next = era, 0
        first = era.place(rows[0])
        assert first >= self._reads_next
        skipped = era.sent[self._reads_next : first]
        assert all(offset < era.begin for offset, _ in skipped)
        assert not (skipped and self._is_strict and not era.deleted)
        era.compare(rows, first, era.acked)
        self._reads_next = first + len(rows)

    def _has_whole_range(self, rows: Rows, planned: TopicCheckpoint, era: Era) -> None:
        """What was planned was delivered, but for what retention or a deletion took."""
        begin = planned.start if self._is_strict else max(planned.start, era.begin)
        wanted = [row for row in era.sent[: era.acked] if begin <= row[0] < planned.offset]
        if not (era.deleted and not rows and not self._is_strict):
            assert rows[: len(wanted)] == wanted

    def has_all(self) -> bool:
        """Whether everything acknowledged was delivered."""
        return self._era is self._history.eras[-1] and self._reads_next >= self._era.acked
