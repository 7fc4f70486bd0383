"""Disk images: what a loss of power leaves of a folder whose changes were recorded.

The record is what `faults.c` writes, or `RecordingStorage`. What was synced is there; of what was
not, any part is: writes torn at sectors, and any subset of the changes to the names in a folder.
After a sync that failed, what it was to write may be lost although a later one succeeds.
"""

import os
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path, PurePosixPath
from random import Random
from typing import Final, NamedTuple, Union

from lance_server.storage.contract import StorageBackend, Write
from lance_server.storage.wrapper import WrapperStorage
from lance_spec.checksum import Buffer

_HEAD: Final = struct.Struct("<BBHLQQ")
_SECTOR: Final = 512


class Kind(IntEnum):
    """What was changed."""

    WRITE = 1
    DURABLE_WRITE = 2
    TRUNCATE = 3
    SYNC_BEGIN = 4
    SYNC_END = 5
    CREATE = 6
    RENAME = 7
    REMOVE = 8
    MAKE_DIR = 9
    SYNC_DIR_BEGIN = 10
    SYNC_DIR_END = 11


class Change(NamedTuple):
    """One entry of the record.

    Attributes:
        kind: what was changed.
        ok: whether it succeeded.
        inode: the file's number.
        offset: where in it; of a sync, its number.
        names: paths below the folder.
        data: what was written.
    """

    kind: Kind
    ok: bool
    inode: int
    offset: int
    names: tuple[str, ...]
    data: bytes


def read_changes(path: Path) -> Iterator[Change]:
    """Yield what was recorded, in order; an entry that is cut short is the end."""
    raw = path.read_bytes()
    place = 0
    while place + _HEAD.size <= len(raw):
        kind, ok, names, size, inode, offset = _HEAD.unpack_from(raw, place)
        place += _HEAD.size
        if place + names + size > len(raw):
            return
        texts = tuple(raw[place : place + names].decode().split("\0"))
        data = raw[place + names : place + names + size]
        yield Change(Kind(kind), bool(ok), inode, offset, texts, data)
        place += names + size


class _State(IntEnum):
    PENDING = 0
    DOUBTFUL = 1
    DURABLE = 2


@dataclass(slots=True, eq=False)
class _Step:
    """A write, at an offset, or a new length."""

    offset: int
    data: bytes | None
    state: _State = _State.PENDING


@dataclass(slots=True, eq=False)
class _File:
    steps: list[_Step] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Rename:
    """A change to the names of one or two folders."""

    names: "dict[_Folder, dict[str, _Node | None]]"
    is_durable: bool = False


@dataclass(slots=True, eq=False)
class _Folder:
    names: "dict[str, _Node]" = field(default_factory=dict)
    changes: list[_Rename] = field(default_factory=list)


_Node = Union[_File, _Folder]  # noqa: UP007 - a name of a class that comes later


class SimulatedDisk:
    """Repeats recorded changes of a folder, which was empty at first, and makes images of it.

    Attributes:
        durable_syncs: how many syncs made something durable.
    """

    def __init__(self) -> None:
        self._root = _Folder()
        self._files: dict[int, _File] = {}
        self._syncs: dict[int, tuple[_File | _Folder, int]] = {}
        self.durable_syncs = 0

    def load(self, folder: Path) -> None:
        """Take what a folder holds for what is durable, and forget everything else."""
        self._files, self._syncs = {}, {}
        self._root = self._loaded(folder)

    def _loaded(self, folder: Path) -> _Folder:
        names: dict[str, _Node] = {}
        for path in folder.iterdir():
            if path.is_dir():
                names[path.name] = self._loaded(path)
            else:
                file = _File([_Step(0, path.read_bytes(), _State.DURABLE)])
                names[path.name] = self._files[path.stat().st_ino] = file
        loaded = _Folder(dict(names))
        loaded.changes.append(_Rename({loaded: dict(names)}, is_durable=True))
        return loaded

    def apply(self, changes: Sequence[Change]) -> None:
        """Repeat changes."""
        for each in changes:
            self._apply(each)

    def _apply(self, change: Change) -> None:
        match change.kind:
            case Kind.WRITE | Kind.DURABLE_WRITE:
                state = _State.PENDING
                if change.kind is Kind.DURABLE_WRITE:
                    state = _State.DURABLE if change.ok else _State.DOUBTFUL
                self._files[change.inode].steps.append(_Step(change.offset, change.data, state))
            case Kind.TRUNCATE:
                self._files[change.inode].steps.append(_Step(change.offset, None))
            case Kind.CREATE:
                self._files[change.inode] = file = _File()
                self._set_name(change.names[0], file)
            case Kind.MAKE_DIR:
                self._set_name(change.names[0], _Folder())
            case Kind.REMOVE:
                self._set_name(change.names[0], None)
            case Kind.RENAME:
                self._rename(*change.names)
            case _:
                self._sync(change)

    def _sync(self, change: Change) -> None:
        target = (
            self._files[change.inode]
            if change.kind in (Kind.SYNC_BEGIN, Kind.SYNC_END)
            else self._folder(PurePosixPath(change.names[0]))
        )
        if change.kind in (Kind.SYNC_BEGIN, Kind.SYNC_DIR_BEGIN):
            count = len(target.steps if isinstance(target, _File) else target.changes)
            self._syncs[change.offset] = (target, count)
            return
        target, count = self._syncs.pop(change.offset)
        if isinstance(target, _Folder):
            for each in target.changes[:count] if change.ok else ():
                each.is_durable = True
        else:
            for step in target.steps[:count]:
                if step.state is _State.PENDING:
                    step.state = _State.DURABLE if change.ok else _State.DOUBTFUL
        self.durable_syncs += change.ok

    def _folder(self, path: PurePosixPath) -> _Folder:
        found: _Node = self._root
        for name in path.parts[1:]:
            assert isinstance(found, _Folder), path
            found = found.names[name]
        assert isinstance(found, _Folder), path
        return found

    def _set_name(self, name: str, node: _Node | None) -> None:
        path = PurePosixPath(name)
        self._change({self._folder(path.parent): {path.name: node}})

    def _rename(self, old: str, new: str) -> None:
        source, target = PurePosixPath(old), PurePosixPath(new)
        before, after = self._folder(source.parent), self._folder(target.parent)
        names: dict[_Folder, dict[str, _Node | None]] = {before: {source.name: None}}
        names.setdefault(after, {})[target.name] = before.names[source.name]
        self._change(names)

    def _change(self, names: dict[_Folder, dict[str, _Node | None]]) -> None:
        rename = _Rename(names)
        for folder, changed in names.items():
            folder.changes.append(rename)
            _set_names(folder.names, changed)

    def write_image(self, target: Path, random: Random, likelihood: float | None = None) -> None:
        """Write what is left after a loss of power now.

        Args:
            target: a folder that does not exist yet.
            random: decides what of that which was not synced is there.
            likelihood: that a part of it is there; None: one of several, at random.
        """
        if likelihood is None:
            likelihood = random.choice([0.0, 0.5, 0.9, 1.0])
        self._write_folder(self._root, target, random, likelihood, {})

    def _write_folder(
        self,
        folder: _Folder,
        target: Path,
        random: Random,
        likelihood: float,
        decided: dict[int, bool],
    ) -> None:
        target.mkdir()
        names: dict[str, _Node] = {}
        for rename in folder.changes:
            is_there = decided.setdefault(id(rename), random.random() < likelihood)
            if rename.is_durable or is_there:
                _set_names(names, rename.names[folder])
        for name, node in names.items():
            if isinstance(node, _Folder):
                self._write_folder(node, target / name, random, likelihood, decided)
            else:
                (target / name).write_bytes(_content(node, random, likelihood))


def _set_names(names: dict[str, _Node], changed: "dict[str, _Node | None]") -> None:
    for name, node in changed.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _content(file: _File, random: Random, likelihood: float) -> bytes:
    content = bytearray()
    for step in file.steps:
        is_sure = step.state is _State.DURABLE
        if step.data is None:
            if is_sure or random.random() < likelihood:
                content[step.offset :] = bytes(max(0, step.offset - len(content)))
        elif is_sure:
            _put(content, step.offset, step.data)
        else:
            for place, piece in _sectors(step.offset, step.data):
                if random.random() < likelihood:
                    _put(content, place, piece)
    return bytes(content)


def _sectors(offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place < len(data):
        end = place + _SECTOR - (offset + place) % _SECTOR
        yield offset + place, data[place:end]
        place = end


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class RecordingStorage(WrapperStorage):
    """A backend that records every change as the library does, for those that pass it by.

    Args:
        inner: does the work.
        root: the folder.
        record: the file to append to; it must not exist yet.

    Attributes:
        events: how many changes were recorded.
    """

    def __init__(self, inner: StorageBackend, root: Path, record: Path) -> None:
        super().__init__(inner)
        self._root = root
        self._file = record.open("xb", buffering=0)
        self._lock = threading.Lock()
        self._syncs = 0
        self.events = 0

    def make_dir(self, path: Path) -> None:
        """Create a folder; one that exists is fine."""
        is_new = not path.exists()
        self.inner.make_dir(path)
        if is_new:
            self._append(Kind.MAKE_DIR, names=(path,))

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file."""
        fd = self.inner.open(path, create=create)
        if create:
            self._append(Kind.CREATE, fd, names=(path,))
        return fd

    def write(self, fd: int, data: Buffer, offset: int) -> None:
        """Write all of ``data`` at ``offset``, or raise."""
        self.inner.write(fd, data, offset)
        self._append(Kind.WRITE, fd, offset, data=bytes(data))

    def truncate(self, fd: int, size: int) -> None:
        """Set the file's length."""
        self.inner.truncate(fd, size)
        self._append(Kind.TRUNCATE, fd, size)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file or folder."""
        self.inner.rename(source, target)
        self._append(Kind.RENAME, names=(source, target))

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder that is empty."""
        self.inner.remove(path)
        self._append(Kind.REMOVE, names=(path,))

    def sync(self, fd: int) -> None:
        """Make the file's bytes and length durable."""
        number = self._begin(Kind.SYNC_BEGIN, fd)
        self.inner.sync(fd)
        self._append(Kind.SYNC_END, fd, number)

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        number = self._begin(Kind.SYNC_DIR_BEGIN, None, path)
        self.inner.sync_dir(path)
        self._append(Kind.SYNC_DIR_END, None, number, names=(path,))

    def commit(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files and make them durable."""
        errors = self.inner.commit(writes)
        for each, error in zip(writes, errors, strict=True):
            if error is None:
                self._append(Kind.DURABLE_WRITE, each.fd, each.offset, data=bytes(each.data))
        return errors

    def release(self) -> None:
        """Close what the backend keeps open, and the record."""
        self.inner.release()
        self._file.close()

    def _begin(self, kind: Kind, fd: int | None, *names: Path) -> int:
        with self._lock:
            self._syncs += 1
            number = self._syncs
        self._append(kind, fd, number, names=names)
        return number

    def _append(
        self,
        kind: Kind,
        fd: int | None = None,
        offset: int = 0,
        *,
        names: Sequence[Path] = (),
        data: bytes = b"",
    ) -> None:
        inode = 0 if fd is None else os.fstat(fd).st_ino
        below = ["/" + path.relative_to(self._root).as_posix() for path in names]
        text = "\0".join(below).replace("/.", "").encode()
        head = _HEAD.pack(kind, True, len(text), len(data), inode, offset)
        with self._lock:
            self._file.write(head + text + data)
            self.events += 1
