"""The symbols of a slot: one append-only dictionary, beside the frames that refer to it (SF-04).

A frame brings only the symbols that no earlier frame brought. Who connects anew therefore sends
the whole dictionary first. It is kept in ``.symbol-dict``: a header of 8 bytes, then chunks of
entry count, entry bytes (both LEB128), entries (LEB128 length, UTF-8) and CRC32C of all that. A
symbol's id is its place in the file.

The file is written before the frame that needs it and synced before frames are deleted. What a
crash takes from it until then is still in the frames themselves, from which it is rebuilt.
"""

import os
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lance_sdk.errors import ConfigError
from lance_sdk.journal._layout import CORRUPT, FRAME_HEADER, FRAME_HEADER_SIZE, crc32c
from lance_sdk.journal._scan import scan
from lance_sdk.journal.files import RealFiles
from lance_sdk.logs import SESSION
from lance_spec.errors import DecodeError
from lance_spec.messages.qwp import MessageFlag, QwpMessage
from lance_spec.messages.store_forward import SegmentHeader

NAME: Final = ".symbol-dict"
HEADER: Final = b"SYD1\x01\0\0\0"
MOST_SYMBOLS: Final = 1_000_000
"""Symbols that hosts are known to take."""
MOST_BYTES: Final = 256 << 20
"""Bytes of all symbols together."""
_CRC: Final = struct.Struct("<I")
_FLAGS_AT: Final = 5
_DELTA: Final = int(MessageFlag.DELTA_DICTIONARY)


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
        damage: what is wrong behind it, or "".
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
        except _DamagedError as damaged:
            return Loaded(symbols, end, f"byte {end}: {damaged}")
        symbols += found
    return Loaded(symbols, end, "")


class _DamagedError(Exception):
    """A chunk that is not as it was written."""


def _chunk(data: bytes, start: int) -> tuple[list[str], int]:
    count, place = _number(data, start)
    size, place = _number(data, place)
    end = place + size
    if end + _CRC.size > len(data):
        raise _DamagedError("the chunk is cut short")
    if _CRC.unpack_from(data, end)[0] != crc32c(memoryview(data)[start:end]):
        raise _DamagedError("the chunk does not match its checksum")
    symbols, place = _entries(data, place, count)
    if place != end:
        raise _DamagedError(f"{count} entries end at byte {place}, the chunk's entries at {end}")
    return symbols, end + _CRC.size


def _entries(data: bytes, place: int, count: int) -> tuple[list[str], int]:
    if count > len(data) - place:
        raise _DamagedError(f"{count} entries in {len(data) - place} bytes")
    symbols: list[str] = []
    for _ in range(count):
        length, place = _number(data, place)
        if length > len(data) - place:
            raise _DamagedError("an entry is cut short")
        try:
            symbols.append(data[place : place + length].decode())
        except UnicodeDecodeError as error:
            raise _DamagedError(f"an entry is not UTF-8: {error}") from None
        place += length
    return symbols, place


def _number(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 63:
        if place >= len(data):
            raise _DamagedError("the chunk is cut short")
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7
    raise _DamagedError("a length of over 63 bits")


def delta_of(payload: bytes) -> tuple[int, int]:
    """Return the id at which a frame's own symbols start, and how many they are.

    What is no QWP message with a delta dictionary needs no symbols: (0, 0).
    """
    start, count, _ = _delta_head(payload)
    return start, count


def _delta_head(payload: bytes) -> tuple[int, int, int]:
    if len(payload) <= QwpMessage.MIN_SIZE or payload[:4] != QwpMessage.MAGIC:
        return 0, 0, 0
    if not payload[_FLAGS_AT] & _DELTA:
        return 0, 0, 0
    try:
        start, place = _number(payload, QwpMessage.MIN_SIZE)
        count, place = _number(payload, place)
    except _DamagedError:
        return 0, 0, 0
    return start, count, place


class SymbolDictionary:
    """The symbols of one slot. Producers add, carriers read; both may at once.

    Args:
        symbols: the symbols there are.
        path: the file, or None in memory.
        end: where its valid part ends.

    Attributes:
        framed: symbols below this id were brought by a stored frame, or are sent to every host
            when it is connected to.
    """

    def __init__(
        self, symbols: list[str] | None = None, path: Path | None = None, end: int = 0
    ) -> None:
        self._symbols = symbols or []
        self._ids = {each: number for number, each in enumerate(self._symbols)}
        self._path = path
        self._end = end
        self._bytes = sum(len(each.encode()) for each in self._symbols)
        self._lock = threading.Lock()
        self.framed = len(self._symbols)

    def __repr__(self) -> str:
        return f"<SymbolDictionary {len(self._symbols)} symbols, {self._path or 'memory'}>"

    def __len__(self) -> int:
        return len(self._symbols)

    def snapshot(self) -> list[str]:
        """Return all symbols there are now, by id."""
        with self._lock:
            return self._symbols[:]

    def unframed(self) -> tuple[int, list[str]]:
        """Return the first id that no stored frame has brought, and the symbols from there on."""
        return self.framed, self._symbols[self.framed :]

    def ids(self, symbols: Iterable[str]) -> dict[str, int]:
        """Return the id of each symbol, adding those that are new, on disk first.

        Raises:
            ConfigError: the dictionary would become larger than hosts accept.
            OSError: the file cannot be written; nothing was added.
        """
        known = self._ids
        wanted = dict.fromkeys(symbols)
        new = [each for each in wanted if each not in known]
        if new:
            self._add(new)
        return {each: known[each] for each in wanted}

    def _add(self, new: list[str]) -> None:
        added = sum(len(each.encode()) for each in new)
        if len(self._symbols) + len(new) > MOST_SYMBOLS or self._bytes + added > MOST_BYTES:
            raise ConfigError(
                f"the slot's dictionary would have {len(self._symbols) + len(new)} symbols of "
                f"{self._bytes + added} bytes; hosts take {MOST_SYMBOLS} of {MOST_BYTES} bytes. "
                "Send values that rarely repeat as text columns instead of symbols"
            )
        if self._path is not None:
            self._write(encode_chunk(new))
        with self._lock:
            first = len(self._symbols)
            self._symbols += new
        self._ids.update(zip(new, range(first, first + len(new)), strict=True))
        self._bytes += added

    def _write(self, chunk: bytes) -> None:
        """Put a chunk behind the last valid one; what a failed write left there is cut away."""
        assert self._path is not None
        fd = os.open(self._path, os.O_WRONLY)
        try:
            os.ftruncate(fd, self._end)
            view, place = memoryview(chunk), self._end
            while view:
                written = os.pwrite(fd, view, place)
                place += written
                view = view[written:]
            self._end = place
        finally:
            os.close(fd)


def open_dictionary(slot: Path | None) -> SymbolDictionary:
    """Return the dictionary of a slot, rebuilt from its frames where the file is damaged.

    The file itself is repaired too: the next symbol would otherwise be written behind damage.

    Args:
        slot: the slot's folder, which the caller holds the lock of; None means memory.

    Raises:
        OSError: the file cannot be read or repaired.
    """
    if slot is None:
        return SymbolDictionary()
    path = slot / NAME
    try:
        if path.stat().st_size > 2 * MOST_BYTES:
            raise ConfigError(f"{path}: over {2 * MOST_BYTES} bytes; no sender writes such a file")
        loaded = decode_file(path.read_bytes())
    except FileNotFoundError:
        loaded = Loaded([], 0, "")
    if loaded.end and not loaded.damage:
        return SymbolDictionary(loaded.symbols, path, loaded.end)
    return _rebuilt(path, loaded)


def _rebuilt(path: Path, loaded: Loaded) -> SymbolDictionary:
    """Complete a dictionary from the frames, as a host does that receives them.

    Slots of old clients have no dictionary: there every frame brings all its symbols, and a later
    one may give an id to another symbol.
    """
    symbols = loaded.symbols[:]
    for payload in _payloads_of(path.parent):
        start, count, place = _delta_head(payload)
        if count and start <= len(symbols):
            with suppress(_DamagedError):
                symbols[start : start + count] = _entries(payload, place, count)[0]
    if loaded.damage:
        path.replace(path.with_name(NAME + CORRUPT))
        SESSION.warning(
            "store-and-forward: %s is damaged (%s) and was set aside as %s%s; of %d symbols, %d "
            "were found in frames",
            path,
            loaded.damage,
            NAME,
            CORRUPT,
            len(symbols),
            len(symbols) - len(loaded.symbols),
        )
    data = HEADER + (encode_chunk(symbols) if symbols else b"")
    RealFiles().replace(path, data)
    return SymbolDictionary(symbols, path, len(data))


def _payloads_of(slot: Path) -> Iterator[bytes]:
    """Yield the frames of a slot in order, those that are acknowledged included."""
    segments: list[tuple[int, Path]] = []
    for file in slot.glob("*.sfa"):
        with suppress(DecodeError), file.open("rb") as opened:
            header = SegmentHeader.decode(opened.read(SegmentHeader.SIZE))
            segments.append((header.base_seq, file))
    for _, file in sorted(segments):
        yield from _payloads(file.read_bytes())


def _payloads(data: bytes) -> Iterator[bytes]:
    for run in scan(memoryview(data)).runs:
        place = run.offset
        while place < run.end:
            length = FRAME_HEADER.unpack_from(data, place)[1]
            place += FRAME_HEADER_SIZE
            yield data[place : place + length]
            place += length
