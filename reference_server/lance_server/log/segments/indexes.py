"""The two sparse indexes of a closed segment (design section 2.4, AMB-15, AMB-16).

They are for those who read segment files without a server; the server itself searches the
sidecar. Both are derived from the sidecar and may be removed at any time.
"""

from collections.abc import Iterable
from typing import Final

from lance_server.log.segments.segment_files import Segment
from lance_server.log.segments.sidecar_scan import read_entries
from lance_server.storage.contract import StorageBackend, replace_file
from lance_spec.codec.packing import NODE_ACTOR_SEQUENCE
from lance_spec.messages.engine import SecondaryIndexEntry, SidecarEntry, SparseIndexEntry

SPARSE_SUFFIX: Final = ".sparse.idx"
SECONDARY_SUFFIX: Final = ".secondary.idx"
INDEX_SUFFIXES: Final = (SPARSE_SUFFIX, SECONDARY_SUFFIX)
RECORDS_PER_ENTRY: Final = 4096
"""The sparse index has an entry for the first batch after every so many records."""
BUCKET_NS: Final = 10_000_000
"""The secondary index has an entry for the first batch of every 10 ms."""
_ACTOR: Final = 0
_SEQUENCES: Final = 1 << 40


def index_names(key: str) -> list[str]:
    """Return what the indexes of the segment with a key are called."""
    return [f"{key}{suffix}" for suffix in INDEX_SUFFIXES]


def index_segment(storage: StorageBackend, segment: Segment, node: int) -> None:
    """Write both indexes of a closed segment, durably (worker thread).

    Args:
        storage: the backend.
        segment: a closed one.
        node: this server's number, for the sort keys.

    Raises:
        OSError: the disk refused.
    """
    sidecar = storage.open(segment.sidecar_path)
    try:
        valid = [entry for entry in read_entries(storage, sidecar) if entry is not None]
    finally:
        storage.close(sidecar)
    contents = encode_sparse(valid, segment.base_record, node), encode_secondary(valid)
    for name, content in zip(index_names(segment.name.key), contents, strict=True):
        replace_file(storage, segment.folder / name, content)


def encode_sparse(entries: Iterable[SidecarEntry], base_record: int, node: int) -> bytes:
    """Return the primary index: sort keys and where in the segment they are.

    Args:
        entries: the valid entries of a sidecar.
        base_record: records in the topic before the segment; a record's number is its sequence.
        node: this server's number.
    """
    parts: list[bytes] = []
    record, due = base_record, base_record
    for entry in entries:
        if record >= due:
            low = NODE_ACTOR_SEQUENCE.pack(
                {"node": node, "actor": _ACTOR, "sequence": record % _SEQUENCES}
            )
            parts.append(
                SparseIndexEntry(low, entry.server_time_ns, entry.relative_offset).encode()
            )
            due = record + RECORDS_PER_ENTRY
        record += entry.record_count
    return b"".join(parts)


def encode_secondary(entries: Iterable[SidecarEntry]) -> bytes:
    """Return the secondary index: server times and where in the segment they begin."""
    parts: list[bytes] = []
    last = -1
    for entry in entries:
        bucket = entry.server_time_ns // BUCKET_NS
        if bucket != last:
            parts.append(SecondaryIndexEntry(entry.server_time_ns, entry.relative_offset).encode())
            last = bucket
    return b"".join(parts)
