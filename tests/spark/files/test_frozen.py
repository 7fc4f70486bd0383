"""A server's folder frozen at every step of random histories, read by files, judged by a model.

A history appends, closes, merges, drops, deletes and creates again, and kills; with and without a
write-ahead log. After every change of the disk a batch query reads the folder, the last planned
micro-batch is repeated, and now and then two streaming queries, of which one may lose data, are
started again from their checkpoints and go on.
"""

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.files.histories import LIMITS, Era, Follower, Rows

from lance_sdk.errors import TopicNotFound
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import Options
from lance_sdk.spark.pipelines.audit import audit_one, targets
from lance_sdk.spark.streaming.checkpoint import TopicCheckpoint, decode_checkpoint
from lance_sdk.spark.streaming.streams import StreamOffsets
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

    def note_begin(self) -> None:
        """Do nothing: nothing moves while it is looked at."""

    def lags(self, planned: TopicCheckpoint | None) -> bool:
        """Never: everything is read from the same files."""
        del planned
        return False

    def rows(self, splits: Any) -> Rows:
        """Read splits as tasks would."""
        return [(row["offset"], row["value"]) for row in self.reader.rows(splits, *COLUMNS)]

    def judge(self) -> None:
        """Read everything now: acknowledged records once, in order, without a hole."""
        self.looks += 1
        self._note_begin()
        self._read_all()
        self._replay()
        follower = self.random.choice((None, None, *self.followers))
        if follower is not None:
            follower.go_on()

    def _note_begin(self) -> None:
        found = self.log.engine.find(self.era.topic)
        if found is not None:
            self.era.begin = found.file.log_start.offset

    def _read_all(self) -> None:
        try:
            found = self.rows(self.reader.splits(path=str(self.data), topic="orders"))
        except TopicNotFound:
            assert self.era.deleted or self.era.topic < 0
            return
        era = next((each for each in self.eras if found and each.has(found[0])), self.era)
        if era is self.era and not era.deleted:
            era.check(found, era.acked)
        else:  # as long as it is there at all
            assert found == era.sent[-len(found) :]

    def plan(self) -> None:
        """Plan a micro-batch where the last one ended, and read it."""
        options = self.options(failOnDataLoss="false")
        progress = StreamOffsets(open_log(options), options, sleep=lambda _: None)
        at = progress.initial()
        if self.checkpoints:
            at = {"v": 1, "topics": {"orders": self.checkpoints[-1][0].to_json()}}
        end = progress.advance(at, self.random.choice(LIMITS))
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
            assert era is not self.era or era.deleted or checkpoint.start < era.begin
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
