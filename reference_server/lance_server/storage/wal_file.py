"""The write-ahead log's file: entries, ended by a length of 0 (AMB-47, AMB-50)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from struct import Struct
from typing import Final

from lance_server.storage.contract import StorageBackend, Write, read_at
from lance_spec.checksum import CRC32C, Buffer

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
        """Return the entry as bytes: length, CRC32C, and what both are about."""
        name = self.name.encode()
        body = b"".join((_BODY.pack(self.sequence, self.offset, len(name)), name, self.data))
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

    Attributes:
        position: where the next entry goes.
        dirty: files that have writes which only this file has durably.
    """

    def __init__(self, storage: StorageBackend, path: Path, size: int) -> None:
        self._storage = storage
        self._size = size
        self.position = 0
        self.dirty: dict[int, Path] = {}
        self.fd = storage.open(path, create=True)
        for place in range(0, size, len(_ZEROS)):
            storage.write(self.fd, memoryview(_ZEROS)[: size - place], place)
        storage.sync(self.fd)

    def fits(self, length: int) -> bool:
        """Whether so many bytes can be appended, before `recycle` or after it."""
        return self.position + length + len(END) <= self._size

    def append(self, entries: bytes) -> None:
        """Append entries, durably, and the end behind them.

        Raises:
            OSError: the disk refused.
        """
        self._write(entries + END, self.position)
        self.position += len(entries)

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
        (error,) = self._storage.commit([Write(self.fd, data, place)])
        if error is not None:
            raise error


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
    entries: list[Entry] = []
    for path in paths:
        fd = storage.open(path)
        try:
            entries += decode_entries(bytes(read_at(storage, fd, storage.size(fd), 0)))
        finally:
            storage.close(fd)
    opened: dict[str, int | None] = {}
    done = 0
    try:
        for entry in sorted(entries, key=lambda each: each.sequence):
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


def _open(storage: StorageBackend, root: Path, name: str) -> int | None:
    inside = PurePosixPath(name)
    if inside.is_absolute() or ".." in inside.parts:
        raise ValueError(f"the write-ahead log names a file outside the data directory: {name!r}")
    try:
        return storage.open(root / inside)
    except FileNotFoundError:
        return None
