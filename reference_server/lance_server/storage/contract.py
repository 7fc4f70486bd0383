"""The storage backend: every durable effect of the server passes through here.

A backend offers plain positioned I/O. What is written becomes durable only by `sync`; a name
that was created, renamed or removed becomes durable only by `sync_dir` of its folder. The log
never assumes more, so a backend that forgets everything else at a crash point is a fair test.

All methods raise `OSError` when the disk refuses.
"""

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from lance_spec.checksum import Buffer

_CHUNK: Final = 1024 * 1024
DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors that end when room is made."""


class WouldBlockError(Exception):
    """The bytes are not in memory: reading them now would wait for the disk."""


class UndecidedError(OSError):
    """The disk failed in the middle: the change may or may not be there after a crash."""

    @classmethod
    def after(cls, error: OSError) -> "UndecidedError":
        """Return it for an error that came when something may have been done."""
        return cls(error.errno or errno.EIO, error.strerror or str(error))


class Write(NamedTuple):
    """Bytes for one place in one file.

    Attributes:
        fd: the file.
        data: what to write; not empty.
        offset: where.
    """

    fd: int
    data: Buffer
    offset: int


class StorageBackend(Protocol):
    """What the log asks of a file system. Methods are called from several threads.

    Attributes:
        name: how the backend is called in logs and statistics.
    """

    name: str

    def make_dir(self, path: Path) -> None:
        """Create a folder; one that exists is fine."""
        ...

    def list_dir(self, path: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        ...

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file for reading and writing; with ``create`` it must not exist yet.

        Raises:
            FileExistsError: with ``create``, there is one.
            FileNotFoundError: without, there is none.
        """
        ...

    def close(self, fd: int) -> None:
        """Give the file up; nothing becomes durable by it."""
        ...

    def size(self, fd: int) -> int:
        """Return the file's length in bytes."""
        ...

    def write(self, fd: int, data: Buffer, offset: int) -> None:
        """Write all of ``data`` at ``offset``, or raise."""
        ...

    def write_each(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files, as `write` does; return what went wrong for each."""
        ...

    def read_into(
        self, fd: int, target: memoryview, offset: int, *, cached_only: bool = False
    ) -> int:
        """Fill ``target`` from ``offset`` on; return how many bytes there were.

        Raises:
            WouldBlockError: ``cached_only`` is set and the disk would have to be waited for.
        """
        ...

    def plain_fd(self, fd: int) -> int | None:
        """Return the descriptor that may be read itself, as `read_into` would; None for none."""
        ...

    def sync(self, fd: int) -> None:
        """Make the file's bytes and length durable."""
        ...

    def sync_each(self, fds: Sequence[int]) -> list[OSError | None]:
        """Make several files durable, as `sync` does; return what went wrong for each."""
        ...

    def commit(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files and make them durable; return what went wrong for each.

        Files appear once each. What one of them refuses does not keep the others from being
        written.
        """
        ...

    def truncate(self, fd: int, size: int) -> None:
        """Set the file's length."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Move a file or folder, replacing a file that is there."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder that is empty."""
        ...

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        ...

    def pending_work(self) -> Callable[[], None] | None:
        """Return what the backend wants to have run on a worker thread soon; None for nothing.

        It is asked after each flush, and handles its errors itself.
        """
        ...

    def settle_folder(self, path: Path) -> None:
        """Do what the start could not do for a folder's files; nothing of it is used before.

        It is called before a topic's files are looked at, again until it succeeds.
        """
        ...

    def figures(self) -> Mapping[str, float]:
        """Return what the backend counts and measures, by name; any thread."""
        ...

    def finish(self) -> None:
        """Leave nothing that the next start would have to do first (a clean stop)."""
        ...

    def release(self) -> None:
        """Close what the backend itself keeps open, without any further writing."""
        ...


class NothingKept:
    """For backends that keep nothing beside the files: there is nothing to do in between."""

    def pending_work(self) -> Callable[[], None] | None:
        """Return None: there is nothing to do."""
        return None

    def settle_folder(self, path: Path) -> None:
        """Do nothing: a start leaves nothing undone."""

    def figures(self) -> Mapping[str, float]:
        """Return nothing: nothing is counted."""
        return {}

    def finish(self) -> None:
        """Do nothing: everything is in its place."""

    def release(self) -> None:
        """Do nothing: nothing is kept open."""


class NoShortcuts(NothingKept):
    """For backends with nothing better: files are committed in turn, and every read asks them."""

    def plain_fd(self, fd: int) -> int | None:
        """Return None: every read goes through `read_into`."""
        del fd
        return None

    def write_each(self: StorageBackend, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files, not durably; return what went wrong for each."""
        return write_in_turn(self, writes)

    def sync_each(self: StorageBackend, fds: Sequence[int]) -> list[OSError | None]:
        """Make several files durable; return what went wrong for each."""
        return sync_in_turn(self, fds)

    def commit(self: StorageBackend, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files and make them durable; return what went wrong for each."""
        return [_commit_one(self, each) for each in writes]


def write_in_turn(storage: StorageBackend, writes: Sequence[Write]) -> list[OSError | None]:
    """Write to several files, each by the backend's `write`; return what went wrong for each."""
    errors: list[OSError | None] = []
    for each in writes:
        try:
            storage.write(*each)
        except OSError as error:
            errors.append(error)
        else:
            errors.append(None)
    return errors


def sync_in_turn(storage: StorageBackend, fds: Iterable[int]) -> list[OSError | None]:
    """Make several files durable, each by the backend's `sync`; return what went wrong for each."""
    errors: list[OSError | None] = []
    for fd in fds:
        try:
            storage.sync(fd)
        except OSError as error:
            errors.append(error)
        else:
            errors.append(None)
    return errors


def _commit_one(storage: StorageBackend, each: Write) -> OSError | None:
    try:
        storage.write(*each)
        storage.sync(each.fd)
    except OSError as error:
        return error
    return None


@contextmanager
def opened(storage: StorageBackend, path: Path, *, create: bool = False) -> Iterator[int]:
    """Open a file for as long as the context lasts."""
    fd = storage.open(path, create=create)
    try:
        yield fd
    finally:
        storage.close(fd)


def close_all(storage: StorageBackend, fds: Iterable[int]) -> None:
    """Give files up, whatever the system says: a descriptor is free also after an error."""
    for fd in fds:
        with contextlib.suppress(OSError):
            storage.close(fd)


def read_at(storage: StorageBackend, fd: int, size: int, offset: int) -> bytearray:
    """Return up to ``size`` bytes from ``offset`` on; fewer only at the end of the file."""
    data = bytearray(size)
    got = storage.read_into(fd, memoryview(data), offset)
    del data[got:]
    return data


def read_file(storage: StorageBackend, path: Path, limit: int) -> bytes:
    """Return a small file's content.

    Args:
        storage: the backend.
        path: the file.
        limit: largest size to accept, in bytes.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is larger than ``limit``.
    """
    fd = storage.open(path)
    try:
        size = storage.size(fd)
        if size > limit:
            raise ValueError(f"{path} has {size} bytes; at most {limit} were expected")
        return bytes(read_at(storage, fd, size, 0))
    finally:
        storage.close(fd)


def write_again(storage: StorageBackend, fd: int) -> None:
    """Write what a file holds once more, and its length, and make both durable.

    After a sync that failed, the system may take for written what is in memory only, and a later
    sync would succeed without writing it. The same holds for a cut: bytes after it would be back
    after a loss of power.
    """
    size = storage.size(fd)
    for start in range(0, size, _CHUNK):
        storage.write(fd, read_at(storage, fd, _CHUNK, start), start)
    storage.truncate(fd, size)
    storage.sync(fd)


def replace_file(storage: StorageBackend, path: Path, data: bytes) -> None:
    """Put ``data`` in the place of a file, durably: readers see the old content or the new.

    Raises:
        UndecidedError: a crash may leave either.
        OSError: the old content stands.
    """
    draft = path.with_name(path.name + ".tmp")
    try:
        fd = storage.open(draft, create=True)
    except FileExistsError:  # a crash left it
        storage.remove(draft)
        fd = storage.open(draft, create=True)
    try:
        storage.write(fd, data, 0)
        storage.sync(fd)
    finally:
        storage.close(fd)
    try:
        storage.rename(draft, path)
        storage.sync_dir(path.parent)
    except OSError as error:
        raise UndecidedError.after(error) from error


def remove_folder(storage: StorageBackend, folder: Path) -> None:
    """Remove a folder and the files in it."""
    for name in storage.list_dir(folder):
        storage.remove(folder / name)
    storage.remove(folder)
