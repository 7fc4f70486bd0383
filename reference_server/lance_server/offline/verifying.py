"""Reading a whole data directory and comparing everything with its checksums."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lance_server.errors import DataDirError
from lance_server.log.metadata.topic_file import TopicFile
from lance_server.log.recovery.recovery_report import Finding
from lance_server.log.segments.compaction import DRAFT_SUFFIX, leftovers
from lance_server.log.segments.indexes import (
    SECONDARY_SUFFIX,
    SPARSE_SUFFIX,
    encode_secondary,
    encode_sparse,
)
from lance_server.log.segments.segment_files import DATA_SUFFIX, SegmentName
from lance_server.log.segments.sidecar import ENTRY_SIZE, HEADER_SIZE, OPAQUE, decode_header
from lance_server.log.segments.sidecar_scan import is_without_batches, read_entries
from lance_server.storage.contract import StorageBackend, read_at, read_file
from lance_server.storage.pwritev import PwritevStorage
from lance_server.storage.wal_replay import unrepeated
from lance_spec.checksum import CRC32C
from lance_spec.codec.packing import NODE_ACTOR_SEQUENCE
from lance_spec.errors import DecodeError
from lance_spec.messages.engine import SidecarEntry, SidecarHeader, SparseIndexEntry
from lance_spec.records import scan_records

_MAX_INDEX: Final = 1 << 30
"""More than the index of the largest segment that may be."""


class ReadOnlyStorage(PwritevStorage):
    """Files that cannot be changed through it."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file for reading."""
        assert not create, "nothing is created while verifying"
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


@dataclass(slots=True)
class Verification:
    """What was read, and what was wrong with it.

    Attributes:
        topics: topics that were read.
        segments: segments that were read.
        batches: batches that are as they were written.
        records: records in them.
        size: bytes that were read of data files.
        findings: what is not as it should be.
    """

    topics: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    size: int = 0
    findings: list[Finding] = field(default_factory=list)


def data_files(data_dir: Path) -> list[Path]:
    """Return the data files of all topics, for a measure of the work."""
    return sorted((data_dir / "segments").glob(f"*/*{DATA_SUFFIX}"))


def verify(
    data_dir: Path,
    progress: Callable[[int], object] = lambda _: None,
    storage: StorageBackend | None = None,
) -> Verification:
    """Read everything; nothing is changed.

    Args:
        data_dir: a data directory.
        progress: called with the size of each data file once it was read, in bytes.
        storage: the backend; by default files are opened for reading only.

    Raises:
        DataDirError: the write-ahead log cannot be trusted.
        OSError: a file cannot be read.
    """
    found = Verification()
    storage = storage or ReadOnlyStorage()
    waiting, damage = unrepeated(storage, data_dir)
    found.findings += [Finding("damage", None, *each) for each in damage]
    for entry in waiting:
        note = "the write-ahead log has it, and it is not in its place; 'repair' puts it there"
        path, size = entry.path, len(entry.data)
        found.findings.append(Finding("unrepeated write", None, path, entry.offset, size, note))
    segments = data_dir / "segments"
    for name in filter(str.isdecimal, storage.list_dir(segments)):
        try:
            listed = storage.list_dir(segments / name)
        except NotADirectoryError:
            continue
        found.topics += 1
        _TopicVerification(storage, segments / name, listed, found, progress).verify()
    return found


class _TopicVerification:
    """Verifies one topic."""

    def __init__(
        self,
        storage: StorageBackend,
        folder: Path,
        names: list[str],
        found: Verification,
        progress: Callable[[int], object],
    ) -> None:
        self._storage = storage
        self._folder = folder
        self._names = names
        self._id = int(folder.name)
        self._going: set[str] = set()
        """Keys and names of files that an interrupted merge or retention has yet to remove."""
        self._file: TopicFile | None = None
        self._found = found
        self._slow_peer = progress

    def verify(self) -> None:
        self._verify_file()
        names = self._names
        for text in names:
            if not text.endswith(DATA_SUFFIX):
                continue
            name = SegmentName.parse(text)
            if name is not None and not self._going.isdisjoint({text, name.key}):
                continue
            if name is None:
                self._note("ignored file", text, 0, 0, "its name is not a segment's")
            elif self._was_never_made(name):
                continue  # a start removes its files
            elif name.sidecar not in names:
                self._note("lost sidecar", text, 0, self._size(text), "nothing vouches for it")
            else:
                self._verify_segment(name, names)
            self._slow_peer(self._size(text))

    def _was_never_made(self, name: SegmentName) -> bool:
        """Whether these are files that the disk refused to make, and then to remove."""
        known = self._file is not None and name.key in self._file.bases
        paths = self._folder / name.data, self._folder / name.sidecar
        return not known and is_without_batches(self._storage, *paths)

    def _size(self, name: str) -> int:
        fd = self._storage.open(self._folder / name)
        try:
            return self._storage.size(fd)
        finally:
            self._storage.close(fd)

    def _verify_file(self) -> None:
        try:
            loaded = TopicFile.load(self._storage, self._folder)
        except DataDirError as error:
            self._note("damage", "metadata.json", 0, 0, str(error))
            return
        if loaded is None:
            if any(name.endswith(DATA_SUFFIX) for name in self._names):
                self._note("lost file", "metadata.json", 0, 0, "the topic cannot be served")
            # else its creation was never finished; a start removes the folder
        else:
            self._file = loaded[0]
            self._note_going(self._file)
        if loaded is not None and loaded[1]:
            self._note("damage", "metadata.json", 0, 0, loaded[1])

    def _note_going(self, file: TopicFile) -> None:
        self._going.update(file.retiring)
        if file.merging is None:
            return
        target = SegmentName.parse(file.merging.target)
        assert target is not None, "the topic's file was checked when it was read"
        is_placed = (
            target.data in self._names and f"{target.sidecar}{DRAFT_SUFFIX}" not in self._names
        )
        self._going.update(leftovers(file.merging) if is_placed else {target.data})

    def _verify_segment(self, name: SegmentName, names: list[str]) -> None:
        self._found.segments += 1
        data = self._storage.open(self._folder / name.data)
        try:
            sidecar = self._storage.open(self._folder / name.sidecar)
            try:
                header = self._verify_header(name, sidecar)
                entries = list(self._entries(name, data, sidecar, header))
            finally:
                self._storage.close(sidecar)
        finally:
            self._storage.close(data)
        if header is not None:
            self._verify_indexes(name, names, entries, header.base_record)

    def _verify_header(self, name: SegmentName, sidecar: int) -> SidecarHeader | None:
        try:
            header = decode_header(read_at(self._storage, sidecar, HEADER_SIZE, 0))
        except DecodeError as error:
            self._note("damage", name.sidecar, 0, HEADER_SIZE, str(error))
            return None
        if header.topic_id != self._id:
            note = f"it says that it belongs to topic {header.topic_id}"
            self._note("damage", name.sidecar, 12, 4, note)
        return header

    def _entries(
        self, name: SegmentName, data: int, sidecar: int, header: SidecarHeader | None
    ) -> Iterator[SidecarEntry]:
        """Yield the valid entries; note the others, and where the data is not what they say."""
        end, size = 0, self._storage.size(data)
        for number, entry in enumerate(read_entries(self._storage, sidecar)):
            if entry is None:
                place = HEADER_SIZE + number * ENTRY_SIZE
                note = "the entry does not match its checksum"
                self._note("void entry", name.sidecar, place, ENTRY_SIZE, note)
                continue
            if entry.relative_offset > end and not self._is_hole(header, end, entry):
                note = "no entry vouches for it, and it is not a hole that a crash left"
                self._note("gap", name.data, end, entry.relative_offset - end, note)
            end = entry.relative_offset + entry.stored_length
            if problem := self._judge(data, entry, size):
                self._note("damage", name.data, entry.relative_offset, entry.stored_length, problem)
            else:
                self._found.batches += 1
                self._found.records += entry.record_count
            yield entry
        self._found.size += size
        if size > end:
            self._note("torn tail", name.data, end, size - end, "no entry vouches for it")

    def _is_hole(self, header: SidecarHeader | None, start: int, entry: SidecarEntry) -> bool:
        """Whether a crash left the range before an entry, and recovery retired its offsets."""
        if header is None or self._file is None:
            return False
        base = header.base_offset
        return self._file.is_hole(base + start, base + entry.relative_offset)

    def _judge(self, data: int, entry: SidecarEntry, size: int) -> str | None:
        """Return what is wrong with a batch, or None."""
        if entry.relative_offset + entry.stored_length > size:
            return f"the file ends at byte {size}"
        batch = read_at(self._storage, data, entry.stored_length, entry.relative_offset)
        if CRC32C.compute(batch) != entry.stored_crc:
            return "the batch does not match its checksum"
        if entry.flags & OPAQUE:
            return None
        scan = scan_records(batch)
        if scan.fault is not None:
            return f"record {scan.fault.index} of the batch is not whole: {scan.fault.reason}"
        if scan.count != entry.record_count:
            return f"the batch holds {scan.count} records, its entry says {entry.record_count}"
        return None

    def _verify_indexes(
        self, name: SegmentName, names: list[str], entries: list[SidecarEntry], base_record: int
    ) -> None:
        for suffix in (SPARSE_SUFFIX, SECONDARY_SUFFIX):
            text = name.key + suffix
            if text not in names or text in self._going:
                continue
            present = read_file(self._storage, self._folder / text, _MAX_INDEX)
            if suffix == SPARSE_SUFFIX:
                expected = encode_sparse(entries, base_record, _node_of(present))
            else:
                expected = encode_secondary(entries)
            if present != expected:
                self._note("stale index", text, 0, len(present), "reindex writes it again")

    def _note(self, kind: str, name: str, offset: int, length: int, note: str) -> None:
        finding = Finding(kind, self._id, self._folder / name, offset, length, note)
        self._found.findings.append(finding)


def _node_of(sparse: bytes) -> int:
    """Return the node that wrote an index."""
    if len(sparse) < SparseIndexEntry.SIZE:
        return 0
    first = SparseIndexEntry.decode(sparse[: SparseIndexEntry.SIZE])
    return NODE_ACTOR_SEQUENCE.unpack(first.node_actor_sequence)["node"]
