"""A topic's log while the server runs: a single writer, and what readers may see of it.

Batches are collected in a commit batch; a worker thread makes one at a time durable; only then
do the batches get offsets that anyone can see, and only then are they acknowledged.
"""

import errno
import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lance_server.log.commit_batch import CommitBatch
from lance_server.log.dedup import FIRST_LASTING_ID, DuplicateWindow
from lance_server.log.metadata.topic_file import LogStart, TopicFile
from lance_server.log.reading.fast_fetch import FastFetch
from lance_server.log.reading.reader import Fetched, LogReader, Range, base_of, below_start
from lance_server.log.reading.segment_cache import SegmentCache
from lance_server.log.recovery.topic_recovery import TopicLog
from lance_server.log.retention.rules import segment_limit
from lance_server.log.segments.active_segment import ActiveSegment, ResumePoint
from lance_server.log.segments.batch_times import BatchTimes, batch_times
from lance_server.log.segments.segment_files import Segment, View
from lance_server.log.segments.sidecar_search import first_since
from lance_server.lwp.refusals import TopicClosedError, storage_refusal, topic_not_found
from lance_server.runtime.completion import Completion, Waiters
from lance_server.runtime.disk_backlog import Backlog
from lance_server.storage.contract import StorageBackend, Write
from lance_spec.checksum import Buffer
from lance_spec.codec.ingest_runs import (
    ROW_SIZE,
    BatchMeta,
    BatchTable,
    encode_row,
    gather_run,
)
from lance_spec.frames import Frame

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A batch that is stored already, or about to be.

    Attributes:
        same: whether its content is what is stored under its id.
        outcome: what its acknowledgement must wait for, or None when it is durable.
    """

    same: bool
    outcome: Completion[None] | None


class Partition:
    """The log of one topic.

    All methods but `prepare`, `conclude` and `seal` belong to the event loop's thread; those
    run on any thread, never two at once.

    Args:
        storage: the backend.
        cache: open segments of all topics.
        file: the topic's metadata.
        log: what recovery found.
        window: the batches that are recognised when they are sent again.
        backlog: counts what is not durable yet.
        on_dirty: called when the first batch of a commit batch is waiting to be flushed.
        segment_size: bytes after which a segment is closed.
        synced: whether a commit outlives the machine; if not, offsets are reserved ahead of use,
            so that none is given to other bytes after a crash (AMB-29).
        on_roll: called when a segment was closed.
        on_doubt: called when it closed itself for writing, until `recover` and `reopen`.

    Attributes:
        closed: why it is closed for writing, or None.
        deleted: whether its topic is being deleted.
        settled: whether its log was made certain at the start; until then it is only read.
    """

    def __init__(
        self,
        storage: StorageBackend,
        cache: SegmentCache,
        file: TopicFile,
        log: TopicLog,
        window: DuplicateWindow,
        *,
        backlog: Backlog,
        on_dirty: Callable[["Partition"], None],
        segment_size: int,
        synced: bool = True,
        on_doubt: Callable[["Partition"], None] = lambda _: None,
        on_roll: Callable[[], None] = lambda: None,
    ) -> None:
        self._storage = storage
        self._cache = cache
        self._file = file
        self._segments = log.segments
        self._reader = LogReader(storage, cache)
        self._window = window
        self._segment_size = segment_size
        self._backlog = backlog
        self._on_dirty = on_dirty
        self._on_doubt = on_doubt
        self._on_roll = on_roll
        self.closed: str | None = None
        self.settled = True
        self.deleted = False
        self._synced = synced
        self._active_segment = self._new_active_segment()
        self._open_batch: CommitBatch | None = None
        self._flushing: CommitBatch | None = None
        self._watchers: Waiters = {}
        self.last_ns = log.segments[-1].last_ns if log.segments else 0
        self.log_start = file.log_start
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
        return self.log_start.offset

    @property
    def dirty(self) -> bool:
        """Whether there is something that no flush has taken yet."""
        return self._open_batch is not None

    @property
    def dirty_bytes(self) -> int:
        """Bytes that no flush has taken yet."""
        return len(self._open_batch.data) if self._open_batch else 0

    @property
    def flushing(self) -> bool:
        """Whether a worker thread is making a commit batch durable."""
        return self._flushing is not None

    @property
    def last_outcome(self) -> Completion[None] | None:
        """What the newest batch that is not durable waits for, or None."""
        commit_batch = self._open_batch or self._flushing
        return None if commit_batch is None else commit_batch.outcome

    @property
    def segments(self) -> int:
        """How many segments the topic has."""
        return len(self._segments)

    @property
    def segment_list(self) -> Sequence[Segment]:
        """The segments that hold something durable, by rising base."""
        return self._segments

    @property
    def live_key(self) -> str | None:
        """What names the segment that is being written, or None."""
        last = self._segments[-1] if self._segments else None
        return None if last is None or last.live is None else last.name.key

    # Appending -------------------------------------------------------------------------------

    def append(self, records: Buffer, batch: BatchMeta) -> Completion[None]:
        """Store a batch; the outcome is settled when it is durable. Its bytes are copied.

        Args:
            records: the bytes to store.
            batch: what is known of them.
        """
        lasting = batch.batch_id >= FIRST_LASTING_ID and batch.client_timestamp_ns != 0
        if lasting:
            self._window.announce(batch.batch_id)
        return self.append_row(records, encode_row(batch), lasting=lasting)

    def append_row(self, records: Buffer, row: bytes, *, lasting: bool) -> Completion[None]:
        """Store a batch as `append` does, once the duplicate window has noted its id.

        Args:
            records: the bytes to store.
            row: what is known of them, as a row of a `BatchTable`.
            lasting: whether other connections may repeat its id.
        """
        commit_batch = self._open_batch or self._new_commit_batch()
        commit_batch.data += records
        commit_batch.batches.rows += row
        commit_batch.lasting += lasting
        self._backlog.size += len(records)
        return commit_batch.outcome

    def append_run(
        self, frames: list[Frame], server_time_ns: int, flags: int
    ) -> tuple[Completion[None], BatchTable]:
        """Store a run of new batches as `append` would; returns also what describes them.

        Args:
            frames: as `count_run` counted them; their bytes are copied.
            server_time_ns: when they arrived.
            flags: of each batch's entry.
        """
        commit_batch = self._open_batch or self._new_commit_batch()
        data, rows = commit_batch.data, commit_batch.batches.rows
        before, described = len(data), len(rows)
        gather_run(frames, server_time_ns, flags, data, commit_batch.batches)
        self._backlog.size += len(data) - before
        last = frames[-1].batch_id
        if last >= FIRST_LASTING_ID:
            commit_batch.lasting += len(frames)
            self._window.announce(last)
        return commit_batch.outcome, BatchTable(rows[described:])

    def number_of_last(self) -> Callable[[], int]:
        """Return what tells, once it is stored, which record the last appended batch begins with.

        Records are numbered from 0 on; it is for clients that count them.
        """
        commit_batch = self._open_batch
        assert commit_batch is not None, "a batch was just appended"
        before = len(commit_batch.batches) - 1
        return lambda: commit_batch.first_record + sum(commit_batch.batches.counts[:before])

    def _new_commit_batch(self) -> CommitBatch:
        self._open_batch = commit_batch = CommitBatch()
        self._on_dirty(self)
        return commit_batch

    def roll(self) -> None:
        """Have the segment that is being written closed, although it is not full."""
        if self.closed is not None:
            return
        commit_batch = self._open_batch or self._new_commit_batch()
        commit_batch.roll = True

    def may_know(self, batch_id: int) -> bool:
        """Whether a batch with this lasting id may be here already; False is certain."""
        return self._window.may_know(batch_id)

    def admit(self, batch_id: int) -> bool:
        """Note a batch that is about to be stored if it is certain to be new; return if it is."""
        return self._window.admit(batch_id)

    def next_time(self, now_ns: int) -> int:
        """Return the server time of a batch that arrives now; it never goes backwards."""
        self.last_ns = max(self.last_ns, now_ns)
        return self.last_ns

    def find_duplicate(self, batch_id: int, digest: bytes) -> Duplicate | None:
        """Return what is known of a batch with this lasting id, or None when it is new."""
        for commit_batch in (self._open_batch, self._flushing):
            if commit_batch is not None and (found := commit_batch.find(batch_id)) is not None:
                return Duplicate(found == digest, commit_batch.outcome)
        known = self._window.find(batch_id)
        return None if known is None else Duplicate(known == digest, None)

    def begin_flush(self) -> CommitBatch:
        """Hand over what was collected; `prepare`, `conclude` and `finish` must follow."""
        assert self._open_batch is not None, "there is nothing to flush"
        assert self._flushing is None, "one commit batch at a time"
        commit_batch, self._open_batch = self._open_batch, None
        self._flushing = commit_batch
        return commit_batch

    def has_lone(self, most: int) -> bool:
        """Whether one batch of at most so many bytes was collected, and only needs writing.

        No file is to be opened or closed for it.
        """
        commit_batch = self._open_batch
        return (
            commit_batch is not None
            and self.closed is None
            and len(commit_batch.batches.rows) == ROW_SIZE
            and len(commit_batch.data) <= most
            and self._active_segment.is_ready_for(commit_batch)
        )

    def prepare(self, commit_batch: CommitBatch) -> Sequence[Write]:
        """Return what must become durable for a commit batch (any thread).

        Nothing for one without batches, which only closes the segment before it, and where there is
        no segment to write it to: `finish` tells that error.
        """
        try:
            if self.closed is not None:
                raise TopicClosedError(errno.EAGAIN, self.closed)
            writes = self._active_segment.prepare(commit_batch, self._resume_point)
        except OSError as error:
            commit_batch.error = error
            return ()
        commit_batch.writes = writes
        return writes

    def _resume_point(self) -> ResumePoint:
        last = self._segments[-1].name if self._segments else None
        return ResumePoint(self.end_offset, self.end_record, last)

    def conclude(self, commit_batch: CommitBatch, error: OSError | None) -> None:
        """Note what the disk says of a commit batch that was prepared (any thread).

        What was written of one that is not durable is cut away, now or before anything else is
        written.
        """
        try:
            if commit_batch.error is None:
                commit_batch.segment = self._active_segment.conclude(commit_batch, error)
        except OSError as failure:
            commit_batch.error = failure
        commit_batch.is_concluded = True

    def finish(self, commit_batch: CommitBatch, problem: Exception | None) -> Waiters:
        """Let what was written be seen, or refuse it; return who is to be woken then.

        Args:
            commit_batch: what was flushed.
            problem: what kept the flush from concluding it, if anything did.
        """
        assert commit_batch is self._flushing, "commit batches finish in order"
        self._flushing = None
        self._backlog.size -= len(commit_batch.data)
        assert self._backlog.size >= 0, "only bytes that were counted leave the backlog"
        error, segment = commit_batch.error, commit_batch.segment
        if error is None and not commit_batch.is_concluded:
            error = OSError(f"the flush stopped: {problem}")
        if error is not None:
            return self._refuse(commit_batch, error)
        if segment is None:
            self._on_roll()
            return commit_batch.outcome.decide()
        is_new = not self._segments or self._segments[-1] is not segment
        if is_new:
            self._segments = [*self._segments, segment]
        commit_batch.first_record = segment.base_record + segment.records
        assert commit_batch.first_record == self.end_record, "records are numbered without a gap"
        segment.extend(commit_batch.batches)
        end_offset = segment.base_offset + segment.size
        assert end_offset >= self.end_offset, "a topic's end only moves forward"
        self.end_offset = end_offset
        self.end_record = segment.base_record + segment.records
        if commit_batch.lasting and self._window.update(
            commit_batch.lasting_batches, segment.last_ns
        ):
            self._announce_open_batch()
        if is_new:
            self._on_roll()
        woken = commit_batch.outcome.decide()
        return woken | self._watchers if self._watchers else woken

    def _refuse(self, commit_batch: CommitBatch, error: OSError) -> Waiters:
        refusal = storage_refusal(error)
        if not isinstance(error, TopicClosedError):
            _log.error("topic %d: %s", self._file.identity.id, refusal.message)
            self._close_if_doubtful(error)
        return commit_batch.outcome.decide(error=refusal)

    def _announce_open_batch(self) -> None:
        """Let a batch that is not durable be found, although its producer was forgotten."""
        if self._open_batch is not None:
            for batch_id in self._open_batch.lasting_batches.ids:
                self._window.announce(batch_id)

    # Closed for writing ----------------------------------------------------------------------

    def _new_active_segment(self) -> ActiveSegment:
        return ActiveSegment(
            self._storage, self._file, segment_size=self._segment_size, synced=self._synced
        )

    def _close_if_doubtful(self, error: OSError) -> None:
        if self._active_segment.is_doubtful and self.closed is None:
            self.closed = str(error)
            self._on_doubt(self)

    def close_unsettled(self, reason: str) -> None:
        """Serve what can be read, and take nothing until `adopt`."""
        self.closed, self.settled = reason, False

    def recover(self) -> None:
        """Make certain what the disk has (worker thread, while it is closed for writing).

        Raises:
            OSError: it is still uncertain.
        """
        self._active_segment.recover()

    def reopen(self) -> None:
        """Take batches again, after `recover` succeeded."""
        self.closed = None

    def adopt(self, log: TopicLog, window: DuplicateWindow) -> None:
        """Go on from a log that is certain now, and take batches."""
        self._active_segment.release()
        self._active_segment = self._new_active_segment()
        before, self._segments = self._segments, log.segments
        self._cache.forget(list(before))
        self._window = window
        self.log_start = self._file.log_start
        self.end_offset, self.end_record = log.end_offset, log.end_record
        self.last_ns = max(self.last_ns, log.segments[-1].last_ns if log.segments else 0)
        self.closed, self.settled = None, True
        self.notify()

    # Reading ---------------------------------------------------------------------------------

    def read_cached(self, wanted: Range) -> Fetched:
        """Answer a Fetch from what is durable and in memory.

        Raises:
            Refusal: there is nothing that can be read at this offset.
            WouldBlockError: the disk would have to be waited for.
            OSError: the disk failed.
        """
        return self._read(self._view(), wanted, cached_only=True)

    def reading(self, wanted: Range) -> Callable[[], Fetched]:
        """Return a function that answers a Fetch from what is durable now, on any thread."""
        return partial(self._read, self._view(), wanted, cached_only=False)

    def fast_fetch_at(self, offset: int) -> FastFetch | None:
        """Return what answers a Fetch around an offset that was just read at once, if anything."""
        segments = self._segments
        number = bisect_right(segments, offset, key=base_of) - 1
        segment = segments[number] if number >= 0 else None
        if segment is None or segment.live is not None:
            return None
        return self._cache.fast_fetch_at(segment, offset - segment.base_offset)

    def _view(self) -> View:
        return View(self._segments, self.log_start.offset, self.end_offset)

    def _read(self, view: View, wanted: Range, *, cached_only: bool) -> Fetched:
        try:
            return self._reader.fetch(view, wanted, cached_only=cached_only)
        except FileNotFoundError:
            if wanted.start < self.start_offset:  # it was dropped meanwhile
                raise below_start(wanted.start, self.start_offset) from None
            # Or else merged with others, and stands in a segment of today.
            with self._moving():
                return self._reader.fetch(self._view(), wanted, cached_only=cached_only)

    @contextmanager
    def _moving(self) -> Iterator[None]:
        """Refuse what a file that is not there stands in the way of, and say why."""
        try:
            yield
        except FileNotFoundError:
            if self.deleted:
                raise topic_not_found(
                    self._file.identity.id, existed=True, text="Topic not found"
                ) from None
            if not self.settled:  # its segments get their names at this moment
                raise storage_refusal(
                    TopicClosedError(errno.EAGAIN, self.closed or "its log is being settled")
                ) from None
            raise

    def finding_time(self, time_ns: int) -> Callable[[], int]:
        """Return a function that finds the first batch of a server time or later, on any thread."""
        return partial(
            self._search, self._view(), lambda view: first_since(self._storage, view, time_ns)
        )

    def telling_times(self, start: int, end: int) -> Callable[[], BatchTimes]:
        """Return a function that finds when the batches of a range were stored, on any thread."""
        return partial(
            self._search, self._view(), lambda view: batch_times(self._storage, view, start, end)
        )

    def _search(self, view: View, find: Callable[[View], T]) -> T:
        """Find something in sidecars; again, where one was dropped or merged meanwhile."""
        try:
            return find(view)
        except FileNotFoundError:
            with self._moving():
                return find(self._view())

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

    # Retention -------------------------------------------------------------------------------

    @property
    def batches(self) -> int:
        """At least how many batches the segments that are open for reading hold."""
        live = self._segments[-1].live if self._segments else None
        return 0 if live is None else len(live)

    def log_start_after(self, gone: Sequence[Segment]) -> LogStart:
        """Return where the topic begins without its oldest segments."""
        if not gone:
            return self.log_start
        if len(gone) == len(self._segments):
            return LogStart(self.end_offset, self.end_record)
        following = self._segments[len(gone)]
        return LogStart(following.base_offset, following.base_record)

    def drop(self, gone: Sequence[Segment], log_start: LogStart) -> None:
        """Let readers see the oldest segments no more; their files may go."""
        assert log_start.offset >= self.log_start.offset, "a topic's start only moves forward"
        assert log_start.offset <= self.end_offset, "a topic begins before its end"
        dropped = set(gone)
        self._segments = [segment for segment in self._segments if segment not in dropped]
        self.log_start = log_start
        self._cache.forget(list(gone))

    @property
    def max_segment_size(self) -> int:
        """Bytes after which a segment is closed."""
        return segment_limit(self._file.retention, self._segment_size)

    @property
    def excess(self) -> int:
        """Bytes that are kept beyond the topic's limit."""
        limit = self._file.retention.max_bytes
        return max(0, self.end_offset - self.log_start.offset - limit) if limit else 0

    def replace(self, sources: Sequence[Segment], merged: Segment) -> None:
        """Lead readers to a merged segment instead of its sources; their files may go."""
        assert merged.base_offset == sources[0].base_offset, "a merge takes its sources' place"
        first = self._segments.index(sources[0])
        rest = self._segments[first + len(sources) :]
        self._segments = [*self._segments[:first], merged, *rest]
        self._cache.forget(list(sources))

    # The end ---------------------------------------------------------------------------------

    @property
    def written_end(self) -> int:
        """The topic offset after the last byte of the last segment, for the clean marker."""
        return self._segments[-1].end_offset if self._segments else 0

    def seal(self) -> None:
        """Close the segment that is being written (worker thread, nothing in flight).

        Raises:
            OSError: it stays as it is; the next start checks it.
        """
        if self.settled:
            self._active_segment.seal(self.end_offset)
        else:  # how far offsets are in use only its file knows
            self._active_segment.recover()

    def abandon(self) -> None:
        """Release files without any further writing."""
        self._cache.forget(list(self._segments))
        self._active_segment.release()
