"""Segments: the files that hold a topic's bytes, and the one that is being written."""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

from lance_server.log.segments.sidecar import ENTRY_SIZE, HEADER_SIZE, BatchIndex, encode_header
from lance_server.storage.contract import StorageBackend, Write, close_all, read_at, write_again
from lance_spec.checksum import Buffer
from lance_spec.codec.ingest_runs import BatchTable
from lance_spec.disk import segment_names

DATA_SUFFIX: Final = segment_names.DATA_SUFFIX
SIDECAR_SUFFIX: Final = segment_names.SIDECAR_SUFFIX
_SHARED: Final = 2 * 1024 * 1024
"""The largest unit in which a system keeps a file in memory: more is not lost with a batch."""
_NAME: Final = re.compile(r"(\d{1,20})_(\d{1,20})(?:-(\d{1,20}))?\.lnc")


class SegmentName(NamedTuple):
    """What a segment's file name says (AMB-16).

    Attributes:
        start_record: number of records in the topic before it.
        start_ns: the server's time when it was begun.
        end_ns: the server's time of its last batch once it is closed, or None.
    """

    start_record: int
    start_ns: int
    end_ns: int | None = None

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return what a file name says; None when it is not a segment's."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        start_record, start_ns, end_ns = match.groups()
        return cls(int(start_record), int(start_ns), None if end_ns is None else int(end_ns))

    @property
    def key(self) -> str:
        """The part of the name that stays when the segment is closed."""
        return f"{self.start_record}_{self.start_ns}"

    @property
    def data(self) -> str:
        """The data file's name."""
        closed = "" if self.end_ns is None else f"-{self.end_ns}"
        return f"{self.key}{closed}{DATA_SUFFIX}"

    @property
    def sidecar(self) -> str:
        """The sidecar's name; it does not change, so that closing is a single rename."""
        return f"{self.key}{SIDECAR_SUFFIX}"


@dataclass(slots=True, eq=False)
class Segment:
    """A segment as readers see it: only what is durable.

    Attributes:
        folder: the topic's folder.
        name: what the file is called at present.
        base_offset: topic offset of its first byte.
        base_record: number of records in the topic before it.
        size: relative offset after its last durable byte.
        records: number of records in it.
        last_ns: server time of its last batch.
        live: its index while this process is the one that writes it.
        indexed: whether its sparse indexes are known to be there.
        unmergeable: whether it was found that it cannot be merged with others.
    """

    folder: Path
    name: SegmentName
    base_offset: int
    base_record: int
    size: int = 0
    records: int = 0
    last_ns: int = 0
    live: BatchIndex | None = None
    indexed: bool = False
    unmergeable: bool = False

    @property
    def end_offset(self) -> int:
        """The topic offset after its last durable byte."""
        return self.base_offset + self.size

    @property
    def data_path(self) -> Path:
        """Where the data stands at present."""
        return self.folder / self.name.data

    @property
    def sidecar_path(self) -> Path:
        """Where the sidecar stands."""
        return self.folder / self.name.sidecar

    def extend(self, batches: BatchTable) -> None:
        """Make batches that are durable by now visible to readers."""
        index = self.live
        assert index is not None, "only the segment being written grows"
        self.records += index.extend(batches, self.size)
        self.last_ns = batches.last_ns
        self.size = index.ends[-1]


class View(NamedTuple):
    """What is durable of a topic at one moment.

    Attributes:
        segments: by rising base.
        start_offset: the earliest offset that can be read.
        end_offset: the offset after the last durable byte.
    """

    segments: Sequence[Segment]
    start_offset: int
    end_offset: int


class SegmentWriter:
    """Appends to one segment; used by one worker thread at a time.

    What was written of it counts only once `advance` was called. After an error `cut_back` must
    succeed before anything else is done with the files, so that a batch which was refused
    cannot come back at the next start.
    """

    def __init__(self, storage: StorageBackend, segment: Segment, data: int, sidecar: int) -> None:
        self._storage = storage
        self._data = data
        self._sidecar = sidecar
        self.segment = segment
        self.size = 0
        self.batches = 0
        self._last_ns = segment.name.start_ns
        self._is_doubtful = False

    def __repr__(self) -> str:
        return f"<SegmentWriter {self.segment.name.data} {self.size} bytes {self.batches} batches>"

    @classmethod
    def create(cls, storage: StorageBackend, segment: Segment, topic_id: int) -> Self:
        """Create the files of a new segment, durably, with the sidecar's header in place."""
        name = segment.name
        header = encode_header(topic_id, segment.base_offset, segment.base_record, name.start_ns)
        fds: list[int] = []
        try:
            fds.append(storage.open(segment.data_path, create=True))
            fds.append(storage.open(segment.sidecar_path, create=True))
            storage.write(fds[1], header, 0)
            storage.sync(fds[1])
            storage.sync_dir(segment.folder)
        except OSError:
            close_all(storage, fds)
            remove_files(storage, segment)
            raise
        return cls(storage, segment, *fds)

    @classmethod
    def resume(cls, storage: StorageBackend, segment: Segment, batches: int) -> Self:
        """Go on with a segment that has its open name and holds exactly what it says."""
        fds: list[int] = []
        try:
            fds.extend(storage.open(path) for path in (segment.data_path, segment.sidecar_path))
        except OSError:
            close_all(storage, fds)
            raise
        writer = cls(storage, segment, *fds)
        writer.size, writer.batches, writer._last_ns = segment.size, batches, segment.last_ns
        return writer

    def writes(self, data: Buffer, batches: BatchTable, topic_end: int) -> list[Write]:
        """Return what must become durable for batches to be part of this segment.

        Args:
            data: their bytes, back to back.
            batches: what is known of each; its rows become their entries.
            topic_end: the topic offset that is durable by now, for the entries (AMB-14).
        """
        batches.seal(self.size, topic_end)
        place = HEADER_SIZE + self.batches * ENTRY_SIZE
        return [Write(self._data, data, self.size), Write(self._sidecar, batches.rows, place)]

    def advance(self, data: Buffer, batches: BatchTable) -> None:
        """Go on after batches that are durable by now."""
        self.size += len(data)
        self.batches += len(batches.rows) // ENTRY_SIZE
        self._last_ns = batches.last_ns

    def cut_back(self, *, again: bool) -> None:
        """Remove, durably, what a failed append may have left behind.

        Args:
            again: whether a sync may have failed: it may have lost what shares a page with the
                bytes that go, so that is written again.
        """
        ends = (self._data, self.size), (self._sidecar, HEADER_SIZE + self.batches * ENTRY_SIZE)
        for fd, end in ends:
            self._storage.truncate(fd, end)
            if again:
                first = max(0, end - _SHARED)
                self._storage.write(fd, read_at(self._storage, fd, end - first, first), first)
        for fd, _ in ends:
            self._storage.sync(fd)

    def close(self, *, sync: bool = False) -> None:
        """Give the segment, which has batches, its closed name.

        The name becomes durable with the next segment's; until then a start takes it for open.

        Args:
            sync: make its bytes durable first; they are already unless commits do not sync.

        Raises:
            OSError: it has the name that it had.
        """
        segment = self.segment
        if sync:
            self.make_durable()
        closed = segment.name._replace(end_ns=self._last_ns)
        try:
            self._storage.rename(segment.data_path, segment.folder / closed.data)
        except OSError:
            if not self._is_called(closed):
                raise
        segment.name = closed
        self.release()

    def make_durable(self) -> None:
        """Make what was written durable, where writing did not.

        Raises:
            OSError: it is not; the next call writes all of it again.
        """
        for fd in (self._data, self._sidecar):
            if self._is_doubtful:  # a sync failed, and may have lost what it was to write
                write_again(self._storage, fd)
        self._is_doubtful = True
        for fd in (self._data, self._sidecar):
            self._storage.sync(fd)
        self._is_doubtful = False

    def _is_called(self, closed: SegmentName) -> bool:
        """Whether the data file has its closed name, although giving it that failed."""
        names = self._storage.list_dir(self.segment.folder)
        return closed.data in names and self.segment.name.data not in names

    def release(self) -> None:
        """Close the files and leave them as they are; a descriptor is free also after an error."""
        close_all(self._storage, (self._data, self._sidecar))

    def discard(self) -> None:
        """Give up a segment that holds no batch."""
        self.release()
        remove_files(self._storage, self.segment)


def remove_files(storage: StorageBackend, segment: Segment) -> None:
    """Remove the files of a segment without batches; the next start removes what stays."""
    for path in (segment.data_path, segment.sidecar_path):
        with contextlib.suppress(OSError):
            storage.remove(path)
