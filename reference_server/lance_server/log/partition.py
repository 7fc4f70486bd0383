"""A topic's log while the server runs: a single writer, and what readers may see of it.

Batches are collected in a group; a worker thread makes one group at a time durable; only then
do the batches get offsets that anyone can see, and only then are they acknowledged.
"""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lance_server.log.cache import SegmentCache
from lance_server.log.dedup import FIRST_LASTING_ID, DuplicateWindow
from lance_server.log.reader import Fetched, LogReader, Range
from lance_server.log.recovery import TopicLog
from lance_server.log.scan import first_since
from lance_server.log.segment import Segment, SegmentName, SegmentWriter, View
from lance_server.log.sidecar import BatchIndex, BatchMeta
from lance_server.log.topic_file import TopicFile
from lance_server.outcome import Outcome
from lance_server.refusals import storage_refusal
from lance_server.storage.contract import StorageBackend
from lance_spec.checksum import Buffer

_log = logging.getLogger(__name__)
_MAX_BATCHES: Final = 1 << 20
"""Batches per segment: its index in memory and its sidecar stay below 27 and 64 MiB."""


class Group:
    """Batches that become durable together, or fail together.

    Attributes:
        data: their bytes, back to back.
        batches: what is known of each.
        contents: content by id of those that other connections may repeat (AMB-25).
        outcome: their common fate.
    """

    __slots__ = ("batches", "contents", "data", "outcome")

    def __init__(self) -> None:
        self.data = bytearray()
        self.batches: list[BatchMeta] = []
        self.contents: dict[int, int] = {}
        self.outcome: Outcome[None] = Outcome()

    def __repr__(self) -> str:
        return f"<Group {len(self.batches)} batches, {len(self.data)} bytes, {self.outcome!r}>"


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A batch that is stored already, or about to be.

    Attributes:
        same: whether its content is what is stored under its id.
        outcome: what its acknowledgement must wait for, or None when it is durable.
    """

    same: bool
    outcome: Outcome[None] | None


class Partition:
    """The log of one topic.

    All methods but `write` and `seal` belong to the event loop's thread; those two run on a
    worker thread, never twice at once.

    Args:
        storage: the backend.
        cache: open segments of all topics.
        file: the topic's metadata.
        log: what recovery found.
        window: the batches that are recognised when they are sent again.
        on_dirty: called when the first batch of a group is waiting to be flushed.
        segment_size: bytes after which a segment is closed.
    """

    def __init__(
        self,
        storage: StorageBackend,
        cache: SegmentCache,
        file: TopicFile,
        log: TopicLog,
        window: DuplicateWindow,
        *,
        on_dirty: Callable[["Partition"], None],
        segment_size: int,
    ) -> None:
        self._storage = storage
        self._cache = cache
        self._file = file
        self._segments = log.segments
        self._reader = LogReader(storage, cache)
        self._window = window
        self._segment_size = segment_size
        self._on_dirty = on_dirty
        self._writer: SegmentWriter | None = None
        self._must_cut_back = False
        self._open_group: Group | None = None
        self._flushing: Group | None = None
        self._watchers: dict[Callable[[], None], None] = {}
        self._last_ns = log.segments[-1].last_ns if log.segments else 0
        self.end_offset = log.end_offset
        self.end_record = log.end_record

    def __repr__(self) -> str:
        return (
            f"<Partition topic={self._file.identity.id} end={self.end_offset} "
            f"records={self.end_record} segments={len(self._segments)} dirty={self.dirty_bytes}>"
        )

    @property
    def start_offset(self) -> int:
        """The earliest offset that can be read."""
        return 0

    @property
    def dirty_bytes(self) -> int:
        """Bytes that no flush has taken yet."""
        return len(self._open_group.data) if self._open_group else 0

    @property
    def pending_bytes(self) -> int:
        """Bytes that are not durable yet."""
        return self.dirty_bytes + (len(self._flushing.data) if self._flushing else 0)

    @property
    def flushing(self) -> bool:
        """Whether a worker thread is making a group durable."""
        return self._flushing is not None

    @property
    def last_outcome(self) -> Outcome[None] | None:
        """What the newest batch that is not durable waits for, or None."""
        group = self._open_group or self._flushing
        return None if group is None else group.outcome

    @property
    def segments(self) -> int:
        """How many segments the topic has."""
        return len(self._segments)

    # Appending -------------------------------------------------------------------------------

    def append(self, records: Buffer, batch: BatchMeta, content: int) -> Outcome[None]:
        """Store a batch; the outcome is settled when it is durable. Its bytes are copied.

        Args:
            records: the bytes to store.
            batch: what is known of them.
            content: `BatchMeta.content`, which whoever looked for duplicates has at hand.
        """
        group = self._open_group
        if group is None:
            group = self._open_group = Group()
            self._on_dirty(self)
        group.data += records
        group.batches.append(batch)
        if batch.batch_id >= FIRST_LASTING_ID and batch.client_timestamp_ns:
            group.contents[batch.batch_id] = content
            self._window.announce(batch.batch_id)
        return group.outcome

    def may_know(self, batch_id: int) -> bool:
        """Whether a batch with this lasting id may be here already; False is certain."""
        return self._window.may_know(batch_id)

    def next_time(self, now_ns: int) -> int:
        """Return the server time of a batch that arrives now; it never goes backwards."""
        self._last_ns = max(self._last_ns, now_ns)
        return self._last_ns

    def find_duplicate(self, batch_id: int, content: int) -> Duplicate | None:
        """Return what is known of a batch with this lasting id, or None when it is new."""
        for group in (self._open_group, self._flushing):
            if group is not None and (found := group.contents.get(batch_id)) is not None:
                return Duplicate(found == content, group.outcome)
        known = self._window.find(batch_id)
        return None if known is None else Duplicate(known == content, None)

    def begin_flush(self) -> Group:
        """Hand over what was collected; `write` and then `finish` must follow."""
        assert self._open_group is not None, "there is nothing to flush"
        assert self._flushing is None, "one group at a time"
        group, self._open_group = self._open_group, None
        self._flushing = group
        return group

    def write(self, group: Group) -> Segment:
        """Make a group durable and return the segment it went to (worker thread).

        Raises:
            OSError: it is not durable, and what was written of it is cut away, now or before
                anything else is written.
        """
        self._recover_writer()
        writer = self._writer_for(group)
        try:
            writer.append(group.data, group.batches, writer.segment.base_offset + writer.size)
        except OSError:
            self._must_cut_back = True
            with contextlib.suppress(OSError):  # tried again before the next write
                self._recover_writer()
            raise
        return writer.segment

    def _recover_writer(self) -> None:
        """Undo a failed write and leave the segment it happened in."""
        if self._must_cut_back and self._writer is not None:
            self._writer.cut_back()
            self._must_cut_back = False
            self._close_writer()

    def _writer_for(self, group: Group) -> SegmentWriter:
        writer = self._writer
        if writer is not None and writer.batches and self._is_full(writer, group):
            self._close_writer()
        if self._writer is None:
            self._writer = self._new_writer(group.batches[0].server_time_ns)
        return self._writer

    def _is_full(self, writer: SegmentWriter, group: Group) -> bool:
        return (
            writer.size + len(group.data) > self._segment_size
            or writer.batches + len(group.batches) > _MAX_BATCHES
        )

    def _new_writer(self, now_ns: int) -> SegmentWriter:
        last_start = self._segments[-1].name.start_ns if self._segments else 0
        name = SegmentName(self.end_record, max(now_ns, last_start + 1))
        segment = Segment(
            self._file.folder, name, self.end_offset, self.end_record, live=BatchIndex()
        )
        writer = SegmentWriter.create(self._storage, segment, self._file.identity.id)
        try:
            self._file.add_base(name.key, segment.base_offset)
        except OSError:
            writer.discard()
            raise
        return writer

    def _close_writer(self) -> None:
        writer = self._writer
        if writer is not None:
            writer.close()
            writer.segment.live = None
            self._writer = None
            if not writer.batches:
                self._file.bases.pop(writer.segment.name.key, None)

    def finish(self, group: Group, error: OSError | None, segment: Segment | None) -> None:
        """Let a group that was written be seen, or refuse it; whoever waits is woken."""
        assert group is self._flushing, "groups finish in order"
        self._flushing = None
        if error is not None or segment is None:
            refusal = storage_refusal(error or OSError("nothing was written"))
            _log.error("topic %d: %s", self._file.identity.id, refusal.message)
            group.outcome.fail(refusal)
            return
        if not self._segments or self._segments[-1] is not segment:
            self._segments = [*self._segments, segment]
        segment.extend(group.batches)
        self.end_offset = segment.end_offset
        self.end_record = segment.base_record + segment.records
        self._window.update(group.contents, group.batches[-1].server_time_ns)
        group.outcome.settle(None)
        self.notify()

    # Reading ---------------------------------------------------------------------------------

    def reading(self, wanted: Range) -> Callable[[bool], Fetched]:
        """Return a function that answers a Fetch from what is durable now, on any thread.

        Its argument says whether to give up where the disk would have to be waited for.
        """
        view = View(self._segments, self.start_offset, self.end_offset)
        return lambda cached_only: self._reader.fetch(view, wanted, cached_only=cached_only)

    def finding_time(self, time_ns: int) -> Callable[[], int]:
        """Return a function that finds the first batch of a server time or later, on any thread."""
        view = View(self._segments, self.start_offset, self.end_offset)
        return lambda: first_since(self._storage, view, time_ns)

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call ``watcher`` whenever more has become readable, until `unwatch`."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """Stop calling ``watcher``."""
        self._watchers.pop(watcher, None)

    def notify(self) -> None:
        """Call everyone who watches."""
        for watcher in list(self._watchers):
            watcher()

    # The end ---------------------------------------------------------------------------------

    @property
    def written_end(self) -> int:
        """The topic offset behind the last byte of the last segment, for the clean marker."""
        return self._segments[-1].end_offset if self._segments else 0

    def seal(self) -> None:
        """Close the segment that is being written (worker thread, nothing in flight).

        Raises:
            OSError: it stays as it is; the next start checks it.
        """
        self._recover_writer()
        self._close_writer()

    def abandon(self) -> None:
        """Release files without any further writing."""
        self._cache.forget(list(self._segments))
        if self._writer is not None:
            self._writer.release()
            self._writer = None
