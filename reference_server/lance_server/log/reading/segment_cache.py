"""Open files and indexes of the segments that are being read, bounded.

Of a closed segment only parts of the index are loaded: those around what is read. A part grows
when reading goes on after it, so that a reader who goes through everything loads little at a
time and one who seeks loads little at all.
"""

import contextlib
import logging
import resource
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from lance_server.log.reading.fast_fetch import FastFetch
from lance_server.log.segments.segment_files import Segment
from lance_server.log.segments.sidecar import DAMAGED, BatchIndex
from lance_server.log.segments.sidecar_scan import load_index
from lance_server.log.segments.sidecar_search import SidecarSearch
from lance_server.runtime.sync import new_lock
from lance_server.storage.contract import StorageBackend

_log = logging.getLogger(__name__)
_RENAME_RETRIES: Final = 3
_SEEK_ENTRIES: Final = 128
"""Batches in a part of an index that a seek loads: 8 KiB of a sidecar."""
_SCAN_ENTRIES: Final = 8192
"""Batches in a part that is loaded where reading went on after another one."""
_PARTS: Final = 256
"""Parts kept of one segment's index."""
_SHARE: Final = 4
"""What part of the descriptors that the process may have is for reading: one in so many."""
_FEWEST: Final = 64
_MOST: Final = 16_384


def files_allowed() -> int:
    """Return how many segments may be kept open for reading, by the limit of descriptors.

    An open segment takes some 300 bytes, and 800 more once it is closed for writing, beside the
    index of its batches, which has a bound of its own: 18 MiB for the most that there can be.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _MOST if soft == resource.RLIM_INFINITY else soft // _SHARE
    return max(_FEWEST, min(allowed, _MOST))


@dataclass(frozen=True, slots=True)
class _Part:
    """Part of a closed segment's index.

    Attributes:
        low: the relative offset from which on it answers.
        high: the one from which on it does not any more.
        index: the batches between, and the one after them.
        fast_fetch: what answers with whole ones of them at once, if anything does.
    """

    low: int
    high: int
    index: BatchIndex
    fast_fetch: FastFetch | None

    @property
    def long(self) -> bool:
        """Whether a longer one would not be loaded."""
        return len(self.index) >= _SCAN_ENTRIES


class OpenFile:
    """A segment's open file; it is closed when nobody holds it any more.

    Args:
        data: descriptor of the data file.
        live: the index of the segment that is being written.
        unused: where the descriptor is put in the end; the cache closes what is there. The
            garbage collector may be what ends this, in the middle of anything.

    Attributes:
        data: descriptor of the data file.
        live: the index of the segment that is being written.
        parts: what is loaded of a closed segment's index, newest first.
        last: the part that was used last.
        batches: how many batches these index, for readers alone.
        dropped: nobody new may use it.
    """

    __slots__ = ("__weakref__", "_unused", "batches", "data", "dropped", "last", "live", "parts")

    def __init__(self, data: int, live: BatchIndex | None, unused: deque[int]) -> None:
        self.data = data
        self.live = live
        self.parts: tuple[_Part, ...] = ()
        self.last: _Part | None = None
        self.batches = 0
        self.dropped = False
        self._unused = unused

    def __del__(self) -> None:
        """Give the descriptor up: the last reader is done, and the cache has dropped it."""
        self._unused.append(self.data)

    def __repr__(self) -> str:
        return f"<OpenFile {self.data} {len(self.parts)} parts, {self.batches} batches>"

    def keep(self, part: _Part) -> int:
        """Keep a part, for the oldest of too many; return how many more batches there are now."""
        gone = self.parts[_PARTS - 1 :]
        self.parts = (part, *self.parts[: _PARTS - 1])
        more = len(part.index) - sum(len(each.index) for each in gone)
        self.batches += more
        return more


class SegmentCache:
    """Keeps recently read segments open.

    Args:
        storage: the backend.
        max_files: segments kept open; what that costs is said at `files_allowed`.
        max_batches: batches whose index is kept, 26 bytes each.
    """

    def __init__(
        self, storage: StorageBackend, *, max_files: int = 256, max_batches: int = 4_000_000
    ) -> None:
        self._storage = storage
        self._max_files = max_files
        self._max_batches = max_batches
        self._open: OrderedDict[Segment, OpenFile] = OrderedDict()
        self._unused: deque[int] = deque()
        self._batches = 0
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._open)

    def __repr__(self) -> str:
        return f"<SegmentCache {len(self)} of {self._max_files} files open>"

    def open(
        self, segment: Segment, position: int, length: int, *, cached_only: bool
    ) -> tuple[OpenFile, BatchIndex]:
        """Return a segment's file, and its index of what is to be read.

        The file stays open for as long as the caller holds it.

        Args:
            segment: the segment.
            position: where the read begins, relative to the segment.
            length: how many bytes it wants; of very many small batches not all are indexed.
            cached_only: do not wait for the disk.

        Raises:
            WouldBlockError: ``cached_only`` is set and the disk would have to be waited for.
            OSError: a file cannot be opened or read.
        """
        files = self._open
        try:
            files.move_to_end(segment)
            file = files[segment]  # another thread may have dropped it between these two
        except KeyError:
            file = self._insert(segment, self._open_file(segment))
        if self._unused:
            self._close_unused()
        if file.live is not None:
            return file, file.live
        part, stop = file.last, position + length
        if part is None or not part.low <= position <= stop <= part.high:
            part = file.last = self._part(segment, file, position, stop, cached_only)
        return file, part.index

    def _insert(self, segment: Segment, opened: OpenFile) -> OpenFile:
        with self._lock:
            file = self._open.setdefault(segment, opened)  # or the one of a reader that was faster
            self._evict()
        self._close_unused()
        return file

    def _open_file(self, segment: Segment) -> OpenFile:
        live = segment.live
        for _ in range(_RENAME_RETRIES):  # it may be getting its closed name at this moment
            try:
                return OpenFile(self._storage.open(segment.data_path), live, self._unused)
            except FileNotFoundError:
                continue
        return OpenFile(self._storage.open(segment.data_path), live, self._unused)

    def _part(
        self, segment: Segment, file: OpenFile, start: int, stop: int, cached_only: bool
    ) -> _Part:
        """Return the part of the index that has what is wanted; load it if it is not there."""
        stop = min(stop, segment.size)
        follows = False
        for part in file.parts:
            if part.low <= start < part.high and (stop <= part.high or part.long):
                return part
            follows = follows or part.low < start <= part.high
        count = _SCAN_ENTRIES if follows else _SEEK_ENTRIES
        part = self._load(segment, file, start, count, cached_only)
        if part.high < stop and not follows:
            part = self._load(segment, file, start, _SCAN_ENTRIES, cached_only)
        with self._lock:
            if not file.dropped:
                self._batches += file.keep(part)
                self._evict()
        return part

    def _load(
        self, segment: Segment, file: OpenFile, position: int, count: int, cached_only: bool
    ) -> _Part:
        storage = self._storage
        sidecar = storage.open(segment.sidecar_path)
        try:
            search = SidecarSearch(storage, sidecar, cached_only=cached_only)
            first = search.entry_at(position) if search.count > count else 0
            wanted = slice(first, first + count)
            index = load_index(
                storage, segment, file.data, sidecar, wanted, cached_only=cached_only
            )
        finally:
            storage.close(sidecar)
        if damaged := index.kinds.count(DAMAGED):
            _log.error("%s has %d damaged ranges", segment.data_path, damaged)
        low = index.starts[0] if first else 0
        high = segment.size if wanted.stop >= search.count else index.starts[-1]
        return _Part(low, high, index, FastFetch.over(storage, segment, file, index, high))

    def fast_fetch_at(self, segment: Segment, position: int) -> FastFetch | None:
        """Return the fast path of the part that a closed segment was last read from, or None.

        Args:
            segment: a closed one.
            position: what the part must hold, relative to the segment.
        """
        file = self._open.get(segment)
        if file is None:
            return None
        part, index = file.last, file.live
        if part is None and index is not None:  # it was opened while it was being written
            fast_fetch = FastFetch.over(self._storage, segment, file, index, segment.size)
            part = file.last = _Part(0, segment.size, index, fast_fetch)
        return part.fast_fetch if part is not None and part.low <= position < part.high else None

    def _evict(self) -> None:
        """Drop what was read longest ago; what is being read closes when its reader is done."""
        while len(self._open) > 1 and (
            len(self._open) > self._max_files or self._batches > self._max_batches
        ):
            self._drop(self._open.popitem(last=False)[1])

    def _drop(self, file: OpenFile) -> None:
        file.dropped = True
        self._batches -= file.batches

    def forget(self, segments: list[Segment]) -> None:
        """Give up segments that are about to be deleted."""
        with self._lock:
            for segment in segments:
                file = self._open.pop(segment, None)
                if file is not None:
                    self._drop(file)
                file = None  # the last hold on it, unless it is being read
        self._close_unused()

    def _close_unused(self) -> None:
        """Close the files that nobody holds any more."""
        while self._unused:
            with contextlib.suppress(IndexError, OSError):  # another thread was quicker
                self._storage.close(self._unused.popleft())

    def close(self) -> None:
        """Give up everything."""
        self.forget(list(self._open))
