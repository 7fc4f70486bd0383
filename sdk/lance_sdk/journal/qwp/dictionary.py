"""The symbols of a slot with delta frames: one append-only dictionary beside them (SF-04).

A delta frame brings only the symbols that no earlier frame brought. A connection therefore begins
with the whole dictionary. It is kept in ``.symbol-dict``: a header of 8 bytes, then chunks of
entry count, entry bytes (both LEB128), entries (LEB128 length, UTF-8) and CRC32C of all that. A
symbol's id is its place in the file.

The file is written before the frame that needs it, and synced before that frame is. How many
symbols the stored frames need, and their checksum, is noted in the slot's state: a file that ends
early, at whichever byte, or that holds others is found out when the slot is opened. Then no
symbol is added any more, and frames that need a missing one are kept and not sent.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import crc32c as castagnoli

from lance_sdk.errors import ConfigError
from lance_sdk.journal._ring.journal import Journal
from lance_sdk.journal._slot.layout import CORRUPT, FRAME_HEADER, FRAME_HEADER_SIZE, crc32c
from lance_sdk.journal._slot.scan import FrameRun, scan
from lance_sdk.journal._slot.symbol_file import (
    HEADER,
    MOST_BYTES,
    NAME,
    DamagedChunkError,
    Loaded,
    decode_file,
    encode_chunk,
    encode_entries,
    read_entries,
    read_number,
)
from lance_sdk.journal.files import Files
from lance_sdk.logs import SESSION
from lance_spec.errors import DecodeError
from lance_spec.messages.qwp import MessageFlag, QwpMessage
from lance_spec.messages.store_forward import SegmentHeader

MOST_SYMBOLS: Final = 1_000_000
"""Symbols that hosts are known to take."""
_RECENT: Final = 4096
"""Symbols that are looked up first."""
_FLAGS_AT: Final = 5
_DELTA: Final = int(MessageFlag.DELTA_DICTIONARY)


def delta_of(payload: bytes) -> tuple[int, int]:
    """Return the id at which a frame's own symbols start, and how many they are.

    What is not a QWP message with a delta dictionary needs no symbols: (0, 0).
    """
    start, count, _ = _delta_head(payload)
    return start, count


def _delta_head(payload: bytes) -> tuple[int, int, int]:
    if len(payload) <= QwpMessage.MIN_SIZE or payload[:4] != QwpMessage.MAGIC:
        return 0, 0, 0
    if not payload[_FLAGS_AT] & _DELTA:
        return 0, 0, 0
    try:
        start, place = read_number(payload, QwpMessage.MIN_SIZE)
        count, place = read_number(payload, place)
    except DamagedChunkError:
        return 0, 0, 0
    return start, count, place


class DictionaryJournal(Protocol):
    """What a dictionary asks of the journal beside whose frames it lies."""

    @property
    def files(self) -> Files:
        """The file system."""
        ...

    def note_symbols(self, count: int, crc: int) -> None:
        """Keep how many symbols frames may refer to, and their checksum."""
        ...


class SymbolDictionary:
    """The symbols of one slot. Producers add, transports read; both may at once.

    Args:
        symbols: the symbols there are.
        path: the file, or None in memory.
        end: where its valid part ends; 0 where it does not exist yet.
        journal: the journal; None in memory.

    Attributes:
        framed: symbols below this id were brought by a stored frame, or are sent to every host
            when it is connected to.
        grows: whether symbols may be added; not where some are lost, whose ids frames still use.
        unproven: frames that may have been written with another dictionary; see `_unproven`.
    """

    def __init__(
        self,
        symbols: list[str] | None = None,
        path: Path | None = None,
        end: int = 0,
        journal: DictionaryJournal | None = None,
    ) -> None:
        self._symbols = symbols or []
        self._ids = {each: number for number, each in enumerate(self._symbols)}
        self._recent: dict[str, int] = {}
        self._path = path
        self._end = end
        self._journal = journal
        self._bytes = sum(len(each.encode()) for each in self._symbols)
        self._crc = crc32c(encode_entries(self._symbols))
        self._lock = threading.Lock()
        self.framed = len(self._symbols)
        self.grows = True
        self.unproven: frozenset[bytes] = frozenset()

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

    def for_frame(self, symbols: Sequence[str]) -> dict[str, int] | None:
        """Return the id of each symbol of a frame, or None where the frame must stand alone.

        Raises:
            OSError: the file cannot be written; nothing was added.
        """
        if not self.grows:
            return None
        found = self._known(symbols)
        if found is None and self.fits(symbols):
            found = self.ids(symbols)
        return found

    def _known(self, symbols: Sequence[str]) -> dict[str, int] | None:
        """Return the id of each symbol, or None where one is new.

        What was used lately is looked up beside the others: a million symbols are spread over so
        much memory that each look costs several times as much.
        """
        recent = self._recent
        with suppress(KeyError):
            return {each: recent[each] for each in symbols}
        ids = self._ids
        try:
            found = {each: ids[each] for each in symbols}
        except KeyError:
            return None
        if len(recent) + len(found) > _RECENT:
            recent.clear()
        if len(found) <= _RECENT:
            recent.update(found)
        return found

    def _add(self, new: list[str]) -> None:
        added = sum(len(each.encode()) for each in new)
        if not self.has_room(len(new), added):
            raise ConfigError(
                f"the slot's dictionary would have {len(self._symbols) + len(new)} symbols of "
                f"{self._bytes + added} bytes; hosts take {MOST_SYMBOLS} of {MOST_BYTES} bytes. "
                "Send values that rarely repeat as text columns instead of symbols"
            )
        if self._path is not None:
            self._write(encode_chunk(new))
        self._crc = castagnoli.crc32c(encode_entries(new), self._crc)
        with self._lock:
            first = len(self._symbols)
            self._symbols += new
        self._ids.update(zip(new, range(first, first + len(new)), strict=True))
        self._bytes += added

    def has_room(self, symbols: int, size: int) -> bool:
        """Whether hosts take so many more symbols, of so many bytes."""
        return len(self._symbols) + symbols <= MOST_SYMBOLS and self._bytes + size <= MOST_BYTES

    def fits(self, symbols: Iterable[str]) -> bool:
        """Whether frames may refer to these symbols by their ids."""
        new = {each for each in symbols if each not in self._ids}
        return self.grows and self.has_room(len(new), sum(len(each.encode()) for each in new))

    def agrees(self, payload: bytes) -> bool:
        """Whether the symbols that a frame brings are those of the dictionary."""
        start, count, place = _delta_head(payload)
        ours = self._symbols[start : start + count]
        try:
            return read_entries(payload, place, count)[0][: len(ours)] == ours
        except DamagedChunkError:
            return False

    def note(self) -> None:
        """Tie the dictionary to the frame that is stored next."""
        if self._journal is not None:
            self._journal.note_symbols(len(self._symbols), self._crc)

    def _write(self, chunk: bytes) -> None:
        """Put a chunk after the last valid one; what a failed write left there is cut away."""
        assert self._path is not None
        assert self._journal is not None
        files = self._journal.files
        if not self._end:
            files.replace(self._path, HEADER)
            self._end = len(HEADER)
        file = files.open(self._path, writable=True)
        try:
            if file.size > self._end:
                file.truncate(self._end)
            file.write(self._end, chunk)
            self._end += len(chunk)
        finally:
            file.close()


def open_dictionary(journal: Journal) -> SymbolDictionary:
    """Return the dictionary of a journal, rebuilt from its frames where the file is damaged.

    Raises:
        OSError: the file cannot be read or repaired.
    """
    slot, files = journal.path, journal.files
    if slot is None:
        return SymbolDictionary()
    path = slot / NAME
    try:
        data = files.read(path, 2 * MOST_BYTES + 1)
    except FileNotFoundError:
        data = b""
    if journal.acked_fsn >= journal.next_fsn - 1 and not any(_payloads_of(files, slot)):
        if data:
            files.remove(path)  # no frame needs it, and no host must learn it
        journal.note_symbols(0, 0)
        return SymbolDictionary([], path, 0, journal)
    if len(data) > 2 * MOST_BYTES:
        raise ConfigError(f"{path}: over {2 * MOST_BYTES} bytes; no sender writes such a file")
    loaded = decode_file(data)
    count, crc = journal.noted_symbols
    most = None if journal.problems else 1  # whole frames may follow those that others wrote
    if not data and not count and not _needed(files, slot, most=most):
        return SymbolDictionary([], path, 0, journal)
    whole = not loaded.damage and len(loaded.symbols) >= max(count, _needed(files, slot))
    if whole and (
        not count or _holds(loaded.symbols, count, crc) or _anothers(loaded, files, slot)
    ):
        _write_again(files, path, data[: loaded.end])
        found = SymbolDictionary(loaded.symbols, path, loaded.end, journal)
        found.unproven = frozenset(_unproven(loaded.symbols, journal, slot))
    else:
        found = _rebuilt(path, loaded, journal)
    if found.unproven:
        found.grows = False  # they use ids that nothing else may get
    return found


def _write_again(files: Files, path: Path, data: bytes) -> None:
    """Write the file's bytes as they are, so that the next sync sends them to the disk.

    After a sync that failed the system may show what the disk never got (SF-38).
    """
    if data:
        file = files.open(path, writable=True)
        try:
            file.write(0, data)
        finally:
            file.close()


def _anothers(loaded: Loaded, files: Files, slot: Path) -> bool:
    """Whether frames show that a dictionary is that of another client, which ours became.

    It has given ids to other symbols than our note is about, and its frames agree with it as far
    as it goes: a loss of power may have taken its end.
    """
    agrees = False
    for path in _segments_of(files, slot):
        data = _content(files, path)
        for payload in _frames(data, scan(memoryview(data)).runs[0]):
            start, count, place = _delta_head(payload)
            if start and count:
                with suppress(DamagedChunkError):
                    told = read_entries(payload, place, count)[0]
                    known = loaded.symbols[start : start + count]
                    if known != told[: len(known)]:
                        return False
                    agrees |= bool(known)
    return agrees


def _unproven(symbols: list[str], journal: Journal, slot: Path) -> Iterator[bytes]:
    """Yield frames that nothing ties to the dictionary.

    Frames after damage are found again by us and not by published clients. Such a client may
    have opened the slot after a loss of power that took a part of the dictionary, and have given
    lost ids to other symbols; what it cleared then, another loss of power may bring back. So a
    frame there, unless it stands alone, is believed only where our own note vouches for its
    symbols.
    """
    count, crc = journal.noted_symbols
    if not journal.problems:
        return
    known = count if count and _holds(symbols, count, crc) else 0
    for path in _segments_of(journal.files, slot):
        data = _content(journal.files, path)
        for run in scan(memoryview(data)).runs[1:]:
            yield from (each for each in _frames(data, run) if delta_of(each)[0] > known)


def _holds(symbols: list[str], count: int, crc: int) -> bool:
    """Whether a dictionary begins with the symbols that our note is about."""
    return len(symbols) >= count and crc32c(encode_entries(symbols[:count])) == crc


def _covers(symbols: list[str], count: int, crc: int, files: Files, slot: Path) -> bool:
    """Whether every stored frame finds its symbols."""
    if count and not _holds(symbols, count, crc):
        return False
    return len(symbols) >= _needed(files, slot)


def _needed(files: Files, slot: Path, *, most: int | None = None) -> int:
    """Return how many symbols frames refer to; ids only grow.

    A frame that begins with id 0 needs nothing beside it.

    Args:
        files: the file system.
        slot: the folder.
        most: of so many segments with frames, the newest ones; None means of all.
    """
    needed = seen = 0
    for path in reversed(list(_segments_of(files, slot))):
        found = [delta_of(each) for each in _payloads(files, path)]
        needed = max([needed, *(start + count for start, count in found if start)])
        seen += bool(found)
        if seen == most:
            break
    return needed


def _rebuilt(path: Path, loaded: Loaded, journal: Journal) -> SymbolDictionary:
    """Complete a dictionary from the frames, as a host does that receives them.

    Slots of old clients have no dictionary: there every frame brings all its symbols, and a later
    one may give an id to another symbol. While there are frames that may mean other symbols, the
    file stays as it is: what was completed would look like the truth at the next opening.
    """
    files, slot = journal.files, path.parent
    count, crc = journal.noted_symbols
    symbols = loaded.symbols[:]
    others = len(symbols) >= count > 0 and not _holds(symbols, count, crc)
    if others and not _anothers(loaded, files, slot):
        symbols = []
    found = len(symbols)
    symbols, unproven = _learned(symbols, journal, slot)
    unproven |= set(_unproven(symbols, journal, slot))
    lost = not _covers(symbols, count, crc, files, slot)
    damage = loaded.damage or ("it ends early" if lost or len(symbols) > found else "")
    if damage:
        SESSION.warning(
            "store-and-forward: %s is damaged (%s) and %s; of %d symbols, %d were found in "
            "frames%s",
            path,
            damage,
            "stays as it is" if unproven else f"was set aside as {NAME}{CORRUPT}",
            len(symbols),
            len(symbols) - found,
            "; others are lost: frames that need them are kept and not sent"
            if lost or unproven
            else "",
        )
    end = loaded.end
    if not unproven:
        if damage and loaded.end:
            files.rename(path, path.with_name(NAME + CORRUPT))
        data = HEADER + (encode_chunk(symbols) if symbols else b"")
        files.replace(path, data)
        end = len(data)
    dictionary = SymbolDictionary(symbols, path, end, journal)
    dictionary.grows = not lost
    dictionary.unproven = frozenset(unproven)
    return dictionary


def _learned(known: list[str], journal: Journal, slot: Path) -> tuple[list[str], set[bytes]]:
    """Return the symbols that frames add to those known, and frames that may mean others.

    Where another client numbers symbols in its own way, our note says which of them are ours.
    """
    count, crc = journal.noted_symbols
    frames = [each for each in _payloads_of(journal.files, slot) if any(delta_of(each))]
    first, unproven, contradicted = _told_by(frames, known, keep=True)
    for symbols in (first, _told_by(frames, known, keep=False)[0]):
        if count and _holds(symbols, count, crc):
            return symbols, set()
    if contradicted:
        unproven |= {each for each in frames if delta_of(each)[0] > len(known)}
    return first, unproven


def _told_by(
    frames: list[bytes], known: list[str], *, keep: bool
) -> tuple[list[str], set[bytes], bool]:
    """Return the symbols that frames bring; the first one of an id is kept, or the last one.

    Also those frames that need more than was known where they stand, and whether frames
    contradict each other.
    """
    symbols, early, contradicted = known[:], set[bytes](), False
    for payload in frames:
        start, new, place = _delta_head(payload)
        if start > len(symbols):
            early.add(payload)
            continue
        with suppress(DamagedChunkError):
            told = read_entries(payload, place, new)[0]
            there = symbols[start : start + new]
            differs = there != told[: len(there)]
            contradicted |= differs
            if not (differs and keep):
                symbols[start : start + new] = told
    return symbols, early, contradicted


def _segments_of(files: Files, slot: Path) -> Iterator[Path]:
    """Yield the segments of a slot, oldest first."""
    found: list[tuple[int, Path]] = []
    for name in files.names(slot):
        if name.endswith(".sfa"):
            with suppress(DecodeError, FileNotFoundError):
                header = SegmentHeader.decode(files.read(slot / name, SegmentHeader.SIZE))
                found.append((header.base_seq, slot / name))
    yield from (path for _, path in sorted(found))


def _payloads_of(files: Files, slot: Path) -> Iterator[bytes]:
    """Yield the frames of a slot in order, those that are acknowledged included."""
    for path in _segments_of(files, slot):
        yield from _payloads(files, path)


def _payloads(files: Files, path: Path) -> Iterator[bytes]:
    data = _content(files, path)
    for run in scan(memoryview(data)).runs:
        yield from _frames(data, run)


def _content(files: Files, path: Path) -> bytes:
    """Return a segment's bytes; nothing where it was acknowledged and deleted meanwhile."""
    try:
        file = files.open(path, writable=False)
    except FileNotFoundError:
        return b""
    try:
        return file.read(0, file.size)
    finally:
        file.close()


def _frames(data: bytes, run: FrameRun) -> Iterator[bytes]:
    """Yield the frames of a run in a segment's bytes."""
    place = run.offset
    while place < run.end:
        length = FRAME_HEADER.unpack_from(data, place)[1]
        place += FRAME_HEADER_SIZE
        yield data[place : place + length]
        place += length
