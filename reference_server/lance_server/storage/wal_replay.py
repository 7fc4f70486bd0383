"""Replay: what a write-ahead log holds after a crash, and bringing it to where it belongs."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from lance_server.errors import DataDirError
from lance_server.storage.contract import StorageBackend, read_at
from lance_server.storage.redo import decode_entries
from lance_server.storage.wal_format import (
    GUARD,
    SECTOR,
    Logged,
    Use,
    holds_frames,
    lasting_name,
    read_frames,
)
from lance_spec.checksum import Buffer

_log = logging.getLogger(__name__)
FOLDER: Final = "wal"


class WalDamage(NamedTuple):
    """Something that was in a write-ahead log, and is lost.

    Attributes:
        path: the damaged file of the log, or the missing file that it has writes for.
        offset: where in it.
        length: bytes.
        note: what is wrong.
    """

    path: Path
    offset: int
    length: int
    note: str

    def __str__(self) -> str:
        return f"{self.path}: {self.length} bytes at {self.offset}: {self.note}"


class Misplaced(NamedTuple):
    """A write that stands in the log and not in its file.

    Attributes:
        path: the file.
        offset: where in it.
        data: the bytes.
    """

    path: Path
    offset: int
    data: Buffer


class Replayed(NamedTuple):
    """What became of a write-ahead log.

    Attributes:
        writes: how many writes were repeated.
        damage: what was lost.
    """

    writes: int = 0
    damage: tuple[WalDamage, ...] = ()


class _Write(NamedTuple):
    number: int
    logged: Logged
    old: bool


class _Contents(NamedTuple):
    writes: list[_Write]
    damage: list[WalDamage]


def repeat(storage: StorageBackend, data_dir: Path) -> Replayed:
    """Repeat what an earlier run left in a write-ahead log, durably, and remove that.

    Args:
        storage: the backend.
        data_dir: the data directory; it exists.

    Raises:
        DataDirError: the write-ahead log cannot be trusted.
        OSError: the disk refused; the log is still there.
    """
    present = _files_in(storage, data_dir)
    if present is None:
        return Replayed()
    try:
        contents = _read_all(storage, present)
        replayed = _Replay(storage, data_dir, contents).run()
    except ValueError as error:
        raise _untrusted(data_dir / FOLDER, error) from error
    if replayed.writes:
        _log.warning("the write-ahead log held %d writes; they were repeated", replayed.writes)
    if replayed.damage:
        _keep(storage, data_dir, present)
    remove_log(storage, data_dir, present)
    return replayed


def remove_log(storage: StorageBackend, data_dir: Path, files: Iterable[Path]) -> None:
    """Remove the files of a log and their folder, durably."""
    for path in files:
        storage.remove(path)
    storage.sync_dir(data_dir / FOLDER)
    storage.remove(data_dir / FOLDER)
    storage.sync_dir(data_dir)


def unrepeated(
    storage: StorageBackend, data_dir: Path
) -> tuple[list[Misplaced], tuple[WalDamage, ...]]:
    """Return what the next start will write to its place, and what it will report as lost.

    Args:
        storage: the backend; nothing is written.
        data_dir: a data directory that no server is using.

    Raises:
        DataDirError: the write-ahead log cannot be trusted.
        OSError: the disk refused.
    """
    try:
        contents = _read_all(storage, _files_in(storage, data_dir) or [])
        replay = _Replay(storage, data_dir, contents)
        return list(replay.misplaced()), replay.damage()
    except ValueError as error:
        raise _untrusted(data_dir / FOLDER, error) from error


class _Replay:
    """Repeats the writes of a log in the order of their numbers."""

    def __init__(self, storage: StorageBackend, root: Path, contents: _Contents) -> None:
        self._storage = storage
        self._root = root
        self._writes = contents.writes
        self._damage = contents.damage
        self._missing: Counter[Path] = Counter()
        self._listed: dict[Path, list[str]] = {}
        self._removed = {
            each.logged.name: each.number for each in self._writes if each.logged.data is None
        }

    def run(self) -> Replayed:
        """Write everything to its place, durably."""
        opened: dict[str, int | None] = {}
        done = 0
        try:
            for each in self._writes:
                name, offset, data = each.logged
                if data is None:
                    continue
                if name not in opened:
                    opened[name] = self._open(name)
                fd = opened[name]
                if fd is None:
                    self._note_missing(each)
                else:
                    self._storage.write(fd, data, offset)
                    done += 1
            for fd in opened.values():
                if fd is not None:
                    self._storage.sync(fd)
        finally:
            for fd in opened.values():
                if fd is not None:
                    self._storage.close(fd)
        return Replayed(done, self.damage())

    def misplaced(self) -> Iterator[Misplaced]:
        """Yield what does not stand in its place; nothing is written."""
        for each in self._writes:
            name, offset, data = each.logged
            if data is None:
                continue
            path = self._find(name)
            if path is None:
                self._note_missing(each)
            elif self._read(path, len(data), offset) != data:
                yield Misplaced(path, offset, data)

    def _read(self, path: Path, size: int, offset: int) -> bytearray:
        fd = self._storage.open(path)
        try:
            return read_at(self._storage, fd, size, offset)
        finally:
            self._storage.close(fd)

    def damage(self) -> tuple[WalDamage, ...]:
        """Return what is lost, files that are missing among it."""
        note = "the write-ahead log has writes for it, and it is missing"
        lost = [WalDamage(path, 0, size, note) for path, size in self._missing.items()]
        return (*self._damage, *lost)

    def _note_missing(self, each: _Write) -> None:
        name, _, data = each.logged
        if each.old or data is None:  # the first release removed files without a word in its log
            return
        folder, _, _ = name.rpartition("/")
        if all(self._removed.get(key, 0) < each.number for key in (name, folder)):
            self._missing[self._root / name] += len(data)

    def _open(self, name: str) -> int | None:
        path = self._find(name)
        return None if path is None else self._storage.open(path)

    def _find(self, name: str) -> Path | None:
        """Return where a file stands: a segment may have been closed since it was written to."""
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts:
            raise ValueError(
                f"the write-ahead log names a file outside the data directory: {name!r}"
            )
        folder = self._root / inside.parent
        if folder not in self._listed:
            try:
                self._listed[folder] = self._storage.list_dir(folder)
            except (FileNotFoundError, NotADirectoryError):
                self._listed[folder] = []
        listed = self._listed[folder]
        if inside.name in listed:
            return folder / inside.name
        closed = [each for each in listed if lasting_name(each) == inside.name]
        return folder / closed[0] if closed else None


def _read_all(storage: StorageBackend, paths: Iterable[Path]) -> _Contents:
    """Return what the files of a log hold, in the order in which it was written."""
    contents = _Contents([], [])
    for path in paths:
        fd = storage.open(path)
        try:
            data = bytes(read_at(storage, fd, storage.size(fd), 0))
        finally:
            storage.close(fd)
        _read_file(path, data, contents)
    contents.writes.sort(key=lambda each: each.number)
    return contents


def _read_file(path: Path, data: bytes, contents: _Contents) -> None:
    use = Use.decode(data[SECTOR:]) if data.startswith(GUARD) else None
    if use is None:
        if holds_frames(data):
            raise ValueError(f"the first sectors of {path.name} are damaged")
        contents.writes.extend(
            _Write(each.sequence, Logged(each.name, each.offset, each.data), old=True)
            for each in decode_entries(b"" if data.startswith(GUARD) else data)
        )
        return
    frames, damaged = read_frames(data, use)
    for frame in frames:
        contents.writes.extend(_Write(frame.number, each, old=False) for each in frame.writes)
    note = "damaged; acknowledged batches may be lost"
    contents.damage.extend(WalDamage(path, place, end - place, note) for place, end in damaged)


def _keep(storage: StorageBackend, data_dir: Path, paths: Iterable[Path]) -> None:
    """Copy a damaged log to the quarantine, durably."""
    quarantine = data_dir / "quarantine"
    storage.make_dir(quarantine)
    names = set(storage.list_dir(quarantine))
    number = next(n for n in range(1, len(names) + 2) if f"{FOLDER}-{n}" not in names)
    folder = quarantine / f"{FOLDER}-{number}"
    storage.make_dir(folder)
    for path in paths:
        reading, writing = storage.open(path), storage.open(folder / path.name, create=True)
        try:
            storage.write(writing, read_at(storage, reading, storage.size(reading), 0), 0)
            storage.sync(writing)
        finally:
            storage.close(reading)
            storage.close(writing)
    storage.sync_dir(folder)
    storage.sync_dir(quarantine)
    storage.sync_dir(data_dir)


def _files_in(storage: StorageBackend, data_dir: Path) -> list[Path] | None:
    """Return the files of a write-ahead log, or None where there is no such log."""
    if FOLDER not in storage.list_dir(data_dir):
        return None
    return [data_dir / FOLDER / name for name in storage.list_dir(data_dir / FOLDER)]


def _untrusted(folder: Path, error: ValueError) -> DataDirError:
    return DataDirError(f"{folder}: {error}; move the folder away to start")
