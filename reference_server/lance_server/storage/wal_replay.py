"""Replay: what a write-ahead log holds after a crash, and bringing it to where it belongs."""

import logging
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from lance_server.errors import DataDirError
from lance_server.storage.contract import (
    DISK_FULL,
    StorageBackend,
    close_all,
    read_at,
    replace_file,
)
from lance_server.storage.wrapper import WrapperStorage
from lance_spec.checksum import Buffer
from lance_spec.disk.redo_entries import decode_entries
from lance_spec.disk.wal_frames import (
    END,
    FILE_ID_SIZE,
    GUARD,
    SECTOR,
    Logged,
    Use,
    encode_frame,
    encode_removal,
    encode_write,
    holds_frames,
    lasting_name,
    read_frames,
)

_log = logging.getLogger(__name__)
FOLDER: Final = "wal"
_HELD: Final = "held-"
_TOPIC: Final = re.compile(r"segments/(\d+)")


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
        held: what could not be repeated, by topic; until it is, nothing else may be done there.
    """

    writes: int = 0
    damage: tuple[WalDamage, ...] = ()
    held: tuple["Held", ...] = ()


class _Write(NamedTuple):
    number: int
    logged: Logged
    old: bool


class Held(NamedTuple):
    """Writes for one topic that the disk refused to repeat.

    Attributes:
        folder: the topic's.
        file: where they are kept until they are repeated, in the write-ahead log's folder.
        writes: they, and the removals in that folder.
        error: why.
    """

    folder: Path
    file: Path
    writes: list[_Write]
    error: str


class _Contents(NamedTuple):
    writes: list[_Write]
    damage: list[WalDamage]


def repeat(storage: StorageBackend, data_dir: Path) -> Replayed:
    """Repeat what an earlier run left in a write-ahead log, durably, and remove that.

    What the disk refuses for one topic is kept in a file of its own; `with_held` goes on from it.

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
    for held in replayed.held:
        _log.error("%s cannot be served: %s", held.folder, held.error)
        replace_file(storage, held.file, _encode_held(held))
    remove_log(storage, data_dir, {held.file.name for held in replayed.held})
    return replayed


def remove_log(storage: StorageBackend, data_dir: Path, kept: Collection[str]) -> None:
    """Remove the files of a log but those with some names, and their folder, durably."""
    folder = data_dir / FOLDER
    for name in storage.list_dir(folder):
        if name not in kept:
            storage.remove(folder / name)
    storage.sync_dir(folder)
    if not kept:
        storage.remove(folder)
        storage.sync_dir(data_dir)


def is_held(name: str) -> bool:
    """Whether a file in the log's folder keeps what could not be repeated for a topic."""
    return name.startswith(_HELD)


def _encode_held(held: Held) -> bytes:
    """Return writes as a file of the log has them."""
    use = Use(os.urandom(FILE_ID_SIZE), 1)
    frames = []
    for index, (number, (name, offset, data), _) in enumerate(held.writes, 1):
        named = name.encode()
        pieces = encode_removal(named) if data is None else encode_write(named, offset, data)
        frames.append(encode_frame(use, index, number, pieces))
    return b"".join((GUARD, use.encode().ljust(SECTOR, b"\0"), *frames, END))


class HeldStorage(WrapperStorage):
    """A backend that repeats what was held for a topic before the topic's folder is used.

    Args:
        inner: does the work.
        data_dir: the data directory.
        held: what `repeat` could not do.
    """

    def __init__(self, inner: StorageBackend, data_dir: Path, held: Iterable[Held]) -> None:
        super().__init__(inner)
        self._root = data_dir
        self._held = {each.folder: each for each in held}

    def __repr__(self) -> str:
        return f"<HeldStorage {self.name} for {len(self._held)} topics>"

    def settle_folder(self, path: Path) -> None:
        """Repeat what was held for a topic, durably; only then is it given up.

        Raises:
            OSError: the disk refused; it is still held.
        """
        held = self._held.get(path)
        if held is None:
            return
        try:
            replay = _Replay(self.inner, self._root, _Contents(held.writes, []))
            done = replay.repeat(held.writes)
            if held.file.name in self.inner.list_dir(held.file.parent):
                self.inner.remove(held.file)
            self.inner.sync_dir(held.file.parent)
        except OSError as error:
            why = f"what the write-ahead log has for {path} is not repeated: {error}"
            raise OSError(error.errno, why) from error
        del self._held[path]
        _log.warning("%d writes of the write-ahead log were repeated for %s", done, path)
        for each in replay.damage():
            _log.error("acknowledged batches may be lost: %s", each)


def with_held(storage: StorageBackend, data_dir: Path, replayed: Replayed) -> StorageBackend:
    """Return the backend to go on with after `repeat`."""
    return HeldStorage(storage, data_dir, replayed.held) if replayed.held else storage


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
        """Write everything to its place, durably; what one topic's files refuse is held.

        Raises:
            OSError: the disk is full, or it refused what no topic's folder has.
        """
        done, held = 0, list[Held]()
        for name, writes in self._by_folder().items():
            topic = _TOPIC.fullmatch(name)
            try:
                done += self.repeat(writes)
            except OSError as error:
                if topic is None or error.errno in DISK_FULL:
                    raise
                file = self._root / FOLDER / f"{_HELD}{topic[1]}.wal"
                held.append(Held(self._root / name, file, writes, str(error)))
        return Replayed(done, self.damage(), tuple(held))

    def _by_folder(self) -> dict[str, list[_Write]]:
        folders: dict[str, list[_Write]] = {}
        for each in self._writes:
            name = each.logged.name  # of a removal it may be the folder's own
            folder = name if _TOPIC.fullmatch(name) else name.rpartition("/")[0]
            folders.setdefault(folder, []).append(each)
        return folders

    def repeat(self, writes: Iterable[_Write]) -> int:
        """Write to their places, durably, and return how many writes that were.

        Raises:
            OSError: the disk refused; it may be repeated.
        """
        opened: dict[str, int | None] = {}
        done = 0
        try:
            for each in writes:
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
            close_all(self._storage, [fd for fd in opened.values() if fd is not None])
        return done

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
    names = storage.list_dir(data_dir / FOLDER)
    return [data_dir / FOLDER / name for name in names if not name.endswith(".tmp")]


def _untrusted(folder: Path, error: ValueError) -> DataDirError:
    return DataDirError(f"{folder}: {error}; move the folder away to start")
