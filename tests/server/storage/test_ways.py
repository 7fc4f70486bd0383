"""Which way commits take, the write-ahead log or their files, and which thread makes them."""

import errno
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_server.log.flusher import QuickDisk
from lance_server.storage.contract import Write, read_at
from lance_server.storage.wal import WalStorage
from lance_server.storage.wal_replay import FOLDER
from lance_server.storage.ways import DEFAULT_LIMIT, FixedWays, MeasuredWays
from lance_server.testing import FaultyStorage, LogDriver, MemoryStorage

ROOT = Path("/data")
NAME = b"segments/1/0_1"


def disk() -> MemoryStorage:
    """Return a disk with an empty data directory."""
    storage = MemoryStorage()
    storage.make_dir(ROOT)
    return storage


def lazy_log(storage: MemoryStorage | FaultyStorage) -> WalStorage:
    """Return a log that is made when a commit asks for it."""
    return WalStorage(storage, ROOT, size=1024, ways=FixedWays(100), lazy=True)


# The way of a topic ----------------------------------------------------------------------------


def test_small_commits_take_the_log_and_large_ones_their_files() -> None:
    """As long as nothing was measured, 64 KiB is the limit."""
    ways = MeasuredWays()
    assert ways.takes_log(b"small", DEFAULT_LIMIT)
    assert not ways.takes_log(b"large", DEFAULT_LIMIT + 1)


def test_a_commit_far_beyond_the_limit_never_takes_the_log() -> None:
    """Whatever the way of its topic is, and without changing it."""
    ways = MeasuredWays()
    assert ways.takes_log(NAME, 100)
    assert not ways.takes_log(NAME, 1 << 20)
    assert ways.takes_log(NAME, 100)


@given(st.lists(st.integers(1, 1 << 20), max_size=200))
def test_a_topic_keeps_its_way_for_some_commits(sizes: list[int]) -> None:
    """Commits that go back and forth over the limit change the way at most each sixteenth time."""
    ways = MeasuredWays()
    taken = [ways.takes_log(NAME, size) for size in sizes if size <= 4 * DEFAULT_LIMIT]
    changes = [number for number, (one, two) in enumerate(pairwise(taken)) if one != two]
    assert all(later - earlier >= 16 for earlier, later in pairwise(changes))


def test_a_topic_whose_commits_grow_goes_to_its_files_and_comes_back() -> None:
    """It comes back when they are clearly below the limit, not just below it."""
    ways = MeasuredWays()
    for _ in range(40):
        ways.takes_log(NAME, 100)
    assert not [ways.takes_log(NAME, 2 * DEFAULT_LIMIT) for _ in range(40)][-1]
    assert not [ways.takes_log(NAME, DEFAULT_LIMIT - 1) for _ in range(80)][-1]
    assert [ways.takes_log(NAME, 100) for _ in range(80)][-1]


@pytest.mark.parametrize(
    ("sync", "rate", "limit"),
    [(100e-6, 1e9, 100_000), (1e-6, 1e9, 16 * 1024), (10e-3, 100e6, 256 * 1024)],
    ids=["quick disk", "disk in memory", "turning disk"],
)
def test_the_limit_is_what_the_disk_takes_in_the_time_of_a_sync(
    sync: float, rate: float, limit: int
) -> None:
    """Within bounds: a commit of so many bytes costs as much twice as once and a sync."""
    ways = MeasuredWays()
    for _ in range(100):
        ways.note_log(200, sync)
        ways.note_files(1 << 20, (1 << 20) / rate)
    assert ways.limit == pytest.approx(limit, rel=0.01)


def test_a_topic_that_goes_another_way_than_its_neighbour_shares_its_commit() -> None:
    """One flush of both is one append to the log, and each file has its bytes."""
    memory = disk()
    faulty = FaultyStorage(memory)
    storage = WalStorage(faulty, ROOT, size=4096, ways=FixedWays(100))
    small, large = (storage.open(ROOT / name, create=True) for name in ("small", "large"))
    storage.sync_dir(ROOT)
    before = faulty.calls["sync"]
    writes = [Write(large, bytes([1]) * 101, 0), Write(small, bytes([2]) * 100, 0)]
    assert storage.commit(writes) == [None, None]
    assert faulty.calls["sync"] - before == 2
    assert (storage.log_commits, storage.file_commits) == (1, 1)
    again = WalStorage(memory.crash(Random(1)), ROOT, size=4096)
    for name, size in (("large", 101), ("small", 100)):
        assert len(read_at(again, again.open(ROOT / name), 1000, 0)) == size


def test_of_a_shared_commit_only_what_was_refused_fails() -> None:
    """Each write has its own result, in the order of the writes."""
    faulty = FaultyStorage(disk())
    storage = WalStorage(faulty, ROOT, size=4096, ways=FixedWays(100))
    first, large, last = (storage.open(ROOT / name, create=True) for name in ("a", "b", "c"))

    def refused(fd: int) -> bool:
        return fd == large

    writing = faulty.write

    def write(fd: int, data: bytes, offset: int) -> None:
        if refused(fd):
            raise OSError(errno.EIO, "refused")
        writing(fd, data, offset)

    faulty.write = write  # type: ignore[method-assign,assignment]
    writes = [Write(first, b"a", 0), Write(large, bytes(101), 0), Write(last, b"c", 0)]
    assert [error is None for error in storage.commit(writes)] == [True, False, True]


# A log that is made when it is asked for --------------------------------------------------------


def test_a_server_that_stores_nothing_makes_no_log() -> None:
    """Its start writes nothing for it, and its stop has nothing to remove."""
    storage = lazy_log(disk())
    assert storage.pending_work() is None
    assert FOLDER not in storage.list_dir(ROOT)


def test_the_first_small_commit_asks_for_the_log_and_does_not_wait_for_it() -> None:
    """It goes to its file; the next one finds the log there."""
    storage = lazy_log(disk())
    fd = storage.open(ROOT / "a", create=True)
    assert storage.commit([Write(fd, b"one", 0)]) == [None]
    work = storage.pending_work()
    assert work is not None
    work()
    assert storage.commit([Write(fd, b"two", 3)]) == [None]
    assert (storage.file_commits, storage.log_commits, storage.direct_commits) == (1, 1, 0)


def test_a_log_for_which_there_is_no_room_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Commits go to their files meanwhile, and are counted."""
    faulty = FaultyStorage(disk())
    storage = lazy_log(faulty)
    fd = storage.open(ROOT / "a", create=True)
    storage.commit([Write(fd, b"one", 0)])
    work = storage.pending_work()
    assert work is not None
    faulty.fail["create"] = errno.ENOSPC
    work()
    assert storage.commit([Write(fd, b"two", 3)]) == [None]
    assert storage.direct_commits == 1
    assert "no room in the write-ahead log" in caplog.text


def test_a_stop_leaves_no_log_although_one_is_about_to_be_made() -> None:
    """What a worker was to do comes too late."""
    storage = lazy_log(disk())
    fd = storage.open(ROOT / "a", create=True)
    storage.commit([Write(fd, b"one", 0)])
    work = storage.pending_work()
    assert work is not None
    storage.finish()
    work()
    assert FOLDER not in storage.list_dir(ROOT)


def test_what_commits_do_is_told() -> None:
    """Counts by way, and the limit that is in force."""
    log = LogDriver(WalStorage(disk(), ROOT, ways=FixedWays(5000)))
    log.store([b"one"])
    log.store([bytes(6000)], batch_id=2)
    assert dict(log.engine.storage.figures()) == {
        "log_commits": 1,
        "file_commits": 1,
        "direct_commits": 0,
        "log_limit": 5000,
    }


# By whom -----------------------------------------------------------------------------------------


def test_a_disk_is_quick_until_its_flushes_usually_take_too_long() -> None:
    """One that takes somewhat longer changes nothing."""
    quick = QuickDisk(0.001)
    for _ in range(20):
        quick.note(0.0002)
    quick.note(0.003)
    assert quick.is_quick
    for _ in range(20):
        quick.note(0.003)
    assert not quick.is_quick


def test_one_stall_is_enough() -> None:
    """The event loop is held up by it once, not again."""
    quick = QuickDisk(0.001)
    quick.note(0.020)
    assert not quick.is_quick


def test_a_disk_is_quick_again_when_it_has_been_so_for_some_flushes() -> None:
    """Clearly below the bound, and not at once."""
    quick = QuickDisk(0.001)
    quick.note(0.020)
    for _ in range(200):
        quick.note(0.0007)
    assert not quick.is_quick
    for _ in range(50):
        quick.note(0.0002)
    assert quick.is_quick


@given(st.lists(st.floats(0, 0.1), max_size=300))
def test_who_flushes_changes_seldom(times: list[float]) -> None:
    """A disk that is quick and slow by turns is given back to the loop's thread seldom."""
    quick, began = QuickDisk(0.001), list[int]()
    for number, seconds in enumerate(times):
        before = quick.is_quick
        quick.note(seconds)
        if quick.is_quick and not before:
            began.append(number)
    assert all(later - earlier >= 16 for earlier, later in pairwise(began))
