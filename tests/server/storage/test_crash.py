"""What survives when the machine stops at any moment (AMB-29, AMB-39, AMB-40)."""

import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from lance_server.log.flusher import FlushPolicy
from lance_server.log.log_manager import LogOptions
from lance_server.storage.wal import WalStorage
from lance_server.storage.ways import FixedWays
from lance_server.testing import CrashError, LogDriver, MemoryStorage
from lance_spec.records import decode_records, encode_records

OPTIONS = LogOptions(segment_size=1500)
ROUNDS = 4
SEEDS = int(os.environ.get("LANCE_CRASH_SEEDS", "50"))
"""For each mode; the long profile sets 5,000."""


class Story:
    """Writes to a log until the machine stops, and knows what it was promised."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.sent: set[bytes] = set()
        self.visible: dict[int, bytes] = {}
        self.refused_end = 0
        self._next_id = 1

    def new_batch(self) -> list[bytes]:
        """Return records that nobody else ever sends."""
        count = self.random.randint(1, 4)
        values = [
            b"%d/%d " % (self._next_id, number) + b"x" * self.random.randint(0, 300)
            for number in range(count)
        ]
        self.sent.update(values)
        self._next_id += 1
        return values

    def write(self, log: LogDriver, batches: int) -> None:
        """Append, flush and look at what became visible, a random step at a time."""
        waiting = []
        for _ in range(batches):
            waiting.append(log.append(self.new_batch(), batch_id=self._next_id))
            if self.random.random() < 0.5:
                log.scheduler.run_all()
                self.look(log)
        log.scheduler.run_all()
        self.look(log)
        assert all(outcome.done and outcome.error is None for outcome in waiting)

    def look(self, log: LogDriver) -> None:
        """Read what is new; from now on it must stay where it is."""
        seen = max((start + len(data) for start, data in self.visible.items()), default=0)
        self.visible.update(log.read_all(start=seen).pieces)

    def judge(self, log: LogDriver) -> None:
        """Compare a log that came back with what was promised."""
        for start, data in self.visible.items():
            kept = b""
            while len(kept) < len(data):
                kept += log.fetch(start + len(kept), len(data) - len(kept)).buffer
            assert kept == data, f"what was acknowledged at offset {start} has changed"
        found = log.read_all()
        assert found.damage == []
        values = [value for _, value in decode_records(found.data)]
        assert len(values) == len(set(values)), "a record was stored twice"
        assert set(values) <= self.sent, "a record was invented"


def start(disk: MemoryStorage, mode: str) -> LogDriver:
    """Return a log on a disk, in a durability mode."""
    options = replace(OPTIONS, flush=FlushPolicy(lone_bytes=4096 if "inline" in mode else 0))
    if "wal" not in mode:
        return LogDriver(disk, options=options)
    disk.make_dir(Path("/data"))
    ways = FixedWays(300 if "mixed" in mode else 8192)
    storage = WalStorage(disk, Path("/data"), 2048, 4096, ways=ways, lazy="lazy" in mode)
    return LogDriver(storage, options=options)


def operations_of(seed: int, disk: MemoryStorage, mode: str) -> int:
    """Return how many storage operations an undisturbed round takes."""
    twin = disk.copy()
    story = Story(seed)
    story.write(start(twin, mode), 12)
    return twin.operations


@pytest.mark.parametrize("mode", ["fsync", "fsync, inline", "wal", "wal, mixed, inline, lazy"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_acknowledged_record_is_lost_or_moved(seed: int, mode: str) -> None:
    """Whatever unsynced writes and names a crash drops, acked records keep their offsets."""
    story, disk = Story(seed), MemoryStorage()
    for number in range(ROUNDS):
        budget = operations_of(seed + 1000 * number, disk, mode)
        running = disk.copy()
        running.crash_after = running.operations + story.random.randrange(budget)
        try:
            log = start(running, mode)
            story.judge(log)
            story.write(log, 12)
        except CrashError:
            pass
        running.crash_after = None
        disk = running.crash(story.random)
    story.judge(start(disk, mode))


@pytest.mark.parametrize("seed", range(24))
def test_offsets_of_a_torn_tail_are_retired(seed: int) -> None:
    """After a crash the log goes on after every byte that had reached the file."""
    story, disk = Story(seed), MemoryStorage()
    log = LogDriver(disk)
    story.write(log, 6)
    log.append(story.new_batch(), batch_id=99)
    log.scheduler.run_soon()
    disk.crash_after = disk.operations + 3
    with pytest.raises(CrashError):
        log.scheduler.run_work()
    found = disk.crash(story.random)
    (data_file,) = [path for path in found.files() if path.suffix == ".lnc"]
    reached = len(found.peek(data_file))
    LogDriver(found)  # a start that stores nothing must not forget what it found
    again = LogDriver(found)
    assert again.store([b"after the crash"]) >= reached
    story.sent.add(b"after the crash")
    story.judge(again)


def test_nothing_is_visible_before_it_is_durable() -> None:
    """A batch appears to readers after its sync, not after its write."""
    log = LogDriver(MemoryStorage())
    outcome = log.append([b"not yet"])
    log.scheduler.run_soon()
    assert (log.end(), outcome.done) == (0, False)
    log.scheduler.run_work()
    assert (log.end(), outcome.done) == (len(encode_records([b"not yet"])), True)


def test_a_clean_stop_needs_no_check(tmp_path: Path) -> None:
    """After a clean stop no data is read at the start, and nothing is found."""
    disk = MemoryStorage()
    log = LogDriver(disk, tmp_path)
    log.store([b"kept"])
    log.close()
    again = LogDriver(disk, tmp_path)
    report = again.engine.report
    assert (report.clean, report.batches_checked, report.findings) == (True, 0, [])
    assert again.read_all().data == encode_records([b"kept"])


def test_an_unclean_stop_is_noticed() -> None:
    """Without a clean stop the open segment is read and compared, and the report says so."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    log.store([b"kept"])
    again = LogDriver(disk.copy())
    report = again.engine.report
    assert (report.clean, report.batches_checked, report.findings) == (False, 1, [])
