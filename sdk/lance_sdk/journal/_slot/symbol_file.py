"""The file ``.symbol-dict``: a header, then chunks of symbols (SF-04)."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lance_sdk.journal._slot.layout import crc32c

NAME: Final = ".symbol-dict"
HEADER: Final = b"SYD1\x01\0\0\0"
MOST_BYTES: Final = 256 << 20
"""Bytes of all symbols together."""
_CRC: Final = struct.Struct("<I")


def leb128(value: int) -> bytes:
    """Return an unsigned number in LEB128."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_entries(symbols: Iterable[str]) -> bytes:
    """Return symbols as they stand in chunks and in messages."""
    raw = [each.encode() for each in symbols]
    return b"".join(part for each in raw for part in (leb128(len(each)), each))


def encode_chunk(symbols: Sequence[str]) -> bytes:
    """Return one chunk of the file."""
    entries = encode_entries(symbols)
    body = leb128(len(symbols)) + leb128(len(entries)) + entries
    return body + _CRC.pack(crc32c(body))


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a dictionary file holds.

    Attributes:
        symbols: the symbols of its valid chunks, in order.
        end: where the last valid chunk ends.
        damage: the fault after it, or "".
    """

    symbols: list[str]
    end: int
    damage: str


def decode_file(data: bytes) -> Loaded:
    """Read a dictionary file up to its first damaged chunk."""
    if data[: len(HEADER)] != HEADER:
        return Loaded([], 0, "no SYD1 header" if data else "")
    symbols: list[str] = []
    end = len(HEADER)
    while end < len(data):
        try:
            found, end = _chunk(data, end)
        except DamagedChunkError as damaged:
            return Loaded(symbols, end, f"byte {end}: {damaged}")
        symbols += found
    return Loaded(symbols, end, "")


class DamagedChunkError(Exception):
    """A chunk that is not as it was written."""


def _chunk(data: bytes, start: int) -> tuple[list[str], int]:
    count, place = read_number(data, start)
    size, place = read_number(data, place)
    end = place + size
    if end + _CRC.size > len(data):
        raise DamagedChunkError("the chunk is cut short")
    if _CRC.unpack_from(data, end)[0] != crc32c(memoryview(data)[start:end]):
        raise DamagedChunkError("the chunk does not match its checksum")
    symbols, place = read_entries(data, place, count)
    if place != end:
        raise DamagedChunkError(
            f"{count} entries end at byte {place}, the chunk's entries at {end}"
        )
    return symbols, end + _CRC.size


def read_entries(data: bytes, place: int, count: int) -> tuple[list[str], int]:
    """Return so many symbols, and where they end.

    Raises:
        DamagedChunkError: they are not as they were written.
    """
    if count > len(data) - place:
        raise DamagedChunkError(f"{count} entries in {len(data) - place} bytes")
    symbols: list[str] = []
    for _ in range(count):
        length, place = read_number(data, place)
        if length > len(data) - place:
            raise DamagedChunkError("an entry is cut short")
        try:
            symbols.append(data[place : place + length].decode())
        except UnicodeDecodeError as error:
            raise DamagedChunkError(f"an entry is not UTF-8: {error}") from None
        place += length
    return symbols, place


def read_number(data: bytes, place: int) -> tuple[int, int]:
    """Return an unsigned number in LEB128, and where it ends.

    Raises:
        DamagedChunkError: it is cut short, or too long.
    """
    value = shift = 0
    while shift < 63:
        if place >= len(data):
            raise DamagedChunkError("the chunk is cut short")
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7
    raise DamagedChunkError("a length of over 63 bits")
