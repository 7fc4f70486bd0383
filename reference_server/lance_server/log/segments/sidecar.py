"""Sidecars: what is known of every batch in a segment (AMB-14)."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, TypeAlias

from lance_spec._native import accelerator
from lance_spec.checksum import CRC32C, Buffer
from lance_spec.codec.ingest_runs import BatchMeta, BatchTable
from lance_spec.errors import DecodeError
from lance_spec.messages.engine import EntryFlag, SidecarEntry, SidecarHeader

Columns: TypeAlias = (
    "tuple[array[int], array[int], array[int], array[int], bytearray, bytearray, list[int]]"
)
ENTRY_SIZE: Final = SidecarEntry.SIZE
HEADER_SIZE: Final = SidecarHeader.SIZE
_GUARDED: Final = ENTRY_SIZE - 4
_FEW: Final = 4
"""Batches up to which adding each by itself is faster than making columns of them."""

VALID: Final = 0
"""A batch whose records were checked when it arrived."""
OPAQUE: Final = int(EntryFlag.OPAQUE)
"""A batch that does not parse as records; only a lenient dialect stores one (AMB-27)."""
_KINDS: Final = bytes(flags & OPAQUE for flags in range(256))
DAMAGED: Final = 2
"""A range whose entry or data is not what was written (AMB-39)."""


def encode_header(topic_id: int, base_offset: int, base_record: int, created_ns: int) -> bytes:
    """Return the header of a new sidecar."""
    return SidecarHeader(topic_id, base_offset, base_record, created_ns).with_crc().encode()


def decode_header(data: Buffer) -> SidecarHeader:
    """Return a sidecar's header.

    Raises:
        DecodeError: the bytes are not a header, or their checksum is wrong.
    """
    header = SidecarHeader.decode(data[:HEADER_SIZE])
    if not header.crc_ok():
        raise DecodeError(
            "SidecarHeader", "header_crc", 60, "the checksum of the header", f"{header.header_crc}"
        )
    return header


def decode_entries(data: Buffer) -> Iterator[SidecarEntry | None]:
    """Yield each entry of a run of whole entries; None for one that is void."""
    view = memoryview(data)
    for position in range(0, len(view) - ENTRY_SIZE + 1, ENTRY_SIZE):
        raw = view[position : position + ENTRY_SIZE]
        if CRC32C.compute(raw[:_GUARDED]) != int.from_bytes(raw[_GUARDED:], "little"):
            yield None
            continue
        try:
            yield SidecarEntry.decode(raw)
        except DecodeError:
            yield None


def meta_of(entry: SidecarEntry) -> BatchMeta:
    """Return what an entry says of its batch."""
    return BatchMeta(
        entry.stored_length,
        entry.record_count,
        entry.batch_id,
        entry.client_timestamp_ns,
        entry.server_time_ns,
        entry.stored_crc,
        entry.flags,
    )


class BatchIndex:
    """Where the batches of one segment stand, in memory: 26 bytes a batch.

    Attributes:
        starts: relative offset of each batch, rising.
        ends: relative offset after each batch.
        counts: records of each batch.
        crcs: CRC32C of each batch as stored.
        kinds: `VALID`, `OPAQUE` or `DAMAGED`, one byte a batch.
        checked: 1 for each batch whose data is known to match its CRC.
        holes: numbers of the batches that do not begin where the one before them ends.
    """

    __slots__ = ("checked", "counts", "crcs", "ends", "holes", "kinds", "starts")

    def __init__(self) -> None:
        self.starts = array("Q")
        self.ends = array("Q")
        self.counts = array("I")
        self.crcs = array("I")
        self.kinds = bytearray()
        self.checked = bytearray()
        self.holes: list[int] = []

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        end = self.ends[-1] if self.ends else 0
        return f"<BatchIndex {len(self)} batches, {end} bytes, {len(self.holes)} holes>"

    def extend(self, batches: BatchTable, start: int) -> int:
        """Add batches that were written back to back from ``start`` on; return their records."""
        if len(batches.rows) > _FEW * ENTRY_SIZE:
            return self._add_columns(batches, start)
        records = 0
        for length, count, crc, flags in batches.briefly():
            self.crcs.append(crc)
            self.kinds.append(OPAQUE & flags)
            self.checked.append(1)
            self.counts.append(count)
            self.starts.append(start)
            start += length
            self.ends.append(start)
            records += count
        return records

    def _add_columns(self, batches: BatchTable, start: int) -> int:
        counts = batches.counts
        bounds = array("Q", accumulate(batches.lengths, initial=start))
        self.crcs.extend(batches.crcs)
        self.kinds += batches.low_flags.translate(_KINDS)
        self.checked += b"\1" * len(counts)
        self.counts.extend(counts)
        self.ends.extend(bounds[1:])
        self.starts.extend(bounds[:-1])
        return sum(counts)

    def add(self, entry: SidecarEntry, *, kind: int) -> None:
        """Add a batch read from a sidecar; its data is checked when it is first read."""
        end = entry.relative_offset + entry.stored_length
        self._add(entry.relative_offset, end, entry.record_count, entry.stored_crc, kind)

    def add_damage(self, start: int, end: int) -> None:
        """Add a range of which only the place is known; one right before it grows."""
        if self.kinds and self.kinds[-1] == DAMAGED and self.ends[-1] == start:
            self.ends[-1] = end
        else:
            self._add(start, end, 0, 0, DAMAGED)

    def _add(self, start: int, end: int, count: int, crc: int, kind: int) -> None:
        if start != (self.ends[-1] if self.ends else 0):
            self.holes.append(len(self.starts))
        self.crcs.append(crc)
        self.kinds.append(kind)
        self.checked.append(0)
        self.counts.append(count)
        self.ends.append(end)
        self.starts.append(start)

    def find(self, position: int) -> int:
        """Return the number of the last batch that begins at or before ``position``, or -1."""
        return bisect_right(self.starts, position) - 1

    def run_end(self, first: int, limit: int) -> int:
        """Return the number after the last batch of a run that begins with ``first``.

        A run has one kind, no hole inside, and ends at or before the relative offset ``limit``.
        """
        last = bisect_right(self.ends, limit, first)
        hole = bisect_right(self.holes, first)
        if hole < len(self.holes):
            last = min(last, self.holes[hole])
        kinds = self.kinds[first:last]
        same = len(kinds) - len(kinds.lstrip(kinds[:1]))
        return first + same

    @property
    def columns(self) -> Columns:
        """All of it, as the compiled loops take it."""
        return (
            self.starts,
            self.ends,
            self.counts,
            self.crcs,
            self.kinds,
            self.checked,
            self.holes,
        )

    def whole_batches(self, start: int, limit: int) -> tuple[int, int] | None:
        """Return where the batches end that may be handed out as they are, and their records.

        Args:
            start: relative offset of the first.
            limit: relative offset at which they must end at the latest.

        Returns:
            None when no batch begins at ``start`` and fits, or something is to be judged first:
            they are not records, or were never compared to their CRC.
        """
        if accelerator is not None:
            found: tuple[int, int] | None = accelerator.whole_batches(*self.columns, start, limit)
            return found
        return self._whole_in_python(start, limit)

    def _whole_in_python(self, start: int, limit: int) -> tuple[int, int] | None:
        first = bisect_right(self.starts, start) - 1
        if first < 0 or self.starts[first] != start or self.kinds[first] != VALID:
            return None
        behind = self.run_end(first, limit)
        if behind == first or self.checked.find(0, first, behind) >= 0:
            return None
        return self.ends[behind - 1], sum(self.counts[first:behind])

    def unchecked(self, first: int, behind: int) -> Iterator[int]:
        """Yield the numbers of batches in a range whose data was never compared to its CRC."""
        number = self.checked.find(0, first, behind)
        while number >= 0:
            yield number
            number = self.checked.find(0, number + 1, behind)
