"""Bringing a topic back after a stop, clean or not (AMB-29, AMB-39).

A segment that was open is read whole. Behind the highest end that a valid entry knows to be
durable, void entries are what a crash tears: they are copied to the quarantine, cut away, and
their offsets are never used again. Before it they are damage: everything stays where it is, and
reading there is an error that names the next good offset.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from lance_server.log.metadata.topic_file import Merge, TopicFile
from lance_server.log.recovery.discovery import SegmentDiscovery
from lance_server.log.recovery.recovery_report import Finding, Quarantine, RecoveryReport
from lance_server.log.retention.rules import remove_retired
from lance_server.log.segments.compaction import place, sweep
from lance_server.log.segments.segment_files import Segment, SegmentName
from lance_server.log.segments.sidecar import DAMAGED, ENTRY_SIZE, HEADER_SIZE
from lance_server.log.segments.sidecar_scan import Scan, last_entry, load_index, scan_segment
from lance_server.storage.contract import StorageBackend, read_at, replace_file, write_again


@dataclass(slots=True)
class TopicLog:
    """A topic's log as it was found.

    Attributes:
        segments: all closed by now, by rising base.
        end_offset: where the next batch goes.
        end_record: number of records up to there.
    """

    segments: list[Segment]
    end_offset: int
    end_record: int


class TopicRecovery:
    """Recovers one topic.

    Args:
        storage: the backend.
        file: the topic's metadata; its bases and its next offset are brought up to date.
        report: takes the findings.
        quarantine: takes copies of what is cut away.
    """

    def __init__(
        self,
        storage: StorageBackend,
        file: TopicFile,
        report: RecoveryReport,
        quarantine: Quarantine,
    ) -> None:
        self._storage = storage
        self._file = file
        self._report = report
        self._quarantine = quarantine
        self._collector = SegmentDiscovery(storage, file, report, quarantine)

    def recover(self, clean_end: int | None) -> TopicLog:
        """Settle every segment and return the log.

        Args:
            clean_end: the end of the last segment that a clean stop recorded, or None after
                another stop.
        """
        self._storage.sync_dir(self._file.folder)  # names that are adopted must last
        self._finish_merge()
        remove_retired(self._storage, self._file)
        found = self._collector.collect(clean_end)
        reach = max(self._file.next_offset, clean_end or 0)
        kept: list[Segment] = []
        for segment, later in _with_later(found):
            if segment.name.end_ns is None:
                reach = max(reach, self._settle_open(segment, clean_end, later))
            else:
                self._settle_closed(segment, clean_end, later)
            if segment.size:
                kept.append(segment)
                reach = max(reach, segment.end_offset)
        self._count_records(kept)
        self._update_file(kept, reach)
        last = kept[-1] if kept else None
        end_record = (
            self._file.log_start.record if last is None else last.base_record + last.records
        )
        return TopicLog(kept, reach, end_record)

    def look(self) -> TopicLog:
        """Return what is known to be durable, without writing anything.

        It is for a disk that refuses to settle the topic. The last batches of a segment that was
        being written are left out: no other entry vouches for them.

        Raises:
            OSError: the disk refused, or it is not certain what a reader may be told: a range
                that is in doubt must not read as a gap.
        """
        file = self._file
        if file.merging is not None:
            raise OSError(errno.EAGAIN, f"segments of {file.folder} are being merged")
        kept: list[Segment] = []
        for segment, later in _with_later(self._collector.look()):
            segment.size, segment.last_ns = self._look_at(segment, is_last=later is None)
            if segment.size > 0:
                kept.append(segment)
        self._count_records(kept)
        end = kept[-1] if kept else None
        if end is None:
            return TopicLog([], file.log_start.offset, file.log_start.record)
        return TopicLog(kept, end.end_offset, end.base_record + end.records)

    def _look_at(self, segment: Segment, *, is_last: bool) -> tuple[int, int]:
        """Return up to where a segment is known to be durable, and its last time."""
        with self._files(segment) as (data, sidecar):
            available = self._storage.size(data)
            if segment.name.end_ns is not None:
                entry = last_entry(self._storage, sidecar)
                told = 0 if entry is None else entry.relative_offset + entry.stored_length
                is_whole, last_ns = told == available, segment.name.end_ns
            else:
                scan = scan_segment(self._storage, data, sidecar)
                told, last_ns = scan.end, scan.last_ns
                is_whole = all(scan.slots[: scan.tail]) and (is_last or told == available)
                if is_last:
                    told = min(told, scan.durable_end - segment.base_offset)
        if not is_whole:
            raise OSError(errno.EIO, f"{segment.data_path} is not as its sidecar says")
        return told, last_ns

    def _finish_merge(self) -> None:
        """Finish a merge that was recorded; without a whole target its sources stay."""
        merging = self._file.merging
        if merging is None:
            return
        place(self._storage, self._file)
        if self._is_whole(merging.target) or self._is_swept(merging):
            sweep(self._storage, self._file)
        else:
            self._file.merged()

    def _is_swept(self, merging: Merge) -> bool:
        """Whether sources are gone already: the target was whole, and was damaged since."""
        names = self._storage.list_dir(self._file.folder)
        target, *sources = map(SegmentName.parse, (merging.target, *merging.sources))
        return (
            target is not None
            and {target.data, target.sidecar} <= set(names)
            and any(each is not None and each.data not in names for each in sources)
        )

    def _is_whole(self, target: str) -> bool:
        """Whether a merged segment is there, with every batch of its sidecar."""
        name = SegmentName.parse(target)
        names = self._storage.list_dir(self._file.folder)
        if name is None or name.data not in names or name.sidecar not in names:
            return False
        with self._files(Segment(self._file.folder, name, 0, name.start_record)) as files:
            data, sidecar = files
            scan = scan_segment(self._storage, data, sidecar)
            return bool(scan.slots) and all(scan.slots) and scan.end == self._storage.size(data)

    def _settle_closed(self, segment: Segment, clean_end: int | None, later: int | None) -> None:
        """Learn how far a closed segment reaches, and report it if that is in doubt."""
        with self._files(segment) as (data, sidecar):
            available = self._storage.size(data)
            entry = last_entry(self._storage, sidecar)
            told = 0 if entry is None else entry.relative_offset + entry.stored_length
            if later is not None:
                segment.size = min(max(available, told), later - segment.base_offset)
            else:
                segment.size = max(available, told, (clean_end or 0) - segment.base_offset)
            segment.last_ns = segment.name.end_ns or 0
            if not told == available == segment.size:
                self._report_damage(segment, data, sidecar)

    def _report_damage(self, segment: Segment, data: int, sidecar: int) -> None:
        index = load_index(self._storage, segment, data, sidecar)
        for start, end, kind in zip(index.starts, index.ends, index.kinds, strict=True):
            if kind == DAMAGED:
                self._note("damage", segment, start, end - start, "reading it is an error")

    def _settle_open(self, segment: Segment, clean_end: int | None, later: int | None) -> int:
        """Cut what a crash tore, mark what is damaged, close the segment.

        Args:
            segment: one that was being written.
            clean_end: a topic offset up to which the log is known to have been durable.
            later: where the next segment begins, if there is one.

        Returns:
            The topic offset up to which the segment may ever have been visible.
        """
        with self._files(segment) as (data, sidecar):
            scan = scan_segment(self._storage, data, sidecar)
            self._report.batches_checked += len(scan.index)
            durable = max(clean_end or 0, scan.durable_end) - segment.base_offset
            if later is not None:
                durable = min(later - segment.base_offset, max(durable, scan.reach))
            segment.size = max(scan.end, durable)
            self._cut_tail(segment, scan, data, sidecar)
            for fd in (data, sidecar):  # what is kept may be in memory only
                write_again(self._storage, fd)
        self._settle_runs(segment, scan, durable)
        segment.last_ns = max(scan.last_ns, segment.name.start_ns)
        self._close(segment)
        return segment.base_offset + scan.reach

    def _cut_tail(self, segment: Segment, scan: Scan, data: int, sidecar: int) -> None:
        """Quarantine and cut what lies after the segment's end."""
        if segment.size > scan.end:
            length = segment.size - scan.end
            self._note("damage", segment, scan.end, length, "reading it is an error")
            entries = len(scan.slots)
        else:
            entries = scan.tail
        self._cut(segment, data, segment.size, sidecar=False)
        self._cut(segment, sidecar, HEADER_SIZE + entries * ENTRY_SIZE, sidecar=True)

    def _cut(self, segment: Segment, fd: int, size: int, *, sidecar: bool) -> None:
        present = self._storage.size(fd)
        if present <= size:
            return
        path = segment.sidecar_path if sidecar else segment.data_path
        copy = self._quarantine.keep(self._file.identity.id, path, size, present - size)
        self._storage.truncate(fd, size)
        self._storage.sync(fd)
        note = f"cut; a copy is {copy}"
        self._report.add(
            Finding("torn tail", self._file.identity.id, path, size, present - size, note)
        )

    def _settle_runs(self, segment: Segment, scan: Scan, durable: int) -> None:
        """Judge void entries that valid ones follow: damage, or a hole that a crash tore."""
        torn: list[tuple[int, int]] = []
        holes: dict[int, int] = {}
        for first, behind in scan.void_runs():
            before = scan.slots.count(1, 0, first)
            start = scan.index.ends[before - 1] if before else 0
            length = scan.index.starts[before] - start
            if start < durable:
                self._note("damage", segment, start, length, "reading it is an error")
            else:
                copy = self._quarantine.keep(
                    self._file.identity.id, segment.data_path, start, length
                )
                self._note("retired hole", segment, start, length, f"a copy is {copy}")
                torn.append((first, behind))
                holes[segment.base_offset + start] = segment.base_offset + start + length
        if torn:  # recorded first: a range that neither an entry nor a record explains is damage
            self._file.retire_holes(holes)
            self._drop_entries(segment, torn)

    def _drop_entries(self, segment: Segment, runs: list[tuple[int, int]]) -> None:
        """Write the sidecar again without some of its entries."""
        with self._files(segment) as (_, sidecar):
            raw = read_at(self._storage, sidecar, self._storage.size(sidecar), 0)
        for first, behind in reversed(runs):
            del raw[HEADER_SIZE + first * ENTRY_SIZE : HEADER_SIZE + behind * ENTRY_SIZE]
        replace_file(self._storage, segment.sidecar_path, bytes(raw))

    def _close(self, segment: Segment) -> None:
        """Give an open segment its closed name; remove it when nothing is left of it."""
        if segment.size:
            closed = segment.name._replace(end_ns=segment.last_ns)
            self._storage.rename(segment.data_path, segment.folder / closed.data)
            segment.name = closed
        else:
            self._file.forget_base(segment.name.key)  # first: this may stop or fail in between
            self._storage.remove(segment.data_path)
            self._storage.remove(segment.sidecar_path)
        self._storage.sync_dir(segment.folder)

    def _count_records(self, segments: list[Segment]) -> None:
        """Fill in the record counts: the next segment knows, only the last must be counted."""
        for segment, later in pairwise(segments):
            segment.records = max(0, later.base_record - segment.base_record)
        if segments:
            last = segments[-1]
            with self._files(last) as (data, sidecar):
                last.records = sum(load_index(self._storage, last, data, sidecar).counts)

    def _update_file(self, segments: list[Segment], reach: int) -> None:
        """Make retired offsets stay retired, whatever is left of them on disk."""
        bases = {segment.name.key: segment.base_offset for segment in segments}
        self._file.recovered(bases, reach)

    @contextmanager
    def _files(self, segment: Segment) -> Iterator[tuple[int, int]]:
        data = self._storage.open(segment.data_path)
        try:
            sidecar = self._storage.open(segment.sidecar_path)
            try:
                yield data, sidecar
            finally:
                self._storage.close(sidecar)
        finally:
            self._storage.close(data)

    def _note(self, kind: str, segment: Segment, offset: int, length: int, note: str) -> None:
        topic_id = self._file.identity.id
        self._report.add(Finding(kind, topic_id, segment.data_path, offset, length, note))


def _with_later(segments: Sequence[Segment]) -> Iterator[tuple[Segment, int | None]]:
    """Yield each segment and where the next one begins, or None."""
    bases = [segment.base_offset for segment in segments[1:]]
    yield from zip(segments, [*bases, None][: len(segments)], strict=True)
