"""The write-ahead log: what it holds, when it is used again, and what is repeated (AMB-47)."""

import errno
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_server.errors import ConfigError, DataDirError
from lance_server.storage.choice import open_storage
from lance_server.storage.contract import Write, read_at
from lance_server.storage.wal import WalStorage
from lance_server.storage.wal_file import END, Entry, decode_entries
from lance_server.testing import FaultyStorage, MemoryStorage
from lance_spec.checksum import CRC32C, Buffer
from lance_spec.messages.engine import RedoEntry, RedoWrite

ROOT = Path("/data")


def disk() -> MemoryStorage:
    """Return a disk with an empty data directory."""
    storage = MemoryStorage()
    storage.make_dir(ROOT)
    return storage


entries = st.lists(
    st.builds(
        Entry,
        sequence=st.integers(1, 2**32),
        name=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
        offset=st.integers(0, 2**64 - 1),
        data=st.binary(max_size=80),
    ),
    max_size=6,
    unique_by=lambda each: each.sequence,
).map(lambda found: sorted(found, key=lambda each: each.sequence))


@given(entries, st.binary(max_size=50))
def test_entries_are_read_back_up_to_the_end(written: list[Entry], residue: bytes) -> None:
    """What an earlier use left behind the end is not read."""
    raw = b"".join(each.encode() for each in written) + END + residue
    assert [Entry(e.sequence, e.name, e.offset, bytes(e.data)) for e in decode_entries(raw)] == [
        Entry(e.sequence, e.name, e.offset, bytes(e.data)) for e in written
    ]


@given(entries.filter(bool), st.data())
def test_a_damaged_or_torn_entry_ends_them(written: list[Entry], data: st.DataObject) -> None:
    """Entries before it stand; neither it nor anything behind it is believed."""
    sizes = [len(each.encode()) for each in written]
    raw = bytearray(b"".join(each.encode() for each in written))
    place = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del raw[place:]
    whole = next(number for number in range(len(sizes)) if place < sum(sizes[: number + 1]))
    assert len(list(decode_entries(bytes(raw)))) <= whole


def test_what_an_earlier_use_left_is_not_believed() -> None:
    """An old entry that happens to follow the newest one has a lower sequence."""
    raw = Entry(9, "a", 0, b"new").encode() + Entry(3, "a", 0, b"old").encode()
    assert [each.sequence for each in decode_entries(raw)] == [9]


def test_a_commit_is_written_to_its_place_as_well() -> None:
    """It can be read at once."""
    storage = WalStorage(disk(), ROOT, size=1024)
    fd = storage.open(ROOT / "a", create=True)
    assert storage.commit([Write(fd, b"hello", 2)]) == [None]
    assert bytes(read_at(storage, fd, 10, 0)) == b"\0\0hello"


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


def test_nothing_is_repeated_for_a_file_that_was_closed() -> None:
    """What only the write-ahead log had was made durable before."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=1024)
    fd = storage.open(ROOT / "a", create=True)
    storage.commit([Write(fd, b"hello", 0)])
    storage.close(fd)
    memory.poke(ROOT / "a", b"changed")
    WalStorage(memory, ROOT, size=1024)
    assert memory.peek(ROOT / "a") == b"changed"


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


def test_a_full_file_is_used_again() -> None:
    """For ever, and each time what it held is durable elsewhere first."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=200)
    fd = storage.open(ROOT / "a", create=True)
    storage.sync_dir(ROOT)
    for number in range(100):
        assert storage.commit([Write(fd, bytes([number]) * 50, number * 50)]) == [None]
    again = WalStorage(memory, ROOT, size=200)
    found = read_at(again, again.open(ROOT / "a"), 10_000, 0)
    assert found == b"".join(bytes([number]) * 50 for number in range(100))
    assert {len(memory.peek(path)) for path in memory.files() if path.suffix == ".wal"} == {200}


def test_a_file_grows_where_commits_touch_many_files() -> None:
    """To make so many files durable costs more than a larger write-ahead log."""
    faulty = FaultyStorage(disk())
    storage = WalStorage(faulty, ROOT, size=8192, max_size=32_768)
    fds = [storage.open(ROOT / f"{number}", create=True) for number in range(80)]
    before = faulty.calls["sync"]
    for turn in range(8):
        assert storage.commit([Write(fd, bytes(40), 40 * turn) for fd in fds]) == [None] * 80
    assert faulty.calls["sync"] - before < 20
    assert "of 32768" in repr(storage)


def test_a_disk_without_room_for_a_larger_file_is_no_reason_to_refuse(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The file is used again from its start instead, as where it may not grow."""

    class Small(FaultyStorage):
        """A disk on which no file is longer than 8 KiB."""

        def write(self, fd: int, data: Buffer, offset: int) -> None:
            if offset + len(data) > 8192:
                raise OSError(errno.ENOSPC, "No space left on device")
            super().write(fd, data, offset)

    storage = WalStorage(Small(disk()), ROOT, size=8192, max_size=32_768)
    fds = [storage.open(ROOT / f"{number}", create=True) for number in range(80)]
    for turn in range(8):
        assert storage.commit([Write(fd, bytes(40), 40 * turn) for fd in fds]) == [None] * 80
    assert "stays at 8192 bytes" in caplog.text


def test_a_large_commit_goes_where_it_belongs() -> None:
    """Writing many bytes twice costs more than another sync."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=4096, small=100)
    fd = storage.open(ROOT / "a", create=True)
    assert storage.commit([Write(fd, bytes(101), 0)]) == [None]
    assert memory.peek(ROOT / "wal" / "0.wal") == bytes(4096)
    assert len(memory._folders[ROOT]["a"].durable) == 101  # type: ignore[union-attr]


def test_a_crash_behind_small_and_large_commits_leaves_both() -> None:
    """What is repeated lies beside what was written to its place."""
    memory = disk()
    storage = WalStorage(memory, ROOT, size=4096, small=100)
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
    storage = WalStorage(faulty, ROOT, size=4096, small=100)
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


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_another_mode_repeats_what_was_left_and_removes_it(durability: str, tmp_path: Path) -> None:
    """Changing the durability loses nothing."""
    (tmp_path / "wal").mkdir()
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "wal" / "0.wal").write_bytes(Entry(1, "a", 0, b"kept").encode() + END)
    open_storage("pwritev2", durability, tmp_path)
    assert (tmp_path / "a").read_bytes() == b"kept"
    assert not (tmp_path / "wal").exists()


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    """With those there are."""
    with pytest.raises(ConfigError, match="fsync, os, wal"):
        open_storage("auto", "maybe", tmp_path)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.binary(max_size=40))
def test_an_entry_is_what_the_grammar_says(sequence: int, offset: int, data: bytes) -> None:
    """The one place that writes entries and the declared layout are the same (AMB-50)."""
    body = RedoWrite(sequence, offset, b"segments/1/a", data).encode()
    declared = RedoEntry(CRC32C.compute(body), body).encode()
    assert Entry(sequence, "segments/1/a", offset, data).encode() == declared
