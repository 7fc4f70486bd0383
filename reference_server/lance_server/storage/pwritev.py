"""Positioned writes and reads through the page cache: works on every file system."""

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import Final

from lance_server.runtime import platform
from lance_server.storage.contract import (
    NothingKept,
    WouldBlockError,
    Write,
    sync_in_turn,
    write_in_turn,
)
from lance_spec._native import accelerator
from lance_spec.checksum import Buffer

_FILE_MODE: Final = 0o640
_DIR_MODE: Final = 0o750
_write_each: Final = accelerator.write_each if accelerator else None
_SYNC_THREADS: Final = 8
_SYNCS_A_THREAD: Final = 8
"""Files to sync, at least, for each thread that does nothing else."""
_NOT_NOW: Final = frozenset({errno.EAGAIN, errno.EOPNOTSUPP})


class PwritevStorage(NothingKept):
    """The portable backend: ``pwritev2`` with ``RWF_DSYNC``, ``preadv`` and ``fdatasync``."""

    name = "pwritev2"

    def __repr__(self) -> str:
        return "<PwritevStorage>"

    def make_dir(self, path: Path) -> None:
        """Create a folder; one that exists is fine."""
        path.mkdir(mode=_DIR_MODE, exist_ok=True)

    def list_dir(self, path: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted(os.listdir(path))  # noqa: PTH208 - ten times as fast for many files

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file for reading and writing; with ``create`` it must not exist yet."""
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(path, flags | (os.O_CREAT | os.O_EXCL if create else 0), _FILE_MODE)

    def close(self, fd: int) -> None:
        """Give the file up."""
        os.close(fd)

    def size(self, fd: int) -> int:
        """Return the file's length in bytes."""
        return os.fstat(fd).st_size

    def write(self, fd: int, data: Buffer, offset: int) -> None:
        """Write all of ``data`` at ``offset``, or raise."""
        if os.pwrite(fd, data, offset) < len(data):  # seldom: what is left says why
            _write(os.pwrite, fd, data, offset)

    def write_each(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files, not durably; return what went wrong for each."""
        if _write_each is None:
            return write_in_turn(self, writes)
        numbers = _write_each(writes)
        if not any(numbers):
            return [None] * len(numbers)
        return [OSError(each, os.strerror(each)) if each else None for each in numbers]

    def commit(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files and make them durable; return what went wrong for each."""
        return [self._commit(each) for each in writes]

    def _commit(self, each: Write) -> OSError | None:
        try:
            _write(platform.write_durably, each.fd, each.data, each.offset)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                return error
        else:
            return None
        try:  # a file system without durable writes
            self.write(*each)
            self.sync(each.fd)
        except OSError as error:
            return error
        return None

    def read_into(
        self, fd: int, target: memoryview, offset: int, *, cached_only: bool = False
    ) -> int:
        """Fill ``target`` from ``offset`` on; return how many bytes there were."""
        read = platform.read_cached if cached_only else os.preadv
        filled = 0
        try:
            while filled < len(target):
                got = read(fd, [target[filled:]], offset + filled)
                if not got:
                    break
                filled += got
        except OSError as error:
            if cached_only and error.errno in _NOT_NOW:
                raise WouldBlockError from None
            raise
        return filled

    def plain_fd(self, fd: int) -> int | None:
        """Return the descriptor; a subclass that reads otherwise returns None."""
        return fd

    def sync(self, fd: int) -> None:
        """Make the file's bytes and length durable."""
        platform.sync(fd)

    def sync_each(self, fds: Sequence[int]) -> list[OSError | None]:
        """Make several files durable; many by several threads, whose syncs the system joins."""
        count = min(_SYNC_THREADS, len(fds) // _SYNCS_A_THREAD)
        if count <= 1:
            return sync_in_turn(self, fds)
        errors: list[OSError | None] = [None] * len(fds)

        def work(first: int) -> None:
            errors[first::count] = sync_in_turn(self, fds[first::count])

        threads = [Thread(target=work, args=(first,), daemon=True) for first in range(1, count)]
        begun, own = list[Thread](), [0]
        for first, thread in enumerate(threads, 1):
            try:
                thread.start()
            except RuntimeError:  # no more of them, or the interpreter is about to end
                own.append(first)
            else:
                begun.append(thread)
        for first in own:
            work(first)
        for thread in begun:
            thread.join()
        return errors

    def truncate(self, fd: int, size: int) -> None:
        """Set the file's length."""
        os.ftruncate(fd, size)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file or folder, replacing a file that is there."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder that is empty."""
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


class PageCacheStorage(PwritevStorage):
    """The portable backend with commits that end in the system's memory: durability ``os``.

    What was committed outlives the server's process, but not the machine's.
    """

    name = "pwritev2 (os)"

    def _commit(self, each: Write) -> OSError | None:
        try:
            self.write(*each)
        except OSError as error:
            return error
        return None


def _write(write: Callable[[int, Buffer, int], int], fd: int, data: Buffer, offset: int) -> None:
    done = write(fd, data, offset)
    while done < len(data):  # seldom: the disk is full, or a signal came
        more = write(fd, memoryview(data)[done:], offset + done)
        if more <= 0:
            raise OSError(errno.EIO, "the disk took no bytes")
        done += more
