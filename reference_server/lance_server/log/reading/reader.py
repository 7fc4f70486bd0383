"""Fetch: which bytes answer it, and where the answer is cut (AMB-18, AMB-19, AMB-27, AMB-39)."""

import logging
from bisect import bisect_right
from collections import OrderedDict
from operator import attrgetter
from typing import Final, NamedTuple

from lance_server.log.reading.segment_cache import OpenFile, SegmentCache
from lance_server.log.segments.segment_files import Segment, View
from lance_server.log.segments.sidecar import DAMAGED, OPAQUE, BatchIndex
from lance_server.lwp.refusals import Refusal
from lance_server.storage.contract import StorageBackend
from lance_spec.checksum import CRC32C
from lance_spec.codec.buffers import unfilled
from lance_spec.enums import ErrorCode
from lance_spec.records import RecordScan, scan_records

_log = logging.getLogger(__name__)
_KNOWN_BOUNDARIES: Final = 1024
base_of: Final = attrgetter("base_offset")


class Range(NamedTuple):
    """What a Fetch asks for.

    Attributes:
        start: the offset to begin at.
        max_bytes: the most data to return.
        opaque: whether batches that do not parse as records may be returned.
        room: bytes to leave free before the data, for the headers of the answer.
    """

    start: int
    max_bytes: int
    opaque: bool = False
    room: int = 0


class Fetched(NamedTuple):
    """What a Fetch returns.

    Attributes:
        next_offset: where the next Fetch should begin.
        record_count: whole records in the data; 0 when it begins inside a record.
        buffer: ``room`` bytes that are to be written, then the data.
    """

    next_offset: int
    record_count: int
    buffer: bytearray


class _Opened(NamedTuple):
    """A segment that is being read.

    Attributes:
        segment: the segment.
        file: its file, which stays open meanwhile.
        batches: where the batches around the place stand.
    """

    segment: Segment
    file: OpenFile
    batches: BatchIndex


class _Window(NamedTuple):
    """The part of one segment that answers a Fetch; all offsets are relative.

    Attributes:
        batch: number of the batch that holds `start`.
        behind: number after the last batch that fits whole; `batch` when not even that does.
        start: where the answer begins.
        limit: where it must end at the latest.
    """

    batch: int
    behind: int
    start: int
    limit: int


class _Cut(NamedTuple):
    """Where an answer ends.

    Attributes:
        end: relative offset after its last byte.
        records: whole records in it, when it begins on a boundary.
        on_boundary: whether a record ends there.
    """

    end: int
    records: int
    on_boundary: bool


class _DamageFoundError(Exception):
    """A batch turned out not to match its checksum while it was read."""


class LogReader:
    """Answers Fetch for one topic, from any thread.

    A batch that an earlier run of the server wrote is compared to its checksum before anything
    of it is returned for the first time.
    """

    def __init__(self, storage: StorageBackend, cache: SegmentCache) -> None:
        self._storage = storage
        self._cache = cache
        self._boundaries: OrderedDict[int, None] = OrderedDict()

    def fetch(self, view: View, wanted: Range, *, cached_only: bool = False) -> Fetched:
        """Return what stands at ``wanted.start``, which must not lie after the end.

        Raises:
            Refusal: the range is gone, damaged, or not for this client.
            WouldBlockError: ``cached_only`` is set and the disk would have to be waited for.
            OSError: the disk failed.
        """
        number = bisect_right(view.segments, wanted.start, key=base_of) - 1
        return self._fetch_whole(view, wanted, number, cached_only) or self._fetch_judged(
            view, wanted, number, cached_only
        )

    def _fetch_whole(
        self, view: View, wanted: Range, number: int, cached_only: bool
    ) -> Fetched | None:
        """Return whole batches that may be handed out as they are; None where none stand there."""
        start, max_bytes, _, room = wanted
        if number < 0 or not max_bytes or not view.start_offset <= start < view.end_offset:
            return None
        segment = view.segments[number]
        base, size = segment.base_offset, segment.size
        low = start - base
        if low >= size:
            return None
        file, index = self._cache.open(segment, low, max_bytes, cached_only=cached_only)
        whole = index.whole_batches(low, min(low + max_bytes, size))
        if whole is None:
            return None
        end, count = whole
        buffer = unfilled(room + end - low)
        data = memoryview(buffer)[room:]
        got = self._storage.read_into(file.data, data, low, cached_only=cached_only)
        return Fetched(base + end, count, buffer) if got == end - low else None

    def _fetch_judged(self, view: View, wanted: Range, number: int, cached_only: bool) -> Fetched:
        """Return what stands there, where something about it is to be judged first."""
        start, segments = wanted.start, view.segments
        if start < view.start_offset:
            raise below_start(start, view.start_offset)
        is_last = number + 1 == len(segments)
        following = view.end_offset if is_last else segments[number + 1].base_offset
        segment = segments[number] if number >= 0 else None
        if segment is None or start >= min(segment.end_offset, view.end_offset):
            return Fetched(following, 0, bytearray(wanted.room))
        if not wanted.max_bytes:
            return Fetched(start, 0, bytearray(wanted.room))
        position = start - segment.base_offset
        file, index = self._cache.open(segment, position, wanted.max_bytes, cached_only=cached_only)
        return self._fetch_from(_Opened(segment, file, index), wanted, following, cached_only)

    def _fetch_from(
        self, opened: _Opened, wanted: Range, following: int, cached_only: bool
    ) -> Fetched:
        segment, _, index = opened
        base = segment.base_offset
        start = wanted.start - base
        batch = index.find(start)
        if batch < 0 or start >= index.ends[batch]:
            gap_end = base + index.starts[batch + 1] if batch + 1 < len(index) else following
            return Fetched(gap_end, 0, bytearray(wanted.room))
        while True:
            kind = index.kinds[batch]
            if kind == DAMAGED or (kind == OPAQUE and not wanted.opaque):
                raise _unfit(segment, index, batch, wanted.start)
            limit = min(start + wanted.max_bytes, segment.size)
            window = _Window(batch, index.run_end(batch, limit), start, limit)
            try:
                return self._read_window(opened, window, wanted.room, cached_only)
            except _DamageFoundError:
                continue  # the batch is marked now: the run ends before it, or is refused

    def _read_window(
        self, opened: _Opened, window: _Window, room: int, cached_only: bool
    ) -> Fetched:
        """Read the window and cut it on a record boundary.

        More is read than is returned where the batch's checksum must be verified, or where its
        chain must be walked from its beginning to learn what is a boundary.
        """
        segment, _, index = opened
        first = window.batch
        unknown = not self._is_boundary(opened, window)
        low, high = window.start, window.limit
        if not index.checked[first]:
            low, high = index.starts[first], max(high, index.ends[first])
        elif unknown and index.kinds[first] != OPAQUE:
            low = index.starts[first]
        if window.behind > first:
            high = index.ends[window.behind - 1]
        buffer = bytearray(room + high - low)
        with memoryview(buffer) as whole, whole[room:] as data:
            self._read(opened, data, low, cached_only)
            self._verify(opened, window, data, low)
            cut = self._cut(opened, window, data, low, unknown=unknown)
        next_offset = segment.base_offset + cut.end
        if cut.on_boundary and cut.end < index.ends[first]:
            self._remember(next_offset)
        del buffer[room + cut.end - low :]
        del buffer[room : room + window.start - low]
        return Fetched(next_offset, cut.records, buffer)

    def _is_boundary(self, opened: _Opened, window: _Window) -> bool:
        """Whether the window is already known to begin on a record boundary."""
        starts_batch = window.start == opened.batches.starts[window.batch]
        return starts_batch or opened.segment.base_offset + window.start in self._boundaries

    def _read(self, opened: _Opened, data: memoryview, low: int, cached_only: bool) -> None:
        got = self._storage.read_into(opened.file.data, data, low, cached_only=cached_only)
        if got < len(data):
            found = opened.batches.find(low + got)
            opened.batches.kinds[found] = DAMAGED
            path = opened.segment.data_path
            _log.error("%s is shorter than its sidecar says, at byte %d", path, low + got)
            raise _DamageFoundError

    def _verify(self, opened: _Opened, window: _Window, data: memoryview, low: int) -> None:
        """Compare every batch that was never read before with its checksum."""
        index = opened.batches
        for number in index.unchecked(window.batch, max(window.behind, window.batch + 1)):
            begin, end = index.starts[number], index.ends[number]
            if CRC32C.compute(data[begin - low : end - low]) != index.crcs[number]:
                index.kinds[number] = DAMAGED
                place = f"{opened.segment.data_path} at byte {begin}, {end - begin} bytes"
                _log.error("damage in %s: it does not match its checksum", place)
                raise _DamageFoundError
            index.checked[number] = 1

    def _cut(
        self,
        opened: _Opened,
        window: _Window,
        data: memoryview,
        low: int,
        *,
        unknown: bool,
    ) -> _Cut:
        """Decide where the answer ends, and how many whole records it has."""
        index, first = opened.batches, window.batch
        if index.kinds[first] == OPAQUE:
            return _Cut(min(window.limit, index.ends[max(window.behind - 1, first)]), 0, False)
        start = window.start - low
        on_boundary = not unknown or scan_records(data[:start]).fault is None
        if window.behind > first:
            count = sum(index.counts[first : window.behind]) if on_boundary else 0
            if on_boundary and window.start != index.starts[first]:
                rest = scan_records(data[start : index.ends[first] - low])
                count += rest.count - index.counts[first]
            return _Cut(index.ends[window.behind - 1], count, True)
        scan = scan_records(data[start if on_boundary else 0 : window.limit - low])
        return self._cut_inside(window, scan, low, on_boundary=on_boundary)

    def _cut_inside(
        self, window: _Window, scan: RecordScan, low: int, *, on_boundary: bool
    ) -> _Cut:
        """Cut within a single batch: after the last whole record, or else at the limit."""
        end = scan.end + (window.start if on_boundary else low)
        if end <= window.start:
            return _Cut(window.limit, 0, False)
        return _Cut(end, scan.count if on_boundary else 0, True)

    def _remember(self, boundary: int) -> None:
        """Keep in mind where an answer ended inside a batch: the next Fetch begins there."""
        self._boundaries[boundary] = None
        if len(self._boundaries) > _KNOWN_BOUNDARIES:
            self._boundaries.popitem(last=False)


def below_start(start: int, earliest: int) -> Refusal:
    """Return the refusal of an offset that is before everything that is kept."""
    return Refusal(
        ErrorCode.INVALID_OFFSET,
        f"Offset {start} is gone; the earliest that can be read is {earliest}",
        details={"earliest": earliest},
    )


def _unfit(segment: Segment, index: BatchIndex, batch: int, start: int) -> Refusal:
    """Return the refusal of a batch that this client cannot be given."""
    last = max(index.run_end(batch, segment.size) - 1, batch)
    behind = segment.base_offset + index.ends[last]
    return (_damaged if index.kinds[batch] == DAMAGED else _opaque)(start, behind)


def _damaged(start: int, next_offset: int) -> Refusal:
    return Refusal(
        ErrorCode.STORAGE_ERROR,
        f"The log is damaged at offset {start}; the next readable offset is {next_offset}",
        details={"next_offset": next_offset},
        text=f"Storage error: the log is damaged at offset {start}",
    )


def _opaque(start: int, next_offset: int) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_PAYLOAD,
        f"The batch at offset {start} is not a chain of records; the next one is at {next_offset}",
        details={"opaque": True, "next_offset": next_offset},
    )
