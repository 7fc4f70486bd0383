"""Segments without a sidecar, as published servers write them: records and nothing else.

Boundaries are known at the start of a segment and from index entries; they are never guessed. A
reader that begins at one must arrive exactly at the next.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.files.segments import Segment
from lance_sdk.spark.files.storage import ReadMemory, opened
from lance_sdk.spark.rows.columns import Parted
from lance_spec.messages.engine import SecondaryIndexEntry, SparseIndexEntry
from lance_spec.records import scan_records

_CHUNK: Final = 1 << 20
_INDEXES: Final = (
    (".sparse.idx", SparseIndexEntry.SIZE),
    (".idx", SparseIndexEntry.SIZE),
    (".secondary.idx", SecondaryIndexEntry.SIZE),
)
"""Suffix and entry size; every entry ends with its offset."""


def boundaries(segment: Segment) -> np.ndarray[Any, Any]:
    """Return the places that an index of the segment knows; none where there is no index."""
    stem = segment.path.removesuffix(".lnc")
    key = f"{segment.path[: len(segment.path) - len(segment.label)]}{_key(segment)}"
    for suffix, size in _INDEXES:
        for path in (stem + suffix, key + suffix):
            try:
                with opened(path) as file:
                    raw = bytes(file.read_at(file.size(), 0))
            except FileNotFoundError:
                continue
            rows = np.frombuffer(raw, np.uint8, len(raw) // size * size).reshape(-1, size)
            offsets = np.ascontiguousarray(rows[:, -8:]).view("<u8").ravel()
            return np.unique(offsets[offsets < segment.size]).astype(np.int64)
    return np.empty(0, np.int64)


def _key(segment: Segment) -> str:
    return f"{segment.name.start_index}_{segment.name.start_ns}"


def read_plain(segment: Segment, first: int, behind: int) -> Iterator[tuple[int, Parted]]:
    """Yield (relative offset, whole records) of a range.

    A record that is cut short ends a segment that is still being written; anywhere else it is
    damage.

    Raises:
        DataDamaged: the chain of records does not reach the end of the range.
    """
    open_end = not segment.name.is_closed and behind >= segment.size
    memory = ReadMemory()
    with segment.opened() as file:
        position, want = first, _CHUNK
        while position < behind:
            data = memory.read(file, min(want, behind - position), position)
            scan = scan_records(data)
            if scan.end:
                yield position, Parted.of(data[: scan.end])
                position += scan.end
                want = _CHUNK
                continue
            fault = scan.fault
            whole = fault is not None and fault.truncated and position + fault.needed <= behind
            if fault is None or not whole or len(data) >= fault.needed:
                if open_end and fault is not None and fault.truncated:
                    return
                reason = "the file is shorter than it was" if fault is None else fault.reason
                raise DataDamaged(f"{segment.path}: no record at byte {position}: {reason}")
            want = max(2 * want, fault.needed)
