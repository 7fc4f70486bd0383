"""CommitBatch commit, segments, and what a failing disk leads to (AMB-14, AMB-16, AMB-41)."""

import errno
from itertools import count
from pathlib import Path

import pytest

from lance_server.log.flusher import FlushPolicy
from lance_server.log.log_manager import LogOptions
from lance_server.log.segments.segment_files import DATA_SUFFIX, SIDECAR_SUFFIX, SegmentName
from lance_server.log.segments.sidecar import HEADER_SIZE, decode_entries, decode_header
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import Completion
from lance_server.testing import FaultyStorage, LogDriver, ManualClock, MemoryStorage
from lance_spec.checksum import CRC32C
from lance_spec.enums import ErrorCode
from lance_spec.records import decode_records, encode_records

ONE = encode_records([b"one"])


# When a flush happens --------------------------------------------------------------------------


def test_a_lone_batch_is_flushed_at_once() -> None:
    """With nothing in flight no time has to pass (AMB-41)."""
    log = LogDriver(MemoryStorage())
    log.append([b"one"])
    log.scheduler.run_soon()
    assert len(log.scheduler.work) == 1


def test_batches_that_arrive_together_share_a_flush() -> None:
    """What came in one turn of the loop is one group with one sync of each file."""
    disk = FaultyStorage(MemoryStorage())
    log = LogDriver(disk)
    log.store([b"the segment exists"], batch_id=1)
    before = disk.calls["sync"]
    for number in range(2, 52):
        log.append([b"together"], batch_id=number)
    log.scheduler.run_all()
    assert disk.calls["sync"] - before == 2


def test_who_waits_for_several_topics_of_a_flush_is_woken_once() -> None:
    """When all of them are durable: a connection writes one answer for them."""
    log = LogDriver(MemoryStorage())
    topics = [0, log.create_topic("second").id]
    outcomes = [log.append([b"x"], batch_id=1, topic_id=each) for each in topics]
    woken: list[bool] = []
    waiter = lambda: woken.append(all(each.done for each in outcomes))  # noqa: E731
    for each in outcomes:
        each.wake(waiter)
    log.scheduler.run_all()
    assert woken == [True]


def test_what_arrives_during_a_flush_goes_with_the_next_one() -> None:
    """The next group starts when the running one ends."""
    log = LogDriver(MemoryStorage())
    first = log.append([b"first"], batch_id=1)
    log.scheduler.run_soon()
    second = log.append([b"second"], batch_id=2)
    third = log.append([b"third"], batch_id=3)
    log.scheduler.run_soon()
    assert len(log.scheduler.work) == 1
    log.scheduler.run_work()
    assert (first.done, second.done) == (True, False)
    log.scheduler.run_work()
    assert (second.done, third.done) == (True, True)


def quick_log(policy: FlushPolicy, took: float = 0.0001) -> LogDriver:
    """Return a log with an open segment, on a disk of which each flush takes so many seconds."""
    log = LogDriver(MemoryStorage(), options=LogOptions(flush=policy))
    log.engine.flusher.clock = count(0, took).__next__
    log.store([b"first"])
    return log


@pytest.mark.parametrize(
    ("took", "here"), [(0.0001, True), (0.02, False)], ids=["quick disk", "slow disk"]
)
def test_a_lone_batch_is_flushed_at_once_where_that_is_quick(took: float, here: bool) -> None:
    """The event loop's thread does it; on a slow disk a worker, so that nobody is held up."""
    log = quick_log(FlushPolicy(lone_bytes=1000), took)
    outcome = log.append([b"alone"], batch_id=2)
    log.scheduler.run_soon()
    assert (outcome.done, len(log.scheduler.work)) == (here, 0 if here else 1)


def test_each_batch_may_lead_to_the_next() -> None:
    """Who sends one batch after the other is served without end."""
    log, left = quick_log(FlushPolicy(lone_bytes=1000)), iter(range(2, 3000))

    def send_next() -> None:
        if (number := next(left, None)) is not None:
            log.append([b"next"], batch_id=number).wake_later(send_next)

    send_next()
    log.scheduler.run_soon()
    assert (next(left, None), len(log.scheduler.work)) == (None, 0)


def alone(log: LogDriver, batch_id: int) -> Completion[None]:
    """Append a batch as a connection does that has nothing else."""
    outcome = log.append([b"alone"], batch_id=batch_id)
    log.engine.flusher.flush_lone()
    return outcome


def test_after_a_batch_that_came_alone_the_next_waits_for_nothing() -> None:
    """It is durable before anything else is looked at."""
    log = quick_log(FlushPolicy(lone_bytes=1000))
    assert not alone(log, 2).done
    for batch_id in (3, 4):
        log.scheduler.run_soon()
        assert alone(log, batch_id).done


def test_only_the_first_batch_of_a_turn_is_flushed_at_once() -> None:
    """Others may have come as well: they are made durable together."""
    log = quick_log(FlushPolicy(lone_bytes=1000))
    alone(log, 2)
    log.scheduler.run_soon()
    outcomes = [alone(log, batch_id) for batch_id in (3, 4, 5)]
    assert [outcome.done for outcome in outcomes] == [True, False, False]
    log.scheduler.run_soon()
    log.scheduler.run_work()
    assert all(outcome.done for outcome in outcomes)
    assert not alone(log, 6).done, "the last turn brought several"


def test_batches_that_come_together_go_to_a_worker() -> None:
    """More may come while it writes them."""
    log = quick_log(FlushPolicy(lone_bytes=1000))
    outcomes = [log.append([b"together"], batch_id=number) for number in (2, 3)]
    log.scheduler.run_soon()
    assert not any(outcome.done for outcome in outcomes)


def test_a_large_batch_goes_to_a_worker() -> None:
    """Writing it would take longer than handing it over."""
    log = quick_log(FlushPolicy(lone_bytes=1000))
    outcome = log.append([bytes(1000)], batch_id=2)
    log.scheduler.run_soon()
    assert not outcome.done


def test_a_batch_that_needs_a_new_file_goes_to_a_worker() -> None:
    """Creating one takes longer than writing to it."""
    log = LogDriver(MemoryStorage(), options=LogOptions(flush=FlushPolicy(lone_bytes=1000)))
    outcome = log.append([b"first"])
    log.scheduler.run_soon()
    assert not outcome.done


def test_a_lone_batch_that_the_disk_refuses_fails_alone() -> None:
    """What comes after it is stored."""
    faulty = FaultyStorage(MemoryStorage())
    log = LogDriver(faulty, options=LogOptions(flush=FlushPolicy(lone_bytes=1000)))
    log.store([b"first"])
    faulty.fail["sync"] = errno.EIO
    refused = log.append([b"refused"], batch_id=2)
    log.scheduler.run_soon()
    assert isinstance(refused.error, Refusal)
    del faulty.fail["sync"]
    log.store([b"next"], batch_id=3)
    assert [value for _, value in decode_records(log.read_all().data)] == [b"first", b"next"]


def two_topics(policy: FlushPolicy | None = None) -> tuple[LogDriver, int]:
    """Return a log whose topic 0 is being flushed, and another topic."""
    log = LogDriver(MemoryStorage(), options=LogOptions(flush=policy or FlushPolicy()))
    other = log.create_topic("other").id
    log.append([b"slow"], batch_id=1)
    log.scheduler.run_soon()
    return log, other


def test_another_topic_waits_five_milliseconds_for_a_running_flush() -> None:
    """Then it is flushed beside it, so that one slow sync does not hold up the others."""
    log, other = two_topics()
    log.append([b"quick"], batch_id=2, topic_id=other)
    log.scheduler.run_soon()
    log.scheduler.pass_time(0.004)
    assert len(log.scheduler.work) == 1
    log.scheduler.pass_time(0.001)
    assert len(log.scheduler.work) == 2


def test_four_mebibytes_do_not_wait() -> None:
    """So much is worth a flush of its own at once."""
    log, other = two_topics()
    log.append([bytes(4 << 20)], batch_id=2, topic_id=other)
    log.scheduler.run_soon()
    assert len(log.scheduler.work) == 2


def test_no_more_flushes_run_at_once_than_allowed() -> None:
    """The third topic waits, however long it takes."""
    log, other = two_topics()
    third = log.engine.create_topic("third", log.engine.topic(other).file.retention)
    log.scheduler.work.rotate(1)
    log.scheduler.run_work()
    topic_id = third.result().id
    for number in (other, topic_id):
        log.append([b"waiting"], batch_id=number, topic_id=number)
        log.scheduler.run_soon()
        log.scheduler.pass_time(0.006)
    assert len(log.scheduler.work) == 2


# What is on disk -------------------------------------------------------------------------------


def files_of(disk: MemoryStorage, suffix: str) -> list[Path]:
    """Return the files of all segments, oldest first."""
    found = [path for path in disk.files() if path.suffix == suffix]
    return sorted(found, key=lambda path: int(path.name.split("_")[0]))


def test_a_segment_is_plain_records() -> None:
    """The data file is the concatenation of the records and nothing else."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    log.store([b"one"], batch_id=1)
    log.store([b"two"], batch_id=2)
    (path,) = files_of(disk, DATA_SUFFIX)
    assert disk.peek(path) == ONE + encode_records([b"two"])


def test_a_sidecar_describes_every_batch() -> None:
    """Header and one entry a batch, each with its checksum (AMB-14)."""
    disk = MemoryStorage()
    log = LogDriver(disk, clock=ManualClock(1_000_000))
    log.append([b"one"], batch_id=41, timestamp_ns=123)
    log.scheduler.run_all()
    log.append([b"two", b"three"], batch_id=42, timestamp_ns=124)
    log.scheduler.run_all()
    (path,) = files_of(disk, SIDECAR_SUFFIX)
    raw = disk.peek(path)
    assert decode_header(raw).base_offset == 0
    first, second = decode_entries(raw[HEADER_SIZE:])
    assert first is not None
    assert second is not None
    assert (first.batch_id, first.client_timestamp_ns, first.durable_end) == (41, 123, 0)
    assert (second.relative_offset, second.record_count, second.durable_end) == (8, 2, 8)
    assert second.stored_crc == CRC32C(encode_records([b"two", b"three"]))
    assert second.server_time_ns > first.server_time_ns


def test_names_say_start_and_end() -> None:
    """Open: start record and time; closed: also the time of the last batch (AMB-16)."""
    disk = MemoryStorage()
    log = LogDriver(disk, clock=ManualClock(5_000_000))
    log.store([b"one", b"two"])
    (path,) = files_of(disk, DATA_SUFFIX)
    opened = SegmentName.parse(path.name)
    assert opened is not None
    assert (opened.start_record, opened.end_ns) == (0, None)
    log.close()
    (path,) = files_of(disk, DATA_SUFFIX)
    closed = SegmentName.parse(path.name)
    assert closed is not None
    assert (closed.start_ns, closed.end_ns) == (opened.start_ns, opened.start_ns)


def test_segments_roll_by_size_and_batches_never_straddle_them() -> None:
    """A batch that would not fit begins a new segment; offsets go on without a gap."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=LogOptions(segment_size=20))
    for number in range(1, 6):
        log.store([b"one"], batch_id=number)
    assert [disk.peek(path) for path in files_of(disk, DATA_SUFFIX)] == [ONE * 2, ONE * 2, ONE]
    assert [SegmentName.parse(path.name)[0] for path in files_of(disk, DATA_SUFFIX)] == [0, 2, 4]
    assert log.read_all().data == ONE * 5


def test_a_segment_that_is_full_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """With the topic and its size."""
    log = LogDriver(MemoryStorage(), options=LogOptions(segment_size=20))
    with caplog.at_level("INFO"):
        for number in range(1, 4):
            log.store([b"one"], batch_id=number)
    told = [each.getMessage() for each in caplog.records if "is full" in each.getMessage()]
    assert len(told) == 1
    assert told[0].startswith("topic 0: segment ")
    assert told[0].endswith(f"is full, with {2 * len(ONE)} bytes")


def test_a_closed_segment_gives_its_index_back() -> None:
    """Only the segment being written holds an index that does not count as cached."""
    log = LogDriver(MemoryStorage(), options=LogOptions(segment_size=20))
    for number in range(1, 6):
        log.store([b"one"], batch_id=number)
    *closed, opened = log.engine.topic(0).partition._segments
    assert [segment.live for segment in closed] == [None, None]
    assert opened.live is not None


def test_a_batch_larger_than_a_segment_gets_one_of_its_own() -> None:
    """The size is a goal, not a limit for batches."""
    log = LogDriver(MemoryStorage(), options=LogOptions(segment_size=20))
    log.store([bytes(100)], batch_id=1)
    assert log.store([b"one"], batch_id=2) == 105


def test_a_clock_that_goes_back_does_not_confuse_names() -> None:
    """Two segments never get the same name."""
    disk = MemoryStorage()
    options = LogOptions(segment_size=1)
    log = LogDriver(disk, options=options, clock=ManualClock(2_000_000_000))
    log.store([b""], batch_id=1)
    log.close()
    log = LogDriver(disk, options=options, clock=ManualClock(1_000_000_000))
    log.store([b"one"], batch_id=2)
    log.store([b"one"], batch_id=3)
    names = [SegmentName.parse(path.name) for path in files_of(disk, DATA_SUFFIX)]
    starts = [name.start_ns for name in names if name is not None]
    assert len(starts) == 3
    assert starts == sorted(set(starts))


# When the disk fails ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["write", "sync", "create", "sync_dir", "rename"])
def test_a_failed_write_is_refused_and_the_log_goes_on(method: str) -> None:
    """No false acknowledgement, nothing visible, and the next batch is stored."""
    disk = FaultyStorage(MemoryStorage())
    log = LogDriver(disk)
    disk.fail = {method: 5}
    outcome = log.append([b"refused"], batch_id=1)
    log.scheduler.run_all()
    assert isinstance(outcome.error, Refusal)
    assert outcome.error.code is ErrorCode.STORAGE_ERROR
    assert log.end() == 0
    disk.fail = {}
    log.reopen_topics()
    log.store([b"stored"], batch_id=2)
    assert log.read_all().data == encode_records([b"stored"])


@pytest.mark.parametrize("method", ["write", "sync"])
def test_a_refused_batch_does_not_come_back(method: str) -> None:
    """What was refused is cut away before anything else is written, and stays away."""
    inner = MemoryStorage()
    disk = FaultyStorage(inner)
    log = LogDriver(disk)
    log.store([b"before"], batch_id=1)
    disk.fail = {method: 5}
    log.append([b"refused"], batch_id=2)
    log.scheduler.run_all()
    disk.fail = {}
    log.reopen_topics()
    log.store([b"after"], batch_id=3)
    again = LogDriver(inner.copy())
    assert again.read_all().data == encode_records([b"before", b"after"])
    assert again.engine.report.findings == []


def test_while_it_cannot_be_cut_away_nothing_else_is_written() -> None:
    """If even the cut fails, further batches are refused rather than written after it."""
    inner = MemoryStorage()
    disk = FaultyStorage(inner)
    log = LogDriver(disk)
    log.store([b"before"], batch_id=1)
    disk.fail = {"sync": 5, "truncate": 5}
    log.append([b"refused"], batch_id=2)
    log.scheduler.run_all()
    disk.fail = {"truncate": 5}
    outcome = log.append([b"refused, too"], batch_id=3)
    log.scheduler.run_all()
    assert isinstance(outcome.error, Refusal)
    disk.fail = {}
    log.reopen_topics()
    log.store([b"after"], batch_id=4)
    assert LogDriver(inner.copy()).read_all().data == encode_records([b"before", b"after"])


def test_the_group_behind_a_failed_one_is_stored() -> None:
    """A failure takes its own group only."""
    disk = FaultyStorage(MemoryStorage())
    log = LogDriver(disk)
    log.store([b"before"], batch_id=1)
    failing = log.append([b"refused"], batch_id=2)
    log.scheduler.run_soon()
    waiting = log.append([b"stored"], batch_id=3)
    disk.fail = {"sync": 5}
    log.scheduler.run_work()
    disk.fail = {}
    log.scheduler.run_all()
    assert failing.error is not None
    assert (waiting.done, waiting.error) == (True, None)
    assert log.read_all().data == encode_records([b"before", b"stored"])


def test_a_full_disk_says_that_nothing_was_stored() -> None:
    """ENOSPC is a refusal for now, not a failure (AMB-35)."""
    disk = FaultyStorage(MemoryStorage())
    log = LogDriver(disk)
    disk.fail = {"write": 28}
    outcome = log.append([b"refused"])
    log.scheduler.run_all()
    assert isinstance(outcome.error, Refusal)
    assert outcome.error.code is ErrorCode.BACKPRESSURE


@pytest.mark.parametrize("method", ["write", "sync", "rename", "sync_dir"])
def test_failed_segments_leave_no_files_behind(method: str) -> None:
    """A disk that fails again and again does not fill up with empty files."""
    inner = MemoryStorage()
    disk = FaultyStorage(inner)
    log = LogDriver(disk)
    for number in range(1, 6):
        disk.fail = {method: 5}
        log.append([b"refused"], batch_id=number)
        log.scheduler.run_all()
        disk.fail = {}
        log.reopen_topics()
    log.store([b"stored"], batch_id=9)
    assert len(files_of(inner, DATA_SUFFIX)) == len(files_of(inner, SIDECAR_SUFFIX)) == 1
    assert len(inner._open) == 2


def test_a_stop_that_cannot_close_the_log_is_not_a_clean_one() -> None:
    """Without the clean mark the next start checks the log."""
    inner = MemoryStorage()
    disk = FaultyStorage(inner)
    log = LogDriver(disk)
    log.store([b"stored"])
    disk.fail = {"rename": 5}
    outcome = log.engine.close()
    log.scheduler.run_all()
    assert isinstance(outcome.error, OSError)
    again = LogDriver(inner.copy())
    assert not again.engine.report.clean
    assert again.read_all().data == encode_records([b"stored"])
