"""Reads a segment's sidecar, and compares it with the segment's data (AMB-14, AMB-39)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lance_server.log.segments.segment_files import Segment
from lance_server.log.segments.sidecar import (
    DAMAGED,
    ENTRY_SIZE,
    HEADER_SIZE,
    OPAQUE,
    VALID,
    BatchIndex,
    decode_entries,
)
from lance_server.storage.contract import StorageBackend, opened, read_at
from lance_spec.checksum import CRC32C
from lance_spec.messages.engine import EntryFlag, SidecarEntry

_ENTRIES_AT_ONCE: Final = 4096


def read_entries(
    storage: StorageBackend,
    sidecar: int,
    first: int = 0,
    *,
    at_once: int = _ENTRIES_AT_ONCE,
    cached_only: bool = False,
) -> Iterator[SidecarEntry | None]:
    """Yield the whole entries of a sidecar from number ``first`` on; None for a void one.

    Raises:
        WouldBlockError: ``cached_only`` is set and the disk would have to be waited for.
    """
    chunk = bytearray(at_once * ENTRY_SIZE)
    place = HEADER_SIZE + first * ENTRY_SIZE
    while got := storage.read_into(sidecar, memoryview(chunk), place, cached_only=cached_only):
        yield from decode_entries(memoryview(chunk)[:got])
        place += got
        if got < len(chunk):
            return


def count_entries(storage: StorageBackend, sidecar: int) -> int:
    """Return how many whole entries a sidecar has room for."""
    return max(0, storage.size(sidecar) - HEADER_SIZE) // ENTRY_SIZE


def is_without_batches(storage: StorageBackend, data: Path, sidecar: Path) -> bool:
    """Return whether a data file is empty and its sidecar has no entries, or is not there."""
    with opened(storage, data) as fd:
        if storage.size(fd):
            return False
    try:
        with opened(storage, sidecar) as fd:
            return count_entries(storage, fd) == 0
    except FileNotFoundError:
        return True


def last_entry(storage: StorageBackend, sidecar: int) -> SidecarEntry | None:
    """Return the last entry of a sidecar, or None when there is none or it is void."""
    count = count_entries(storage, sidecar)
    return next(read_entries(storage, sidecar, count - 1), None) if count else None


def uncovered(entries: Iterable[SidecarEntry], size: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a segment of so many bytes that no entry vouches for."""
    position = 0
    for entry in entries:
        if entry.relative_offset > position:
            yield position, entry.relative_offset
        position = entry.relative_offset + entry.stored_length
    if position < size:
        yield position, size


def load_index(
    storage: StorageBackend,
    segment: Segment,
    data: int,
    sidecar: int,
    part: slice | None = None,
    *,
    cached_only: bool = False,
) -> BatchIndex:
    """Build the index of a closed segment, or of a part of it and the valid batch after that.

    The data of its batches is not read here: each batch is compared to its CRC when it is first
    read. Ranges that no entry vouches for, and batches that the data file is too short for, are
    damage.

    Args:
        storage: the backend.
        segment: the segment.
        data: its data file.
        sidecar: its sidecar.
        part: numbers of entries; it must begin with a valid one.
        cached_only: do not wait for the disk.

    Raises:
        WouldBlockError: ``cached_only`` is set and the disk would have to be waited for.
    """
    index = BatchIndex()
    available = storage.size(data)
    first, behind = (0, None) if part is None else (part.start, part.stop)
    at_once = _ENTRIES_AT_ONCE if behind is None else min(behind - first + 1, _ENTRIES_AT_ONCE)
    entries = read_entries(storage, sidecar, first, at_once=at_once, cached_only=cached_only)
    position, void = 0, False
    for number, entry in enumerate(entries, first):
        if number == first and first and entry is not None:
            position = entry.relative_offset
        end = 0 if entry is None else entry.relative_offset + entry.stored_length
        if entry is None or entry.relative_offset < position or end > segment.size:
            void = True
            continue
        if void and entry.relative_offset > position:
            index.add_damage(position, entry.relative_offset)
        index.add(entry, kind=_kind(entry) if end <= available else DAMAGED)
        position, void = end, False
        if behind is not None and number >= behind:
            return index
    if position < segment.size:
        index.add_damage(position, segment.size)
    return index


def _kind(entry: SidecarEntry) -> int:
    return OPAQUE if entry.flags & EntryFlag.OPAQUE else VALID


@dataclass(slots=True)
class Scan:
    """What a segment holds that was open when the server stopped.

    Attributes:
        slots: one byte for each entry in the sidecar: 1 when entry and data are valid.
        index: the valid batches only.
        durable_end: the highest durable end that a valid entry records, as a topic offset.
        reach: relative offset up to which the segment may ever have been visible.
        last_ns: server time of the last valid batch.
    """

    slots: bytearray = field(default_factory=bytearray)
    index: BatchIndex = field(default_factory=BatchIndex)
    durable_end: int = 0
    reach: int = 0
    last_ns: int = 0

    @property
    def end(self) -> int:
        """Relative offset after the last valid batch."""
        return self.index.ends[-1] if self.index.ends else 0

    @property
    def tail(self) -> int:
        """Number of the first of the void entries that no valid one follows."""
        return self.slots.rfind(1) + 1

    def void_runs(self) -> Iterator[tuple[int, int]]:
        """Yield (first, behind) for each run of void entries before the last valid one."""
        first = self.slots.find(0, 0, self.tail)
        while first >= 0:
            behind = self.slots.find(1, first)
            yield first, behind
            first = self.slots.find(0, behind, self.tail)


def scan_segment(storage: StorageBackend, data: int, sidecar: int) -> Scan:
    """Compare every batch of a segment with its entry; an entry whose data differs is void."""
    found = Scan(reach=storage.size(data))
    for entry in read_entries(storage, sidecar):
        valid = entry is not None and _matches(storage, data, entry, found.end)
        found.slots.append(valid)
        if entry is None:
            continue
        found.reach = max(found.reach, entry.relative_offset + entry.stored_length)
        if valid:
            found.index.add(entry, kind=_kind(entry))
            found.durable_end = max(found.durable_end, entry.durable_end)
            found.last_ns = max(found.last_ns, entry.server_time_ns)
    found.index.checked = bytearray(b"\1" * len(found.index))
    return found


def _matches(storage: StorageBackend, data: int, entry: SidecarEntry, position: int) -> bool:
    if entry.relative_offset < position:
        return False
    if entry.relative_offset + entry.stored_length > storage.size(data):
        return False
    batch = read_at(storage, data, entry.stored_length, entry.relative_offset)
    return CRC32C.compute(batch) == entry.stored_crc
