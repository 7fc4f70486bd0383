"""Compaction: many small segments become one, and nobody notices (AMB-25, AMB-40)."""

import contextlib
import errno
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_server.log.dedup import FIRST_LASTING_ID
from lance_server.log.log_manager import LogOptions
from lance_server.log.reading.reader import Range
from lance_server.log.segments.compaction import CompactionPolicy, candidates
from lance_server.log.segments.segment_files import Segment, SegmentName
from lance_server.log.segments.sidecar import ENTRY_SIZE, HEADER_SIZE, BatchIndex
from lance_server.offline.verifying import verify
from lance_server.storage.contract import StorageBackend
from lance_server.testing import CrashError, FaultyStorage, LogDriver, ManualClock, MemoryStorage
from lance_spec.records import decode_records

POLICY = CompactionPolicy(min_segments=3, max_segments=5, small=1000)
OPTIONS = LogOptions(segment_size=5000, segment_age_secs=1, compaction=POLICY)
SECOND_NS = 1_000_000_000


def filled(storage: StorageBackend, segments: int = 4, options: LogOptions = OPTIONS) -> LogDriver:
    """Return a log whose default topic has so many small closed segments."""
    clock = ManualClock()
    for number in range(segments):
        log = LogDriver(storage, options=options, clock=clock)
        log.store([b"%d" % number + bytes(50)], batch_id=FIRST_LASTING_ID + number + 1)
        log.close()
        clock.now_ns += SECOND_NS
    return LogDriver(storage, options=options, clock=clock)


def tend(log: LogDriver) -> None:
    """Do what is due for the default topic."""
    log.engine.upkeep.visit(log.engine.topic(0))
    log.scheduler.run_all()


def suffixes(disk: MemoryStorage) -> dict[str, int]:
    """Return how many files of each kind the default topic has."""
    names = [path.name for path in disk.files() if path.parent.name == "0"]
    return {
        kind: sum(name.endswith(kind) for name in names)
        for kind in (".lnc", ".batches", ".sparse.idx", ".secondary.idx", ".tmp")
    }


def test_small_segments_become_one() -> None:
    """What was in four pairs of files is in one, with its indexes."""
    disk = MemoryStorage()
    tend(filled(disk))
    assert suffixes(disk) == {
        ".lnc": 1,
        ".batches": 1,
        ".sparse.idx": 1,
        ".secondary.idx": 1,
        ".tmp": 0,
    }


def test_every_byte_keeps_its_offset() -> None:
    """Before, after and after a restart the same is read at the same place."""
    disk = MemoryStorage()
    log = filled(disk)
    before = log.read_all().data
    tend(log)
    assert log.read_all().data == before
    assert LogDriver(disk, options=OPTIONS).read_all().data == before


def test_writing_goes_on_behind_it() -> None:
    """A merged segment is closed; the next batch begins another one."""
    disk = MemoryStorage()
    log = filled(disk)
    end = log.end()
    tend(log)
    assert log.store([b"next"], batch_id=99) == end
    assert log.engine.topic(0).info().record_count == 5


def test_its_batches_are_still_recognised() -> None:
    """The entries of all sources are in the merged sidecar, and with them the window."""
    disk = MemoryStorage()
    tend(filled(disk))
    partition = LogDriver(disk, options=OPTIONS).engine.topic(0).partition
    for number in range(4):
        assert partition.find_duplicate(FIRST_LASTING_ID + number + 1, b"") is not None


def test_a_reader_from_before_goes_on() -> None:
    """A Fetch that was begun before the merge and runs after it gets its bytes."""
    log = filled(MemoryStorage())
    read = log.engine.topic(0).partition.reading(Range(start=0, max_bytes=1000))
    tend(log)
    assert decode_records(read().buffer)[0] == (1, b"0" + bytes(50))


def test_a_damaged_segment_is_left_alone() -> None:
    """What cannot be verified is not merged; what can be read of it still is."""
    disk = MemoryStorage()
    filled(disk)
    path = min(path for path in disk.files() if path.suffix == ".lnc")
    damaged = bytearray(disk.peek(path))
    damaged[20] ^= 1
    disk.poke(path, bytes(damaged))
    log = LogDriver(disk, options=OPTIONS)
    tend(log)
    assert suffixes(disk)[".lnc"] == 4
    assert suffixes(disk)[".tmp"] == 0
    values = [v[:1] for d in log.read_all().pieces.values() for _, v in decode_records(d)]
    assert values == [b"1", b"2", b"3"]


def test_a_void_entry_keeps_a_segment_from_being_merged() -> None:
    """Sidecars are merged whole or not at all."""
    disk = MemoryStorage()
    filled(disk)
    path = min(path for path in disk.files() if path.suffix == ".batches")
    damaged = bytearray(disk.peek(path))
    damaged[HEADER_SIZE + 3] ^= 1
    disk.poke(path, bytes(damaged))
    tend(LogDriver(disk, options=OPTIONS))
    assert suffixes(disk)[".lnc"] == 4


@pytest.mark.parametrize("entries", [0, 1, 2])
@pytest.mark.parametrize("number", range(4))
def test_damage_does_not_become_a_gap(entries: int, number: int) -> None:
    """A sidecar that was cut leaves bytes that nothing vouches for: an error before and after."""
    disk = MemoryStorage()
    clock = ManualClock()
    for segment in range(4):
        log = LogDriver(disk, options=OPTIONS, clock=clock)
        for batch in range(3):
            log.store([b"%d.%d" % (segment, batch)], batch_id=1 + 3 * segment + batch)
        log.close()
        clock.now_ns += SECOND_NS
    path = sorted(path for path in disk.files() if path.suffix == ".batches")[number]
    disk.poke(path, disk.peek(path)[: HEADER_SIZE + entries * ENTRY_SIZE])
    log = LogDriver(disk, options=OPTIONS, clock=clock)
    before = log.read_all().damage
    tend(log)
    assert before
    assert log.read_all().damage == before


@pytest.mark.parametrize("suffix", [".lnc", ".batches"])
def test_a_segment_that_cannot_be_read_is_left_alone(suffix: str) -> None:
    """A bad sector keeps segments from being merged, not the others from being indexed."""
    disk = MemoryStorage()
    faulty = FaultyStorage(disk)
    log = filled(faulty)
    unreadable = min(path for path in disk.files() if path.suffix == suffix)
    faulty.within, faulty.fail = unreadable, {"read_into": errno.EIO}
    for _ in range(2):
        tend(log)
    assert suffixes(disk)[".lnc"] == 4
    assert suffixes(disk)[".tmp"] == 0
    written = faulty.calls["create"]
    tend(log)
    assert faulty.calls["create"] == written
    assert log.engine.topic(0).partition.segment_list[0].unmergeable
    assert suffixes(disk)[".sparse.idx"] == (4 if suffix == ".lnc" else 3)


@pytest.mark.parametrize("method", ["create", "write", "sync", "rename", "remove", "sync_dir"])
def test_a_disk_that_refuses_is_tried_again(method: str) -> None:
    """Nothing is lost by a merge that cannot be finished, and a later visit finishes it."""
    disk = MemoryStorage()
    filled(disk)
    faulty = FaultyStorage(disk)
    log = LogDriver(faulty, options=OPTIONS)
    before = log.read_all().data
    faulty.fail[method] = errno.EIO
    tend(log)
    faulty.fail.clear()
    assert log.read_all().data == before
    log.close()
    log = LogDriver(disk, options=OPTIONS)
    tend(log)
    assert suffixes(disk)[".lnc"] == 1
    assert log.read_all().data == before


def test_damage_to_a_merged_segment_costs_no_more_while_its_sources_go() -> None:
    """Some are gone when the process dies, and then a byte changes: one batch is damaged."""
    disk = MemoryStorage()
    filled(disk)
    faulty = FaultyStorage(disk)
    log = LogDriver(faulty, options=OPTIONS)
    before = log.read_all().data
    sources = sorted(path for path in disk.files() if path.suffix == ".lnc")
    faulty.within, faulty.fail = sources[2], {"remove": errno.EIO}
    tend(log)
    log.engine.release()
    merged = min(path for path in disk.files() if path.suffix == ".lnc")
    damaged = bytearray(disk.peek(merged))
    damaged[20] ^= 1
    disk.poke(merged, bytes(damaged))
    log = LogDriver(disk, options=OPTIONS)
    found, size = log.read_all(), len(before) // 4
    assert found.damage == [(0, size)]
    assert found.pieces == {size: before[size:]}
    assert log.end() == len(before)


def test_a_crash_at_any_step_leaves_every_record() -> None:
    """Wherever a merge is cut off, all is read at its offset, and nothing is damage."""
    disk = MemoryStorage()
    before = filled(disk).read_all().data
    log = filled(disk_of_steps := MemoryStorage())
    steps = disk_of_steps.operations
    tend(log)
    steps = disk_of_steps.operations - steps
    for step in range(1, steps + 1):
        disk = MemoryStorage()
        log = filled(disk)
        disk.crash_after = disk.operations + step
        with contextlib.suppress(CrashError):
            tend(log)
        survivor = LogDriver(disk.crash(Random(step)), options=OPTIONS)
        found = survivor.read_all()
        assert (found.data, found.damage) == (before, [])
        assert survivor.engine.report.findings == []


def test_a_merge_that_was_cut_off_is_no_finding() -> None:
    """To verify a copy of such a directory reads every batch, and an index of a source is old."""

    def indexed() -> MemoryStorage:
        disk = MemoryStorage()
        filled(disk)
        tend(LogDriver(disk, options=replace(OPTIONS, compaction=None)))
        return disk

    disk = indexed()
    log = LogDriver(disk, options=OPTIONS)
    begun = disk.operations
    tend(log)
    for step in range(1, disk.operations - begun + 1):
        disk = indexed()
        log = LogDriver(disk, options=OPTIONS)
        disk.crash_after = disk.operations + step
        with contextlib.suppress(CrashError):
            tend(log)
        found = verify(Path("/data"), storage=disk.crash(Random(step)))
        assert (found.batches, found.findings) == (4, []), step


def segment(size: int, base: int, *, live: bool = False) -> Segment:
    """Return a segment with what compaction looks at."""
    index = BatchIndex() if live else None
    return Segment(Path(), SegmentName(0, base, base), base, 0, size=size, live=index)


@given(
    st.lists(st.tuples(st.integers(1, 1500), st.booleans()), max_size=30),
    st.integers(1500, 4000),
)
def test_what_is_merged_belongs_together(shapes: list[tuple[int, bool]], max_size: int) -> None:
    """Small closed neighbours without a gap, enough of them, and not too many bytes."""
    segments, base = [], 0
    for size, gap in shapes:
        base += 10 if gap else 0
        segments.append(segment(size, base))
        base += size
    chosen = candidates(segments, POLICY, max_size)
    assert len(chosen) == 0 or POLICY.min_segments <= len(chosen) <= POLICY.max_segments
    assert sum(each.size for each in chosen) <= max_size
    assert all(each.size < POLICY.small for each in chosen)
    for one, next_one in pairwise(chosen):
        assert one.end_offset == next_one.base_offset


def test_the_segment_being_written_is_never_merged() -> None:
    """Only closed segments are."""
    segments = [segment(10, 0), segment(10, 10), segment(10, 20, live=True)]
    assert list(candidates(segments, POLICY, 1000)) == []
