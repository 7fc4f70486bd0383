"""Places of records by their numbers: for clients that count records instead of bytes.

Sidecars say how many records each batch has; sums of these, kept for the segments that were
asked about, are searched by halves.
"""

from array import array
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple

from lance_server.log.partition import Partition
from lance_server.log.segments.segment_files import Segment
from lance_server.log.segments.sidecar_scan import read_entries
from lance_server.runtime.completion import Completion
from lance_server.runtime.scheduling import Scheduler
from lance_server.storage.contract import StorageBackend

_MAX_BATCHES: Final = 2_000_000


class BatchLocation(NamedTuple):
    """Where a batch begins.

    Attributes:
        offset: the topic's byte offset.
        record: number of records in the topic before it.
    """

    offset: int
    record: int


@dataclass(slots=True)
class _Sums:
    """The batches of one segment, relative to it: 16 bytes a batch.

    Attributes:
        starts: where each begins.
        firsts: how many records there are before each.
        records: how many records there are in all of them.
        complete: whether the segment has no others.
    """

    starts: "array[int]" = field(default_factory=lambda: array("Q"))
    firsts: "array[int]" = field(default_factory=lambda: array("Q"))
    records: int = 0
    complete: bool = False

    def add(self, start: int, count: int) -> None:
        """Add the next batch."""
        self.starts.append(start)
        self.firsts.append(self.records)
        self.records += count

    def catch_up(self, segment: Segment) -> None:
        """Add what was written since to a segment that grows (the event loop's thread)."""
        live, known = segment.live, len(self.starts)
        assert live is not None, "it grows"
        sums = list(accumulate(live.counts[known:], initial=self.records))
        self.starts.extend(live.starts[known:])
        self.firsts.extend(sums[:-1])
        self.records = sums[-1]


class RecordIndex:
    """Finds records by number in every topic. Belongs to the event loop's thread.

    Args:
        storage: the backend.
        scheduler: where sidecars are read.
        max_batches: batches whose sums are kept.
    """

    def __init__(
        self, storage: StorageBackend, scheduler: Scheduler, *, max_batches: int = _MAX_BATCHES
    ) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._max_batches = max_batches
        self._known: OrderedDict[Segment, _Sums] = OrderedDict()

    def __repr__(self) -> str:
        batches = sum(len(sums.starts) for sums in self._known.values())
        return f"<RecordIndex {len(self._known)} segments, {batches} batches>"

    def find(self, partition: Partition, number: int) -> Completion[BatchLocation]:
        """Find the batch that holds a record; the end of the topic when none does.

        Args:
            partition: the topic's log.
            number: of the record, not below the topic's first.
        """
        outcome: Completion[BatchLocation] = Completion()
        if number >= partition.end_record:
            outcome.settle(BatchLocation(partition.end_offset, partition.end_record))
            return outcome
        segment = _last(partition, number, by_record=True)
        if segment is None:
            outcome.settle(BatchLocation(partition.log_start.offset, partition.log_start.record))
            return outcome
        return self._sums(segment).then(
            lambda sums: _batch(
                segment, sums, bisect_right(sums.firsts, number - segment.base_record)
            )
        )

    def number_at(self, partition: Partition, offset: int) -> Completion[int]:
        """Find how many records there are before a byte offset where a batch begins."""
        outcome: Completion[int] = Completion()
        if offset >= partition.end_offset:
            outcome.settle(partition.end_record)
            return outcome
        segment = _last(partition, offset, by_record=False)
        if segment is None:
            outcome.settle(partition.log_start.record)
            return outcome
        position = offset - segment.base_offset
        if position >= segment.size:
            outcome.settle(segment.base_record + segment.records)
            return outcome
        return self._sums(segment).then(
            lambda sums: _batch(segment, sums, bisect_right(sums.starts, position)).record
        )

    def _sums(self, segment: Segment) -> Completion[_Sums]:
        sums = self._known.get(segment)
        if segment.live is not None:
            sums = sums or _Sums()
            sums.catch_up(segment)
        if sums is not None and (sums.complete or segment.live is not None):
            self._keep(segment, sums)
            outcome: Completion[_Sums] = Completion()
            outcome.settle(sums)
            return outcome
        loaded = self._scheduler.run("read", lambda: self._load(segment))
        return loaded.then(lambda found: self._keep(segment, found))

    def _keep(self, segment: Segment, sums: _Sums) -> _Sums:
        self._known[segment] = sums
        self._known.move_to_end(segment)
        total = sum(len(each.starts) for each in self._known.values())
        while len(self._known) > 1 and total > self._max_batches:
            total -= len(self._known.popitem(last=False)[1].starts)
        return sums

    def _load(self, segment: Segment) -> _Sums:
        """Read the sidecar of a closed segment (worker thread)."""
        sums = _Sums(complete=True)
        sidecar = self._storage.open(segment.sidecar_path)
        try:
            for entry in read_entries(self._storage, sidecar):
                if entry is not None:
                    sums.add(entry.relative_offset, entry.record_count)
        finally:
            self._storage.close(sidecar)
        return sums


def _last(partition: Partition, wanted: int, *, by_record: bool) -> Segment | None:
    """Return the last segment that begins at or before what is wanted."""
    segments = partition.segment_list
    number = bisect_right(
        segments, wanted, key=lambda each: each.base_record if by_record else each.base_offset
    )
    return segments[number - 1] if number else None


def _batch(segment: Segment, sums: _Sums, behind: int) -> BatchLocation:
    """Return where the batch before number ``behind`` begins."""
    number = max(behind - 1, 0)
    if not sums.starts:
        return BatchLocation(segment.end_offset, segment.base_record + segment.records)
    return BatchLocation(
        segment.base_offset + sums.starts[number], segment.base_record + sums.firsts[number]
    )
