"""Disks for tests: one in memory that forgets what was not synced, one that fails on demand."""

import errno
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from lance_server.storage.contract import NoShortcuts, StorageBackend, WouldBlockError
from lance_spec.checksum import Buffer

_SECTOR: Final = 512


class CrashError(BaseException):
    """The machine stops here. No handler of the code under test may catch it."""


@dataclass(slots=True, eq=False)
class _Inode:
    """A file: what it reads as now, what survives, and what may or may not.

    Attributes:
        content: what a read returns.
        durable: what the last sync made sure of.
        pending: the writes since then, as functions on a bytearray.
    """

    content: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Callable[[bytearray], None]] = field(default_factory=list)


_Entry = dict[str, "_Inode | None"]


class MemoryStorage(NoShortcuts):
    """A file system in memory with the weakest promises a disk makes.

    At a crash any subset of the writes since a file's last sync survives, torn at sector
    boundaries; of the changes to a folder since its last sync any prefix survives.

    Args:
        crash_after: raise `CrashError` at this operation, counted from 0; None never does.
    """

    name = "memory"

    def __init__(self, crash_after: int | None = None) -> None:
        self.operations = 0
        self.crash_after = crash_after
        self._folders: dict[Path, _Entry] = {}
        self._durable_folders: dict[Path, _Entry] = {}
        self._changes: dict[Path, list[_Entry]] = {}
        self._open: dict[int, _Inode] = {}
        self._next_fd = 3
        self._lock = threading.RLock()

    # The backend -------------------------------------------------------------------------------

    def make_dir(self, path: Path) -> None:
        """Create a folder; one that exists is fine."""
        with self._lock:
            self._step()
            if path in self._folders:
                return
            self._folders[path] = {}
            self._durable_folders[path] = {}
            self._changes[path] = []
            if path.parent in self._folders:
                self._change(path.parent, lambda names: names.update({path.name: None}))

    def list_dir(self, path: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        with self._lock:
            return sorted(self._folder(path))

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file."""
        with self._lock:
            self._step()
            names = self._folder(path.parent)
            inode = names.get(path.name)
            if create:
                if path.name in names:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
                inode = _Inode()
                self._change(path.parent, lambda each: each.update({path.name: inode}))
            elif inode is None:
                raise _missing(path)
            self._next_fd += 1
            self._open[self._next_fd] = inode
            return self._next_fd

    def close(self, fd: int) -> None:
        """Give the file up."""
        with self._lock:
            del self._open[fd]

    def size(self, fd: int) -> int:
        """Return the file's length."""
        return len(self._open[fd].content)

    def write(self, fd: int, data: Buffer, offset: int) -> None:
        """Write, to memory only."""
        with self._lock:
            inode = self._open[fd]
            raw = bytes(data)
            for start in range(0, len(raw), _SECTOR) if raw else ():
                piece = raw[start : start + _SECTOR]
                inode.pending.append(_writing(piece, offset + start))
            _writing(raw, offset)(inode.content)
            self._step()

    def read_into(
        self, fd: int, target: memoryview, offset: int, *, cached_only: bool = False
    ) -> int:
        """Read what was written, synced or not."""
        del cached_only
        with self._lock:
            piece = self._open[fd].content[offset : offset + len(target)]
            target[: len(piece)] = piece
            return len(piece)

    def sync(self, fd: int) -> None:
        """Make a file durable."""
        with self._lock:
            self._step()
            inode = self._open[fd]
            inode.durable = bytearray(inode.content)
            inode.pending.clear()

    def truncate(self, fd: int, size: int) -> None:
        """Set the file's length."""
        with self._lock:
            self._step()
            inode = self._open[fd]
            inode.pending.append(_cutting(size))
            _cutting(size)(inode.content)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file or a folder."""
        with self._lock:
            self._step()
            inode = self._folder(source.parent)[source.name]
            if inode is None:
                for old in [path for path in self._folders if path.is_relative_to(source)]:
                    new = target / old.relative_to(source)
                    self._folders[new] = self._folders.pop(old)
                    self._durable_folders[new] = self._durable_folders.pop(old)
                    self._changes[new] = self._changes.pop(old)
            if source.parent != target.parent:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            if source.name != target.name:
                self._change(source.parent, _moving(source.name, target.name))

    def remove(self, path: Path) -> None:
        """Remove a file or an empty folder."""
        with self._lock:
            self._step()
            if path.name not in self._folder(path.parent):
                raise _missing(path)
            if self._folders.get(path):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))
            self._folders.pop(path, None)
            self._durable_folders.pop(path, None)
            self._changes.pop(path, None)
            self._change(path.parent, lambda names: names.pop(path.name, None))

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        with self._lock:
            self._step()
            self._durable_folders[path] = dict(self._folder(path))
            self._changes[path].clear()

    # What tests look at and change --------------------------------------------------------------

    def files(self) -> list[Path]:
        """Return every file, sorted."""
        return sorted(
            folder / name
            for folder, names in self._folders.items()
            for name, inode in names.items()
            if inode is not None
        )

    def peek(self, path: Path) -> bytes:
        """Return a file's content."""
        return bytes(self._file(path).content)

    def poke(self, path: Path, content: bytes) -> None:
        """Change a file behind everybody's back, durably."""
        inode = self._file(path)
        inode.content, inode.durable = bytearray(content), bytearray(content)
        inode.pending.clear()

    def copy(self) -> "MemoryStorage":
        """Return a disk with the same files, all of it durable."""
        twin = MemoryStorage()
        for folder, names in self._folders.items():
            copied = {name: inode and _twin(inode) for name, inode in names.items()}
            twin._folders[folder] = copied
            twin._durable_folders[folder] = dict(copied)
            twin._changes[folder] = []
        return twin

    def _file(self, path: Path) -> _Inode:
        inode = self._folder(path.parent).get(path.name)
        if inode is None:
            raise _missing(path)
        return inode

    # The crash ---------------------------------------------------------------------------------

    def crash(self, random: Random) -> "MemoryStorage":
        """Return the disk as the next start finds it."""
        after = MemoryStorage()
        for path, names in sorted(self._durable_folders.items()):
            parent = after._folders.get(path.parent, {path.name: None})
            lost = path.parent in self._folders and path.parent not in after._folders
            if lost or path.name not in parent:
                continue  # the folder's own name did not survive
            survived = dict(random.choice([names, *self._changes[path]]))
            after._folders[path] = survived
            after._changes[path] = []
        after._settle(random)
        return after

    def _settle(self, random: Random) -> None:
        """Decide for each file which of its unsynced writes survive."""
        seen: dict[_Inode, _Inode] = {}
        for folder, names in self._folders.items():
            for name, inode in list(names.items()):
                if inode is not None:
                    names[name] = seen.setdefault(inode, _survivor(inode, random))
                elif folder / name not in self._folders:
                    del names[name]
        self._durable_folders = {path: dict(names) for path, names in self._folders.items()}

    def _step(self) -> None:
        if self.crash_after is not None and self.operations >= self.crash_after:
            raise CrashError
        self.operations += 1

    def _folder(self, path: Path) -> _Entry:
        try:
            return self._folders[path]
        except KeyError:
            raise _missing(path) from None

    def _change(self, path: Path, change: Callable[[_Entry], object]) -> None:
        change(self._folders[path])
        self._changes[path].append(dict(self._folders[path]))


def _twin(inode: _Inode) -> _Inode:
    return _Inode(bytearray(inode.content), bytearray(inode.content))


def _survivor(inode: _Inode, random: Random) -> _Inode:
    content = bytearray(inode.durable)
    for change in inode.pending:
        if random.random() < 0.5:
            change(content)
    return _Inode(content, bytearray(content))


def _writing(piece: bytes, offset: int) -> Callable[[bytearray], None]:
    def write(content: bytearray) -> None:
        if len(content) < offset:
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(piece)] = piece

    return write


def _cutting(size: int) -> Callable[[bytearray], None]:
    def cut(content: bytearray) -> None:
        del content[size:]
        content.extend(bytes(size - len(content)))

    return cut


def _moving(source: str, target: str) -> Callable[[_Entry], None]:
    def move(names: _Entry) -> None:
        names[target] = names.pop(source)

    return move


def _missing(path: Path) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


class FaultyStorage(NoShortcuts):
    """Another backend, with faults that a test switches on.

    Args:
        inner: the backend that does the work.

    Attributes:
        fail: error number by method name: every call of the method raises it.
        blocked: while it is set, `sync` waits until it is cleared again.
        cold: whether reads that must not wait find nothing in memory.
        calls: how often each method was called.
        within: the folder whose files `fail` is about; all files by default.
    """

    def __init__(self, inner: StorageBackend) -> None:
        self._inner = inner
        self.name = f"faulty {inner.name}"
        self.fail: dict[str, int] = {}
        self.cold = False
        self.calls: dict[str, int] = {}
        self.within: Path | None = None
        self._paths: dict[int, Path] = {}
        self._free = threading.Event()
        self._free.set()
        self.sync_reached = threading.Event()

    def block_syncs(self) -> None:
        """Let every `sync` wait from now on."""
        self.sync_reached.clear()
        self._free.clear()

    def release_syncs(self) -> None:
        """Let them go on."""
        self._free.set()

    def _check(self, method: str, path: Path) -> None:
        self.calls[method] = self.calls.get(method, 0) + 1
        if self._fails(method, path):
            number = self.fail[method]
            raise OSError(number, os.strerror(number))

    def _fails(self, method: str, path: Path) -> bool:
        inside = self.within is None or self.within in {path, *path.parents}
        return inside and bool(self.fail.get(method))

    def make_dir(self, path: Path) -> None:
        """Create a folder."""
        self._check("make_dir", path)
        self._inner.make_dir(path)

    def list_dir(self, path: Path) -> list[str]:
        """Return the names in a folder."""
        self._check("list_dir", path)
        return self._inner.list_dir(path)

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file."""
        self._check("create" if create else "open", path)
        fd = self._inner.open(path, create=create)
        self._paths[fd] = path
        return fd

    def close(self, fd: int) -> None:
        """Give the file up."""
        self._paths.pop(fd, None)
        self._inner.close(fd)

    def size(self, fd: int) -> int:
        """Return the file's length."""
        return self._inner.size(fd)

    def write(self, fd: int, data: Buffer, offset: int) -> None:
        """Write; a failing write leaves half of its bytes behind, as a full disk does."""
        if self._fails("write", self._paths[fd]):
            self._inner.write(fd, memoryview(data)[: len(data) // 2], offset)
        self._check("write", self._paths[fd])
        self._inner.write(fd, data, offset)

    def read_into(
        self, fd: int, target: memoryview, offset: int, *, cached_only: bool = False
    ) -> int:
        """Read."""
        self._check("read_into", self._paths[fd])
        if cached_only and self.cold:
            raise WouldBlockError
        return self._inner.read_into(fd, target, offset, cached_only=cached_only)

    def sync(self, fd: int) -> None:
        """Make a file durable, as soon as a test lets it."""
        self._check("sync", self._paths[fd])
        self.sync_reached.set()
        self._free.wait()
        self._inner.sync(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Set the file's length."""
        self._check("truncate", self._paths[fd])
        self._inner.truncate(fd, size)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file or a folder."""
        self._check("rename", source)
        self._inner.rename(source, target)

    def remove(self, path: Path) -> None:
        """Remove a file or an empty folder."""
        self._check("remove", path)
        self._inner.remove(path)

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        self._check("sync_dir", path)
        self._inner.sync_dir(path)

    def pending_work(self) -> Callable[[], None] | None:
        """Return what the backend below wants to have run."""
        return self._inner.pending_work()

    def figures(self) -> Mapping[str, float]:
        """Return what the backend below counts."""
        return self._inner.figures()

    def finish(self) -> None:
        """Finish the backend below."""
        self._inner.finish()

    def release(self) -> None:
        """Release the backend below."""
        self._inner.release()
