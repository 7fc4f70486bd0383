"""Retention: which segments a topic need not keep, and how they go (AMB-08, AMB-25, AMB-29).

Whole segments go, oldest first, never the one that is being written. First the topic's file
records, durably, where the topic begins from now on and which segments are going; then readers
stop seeing them; then their data is removed. Their sidecars stay for as long as the duplicate
window may need them: a batch that was stored once is not stored again because it was old.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from lance_server.log.dedup import WindowLimits
from lance_server.log.indexes import index_names
from lance_server.log.scan import count_entries, last_entry
from lance_server.log.segment import DATA_SUFFIX, SIDECAR_SUFFIX, Segment, SegmentName
from lance_server.log.topic_file import Retention, TopicFile
from lance_server.storage.contract import StorageBackend

WINDOW_SUFFIX: Final = ".window"
_NANOSECONDS: Final = 1_000_000_000


def expired(segments: Sequence[Segment], retention: Retention, now_ns: int) -> int:
    """Return how many of the oldest segments need not be kept.

    By age a segment goes when its last batch is too old; by size when what is left without it
    is still at least what is to be kept.

    Args:
        segments: by rising base.
        retention: the topic's policy.
        now_ns: the server's time.
    """
    left = sum(segment.size for segment in segments)
    oldest_ns = now_ns - retention.max_age_secs * _NANOSECONDS
    for number, segment in enumerate(segments):
        left -= segment.size
        too_old = retention.max_age_secs and segment.last_ns < oldest_ns
        too_much = retention.max_bytes and left >= retention.max_bytes
        if segment.live is not None or not (too_old or too_much):
            return number
    return len(segments)


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
    storage: StorageBackend, folder: Path, limits: WindowLimits, now_ns: int, present: int
) -> None:
    """Remove the sidecars that lie wholly behind the duplicate window.

    Args:
        storage: the backend.
        folder: the topic's.
        limits: the size of the window.
        now_ns: the server's time.
        present: batches of the segments that are still there.
    """
    kept = present
    for path, entries, last_ns in _measured(storage, window_files(storage, folder)):
        too_old = last_ns < now_ns - limits.max_age_secs * _NANOSECONDS
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
