"""Positioned I/O, and small files that are replaced as a whole."""

import errno
import gc
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lance_server.errors import ConfigError, DataDirError
from lance_server.log.metadata.checksummed_file import backup_of, load_document, save_document
from lance_server.runtime import platform
from lance_server.storage.backend_selection import choose
from lance_server.storage.contract import (
    StorageBackend,
    WouldBlockError,
    Write,
    read_at,
    read_file,
    replace_file,
)
from lance_server.storage.pwritev import PwritevStorage
from lance_server.storage.uring._abi import Register, enter, register
from lance_server.storage.uring.backend import UringStorage
from lance_server.testing import FaultyStorage, MemoryStorage


@pytest.fixture(params=["pwritev2", "io_uring", "memory"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[StorageBackend, Path]:
    """Each backend with an empty folder: the same tests hold for all."""
    if request.param == "io_uring":
        storage: StorageBackend = uring()
    else:
        storage = PwritevStorage() if request.param == "pwritev2" else MemoryStorage()
    storage.make_dir(tmp_path / "data")
    return storage, tmp_path / "data"


Disk = tuple[StorageBackend, Path]


def uring() -> UringStorage:
    """Return an io_uring backend, or skip where the kernel does not offer it."""
    try:
        return UringStorage()
    except OSError as error:
        pytest.skip(f"io_uring is not available here: {error.strerror}")


@pytest.mark.parametrize("size", [1, 65_536, 65_537, 3 << 20])
def test_a_commit_reaches_every_file(disk: Disk, size: int) -> None:
    """What was committed is read back, whatever its size and whatever kind of bytes it is."""
    storage, folder = disk
    fds = [storage.open(folder / f"{number}", create=True) for number in range(70)]
    pieces: list[bytes | bytearray] = [bytes([number]) * 5 for number in range(68)]
    pieces += [os.urandom(size), bytearray(os.urandom(size))]
    writes = [
        Write(fd, piece, number) for number, (fd, piece) in enumerate(zip(fds, pieces, strict=True))
    ]
    assert storage.commit(writes) == [None] * len(fds)
    for write in writes:
        found = read_at(storage, write.fd, len(write.data) + 1, write.offset)
        assert found == write.data
        storage.close(write.fd)


def test_a_file_that_refuses_does_not_hold_up_the_others(tmp_path: Path) -> None:
    """Each file of a commit has its own outcome."""
    for storage in (PwritevStorage(), uring()):
        fd = storage.open(tmp_path / f"good-{storage.name}", create=True)
        read_only = os.open(tmp_path / f"good-{storage.name}", os.O_RDONLY)
        errors = storage.commit([Write(read_only, b"no", 0), Write(fd, b"yes", 0)])
        assert [None if each is None else each.errno for each in errors] == [errno.EBADF, None]
        assert bytes(read_at(storage, fd, 9, 0)) == b"yes"


def test_a_full_disk_is_told() -> None:
    """A write for which there is no room fails, it is not cut short silently."""
    for storage in (PwritevStorage(), uring()):
        full = os.open("/dev/full", os.O_RDWR)
        (error,) = storage.commit([Write(full, bytearray(100_000), 0)])
        assert error is not None
        assert error.errno == errno.ENOSPC
        os.close(full)


def test_several_threads_commit_at_once(tmp_path: Path) -> None:
    """Each thread's bytes end up in its own file."""
    storage = uring()

    def work(number: int) -> bool:
        fd = storage.open(tmp_path / f"{number}", create=True)
        for turn in range(50):
            data = bytes([number, turn]) * 700
            assert storage.commit([Write(fd, data, turn * 1400)]) == [None]
        return bytes(read_at(storage, fd, 50 * 1400, 0)) == b"".join(
            bytes([number, turn]) * 700 for turn in range(50)
        )

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(work, range(6)))


def test_rings_are_given_up_with_their_threads(tmp_path: Path) -> None:
    """No descriptor stays open behind a thread that has ended."""
    storage = uring()
    storage.close(storage.open(tmp_path / "a", create=True))
    before = len(list(Path("/proc/self/fd").iterdir()))

    def work() -> None:
        fd = storage.open(tmp_path / "a")
        storage.commit([Write(fd, b"x", 0)])
        storage.close(fd)

    for _ in range(5):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_without_locked_memory_plain_writes_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel takes no registered buffers, commits work all the same."""
    uring()

    def refuse(_ring: int, what: Register, argument: object, count: int) -> None:
        if what is Register.BUFFERS:
            raise OSError(errno.ENOMEM, "no")
        register(_ring, what, argument, count)

    monkeypatch.setattr("lance_server.storage.uring.ring.register", refuse)
    storage = UringStorage()
    assert "plain" in repr(storage)
    fd = storage.open(tmp_path / "a", create=True)
    assert storage.commit([Write(fd, b"plain", 0)]) == [None]
    assert bytes(read_at(storage, fd, 9, 0)) == b"plain"


def test_what_the_kernel_does_not_take_fails_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operations before it are awaited, and the ring is as good as new afterwards."""
    storage = uring()
    fds = [storage.open(tmp_path / f"{number}", create=True) for number in range(4)]
    storage.commit([Write(fd, b"first", 0) for fd in fds])
    calls = iter([1, errno.EBUSY])

    def take_one(ring: int, submitted: int) -> int:
        assert submitted
        if next(calls) == 1:
            return enter(ring, 1)
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr("lance_server.storage.uring.ring.enter", take_one)
    errors = storage.commit([Write(fd, b"second", 0) for fd in fds])
    monkeypatch.undo()
    assert [each and each.errno for each in errors] == [None, None, errno.EBUSY, errno.EBUSY]
    assert storage.commit([Write(fd, b"third", 0) for fd in fds]) == [None] * 4
    assert [bytes(read_at(storage, fd, 9, 0)) for fd in fds] == [b"thirdd"] * 2 + [b"third"] * 2


def test_a_forked_child_makes_its_own_ring(tmp_path: Path) -> None:
    """A ring is never shared with a child process."""
    storage = uring()
    fd = storage.open(tmp_path / "a", create=True)
    storage.commit([Write(fd, b"parent", 0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is the point
        child = os.fork()
    if not child:
        os._exit(0 if storage.commit([Write(fd, b"CHILD", 0)]) == [None] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert storage.commit([Write(fd, b"again", 10)]) == [None]
    assert bytes(read_at(storage, fd, 99, 0)) == b"CHILDt\0\0\0\0again"


def test_the_faster_backend_is_chosen(tmp_path: Path) -> None:
    """``auto`` tries what is there and says what each one managed."""
    uring()
    choice = choose("auto", tmp_path)
    assert set(choice.rates) == {"io_uring", "pwritev2"}
    assert choice.storage.name == max(choice.rates, key=lambda name: choice.rates[name])
    assert list(tmp_path.iterdir()) == []


def test_without_io_uring_auto_takes_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that refuses io_uring is no reason not to start, and the reason is told."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("lance_server.storage.uring.ring.set_up", refuse)
    choice = choose("auto", tmp_path)
    assert choice.storage.name == "pwritev2"
    assert "Operation not permitted" in choice.reason
    with pytest.raises(ConfigError, match="use 'auto'"):
        choose("io_uring", tmp_path)


def test_a_trial_that_fails_does_not_decide_whether_a_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk ``auto`` takes the portable backend, and says why."""
    uring()

    def full(*_: object) -> dict[str, float]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("lance_server.storage.backend_selection.try_out", full)
    choice = choose("auto", tmp_path)
    assert (choice.storage.name, choice.rates) == ("pwritev2", {})
    assert "No space left" in choice.reason


def test_an_unknown_backend_is_refused(tmp_path: Path) -> None:
    """With the ones there are."""
    with pytest.raises(ConfigError, match="io_uring, pwritev2, auto"):
        choose("floppy", tmp_path)


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
    """Nothing is invented after the last byte."""
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
    """A draft that an interruption left behind is not an obstacle."""
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


def test_a_descriptor_that_may_be_read_itself_shows_the_file(disk: Disk) -> None:
    """What was written through the backend is what is read past it, where that is allowed."""
    storage, folder = disk
    fd = storage.open(folder / "a", create=True)
    storage.commit([Write(fd, b"as it is", 0)])
    plain = storage.plain_fd(fd)
    assert (plain is None) == isinstance(storage, MemoryStorage)
    if plain is not None:
        assert os.pread(plain, 9, 0) == b"as it is"
    storage.close(fd)


def test_a_disk_that_takes_no_bytes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than an endless loop."""
    for call in ("pwrite", "pwritev"):
        monkeypatch.setattr(os, call, lambda *_: 0)
    with pytest.raises(OSError, match="took no bytes"):
        PwritevStorage().write(0, b"x", 0)


def test_where_the_c_library_lacks_durable_writes_a_sync_follows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As with musl before 1.2.5, whose Python has ``pwritev`` without its flags."""
    monkeypatch.delattr(os, "RWF_DSYNC", raising=False)
    synced: list[int] = []
    monkeypatch.setattr(platform, "sync", synced.append)
    storage = PwritevStorage()
    fd = storage.open(tmp_path / "a", create=True)
    assert storage.commit([Write(fd, b"durable", 0)]) == [None]
    assert bytes(read_at(storage, fd, 7, 0)) == b"durable"
    assert synced == [fd]
    storage.close(fd)


def test_where_the_c_library_cannot_read_from_memory_alone_a_reader_waits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is told that the bytes are not at hand, as with a disk that would have to be asked."""
    monkeypatch.delattr(os, "RWF_NOWAIT", raising=False)
    storage = PwritevStorage()
    fd = storage.open(tmp_path / "a", create=True)
    storage.write(fd, b"stored", 0)
    with pytest.raises(WouldBlockError):
        storage.read_into(fd, memoryview(bytearray(6)), 0, cached_only=True)
    assert bytes(read_at(storage, fd, 6, 0)) == b"stored"
    storage.close(fd)


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


@pytest.mark.parametrize("has_threads", [True, False], ids=["threads", "no more threads"])
def test_of_many_files_each_is_made_durable_or_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_threads: bool
) -> None:
    """What one of them refuses keeps no other from it, whichever thread has it."""
    storage = PwritevStorage()
    fds = [storage.open(tmp_path / f"{number}", create=True) for number in range(70)]
    synced: list[int] = []
    refused = {fds[3], fds[64]}

    def sync(fd: int) -> None:
        if fd in refused:
            raise OSError(errno.EIO, "the disk refused")
        synced.append(fd)

    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(platform, "sync", sync)
    if not has_threads:
        monkeypatch.setattr(threading.Thread, "start", start)
    errors = storage.sync_each(fds)
    assert sorted(synced) == sorted(set(fds) - refused)
    assert [fd for fd, error in zip(fds, errors, strict=True) if error] == [fds[3], fds[64]]
    for fd in fds:
        storage.close(fd)


def test_of_many_writes_each_is_done_or_says_why_not(tmp_path: Path) -> None:
    """What one file refuses keeps no other from being written."""
    storage = PwritevStorage()
    first, second, third = (storage.open(tmp_path / name, create=True) for name in "abc")
    refusing = os.open(tmp_path / "c", os.O_RDONLY)
    writes = [Write(first, b"one", 0), Write(refusing, b"two", 0), Write(second, b"three", 2)]
    errors = storage.write_each(writes)
    assert [error and error.errno for error in errors] == [None, errno.EBADF, None]
    assert bytes(read_at(storage, first, 9, 0)) == b"one"
    assert bytes(read_at(storage, second, 9, 0)) == b"\0\0three"
    for fd in (first, second, third, refusing):
        storage.close(fd)
