"""A topic of a shard: its segments on disk, and all that is known of it beside them.

The thread that applies records owns a topic. What readers may see of it are the changes that it
hands out: they are published on the thread of the readers, in their order.
"""

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from lance_server.cluster.applying.results import Result, Status
from lance_server.cluster.applying.settings import Settings
from lance_server.cluster.applying.window import ExactWindow
from lance_server.log.dedup import is_lasting
from lance_server.log.metadata.topic_file import LogStart, Retention, TopicFile
from lance_server.log.retention.rules import is_surplus, segment_limit
from lance_server.log.segments.indexes import index_names, index_segment
from lance_server.log.segments.segment_files import Segment, SegmentName, SegmentWriter
from lance_server.log.segments.sidecar import BatchIndex, meta_of
from lance_server.log.segments.sidecar_scan import read_entries
from lance_server.storage.contract import StorageBackend
from lance_spec.codec.ingest_runs import BatchMeta, BatchTable

_MAX_BATCHES: Final = 1 << 20
"""Batches per segment, as on a single node."""
_SECOND: Final = 1_000_000_000


class Grown(NamedTuple):
    """A batch that readers may see."""

    segment: Segment
    batch: BatchMeta


class Closed(NamedTuple):
    """A segment that does not grow any more."""

    segment: Segment


class Dropped(NamedTuple):
    """Segments that are gone, and where the topic begins without them."""

    segments: Sequence[Segment]
    log_start: LogStart


class CommitChange(NamedTuple):
    """What a consumer committed; None where it has no commit any more."""

    consumer_id: int
    commit: "Commit | None"


Change: TypeAlias = Grown | Closed | Dropped | CommitChange
"""What readers of a topic may see from now on."""


class Commit(NamedTuple):
    """What a consumer committed last.

    Attributes:
        offset: how far it is.
        time_ns: the server time of the commit.
        version: of this commit; no other of the topic has the same.
    """

    offset: int
    time_ns: int
    version: int


class WindowFile(NamedTuple):
    """The sidecar of a dropped segment, kept for the duplicate window.

    Attributes:
        key: of the segment.
        behind: lasting batches of the topic up to its end.
        last_ns: server time of its last batch.
    """

    key: str
    behind: int
    last_ns: int


@dataclass(slots=True)
class TopicState:
    """What a mark holds of a topic, beside its identity.

    Attributes:
        retention_version: rises with each change of the retention.
        end: topic offset after its last byte.
        end_record: number of records in it, the dropped ones included.
        last_ns: server time of its last batch.
        last_start_ns: when its last segment was begun.
        last_key: key of its last segment, or ``""``.
        lasting: lasting batches that were ever stored.
        dropped_lasting: those of dropped segments.
        commit_version: the version of the newest commit.
        commits: by consumer.
        windows: sidecars of dropped segments, oldest first.
    """

    retention_version: int = 1
    end: int = 0
    end_record: int = 0
    last_ns: int = 0
    last_start_ns: int = 0
    last_key: str = ""
    lasting: int = 0
    dropped_lasting: int = 0
    commit_version: int = 0
    commits: dict[int, Commit] = field(default_factory=dict)
    windows: list[WindowFile] = field(default_factory=list)


@dataclass(slots=True)
class Extent:
    """A segment as the applying thread knows it.

    Attributes:
        segment: what readers have.
        end: topic offset after its last byte.
        last_ns: server time of its last batch.
    """

    segment: Segment
    end: int
    last_ns: int

    @property
    def size(self) -> int:
        """Bytes in it."""
        return self.end - self.segment.base_offset


class Removal(NamedTuple):
    """A file that goes once a durable mark lies after the record that says so.

    Attributes:
        topic_id: the topic.
        kind: ``segment`` for data and indexes (the sidecar stays, for the duplicate window),
            ``window`` for such a sidecar, ``topic`` for the whole folder.
        key: of the segment; ``""`` for a topic.
    """

    topic_id: int
    kind: str
    key: str = ""


class ReplicatedTopic:
    """A topic of a shard.

    Args:
        storage: the backend.
        file: who the topic is, its retention and its start.
        settings: of the cluster.
        state: what else is known of it.
        window: its duplicate window.
        extents: its segments, by rising base.
        writer: what writes the last of them, if that is open.

    Attributes:
        changes: what was not published yet.
        removals: files that go once a mark allows it.
        dirty: whether there is anything to sync before a mark.
    """

    def __init__(
        self,
        storage: StorageBackend,
        file: TopicFile,
        settings: Settings,
        *,
        state: TopicState | None = None,
        window: ExactWindow | None = None,
        extents: Sequence[Extent] = (),
        writer: SegmentWriter | None = None,
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._writer = writer
        self.file = file
        self.state = state or TopicState()
        self.window = window or ExactWindow(settings.window)
        self.extents = list(extents)
        self.changes: list[Change] = []
        self.removals: list[Removal] = []
        self.dirty = False

    def __repr__(self) -> str:
        return f"<ReplicatedTopic {self.file.identity.id} end={self.state.end}>"

    @property
    def active(self) -> SegmentWriter | None:
        """What writes the segment that is open, or None."""
        return self._writer

    # Batches -----------------------------------------------------------------------------------

    def append(self, data: bytes, batch: BatchMeta) -> Result:
        """Store a batch at the end, unless it is known.

        Args:
            data: its bytes.
            batch: what is known of it; its server time is not before the last batch's.

        Raises:
            OSError: the disk refused; the topic must not be used any more.
        """
        lasting, topic_id = is_lasting(batch), self.file.identity.id
        if lasting and self.window.find(batch.batch_id, batch.server_time_ns) == batch.digest:
            return Result(Status.DUPLICATE, topic_id)
        state = self.state
        result = Result(Status.STORED, topic_id, state.end, state.end_record)
        self._write(data, batch)
        state.end += batch.length
        state.end_record += batch.record_count
        state.last_ns = batch.server_time_ns
        if lasting:
            state.lasting += 1
            self.window.add(batch.batch_id, batch.digest, batch.server_time_ns)
        return result

    def _write(self, data: bytes, batch: BatchMeta) -> None:
        writer = self._writer
        if writer is not None and self._is_full(writer, batch.length):
            self._close(writer)
            writer = None
        if writer is None:
            writer = self._writer = self._begin(batch.server_time_ns)
        table = BatchTable.of((batch,))
        for each in writer.writes(data, table, self.state.end):
            self._storage.write(each.fd, each.data, each.offset)
        writer.advance(data, table)
        self.dirty = True
        extent = self.extents[-1]
        extent.end += batch.length
        extent.last_ns = batch.server_time_ns
        self.changes.append(Grown(extent.segment, batch))

    def _is_full(self, writer: SegmentWriter, length: int) -> bool:
        """Whether a batch goes to the next segment; one without batches takes any."""
        limit = segment_limit(self.file.retention, self._settings.segment_size)
        return writer.batches > 0 and (
            writer.size + length > limit or writer.batches >= _MAX_BATCHES
        )

    def _begin(self, now_ns: int) -> SegmentWriter:
        state = self.state
        name = SegmentName(state.end_record, max(now_ns, state.last_start_ns + 1))
        segment = Segment(self.file.folder, name, state.end, state.end_record, live=BatchIndex())
        writer = SegmentWriter.create(self._storage, segment, self.file.identity.id)
        self.file.add_base(name.key, state.end)
        state.last_start_ns, state.last_key = name.start_ns, name.key
        self.extents.append(Extent(segment, state.end, 0))
        return writer

    def _close(self, writer: SegmentWriter) -> None:
        writer.close(sync=True)
        self.changes.append(Closed(writer.segment))
        self._writer = None
        self.dirty = True

    def roll(self, end: int) -> Result:
        """End the segment that is being written, unless the topic does not end where stated.

        Raises:
            OSError: the disk refused; the topic must not be used any more.
        """
        writer = self._writer
        if end != self.state.end or writer is None:
            return Result(Status.STALE, self.file.identity.id, self.state.end)
        self._close(writer)
        return Result(Status.DONE, self.file.identity.id)

    # Retention ---------------------------------------------------------------------------------

    def set_retention(self, version: int, retention: Retention) -> Result:
        """Change how much is kept, if the version is the current one.

        Raises:
            OSError: the disk refused; the topic must not be used any more.
        """
        state = self.state
        if version != state.retention_version:
            return Result(Status.STALE, self.file.identity.id, state.retention_version)
        self.file.set_retention(retention)
        state.retention_version += 1
        return Result(Status.DONE, self.file.identity.id, state.retention_version)

    def droppable(self, offset: int, now_ns: int) -> list[Extent]:
        """Return the oldest segments that end at ``offset`` or before and need not be kept."""
        retention, found = self.file.retention, list[Extent]()
        following = sum(extent.size for extent in self.extents)
        oldest_ns = now_ns - retention.max_age_secs * _SECOND
        closed = self.extents if self._writer is None else self.extents[:-1]
        left = sum(extent.size for extent in closed)
        for extent in closed:
            following -= extent.size
            too_old = retention.max_age_secs and extent.last_ns < oldest_ns
            too_much = is_surplus(extent.size, left, following, retention.max_bytes)
            left -= extent.size
            if extent.end > offset or not (too_old or too_much):
                break
            found.append(extent)
        return found

    def drop_before(self, offset: int, version: int, now_ns: int) -> Result:
        """Drop the oldest segments, as far as the retention of a version allows.

        Args:
            offset: segments that end after it stay.
            version: of the retention.
            now_ns: when the log took the record.

        Raises:
            OSError: the disk refused; the topic must not be used any more.
        """
        state, topic_id = self.state, self.file.identity.id
        if version != state.retention_version:
            return Result(Status.STALE, topic_id, state.retention_version)
        gone = self.droppable(offset, now_ns)
        if not gone:
            return Result(Status.IGNORED, topic_id, self.file.log_start.offset)
        for extent in gone:
            state.dropped_lasting += self._count_lasting(extent.segment)
            key = extent.segment.name.key
            state.windows.append(WindowFile(key, state.dropped_lasting, extent.last_ns))
            self.removals.append(Removal(topic_id, "segment", key))
        self.extents = self.extents[len(gone) :]
        log_start = LogStart(gone[-1].end, self._record_at_start())
        self.file.retire([extent.segment.name.key for extent in gone], log_start)
        self.changes.append(Dropped([extent.segment for extent in gone], log_start))
        self._prune_windows()
        return Result(Status.DONE, topic_id, log_start.offset)

    def _record_at_start(self) -> int:
        return self.extents[0].segment.base_record if self.extents else self.state.end_record

    def _count_lasting(self, segment: Segment) -> int:
        sidecar = self._storage.open(segment.sidecar_path)
        try:
            entries = list(read_entries(self._storage, sidecar))
        finally:
            self._storage.close(sidecar)
        valid = [entry for entry in entries if entry is not None]
        if len(valid) < len(entries):
            raise OSError(errno.EIO, f"{segment.sidecar_path} is damaged")
        return sum(is_lasting(meta_of(entry)) for entry in valid)

    def _prune_windows(self) -> None:
        """Let the sidecars go that lie wholly outside the duplicate window."""
        state, settings = self.state, self._settings
        oldest_ns = state.last_ns - settings.window_age_secs * _SECOND
        while state.windows:
            oldest = state.windows[0]
            enough = state.lasting - oldest.behind >= settings.window_entries
            if not enough and oldest.last_ns >= oldest_ns:
                return
            state.windows.pop(0)
            self.removals.append(Removal(self.file.identity.id, "window", oldest.key))

    # Commits -----------------------------------------------------------------------------------

    def commit(self, consumer_id: int, version: int, offset: int, time_ns: int) -> Result:
        """Record how far a consumer is, if the version is that of its current commit."""
        state, topic_id = self.state, self.file.identity.id
        known = state.commits.get(consumer_id)
        current = 0 if known is None else known.version
        if version != current:
            return Result(Status.STALE, topic_id, current)
        if known is None and len(state.commits) >= self._settings.max_consumers:
            return Result(Status.FULL, topic_id)
        state.commit_version += 1
        commit = Commit(min(offset, state.end), time_ns, state.commit_version)
        state.commits[consumer_id] = commit
        self.changes.append(CommitChange(consumer_id, commit))
        return Result(Status.DONE, topic_id, commit.offset)

    def delete_commit(self, consumer_id: int, version: int) -> Result:
        """Forget how far a consumer is, if the version is that of its current commit."""
        known = self.state.commits.get(consumer_id)
        current = 0 if known is None else known.version
        if not version or version != current:
            return Result(Status.STALE, self.file.identity.id, current)
        del self.state.commits[consumer_id]
        self.changes.append(CommitChange(consumer_id, None))
        return Result(Status.DONE, self.file.identity.id)

    def expire_commits(self, before_ns: int, kept: Sequence[int]) -> Result:
        """Forget commits from before a time, but for those of some consumers."""
        commits, staying = self.state.commits, frozenset(kept)
        old = [
            consumer
            for consumer, commit in commits.items()
            if commit.time_ns < before_ns and consumer not in staying
        ]
        for consumer in old:
            del commits[consumer]
            self.changes.append(CommitChange(consumer, None))
        return Result(Status.DONE, self.file.identity.id, len(old))

    # Files -------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Make everything durable that was written.

        Raises:
            OSError: the disk refused; the topic must not be used any more.
        """
        if self._writer is not None:
            self._writer.make_durable()
        self._storage.sync_dir(self.file.folder)
        self.dirty = False

    def removed(self, gone: frozenset[Removal]) -> None:
        """Note that files are gone.

        Raises:
            OSError: the disk refused; the topic must not be used any more.
        """
        self.removals = [each for each in self.removals if each not in gone]
        if self.file.retiring and not any(each.kind == "segment" for each in self.removals):
            self.file.retired()

    def index(self) -> None:
        """Write the indexes that closed segments lack; they are the same on all nodes.

        Raises:
            OSError: the disk refused.
        """
        names: frozenset[str] | None = None
        closed = self.extents if self._writer is None else self.extents[:-1]
        for extent in closed:
            segment = extent.segment
            if segment.indexed:
                continue
            names = names or frozenset(self._storage.list_dir(self.file.folder))
            if not names.issuperset(index_names(segment.name.key)):
                index_segment(self._storage, segment, 0)
            segment.indexed = True

    def release(self) -> None:
        """Close the files and leave them as they are."""
        if self._writer is not None:
            self._writer.release()
            self._writer = None
