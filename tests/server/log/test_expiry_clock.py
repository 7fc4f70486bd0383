"""A clock that jumps drops nothing: age waits for the clock, or for someone who confirms it."""

import errno
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from lance_server.config.settings import Address
from lance_server.embedded import EmbeddedServer, running
from lance_server.log.dedup import FIRST_LASTING_ID, WindowLimits
from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.checksummed_file import save_document
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.retention.expiry_clock import ExpiryClock
from lance_server.offline.commands import offline
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import FaultyStorage, LogDriver, ManualClock, MemoryStorage, ask_http
from lance_spec.records import encode_records

HOUR = 3600
DAY = 24 * HOUR
OPTIONS = LogOptions(segment_size=300, window=WindowLimits(100, DAY), compaction=None)
VALUE = b"v" * 200


def filled(disk: MemoryStorage, clock: ManualClock, *, max_age: int = HOUR) -> LogDriver:
    """Return a log with five segments in topic 1, which keeps them for an hour."""
    log = LogDriver(disk, options=OPTIONS, clock=clock)
    log.create_topic("aged", Retention(max_age_secs=max_age))
    for number in range(1, 6):
        log.store([VALUE], batch_id=FIRST_LASTING_ID + number, topic_id=1)
    log.engine.start_upkeep(60.0)
    log.scheduler.run_all()
    return log


def look(log: LogDriver) -> int:
    """Let topics be looked at; return how many bytes topic 1 keeps."""
    log.scheduler.pass_time(60.0)
    log.scheduler.run_all()
    partition = log.engine.topic(1).partition
    return partition.end_offset - partition.start_offset


SIZE = len(encode_records([VALUE]))


@pytest.mark.parametrize("seconds", [2 * HOUR, 10 * 365 * DAY, -2 * HOUR, -365 * DAY])
def test_a_jump_while_it_runs_drops_nothing(seconds: int) -> None:
    """The clock goes wrong by more than an hour: everything stays, and the status says why."""
    clock = ManualClock()
    log = filled(MemoryStorage(), clock)
    clock.jump(seconds)
    assert look(log) == 5 * SIZE
    assert log.engine.expiry.doubt is not None


@pytest.mark.parametrize("seconds", [2 * HOUR, 10 * 365 * DAY, -2 * HOUR])
def test_when_the_clock_returns_what_is_old_goes(seconds: int) -> None:
    """By the time that really passed."""
    clock = ManualClock()
    log = filled(MemoryStorage(), clock)
    clock.jump(seconds)
    look(log)
    clock.jump(-seconds)
    assert look(log) == 5 * SIZE
    assert log.engine.expiry.doubt is None
    clock.now_ns += 2 * HOUR * 10**9
    look(log)
    assert look(log) == 0


def test_a_clock_that_is_confirmed_counts() -> None:
    """Someone looked at it: what is old by it goes, also after a restart."""
    clock, disk = ManualClock(), MemoryStorage()
    log = filled(disk, clock)
    clock.jump(30 * DAY)
    assert look(log) == 5 * SIZE
    confirmed = log.engine.confirm_clock()
    log.scheduler.run_all()
    confirmed.result()
    look(log)
    assert look(log) < 5 * SIZE
    log.engine.release()
    assert LogDriver(disk, options=OPTIONS, clock=clock).engine.expiry.doubt is None


@pytest.mark.parametrize("seconds", [2 * HOUR, 6 * DAY])
def test_a_jump_is_remembered_over_a_crash(seconds: int) -> None:
    """The next start finds the clock as far ahead: within a week, and not believed nevertheless."""
    clock, disk = ManualClock(), MemoryStorage()
    log = filled(disk, clock)
    clock.jump(seconds)
    look(log)
    for _ in range(3):
        log.engine.release()
        clock.now_ns += 10**9
        log = LogDriver(disk, options=OPTIONS, clock=clock)
        log.engine.start_upkeep(60.0)
        assert look(log) == 5 * SIZE
    assert log.engine.expiry.doubt is not None


@pytest.mark.parametrize("stopped", [True, False])
def test_a_clock_that_returned_is_believed_at_the_next_start(stopped: bool) -> None:
    """Whether it returned before or after the server ended."""
    clock, disk = ManualClock(), MemoryStorage()
    log = filled(disk, clock)
    clock.jump(2 * HOUR)
    look(log)
    if stopped:
        log.engine.release()
        clock.jump(-2 * HOUR)
    else:
        clock.jump(-2 * HOUR)
        look(log)
        log.engine.release()
    clock.now_ns += 2 * HOUR * 10**9 if not stopped else 10**9
    log = LogDriver(disk, options=OPTIONS, clock=clock)
    log.engine.start_upkeep(60.0)
    look(log)
    assert log.engine.expiry.doubt is None


def test_time_that_really_passes_is_no_jump() -> None:
    """A machine that slept or was busy for a week is believed."""
    clock = ManualClock()
    log = filled(MemoryStorage(), clock)
    clock.now_ns += 8 * DAY * 10**9
    look(log)
    assert look(log) == 0


@pytest.mark.parametrize("seconds", [8 * DAY, 10 * 365 * DAY, -10, -365 * DAY])
@pytest.mark.parametrize("clean", [True, False])
def test_a_start_with_a_wrong_clock_drops_nothing(seconds: int, clean: bool) -> None:
    """Before the last time that was recorded, or more than a week after it."""
    clock, disk = ManualClock(), MemoryStorage()
    log = filled(disk, clock)
    look(log)
    if clean:
        log.close()
    else:
        log.engine.release()
        clock.jump(-20 if seconds == -10 else 0)
    clock.jump(seconds)
    log = LogDriver(disk, options=OPTIONS, clock=clock)
    log.engine.start_upkeep(60.0)
    assert look(log) == 5 * SIZE
    assert log.engine.expiry.doubt is not None


def test_a_time_that_cannot_be_recorded_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """And recorded as soon as the disk allows it."""
    disk = MemoryStorage()
    faulty = FaultyStorage(disk)
    LogDriver(disk, options=OPTIONS).close()
    log = LogDriver(faulty, options=OPTIONS)
    faulty.fail = {"create": errno.EIO}
    recorded = disk.peek(Path("/data/clock.json"))
    log.engine.start_upkeep(60.0)
    log.scheduler.run_all()
    assert "the time could not be recorded" in caplog.text
    assert disk.peek(Path("/data/clock.json")) == recorded
    faulty.fail = {}
    log.clock.now_ns += 10**9
    log.scheduler.pass_time(60.0)
    log.scheduler.run_all()
    assert disk.peek(Path("/data/clock.json")) != recorded


def test_a_start_within_a_week_is_believed() -> None:
    """Retention goes on as it should."""
    clock, disk = ManualClock(), MemoryStorage()
    filled(disk, clock).close()
    clock.now_ns += 6 * DAY * 10**9
    log = LogDriver(disk, options=OPTIONS, clock=clock)
    log.engine.start_upkeep(60.0)
    look(log)
    assert look(log) == 0


@pytest.mark.parametrize("seconds", [10 * 365 * DAY, 8 * DAY])
def test_the_duplicate_window_outlives_a_jump(seconds: int) -> None:
    """A batch that is sent again is known, whatever the clock says at the start."""
    clock, disk = ManualClock(), MemoryStorage()
    filled(disk, clock).close()
    clock.jump(seconds)
    log = LogDriver(disk, options=OPTIONS, clock=clock)
    assert all(log.engine.topic(1).partition.may_know(FIRST_LASTING_ID + n) for n in range(1, 6))


def test_limits_by_size_do_not_ask_the_clock() -> None:
    """They go on while nothing expires by age."""
    clock = ManualClock()
    log = filled(MemoryStorage(), clock)
    clock.jump(10 * 365 * DAY)
    changed = log.engine.set_retention(log.engine.topic(1), Retention(HOUR, 2 * SIZE))
    log.scheduler.run_all()
    changed.result()
    assert 0 < look(log) <= 2 * SIZE


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("merging", [False, True])
def test_a_batch_of_the_future_ages_from_when_it_was_seen(restart: bool, merging: bool) -> None:
    """A clock that was ahead for a moment stops retention for no longer than the limit."""
    clock, disk = ManualClock(), MemoryStorage()
    log = filled(disk, clock)
    clock.jump(10 * 365 * DAY)
    log.store([VALUE], topic_id=1, batch_id=FIRST_LASTING_ID + 20)
    clock.jump(-10 * 365 * DAY)
    for number in range(21, 26):
        log.store([VALUE], topic_id=1, batch_id=FIRST_LASTING_ID + number)
    log.engine.topic(1).partition.roll()
    log.scheduler.run_all()
    look(log)
    look(log)
    if merging:
        log.close()
        options = LogOptions(segment_size=10_000)
        log = LogDriver(disk, options=options, clock=clock)
        log.engine.start_upkeep(60.0)
        look(log)
        assert log.engine.topic(1).partition.segments < 5
    if restart:
        log.close()
        log = LogDriver(disk, options=OPTIONS, clock=clock)
        log.engine.start_upkeep(60.0)
    assert look(log) > 0
    clock.now_ns += (HOUR + 120) * 10**9
    look(log)
    assert look(log) == 0


def test_the_time_that_is_believed_stays_within_what_may_be() -> None:
    """What is stamped while the clock is wrong is stamped with about the right time."""
    clock = ManualClock()
    right = clock.now_ns
    expiry = ExpiryClock(MemoryStorage(), Path("/data"), clock, clock.boottime)
    clock.jump(10 * 365 * DAY)
    assert abs(expiry.now_ns() - right) <= 2 * HOUR * 10**9
    clock.jump(-20 * 365 * DAY)
    assert abs(expiry.now_ns() - right) <= 2 * HOUR * 10**9


# How it is told --------------------------------------------------------------------------------


@pytest.fixture
def doubting(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server that was stopped in a year to come, as its data directory says."""
    ahead = {"wall_ns": time.time_ns() + 365 * DAY * 10**9}
    save_document(PwritevStorage(), tmp_path / "clock.json", ahead)
    with running(tmp_path, http=Address("127.0.0.1", 0), admin=True) as server:
        yield server


def address_of(server: EmbeddedServer) -> str:
    """Return where a server's HTTP port is."""
    assert server.http_url is not None
    return server.http_url.removeprefix("http://")


def test_a_doubt_about_the_clock_is_told(doubting: EmbeddedServer) -> None:
    """By readiness, which stays, by the status, and by a metric."""
    ready = ask_http(doubting, "/health/ready")
    assert ready.status == 200
    assert "behind" in ready.text
    assert "behind" in json.loads(ask_http(doubting, "/status.json").text)["clock_doubt"]
    assert 'lance_clock_trusted{node_id="0"} 0.0' in ask_http(doubting, "/metrics").text


def test_the_command_confirms_the_clock_of_a_running_server(doubting: EmbeddedServer) -> None:
    """It is believed at once."""
    result = CliRunner().invoke(offline, ["confirm-clock", address_of(doubting)])
    assert result.exit_code == 0, result.output
    assert 'lance_clock_trusted{node_id="0"} 1.0' in ask_http(doubting, "/metrics").text
    assert json.loads(ask_http(doubting, "/status.json").text)["clock_doubt"] is None


def test_the_command_says_why_the_clock_is_not_confirmed(tmp_path: Path) -> None:
    """A server without administration, and a place where nobody answers."""
    with running(tmp_path, http=Address("127.0.0.1", 0)) as server:
        address = address_of(server)
        refused = CliRunner().invoke(offline, ["confirm-clock", address])
        assert (refused.exit_code, "--admin" in refused.output) == (1, True)
    silent = CliRunner().invoke(offline, ["confirm-clock", address])
    assert (silent.exit_code, "does not answer" in silent.output) == (1, True)
