"""The segment that a topic is being written to: begun, filled, cut back, closed.

It belongs to whoever flushes its topic: one thread at a time.
"""

import contextlib
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from lance_server.log.commit_batch import CommitBatch
from lance_server.log.metadata.topic_file import TopicFile
from lance_server.log.retention.rules import segment_limit
from lance_server.log.segments.segment_files import (
    Segment,
    SegmentName,
    SegmentWriter,
    remove_files,
)
from lance_server.log.segments.sidecar import ENTRY_SIZE, BatchIndex
from lance_server.lwp.refusals import is_disk_full
from lance_server.storage.contract import StorageBackend, UndecidedError, Write

_log = logging.getLogger(__name__)
_RESERVED: Final = 64 * 1024 * 1024
"""Bytes of offsets reserved at a time where commits do not sync."""
_MAX_BATCHES: Final = 1 << 20
"""Batches per segment: its index in memory and its sidecar stay below 27 and 64 MiB."""


class ResumePoint(NamedTuple):
    """Where a topic goes on.

    Attributes:
        offset: the one after its last byte.
        record: number of the next record.
        last: name of its last segment, or None when it has none.
    """

    offset: int
    record: int
    last: SegmentName | None


class ActiveSegment:
    """Writes commit batches to the segment that is open, or to a new one.

    Args:
        storage: the backend.
        file: the topic's metadata.
        segment_size: bytes after which a segment is closed, at most.
        synced: whether a commit outlives the machine; if not, offsets are reserved ahead of use,
            so that none is given to other bytes after a crash (AMB-29).
    """

    def __init__(
        self, storage: StorageBackend, file: TopicFile, *, segment_size: int, synced: bool
    ) -> None:
        self._storage = storage
        self._file = file
        self._segment_size = segment_size
        self._synced = synced
        self._writer: SegmentWriter | None = None
        self._failure: OSError | None = None
        """Why a write failed that is not cut away yet."""
        self._leftover: Segment | None = None
        """A segment without batches that was given up, and whose files may be there."""
        self._last_start = 0
        """Start of the last segment that was begun, in nanoseconds."""

    def __repr__(self) -> str:
        return f"<ActiveSegment of topic {self._file.identity.id}: {self._writer!r}>"

    @property
    def is_doubtful(self) -> bool:
        """Whether it is uncertain what the disk has of this: `recover` must succeed first."""
        return self._failure is not None or self._leftover is not None or self._file.is_undecided

    def recover(self) -> None:
        """Make sure that the disk has what memory has; the next batch goes to a new segment.

        Raises:
            OSError: it is still uncertain what the disk has.
        """
        self._cut_back()
        self._close()
        self._file.settle()
        self._give_up()

    def is_ready_for(self, commit_batch: CommitBatch) -> bool:
        """Whether it goes to the segment that is open, and no failure is to be undone."""
        writer = self._writer
        return (
            writer is not None
            and self._failure is None
            and not commit_batch.roll
            and not self._is_full(writer, commit_batch)
        )

    def prepare(self, commit_batch: CommitBatch, place: Callable[[], ResumePoint]) -> list[Write]:
        """Return what must become durable for a commit batch.

        Args:
            commit_batch: the batches.
            place: tells where they go, if a segment is to be begun.

        Raises:
            OSError: there is no segment to write it to.
        """
        assert self._failure is None, "a topic is closed for writing until that is cut away"
        if commit_batch.roll:
            self._close()
        if not commit_batch.batches.rows:
            return []
        writer = self._writer
        if writer is None or self._is_full(writer, commit_batch):
            writer = self._next_writer(commit_batch, place())
        end = writer.segment.base_offset + writer.size
        if self._synced:
            return writer.writes(commit_batch.data, commit_batch.batches, end)
        if end + len(commit_batch.data) > self._file.next_offset:
            self._file.reserve(end + len(commit_batch.data) + _RESERVED)
        return writer.writes(commit_batch.data, commit_batch.batches, writer.segment.base_offset)

    def conclude(self, commit_batch: CommitBatch, error: OSError | None) -> Segment | None:
        """Return the segment that a commit batch went to, if it holds anything.

        Raises:
            UndecidedError: it was not written, and could not be cut away yet: `recover`.
            OSError: it was not written, and is cut away.
        """
        if not commit_batch.batches.rows:
            return None
        writer = self._writer
        assert writer is not None, "it was prepared"
        if error is not None:
            self._failure = error
            try:
                self._cut_back()
            except OSError:
                raise UndecidedError.after(error) from error
            with contextlib.suppress(OSError):  # else the next batch goes to the same segment
                self._close()
            raise error
        writer.advance(commit_batch.data, commit_batch.batches)
        return writer.segment

    def _cut_back(self) -> None:
        """Undo a failed write, if there is one."""
        if self._failure is None or self._writer is None:
            return
        try:
            self._writer.cut_back(again=not is_disk_full(self._failure))
        except OSError as error:
            self._failure = UndecidedError.after(error)
            raise
        self._failure = None

    def _next_writer(self, commit_batch: CommitBatch, place: ResumePoint) -> SegmentWriter:
        """Return the writer of a segment that is begun for it; an empty one takes any."""
        writer = self._writer
        if writer is not None and writer.batches:
            self._close()
            full, number = writer.segment.name.key, self._file.identity.id
            _log.info("topic %d: segment %s is full, with %d bytes", number, full, writer.size)
        if self._writer is None:
            self._writer = self._new_writer(commit_batch.batches[0].server_time_ns, place)
        return self._writer

    def _is_full(self, writer: SegmentWriter, commit_batch: CommitBatch) -> bool:
        size = writer.size + len(commit_batch.data)
        batches = writer.batches + len(commit_batch.batches.rows) // ENTRY_SIZE
        if batches > _MAX_BATCHES or size > self._segment_size:
            return True
        retention = self._file.retention
        return retention.max_bytes > 0 and size > segment_limit(retention, self._segment_size)

    def _new_writer(self, now_ns: int, place: ResumePoint) -> SegmentWriter:
        self._file.settle()
        self._give_up()
        last_start = max(self._last_start, place.last.start_ns if place.last else 0)
        name = SegmentName(place.record, max(now_ns, last_start + 1))
        self._last_start = name.start_ns
        segment = Segment(self._file.folder, name, place.offset, place.record, live=BatchIndex())
        writer = SegmentWriter.create(self._storage, segment, self._file.identity.id)
        try:
            self._file.add_base(name.key, segment.base_offset)
        except UndecidedError:
            writer.release()  # the files stay: the next start may find that it was begun
            self._leftover = segment
            raise
        except OSError:
            writer.discard()
            raise
        return writer

    def _give_up(self) -> None:
        """Remove the files of a segment without batches, once the topic's file knows it no more."""
        leftover = self._leftover
        if leftover is None:
            return
        if leftover.name.key in self._file.bases:
            self._file.forget_base(leftover.name.key)
        self._leftover = None
        remove_files(self._storage, leftover)

    def _close(self) -> None:
        """Close the segment; one without a batch is removed, now or at the next start."""
        writer = self._writer
        if writer is None:
            return
        if writer.batches:
            writer.close(sync=not self._synced)
            writer.segment.live = None
        self._writer = None
        if writer.batches:
            self._storage.sync_dir(writer.segment.folder)
        else:
            writer.release()
            self._leftover = writer.segment
            self._give_up()

    def seal(self, end_offset: int) -> None:
        """Close the segment; nothing may be in flight.

        Raises:
            OSError: it stays as it is; the next start checks it.
        """
        self.recover()
        if not self._synced and self._file.next_offset > end_offset:
            self._file.reserve(end_offset)

    def release(self) -> None:
        """Close the files without any further writing."""
        if self._writer is not None:
            self._writer.release()
            self._writer = None
