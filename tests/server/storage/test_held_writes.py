"""A disk that refuses one topic's files while the write-ahead log is repeated (AMB-50)."""

import errno
from pathlib import Path
from random import Random

import pytest

from lance_server.log.log_manager import LogOptions
from lance_server.lwp.refusals import Refusal
from lance_server.storage.contract import StorageBackend
from lance_server.storage.wal import WalStorage
from lance_server.storage.wal_replay import FOLDER, is_held, repeat, unrepeated, with_held
from lance_server.testing import CrashError, FaultyStorage, LogDriver, MemoryStorage
from lance_spec.enums import ErrorCode
from lance_spec.records import encode_records

ROOT = Path("/data")
SUFFERS = ROOT / "segments/1"
OPTIONS = LogOptions(segment_size=10_000)
VALUES = [[b"batch %d" % number, b"x" * number] for number in range(5)]
DATA = b"".join(map(encode_records, VALUES))
STEPS = ("open", "list_dir", "write", "sync")


def left() -> MemoryStorage:
    """Return a disk after a loss of power: two topics' batches stand in the log only."""
    disk = MemoryStorage()
    disk.make_dir(ROOT)
    log = LogDriver(WalStorage(disk, ROOT, size=8192), options=OPTIONS)
    log.create_topic("suffers")
    for number, values in enumerate(VALUES, start=1):
        log.store(values, batch_id=number, topic_id=1)
        log.store(values, batch_id=number)
    return disk.crash(Random(3))


def started(storage: StorageBackend, mode: str) -> LogDriver:
    """Start a log in a mode."""
    if mode == "wal":
        return LogDriver(WalStorage(storage, ROOT, size=8192), options=OPTIONS)
    return LogDriver(with_held(storage, ROOT, repeat(storage, ROOT)), options=OPTIONS)


def suffering(disk: MemoryStorage, step: str = "write") -> FaultyStorage:
    """Return a disk that refuses a step in one topic's folder."""
    faulty = FaultyStorage(disk)
    faulty.within, faulty.fail = SUFFERS, {step: errno.EIO}
    return faulty


def held(disk: MemoryStorage) -> list[Path]:
    """Return the files that keep what could not be repeated."""
    return [path for path in disk.files() if is_held(path.name)]


@pytest.mark.parametrize("mode", ["wal", "fsync"])
@pytest.mark.parametrize("step", STEPS)
def test_one_topics_error_stops_no_other_topic(step: str, mode: str) -> None:
    """The others are served; this one is neither read nor written until its batches are back."""
    disk = left()
    faulty = suffering(disk, step)
    log = started(faulty, mode)
    assert log.read_all(0).data == DATA
    with pytest.raises(Refusal, match="write-ahead log") as caught:
        log.end(1)
    assert caught.value.code is ErrorCode.STORAGE_ERROR
    log.store([b"more"], batch_id=9)
    faulty.fail = {}
    log.reopen_topics()
    assert log.read_all(1).data == DATA
    assert held(disk) == []
    log.store([b"more"], batch_id=9, topic_id=1)
    log.close()
    assert not any(FOLDER in path.parts for path in disk.files())


@pytest.mark.parametrize("mode", ["wal", "fsync"])
def test_starts_that_fail_one_after_the_other_lose_nothing(mode: str) -> None:
    """Whatever the others store meanwhile, and however often the machine stops."""
    disk, more = left(), b""
    for number in range(4):
        log = started(suffering(disk), mode)
        log.store([b"more %d" % number], batch_id=10 + number)
        more += encode_records([b"more %d" % number])
        assert len(held(disk)) == 1
        disk = disk.crash(Random(number))
    log = started(disk, mode)
    assert log.engine.report.findings == []
    assert log.read_all(0).data == DATA + more
    assert log.read_all(1).data == DATA
    assert held(disk) == []


@pytest.mark.parametrize("mode", ["wal", "fsync"])
def test_a_crash_at_any_step_loses_nothing(mode: str) -> None:
    """While writes are held, while they are repeated, and after that."""
    step, whole = 0, False
    while not whole:
        disk = left()
        disk.crash_after = disk.operations + step
        faulty = suffering(disk)
        try:
            log = started(faulty, mode)
            faulty.fail = {}
            log.reopen_topics()
            log.store([b"more"], batch_id=9, topic_id=1)
            whole = True
        except CrashError:
            pass
        after = started(disk.crash(Random(step)), mode)
        found = after.read_all(1)
        assert found.damage == []
        assert found.data in (DATA, DATA + encode_records([b"more"]))
        assert after.read_all(0).data == DATA
        step += 1
    assert step > 50


def test_a_stop_while_writes_are_held_is_not_a_clean_one() -> None:
    """They stay for the next start."""
    disk = left()
    log = started(suffering(disk), "wal")
    with pytest.raises(OSError, match="write-ahead log"):
        log.close()
    log.engine.release()
    assert len(held(disk)) == 1
    assert started(disk, "wal").read_all(1).data == DATA


def test_what_is_held_is_told_to_who_looks_at_a_stopped_server() -> None:
    """As what the next start will write."""
    disk = left()
    waiting = {each.path for each in unrepeated(disk, ROOT)[0] if SUFFERS in each.path.parents}
    started(suffering(disk), "fsync")
    assert waiting
    assert {each.path for each in unrepeated(disk, ROOT)[0]} == waiting


def test_an_error_outside_of_topics_stops_the_start() -> None:
    """The log is still there."""
    disk = left()
    faulty = FaultyStorage(disk)
    faulty.fail = {"write": errno.EIO}
    with pytest.raises(OSError, match="Input/output"):
        started(faulty, "wal")
    assert started(disk, "wal").read_all(1).data == DATA
