"""A replicated log keeps every record once, in order, and says when it cannot."""

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_server.cluster.memory import MemoryLog, forget_log, named_log
from lance_server.cluster.replicated_log import (
    MAX_RECORD,
    AppendError,
    Entry,
    LogTrimmedError,
    LogTruncatedError,
    LogUnavailableError,
    RecordTooLargeError,
    ReplicatedLog,
)
from lance_server.testing.replicated_log import FaultyLog


class Reports:
    """Collects what a log reports of appends."""

    def __init__(self) -> None:
        self.got: list[int | AppendError] = []

    def __call__(self, result: int | AppendError) -> None:
        """Note a report."""
        self.got.append(result)

    @property
    def error(self) -> AppendError:
        """The only report, which is an error."""
        (only,) = self.got
        assert isinstance(only, AppendError)
        return only


@pytest.fixture
def log() -> MemoryLog:
    """A log of two shards, with times that can be told apart."""
    times = iter(range(1000, 100_000))
    return MemoryLog("log-1", shards=2, clock=lambda: next(times))


@pytest.fixture
def name() -> Iterator[str]:
    """The name of a log of this process, which is forgotten afterwards."""
    yield "test"
    forget_log("test")


def records(log: ReplicatedLog, shard: int, position: int = 0) -> list[bytes]:
    """Return what stands in a shard from a position on."""
    reader = log.read(shard, position)
    found: list[Entry] = []
    while more := reader.read(64, 0):
        found += more
    assert [each.position for each in found] == list(range(position, position + len(found)))
    return [each.record for each in found]


def test_append_reports_the_position(log: MemoryLog) -> None:
    """An append is reported with the record's position."""
    reports = Reports()
    log.append(0, b"one", reports)
    log.append(0, b"two", reports)
    assert reports.got == [0, 1]


def test_a_record_is_copied(log: MemoryLog) -> None:
    """The log keeps a record as it was when it was appended."""
    record = bytearray(b"one")
    log.append(0, record, Reports())
    record[:] = b"two"
    assert records(log, 0) == [b"one"]


@given(st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=100)), max_size=40))
def test_shards_keep_their_order(appended: list[tuple[int, bytes]]) -> None:
    """Every shard holds its records once, in the order of the appends."""
    log = MemoryLog("log-1", shards=2)
    for shard, record in appended:
        log.append(shard, record, Reports())
    for shard in range(2):
        assert records(log, shard) == [record for there, record in appended if there == shard]


def test_all_readers_see_the_same_times(log: MemoryLog) -> None:
    """The append time of an entry belongs to the log, not to its reader."""
    log.append(0, b"one", Reports())
    first, second = (log.read(0, 0).read(64, 0) for _ in range(2))
    assert first == second


def test_a_reader_gets_a_record_larger_than_it_asks_for(log: MemoryLog) -> None:
    """A record that is larger than the wanted bytes is returned alone."""
    log.append(0, bytes(100), Reports())
    log.append(0, b"two", Reports())
    assert [each.record for each in log.read(0, 0).read(10, 0)] == [bytes(100)]


def test_a_reader_waits_for_the_next_record(log: MemoryLog) -> None:
    """A reader that may wait returns as soon as a record is appended."""
    reader = log.read(0, 0)
    got: list[Entry] = []
    thread = threading.Thread(target=lambda: got.extend(reader.read(64, 60)))
    thread.start()
    log.append(0, b"one", Reports())
    thread.join(60)
    assert [each.record for each in got] == [b"one"]


def test_a_record_that_is_too_large_is_refused(log: MemoryLog) -> None:
    """A record above the limit is reported as not applied, with both sizes."""
    reports = Reports()
    log.append(0, bytes(MAX_RECORD + 1), reports)
    assert isinstance(reports.error, RecordTooLargeError)
    assert not reports.error.maybe_applied
    assert str(MAX_RECORD) in str(reports.error)
    assert log.end(0) == 0


def test_trimming_raises_the_earliest_position(log: MemoryLog) -> None:
    """What is trimmed is gone, and what follows keeps its position."""
    for each in (b"one", b"two", b"three"):
        log.append(0, each, Reports())
    log.trim(0, 2)
    assert (log.earliest(0), log.end(0)) == (2, 3)
    assert records(log, 0, 2) == [b"three"]


def test_reading_what_is_trimmed_is_an_error(log: MemoryLog) -> None:
    """A trimmed position is refused with the earliest one, and never skipped."""
    for each in (b"one", b"two", b"three"):
        log.append(0, each, Reports())
    reader = log.read(0, 0)
    log.trim(0, 2)
    with pytest.raises(LogTrimmedError, match="position 0 is trimmed") as raised:
        reader.read(64, 0)
    assert raised.value.earliest == 2
    with pytest.raises(LogTrimmedError, match="lance-server clone"):
        log.read(0, 1)


def test_a_position_after_the_end_is_an_error(log: MemoryLog) -> None:
    """A log that ends before what a node has applied is not the log that it followed."""
    log.append(0, b"one", Reports())
    with pytest.raises(LogTruncatedError, match="ends at 1"):
        log.read(0, 2)


def test_a_named_log_is_shared(name: str) -> None:
    """Nodes of one process that name the same log share it."""
    named_log(name).append(0, b"one", Reports())
    assert records(named_log(name), 0) == [b"one"]


def test_a_log_made_again_has_no_records(name: str) -> None:
    """A name that was forgotten leads to a new log."""
    named_log(name).append(0, b"one", Reports())
    forget_log(name)
    assert named_log(name).end(0) == 0


class TestFaults:
    """A test decides what becomes of an append, and what a node sees."""

    def test_an_append_waits_for_the_decision(self, log: MemoryLog) -> None:
        """Nothing is in the log, and nothing is reported, before the test says so."""
        node, reports = FaultyLog(log), Reports()
        node.append(0, b"one", reports)
        assert (log.end(0), reports.got) == (0, [])
        node.commit()
        assert (log.end(0), reports.got) == (1, [])
        node.report()
        assert reports.got == [0]

    @pytest.mark.parametrize("applied", [False, True])
    def test_a_failure_leaves_open_whether_it_was_applied(
        self, log: MemoryLog, *, applied: bool
    ) -> None:
        """An append that fails may be in the log, and the report is the same."""
        node, reports = FaultyLog(log), Reports()
        node.append(0, b"one", reports)
        node.fail(applied=applied)
        node.report()
        assert reports.error.maybe_applied
        assert log.end(0) == int(applied)

    def test_a_node_may_see_less_than_the_log_holds(self, log: MemoryLog) -> None:
        """A reader that lags sees the rest later, in order."""
        node = FaultyLog(log)
        for each in (b"one", b"two", b"three"):
            log.append(0, each, Reports())
        node.visible[0] = 1
        reader = node.read(0, 0)
        assert [each.record for each in reader.read(64, 0)] == [b"one"]
        assert not reader.read(64, 0)
        node.visible[0] = None
        assert [each.record for each in reader.read(64, 0)] == [b"two", b"three"]

    def test_a_log_out_of_reach_says_so(self, log: MemoryLog) -> None:
        """Reading from a log that is out of reach fails, and goes on later."""
        log.append(0, b"one", Reports())
        node = FaultyLog(log)
        reader = node.read(0, 0)
        node.reachable = False
        with pytest.raises(LogUnavailableError, match="cannot be reached"):
            reader.read(64, 0)
        node.reachable = True
        assert [each.record for each in reader.read(64, 0)] == [b"one"]

    def test_closing_reports_what_is_open(self, log: MemoryLog) -> None:
        """What was not reported when the connection closes is maybe applied."""
        node, reports = FaultyLog(log), Reports()
        node.append(0, b"one", reports)
        node.close()
        assert reports.error.maybe_applied
        with pytest.raises(LogUnavailableError, match="closed"):
            node.append(0, b"two", reports)
