"""The write-ahead log: what it holds, when it is used again, and what is repeated (AMB-47)."""

import contextlib
import errno
from functools import partial
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_server.errors import DataDirError
from lance_server.storage.contract import Write, read_at
from lance_server.storage.wal import WalStorage
from lance_server.storage.wal_replay import repeat, unrepeated
from lance_server.storage.ways import FixedWays
from lance_server.testing import CrashError, FaultyStorage, LogDriver, MemoryStorage
from lance_spec.checksum import Buffer
from lance_spec.disk.redo_entries import Entry
from lance_spec.disk.wal_frames import (
    HEADER_SIZE,
    lasting_name,
)

ROOT = Path("/data")


def disk() -> MemoryStorage:
    """Return a disk with an empty data directory."""
    storage = MemoryStorage()
    storage.make_dir(ROOT)
    return storage


def make_room(storage: WalStorage) -> None:
    """Do what a worker thread does after a flush."""
    work = storage.pending_work()
    assert work is not None, "the log has room"
    work()


def restart(memory: MemoryStorage) -> WalStorage:
    """Return the log of the next start."""
    return WalStorage(memory, ROOT, size=1024)


def test_a_commit_is_written_to_its_place_as_well() -> None:
    """It can be read at once."""
    storage = WalStorage(disk(), ROOT, size=1024)
    fd = storage.open(ROOT / "a", create=True)
    assert storage.commit([Write(fd, b"hello", 2)]) == [None]
    assert bytes(read_at(storage, fd, 10, 0)) == b"\0\0hello"


def test_an_error_of_one_close_leaves_no_other_file_open() -> None:
    """Files that were given up are all closed once the log has nothing of them any more."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=1024)
    for name in "abc":
        fd = storage.open(ROOT / name, create=True)
        storage.commit([Write(fd, bytes(300), 0)])
        storage.close(fd)
    before = storage.lingering
    with patch.object(memory, "close", side_effect=OSError(errno.EIO, "")) as closing:
        make_room(storage)
    assert closing.call_count == before - storage.lingering > 1


def test_a_commit_syncs_one_file_however_many_it_writes() -> None:
    """That is the point of it."""
    faulty = FaultyStorage(disk())
    storage = WalStorage(faulty, ROOT, size=4096)
    fds = [storage.open(ROOT / f"{number}", create=True) for number in range(8)]
    before = faulty.calls["sync"]
    storage.commit([Write(fd, b"x", 0) for fd in fds])
    assert faulty.calls["sync"] - before == 1


def test_after_a_crash_commits_are_repeated() -> None:
    """A file that had none of it on the disk has it after the next start."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=1024)
    fd = storage.open(ROOT / "a", create=True)
    storage.sync_dir(ROOT)
    storage.commit([Write(fd, b"hello", 0)])
    memory.poke(ROOT / "a", b"")
    again = WalStorage(memory, ROOT, size=1024)
    assert bytes(read_at(again, again.open(ROOT / "a"), 10, 0)) == b"hello"


def test_a_file_that_was_closed_is_durable_once_there_is_room_again() -> None:
    """Closing waits for no sync; the file stays open below until its bytes are durable."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=400)
    fd = storage.open(ROOT / "a", create=True)
    storage.commit([Write(fd, bytes(250), 0)])
    before = memory.operations
    storage.close(fd)
    assert memory.operations == before
    make_room(storage)
    assert len(memory._folders[ROOT]["a"].durable) == 250  # type: ignore[union-attr]
    assert fd not in memory._open


@pytest.mark.parametrize("change", ["truncate", "rename", "remove"])
def test_nothing_is_repeated_over_a_change_of_the_file(change: str) -> None:
    """A file that was cut, moved or removed stays so."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=1024)
    fd = storage.open(ROOT / "a", create=True)
    storage.commit([Write(fd, b"hello", 0)])
    if change == "truncate":
        storage.truncate(fd, 2)
    elif change == "rename":
        storage.rename(ROOT / "a", ROOT / "b")
    else:
        storage.remove(ROOT / "a")
    WalStorage(memory, ROOT, size=1024)
    found = {path.name: memory.peek(path) for path in memory.files() if path.parent == ROOT}
    assert found == {"truncate": {"a": b"he"}, "rename": {"b": b"hello"}, "remove": {}}[change]


def test_a_half_full_file_is_used_again() -> None:
    """For ever, and each time what it held is durable elsewhere first."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=300)
    fd = storage.open(ROOT / "a", create=True)
    storage.sync_dir(ROOT)
    for number in range(100):
        assert storage.commit([Write(fd, bytes([number]) * 50, number * 50)]) == [None]
        if (work := storage.pending_work()) is not None:
            work()
    assert storage.direct_commits == 0
    again = WalStorage(memory.crash(Random(1)), ROOT, size=300)
    found = read_at(again, again.open(ROOT / "a"), 10_000, 0)
    assert found == b"".join(bytes([number]) * 50 for number in range(100))


def test_a_commit_never_waits_for_room(caplog: pytest.LogCaptureFixture) -> None:
    """Where the files of the log are full it is durable in its place, and that is told once."""
    faulty = FaultyStorage(disk())
    storage = WalStorage(faulty, ROOT, size=200)
    fd = storage.open(ROOT / "a", create=True)
    for number in range(20):
        before = faulty.calls["sync"]
        assert storage.commit([Write(fd, bytes(50), number * 50)]) == [None]
        assert faulty.calls["sync"] - before == 1
    assert storage.direct_commits == 17
    assert caplog.text.count("there is no room in the write-ahead log") == 1


def test_a_file_grows_where_commits_touch_many_files() -> None:
    """To make so many files durable costs more than a larger write-ahead log."""
    faulty = FaultyStorage(disk())
    storage = WalStorage(faulty, ROOT, size=8192, max_size=65_536)
    fds = [storage.open(ROOT / f"{number}", create=True) for number in range(80)]
    before = faulty.calls["sync"]
    for turn in range(3):
        assert storage.commit([Write(fd, bytes(40), 40 * turn) for fd in fds]) == [None] * 80
        if (work := storage.pending_work()) is not None:
            work()
    assert faulty.calls["sync"] - before < 20
    assert "of 32768" in repr(storage)


def test_before_many_files_become_durable_the_other_files_of_the_log_grow() -> None:
    """Commits have as much room in them meanwhile as in the one that is being freed."""
    faulty = FaultyStorage(disk())
    storage = WalStorage(faulty, ROOT, size=8192, max_size=16_384)
    fds = [storage.open(ROOT / f"{number}", create=True) for number in range(80)]
    for turn in range(3):
        assert storage.commit([Write(fd, bytes(40), 40 * turn) for fd in fds]) == [None] * 80
        if (work := storage.pending_work()) is not None:
            work()
    assert repr(storage).count("of 16384") == 3


def test_a_disk_without_room_for_a_larger_file_is_no_reason_to_refuse(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The file is used again from its start instead, as where it may not grow."""

    class Small(FaultyStorage):
        """A disk on which no file is longer than 9 KiB."""

        def write(self, fd: int, data: Buffer, offset: int) -> None:
            if offset + len(data) > HEADER_SIZE + 8192:
                raise OSError(errno.ENOSPC, "No space left on device")
            super().write(fd, data, offset)

    storage = WalStorage(Small(disk()), ROOT, size=8192, max_size=32_768)
    fds = [storage.open(ROOT / f"{number}", create=True) for number in range(80)]
    for turn in range(8):
        assert storage.commit([Write(fd, bytes(40), 40 * turn) for fd in fds]) == [None] * 80
        make_room(storage)
    assert "stays at 8192 bytes" in caplog.text
    assert storage.direct_commits == 0


def test_a_large_commit_goes_where_it_belongs() -> None:
    """Writing many bytes twice costs more than another sync."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=4096, ways=FixedWays(100))
    fd = storage.open(ROOT / "a", create=True)
    assert storage.commit([Write(fd, bytes(101), 0)]) == [None]
    assert not any(memory.peek(ROOT / "wal" / "0.wal")[HEADER_SIZE:])
    assert len(memory._folders[ROOT]["a"].durable) == 101  # type: ignore[union-attr]


def test_a_crash_behind_small_and_large_commits_leaves_both() -> None:
    """What is repeated lies beside what was written to its place."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=4096, ways=FixedWays(100))
    fd = storage.open(ROOT / "a", create=True)
    storage.sync_dir(ROOT)
    for place, size in ((0, 50), (50, 200), (250, 50)):
        storage.commit([Write(fd, bytes([size]) * size, place)])
    after = memory.crash(Random(1))
    again = WalStorage(after, ROOT, size=4096)
    found = read_at(again, again.open(ROOT / "a"), 1000, 0)
    assert found == bytes([50]) * 50 + bytes([200]) * 200 + bytes([50]) * 50


def test_after_a_sync_that_failed_everything_is_written_again() -> None:
    """A system may forget what it could not write, and call the next sync a success."""
    memory = disk()
    faulty = FaultyStorage(memory)
    storage = WalStorage(faulty, ROOT, size=4096)
    fd = storage.open(ROOT / "a", create=True)
    storage.commit([Write(fd, b"kept", 0)])
    faulty.fail["sync"] = errno.EIO
    with pytest.raises(OSError, match="Input/output"):
        storage.truncate(fd, 4)
    del faulty.fail["sync"]
    memory.poke(ROOT / "a", b"lost")
    storage.truncate(fd, 4)
    assert memory.peek(ROOT / "a") == b"kept"


def test_an_error_that_another_thread_was_told_of_counts_as_well() -> None:
    """The system tells of it once; a checkpoint that ran meanwhile must not call it done."""

    class ToldElsewhere(FaultyStorage):
        """A disk that drops a write, and tells so to a commit during the sync of another file."""

        lose = False

        def sync(self, fd: int) -> None:
            super().sync(fd)
            if self.lose and fd == other:
                self.lose = False
                memory.poke(ROOT / "a", b"lost")
                self.fail["write"] = errno.EIO
                assert storage.commit([Write(fd_a, bytes(5000), 4)])[0] is not None
                del self.fail["write"]

    memory = disk()
    faulty = ToldElsewhere(memory)
    storage = WalStorage(faulty, ROOT, size=4096, ways=FixedWays(100))
    fd_a, other = (storage.open(ROOT / name, create=True) for name in ("a", "b"))
    storage.commit([Write(fd_a, b"kept", 0), Write(other, b"b", 0)])
    faulty.lose = True
    with pytest.raises(OSError, match="was not written"):
        storage.truncate(other, 1)
    storage.truncate(other, 1)
    assert memory.peek(ROOT / "a")[:4] == b"kept"


def test_a_commit_that_was_refused_is_not_repeated() -> None:
    """Its entries are taken back, although the disk may have had them already."""

    class Late(FaultyStorage):
        """A disk that has the bytes when it says that it has not."""

        is_late = False

        def sync(self, fd: int) -> None:
            super().sync(fd)
            if self.is_late:
                raise OSError(errno.EIO, "late")

    memory = disk()
    late = Late(memory)
    storage = WalStorage(late, ROOT, size=4096)
    fd = storage.open(ROOT / "a", create=True)
    late.is_late = True
    (error,) = storage.commit([Write(fd, b"refused", 0)])
    assert error is not None
    late.is_late = False
    storage.truncate(fd, 0)  # as whoever was refused does
    WalStorage(memory, ROOT, size=4096)
    assert memory.peek(ROOT / "a") == b""


def test_what_is_larger_than_the_file_is_committed_directly() -> None:
    """A commit of any size is durable."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=200)
    fd = storage.open(ROOT / "a", create=True)
    assert storage.commit([Write(fd, bytes(5000), 0)]) == [None]
    assert len(memory._folders[ROOT]["a"].durable) == 5000  # type: ignore[union-attr]


def test_a_disk_that_refuses_fails_the_commit() -> None:
    """Nothing is said to be durable that is not."""
    faulty = FaultyStorage(disk())
    storage = WalStorage(faulty, ROOT, size=1024)
    fd = storage.open(ROOT / "a", create=True)
    faulty.fail["sync"] = errno.EIO
    (error,) = storage.commit([Write(fd, b"x", 0)])
    assert error is not None
    assert error.errno == errno.EIO


def test_an_entry_outside_the_data_directory_is_refused() -> None:
    """A write-ahead log from elsewhere cannot write anywhere else."""
    memory = disk()
    memory.make_dir(ROOT / "wal")
    fd = memory.open(ROOT / "wal" / "0.wal", create=True)
    memory.write(fd, Entry(1, "../passwd", 0, b"x").encode(), 0)
    with pytest.raises(DataDirError, match=r"outside the data directory: '\.\./passwd'"):
        WalStorage(memory, ROOT, size=1024)


# Frames, generations, and what they tell ---------------------------------------------------------


def test_numbers_rise_within_a_file_however_commits_overlap() -> None:
    """A number is given while the file is held, so that replay reads everything in it."""

    class Overtaking(FaultyStorage):
        """A disk on which one commit begins and ends while another one writes to its place."""

        overtake = False

        def write(self, fd: int, data: Buffer, offset: int) -> None:
            super().write(fd, data, offset)
            if self.overtake and fd == first:
                self.overtake = False
                assert storage.commit([Write(second, b"second", 0)]) == [None]

    memory = disk()
    overtaking = Overtaking(memory)
    storage = WalStorage(overtaking, ROOT, size=1024)
    first, second = (storage.open(ROOT / name, create=True) for name in "ab")
    storage.sync_dir(ROOT)
    for turn in range(3):
        overtaking.overtake = True
        assert storage.commit([Write(first, b"first", 10 * turn)]) == [None]
    for name in "ab":
        memory.poke(ROOT / name, b"")
    restart(memory)
    found = [memory.peek(ROOT / name) for name in "ab"]
    assert found == [b"first" + bytes(5) + b"first" + bytes(5) + b"first", b"second"]


def test_after_a_new_use_that_failed_nothing_is_appended_until_it_succeeds() -> None:
    """Which use of the file the disk knows is unknown: no acknowledgement depends on it."""

    class FailsLate(FaultyStorage):
        """A disk on which syncs of the log's first file fail after they happened."""

        late = False

        def sync(self, fd: int) -> None:
            super().sync(fd)
            if self.late and fd == storage._files[0].fd:
                raise OSError(errno.EIO, "late")

    memory = disk()
    failing = FailsLate(memory)
    now = [0.0]
    storage = WalStorage(failing, ROOT, size=400, clock=lambda: now[0])
    fd = storage.open(ROOT / "a", create=True)
    storage.sync_dir(ROOT)
    storage.commit([Write(fd, b"x" * 250, 0)])
    failing.late = True
    make_room(storage)
    for number in range(4):
        assert storage.commit([Write(fd, b"y" * 10, 250 + 10 * number)]) == [None]
    after = memory.crash(Random(1))
    restart(after)
    assert after.peek(ROOT / "a") == b"x" * 250 + b"y" * 40
    failing.late = False
    now[0] = 10.0
    make_room(storage)
    assert storage.pending_work() is None


@given(st.lists(st.binary(min_size=1, max_size=60), min_size=3, max_size=8), st.data())
def test_a_whole_frame_after_a_damaged_one_is_reported_and_repeated(
    values: list[bytes], data: st.DataObject
) -> None:
    """No crash leaves that: a frame is durable before the next one is written."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=4096)
    fd = storage.open(ROOT / "a", create=True)
    ends: list[int] = []
    for number, value in enumerate(values):
        storage.commit([Write(fd, value, 100 * number)])
        ends.append(HEADER_SIZE + storage._files[0].position)
    hit = data.draw(st.integers(0, len(values) - 2))
    begin = ends[hit - 1] if hit else HEADER_SIZE
    place = data.draw(st.integers(begin, ends[hit] - 1))
    log = bytearray(memory.peek(ROOT / "wal" / "0.wal"))
    log[place] ^= 1 << data.draw(st.integers(0, 7))
    memory.poke(ROOT / "wal" / "0.wal", bytes(log))
    memory.poke(ROOT / "a", b"")
    replayed = repeat(memory, ROOT)
    assert [(each.offset, each.length) for each in replayed.damage] == [(begin, ends[hit] - begin)]
    found = memory.peek(ROOT / "a")
    for number, value in enumerate(values):
        stands = found[100 * number : 100 * number + len(value)] == value
        assert stands or number == hit
    assert memory.peek(ROOT / "quarantine" / "wal-1" / "0.wal") == log


@given(st.lists(st.integers(1, 120), min_size=1, max_size=12), st.integers(0, 2**32))
def test_no_crash_looks_like_damage(sizes: list[int], seed: int) -> None:
    """Old frames after the newest one, torn frames, files used again: all of that is health."""
    memory, random = disk(), Random(seed)
    storage = WalStorage(memory, ROOT, size=300)
    fd = storage.open(ROOT / "a", create=True)
    storage.sync_dir(ROOT)
    place = 0
    for size in sizes:
        assert storage.commit([Write(fd, bytes([size]) * size, place)]) == [None]
        place += size
        if random.random() < 0.7 and (work := storage.pending_work()) is not None:
            work()
    memory.crash_after = memory.operations + random.randrange(3)
    with contextlib.suppress(CrashError):
        storage.commit([Write(fd, bytes(40), place)])
        if (work := storage.pending_work()) is not None:
            work()
    after = memory.crash(random)
    assert repeat(after, ROOT).damage == ()
    kept = b"".join(bytes([size]) * size for size in sizes)
    assert after.peek(ROOT / "a")[: len(kept)] == kept


def test_a_file_that_is_missing_without_a_removal_is_damage() -> None:
    """Something took it away that is not this server."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=1024)
    fd = storage.open(ROOT / "a", create=True)
    storage.commit([Write(fd, b"hello", 0)])
    memory.remove(ROOT / "a")
    _, waiting = unrepeated(memory, ROOT)
    assert [(each.path, each.length) for each in waiting] == [(ROOT / "a", 5)]
    assert repeat(memory, ROOT).damage == waiting


def test_a_file_that_was_removed_is_not_missed() -> None:
    """Its removal stands in the log, before it happens."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=1024)
    fd = storage.open(ROOT / "a", create=True)
    storage.commit([Write(fd, b"hello", 0)])
    storage.close(fd)
    storage.remove(ROOT / "a")
    assert repeat(memory.copy(), ROOT).damage == ()
    storage.sync_dir(ROOT)
    assert fd not in memory._open


def test_a_removal_that_did_not_happen_loses_nothing() -> None:
    """What was acknowledged is repeated where the file is still there after a crash."""
    memory = disk()
    faulty = FaultyStorage(memory)
    storage = WalStorage(faulty, ROOT, size=1024)
    fd = storage.open(ROOT / "a", create=True)
    storage.sync_dir(ROOT)
    storage.commit([Write(fd, b"hello", 0)])
    faulty.fail["remove"] = errno.EIO
    with pytest.raises(OSError, match="Input/output"):
        storage.remove(ROOT / "a")
    memory.poke(ROOT / "a", b"")
    restart(memory)
    assert memory.peek(ROOT / "a") == b"hello"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("way", ["remove", "rename"])
def test_what_a_failed_removal_left_is_durable_before_the_log_is_used_again(
    way: str, seed: int
) -> None:
    """A later sync of the folder does not make the log forget a file that is still there."""
    memory = disk()
    faulty = FaultyStorage(memory)
    storage = WalStorage(faulty, ROOT, size=1024)
    folder = ROOT / "topic"
    storage.make_dir(folder)
    fd = storage.open(folder / "a", create=True)
    storage.sync_dir(folder)
    storage.sync_dir(ROOT)
    storage.commit([Write(fd, b"hello", 0)])
    faulty.fail[way] = errno.EIO
    remove = partial(storage.remove, folder / "a")
    rename = partial(storage.rename, folder, ROOT / "grave")
    with pytest.raises(OSError, match="Input/output"):
        (remove if way == "remove" else rename)()
    faulty.fail.clear()
    storage.sync_dir(ROOT)
    storage.sync_dir(folder)
    storage.finish()
    assert memory.crash(Random(seed)).peek(folder / "a") == b"hello"


def test_a_name_that_is_given_again_gets_nothing_of_the_file_before() -> None:
    """The log holds nothing of a name that a new file takes."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=1024)
    fd = storage.open(ROOT / "a", create=True)
    storage.commit([Write(fd, b"before", 0)])
    storage.close(fd)
    storage.remove(ROOT / "a")
    storage.open(ROOT / "a", create=True)
    restart(memory)
    assert memory.peek(ROOT / "a") == b""


def test_what_is_written_after_a_close_that_failed_halfway_is_found() -> None:
    """Entries name a segment by what stays when it is closed, whichever name the disk has."""
    folder = ROOT / "segments"
    for renamed in (False, True):
        memory = disk()
        memory.make_dir(folder)
        storage = WalStorage(memory, ROOT, size=1024)
        fd = storage.open(folder / "0_17.lnc", create=True)
        storage.sync_dir(folder)
        storage.commit([Write(fd, b"one", 0)])
        storage.rename(folder / "0_17.lnc", folder / "0_17-20.lnc")
        storage.commit([Write(fd, b"two", 3)])
        name = "0_17-20.lnc" if renamed else "0_17.lnc"
        if not renamed:
            memory.rename(folder / "0_17-20.lnc", folder / "0_17.lnc")
        memory.poke(folder / name, b"")
        assert repeat(memory, ROOT).damage == ()
        assert memory.peek(folder / name) == b"onetwo"


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_a_lasting_name_is_that_of_the_open_segment(record: int, begun: int, ended: int) -> None:
    """Closing a segment changes its name, and not who it is (AMB-16)."""
    opened = f"segments/7/{record}_{begun}.lnc"
    assert lasting_name(f"segments/7/{record}_{begun}-{ended}.lnc") == opened
    assert lasting_name(opened) == opened


def test_room_is_made_by_a_worker_and_never_in_a_commit_or_a_close() -> None:
    """The event loop's thread may commit and close: it must not wait for the syncs of others."""
    memory = disk()
    faulty = FaultyStorage(memory)
    log = LogDriver(WalStorage(faulty, ROOT, size=2000))
    for number in range(6):
        before = faulty.calls["sync"]
        log.append([bytes(400)], batch_id=number + 1)
        log.scheduler.run_soon()
        log.scheduler.work.rotate(1)  # the flush goes first, whatever waits for a worker
        log.scheduler.run_work()
        if number:  # the first one begins a segment
            assert faulty.calls["sync"] - before == 1
    assert len(log.scheduler.work) == 1
    log.scheduler.run_all()
    assert log.engine.storage.pending_work() is None
