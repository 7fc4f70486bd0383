"""A server's folder frozen at every step of random histories, read by files, judged by a model."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.finding import open_log
from lance_sdk.spark.marks import Mark, decode_marks
from lance_sdk.spark.options import Options
from lance_sdk.spark.pipelines.audit import audit_one, targets
from lance_sdk.spark.streams import Progress
from lance_server.log.compaction import CompactionPolicy
from lance_server.log.engine import LogOptions
from lance_server.log.topic_file import Retention
from lance_server.storage.delegating import DelegatingStorage
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import LogDriver, ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

POLICY = CompactionPolicy(min_segments=3, max_segments=5, small=1000)
OPTIONS = LogOptions(segment_size=400, segment_age_secs=1, compaction=POLICY)
COLUMNS = ("offset", "value")
SECOND_NS = 1_000_000_000
HISTORIES = 6
EVERYTHING = 2**62
Rows = list[tuple[int, bytes]]


class Frozen(DelegatingStorage):
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

    def __init__(self, data: Path, seed: int, reader: Any) -> None:
        self.data = data
        self.random = random.Random(seed)
        self.reader = reader
        self.disk = Frozen()
        self.clock = ManualClock()
        self.sent: Rows = []
        """Every record that was ever handed to the server, in order."""
        self.acked = 0
        """How many of them were acknowledged."""
        self.looks = 0
        self.marks: list[tuple[Mark, Rows]] = []
        """Micro-batches as they were planned, with their records."""
        self.log = self._open()
        self.topic = self.log.create_topic("orders").file.identity.id
        self.disk.look = self.judge

    def _open(self) -> LogDriver:
        return LogDriver(self.disk, self.data, OPTIONS, self.clock)

    def live(self, steps: int) -> None:
        """Take random steps."""
        deeds = (self.append, self.append, self.append, self.tend, self.kill, self.drop, self.plan)
        for _ in range(steps):
            self.random.choice(deeds)()
            self.clock.now_ns += SECOND_NS * self.random.randrange(2)

    def append(self) -> None:
        """Write a batch and wait for its acknowledgement."""
        offset = self.log.end(self.topic)
        values = [b"%06d" % (len(self.sent) + n) * 5 for n in range(self.random.randrange(1, 6))]
        for value in values:
            self.sent.append((offset, value))
            offset += 5 + len(value)
        number = len(self.sent) + 2**40
        self.log.store(values, batch_id=number, topic_id=self.topic)
        self.acked = len(self.sent)

    def tend(self) -> None:
        """Close, merge and index what is due."""
        self.log.engine.upkeep.visit(self.log.engine.topic(self.topic))
        self.log.scheduler.run_all()

    def drop(self) -> None:
        """Let retention drop all but the newest bytes."""
        topic = self.log.engine.topic(self.topic)
        self.log.engine.set_retention(topic, Retention(max_bytes=self.random.choice((300, 900))))
        self.log.scheduler.run_all()
        self.log.engine.set_retention(topic, Retention())
        self.log.scheduler.run_all()

    def kill(self) -> None:
        """End without closing anything, and start again."""
        self.log.engine.release()
        self.log = self._open()

    def options(self, **said: str) -> Options:
        """Return the options of a query over the data directory."""
        where = {"path": str(self.data), "topic": "orders", "pollInterval": "0s"}
        return Options.parse({**where, "startingOffsets": "earliest", **said})

    def rows(self, pieces: Any) -> Rows:
        """Read pieces as tasks would."""
        return [(row["offset"], row["value"]) for row in self.reader.rows(pieces, *COLUMNS)]

    def judge(self) -> None:
        """Read everything now: acknowledged records once, in order, without a hole."""
        self.looks += 1
        found = self.rows(self.reader.pieces(path=str(self.data), topic="orders"))
        assert found == self._expected(found)
        self._replay()

    def _expected(self, found: Rows) -> Rows:
        """Return what a reader may find that found the same first and last record."""
        if not found:
            assert not [row for row in self.sent[: self.acked] if row[0] >= self._floor()]
            return []
        first = self.sent.index(found[0])
        behind = self.sent.index(found[-1]) + 1
        assert behind >= self.acked
        assert found[0][0] <= self._floor()
        return self.sent[first:behind]

    def _floor(self) -> int:
        """Return where the topic may begin at most: retention drops nothing without saying so."""
        return self.log.engine.topic(self.topic).file.floor.offset if self.log else 0

    def plan(self) -> None:
        """Plan a micro-batch where the last one ended, and read it."""
        options = self.options(failOnDataLoss="false")
        progress = Progress(open_log(options), options, sleep=lambda _: None)
        at = progress.initial()
        if self.marks:
            at = {"v": 1, "topics": {"orders": self.marks[-1][0].to_json()}}
        end = progress.advance(at, self.random.choice((1, 200, EVERYTHING)))
        if end != at:
            (mark,) = decode_marks(end).values()
            self.marks.append((mark, self.rows(progress.pieces(end))))

    def _replay(self) -> None:
        """Repeat the last micro-batch after a restart: the same records, or an error."""
        if not self.marks:
            return
        mark, rows = self.marks[-1]
        options = self.options()
        try:
            again = self.rows(open_log(options).pieces(mark))
        except DataLost:
            assert mark.start < self._floor()
        else:
            assert again == rows


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_every_step_of_a_server_reads_right(reader: Any, tmp_path: Path, seed: int) -> None:
    """Whatever it is in the middle of: closing, merging, dropping, starting again."""
    history = History(tmp_path / "data", seed, reader)
    history.live(40)
    assert history.looks > 100


def test_every_step_of_a_merge_is_clean_for_the_audit(reader: Any, tmp_path: Path) -> None:
    """Sources and merged segment lie side by side; that is no damage, and counted once."""
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
    assert totals == {len(history.sent)}


def test_a_task_reads_on_what_is_merged_before_it_begins(reader: Any, tmp_path: Path) -> None:
    """Its file is gone, and the merged one has the same records."""
    history = History(tmp_path / "data", 1, reader)
    for _ in range(8):
        history.append()
        history.kill()
        history.clock.now_ns += SECOND_NS
    pieces = reader.pieces(path=str(history.data), topic="orders")
    history.tend()
    assert len(pieces) > len(reader.pieces(path=str(history.data), topic="orders"))
    found = history.rows(pieces)
    assert found == history.sent
