"""Writing the sparse indexes of closed segments again (AMB-15), in parallel."""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lance_sdk._io import platform
from lance_sdk.errors import ConfigError
from lance_sdk.spark.files.segments import Entries, Segment, read_entries, topic_files
from lance_sdk.spark.files.storage import opened
from lance_sdk.spark.logs.resolve import folders_of
from lance_sdk.spark.pipelines.session import spread
from lance_spec.messages.engine import SidecarHeader, SparseIndexEntry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RECORDS_PER_ENTRY: Final = 4096
_BUCKET_NS: Final = 10_000_000
_SEQUENCE_BITS: Final = 40
_NODE_AND_ACTOR: Final = ((1 << 24) - 1) << _SEQUENCE_BITS
_LOCK: Final = "lock"
_DEPTH: Final = 2
"""Folders between a topic's and the data directory: ``segments``, and the topic's own."""


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What was written.

    Attributes:
        segments: closed segments that were looked at.
        changed: paths of the indexes that were missing or different, and are written now; with
            ``dry_run`` would be.
    """

    segments: int
    changed: Sequence[str]


def reindex(
    spark: "SparkSession | None",
    path: str,
    *,
    dry_run: bool = False,
    tell: Callable[[int, int], object] | None = None,
) -> Reindexed:
    """Write the sparse indexes of all closed segments that have none, or others.

    Args:
        spark: the session whose tasks work, which must see the same local path; None works in
            processes on this machine.
        path: a data directory that no server uses, or a topic's folder.
        dry_run: only say what would be written.
        tell: called with segments done and segments in all.

    Raises:
        ConfigError: a server is using the directory, or the path is not local.
    """
    if "://" in path:
        raise ConfigError(f"path={path!r}: indexes are written next to segments; mount the folder")
    folders, _ = folders_of(path)
    with _held(Path(path)):
        segments = [segment for folder in folders for segment in topic_files(folder).segments]
        chosen = [each for each in segments if each.name.is_closed and each.sidecar is not None]
        work = _look_at if dry_run else _write
        changed = spread(spark, chosen, work, tell)
    return Reindexed(len(chosen), [name for names in changed for name in names])


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Keep servers out of the data directory that a path is, or lies in."""
    inside = path.absolute()
    locks = [each / _LOCK for each in (inside, *inside.parents[:_DEPTH])]
    lock = next((each for each in locks if each.exists()), None)
    if lock is None:
        yield
        return
    fd = platform.open_file(lock, os.O_RDWR)
    try:
        platform.lock(fd)
        yield
    except BlockingIOError:
        raise ConfigError(f"{path} is in use by a server, which keeps its indexes itself") from None
    finally:
        os.close(fd)


def _look_at(segment: Segment) -> list[str]:
    return [str(path) for path, _ in _differing(segment)]


def _write(segment: Segment) -> list[str]:
    names = []
    for path, content in _differing(segment):
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            with fresh.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        finally:
            with suppress(FileNotFoundError):
                fresh.unlink()
        names.append(str(path))
    return names


def _differing(segment: Segment) -> Iterator[tuple[Path, bytes]]:
    entries, _ = read_entries(segment)
    assert segment.sidecar is not None, "others were left out"
    stem = segment.sidecar.removesuffix(".batches")
    sparse = Path(f"{stem}.sparse.idx")
    present = _content(sparse)
    wanted = encode_sparse(entries, _base_record(segment.sidecar), _node_of(present))
    if present != wanted:
        yield sparse, wanted
    secondary = Path(f"{stem}.secondary.idx")
    if _content(secondary) != (wanted := encode_secondary(entries)):
        yield secondary, wanted


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _base_record(sidecar: str) -> int:
    with opened(sidecar) as file:
        return SidecarHeader.decode(bytes(file.read_at(SidecarHeader.SIZE, 0))).base_record


def _node_of(present: bytes | None) -> int:
    """Return node and actor, in place, of the server that wrote the index before."""
    if present is None or len(present) < SparseIndexEntry.SIZE:
        return 0
    first = SparseIndexEntry.decode(present[: SparseIndexEntry.SIZE])
    return first.node_actor_sequence & _NODE_AND_ACTOR


def encode_sparse(entries: Entries, base_record: int, node_and_actor: int) -> bytes:
    """Return the primary index: the first batch after every 4,096 records.

    Args:
        entries: the valid entries of a sidecar.
        base_record: records in the topic before the segment.
        node_and_actor: of the sort keys, at their place in the lower half.
    """
    counts: np.ndarray[Any, Any] = entries["records"].astype(np.int64)
    firsts = (np.cumsum(counts) - counts + base_record).tolist()
    rows, due = [], base_record
    for number, record in enumerate(firsts):
        if record >= due:
            entry = entries[number]
            low = node_and_actor | record % (1 << _SEQUENCE_BITS)
            row = SparseIndexEntry(low, int(entry["server_ns"]), int(entry["start"]))
            rows.append(row.encode())
            due = record + _RECORDS_PER_ENTRY
    return b"".join(rows)


def encode_secondary(entries: Entries) -> bytes:
    """Return the secondary index: the first batch of every 10 ms."""
    buckets: np.ndarray[Any, Any] = entries["server_ns"] // _BUCKET_NS
    first: np.ndarray[Any, Any] = np.ones(len(entries), dtype=bool)
    first[1:] = buckets[1:] != buckets[:-1]
    table: np.ndarray[Any, Any] = np.empty((int(first.sum()), 2), "<u8")
    table[:, 0] = entries["server_ns"][first]
    table[:, 1] = entries["start"][first]
    return bytes(table.tobytes())
