"""Scrubbing: damage in closed segments is found although nobody reads them."""

import errno
import os

import pytest

from lance_server.log.log_manager import LogOptions
from lance_server.log.segments.segment_files import DATA_SUFFIX, SIDECAR_SUFFIX
from lance_server.testing import FaultyStorage, LogDriver, MemoryStorage

OPTIONS = LogOptions(segment_size=300, scrub_days=1.0, compaction=None)
VALUE = b"v" * 200
PIECES = 24 * 360
"""Of ten seconds each, in a day."""


class BadSector(FaultyStorage):
    """A disk that cannot read data files at one place.

    Attributes:
        begin: where reads fail that begin there; None for nowhere.
    """

    begin: int | None = None

    def read_into(
        self, fd: int, target: memoryview, offset: int, *, cached_only: bool = False
    ) -> int:
        """Read, unless it is at the bad place of a data file."""
        if offset == self.begin and self._paths[fd].suffix == DATA_SUFFIX:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read_into(fd, target, offset, cached_only=cached_only)


def stored(batches: int = 8) -> tuple[LogDriver, MemoryStorage]:
    """Return a log with a segment for each batch; the last is being written."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=OPTIONS)
    for number in range(batches):
        log.store([VALUE], batch_id=number + 1)
    log.engine.start_upkeep(10.0**9)
    log.scheduler.run_all()
    return log, disk


def scrub(log: LogDriver, pieces: int = 20) -> None:
    """Let time pass for some pieces."""
    for _ in range(pieces):
        log.scheduler.pass_time(10.0)
        log.scheduler.run_all()


@pytest.mark.parametrize("suffix", [DATA_SUFFIX, SIDECAR_SUFFIX])
def test_damage_is_found_and_told(suffix: str) -> None:
    """A bit that rotted in an old segment, or in what is known of its batches."""
    log, disk = stored()
    path = min(path for path in disk.files() if path.suffix == suffix)
    content = bytearray(disk.peek(path))
    content[-10] ^= 1
    disk.poke(path, bytes(content))
    assert log.engine.report.findings == []
    scrub(log)
    (finding,) = log.engine.report.findings
    assert finding.kind == "damage"
    assert "checksum" in finding.note


def test_everything_is_read_once_in_a_pass() -> None:
    """All closed segments, none twice, and then from the beginning."""
    log, _ = stored()
    scrubber = log.engine.scrubber
    while not scrubber.passes:
        scrub(log, 1)
    assert scrubber.size == 7 * (len(VALUE) + 5)
    assert log.engine.report.findings == []
    scrub(log, 2)
    assert scrubber.size > 7 * (len(VALUE) + 5)


def test_no_more_is_read_than_the_days_ask_for() -> None:
    """Of a large segment a piece is its share of the time, and one batch more at most."""
    disk = MemoryStorage()
    options = LogOptions(segment_size=10**9, scrub_days=0.01, compaction=None)
    log = LogDriver(disk, options=options)
    for number in range(400):
        log.store([VALUE], batch_id=number + 1)
    log.engine.topic(0).partition.roll()
    log.engine.start_upkeep(10.0**9)
    log.scheduler.run_all()
    total = log.end()
    scrub(log, 20)
    share = total * 20 * 10.0 / (0.01 * 24 * 3600)
    assert share <= log.engine.scrubber.size <= share + 20 * (len(VALUE) + 6)


def test_a_segment_that_goes_meanwhile_is_passed_over() -> None:
    """Dropped between two pieces or under one: no finding, and the pass goes on."""
    log, disk = stored()
    for path in sorted(path for path in disk.files() if path.suffix == DATA_SUFFIX)[:3]:
        disk.remove(path)
    scrub(log)
    assert log.engine.report.findings == []
    assert log.engine.scrubber.passes > 0


def test_it_is_switched_off_with_zero_days() -> None:
    """Nothing is read."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=LogOptions(segment_size=300))
    for number in range(8):
        log.store([VALUE], batch_id=number + 1)
    log.engine.start_upkeep(10.0**9)
    scrub(log)
    assert log.engine.scrubber.size == 0


def test_a_pass_ends_although_more_is_stored_than_it_reads() -> None:
    """Segments that are closed during a pass raise what a piece reads."""
    disk = MemoryStorage()
    options = LogOptions(segment_size=2000, scrub_days=0.01, compaction=None)
    log = LogDriver(disk, options=options)
    log.engine.start_upkeep(10.0**9)
    number = 0
    for _ in range(3 * 87):  # a hundredth of a day has 86 pieces
        for _ in range(10):
            number += 1
            log.store([VALUE], batch_id=number)
        scrub(log, 1)
    assert log.engine.scrubber.passes > 0


def test_a_batch_that_cannot_be_read_is_damage_and_the_others_are_compared() -> None:
    """A bad sector in an old segment is found by the scrubber, not by a reader years later."""
    disk = BadSector(MemoryStorage())
    options = LogOptions(segment_size=10**9, scrub_days=0.001, compaction=None)
    log = LogDriver(disk, options=options)
    for number in range(8):
        log.store([VALUE], batch_id=number + 1)
    log.engine.topic(0).partition.roll()
    log.engine.start_upkeep(10.0**9)
    log.scheduler.run_all()
    disk.begin = begin = log.end() // 8 * 3
    scrub(log, 20)
    (finding,) = log.engine.report.findings
    assert (finding.kind, finding.offset) == ("damage", begin)
    assert "cannot be read" in finding.note
    assert log.engine.scrubber.passes > 0
