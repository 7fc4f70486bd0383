"""The write-ahead log's file: entries, ended by a length of 0 (AMB-47, AMB-50)."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from struct import Struct
from typing import Final

from lance_server.storage.contract import StorageBackend, read_at
from lance_spec.checksum import CRC32C, Buffer

_log = logging.getLogger(__name__)
_FRAME: Final = Struct("<LL")
_BODY: Final = Struct("<QQH")
END: Final = bytes(4)
_ZEROS: Final = bytes(1024 * 1024)


@dataclass(frozen=True, slots=True)
class Entry:
    """A write that is to be repeated if the machine stops.

    Attributes:
        sequence: rises with each entry, over all files of the write-ahead log.
        name: the file, relative to the data directory.
        offset: where in the file.
        data: what to write.
    """

    sequence: int
    name: str
    offset: int
    data: Buffer

    def encode(self) -> bytes:
        """Return the entry as bytes."""
        return encode_entry(self.sequence, self.name.encode(), self.offset, self.data)


def encode_entry(sequence: int, name: bytes, offset: int, data: Buffer) -> bytes:
    """Return an entry as bytes: length, CRC32C, and what both are about."""
    body = b"".join((_BODY.pack(sequence, offset, len(name)), name, data))
    return _FRAME.pack(len(body), CRC32C.compute(body)) + body


def decode_entries(data: Buffer) -> Iterator[Entry]:
    """Yield the entries from the start on, up to the first that is none.

    What an earlier use of the file left behind the end has lower sequences, and is none.
    """
    view, place, last = memoryview(data), 0, 0
    while place + _FRAME.size <= len(view):
        length, crc = _FRAME.unpack_from(view, place)
        body = view[place + _FRAME.size : place + _FRAME.size + length]
        if length < _BODY.size or len(body) < length or CRC32C.compute(body) != crc:
            return
        sequence, offset, name_length = _BODY.unpack_from(body)
        name = bytes(body[_BODY.size : _BODY.size + name_length])
        if sequence <= last or len(name) < name_length:
            return
        yield Entry(sequence, name.decode(), offset, body[_BODY.size + name_length :])
        place, last = place + _FRAME.size + length, sequence


class WalFile:
    """One preallocated file that is written over and over.

    Args:
        storage: what it stands on.
        path: the file; it must not exist yet.
        size: its bytes at first.
        max_size: bytes that it may grow to.

    Attributes:
        size: its bytes.
        position: where the next entry goes.
        dirty: descriptors of the files that have writes which only this file has durably.
        doubted: whether a sync of one of them has failed, so that the system may have forgotten
            what was written there.
    """

    def __init__(self, storage: StorageBackend, path: Path, size: int, max_size: int) -> None:
        self._storage = storage
        self._max_size = max_size
        self.size = 0
        self.position = 0
        self.dirty: set[int] = set()
        self.doubted = False
        self.fd = storage.open(path, create=True)
        self._fill(size)

    def _fill(self, size: int) -> None:
        """Give the file a size, all of it written, so that commits need not change its length."""
        for place in range(self.size, size, len(_ZEROS)):
            self._storage.write(self.fd, memoryview(_ZEROS)[: size - place], place)
        self._storage.sync(self.fd)
        self.size = size

    def fits(self, length: int) -> bool:
        """Whether so many bytes can be appended now."""
        return self.position + length + len(END) <= self.size

    def grow(self) -> bool:
        """Make the file twice as large; return whether it may be and the disk has room for it."""
        if self.size >= self._max_size:
            return False
        try:
            self._fill(min(2 * self.size, self._max_size))
        except OSError as error:
            _log.warning("the write-ahead log stays at %d bytes: %s", self.size, error)
            self._max_size = self.size
            return False
        return True

    def append(self, entries: bytes) -> None:
        """Append entries, durably, and the end behind them.

        Raises:
            OSError: the disk refused; the entries are taken back as far as it lets them.
        """
        try:
            self._write(entries + END, self.position)
        except OSError:
            with contextlib.suppress(OSError):
                self._write(END, self.position)
            raise
        self.position += len(entries)

    def entries(self) -> Iterator[Entry]:
        """Yield what was appended since the file was used anew.

        Raises:
            OSError: the disk refused.
        """
        return decode_entries(bytes(read_at(self._storage, self.fd, self.position, 0)))

    def recycle(self) -> None:
        """Begin anew; what is in it need not be repeated any more.

        Raises:
            OSError: the disk refused; the entries stand.
        """
        if self.position:
            self._write(END, 0)
            self.position = 0
        self.dirty.clear()

    def _write(self, data: bytes, place: int) -> None:
        self._storage.write(self.fd, data, place)
        self._storage.sync(self.fd)


def replay(storage: StorageBackend, root: Path, paths: list[Path]) -> int:
    """Repeat what write-ahead logs hold, in its order, durably; return how many writes it was.

    Files that are gone are passed: they were durable before they went.

    Args:
        storage: the backend.
        root: the data directory.
        paths: the files of the write-ahead log.

    Raises:
        OSError: the disk refused.
        ValueError: an entry names a file outside the data directory.
    """
    opened: dict[str, int | None] = {}
    done = 0
    try:
        for entry in _read_all(storage, paths):
            if entry.name not in opened:
                opened[entry.name] = _open(storage, root, entry.name)
            fd_or_none = opened[entry.name]
            if fd_or_none is not None:
                storage.write(fd_or_none, entry.data, entry.offset)
                done += 1
    finally:
        for each in opened.values():
            if each is not None:
                storage.sync(each)
                storage.close(each)
    return done


def not_in_place(storage: StorageBackend, root: Path, paths: list[Path]) -> Iterator[Entry]:
    """Yield what write-ahead logs hold and what does not stand where it belongs.

    Args:
        storage: the backend; nothing is written.
        root: the data directory.
        paths: the files of the write-ahead log.

    Raises:
        OSError: the disk refused.
        ValueError: an entry names a file outside the data directory.
    """
    for entry in _read_all(storage, paths):
        fd = _open(storage, root, entry.name)
        if fd is None:
            continue
        try:
            if read_at(storage, fd, len(entry.data), entry.offset) != entry.data:
                yield entry
        finally:
            storage.close(fd)


def _read_all(storage: StorageBackend, paths: list[Path]) -> list[Entry]:
    """Return the entries of write-ahead logs in the order in which they were written."""
    entries: list[Entry] = []
    for path in paths:
        fd = storage.open(path)
        try:
            entries += decode_entries(bytes(read_at(storage, fd, storage.size(fd), 0)))
        finally:
            storage.close(fd)
    return sorted(entries, key=lambda each: each.sequence)


def _open(storage: StorageBackend, root: Path, name: str) -> int | None:
    inside = PurePosixPath(name)
    if inside.is_absolute() or ".." in inside.parts:
        raise ValueError(f"the write-ahead log names a file outside the data directory: {name!r}")
    try:
        return storage.open(root / inside)
    except FileNotFoundError:
        return None
