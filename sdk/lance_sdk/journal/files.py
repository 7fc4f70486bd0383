"""The file system as a journal uses it, behind one seam.

The rules of a ring are easier to get right than to test on a disk that works. Everything that
touches files goes through `Files`, so that tests can put a disk there that is full, broken, or
forgets what was not synced (`lance_sdk.journal.testing`).
"""

import errno
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from lance_sdk._io import platform
from lance_sdk.journal._slot.layout import MAX_SEGMENT_BYTES
from lance_spec.checksum import Buffer


class SlotFile(Protocol):
    """An open file of a slot.

    It is read and written with system calls, not through a map: a file that another program cuts
    short, or that the disk cannot read, is then an error of one call and not the end of the
    process (SIGBUS).

    Attributes:
        path: where it is; None for memory that is not a file.
        size: its bytes when it was opened.
    """

    path: Path | None
    size: int

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes from ``offset`` on; fewer where the file ends before."""
        ...

    def write(self, offset: int, data: Buffer) -> None:
        """Store bytes in one call.

        Everyone sees them at once, and they survive this process. Within one sector they are
        stored all or not at all.
        """
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to ``size`` bytes."""
        ...

    def sync(self) -> None:
        """Wait until what is stored is on disk."""
        ...

    def reserve(self) -> None:
        """Make sure that every byte has a block; a write can then not fail for lack of space."""
        ...

    def punch(self, offset: int, length: int) -> None:
        """Turn a range into zeros without blocks; an OSError says why that is impossible."""
        ...

    def close(self) -> None:
        """Give up the descriptor."""
        ...


class Lock(Protocol):
    """A held lock."""

    def close(self) -> None:
        """Release it."""
        ...


class Files(Protocol):
    """What a journal asks of a file system; every method may raise OSError naming its path."""

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        ...

    def make_folder(self, folder: Path) -> None:
        """Create a folder and its parents durably, unless they exist (SF-29)."""
        ...

    def sync_folder(self, folder: Path) -> None:
        """Wait until created, renamed and removed names are on disk."""
        ...

    def read(self, path: Path, limit: int) -> bytes:
        """Return a small file, at most its first ``limit`` bytes."""
        ...

    def replace(self, path: Path, data: bytes) -> None:
        """Write a small file so that a reader finds the old content or the new, and sync it."""
        ...

    def create(self, path: Path, size: int) -> SlotFile:
        """Create a file of zeros with all its blocks reserved; on an error leave no file."""
        ...

    def open(self, path: Path, *, writable: bool) -> SlotFile:
        """Open an existing file."""
        ...

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file; an existing target is replaced."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file."""
        ...

    def lock(self, path: Path) -> Lock:
        """Create the file if need be and lock it; BlockingIOError when it is held."""
        ...

    def boot(self) -> int:
        """Return a number that every start of the machine changes; 0 where none is known."""
        ...


class _RealFile:
    def __init__(self, path: Path, fd: int) -> None:
        self.path: Path | None = path
        self.size = os.fstat(fd).st_size
        self._fd = fd

    def __repr__(self) -> str:
        return f"<file {self.path}: {self.size} bytes{', closed' * (self._fd < 0)}>"

    def read(self, offset: int, length: int) -> bytes:
        data = self._read(length, offset)
        while len(data) < length and (more := self._read(length - len(data), offset + len(data))):
            data += more
        return data

    def _read(self, length: int, offset: int) -> bytes:
        try:
            return platform.read_at(self._fd, length, offset)
        except OSError as error:
            raise named(error, self.path) from None

    def write(self, offset: int, data: Buffer) -> None:
        try:
            written = platform.write_at(self._fd, data, offset)
            while written < len(data):
                rest = memoryview(data)[written:]
                written += platform.write_at(self._fd, rest, offset + written)
        except OSError as error:
            raise named(error, self.path) from None

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        try:
            platform.sync(self._fd)
        except OSError as error:
            raise named(error, self.path) from None

    def reserve(self) -> None:
        platform.reserve(self._fd, self.size)

    def punch(self, offset: int, length: int) -> None:
        platform.punch(self._fd, offset, length)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    __del__ = close  # an opening that fails half-way leaves no descriptor behind


class _RealLock:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __repr__(self) -> str:
        return f"<lock {'released' if self._fd < 0 else 'held'}>"

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RealFiles:
    """The operating system's file system."""

    def __repr__(self) -> str:
        return "RealFiles()"

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are wanted, not paths

    def make_folder(self, folder: Path) -> None:
        """Create a folder and its parents durably, unless they exist (SF-29)."""
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
            self.sync_folder(each.parent)
        folder.mkdir(exist_ok=True)  # a file in its place is an error

    def sync_folder(self, folder: Path) -> None:
        """Wait until created, renamed and removed names are on disk."""
        platform.sync_folder(folder)

    def read(self, path: Path, limit: int) -> bytes:
        """Return the first bytes of a file."""
        with path.open("rb") as file:
            return file.read(limit)

    def replace(self, path: Path, data: bytes) -> None:
        """Write a file beside it, sync that, and rename it."""
        fresh = path.with_name(f"{path.name}.new")
        try:
            with fresh.open("wb") as file:
                file.write(data)
                file.flush()
                platform.sync(file.fileno())
            fresh.replace(path)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink()
            raise named(error, path) from None
        self.sync_folder(path.parent)

    def create(self, path: Path, size: int) -> SlotFile:
        """Create a file of zeros with its blocks reserved."""
        fd = platform.open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            platform.reserve(fd, size)
            return _RealFile(path, fd)
        except BaseException as error:
            os.close(fd)
            with suppress(OSError):
                path.unlink()
            if isinstance(error, OSError):
                raise named(error, path) from None
            raise

    def open(self, path: Path, *, writable: bool) -> SlotFile:
        """Open a file; one that is larger than any segment is refused."""
        fd = platform.open_file(path, os.O_RDWR if writable else os.O_RDONLY)
        try:
            _check_size(path, os.fstat(fd).st_size)
            return _RealFile(path, fd)
        except BaseException:
            os.close(fd)
            raise

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file."""
        path.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def lock(self, path: Path) -> Lock:
        """Lock a file for this process alone."""
        fd = platform.open_file(path, os.O_RDWR | os.O_CREAT)
        try:
            platform.lock(fd)
        except BaseException:
            os.close(fd)
            raise
        return _RealLock(fd)

    def boot(self) -> int:
        """Return the kernel's boot id as a number."""
        return platform.boot_number()


def _check_size(path: Path, size: int) -> None:
    if size > MAX_SEGMENT_BYTES:
        raise OSError(errno.EFBIG, f"{size} bytes are more than a segment can have", str(path))


def named(error: OSError, path: Path | None) -> OSError:
    """Return the error with the path that system calls on descriptors do not know."""
    return type(error)(error.errno, error.strerror, str(path))


class Anonymous:
    """Memory that looks like a file: a segment of a journal without a path."""

    def __init__(self, size: int) -> None:
        self.path: Path | None = None
        self.size = size
        self._bytes = memoryview(mmap.mmap(-1, size))

    def __repr__(self) -> str:
        return f"<memory: {self.size} bytes>"

    def read(self, offset: int, length: int) -> bytes:
        """Return some bytes."""
        return bytes(self._bytes[offset : offset + length])

    def write(self, offset: int, data: Buffer) -> None:
        """Store some bytes."""
        self._bytes[offset : offset + len(data)] = data

    def truncate(self, size: int) -> None:
        """Refuse: memory is never cut."""
        raise OSError(errno.EINVAL, f"memory of {self.size} bytes cannot be cut to {size}")

    def sync(self) -> None:
        """Do nothing: there is no disk."""

    def reserve(self) -> None:
        """Do nothing: memory is there when it is touched."""

    def punch(self, offset: int, length: int) -> None:
        """Refuse: pages of memory are given back with their segment."""
        del offset, length
        raise OSError(
            errno.EOPNOTSUPP, "hole punching: a journal in memory gives back whole segments"
        )

    def close(self) -> None:
        """Do nothing: the memory goes when nobody looks at it."""
