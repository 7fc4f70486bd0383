"""Durability by a write-ahead log: one durable write for all files of a small flush.

A commit writes everything to where it belongs, without waiting for the disk, and into a
preallocated file, durably. When that file is full, what was written elsewhere is made durable
and the file is used again from its start. After a crash its entries are repeated.

A batch that comes alone is durable in half the time, because its data and its sidecar need one
sync and no file changes its length; a flush that touches many topics gains more. A flush of many
bytes to few files gains nothing from being written twice: it goes where it belongs at once.
"""

import errno
import logging
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Final

from lance_server.errors import DataDirError
from lance_server.runtime.sync import Queue, new_lock, new_queue
from lance_server.storage.contract import StorageBackend, Write
from lance_server.storage.delegating import DelegatingStorage
from lance_server.storage.wal_file import Entry, WalFile, encode_entry, not_in_place, replay
from lance_spec.checksum import Buffer

_log = logging.getLogger(__name__)
FOLDER: Final = "wal"
_FILES: Final = 2
"""As many as flushes may overlap."""
DEFAULT_SIZE: Final = 4 * 1024 * 1024
DEFAULT_MAX_SIZE: Final = 64 * 1024 * 1024
DEFAULT_SMALL: Final = 32 * 1024
"""Bytes for each file of a commit up to which writing them twice costs less than a sync."""
_MANY: Final = 64
"""Files from which on a larger write-ahead log is better than making them durable more often."""


class WalStorage(DelegatingStorage):
    """A backend whose small commits are durable in a write-ahead log.

    Args:
        inner: does the work.
        data_dir: what the log is kept for; its folder ``wal`` holds the files.
        size: bytes of each file at first.
        max_size: bytes that each may grow to where commits touch many files.
        small: bytes for each file of a commit, on average, up to which it goes this way.

    Attributes:
        repeated: writes that an earlier run left, and that were repeated.

    Raises:
        DataDirError: the write-ahead log cannot be trusted.
        OSError: the disk refused.
    """

    def __init__(
        self,
        inner: StorageBackend,
        data_dir: Path,
        size: int = DEFAULT_SIZE,
        max_size: int = DEFAULT_MAX_SIZE,
        small: int = DEFAULT_SMALL,
    ) -> None:
        super().__init__(inner)
        self._small = small
        self.name = f"{inner.name} (wal)"
        self._root = data_dir
        self._paths: dict[int, Path] = {}
        self._names: dict[int, bytes] = {}
        self._sequence = count(1)
        self._lock = new_lock()
        self._free: Queue[WalFile] = new_queue()
        self._files: list[WalFile] = []
        self.repeated = repeat(inner, data_dir)
        self._begin(data_dir / FOLDER, size, max_size)

    def __repr__(self) -> str:
        used = ", ".join(f"{each.position} of {each.size}" for each in self._files)
        return f"<WalStorage {self.name} bytes in use: {used}>"

    def _begin(self, folder: Path, size: int, max_size: int) -> None:
        self.inner.make_dir(folder)
        for number in range(_FILES):
            self._files.append(WalFile(self.inner, folder / f"{number}.wal", size, max_size))
            self._free.put(self._files[-1])
        self.inner.sync_dir(folder)
        self.inner.sync_dir(self._root)

    # What the log calls ------------------------------------------------------------------------

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file; with ``create`` it must not exist yet."""
        fd = self.inner.open(path, create=create)
        self._paths[fd] = path
        return fd

    def close(self, fd: int) -> None:
        """Give the file up; what only the write-ahead log has of it is made durable first."""
        self._settle(fd)
        self._paths.pop(fd, None)
        self._names.pop(fd, None)
        self.inner.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Set the file's length."""
        self._settle(fd)
        self.inner.truncate(fd, size)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file or folder, replacing a file that is there."""
        self._settle_path(source)
        self._settle_path(target)
        self.inner.rename(source, target)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder that is empty."""
        self._settle_path(path)
        self.inner.remove(path)

    def sync(self, fd: int) -> None:
        """Make the file's bytes and length durable."""
        try:
            self.inner.sync(fd)
        except OSError:
            self._doubt(fd)
            raise

    def commit(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files; durable in the write-ahead log, or large ones in their places."""
        if sum([len(each.data) for each in writes]) > self._small * len(writes):
            return self._commit_in_place(writes)
        # Written to its place first, so that what is left to do behind the sync is little.
        errors = [self._write(each) for each in writes]
        written = [each for each, error in zip(writes, errors, strict=True) if error is None]
        entries = b"".join([self._entry(*each) for each in written])
        file = self._free.get()
        try:
            if not self._has_room(file, len(entries)):
                return self._commit_in_place(writes)
            file.dirty.update([each.fd for each in written])
            file.append(entries)
        except OSError as error:
            return [error] * len(writes)
        finally:
            self._free.put(file)
        return errors

    def _commit_in_place(self, writes: Sequence[Write]) -> list[OSError | None]:
        errors = self.inner.commit(writes)
        for each, error in zip(writes, errors, strict=True):
            if error is not None:
                self._doubt(each.fd)
        return errors

    def _entry(self, fd: int, data: Buffer, offset: int) -> bytes:
        name = self._names.get(fd)
        if name is None:
            name = self._paths[fd].relative_to(self._root).as_posix().encode()
            self._names[fd] = name
        return encode_entry(next(self._sequence), name, offset, data)

    def _write(self, each: Write) -> OSError | None:
        try:
            self.inner.write(*each)
        except OSError as error:
            return error
        return None

    # Checkpoints -------------------------------------------------------------------------------

    def _has_room(self, file: WalFile, length: int) -> bool:
        """Whether a file can take so many bytes, after it was enlarged or used anew if need be."""
        while not file.fits(length):
            if len(file.dirty) >= _MANY and file.grow():
                continue
            if not file.position:
                return False
            self._checkpoint(file)
        return True

    def _settle_path(self, path: Path) -> None:
        """Make sure that nothing will ever be repeated for a path."""
        for fd in [fd for file in self._files for fd in list(file.dirty)]:
            if self._paths.get(fd) == path:
                self._settle(fd)

    def _settle(self, fd: int) -> None:
        """Make sure that nothing will ever be repeated for a file."""
        with self._lock:
            if not any(fd in each.dirty for each in self._files):
                return
            taken = [self._free.get() for _ in self._files]
            try:
                for file in taken:
                    if fd in file.dirty:
                        self._checkpoint(file)
            finally:
                for file in taken:
                    self._free.put(file)

    def _checkpoint(self, file: WalFile) -> None:
        """Make durable elsewhere what a file holds, and begin it anew."""
        if file.doubted:
            self._write_again(file)
            file.doubted = False
        for fd in list(file.dirty):
            self.sync(fd)
        if file.doubted:  # by another thread's commit, which may have had the error instead of us
            raise OSError(errno.EIO, "a file that the write-ahead log stands for was not written")
        file.recycle()

    def _doubt(self, fd: int) -> None:
        """Note that a sync of a file failed: the system may have dropped what was not durable."""
        for file in self._files:
            if fd in file.dirty:
                file.doubted = True

    def _write_again(self, file: WalFile) -> None:
        """Write what the write-ahead log has to where it belongs once more."""
        fds = {self._names[fd].decode(): fd for fd in file.dirty}
        for entry in file.entries():
            self.inner.write(fds[entry.name], entry.data, entry.offset)


def repeat(storage: StorageBackend, data_dir: Path) -> int:
    """Repeat what an earlier run left in a write-ahead log, durably, and remove that.

    Returns:
        How many writes it was.

    Args:
        storage: the backend.
        data_dir: the data directory; it exists.

    Raises:
        DataDirError: the write-ahead log cannot be trusted.
        OSError: the disk refused.
    """
    folder, present = data_dir / FOLDER, _files_in(storage, data_dir)
    if present is None:
        return 0
    try:
        repeated = replay(storage, data_dir, present)
    except ValueError as error:
        raise _untrusted(folder, error) from error
    if repeated:
        _log.warning("the write-ahead log held %d writes; they were repeated", repeated)
    for path in present:
        storage.remove(path)
    storage.sync_dir(folder)
    storage.remove(folder)
    storage.sync_dir(data_dir)
    return repeated


def unrepeated(storage: StorageBackend, data_dir: Path) -> list[Entry]:
    """Return what a write-ahead log holds and what the next start will write to its place.

    Args:
        storage: the backend; nothing is written.
        data_dir: a data directory that no server is using.

    Raises:
        DataDirError: the write-ahead log cannot be trusted.
        OSError: the disk refused.
    """
    try:
        return list(not_in_place(storage, data_dir, _files_in(storage, data_dir) or []))
    except ValueError as error:
        raise _untrusted(data_dir / FOLDER, error) from error


def _files_in(storage: StorageBackend, data_dir: Path) -> list[Path] | None:
    """Return the files of a write-ahead log, or None where there is no such log."""
    if FOLDER not in storage.list_dir(data_dir):
        return None
    return [data_dir / FOLDER / name for name in storage.list_dir(data_dir / FOLDER)]


def _untrusted(folder: Path, error: ValueError) -> DataDirError:
    return DataDirError(f"{folder}: {error}; move the folder away to start")
