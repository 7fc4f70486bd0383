"""Retention: which segments a topic need not keep, and how they go (AMB-08, AMB-25, AMB-29).

Whole segments go, oldest first, never the one that is being written. First the topic's file
records, durably, where the topic begins from now on and which segments are going; then readers
stop seeing them; then their data is removed. Their sidecars stay for as long as the duplicate
window may need them: a batch that was stored once is not stored again because it was old.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from lance_server.log.dedup import WindowLimits
from lance_server.log.metadata.topic_file import Retention, TopicFile
from lance_server.log.segments.indexes import index_names
from lance_server.log.segments.segment_files import (
    DATA_SUFFIX,
    SIDECAR_SUFFIX,
    Segment,
    SegmentName,
)
from lance_server.log.segments.sidecar_scan import count_entries, last_entry
from lance_server.storage.contract import StorageBackend
from lance_spec.limits import MAX_PAYLOAD

_log = logging.getLogger(__name__)
WINDOW_SUFFIX: Final = ".window"
SHARES: Final = 8
"""Into how many segments the limit of a topic is divided."""
_NANOSECONDS: Final = 1_000_000_000


def tell_if_best_effort(topic_id: int, retention: Retention) -> None:
    """Say that a limit in bytes is so small that one batch may be more than it allows."""
    least = SHARES * MAX_PAYLOAD
    if 0 < retention.max_bytes < least:
        _log.info(
            "topic %d: max_bytes %d is kept as well as batches let it be: below %d, %d of the "
            "largest batches, a large batch may take more",
            topic_id,
            retention.max_bytes,
            least,
            SHARES,
        )


def expired(
    segments: Sequence[Segment],
    retention: Retention,
    now_ns: int | None,
    seen: Mapping[str, int] | None = None,
) -> int:
    """Return how many of the oldest segments need not be kept.

    By age a segment goes when its last batch is too old. By size segments go until the closed
    ones hold at most seven eighths of the limit: the one that is written then has the rest. A
    segment of more than an eighth goes when what follows it holds seven eighths: it is of
    before the limit, or one batch.

    Args:
        segments: by rising base.
        retention: the topic's policy.
        now_ns: the server's time; None where it cannot be believed: then nothing is too old.
        seen: when segments of a time to come were seen first, by key: their age counts from then.
    """
    seen = seen or {}
    following = sum(segment.size for segment in segments)
    closed = sum(segment.size for segment in segments if segment.live is None)
    aged = retention.max_age_secs and now_ns is not None
    oldest_ns = (now_ns or 0) - retention.max_age_secs * _NANOSECONDS
    for number, segment in enumerate(segments):
        following -= segment.size
        last_ns = min(segment.last_ns, seen.get(segment.name.key, segment.last_ns))
        too_old = aged and last_ns < oldest_ns
        too_much = is_surplus(segment.size, closed, following, retention.max_bytes)
        closed -= segment.size
        if segment.live is not None or not (too_old or too_much):
            return number
    return len(segments)


def is_surplus(size: int, closed: int, following: int, max_bytes: int) -> bool:
    """Return whether the limit of a topic in bytes lets its oldest segment go (AMB-57).

    Args:
        size: of the segment.
        closed: bytes of all closed segments, this one among them.
        following: bytes of all segments after it.
        max_bytes: the limit; 0 means no limit.
    """
    share = max_bytes // SHARES
    kept = max_bytes - share
    return bool(max_bytes) and closed > kept and (size <= share or following >= kept)


def segment_limit(retention: Retention, segment_size: int) -> int:
    """Return the bytes after which a segment of a topic is closed.

    Args:
        retention: the topic's policy; of a limited topic a segment has an eighth of the limit.
        segment_size: bytes after which segments of other topics are closed.
    """
    share = retention.max_bytes // SHARES
    return max(1, min(segment_size, share)) if retention.max_bytes else segment_size


def remove_retired(storage: StorageBackend, file: TopicFile) -> None:
    """Remove the data of the segments that the topic's file says are going.

    Raises:
        OSError: the disk refused; the file still says so, and the next call goes on.
    """
    if not file.retiring:
        return
    listed, retiring = storage.list_dir(file.folder), set(file.retiring)
    names = set(listed)
    for key in file.retiring:
        if f"{key}{SIDECAR_SUFFIX}" in names:
            sidecar = file.folder / f"{key}{SIDECAR_SUFFIX}"
            storage.rename(sidecar, sidecar.with_suffix(WINDOW_SUFFIX))
    indexes = {name for key in retiring for name in index_names(key)}
    for name in listed:
        parsed = SegmentName.parse(name) if name.endswith(DATA_SUFFIX) else None
        if name in indexes or (parsed is not None and parsed.key in retiring):
            storage.remove(file.folder / name)
    storage.sync_dir(file.folder)
    file.retired()


def window_files(storage: StorageBackend, folder: Path) -> list[Path]:
    """Return the sidecars of segments that are gone, newest first."""
    found = [name for name in storage.list_dir(folder) if name.endswith(WINDOW_SUFFIX)]
    return [folder / name for name in sorted(found, key=_start_ns, reverse=True)]


def _start_ns(name: str) -> int:
    parsed = SegmentName.parse(name.removesuffix(WINDOW_SUFFIX) + DATA_SUFFIX)
    return 0 if parsed is None else parsed.start_ns


def prune_windows(
    storage: StorageBackend, folder: Path, limits: WindowLimits, now_ns: int | None, present: int
) -> None:
    """Remove the sidecars of which no batch is in the duplicate window any more.

    Args:
        storage: the backend.
        folder: the topic's.
        limits: the size of the window.
        now_ns: the server's time; None where it cannot be believed.
        present: batches of the segments that are still there.
    """
    kept = present
    for path, entries, last_ns in _measured(storage, window_files(storage, folder)):
        too_old = now_ns is not None and last_ns < now_ns - limits.max_age_secs * _NANOSECONDS
        if too_old or kept >= limits.entries:
            storage.remove(path)
        kept += entries


def _measured(storage: StorageBackend, paths: list[Path]) -> Iterator[tuple[Path, int, int]]:
    for path in paths:
        fd = storage.open(path)
        try:
            last = last_entry(storage, fd)
            yield path, count_entries(storage, fd), 0 if last is None else last.server_time_ns
        finally:
            storage.close(fd)
