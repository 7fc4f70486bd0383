"""Open files and indexes of the segments that are being read, bounded."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from lance_server.log.scan import count_entries, load_index
from lance_server.log.segment import Segment
from lance_server.log.sidecar import DAMAGED, BatchIndex
from lance_server.storage.contract import StorageBackend, WouldBlockError

_log = logging.getLogger(__name__)
_RENAME_RETRIES: Final = 3
_QUICK_ENTRIES: Final = 2048
"""Indexes up to this many batches are built at once; longer ones on a worker thread."""


@dataclass(slots=True, eq=False)
class OpenSegment:
    """A segment that can be read now.

    Attributes:
        data: descriptor of the data file.
        index: where its batches stand.
        leases: readers that use it at the moment.
        dropped: nobody new may use it; the last reader closes the file.
    """

    data: int
    index: BatchIndex
    leases: int = 0
    dropped: bool = False


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
        self._open: OrderedDict[Segment, OpenSegment] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def __repr__(self) -> str:
        return f"<SegmentCache {len(self)} of {self._max_files} files open>"

    @contextmanager
    def lease(self, segment: Segment, *, cached_only: bool) -> Iterator[OpenSegment]:
        """Lend a segment's file and index for the length of a read.

        Raises:
            WouldBlockError: ``cached_only`` is set and opening it would take its time.
            OSError: a file cannot be opened or read.
        """
        opened = self._take(segment)
        if opened is None:
            opened = self._insert(segment, self._load(segment, cached_only=cached_only))
        try:
            yield opened
        finally:
            self._give_back(opened)

    def _take(self, segment: Segment) -> OpenSegment | None:
        with self._lock:
            opened = self._open.get(segment)
            if opened is not None:
                opened.leases += 1
                self._open.move_to_end(segment)
            return opened

    def _insert(self, segment: Segment, loaded: OpenSegment) -> OpenSegment:
        with self._lock:
            opened = self._open.setdefault(segment, loaded)
            opened.leases += 1
            if opened is not loaded:  # another reader was quicker
                self._storage.close(loaded.data)
            self._evict()
            return opened

    def _give_back(self, opened: OpenSegment) -> None:
        with self._lock:
            opened.leases -= 1
            if opened.dropped and not opened.leases:
                self._storage.close(opened.data)

    def _load(self, segment: Segment, *, cached_only: bool) -> OpenSegment:
        data = self._open_data(segment)
        try:
            index = segment.live
            if index is None:
                index = self._load_index(segment, data, cached_only=cached_only)
        except BaseException:
            self._storage.close(data)
            raise
        return OpenSegment(data, index)

    def _open_data(self, segment: Segment) -> int:
        """Open the data file, which may be getting its closed name at this moment."""
        for _ in range(_RENAME_RETRIES):
            try:
                return self._storage.open(segment.data_path)
            except FileNotFoundError:
                continue
        return self._storage.open(segment.data_path)

    def _load_index(self, segment: Segment, data: int, *, cached_only: bool) -> BatchIndex:
        sidecar = self._storage.open(segment.sidecar_path)
        try:
            if cached_only and count_entries(self._storage, sidecar) > _QUICK_ENTRIES:
                raise WouldBlockError
            index = load_index(self._storage, segment, data, sidecar)
        finally:
            self._storage.close(sidecar)
        if damaged := index.kinds.count(DAMAGED):
            _log.error("%s has %d damaged ranges", segment.data_path, damaged)
        return index

    def _evict(self) -> None:
        """Close what was read longest ago; what is being read closes when its reader is done."""
        batches = sum(len(opened.index) for opened in self._open.values())
        while len(self._open) > 1 and (
            len(self._open) > self._max_files or batches > self._max_batches
        ):
            _, opened = self._open.popitem(last=False)
            batches -= len(opened.index)
            self._drop(opened)

    def _drop(self, opened: OpenSegment) -> None:
        opened.dropped = True
        if not opened.leases:
            self._storage.close(opened.data)

    def forget(self, segments: list[Segment]) -> None:
        """Close segments that are about to be deleted."""
        with self._lock:
            for segment in segments:
                opened = self._open.pop(segment, None)
                if opened is not None:
                    self._drop(opened)

    def close(self) -> None:
        """Close everything."""
        self.forget(list(self._open))
