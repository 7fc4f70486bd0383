"""Open files and indexes of the segments that are being read, bounded.

Of a closed segment only parts of the index are loaded: those around what is read. A part grows
when reading goes on behind it, so that a reader who goes through everything loads little at a
time and one who seeks loads little at all.
"""

import logging
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final, Self

from lance_server.log.scan import load_index
from lance_server.log.search import SidecarSearch
from lance_server.log.segment import Segment
from lance_server.log.sidecar import DAMAGED, BatchIndex
from lance_server.storage.contract import StorageBackend

_log = logging.getLogger(__name__)
_RENAME_RETRIES: Final = 3
_SEEK_ENTRIES: Final = 128
"""Batches in a part of an index that a seek loads: 8 KiB of a sidecar."""
_SCAN_ENTRIES: Final = 8192
"""Batches in a part that is loaded where reading went on behind another one."""
_PARTS: Final = 64
"""Parts kept of one segment's index."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Part of a closed segment's index.

    Attributes:
        low: the relative offset from which on it answers.
        high: the one from which on it does not any more.
        index: the batches between, and the one behind them.
    """

    low: int
    high: int
    index: BatchIndex

    @property
    def long(self) -> bool:
        """Whether a longer one would not be loaded."""
        return len(self.index) >= _SCAN_ENTRIES


@dataclass(slots=True, eq=False)
class _Files:
    """A segment's open file.

    Attributes:
        data: descriptor of the data file.
        live: the index of the segment that is being written.
        parts: what is loaded of a closed segment's index, newest first.
        batches: how many batches these index, for readers alone.
        leases: readers that use it at the moment.
        dropped: nobody new may use it; the last reader closes the files.
    """

    data: int
    live: BatchIndex | None = None
    parts: deque[_Part] = field(default_factory=deque)
    batches: int = 0
    leases: int = 0
    dropped: bool = False

    def keep(self, part: _Part) -> int:
        """Keep a part, for the oldest of too many; return how many more batches there are now."""
        gone = len(self.parts.pop().index) if len(self.parts) == _PARTS else 0
        self.parts.appendleft(part)
        more = len(part.index) - gone
        self.batches += more
        return more


class OpenSegment:
    """A segment that can be read around some position until the end of a ``with`` block.

    Attributes:
        data: descriptor of the data file.
        index: where the batches around that position stand.
    """

    __slots__ = ("_cache", "_files", "data", "index")

    def __init__(self, cache: "SegmentCache", files: _Files, index: BatchIndex) -> None:
        self._cache = cache
        self._files = files
        self.data = files.data
        self.index = index

    def __repr__(self) -> str:
        return f"<OpenSegment {self._files!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._cache.give_back(self._files)


class SegmentCache:
    """Keeps recently read segments open.

    Args:
        storage: the backend.
        max_files: segments kept open.
        max_batches: batches whose index is kept, 26 bytes each.
    """

    def __init__(
        self, storage: StorageBackend, *, max_files: int = 256, max_batches: int = 4_000_000
    ) -> None:
        self._storage = storage
        self._max_files = max_files
        self._max_batches = max_batches
        self._open: OrderedDict[Segment, _Files] = OrderedDict()
        self._batches = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def __repr__(self) -> str:
        return f"<SegmentCache {len(self)} of {self._max_files} files open>"

    def lease(
        self, segment: Segment, position: int, length: int, *, cached_only: bool
    ) -> OpenSegment:
        """Lend a segment's file, and its index of what is to be read, for one ``with`` block.

        Args:
            segment: the segment.
            position: where the read begins, relative to the segment.
            length: how many bytes it wants; of very many small batches not all are indexed.
            cached_only: do not wait for the disk.

        Raises:
            WouldBlockError: ``cached_only`` is set and the disk would have to be waited for.
            OSError: a file cannot be opened or read.
        """
        files = self._take(segment) or self._insert(segment, self._open_files(segment))
        try:
            index = self._index(segment, files, position, position + length, cached_only)
        except BaseException:
            self.give_back(files)
            raise
        return OpenSegment(self, files, index)

    def _take(self, segment: Segment) -> _Files | None:
        with self._lock:
            files = self._open.get(segment)
            if files is not None:
                files.leases += 1
                self._open.move_to_end(segment)
            return files

    def _insert(self, segment: Segment, opened: _Files) -> _Files:
        with self._lock:
            files = self._open.setdefault(segment, opened)
            files.leases += 1
            if files is not opened:  # another reader was quicker
                self._storage.close(opened.data)
            self._evict()
            return files

    def give_back(self, files: _Files) -> None:
        """Note that a reader is done."""
        with self._lock:
            files.leases -= 1
            if files.dropped and not files.leases:
                self._storage.close(files.data)

    def _open_files(self, segment: Segment) -> _Files:
        live = segment.live
        for _ in range(_RENAME_RETRIES):  # it may be getting its closed name at this moment
            try:
                return _Files(self._storage.open(segment.data_path), live)
            except FileNotFoundError:
                continue
        return _Files(self._storage.open(segment.data_path), live)

    def _index(
        self, segment: Segment, files: _Files, start: int, stop: int, cached_only: bool
    ) -> BatchIndex:
        """Return the index of what is wanted; it is loaded when it is not there."""
        if files.live is not None:
            return files.live
        stop = min(stop, segment.size)
        follows = False
        for part in list(files.parts):
            if part.low <= start < part.high and (stop <= part.high or part.long):
                return part.index
            follows = follows or part.low < start <= part.high
        count = _SCAN_ENTRIES if follows else _SEEK_ENTRIES
        part = self._load(segment, files, start, count, cached_only)
        if part.high < stop and not follows:
            part = self._load(segment, files, start, _SCAN_ENTRIES, cached_only)
        with self._lock:
            if not files.dropped:
                self._batches += files.keep(part)
                self._evict()
        return part.index

    def _load(
        self, segment: Segment, files: _Files, position: int, count: int, cached_only: bool
    ) -> _Part:
        storage = self._storage
        sidecar = storage.open(segment.sidecar_path)
        try:
            search = SidecarSearch(storage, sidecar, cached_only=cached_only)
            first = search.entry_at(position)
            wanted = slice(first, first + count)
            index = load_index(
                storage, segment, files.data, sidecar, wanted, cached_only=cached_only
            )
        finally:
            storage.close(sidecar)
        if damaged := index.kinds.count(DAMAGED):
            _log.error("%s has %d damaged ranges", segment.data_path, damaged)
        low = index.starts[0] if first else 0
        high = segment.size if wanted.stop >= search.count else index.starts[-1]
        return _Part(low, high, index)

    def _evict(self) -> None:
        """Close what was read longest ago; what is being read closes when its reader is done."""
        while len(self._open) > 1 and (
            len(self._open) > self._max_files or self._batches > self._max_batches
        ):
            _, files = self._open.popitem(last=False)
            self._drop(files)

    def _drop(self, files: _Files) -> None:
        files.dropped = True
        self._batches -= files.batches
        if not files.leases:
            self._storage.close(files.data)

    def forget(self, segments: list[Segment]) -> None:
        """Close segments that are about to be deleted."""
        with self._lock:
            for segment in segments:
                files = self._open.pop(segment, None)
                if files is not None:
                    self._drop(files)

    def close(self) -> None:
        """Close everything."""
        self.forget(list(self._open))
