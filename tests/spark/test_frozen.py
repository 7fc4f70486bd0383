"""A server's folder frozen at every step of random histories, read by files, judged by a model.

A history appends, closes, merges, drops, deletes and creates again, and kills; with and without a
write-ahead log. After every change of the disk a batch query reads the folder, the last planned
micro-batch is repeated, and now and then two streaming queries, of which one may lose data, are
started again from their checkpoints and go on.
"""

import json
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lance_sdk.errors import TopicNotFound
from lance_sdk.spark.checkpoint import TopicCheckpoint, decode_checkpoint
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.options import Options
from lance_sdk.spark.pipelines.audit import audit_one, targets
from lance_sdk.spark.resolve import open_log
from lance_sdk.spark.streams import Progress
from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.segments.compaction import CompactionPolicy
from lance_server.storage.pwritev import PwritevStorage
from lance_server.storage.wal import WalStorage
from lance_server.storage.wrapper import WrapperStorage
from lance_server.testing import LogDriver, ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

POLICY = CompactionPolicy(min_segments=3, max_segments=5, small=1000)
OPTIONS = LogOptions(segment_size=400, segment_age_secs=1, compaction=POLICY)
COLUMNS = ("offset", "value")
SECOND_NS = 1_000_000_000
HISTORIES = int(os.environ.get("LANCE_SPARK_HISTORIES", "8"))
STEPS = 24
EVERYTHING = 2**62
Rows = list[tuple[int, bytes]]


class Frozen(WrapperStorage):
    """A disk on which somebody looks after every step that changes it."""

    def __init__(self) -> None:
        super().__init__(PwritevStorage())
        self.look: Callable[[], None] = list

    def write(self, fd: int, data: Any, offset: int) -> None:
        """Write, then look."""
        super().write(fd, data, offset)
        self.look()

    def commit(self, writes: Any) -> list[OSError | None]:
        """Commit, then look."""
        found = super().commit(writes)
        self.look()
        return found

    def rename(self, source: Path, target: Path) -> None:
        """Rename, then look."""
        super().rename(source, target)
        self.look()

    def remove(self, path: Path) -> None:
        """Remove, then look."""
        super().remove(path)
        self.look()


@dataclass
class Era:
    """A topic of the name, from its creation to its deletion.

    Attributes:
        topic: its number.
        sent: every record that was ever handed to the server, in order.
        acked: how many of them were acknowledged.
        floor: where the topic may begin at most: retention drops nothing without saying so.
        deleted: whether its deletion was asked for.
    """

    topic: int
    sent: Rows = field(default_factory=list)
    acked: int = 0
    floor: int = 0
    deleted: bool = False

    def check(self, found: Rows) -> None:
        """Compare what a query found with what was sent."""
        kept = [row for row in self.sent[: self.acked] if row[0] >= self.floor]
        if not found:
            assert not kept
            return
        first = self.sent.index(found[0])
        assert found == self.sent[first : first + len(found)]
        assert first + len(found) >= self.acked
        assert found[0][0] <= self.floor


class Follower:
    """A streaming query that is started again before each of its micro-batches.

    Args:
        history: what it reads.
        said: its options.
    """

    def __init__(self, history: "History", **said: str) -> None:
        self._history = history
        self._options = history.options(**said)
        self._is_strict = self._options.fail_on_data_loss
        self._at: Any = None
        self._reads_next = 0
        """Which record of the era comes next, where nothing is lost."""
        self._era: Era | None = None

    def go_on(self) -> None:
        """Start from the checkpoint, plan a micro-batch, start again, and read it."""
        try:
            end = self._planned()
            rows = self._history.rows(self._started().splits(end)) if end is not None else []
        except DataLost:
            assert self._is_strict
            assert self._may_lose()
            self._at = None  # a new query
            return
        if end is not None:
            self._take(rows, decode_checkpoint(end)["orders"])
            self._at = end

    def _started(self) -> Progress:
        return Progress(open_log(self._options), self._options, sleep=lambda _: None)

    def _planned(self) -> Any:
        progress = self._started()
        if self._at is None:
            self._at = json.loads(json.dumps(progress.initial()))
            begin = decode_checkpoint(self._at).get("orders")
            self._era = None if begin is None else self._history.era
            self._reads_next = 0 if begin is None else self._place(begin.offset)
        limit = self._history.random.choice((1, 200, EVERYTHING))
        end = json.loads(json.dumps(progress.advance(self._at, limit)))
        return None if end == self._at else end

    def _place(self, offset: int) -> int:
        sent = self._history.era.sent
        return next((n for n, row in enumerate(sent) if row[0] >= offset), len(sent))

    def _may_lose(self) -> bool:
        """Whether retention or a deletion took something that this query had before it."""
        era = self._history.era
        if self._era is not era or era.deleted:
            return True
        begin = era.sent[self._reads_next][0] if self._reads_next < len(era.sent) else None
        return begin is not None and begin < era.floor

    def _take(self, rows: Rows, planned: TopicCheckpoint) -> None:
        """Hold what was delivered against what was sent, from where the last batch ended."""
        if not rows:
            return
        era = next(each for each in self._history.eras if rows[0] in each.sent)
        if era is not self._era:
            assert self._era is None or not self._is_strict
            self._era, self._reads_next = era, 0
        first = era.sent.index(rows[0])
        assert first >= self._reads_next
        skipped = era.sent[self._reads_next : first]
        assert all(offset < era.floor for offset, _ in skipped)
        assert not (skipped and self._is_strict)
        assert rows == era.sent[first : first + len(rows)]
        assert planned.topic.id == era.topic
        self._reads_next = first + len(rows)

    def has_all(self) -> bool:
        """Whether everything acknowledged was delivered."""
        return self._era is self._history.era and self._reads_next >= self._history.era.acked


class History:
    """A server that lives at random, and what a reader may find at each of its steps."""

    def __init__(self, data: Path, seed: int, reader: Any, *, wal: bool = False) -> None:
        self.data = data
        self.random = random.Random(seed)
        self.reader = reader
        self.disk = Frozen()
        self.clock = ManualClock()
        self.looks = 0
        self.sent = 0
        self.checkpoints: list[tuple[TopicCheckpoint, Rows, Era]] = []
        """Micro-batches as they were planned, with their records."""
        self._has_wal = wal
        if wal:
            data.mkdir()
        self.log = self._open()
        self.eras = [Era(self.log.create_topic("orders").file.identity.id)]
        self.followers = (Follower(self), Follower(self, failOnDataLoss="false"))
        self.disk.look = self.judge

    def _open(self) -> LogDriver:
        disk = WalStorage(self.disk, self.data, 4096, 8192) if self._has_wal else self.disk
        return LogDriver(disk, self.data, OPTIONS, self.clock)

    @property
    def era(self) -> Era:
        """The topic that there is now, or was created last."""
        return self.eras[-1]

    @property
    def topic(self) -> Any:
        """The server's topic."""
        return self.log.engine.topic(self.era.topic)

    def live(self, steps: int) -> None:
        """Take random steps."""
        often = (self.append,) * 4 + (self.tend, self.kill, self.drop, self.plan) * 2
        for _ in range(steps):
            self.random.choice((*often, self.create_again))()
            self.clock.now_ns += SECOND_NS * self.random.randrange(2)

    def append(self) -> None:
        """Write a batch and wait for its acknowledgement."""
        era, offset = self.era, self.log.end(self.era.topic)
        values = [b"%06d" % (self.sent + n) * 5 for n in range(self.random.randrange(1, 6))]
        for value in values:
            era.sent.append((offset, value))
            offset += 5 + len(value)
        self.sent += len(values)
        self.log.store(values, batch_id=self.sent + 2**40, topic_id=era.topic)
        era.acked = len(era.sent)

    def tend(self) -> None:
        """Close, merge and index what is due."""
        self.log.engine.upkeep.visit(self.topic)
        self.log.scheduler.run_all()

    def drop(self) -> None:
        """Let retention drop all but the newest bytes."""
        keep = self.random.choice((300, 900))
        self.log.engine.set_retention(self.topic, Retention(max_bytes=keep))
        self.log.scheduler.run_all()
        self.log.engine.set_retention(self.topic, Retention())
        self.log.scheduler.run_all()

    def kill(self) -> None:
        """End without closing anything, and start again."""
        self.log.engine.release()
        self.log = self._open()

    def create_again(self) -> None:
        """Delete the topic, and create one of the same name."""
        self.era.deleted = True
        self.log.engine.delete_topic(self.era.topic, text="gone")
        self.log.scheduler.run_all()
        self.eras.append(Era(-1))
        self.era.topic = self.log.create_topic("orders").file.identity.id

    def options(self, **said: str) -> Options:
        """Return the options of a query over the data directory."""
        where = {"path": str(self.data), "topicsPattern": "orders", "pollInterval": "0s"}
        return Options.parse({**where, "startingOffsets": "earliest", **said})

    def rows(self, splits: Any) -> Rows:
        """Read splits as tasks would."""
        return [(row["offset"], row["value"]) for row in self.reader.rows(splits, *COLUMNS)]

    def judge(self) -> None:
        """Read everything now: acknowledged records once, in order, without a hole."""
        self.looks += 1
        self._note_floor()
        self._read_all()
        self._replay()
        follower = self.random.choice((None, None, *self.followers))
        if follower is not None:
            follower.go_on()

    def _note_floor(self) -> None:
        found = self.log.engine.find(self.era.topic)
        if found is not None:
            self.era.floor = found.file.floor.offset

    def _read_all(self) -> None:
        try:
            found = self.rows(self.reader.splits(path=str(self.data), topic="orders"))
        except TopicNotFound:
            assert self.era.deleted or self.era.topic < 0
            return
        era = next((each for each in self.eras if found and found[0] in each.sent), self.era)
        if era is self.era and not era.deleted:
            era.check(found)
        else:  # as long as it is there at all
            assert found == era.sent[-len(found) :]

    def plan(self) -> None:
        """Plan a micro-batch where the last one ended, and read it."""
        options = self.options(failOnDataLoss="false")
        progress = Progress(open_log(options), options, sleep=lambda _: None)
        at = progress.initial()
        if self.checkpoints:
            at = {"v": 1, "topics": {"orders": self.checkpoints[-1][0].to_json()}}
        end = progress.advance(at, self.random.choice((1, 200, EVERYTHING)))
        if end != at:
            (checkpoint,) = decode_checkpoint(end).values()
            rows = self.rows(progress.splits(end))
            self.checkpoints.append((checkpoint, rows, self.era))

    def _replay(self) -> None:
        """Repeat the last micro-batch after a restart: the same records, or an error."""
        if not self.checkpoints:
            return
        checkpoint, rows, era = self.checkpoints[-1]
        options = self.options()
        try:
            again = self.rows(open_log(options).splits(checkpoint))
        except DataLost:
            assert era is not self.era or era.deleted or checkpoint.start < era.floor
        else:
            assert again == rows


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_every_step_of_a_server_reads_right(reader: Any, tmp_path: Path, seed: int) -> None:
    """Whatever it is in the middle of: closing, merging, dropping, deleting, starting again."""
    history = History(tmp_path / "data", seed, reader, wal=seed % 2 == 1)
    history.live(STEPS)
    history.append()
    lenient = history.followers[1]
    while not lenient.has_all():
        history.plan()
        lenient.go_on()
    assert history.looks > STEPS


def test_every_step_of_a_merge_is_clean_for_the_audit(reader: Any, tmp_path: Path) -> None:
    """Sources and merged segment lie side by side; that is not damage, and counted once."""
    history = History(tmp_path / "data", 0, reader)
    for _ in range(8):
        history.append()
        history.kill()
        history.clock.now_ns += SECOND_NS
    totals: set[int] = set()

    def look() -> None:
        found = [audit_one(target) for target in targets(str(history.data))]
        assert [finding for report in found for finding in report.findings] == []
        totals.add(sum(report.records for report in found))

    history.disk.look = look
    history.tend()
    assert totals == {history.sent}


def test_a_task_reads_on_what_is_merged_before_it_begins(reader: Any, tmp_path: Path) -> None:
    """Its file is gone, and the merged one has the same records."""
    history = History(tmp_path / "data", 1, reader)
    for _ in range(8):
        history.append()
        history.kill()
        history.clock.now_ns += SECOND_NS
    splits = reader.splits(path=str(history.data), topic="orders")
    history.tend()
    assert len(splits) > len(reader.splits(path=str(history.data), topic="orders"))
    found = history.rows(splits)
    assert found == history.era.sent
