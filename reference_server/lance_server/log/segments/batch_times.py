"""When the batches of a range were stored, as their sidecars say (AMB-61)."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from struct import Struct
from typing import Final, NamedTuple

from lance_server.log.segments.segment_files import Segment, View
from lance_server.log.segments.sidecar_scan import read_entries
from lance_server.log.segments.sidecar_search import SidecarSearch
from lance_server.storage.contract import StorageBackend, opened
from lance_spec.messages.engine import SidecarEntry

_MOST: Final = 4096
"""Batches in one answer: 64 KiB."""
_AT_ONCE: Final = 256
_TIME: Final = Struct("<QQ")


class BatchTimes(NamedTuple):
    """When batches were stored.

    Attributes:
        next_offset: byte offset up to which the range was told.
        times: offset and time of each batch, as BatchTimesResponse has them.
    """

    next_offset: int
    times: bytes


def batch_times(storage: StorageBackend, view: View, start: int, end: int) -> BatchTimes:
    """Return when the batches that have bytes in a range were stored, as far as one answer goes.

    Args:
        storage: the backend.
        view: what is durable of the topic.
        start: byte offset at which the range begins.
        end: byte offset at which it ends; what lies after the end of the topic has no time.

    Raises:
        FileNotFoundError: a segment is gone, or merged into another one.
    """
    end = min(end, view.end_offset)
    told = list(islice(_times(storage, view, start, end), _MOST + 1))
    next_offset = told[_MOST][0] if len(told) > _MOST else end
    return BatchTimes(next_offset, b"".join(_TIME.pack(*each) for each in told[:_MOST]))


def _times(storage: StorageBackend, view: View, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield offset and time of each batch of a range."""
    first = bisect_right(view.segments, start, key=attrgetter("base_offset")) - 1
    for segment in view.segments[max(first, 0) :]:
        if segment.base_offset >= end:
            return
        for entry in _entries_after(storage, segment, start - segment.base_offset):
            offset = segment.base_offset + entry.relative_offset
            if offset >= end:
                return
            yield offset, entry.server_time_ns


def _entries_after(
    storage: StorageBackend, segment: Segment, position: int
) -> Iterator[SidecarEntry]:
    """Yield the valid entries of batches that end after a place in their segment."""
    with opened(storage, segment.sidecar_path) as sidecar:
        first = SidecarSearch(storage, sidecar).entry_at(position)
        for entry in read_entries(storage, sidecar, first, at_once=_AT_ONCE):
            if entry is not None and entry.relative_offset + entry.stored_length > position:
                yield entry
