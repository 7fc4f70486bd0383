"""What one process sees of a simulated disk: a storage backend, with faults."""

import errno
import os
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Final

from greenlet import GreenletExit
from tests.simulation.disk import File, Folder, Move, Piece, SimDisk
from tests.simulation.faults import STOPS, Fault
from tests.simulation.model import ViolationError
from tests.simulation.world import World

from lance_server.storage.contract import NoShortcuts, WouldBlockError, Write
from lance_spec.checksum import Buffer

_FIRST_FD: Final = 3
_TOPIC_FILES: Final = {".lnc", ".batches"}
_COLD: Final = 0.1
"""How likely a read that must not wait finds nothing in memory."""
_TAKEN_BACK: Final = 1.0
"""Seconds in which a write that the disk refused is taken back."""


class StoppedError(GreenletExit):
    """The process is over; whatever it still does has no effect."""


class Mount(NoShortcuts):
    """A storage backend over a simulated disk, for one life of a process.

    Args:
        disk: the disk.
        world: whose threads call.
        kind: how commits become durable: ``dsync`` one after the other, ``uring`` side by side,
            ``cache`` not at all.
        stop: called with one of `STOPS` when a fault ends the process; does not return.

    Attributes:
        faults: what is to go wrong.
        files: the open files.
        dead: whether the process is over.
        is_loop: whether the thread of the event loop asks; it must not wait for what workers do.
    """

    def __init__(self, disk: SimDisk, world: World, kind: str, stop: Callable[[str], None]) -> None:
        self.name = f"simulated {kind}"
        self.faults: list[Fault] = []
        self.files: dict[int, tuple[Path, File]] = {}
        self.dead = False
        self.is_loop: Callable[[], bool] = lambda: False
        self._disk = disk
        self._world = world
        self._kind = kind
        self._stop = stop
        self._refused_at = -inf

    # Faults ----------------------------------------------------------------------------------

    def _begin(self, method: str, path: Path) -> Fault | None:
        """Begin a call: raise what happens before it, return what happens after it."""
        self._world.pause()
        if self.dead:
            raise StoppedError
        met = [fault for fault in self.faults if fault.meets(method, path)]
        if not met:
            return None
        if not met[0].after:
            self._strike(met[0], path)
        return met[0]

    def _end(self, fault: Fault | None, path: Path) -> None:
        if fault is not None:
            self._strike(fault, path)

    def _strike(self, fault: Fault, path: Path) -> None:
        if fault.error in STOPS:
            self._stop(fault.error)
            raise StoppedError
        self._refused_at = self._world.now
        raise fault.as_error(path)

    def _change(self, path: Path) -> None:
        if self._disk.read_only:
            raise self._refusal(errno.EROFS, path)

    def _refusal(self, number: int, path: Path) -> OSError:
        self._refused_at = self._world.now
        return _error(number, path)

    def _file(self, fd: int) -> tuple[Path, File]:
        if self.dead:
            raise StoppedError
        try:
            return self.files[fd]
        except KeyError:
            raise _error(errno.EBADF, Path(f"descriptor {fd}")) from None

    # Names -----------------------------------------------------------------------------------

    def make_dir(self, path: Path) -> None:
        """Create a folder; one that exists is fine."""
        fault = self._begin("make_dir", path)
        self._change(path)
        parent = self._disk.folder(path.parent)
        if path.name not in parent.names:
            if not self._disk.take_name():
                raise self._refusal(errno.ENOSPC, path)
            parent.change(Move(None, path.name, Folder()))
        self._end(fault, path)

    def list_dir(self, path: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        fault = self._begin("list_dir", path)
        self._end(fault, path)
        return sorted(self._disk.folder(path).names)

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file; with ``create`` it must not exist yet."""
        fault = self._begin("create" if create else "open", path)
        names = self._disk.folder(path.parent)
        node = names.names.get(path.name)
        if create:
            self._change(path)
            if node is not None:
                raise _error(errno.EEXIST, path)
            if not self._disk.take_name():
                raise self._refusal(errno.ENOSPC, path)
            node = File()
            names.change(Move(None, path.name, node))
        elif node is None:
            raise _error(errno.ENOENT, path)
        if isinstance(node, Folder):
            raise _error(errno.EISDIR, path)
        self._end(fault, path)
        fd = _FIRST_FD
        while fd in self.files:  # the lowest that is free, as the system does
            fd += 1
        self.files[fd] = path, node
        return fd

    def close(self, fd: int) -> None:
        """Give the file up."""
        path, _ = self._file(fd)
        del self.files[fd]  # also where it fails, as Linux does
        self._end(self._begin("close", path), path)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file or folder, replacing a file that is there."""
        fault = self._begin("rename", source)
        self._change(source)
        folder = self._disk.folder(source.parent)
        node = folder.names.get(source.name)
        if node is None:
            raise _error(errno.ENOENT, source)
        if source.parent != target.parent:
            raise _error(errno.EXDEV, target)
        replaced = folder.names.get(target.name)
        if isinstance(replaced, Folder) and replaced.names:
            raise _error(errno.ENOTEMPTY, target)
        folder.change(Move(source.name, target.name, node))
        if replaced is not None:
            self._disk.give(replaced)
        self._end(fault, source)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder that is empty."""
        fault = self._begin("remove", path)
        self._change(path)
        folder = self._disk.folder(path.parent)
        node = folder.names.get(path.name)
        if node is None:
            raise _error(errno.ENOENT, path)
        if isinstance(node, Folder) and node.names:
            raise _error(errno.ENOTEMPTY, path)
        folder.change(Move(path.name, None, node))
        self._disk.give(node)
        self._end(fault, path)

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        fault = self._begin("sync_dir", path)
        self._change(path)
        self._disk.folder(path).sync()
        self._end(fault, path)

    # Bytes -----------------------------------------------------------------------------------

    def size(self, fd: int) -> int:
        """Return the file's length in bytes."""
        return len(self._file(fd)[1].content)

    def write(self, fd: int, data: Buffer, offset: int) -> None:
        """Write all of ``data`` at ``offset``, or raise."""
        path, file = self._file(fd)
        fault = self._begin("write", path)
        self._write(path, file, Piece(offset, bytes(data)))
        self._end(fault, path)

    def _write(self, path: Path, file: File, piece: Piece) -> None:
        self._change(path)
        assert piece.data is not None, "a write has bytes"
        more = piece.offset + len(piece.data) - len(file.content)
        if more > 0 and (taken := self._disk.take(more)) < more:
            kept = max(0, len(piece.data) - more + taken)
            file.change(Piece(piece.offset, piece.data[:kept]))
            raise self._refusal(errno.ENOSPC, path)
        if piece.data:
            file.change(piece)

    def read_into(
        self, fd: int, target: memoryview, offset: int, *, cached_only: bool = False
    ) -> int:
        """Fill ``target`` from ``offset`` on; return how many bytes there were."""
        path, file = self._file(fd)
        fault = self._begin("read_into", path)
        if cached_only and self._world.random.random() < _COLD:
            raise WouldBlockError
        piece = file.content[offset : offset + len(target)]
        target[: len(piece)] = piece
        self._end(fault, path)
        return len(piece)

    def sync(self, fd: int) -> None:
        """Make the file's bytes and length durable."""
        path, file = self._file(fd)
        self._judge_sync(path)
        try:
            fault = self._begin("sync", path)
            self._change(path)
        except OSError:
            file.fail_sync(self._world.random)
            raise
        file.sync()
        self._end(fault, path)

    def _judge_sync(self, path: Path) -> None:
        """Judge that the event loop syncs no topic's file, unless it takes a failed write back."""
        troubled = self.faults or self._disk.room is not None or self._disk.read_only
        troubled = troubled or self._world.now - self._refused_at < _TAKEN_BACK
        if path.suffix in _TOPIC_FILES and not troubled and self.is_loop():
            self._world.errors.append(ViolationError(f"the event loop waits for a sync of {path}"))

    def truncate(self, fd: int, size: int) -> None:
        """Set the file's length."""
        path, file = self._file(fd)
        fault = self._begin("truncate", path)
        self._change(path)
        if size > len(file.content) and self._disk.room is not None and not self._disk.room:
            raise self._refusal(errno.ENOSPC, path)
        file.change(Piece(size, None))
        self._end(fault, path)

    def commit(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files and make them durable; return what went wrong for each."""
        order = list(range(len(writes)))
        if self._kind == "uring":
            self._world.random.shuffle(order)
        errors: list[OSError | None] = [None] * len(writes)
        for number in order:
            try:
                self._commit(writes[number])
            except OSError as error:
                errors[number] = error
        return errors

    def _commit(self, each: Write) -> None:
        if self._kind == "cache":
            self.write(*each)
            return
        path, file = self._file(each.fd)
        piece = Piece(each.offset, bytes(each.data), durable=True)
        try:
            fault = self._begin("commit", path)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:  # a file system without durable writes
                self.write(*each)
                self.sync(each.fd)
                return
            self._lose(file, piece)
            raise
        self._write(path, file, piece)
        self._end(fault, path)

    def _lose(self, file: File, piece: Piece) -> None:
        """Let a durable write fail: it may be in the cache, and in part on the disk."""
        random = self._world.random
        if random.random() < 0.5:
            file.change(Piece(piece.offset, piece.data))
            part = file.pending.pop()
            for each in part.torn(random):
                file.pending.append(each._replace(durable=True))
            file.lost = True


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))
