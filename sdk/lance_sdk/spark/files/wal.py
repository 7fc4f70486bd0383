"""The server's write-ahead log, held against the files that it stands for (AMB-50).

With ``--durability wal`` a batch is durable in the folder ``wal`` before it is in its segment. A
running server writes to both, but after the machine has stopped, and in a copy of the data
directory, the segments may lack what the next start of the server repeats from the log. Readers
of files see the segments as they will be then.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, NamedTuple

from lance_sdk.spark.files.storage import Entry, entries, opened
from lance_spec.disk.redo_entries import decode_entries
from lance_spec.disk.wal_frames import (
    GUARD,
    HEADER_SIZE,
    SECTOR,
    Use,
    frame_size,
    holds_frames,
    lasting_name,
    read_frames,
)

FOLDER: Final = "wal"
_BLOCK: Final = 256 << 10
"""Bytes that are read of a file at a time, from where its last known frame ends."""


class PendingWrite(NamedTuple):
    """Bytes that belong into a file.

    Attributes:
        offset: where in the file.
        data: the bytes.
    """

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        """Where they end in the file."""
        return self.offset + len(self.data)


class _Write(NamedTuple):
    number: int
    offset: int
    data: bytes


@dataclass(slots=True)
class _WalFile:
    """What is known of one file of the log.

    Attributes:
        use: which use of the file that is; None for a file of the first release.
        position: where the next frame goes.
        last: ordinal of the last frame.
        writes: what the frames hold, by the lasting names of the files it is for.
        damage: what cannot be read, in words.
    """

    use: Use | None
    position: int = HEADER_SIZE
    last: int = 0
    writes: dict[str, list[_Write]] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)

    def add(self, name: str, number: int, offset: int, data: Any) -> None:
        self.writes.setdefault(name, []).append(_Write(number, offset, bytes(data)))


class WriteAheadLog:
    """What the log of one data directory holds, followed while a server appends to it.

    Args:
        data_dir: the data directory.
    """

    def __init__(self, data_dir: str) -> None:
        self.data_dir = data_dir.rstrip("/")
        self._files: dict[str, _WalFile] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<WriteAheadLog {self.data_dir}/{FOLDER} {len(self._files)} files>"

    @property
    def damage(self) -> list[str]:
        """What of the log cannot be read, in words."""
        return [text for path in sorted(self._files) for text in self._files[path].damage]

    def refresh(self) -> None:
        """Read what was appended since the last time, and forget what has been used again.

        Raises:
            OSError: a file cannot be read.
        """
        with self._lock:
            listed = {entry.path: entry for entry in self._listed()}
            for path in set(self._files) - set(listed):
                del self._files[path]
            for path in listed:
                try:
                    self._refresh(path)
                except FileNotFoundError:  # a server has stopped cleanly, or has started
                    self._files.pop(path, None)

    def is_current(self) -> bool:
        """Whether no file was used again since `refresh`: what it held is in its place then."""
        with self._lock:
            listed = {entry.path for entry in self._listed()}
            if listed != set(self._files):
                return False
            try:
                return all(_use_of(path) == known.use for path, known in self._files.items())
            except FileNotFoundError:
                return False

    def lacking(self, path: str) -> list[PendingWrite]:
        """Return what the log has for a file and the file has not, by offset.

        Raises:
            OSError: the file cannot be read.
        """
        name = lasting_name(path.removeprefix(self.data_dir).lstrip("/"))
        with self._lock:
            known = [file.writes[name] for file in self._files.values() if name in file.writes]
            if not known:
                return []
            with opened(path) as file:
                found = [
                    run
                    for run in _runs(sorted(write for writes in known for write in writes))
                    if file.size() < run.end
                    or bytes(file.read_at(len(run.data), run.offset)) != run.data
                ]
            if not found:  # and never again, as long as the log stays
                for each in self._files.values():
                    each.writes.pop(name, None)
            return found

    @contextmanager
    def opened(self, path: str) -> Iterator[Any]:
        """Open a file as it will be once the log is repeated; see `storage.opened`."""
        runs = self.lacking(path)
        with opened(path) as file:
            yield RepeatedFile(file, runs) if runs else file

    def _listed(self) -> list[Entry]:
        try:
            return [e for e in entries(f"{self.data_dir}/{FOLDER}") if not e.is_folder]
        except FileNotFoundError:
            return []

    def _refresh(self, path: str) -> None:
        use = _use_of(path)
        known = self._files.get(path)
        is_new = known is None or use is None or known.use != use or bool(known.damage)
        if known is None or is_new:
            known = self._files[path] = _WalFile(use)
        with opened(path) as file:
            if use is None:
                _read_first_release(path, bytes(file.read_at(file.size(), 0)), known)
                return
            size = file.size() if is_new else _BLOCK
            while _read_block(path, file, known, use, size):
                size = _BLOCK


def _use_of(path: str) -> Use | None:
    with opened(path) as file:
        head = bytes(file.read_at(min(HEADER_SIZE, file.size()), 0))
    return Use.decode(head[SECTOR:]) if head.startswith(GUARD) else None


def _read_first_release(path: str, data: bytes, known: _WalFile) -> None:
    if holds_frames(data):
        known.damage.append(f"{path}: its first sectors are damaged; no server starts with it")
    elif not data.startswith(GUARD):
        for each in decode_entries(data):
            known.add(each.name, each.sequence, each.offset, each.data)


def _read_block(path: str, file: Any, known: _WalFile, use: Use, size: int) -> bool:
    """Read frames from where the last one ends; return whether there may be more."""
    begin = known.position
    data = file.read_at(max(0, min(size, file.size() - begin)), begin)
    if (whole := frame_size(data, use)) > len(data):
        data = file.read_at(max(0, min(whole, file.size() - begin)), begin)
    frames, damaged = read_frames(data, use, 0, known.last)
    known.damage += [
        f"{path}: the bytes from {begin + start} to {begin + end} are damaged; acknowledged "
        "batches may be lost"
        for start, end in damaged
    ]
    for frame in frames:
        for each in frame.writes:
            if each.data is not None:
                known.add(each.name, frame.number, each.offset, each.data)
    if not frames:
        return False
    known.position, known.last = begin + frames[-1].end, frames[-1].ordinal
    return True


def _runs(writes: Sequence[_Write]) -> Iterator[PendingWrite]:
    """Yield what writes leave in a file, later ones over earlier ones, in as few runs as can be."""
    groups: list[list[_Write]] = []
    end = -1
    for each in sorted(writes, key=itemgetter(1)):
        if each.offset > end:
            groups.append([])
            end = each.offset
        groups[-1].append(each)
        end = max(end, each.offset + len(each.data))
    for group in groups:
        first = group[0].offset
        content = bytearray(max(each.offset + len(each.data) for each in group) - first)
        for number, offset, data in sorted(group):
            del number
            content[offset - first : offset - first + len(data)] = data
        yield PendingWrite(first, bytes(content))


class RepeatedFile:
    """A file with what a write-ahead log has for it, as `storage.opened` yields one.

    Args:
        file: the file as it is.
        runs: what belongs into it.
    """

    def __init__(self, file: Any, runs: Sequence[PendingWrite]) -> None:
        self._file = file
        self._runs = runs
        self._position = 0

    def __repr__(self) -> str:
        return f"<RepeatedFile {self._file!r} {len(self._runs)} runs>"

    def size(self) -> int:
        """Return the bytes it has."""
        return max(int(self._file.size()), *(run.end for run in self._runs))

    def read_at(self, length: int, offset: int) -> bytes:
        """Return some bytes, fewer at the end."""
        found = bytearray(max(0, min(length, self.size() - offset)))
        present = bytes(self._file.read_at(len(found), offset))
        found[: len(present)] = present
        for run in self._runs:
            first, behind = max(offset, run.offset), min(offset + len(found), run.end)
            if first < behind:
                found[first - offset : behind - offset] = run.data[
                    first - run.offset : behind - run.offset
                ]
        return bytes(found)

    def seek(self, offset: int) -> None:
        """Go where `readinto` reads."""
        self._position = offset

    def readinto(self, target: memoryview) -> int:
        """Read on into memory; return how many bytes."""
        data = self.read_at(len(target), self._position)
        target[: len(data)] = data
        self._position += len(data)
        return len(data)


_known: dict[str, WriteAheadLog] = {}
_known_lock = threading.Lock()


def log_of(data_dir: str) -> WriteAheadLog:
    """Return the write-ahead log of a data directory as it is now; empty where there is none.

    Raises:
        OSError: it cannot be read.
    """
    with _known_lock:
        found = _known.setdefault(data_dir.rstrip("/"), WriteAheadLog(data_dir))
    found.refresh()
    return found


@contextmanager
def opened_repeated(path: str, data_dir: str | None) -> Iterator[Any]:
    """Open a file, with what the write-ahead log of a data directory has for it, if one is given.

    Raises:
        FileNotFoundError: it is gone.
        OSError: it cannot be read.
    """
    if data_dir is None:
        with opened(path) as file:
            yield file
        return
    with log_of(data_dir).opened(path) as file:
        yield file
