"""Durability by a write-ahead log: one durable write for all files of a flush.

A commit writes everything into a preallocated file, durably, and then to where it belongs,
without waiting for the disk. When that file is full, what was written elsewhere is made durable
and the file is used again from its start. After a crash its entries are repeated.

It helps where a flush touches many topics, or where a disk is slow to grow files.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from lance_server.errors import DataDirError
from lance_server.storage.contract import StorageBackend, Write
from lance_server.storage.delegating import DelegatingStorage
from lance_server.storage.wal_file import Entry, WalFile, replay

_log = logging.getLogger(__name__)
FOLDER: Final = "wal"
_FILES: Final = 2
"""As many as flushes may overlap."""
DEFAULT_SIZE: Final = 64 * 1024 * 1024


class WalStorage(DelegatingStorage):
    """A backend whose commits are durable in a write-ahead log.

    Args:
        inner: does the work.
        data_dir: what the log is kept for; its folder ``wal`` holds the files.
        size: bytes of each file.

    Raises:
        DataDirError: the write-ahead log cannot be trusted.
        OSError: the disk refused.
    """

    def __init__(self, inner: StorageBackend, data_dir: Path, size: int = DEFAULT_SIZE) -> None:
        super().__init__(inner)
        self.name = f"{inner.name} (wal)"
        self._root = data_dir
        self._paths: dict[int, Path] = {}
        self._sequence = count(1)
        self._lock = threading.Lock()
        self._free: SimpleQueue[WalFile] = SimpleQueue()
        self._files: list[WalFile] = []
        self.repeated = repeat(inner, data_dir)
        self._begin(data_dir / FOLDER, size)

    def __repr__(self) -> str:
        used = ", ".join(str(each.position) for each in self._files)
        return f"<WalStorage {self.name} bytes in use: {used}>"

    def _begin(self, folder: Path, size: int) -> None:
        self.inner.make_dir(folder)
        for number in range(_FILES):
            self._files.append(WalFile(self.inner, folder / f"{number}.wal", size))
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
        self._settle(self._paths.pop(fd, None))
        self.inner.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Set the file's length."""
        self._settle(self._paths.get(fd))
        self.inner.truncate(fd, size)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file or folder, replacing a file that is there."""
        self._settle(source)
        self._settle(target)
        self.inner.rename(source, target)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder that is empty."""
        self._settle(path)
        self.inner.remove(path)

    def commit(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files; durable once the write-ahead log has it."""
        entries = b"".join(self._entry(each).encode() for each in writes)
        with self._one_file() as file:
            try:
                if not file.fits(len(entries)):
                    self._checkpoint(file)
                if not file.fits(len(entries)):  # more than a file can take at all
                    return self.inner.commit(writes)
                file.append(entries)
            except OSError as error:
                return [error] * len(writes)
            return self._write_all(file, writes)

    def _entry(self, each: Write) -> Entry:
        name = self._paths[each.fd].relative_to(self._root).as_posix()
        return Entry(next(self._sequence), name, each.offset, each.data)

    def _write_all(self, file: WalFile, writes: Sequence[Write]) -> list[OSError | None]:
        errors: list[OSError | None] = []
        for each in writes:
            file.dirty[each.fd] = self._paths[each.fd]
            try:
                self.inner.write(*each)
            except OSError as error:
                errors.append(error)
            else:
                errors.append(None)
        return errors

    # Checkpoints -------------------------------------------------------------------------------

    @contextmanager
    def _one_file(self) -> Iterator[WalFile]:
        """Have a file to oneself."""
        file = self._free.get()
        try:
            yield file
        finally:
            self._free.put(file)

    def _settle(self, path: Path | None) -> None:
        """Make sure that nothing will ever be repeated for a path."""
        with self._lock:
            if not any(path in each.dirty.values() for each in self._files):
                return
            taken = [self._free.get() for _ in self._files]
            try:
                for file in taken:
                    if path in file.dirty.values():
                        self._checkpoint(file)
            finally:
                for file in taken:
                    self._free.put(file)

    def _checkpoint(self, file: WalFile) -> None:
        """Make durable elsewhere what a file holds, and begin it anew."""
        for fd in list(file.dirty):
            self.inner.sync(fd)
        file.recycle()


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
    folder = data_dir / FOLDER
    if FOLDER not in storage.list_dir(data_dir):
        return 0
    present = [folder / name for name in storage.list_dir(folder)]
    try:
        repeated = replay(storage, data_dir, present)
    except ValueError as error:
        raise DataDirError(f"{folder}: {error}; move the folder away to start") from error
    if repeated:
        _log.warning("the write-ahead log held %d writes; they were repeated", repeated)
    for path in present:
        storage.remove(path)
    storage.sync_dir(folder)
    storage.remove(folder)
    storage.sync_dir(data_dir)
    return repeated
