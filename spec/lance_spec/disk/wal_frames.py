"""The write-ahead log's format: a guard, the file's generation, and one frame for each commit.

A file is used over and over, and each use is a generation. A frame carries the generation and
an index that rises within it. A frame is written and synced before the next one, so a whole
frame after one that is not whole is damage: no crash leaves that (AMB-50).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from lance_spec.checksum import CRC32C, Buffer
from lance_spec.disk.redo_entries import Entry

SECTOR: Final = 512
"""Bytes that a disk writes whole or not at all."""
HEADER_SIZE: Final = 2 * SECTOR
"""The guard and the generation have a sector each: no torn frame can reach them."""
END: Final = bytes(4)
_GUARD_NAME: Final = "../this data directory needs the release that wrote it"
GUARD: Final = Entry(
    1, _GUARD_NAME, 0, bytes(SECTOR - len(Entry(1, _GUARD_NAME, 0, b"").encode()))
).encode()
"""An entry of the first release that names a file outside the data directory: it refuses the
directory then, and keeps the log that it cannot read."""
_MAGIC: Final = b"LWAL"
_GENERATION: Final = Struct("<4sL8sQ")
_FRAME: Final = Struct("<4sLL")
_BODY: Final = Struct("<8sQQQ")
_WRITE: Final = Struct("<BHLQ")
_CLOSED: Final = re.compile(r"(\d{1,20}_\d{1,20})-\d{1,20}\.lnc")

OVERHEAD: Final = _FRAME.size + _BODY.size + len(END)
"""Bytes that a commit takes beside its writes."""
WRITE_OVERHEAD: Final = _WRITE.size
"""Bytes that a write takes beside its name and its data."""


FILE_ID_SIZE: Final = 8


class Use(NamedTuple):
    """One use of a file from its start.

    Attributes:
        file_id: eight random bytes: no client can send what looks like a frame of this file.
        generation: rises each time that the file is used again.
    """

    file_id: bytes
    generation: int

    def encode(self) -> bytes:
        """Return the generation's sector, as far as it is used."""
        crc = CRC32C.compute(self.file_id + self.generation.to_bytes(8, "little"))
        return _GENERATION.pack(_MAGIC, crc, *self)

    @classmethod
    def decode(cls, data: Buffer) -> "Use | None":
        """Return what a generation's sector says; None when it is not whole."""
        if len(data) < _GENERATION.size:
            return None
        magic, _, file_id, generation = _GENERATION.unpack_from(data)
        use = cls(file_id, generation)
        return use if magic == _MAGIC and bytes(data[: _GENERATION.size]) == use.encode() else None


class Logged(NamedTuple):
    """A write, or a removal, that stands in the log.

    Attributes:
        name: the file's lasting name, see `lasting_name`; of a removal also a folder's.
        offset: where in the file.
        data: what to write; None when the file was removed.
    """

    name: str
    offset: int
    data: Buffer | None


class WalFrame(NamedTuple):
    """One commit.

    Attributes:
        place: where in the file it begins.
        end: where it ends.
        ordinal: its index, which rises within a generation.
        number: rises over all files.
        writes: what it holds.
    """

    place: int
    end: int
    ordinal: int
    number: int
    writes: list[Logged]


def lasting_name(relative: str) -> str:
    """Return a file's name as it stays when a segment is closed (AMB-16)."""
    folder, slash, name = relative.rpartition("/")
    match = _CLOSED.fullmatch(name)
    return relative if match is None else f"{folder}{slash}{match[1]}.lnc"


def encode_write(name: bytes, offset: int, data: Buffer) -> tuple[bytes, bytes, Buffer]:
    """Return a write in pieces."""
    return _WRITE.pack(0, len(name), len(data), offset), name, data


def encode_writes(
    names: Sequence[bytes], writes: Sequence[tuple[int, Buffer, int]]
) -> list[Buffer]:
    """Return several writes in pieces.

    Args:
        names: of the files.
        writes: file, data and offset of each.
    """
    pieces, pack = list[Buffer](), _WRITE.pack
    for name, (_, data, offset) in zip(names, writes, strict=True):
        pieces += (pack(0, len(name), len(data), offset), name, data)
    return pieces


def encode_removal(name: bytes) -> tuple[bytes, bytes]:
    """Return a removal in pieces."""
    return _WRITE.pack(1, len(name), 0, 0), name


def encode_frame(
    use: Use, index: int, number: int, writes: Iterable[Buffer], end: bytes = b""
) -> bytes:
    """Return a commit: magic, length, CRC32C, what the two are about, and what is after it."""
    body = b"".join((_BODY.pack(*use, index, number), *writes))
    return b"".join((_FRAME.pack(_MAGIC, len(body), CRC32C.compute(body)), body, end))


def read_frames(
    data: Buffer, use: Use, start: int = HEADER_SIZE, last: int = 0
) -> tuple[list[WalFrame], list[tuple[int, int]]]:
    """Return the frames of one use of a file, and the damaged ranges between them.

    Args:
        data: the file, or a part of it; places count from its first byte.
        use: which use.
        start: where in the data the next frame begins.
        last: ordinal of the frame before that.
    """
    view, place, frames = memoryview(data), start, list[WalFrame]()
    damaged: list[tuple[int, int]] = []
    while True:
        frame = _frame_at(view, place, use)
        if frame is None or frame.ordinal <= last:
            frame = _find_later(data, view, place + 1, use, last)
            if frame is None:
                return frames, damaged
            damaged.append((place, frame.place))
        frames.append(frame)
        place, last = frame.end, frame.ordinal


def frame_size(data: Buffer, use: Use) -> int:
    """Return how many bytes the frame has that begins with some bytes; 0 where none does."""
    if len(data) < _FRAME.size + _BODY.size:
        return 0
    magic, length, _ = _FRAME.unpack_from(data)
    file_id, generation, _, _ = _BODY.unpack_from(data, _FRAME.size)
    is_one = magic == _MAGIC and (file_id, generation) == use
    return _FRAME.size + int(length) if is_one else 0


def holds_frames(data: Buffer) -> bool:
    """Whether there is anything in a file that is a whole frame of whatever use."""
    view, raw = memoryview(data), bytes(data)
    return any(_body_at(view, place) is not None for place in _magics(raw, 0))


def _find_later(data: Buffer, view: memoryview, start: int, use: Use, last: int) -> WalFrame | None:
    for place in _magics(data, start):
        frame = _frame_at(view, place, use)
        if frame is not None and frame.ordinal > last:
            return frame
    return None


def _magics(data: Buffer, start: int) -> Iterator[int]:
    raw = data if isinstance(data, bytes) else bytes(data)
    place = raw.find(_MAGIC, start)
    while place >= 0:
        yield place
        place = raw.find(_MAGIC, place + 1)


def _body_at(view: memoryview, place: int) -> memoryview | None:
    if place + _FRAME.size + _BODY.size > len(view):
        return None
    magic, length, crc = _FRAME.unpack_from(view, place)
    body = view[place + _FRAME.size : place + _FRAME.size + length]
    if magic != _MAGIC or length < _BODY.size or len(body) < length:
        return None
    return body if CRC32C.compute(body) == crc else None


def _frame_at(view: memoryview, place: int, use: Use) -> WalFrame | None:
    if place + _FRAME.size + _BODY.size > len(view):
        return None
    file_id, generation, index, number = _BODY.unpack_from(view, place + _FRAME.size)
    if (file_id, generation) != use:  # looked at first: it spares the checksum of old frames
        return None
    body = _body_at(view, place)
    if body is None:
        return None
    writes = list(_read_writes(body[_BODY.size :]))
    return WalFrame(place, place + _FRAME.size + len(body), index, number, writes)


def _read_writes(view: memoryview) -> Iterator[Logged]:
    place = 0
    while place < len(view):
        kind, name_length, length, offset = _WRITE.unpack_from(view, place)
        place += _WRITE.size
        name = bytes(view[place : place + name_length]).decode()
        place += name_length
        yield Logged(name, offset, None if kind else view[place : place + length])
        place += length
