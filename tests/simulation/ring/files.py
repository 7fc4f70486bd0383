"""The ring's file system over the simulated disk."""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tests.simulation.disk import Piece, SimDisk
from tests.simulation.mount import Mount

from lance_sdk.journal.files import Lock, SlotFile
from lance_server.storage.contract import read_at
from lance_spec.checksum import Buffer

if TYPE_CHECKING:
    from collections.abc import Callable


class _File:
    """An open file of a slot."""

    def __init__(self, mount: Mount, path: Path, fd: int, *, holes: bool) -> None:
        self.path: Path | None = path
        self.size = mount.size(fd)
        self._mount = mount
        self._fd = fd
        self._holes = holes

    def read(self, offset: int, length: int) -> bytes:
        return bytes(read_at(self._mount, self._fd, length, offset))

    def write(self, offset: int, data: Buffer) -> None:
        self._mount.write(self._fd, data, offset)

    def truncate(self, size: int) -> None:
        self._mount.truncate(self._fd, size)

    def sync(self) -> None:
        self._mount.sync(self._fd)

    def reserve(self) -> None:
        """Do nothing: the disk gave it all its blocks when it was made."""

    def punch(self, offset: int, length: int) -> None:
        assert self.path is not None, "it is a file"
        fault = self._mount._begin("punch", self.path)
        if not self._holes:
            number = errno.EOPNOTSUPP
            raise OSError(number, os.strerror(number), str(self.path))
        # The worst order: the file system remembers the hole before anything else.
        file = self._mount._file(self._fd)[1]
        file.change(Piece(offset, bytes(length), durable=True))
        self._mount._end(fault, self.path)

    def close(self) -> None:
        """Give it up without an interruption: generators do that whenever they are deleted."""
        self._mount.files.pop(self._fd, None)


class _Held:
    def __init__(self, let_go: "Callable[[], None]") -> None:
        self._let_go = let_go

    def close(self) -> None:
        self._let_go()


class RingFiles:
    """What a journal asks of a file system; see `lance_sdk.journal.files.Files`.

    Args:
        disk: what it stands on.
        mount: what this process sees of it.
        locked: which process holds which lock, shared by all of them.
        boot: which start of the machine it is.
        holes: whether the file system can punch holes.
    """

    def __init__(
        self, disk: SimDisk, mount: Mount, locked: dict[Path, Mount], boot: int, *, holes: bool
    ) -> None:
        self._disk = disk
        self._mount = mount
        self._locked = locked
        self._boot = boot
        self._holes = holes

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        return self._mount.list_dir(folder)

    def make_folder(self, folder: Path) -> None:
        """Create a folder, durably."""
        self._mount.make_dir(folder)
        self._mount.sync_dir(folder.parent)

    def sync_folder(self, folder: Path) -> None:
        """Make names durable."""
        self._mount.sync_dir(folder)

    def read(self, path: Path, limit: int) -> bytes:
        """Return the first bytes of a file."""
        fd = self._mount.open(path)
        try:
            return bytes(read_at(self._mount, fd, min(limit, self._mount.size(fd)), 0))
        finally:
            self._close(fd)

    def replace(self, path: Path, data: bytes) -> None:
        """Write a file beside it, sync that, and rename it."""
        fresh = path.with_name(f"{path.name}.new")
        if fresh.name in self._mount.list_dir(path.parent):
            self._mount.remove(fresh)
        fd = self._mount.open(fresh, create=True)
        try:
            self._mount.write(fd, data, 0)
            self._mount.sync(fd)
        finally:
            self._close(fd)
        self._mount.rename(fresh, path)
        self._mount.sync_dir(path.parent)

    def create(self, path: Path, size: int) -> SlotFile:
        """Create a file of zeros with all its blocks."""
        fd = self._mount.open(path, create=True)
        try:
            self._take(path, size)
            self._mount.truncate(fd, size)
        except OSError:
            self._close(fd)
            self._mount.remove(path)
            raise
        return self._file(path, fd)

    def _take(self, path: Path, size: int) -> None:
        if self._disk.take(size) < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def open(self, path: Path, *, writable: bool) -> SlotFile:
        """Open a file."""
        del writable
        return self._file(path, self._mount.open(path))

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file."""
        self._mount.rename(path, target)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        self._mount.remove(path)

    def lock(self, path: Path) -> Lock:
        """Lock a path for this process."""
        if path.name not in self._mount.list_dir(path.parent):
            self._close(self._mount.open(path, create=True))
        holder = self._locked.get(path)
        if holder is not None and not holder.dead:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(path))
        self._locked[path] = self._mount
        return _Held(lambda: self._unlock(path))

    def _unlock(self, path: Path) -> None:
        if self._locked.get(path) is self._mount:
            del self._locked[path]

    def boot(self) -> int:
        """Return which start of the machine it is."""
        return self._boot

    def _file(self, path: Path, fd: int) -> SlotFile:
        return _File(self._mount, path, fd, holes=self._holes)

    def _close(self, fd: int) -> None:
        if not self._mount.dead:
            self._mount.close(fd)
