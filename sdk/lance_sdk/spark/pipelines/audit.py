"""Auditing: the checksum and the structure of every segment and slot, in parallel."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from crc32c import crc32c

from lance_sdk.errors import LanceError
from lance_sdk.journal.config import SlotKind
from lance_sdk.journal.orphans import inspect
from lance_sdk.journal.tools import frames_of, kind_of
from lance_sdk.spark.files.segments import (
    Entries,
    Segment,
    TopicFiles,
    opaque,
    read_entries,
    topic_files,
)
from lance_sdk.spark.files.storage import entries, exists
from lance_sdk.spark.logs.resolve import folders_of
from lance_sdk.spark.logs.slot_log import slot_files
from lance_sdk.spark.pipelines.session import spread
from lance_sdk.spark.rows.keyed_columns import malformed_records
from lance_spec.errors import DecodeError
from lance_spec.messages.store_forward import StoredBatch
from lance_spec.records import record_bounds, scan_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READ: Final = 1 << 20
_TRIES: Final = 5
_MOST_FINDINGS: Final = 100
"""Of one file: what is damaged all over need not be told byte by byte."""


@dataclass(slots=True)
class FileReport:
    """What an audit found in one segment, or one slot.

    Attributes:
        path: the file, or the slot's folder.
        topic: the topic's name; the slot's for a slot.
        batches: how many were compared with their checksum; frames of a slot.
        records: how many there are.
        bytes: of the records; of the files in a dry run.
        open: whether it is being written.
        read: whether it was read; not so in a dry run.
        dropped: whether a server has dropped it before it could be read.
        findings: what is wrong, in words with offsets.
    """

    path: str
    topic: str
    batches: int = 0
    records: int = 0
    bytes: int = 0
    open: bool = False
    read: bool = True
    dropped: bool = False
    findings: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether it was read and nothing is wrong."""
        return self.read and not self.findings

    def note(self, text: str) -> None:
        """Add a finding, unless there are very many."""
        if len(self.findings) < _MOST_FINDINGS:
            self.findings.append(text)
        elif len(self.findings) == _MOST_FINDINGS:
            self.findings.append("and more; repair what is named and audit again")


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit found.

    Attributes:
        files: a report for every segment and slot.
    """

    files: Sequence[FileReport]

    @property
    def clean(self) -> bool:
        """Whether everything was read and nothing is wrong anywhere."""
        return all(report.clean for report in self.files)

    @property
    def totals(self) -> dict[str, int]:
        """Sums over all files."""
        names = ("batches", "records", "bytes")
        sums = {name: sum(getattr(file, name) for file in self.files) for name in names}
        findings = sum(len(file.findings) for file in self.files)
        return {"files": len(self.files), **sums, "findings": findings}


def audit(
    spark: "SparkSession | None",
    path: str,
    tell: Callable[[int, int], object] | None = None,
    *,
    dry_run: bool = False,
) -> Audited:
    """Compare everything at a path with its checksums and its structure; change nothing.

    Args:
        spark: the session whose tasks read; None reads in processes on this machine.
        path: a data directory, a topic's folder, a slot, or a folder of slots.
        tell: called with files done and files in all.
        dry_run: only say what would be read.

    Raises:
        ConfigError: there is nothing to audit at the path.
    """
    found = targets(path)
    if dry_run:
        return Audited([_would(target) for target in found])
    return Audited(spread(spark, found, audit_one, tell))


def _would(target: "Target") -> FileReport:
    path, segment, topic = target
    if isinstance(segment, TopicFiles):
        return FileReport(path, topic, read=False)
    if segment is None:
        size = sum(entry.size for entry in entries(path))
        return FileReport(path, topic, bytes=size, read=False)
    is_open = not segment.name.is_closed
    return FileReport(path, topic, bytes=segment.size, open=is_open, read=False)


Target = tuple[str, Segment | TopicFiles | None, str]
"""A path; the segment there, the topic whose folder is not whole, or None for a slot; the topic."""


def targets(path: str) -> list[Target]:
    """Return what is to be audited at a path, the largest first."""
    topics, slots = folders_of(path)
    found: list[Target] = []
    for folder in topics:
        files = topic_files(folder)
        found += [(each.path, each, files.identity.label) for each in files.segments]
        if files.problems:
            found.append((folder, files, files.identity.label))
    found.sort(key=lambda target: -(target[1].size if isinstance(target[1], Segment) else 0))
    return found + [(slot, None, slot.rstrip("/").rpartition("/")[2]) for slot in slots]


def audit_one(target: Target) -> FileReport:
    """Audit one segment or slot; what cannot be read is a finding, too.

    A segment that a server has closed or merged meanwhile is audited under its new name.
    """
    path, segment, topic = target
    if isinstance(segment, TopicFiles):
        return FileReport(path, topic, findings=list(segment.problems))
    found = _audited(path, segment, topic)
    for _ in range(_TRIES):
        if segment is None or exists(path):
            break
        segment = _now(segment)
        if segment is None:
            return FileReport(path, topic, dropped=True)
        path = segment.path
        found = _audited(path, segment, topic)
    return found


def _now(segment: Segment) -> Segment | None:
    """Return the segment that holds the same offsets now."""
    try:
        every = topic_files(segment.path.rpartition("/")[0]).segments
    except FileNotFoundError:  # the topic is deleted
        return None
    return next((each for each in every if each.base <= segment.base < each.end), None)


def _audited(path: str, segment: Segment | None, topic: str) -> FileReport:
    found = FileReport(path, topic)
    try:
        if segment is None:
            _audit_slot(found, path)
        elif segment.sidecar is None:
            _audit_plain(found, segment)
        else:
            _audit_segment(found, segment)
    except (LanceError, DecodeError, OSError) as error:
        found.note(f"cannot be read: {error}")
    return found


def _audit_segment(found: FileReport, segment: Segment) -> None:
    known, void = read_entries(segment)
    found.open = not segment.name.is_closed
    if void:
        found.note(f"{void} entries of the sidecar are void")
    with segment.opened() as file:
        size, position = file.size(), 0
        hidden = opaque(known).tolist()
        for run, data in _runs(file, known):
            position = _audit_run(found, run, data, hidden, position)
    if position < size and not found.open:
        found.note(f"{size - position} bytes from byte {position} on belong to no batch")
    elif position > size:
        found.note(f"the file has {size} bytes and its batches reach to {position}")


_Run = tuple[int, list[tuple[int, int, int, int]]]
"""The number of the first batch, and start, length, records and CRC of each."""


def _runs(file: Any, known: Entries) -> Iterator[tuple[_Run, memoryview]]:
    """Yield batches with their bytes, read a megabyte at a time."""
    columns = (known[name].tolist() for name in ("start", "length", "records", "crc"))
    batches = list(zip(*columns, strict=True))
    first, size = 0, file.size()
    while first < len(batches):
        start, behind = batches[first][0], first
        while behind < len(batches) and batches[behind][0] + batches[behind][1] - start <= _READ:
            behind += 1
        behind = max(behind, first + 1)
        last = batches[behind - 1]
        end = min(size, last[0] + last[1])  # an entry may say any length
        data = memoryview(file.read_at(max(0, end - start), start))
        yield (first, batches[first:behind]), data
        first = behind


def _audit_run(
    found: FileReport, run: _Run, data: memoryview, hidden: list[bool], position: int
) -> int:
    """Check batches that were read together; return where the last one ends."""
    first, batches = run
    origin = batches[0][0]
    for number, (start, length, records, crc) in enumerate(batches, first):
        if start != position and not found.open:
            found.note(f"bytes {position} to {start} belong to no batch")
        batch = data[start - origin : start - origin + length]
        found.batches += 1
        found.bytes += len(batch)
        if len(batch) < length or crc32c(batch) != crc:
            found.note(f"the {length} bytes from byte {start} on do not match their checksum")
        elif not hidden[number]:
            _audit_records(found, batch, start, records)
        position = start + length
    return position


def _audit_records(found: FileReport, batch: memoryview, start: int, records: int) -> None:
    try:
        bounds = np.frombuffer(record_bounds(batch), np.int64)
    except DecodeError:
        scan = scan_records(batch)
        found.records += scan.count
        if scan.fault is not None:
            found.note(f"no record at byte {start + scan.fault.offset}: {scan.fault.reason}")
        return
    count = len(bounds) - 1
    found.records += count
    if count != records:
        found.note(f"{count} records from byte {start} on, and the sidecar says {records}")
    for index in malformed_records(batch, bounds):
        place, kind = int(bounds[index]), batch[int(bounds[index])]
        found.note(
            f"the record at byte {start + place} is not laid out as its type {kind:#04x} says "
            "(LWP section 8.3)"
        )


def _audit_plain(found: FileReport, segment: Segment) -> None:
    """Walk a segment without a sidecar: there is no checksum, only structure."""
    found.open = not segment.name.is_closed
    with segment.opened() as file:
        size, position, want = file.size(), 0, _READ
        while position < size:
            scan = scan_records(file.read_at(min(want, size - position), position))
            found.records += scan.count
            found.bytes += scan.end
            position += scan.end
            fault = scan.fault
            if scan.end:
                want = _READ
            elif fault is not None and fault.truncated and position + fault.needed <= size:
                want = fault.needed
            else:
                break
    if position < size and not found.open:
        found.note(f"no record at byte {position}; {size - position} bytes are left")


def _audit_slot(found: FileReport, path: str) -> None:
    files, folder = slot_files(path)
    kind = kind_of(folder, files)
    for problem in inspect(folder, kind, files=files).problems:
        found.note(str(problem))
    for fsn, payload in frames_of(folder, acked=True, files=files):
        found.batches += 1
        found.bytes += len(payload)
        if kind is SlotKind.LWP:
            _audit_stored(found, fsn, payload)


def _audit_stored(found: FileReport, fsn: int, payload: bytes) -> None:
    try:
        stored = StoredBatch.decode(payload)
    except DecodeError as error:
        found.note(f"frame {fsn}: {error}")
        return
    scan = scan_records(stored.records)
    found.records += scan.count
    if scan.fault is not None or scan.count != stored.record_count:
        found.note(f"frame {fsn} holds {scan.count} whole records and says {stored.record_count}")
