"""Retention: what goes, what stays, and where what stays is found (AMB-08, AMB-25, AMB-29)."""

import contextlib
import errno
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_server.log.dedup import FIRST_LASTING_ID, WindowLimits
from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.reading.reader import Range
from lance_server.log.retention.rules import expired
from lance_server.log.segments.compaction import CompactionPolicy
from lance_server.log.segments.segment_files import Segment, SegmentName
from lance_server.log.segments.sidecar import BatchIndex
from lance_server.lwp.refusals import Refusal
from lance_server.storage.contract import StorageBackend
from lance_server.testing import CrashError, FaultyStorage, LogDriver, ManualClock, MemoryStorage
from lance_spec.enums import ErrorCode
from lance_spec.records import decode_records

SECOND_NS = 1_000_000_000
OPTIONS = LogOptions(segment_size=300)
KEEP_TWO = Retention(max_bytes=500)
VALUE = b"v" * 200


def segment(size: int, last_ns: int, *, live: bool = False) -> Segment:
    """Return a segment with what retention looks at."""
    index = BatchIndex() if live else None
    return Segment(Path(), SegmentName(0, 1), 0, 0, size=size, last_ns=last_ns, live=index)


sizes = st.lists(st.integers(1, 100), max_size=12)


@given(st.lists(st.integers(1, 100), max_size=40), st.integers(0, 100))
def test_by_size_a_topic_keeps_at_most_its_limit(lengths: list[int], written: int) -> None:
    """Of segments of an eighth at most, as many stay as the limit allows, but at least six."""
    segments = [*(segment(length, 0) for length in lengths), segment(written, 0, live=True)]
    left = segments[expired(segments, Retention(max_bytes=800), 0) :]
    kept = sum(each.size for each in left)
    assert kept <= 800
    assert kept >= min(600, sum(lengths)) or left == segments


@given(sizes, st.integers(1, 300))
def test_by_size_a_large_segment_stays_until_what_follows_is_enough(
    lengths: list[int], max_bytes: int
) -> None:
    """A limit that was lowered never drops more than an eighth of itself at a time."""
    segments = [segment(length, 0) for length in lengths]
    gone = expired(segments, Retention(max_bytes=max_bytes), 0)
    for number in range(gone):
        after = sum(lengths[number + 1 :])
        assert lengths[number] <= max_bytes // 8 or after >= max_bytes - max_bytes // 8


@given(st.lists(st.integers(1, 900), min_size=30, max_size=60), st.booleans())
def test_a_limited_topic_is_within_its_limit_after_each_batch(
    sizes_of_values: list[int], merging: bool
) -> None:
    """Segments close at an eighth of it, merged ones too, and the oldest go at each close."""
    limit = 8000
    policy = CompactionPolicy(min_segments=2, small=10_000) if merging else None
    log = LogDriver(MemoryStorage(), options=LogOptions(compaction=policy))
    topic = log.create_topic("limited", Retention(max_bytes=limit))
    stored = 0
    for number, size in enumerate(sizes_of_values, start=1):
        log.store([b"v" * size], batch_id=number, topic_id=topic.id)
        log.engine.upkeep.visit(topic)
        log.scheduler.run_all()
        stored += size + 5
        kept = topic.partition.end_offset - topic.partition.start_offset
        assert kept <= limit
        assert kept >= min(stored, limit // 2)
        assert topic.partition.excess == 0


def test_a_merge_that_failed_is_finished_before_its_result_is_dropped() -> None:
    """Also where a batch, and not a visit, takes the topic above its limit."""
    disk = MemoryStorage()
    faulty = FaultyStorage(disk)
    policy = CompactionPolicy(min_segments=2, small=10_000)
    log = LogDriver(faulty, options=LogOptions(compaction=policy))
    topic = log.create_topic("limited", Retention(max_bytes=8000))
    for number in range(1, 4):
        log.store([bytes(200)], batch_id=number, topic_id=topic.id)
        topic.partition.roll()
        log.scheduler.run_all()
    sidecar = topic.partition.segment_list[1].sidecar_path
    faulty.within, faulty.fail = sidecar, {"remove": errno.EIO}
    log.engine.upkeep.visit(topic)
    log.scheduler.run_all()
    assert sidecar in disk.files()
    faulty.fail = {}
    for number in range(4, 40):
        log.store([bytes(900)], batch_id=number, topic_id=topic.id)
    assert sidecar not in disk.files()
    log.engine.release()
    assert LogDriver(disk).engine.report.findings == []


def test_a_limit_that_one_batch_exceeds_is_told() -> None:
    """What cannot be kept within it is kept, and counted as excess."""
    log = LogDriver(MemoryStorage())
    topic = log.create_topic("limited", Retention(max_bytes=1000))
    log.store([b"v" * 5000], batch_id=1, topic_id=topic.id)
    assert topic.partition.excess == 4005
    log.store([b"v" * 900], batch_id=2, topic_id=topic.id)
    assert topic.partition.excess == 0


def test_a_limit_that_batches_may_exceed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Below eight of the largest batches it is kept as well as they let it be."""
    with caplog.at_level("INFO"):
        LogDriver(MemoryStorage()).create_topic("small", Retention(max_bytes=128 * 1024 * 1024))
        LogDriver(MemoryStorage()).create_topic("large", Retention(max_bytes=256 * 1024 * 1024))
    assert sum("max_bytes" in record.message for record in caplog.records) == 1


@given(sizes, st.integers(1, 50), st.integers(0, 100))
def test_by_age_everything_young_is_kept(
    lengths: list[int], max_age_secs: int, now_secs: int
) -> None:
    """Segments go whose last batch is older than the limit, and no others."""
    segments = [segment(1, number * SECOND_NS) for number in range(len(lengths))]
    gone = expired(segments, Retention(max_age_secs=max_age_secs), now_secs * SECOND_NS)
    assert gone == min(len(lengths), max(0, now_secs - max_age_secs))


def test_the_segment_being_written_always_stays() -> None:
    """However old or large it is, the active segment is not dropped."""
    segments = [segment(10, 0), segment(10, 0, live=True)]
    assert expired(segments, Retention(1, 1), 1000 * SECOND_NS) == 1


def test_without_limits_nothing_goes() -> None:
    """A retention of 0 means no limit (AMB-08)."""
    assert expired([segment(10, 0)], Retention(), 1000 * SECOND_NS) == 0


def filled(
    storage: StorageBackend, batches: int = 6, clock: ManualClock | None = None
) -> LogDriver:
    """Return a log whose default topic has a segment for each batch."""
    log = LogDriver(storage, options=OPTIONS, clock=clock)
    for number in range(batches):
        log.store([VALUE], batch_id=FIRST_LASTING_ID + number + 1)
    return log


def drop(log: LogDriver, retention: Retention = KEEP_TWO) -> None:
    """Give the default topic a retention and let it take effect."""
    log.engine.set_retention(log.engine.topic(0), retention)
    log.scheduler.run_all()


def test_what_stays_keeps_its_offsets() -> None:
    """Dropping old segments moves nothing that is left."""
    log = filled(MemoryStorage())
    before = log.read_all().data
    drop(log)
    start = log.engine.topic(0).partition.start_offset
    assert start == 3 * (len(VALUE) + 5)
    assert log.read_all(start=start).data == before[start:]


def test_what_is_gone_is_refused_with_the_earliest_offset() -> None:
    """A Fetch below the start says where the topic begins."""
    log = filled(MemoryStorage())
    drop(log)
    with pytest.raises(Refusal) as refused:
        log.fetch(0)
    assert refused.value.code is ErrorCode.INVALID_OFFSET
    assert refused.value.details == {"earliest": log.engine.topic(0).info().start_offset}


def test_the_record_count_is_of_what_can_be_read() -> None:
    """GetTopic counts the records between its start and its end."""
    log = filled(MemoryStorage())
    drop(log)
    info = log.engine.topic(0).info()
    assert info.record_count == len(decode_records(log.read_all(start=info.start_offset or 0).data))


def test_the_data_files_are_removed() -> None:
    """The disk gets its space back."""
    disk = MemoryStorage()
    log = filled(disk)
    before = [path for path in disk.files() if path.suffix == ".lnc"]
    drop(log)
    after = [path for path in disk.files() if path.suffix == ".lnc"]
    assert (len(before), len(after)) == (6, 3)


def test_the_start_is_remembered_through_a_restart() -> None:
    """A topic does not begin at 0 again, not even when all of it is gone."""
    disk, clock = MemoryStorage(), ManualClock()
    log = filled(disk, clock=clock)
    end = log.end()
    log.close()
    clock.now_ns += 100 * SECOND_NS
    log = LogDriver(disk, options=OPTIONS, clock=clock)
    drop(log, Retention(max_age_secs=10))
    log.close()
    info = LogDriver(disk, options=OPTIONS, clock=clock).engine.topic(0).info()
    assert (info.start_offset, info.end_offset, info.record_count) == (end, end, 0)


def test_the_next_record_goes_on_where_the_last_one_ended() -> None:
    """With all segments gone, neither offsets nor record numbers begin again."""
    disk, clock = MemoryStorage(), ManualClock()
    log = filled(disk, clock=clock)
    end = log.end()
    log.close()
    clock.now_ns += 100 * SECOND_NS
    log = LogDriver(disk, options=OPTIONS, clock=clock)
    drop(log, Retention(max_age_secs=10))
    assert log.store([b"next"]) == end
    assert log.engine.topic(0).partition.end_record == 7


def test_a_dropped_batch_is_still_recognised_after_a_restart() -> None:
    """The duplicate window reaches back over what retention dropped (AMB-25)."""
    disk, clock = MemoryStorage(), ManualClock()
    log = filled(disk, clock=clock)
    drop(log)
    log.close()
    log = LogDriver(disk, options=OPTIONS, clock=clock)
    partition = log.engine.topic(0).partition
    assert partition.may_know(FIRST_LASTING_ID + 1)
    assert partition.find_duplicate(FIRST_LASTING_ID + 1, b"") is not None


def test_what_the_window_no_longer_needs_is_removed() -> None:
    """Sidecars of dropped segments go once they are older than the window."""
    disk, clock = MemoryStorage(), ManualClock()
    options = LogOptions(segment_size=300, window=WindowLimits(max_age_secs=50))
    log = LogDriver(disk, options=options, clock=clock)
    for number in range(6):
        log.store([VALUE], batch_id=FIRST_LASTING_ID + number + 1)
    drop(log)
    assert [path.suffix for path in disk.files()].count(".window") == 3
    clock.now_ns += 100 * SECOND_NS
    log.store([VALUE])
    drop(log)
    assert [path.suffix for path in disk.files()].count(".window") == 0


def test_a_reader_of_a_dropped_segment_is_told_so() -> None:
    """A Fetch that was begun before the drop and runs after it is refused, not failed."""
    disk = MemoryStorage()
    log = filled(disk)
    read = log.engine.topic(0).partition.reading(Range(start=0, max_bytes=100))
    drop(log)
    with pytest.raises(Refusal, match="the earliest that can be read"):
        read()


def test_an_old_segment_is_closed_without_a_write() -> None:
    """A quiet topic's segment is closed when it is as old as the topic's retention."""
    disk, clock = MemoryStorage(), ManualClock()
    log = filled(disk, batches=1, clock=clock)
    drop(log, Retention(max_age_secs=10))
    clock.now_ns += 11 * SECOND_NS
    topic = log.engine.topic(0)
    log.engine.upkeep.visit(topic)
    log.scheduler.run_all()
    assert topic.partition.live_key is None
    log.engine.upkeep.visit(topic)
    log.scheduler.run_all()
    assert topic.partition.segments == 0


def test_a_visit_by_who_waited_for_the_first_batch_of_a_segment_is_no_error() -> None:
    """It comes before the new segment is noted; the segment's age counts from then on."""
    log = LogDriver(MemoryStorage())
    topic = log.engine.topic(0)
    outcome = log.append([b"first"], batch_id=1)
    errors: list[Exception] = []

    def visit() -> None:
        try:
            log.engine.upkeep.visit(topic)
        except KeyError as error:
            errors.append(error)

    outcome.wake(visit)
    log.scheduler.run_all()
    assert topic.partition.live_key is not None
    assert errors == []


def test_a_plan_changes_nothing() -> None:
    """What would be dropped can be asked for without dropping it."""
    disk = MemoryStorage()
    log = filled(disk)
    topic = log.engine.topic(0)
    topic.file.retention = KEEP_TWO
    names = disk.files()
    assert len(log.engine.upkeep.retention.plan(topic)) == 3
    assert disk.files() == names


def test_time_is_looked_at_again_and_again() -> None:
    """Retention takes effect by itself, without anyone asking."""
    clock = ManualClock()
    log = filled(MemoryStorage(), clock=clock)
    topic = log.engine.topic(0)
    topic.file.retention = Retention(max_age_secs=10)
    log.engine.start_upkeep(5.0)
    log.scheduler.run_all()
    assert topic.partition.segments == 6
    clock.now_ns += 11 * SECOND_NS
    log.scheduler.pass_time(5.0)
    log.scheduler.run_all()
    assert topic.partition.segments == 1


@pytest.mark.parametrize("method", ["remove", "rename", "sync_dir", "write"])
def test_a_disk_that_refuses_is_tried_again(method: str) -> None:
    """A drop that the disk keeps from finishing is finished by a later visit."""
    disk = MemoryStorage()
    faulty = FaultyStorage(disk)
    log = filled(faulty)
    topic = log.engine.topic(0)
    topic.file.retention = KEEP_TWO
    faulty.fail[method] = errno.EIO
    log.engine.upkeep.visit(topic)
    log.scheduler.run_all()
    faulty.fail.clear()
    log.engine.upkeep.visit(topic)
    log.scheduler.run_all()
    assert [path.suffix for path in disk.files()].count(".lnc") == 3
    assert log.read_all(start=topic.info().start_offset or 0).damage == []


def test_a_visit_that_fails_unexpectedly_is_not_the_last() -> None:
    """Not only the disk may fail: whatever stopped a visit, the next one drops what is due."""

    class Surprising(FaultyStorage):
        surprises = 1

        def remove(self, path: Path) -> None:
            if self.surprises:
                self.surprises -= 1
                raise ValueError("a surprise")
            super().remove(path)

    disk = MemoryStorage()
    log = filled(Surprising(disk))
    topic = log.engine.topic(0)
    topic.file.retention = KEEP_TWO
    for _ in range(2):
        log.engine.upkeep.visit(topic)
        log.scheduler.run_all()
    assert [path.suffix for path in disk.files()].count(".lnc") == 3
    assert log.read_all(start=topic.info().start_offset or 0).damage == []


def test_a_crash_at_any_step_leaves_the_topic_whole() -> None:
    """Wherever a drop is cut off, nothing that is kept is damaged, and the rest goes later."""
    whole = filled(MemoryStorage())
    kept = b"".join(whole.read_all().pieces.values())[3 * (len(VALUE) + 5) :]
    for step in range(1, 40):
        disk = MemoryStorage()
        log = filled(disk)
        disk.crash_after = disk.operations + step
        with contextlib.suppress(CrashError):
            drop(log)
        survivor = LogDriver(disk.crash(Random(step)), options=OPTIONS)
        info = survivor.engine.topic(0).info()
        assert info.start_offset in {0, 3 * (len(VALUE) + 5)}
        assert survivor.engine.report.findings == []
        reading = survivor.read_all(start=info.start_offset or 0)
        assert reading.damage == []
        assert reading.data.endswith(kept)
