"""Positioned I/O, and small files that are replaced as a whole."""

import os
from pathlib import Path

import pytest

from lance_server.errors import DataDirError
from lance_server.log.documents import backup_of, load_document, save_document
from lance_server.storage.contract import (
    StorageBackend,
    WouldBlockError,
    read_at,
    read_file,
    replace_file,
)
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import FaultyStorage, MemoryStorage


@pytest.fixture(params=["pwritev", "memory"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[StorageBackend, Path]:
    """Each backend with an empty folder: the same tests hold for all."""
    storage: StorageBackend = PwritevStorage() if request.param == "pwritev" else MemoryStorage()
    storage.make_dir(tmp_path / "data")
    return storage, tmp_path / "data"


Disk = tuple[StorageBackend, Path]


def test_what_is_written_is_read(disk: Disk) -> None:
    """At its offset; before it the file is zero."""
    storage, folder = disk
    fd = storage.open(folder / "a", create=True)
    storage.write(fd, b"hello", 3)
    assert (storage.size(fd), bytes(read_at(storage, fd, 100, 0))) == (8, b"\0\0\0hello")
    storage.close(fd)


def test_large_writes_are_written_whole(disk: Disk) -> None:
    """However often the system has to be asked."""
    storage, folder = disk
    data = os.urandom(5 << 20)
    fd = storage.open(folder / "a", create=True)
    storage.write(fd, memoryview(data), 0)
    storage.sync(fd)
    assert read_at(storage, fd, len(data), 0) == data
    storage.close(fd)


def test_reading_beyond_the_end_is_short(disk: Disk) -> None:
    """Nothing is invented behind the last byte."""
    storage, folder = disk
    fd = storage.open(folder / "a", create=True)
    storage.write(fd, b"abc", 0)
    assert read_at(storage, fd, 10, 2) == b"c"
    assert read_at(storage, fd, 10, 5) == b""
    storage.close(fd)


def test_creating_what_exists_is_an_error(disk: Disk) -> None:
    """A segment never overwrites another."""
    storage, folder = disk
    storage.close(storage.open(folder / "a", create=True))
    with pytest.raises(FileExistsError):
        storage.open(folder / "a", create=True)


def test_opening_what_is_missing_is_an_error(disk: Disk) -> None:
    """With the path in it."""
    storage, folder = disk
    with pytest.raises(FileNotFoundError, match="nothing"):
        storage.open(folder / "nothing")


def test_names_are_moved_removed_and_listed(disk: Disk) -> None:
    """In sorted order."""
    storage, folder = disk
    for name in ("b", "a"):
        storage.close(storage.open(folder / name, create=True))
    storage.rename(folder / "b", folder / "c")
    assert storage.list_dir(folder) == ["a", "c"]
    storage.remove(folder / "a")
    storage.sync_dir(folder)
    assert storage.list_dir(folder) == ["c"]


def test_a_file_is_cut(disk: Disk) -> None:
    """To the bytes that stay."""
    storage, folder = disk
    fd = storage.open(folder / "a", create=True)
    storage.write(fd, b"abcdef", 0)
    storage.truncate(fd, 2)
    assert read_at(storage, fd, 10, 0) == b"ab"
    storage.close(fd)


def test_a_replaced_file_is_old_or_new(disk: Disk) -> None:
    """A draft that an interruption left behind is no obstacle."""
    storage, folder = disk
    replace_file(storage, folder / "a", b"old")
    storage.close(storage.open(folder / "a.tmp", create=True))
    replace_file(storage, folder / "a", b"new")
    assert (read_file(storage, folder / "a", 10), storage.list_dir(folder)) == (b"new", ["a"])


def test_a_file_larger_than_expected_is_not_read(disk: Disk) -> None:
    """A limit keeps a strange file out of memory."""
    storage, folder = disk
    replace_file(storage, folder / "a", bytes(11))
    with pytest.raises(ValueError, match="11 bytes; at most 10"):
        read_file(storage, folder / "a", 10)


def test_reading_from_memory_only_does_not_wait(tmp_path: Path) -> None:
    """Pages that are not cached are left to a worker thread."""
    storage = PwritevStorage()
    path = tmp_path / "cold"
    path.write_bytes(bytes(1 << 20))
    fd = storage.open(path)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    target = memoryview(bytearray(1 << 20))
    try:
        got = storage.read_into(fd, target, 0, cached_only=True)
    except WouldBlockError:
        got = storage.read_into(fd, target, 0)
    assert got == 1 << 20
    storage.close(fd)


def test_a_disk_that_takes_no_bytes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than an endless loop."""
    monkeypatch.setattr(os, "pwritev", lambda *_: 0)
    with pytest.raises(OSError, match="took no bytes"):
        PwritevStorage().write(0, b"x", 0)


# Documents -------------------------------------------------------------------------------------


def test_a_document_comes_back(disk: Disk) -> None:
    """Numbers, text and nesting."""
    storage, folder = disk
    body = {"name": "übersicht", "log": {"next_offset": 2**64 - 1}}
    save_document(storage, folder / "doc.json", body)
    loaded = load_document(storage, folder / "doc.json")
    assert loaded is not None
    assert (loaded.body, loaded.problem) == (body, None)


def test_a_missing_document_is_none(disk: Disk) -> None:
    """It was never written."""
    storage, folder = disk
    assert load_document(storage, folder / "doc.json") is None


@pytest.mark.parametrize("bad", [b"", b"{", b"[]", b'{"a": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_copy_is_replaced_by_the_other(disk: Disk, bad: bytes) -> None:
    """And the problem is named."""
    storage, folder = disk
    save_document(storage, folder / "doc.json", {"a": 1})
    replace_file(storage, folder / "doc.json", bad)
    loaded = load_document(storage, folder / "doc.json")
    assert loaded is not None
    assert loaded.body == {"a": 1}
    assert "doc.json is damaged" in str(loaded.problem)


def test_two_damaged_copies_are_an_error(disk: Disk) -> None:
    """Nothing is guessed; the message says what to restore."""
    storage, folder = disk
    save_document(storage, folder / "doc.json", {"a": 1})
    for path in (folder / "doc.json", backup_of(folder / "doc.json")):
        replace_file(storage, path, b"{}")
    with pytest.raises(DataDirError, match="Restore one of the two"):
        load_document(storage, folder / "doc.json")


def test_a_full_disk_leaves_the_old_document(tmp_path: Path) -> None:
    """The draft is lost, not the document."""
    inner = MemoryStorage()
    storage = FaultyStorage(inner)
    storage.make_dir(tmp_path)
    save_document(storage, tmp_path / "doc.json", {"a": 1})
    storage.fail = {"write": 28}
    with pytest.raises(OSError, match="No space"):
        save_document(storage, tmp_path / "doc.json", {"a": 2})
    loaded = load_document(inner, tmp_path / "doc.json")
    assert loaded is not None
    assert loaded.body == {"a": 1}
