"""Holes: ranges inside a segment that a crash tore and recovery retired (AMB-29, AMB-39)."""

from pathlib import Path

import pytest
from tests.server.offline.test_snapshot import TARGET, take

from lance_server.errors import DataDirError
from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.topic_file import Retention, TopicFile
from lance_server.log.segments.compaction import CompactionPolicy
from lance_server.offline.verifying import verify
from lance_server.testing import LogDriver, MemoryStorage

VALUES = [bytes([65 + number]) * 50 for number in range(3)]
SIZE = 55
OPTIONS = LogOptions(compaction=CompactionPolicy(min_segments=2))
DATA_DIR = Path("/data")


def torn_disk() -> MemoryStorage:
    """Return a disk after a crash in a flush of three batches: the middle one did not reach it."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=OPTIONS)
    for number, value in enumerate(VALUES, 1):
        log.append([value], batch_id=number)
    log.scheduler.run_all()
    (path,) = (path for path in disk.files() if path.suffix == ".lnc")
    raw = disk.peek(path)
    assert len(raw) == 3 * SIZE
    disk.poke(path, raw[:SIZE] + bytes(SIZE) + raw[2 * SIZE :])
    return disk.copy()


def recovered_disk() -> tuple[MemoryStorage, LogDriver]:
    """Return such a disk after a start, and the log, with a second segment that is closed."""
    disk = torn_disk()
    log = LogDriver(disk, options=OPTIONS)
    log.store([b"more"], batch_id=9)
    log.engine.topic(0).partition.roll()
    log.scheduler.run_all()
    return disk, log


def test_a_hole_is_not_damage() -> None:
    """Its start reports it once; reading skips it, and verify knows it."""
    disk, log = recovered_disk()
    assert [finding.kind for finding in log.engine.report.findings] == ["retired hole"]
    assert log.read_all().damage == []
    log.close()
    assert verify(DATA_DIR, storage=disk).findings == []


def test_segments_with_a_hole_are_merged() -> None:
    """The hole is in the merged segment, and is still known."""
    disk, log = recovered_disk()
    pieces = log.read_all().pieces
    log.engine.upkeep.visit(log.engine.topic(0))
    log.scheduler.run_all()
    assert len(log.engine.topic(0).partition.segment_list) == 1
    assert log.read_all().pieces.keys() == {0, 2 * SIZE}
    assert b"".join(log.read_all().pieces.values()) == b"".join(pieces.values())
    log.close()
    assert verify(DATA_DIR, storage=disk).findings == []


def test_a_snapshot_knows_the_holes() -> None:
    """Verify finds nothing in the copy."""
    disk, log = recovered_disk()
    take(log, disk)
    log.scheduler.run_all()
    assert verify(TARGET, storage=disk).findings == []


def test_a_gap_that_nothing_explains_is_found() -> None:
    """A sidecar without one of its entries is a finding of verify."""
    disk, log = recovered_disk()
    log.close()
    path = min(path for path in disk.files() if path.suffix == ".batches")
    disk.poke(path, disk.peek(path)[:64] + disk.peek(path)[128:])
    assert [finding.kind for finding in verify(DATA_DIR, storage=disk).findings][:1] == ["gap"]


def test_holes_that_retention_dropped_are_forgotten() -> None:
    """The topic's file does not grow with crashes of long ago."""
    disk, log = recovered_disk()
    assert log.engine.topic(0).file.holes == {SIZE: 2 * SIZE}
    log.engine.set_retention(log.engine.topic(0), Retention(max_bytes=1))
    log.scheduler.run_all()
    log.engine.upkeep.visit(log.engine.topic(0))
    log.scheduler.run_all()
    assert log.engine.topic(0).file.holes == {}
    loaded = TopicFile.load(disk, DATA_DIR / "segments" / "0")
    assert loaded is not None
    assert loaded[0].holes == {}


@pytest.mark.parametrize("start", ["-1", "x", "1.5", "²"])
def test_a_hole_without_an_offset_is_refused(start: str) -> None:
    """The topic's file says what is wrong with it."""
    disk, log = recovered_disk()
    file = log.engine.topic(0).file
    file.holes = {start: 5}  # type: ignore[dict-item]
    file.save()
    disk.remove(file.folder / "metadata.json.bak")
    with pytest.raises(DataDirError, match="holes"):
        TopicFile.load(disk, file.folder)
