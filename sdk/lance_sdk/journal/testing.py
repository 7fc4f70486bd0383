"""A disk in memory that forgets what was not synced, fills up and breaks when it is told to."""

import errno
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lance_sdk.journal.files import Lock, SlotFile
from lance_spec.checksum import Buffer

if TYPE_CHECKING:
    from collections.abc import Callable

SECTOR: Final = 512
"""Bytes that reach a disk together or not at all."""


class PowerCut(Exception):  # noqa: N818 - an event, not an error of the program
    """The machine stopped in the middle of what the journal was doing."""


class _Inode:
    """A file's bytes: as programs see them, and as the platters have them.

    Attributes:
        seen: what programs read.
        durable: what is left after a loss of power.
        dirty: ranges that were written and not handed to the disk yet. A sync that fails empties
            it all the same, as kernels do: those bytes are *clean and lost*.
    """

    def __init__(self, size: int) -> None:
        self.seen = bytearray(size)
        self.durable = bytearray(size)
        self.dirty: list[tuple[int, int]] = []

    def written(self, start: int, stop: int) -> None:
        """Note that bytes were written."""
        if self.dirty and self.dirty[-1][1] == start:
            start = self.dirty.pop()[0]
        self.dirty.append((start, stop))

    def resize(self, size: int) -> None:
        """Give the file another length; that reaches the disk at once."""
        for content in (self.seen, self.durable):
            del content[size:]
            content.extend(bytes(size - len(content)))

    def flushed(self) -> None:
        """Note that everything written so far is on disk."""
        for start, stop in self.dirty:
            self.durable[start:stop] = self.seen[start:stop]
        self.dirty.clear()


class _Handle:
    def __init__(self, disk: "ForgetfulDisk", path: Path, inode: _Inode) -> None:
        self.path: Path | None = path
        self.size = len(inode.seen)
        self._disk = disk
        self._inode = inode

    def __repr__(self) -> str:
        return f"<file {self.path} on {self._disk}>"

    def read(self, offset: int, length: int) -> bytes:
        if "pread" in self._disk.broken:
            self._disk.step("pread", self.path)
        return bytes(self._inode.seen[offset : offset + length])

    def write(self, offset: int, data: Buffer) -> None:
        self._disk.step("write", self.path)
        stop = offset + len(data)
        if stop > len(self._inode.seen):
            self._inode.resize(stop)
        self._inode.seen[offset:stop] = data
        self._inode.written(offset, stop)

    def truncate(self, size: int) -> None:
        self._disk.step("truncate", self.path)
        self._inode.resize(size)

    def sync(self) -> None:
        try:
            self._disk.step("sync", self.path)
        except OSError:
            self._inode.dirty.clear()
            raise
        self._inode.flushed()

    def reserve(self) -> None:
        self._disk.step("reserve", self.path)

    def punch(self, offset: int, length: int) -> None:
        self._disk.step("punch", self.path)
        zeros = bytes(length)
        self._inode.seen[offset : offset + length] = zeros
        # The worst order: the file system remembers the hole before anything else.
        self._inode.durable[offset : offset + length] = zeros

    def close(self) -> None:
        """Nothing is held."""


class _Held:
    def __init__(self, disk: "ForgetfulDisk", path: Path) -> None:
        self._disk = disk
        self._path = path

    def close(self) -> None:
        self._disk.locked.discard(self._path)


class ForgetfulDisk:
    """Files in memory; see `Files` for the methods.

    Args:
        space: bytes that new files may take; None means no end of them.

    Attributes:
        space: bytes that are left, or None.
        broken: errors that operations raise, by operation: ``sync``, ``sync_folder``,
            ``create``, ``open``, ``read``, ``replace``, ``rename``, ``remove``, ``reserve``,
            ``punch``, ``write``, ``pread``, ``truncate``, ``names``, ``lock``.
        done: how often each operation was asked for; reads of open files are not counted.
        booted: which start of the machine it is.
        before: called before each operation with its name; a test may wait in it.
        locked: paths that are locked.
    """

    def __init__(self, space: int | None = None) -> None:
        self.space = space
        self.broken: dict[str, OSError] = {}
        self.done: Counter[str] = Counter()
        self.before: Callable[[str], None] = _pass
        self.locked: set[Path] = set()
        self.booted = 1
        self._seen: dict[Path, _Inode] = {}
        self._durable: dict[Path, _Inode] = {}
        self._steps_left: int | None = None

    def __repr__(self) -> str:
        return f"<ForgetfulDisk: {len(self._seen)} files, {self.space} bytes left>"

    # What happens to it

    def cut_power_after(self, steps: int) -> None:
        """Raise `PowerCut` instead of the operation that comes after so many."""
        self._steps_left = steps

    def step(self, operation: str, path: Path | None) -> None:
        """Count an operation, and refuse it where it was told to."""
        if self._steps_left is not None:
            if self._steps_left == 0:
                raise PowerCut(operation)
            self._steps_left -= 1
        self.done[operation] += 1
        self.before(operation)
        if operation in self.broken:
            error = self.broken[operation]
            raise type(error)(error.errno, error.strerror, str(path))

    def killed(self) -> "ForgetfulDisk":
        """Return the disk as the next process finds it when this one was killed."""
        found = ForgetfulDisk(self.space)
        found.booted = self.booted
        for path in {*self._seen, *self._durable}:
            now, then = self._seen.get(path), self._durable.get(path)
            copies = {id(each): _copied(each) for each in (now, then) if each is not None}
            if now is not None:
                found._seen[path] = copies[id(now)]
            if then is not None:
                found._durable[path] = copies[id(then)]
        return found

    def power_lost(self, rng: random.Random | None = None) -> "ForgetfulDisk":
        """Return the disk as it is after a loss of power.

        Args:
            rng: decides, sector by sector and name by name, what of the unsynced survives; None
                means that nothing does.
        """
        found = ForgetfulDisk(self.space)
        found.booted = self.booted + 1
        decided: dict[int, bool] = {}
        here, there = set(map(id, self._seen.values())), set(map(id, self._durable.values()))
        moved = here & there
        for path in sorted({*self._seen, *self._durable}):
            now, then = self._seen.get(path), self._durable.get(path)
            happened = rng is not None and rng.random() < 0.5
            for inode in (now, then):  # a rename happens as a whole or not at all
                if inode is not None and id(inode) in moved:
                    happened = decided.setdefault(id(inode), happened)
            kept = now if now is then or happened else then
            if kept is not None:
                found.put(path, _survivors(kept, rng))
        return found

    # What a test may look at and change

    def content(self, path: Path) -> bytes:
        """Return a file's bytes."""
        return bytes(self._seen[path].seen)

    def put(self, path: Path, data: bytes) -> None:
        """Place a file that is on disk already."""
        inode = _Inode(len(data))
        inode.seen[:] = inode.durable[:] = data
        self._seen[path] = self._durable[path] = inode

    def poke(self, path: Path, offset: int, data: bytes) -> None:
        """Change bytes under a program that has the file open, as a disk that rots does."""
        inode = self._seen[path]
        inode.seen[offset : offset + len(data)] = data
        inode.durable[offset : offset + len(data)] = data

    # What the journal uses

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        self.step("names", folder)
        return sorted(path.name for path in self._seen if path.parent == folder)

    def make_folder(self, folder: Path) -> None:
        """Do nothing: every folder exists."""

    def sync_folder(self, folder: Path) -> None:
        """Make names durable."""
        self.step("sync_folder", folder)
        gone = [path for path in self._durable if path.parent == folder]
        for path in gone:
            del self._durable[path]
        self._durable |= {p: inode for p, inode in self._seen.items() if p.parent == folder}

    def read(self, path: Path, limit: int) -> bytes:
        """Return the first bytes of a file."""
        self.step("read", path)
        return bytes(self._inode(path).seen[:limit])

    def replace(self, path: Path, data: bytes) -> None:
        """Replace a file durably and at once."""
        self.step("replace", path)
        self._take(len(data), path)
        self.put(path, data)

    def create(self, path: Path, size: int) -> SlotFile:
        """Create a file of zeros."""
        self.step("create", path)
        if path in self._seen:
            raise FileExistsError(errno.EEXIST, "file exists", str(path))
        self._take(size, path)
        self._seen[path] = _Inode(size)
        return _Handle(self, path, self._seen[path])

    def open(self, path: Path, *, writable: bool) -> SlotFile:
        """Open a file."""
        del writable
        self.step("open", path)
        return _Handle(self, path, self._inode(path))

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file."""
        self.step("rename", path)
        self._seen[target] = self._inode(path)
        del self._seen[path]

    def remove(self, path: Path) -> None:
        """Remove a file and get its space back."""
        self.step("remove", path)
        inode = self._inode(path)
        del self._seen[path]
        if self.space is not None:
            self.space += len(inode.seen)

    def lock(self, path: Path) -> Lock:
        """Lock a path."""
        self.step("lock", path)
        if path in self.locked:
            raise BlockingIOError(errno.EAGAIN, "locked", str(path))
        self.locked.add(path)
        return _Held(self, path)

    def boot(self) -> int:
        """Return which start of the machine it is."""
        return self.booted

    def _inode(self, path: Path) -> _Inode:
        if path not in self._seen:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return self._seen[path]

    def _take(self, size: int, path: Path) -> None:
        if self.space is None:
            return
        if size > self.space:
            raise OSError(errno.ENOSPC, "no space left on device", str(path))
        self.space -= size


def _pass(operation: str) -> None:
    """Let an operation happen."""
    del operation


def _copied(inode: _Inode) -> _Inode:
    copy = _Inode(0)
    copy.seen[:], copy.durable[:], copy.dirty = inode.seen, inode.durable, inode.dirty[:]
    return copy


def _survivors(inode: _Inode, rng: random.Random | None) -> bytes:
    """Return a file's content where some unsynced sectors reached the disk and others did not."""
    content = bytearray(inode.durable)
    if rng is None:
        return bytes(content)
    dirty = {at // SECTOR for start, stop in inode.dirty for at in range(start, stop, SECTOR)}
    dirty |= {(stop - 1) // SECTOR for start, stop in inode.dirty if stop > start}
    for number in sorted(dirty):
        if rng.random() < 0.5:
            start, stop = number * SECTOR, (number + 1) * SECTOR
            content[start:stop] = inode.seen[start:stop]
    return bytes(content)
