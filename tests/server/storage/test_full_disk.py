"""A full disk: what is stored is served, and what frees room works (a reserve is given up)."""

import errno
import os
from pathlib import Path

import pytest

from lance_server.log.disk_reserve import DiskReserve
from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.segments.segment_files import DATA_SUFFIX
from lance_server.lwp.refusals import Refusal
from lance_server.storage.contract import Write
from lance_server.storage.wal import WalStorage
from lance_server.storage.wal_replay import repeat
from lance_server.testing import FaultyStorage, LogDriver, MemoryStorage
from lance_spec.checksum import Buffer
from lance_spec.records import encode_records

RESERVE = 20_000
OPTIONS = LogOptions(segment_size=1000, disk_reserve=RESERVE)
FILE = Path("/data") / DiskReserve.FILE_NAME
VALUE = b"v" * 900


class SmallDisk(FaultyStorage):
    """A disk of a few bytes.

    Attributes:
        room: bytes that still fit; None for no limit.
    """

    def __init__(self, inner: MemoryStorage) -> None:
        super().__init__(inner)
        self.disk = inner
        self.room: int | None = None

    def write(self, fd: int, data: Buffer, offset: int) -> None:
        """Write, where there is room for what the file grows by."""
        self._take(offset + len(memoryview(data)) - self.size(fd))
        super().write(fd, data, offset)

    def remove(self, path: Path) -> None:
        """Remove a file, and have its room again."""
        size = len(self.disk.peek(path)) if path in self.disk.files() else 0
        super().remove(path)
        self._take(-size)

    def truncate(self, fd: int, size: int) -> None:
        """Set a file's length."""
        self._take(size - self.size(fd))
        super().truncate(fd, size)

    def _take(self, size: int) -> None:
        if self.room is not None and size:
            if size > self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.room -= size


def full_log(retention: Retention | None = None) -> tuple[LogDriver, SmallDisk]:
    """Return a log with eight segments in topic 1, on a disk without any room but the reserve."""
    disk = SmallDisk(MemoryStorage())
    log = LogDriver(disk, options=OPTIONS)
    log.create_topic("full", retention)
    log.engine.start_upkeep(60.0)
    for number in range(1, 9):
        log.store([VALUE], batch_id=number, topic_id=1)
    assert len(disk.disk.peek(FILE)) == RESERVE
    disk.room = 0
    outcome = log.append([VALUE], batch_id=9, topic_id=1)
    log.scheduler.run_all()
    assert isinstance(outcome.error, Refusal)
    return log, disk


def contents(disk: SmallDisk) -> dict[Path, bytes]:
    """Return what is on a disk."""
    return {path: disk.disk.peek(path) for path in disk.disk.files()}


def data_files(disk: SmallDisk) -> int:
    """Return how many data files topic 1 has."""
    return sum(path.parent.name == "1" and path.suffix == DATA_SUFFIX for path in disk.disk.files())


def test_a_topic_is_deleted_on_a_full_disk() -> None:
    """The reserve makes room for the record of the deletion; then there is room for all."""
    log, disk = full_log()
    deleted = log.engine.delete_topic(1, text="gone")
    log.scheduler.run_all()
    deleted.result()
    assert data_files(disk) == 0
    log.store([VALUE], batch_id=1)


def test_a_limit_is_lowered_on_a_full_disk() -> None:
    """Retention works: what is beyond the limit goes, and batches are stored again."""
    log, disk = full_log()
    changed = log.engine.set_retention(log.engine.topic(1), Retention(max_bytes=2000))
    log.scheduler.run_all()
    changed.result()
    assert data_files(disk) <= 4
    log.reopen_topics()
    log.store([VALUE], batch_id=10, topic_id=1)


def test_the_reserve_is_kept_again_once_there_is_room() -> None:
    """It is taken back when topics are looked at next."""
    log, disk = full_log()
    deleted = log.engine.delete_topic(1, text="gone")
    log.scheduler.run_all()
    deleted.result()
    assert FILE not in disk.disk.files()
    disk.room = None
    log.scheduler.pass_time(60.0)
    log.scheduler.run_all()
    assert len(disk.disk.peek(FILE)) == RESERVE


def test_where_there_is_no_room_for_the_reserve_none_is_left_half() -> None:
    """It is not there, and the server works without."""
    disk = SmallDisk(MemoryStorage())
    log = LogDriver(disk, options=OPTIONS)
    disk.room = RESERVE // 2
    log.engine.start_upkeep(60.0)
    log.scheduler.run_all()
    assert FILE not in disk.disk.files()
    others = sum(len(content) for path, content in contents(disk).items() if "clock" in path.name)
    assert disk.room == RESERVE // 2 - others
    log.store([b"small"], batch_id=1)


def crashed(*, reserve: bool) -> SmallDisk:
    """Return a full disk on which a crash tore the newest segment of topic 1."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=OPTIONS)
    log.create_topic("full")
    if reserve:
        log.engine.start_upkeep(60.0)
    for number in range(1, 9):
        log.store([VALUE], batch_id=number, topic_id=1)
    newest = max(
        (each for each in disk.files() if each.suffix == DATA_SUFFIX),
        key=lambda each: int(each.name.split("_")[0]),
    )
    disk.poke(newest, disk.peek(newest) + b"torn")
    full = SmallDisk(disk)
    full.room = 0
    return full


def test_a_full_disk_is_started_on_after_a_crash() -> None:
    """What the crash tore is kept aside in the room of the reserve; all is served."""
    log = LogDriver(crashed(reserve=True), options=OPTIONS)
    assert log.engine.problems == {}
    assert log.read_all(1).data == encode_records([VALUE]) * 8


def test_without_a_reserve_a_full_disk_is_served_read_only() -> None:
    """A start on it is not a failure: what is known to be durable is read until there is room."""
    disk = crashed(reserve=False)
    log = LogDriver(disk, options=OPTIONS)
    assert "No space left" in log.engine.problems[1]
    found = log.read_all(1)
    assert found.data == encode_records([VALUE]) * 7
    assert found.damage == []
    disk.room = None
    log.reopen_topics()
    assert log.engine.problems == {}
    assert log.read_all(1).data == encode_records([VALUE]) * 8


def test_a_write_ahead_log_is_repeated_in_the_room_of_the_reserve() -> None:
    """Files that a loss of power left shorter need room before the log can go."""
    memory = MemoryStorage()
    memory.make_dir(FILE.parent)
    DiskReserve(memory, FILE.parent, RESERVE).fill()
    storage = WalStorage(memory, FILE.parent, size=4096)
    fd = storage.open(FILE.parent / "a", create=True)
    storage.sync_dir(FILE.parent)
    storage.commit([Write(fd, VALUE, 0)])
    memory.poke(FILE.parent / "a", b"")
    full = SmallDisk(memory)
    full.room = 0
    with pytest.raises(OSError, match="No space"):
        repeat(full, FILE.parent)
    found = DiskReserve(full, FILE.parent, 0).with_room(lambda: repeat(full, FILE.parent))
    assert (found.writes, found.damage) == (1, ())
    assert memory.peek(FILE.parent / "a") == VALUE
    assert FILE not in memory.files()
