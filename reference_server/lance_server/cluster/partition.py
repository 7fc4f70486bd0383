"""A replicated topic as connections use it: writes go to the log, reads see what is applied."""

from collections.abc import Callable, Sequence
from functools import partial

from lance_server.cluster.applying.results import Result, Status
from lance_server.cluster.applying.topic import (
    Change,
    Closed,
    CommitChange,
    Dropped,
    Grown,
    ReplicatedTopic,
)
from lance_server.cluster.node import ClusterNode
from lance_server.log.dedup import DuplicateWindow, WindowLimits
from lance_server.log.metadata.consumer_offsets import Commit, ConsumerOffsets
from lance_server.log.partition import Partition
from lance_server.log.reading.segment_cache import SegmentCache
from lance_server.log.recovery.topic_recovery import TopicLog
from lance_server.log.segments.segment_files import Segment
from lance_server.lwp.refusals import Refusal, topic_not_found
from lance_server.runtime.completion import Completion
from lance_server.runtime.disk_backlog import Backlog
from lance_server.runtime.scheduling import Scheduler
from lance_server.storage.contract import StorageBackend
from lance_spec.checksum import Buffer
from lance_spec.codec.ingest_runs import BatchMeta, BatchTable, gather_run
from lance_spec.enums import ErrorCode
from lance_spec.frames import Frame
from lance_spec.messages.replication import Append, CommitOffset, DeleteCommit

_NO_WINDOW = WindowLimits(entries=0)
_ATTEMPTS = 8
"""How often a change is tried again whose version another node replaced meanwhile."""


class ReplicatedPartition(Partition):
    """The log of one topic, as this node has applied it.

    Batches are proposed and not stored: their completions are settled when they are applied.
    Duplicates are found when records are applied, so none is known before.

    Args:
        storage: the backend.
        cache: open segments of all topics.
        topic: what applying knows of it, opened.
        log: its segments, as far as they are published.
        node: puts records into the log.
        shard: the topic's.
        backlog: counts what is not applied yet.

    Attributes:
        shard: the topic's.
    """

    def __init__(
        self,
        storage: StorageBackend,
        cache: SegmentCache,
        topic: ReplicatedTopic,
        log: TopicLog,
        *,
        node: ClusterNode,
        shard: int,
        backlog: Backlog,
    ) -> None:
        super().__init__(
            storage,
            cache,
            topic.file,
            log,
            DuplicateWindow(_NO_WINDOW),
            backlog=backlog,
            on_dirty=_never_dirty,
            segment_size=0,
        )
        self._topic_id = topic.file.identity.id
        self._node = node
        self.shard = shard
        self._last: Completion[Result] = Completion()

    # Appending -----------------------------------------------------------------------------------

    def append(self, records: Buffer, batch: BatchMeta) -> Completion[None]:
        """Propose a batch; the completion is settled when it is applied, or known as applied."""
        return self._propose(bytes(records), batch)

    def append_row(self, records: Buffer, row: bytes, *, lasting: bool) -> Completion[None]:
        """Propose a batch as `append` does."""
        del lasting  # where records are applied it is found
        return self._propose(bytes(records), BatchTable(row)[0])

    def append_run(
        self, frames: list[Frame], server_time_ns: int, flags: int
    ) -> tuple[Completion[None], BatchTable]:
        """Propose a run of new batches; one completion tells the fate of all."""
        data, table = bytearray(), BatchTable()
        gather_run(frames, server_time_ns, flags, data, table)
        place, ends = 0, list[Completion[None]]()
        for batch in table:
            ends.append(self._propose(bytes(data[place : place + batch.length]), batch))
            place += batch.length
        return _all_of(ends), table

    def _propose(self, data: bytes, batch: BatchMeta) -> Completion[None]:
        refusal = self._node.refusal()
        if refusal is not None:
            refused: Completion[None] = Completion()
            refused.fail(refusal)
            return refused
        body = Append(
            topic_id=self._topic_id,
            batch_id=batch.batch_id,
            client_timestamp_ns=batch.client_timestamp_ns,
            accepted_ns=batch.server_time_ns,
            record_count=batch.record_count,
            flags=batch.flags,
            stored_crc=batch.stored_crc,
            data=data,
        )
        self._backlog.size += len(data)
        proposed = self._last = self._node.propose(self.shard, body)
        proposed.wake(partial(self._note_end, len(data)))
        return proposed.then(self._judge)

    def number_of_last(self) -> Callable[[], int]:
        """Return what tells, once it is applied, which record the last batch begins with."""
        last = self._last
        return lambda: last.result().record

    def _note_end(self, size: int) -> None:
        self._backlog.size -= size

    def _judge(self, result: Result) -> None:
        if result.status in {Status.STORED, Status.DUPLICATE}:
            return
        if result.status is Status.NO_TOPIC:
            raise topic_not_found(self._topic_id, existed=True, text="Unknown topic")
        raise Refusal(
            ErrorCode.STORAGE_ERROR,
            "Nothing was stored: the batch was damaged on its way through the log; send it again",
        )

    def may_know(self, batch_id: int) -> bool:
        """Return False: duplicates are found when records are applied."""
        del batch_id
        return False

    def find_duplicate(self, batch_id: int, digest: bytes) -> None:
        """Return None: duplicates are found when records are applied."""
        del batch_id, digest

    def next_time(self, now_ns: int) -> int:
        """Return when a batch is accepted; its server time follows from the log."""
        return now_ns

    # Publishing ----------------------------------------------------------------------------------

    def publish(self, changes: Sequence[Change]) -> None:
        """Let readers see what was applied."""
        grown: list[BatchMeta] = []
        segment: Segment | None = None
        for change in changes:
            if isinstance(change, Grown):
                if change.segment is not segment:
                    self._extend(segment, grown)
                    segment, grown = change.segment, []
                grown.append(change.batch)
                continue
            self._extend(segment, grown)
            grown = []
            if isinstance(change, Closed):
                change.segment.live = None
            elif isinstance(change, Dropped):
                self.drop(change.segments, change.log_start)
        self._extend(segment, grown)
        self.notify()

    def _extend(self, segment: Segment | None, batches: Sequence[BatchMeta]) -> None:
        if segment is None or not batches:
            return
        if not self._segments or self._segments[-1] is not segment:
            self._segments = [*self._segments, segment]
        segment.extend(BatchTable.of(batches))
        self.end_offset = segment.end_offset
        self.end_record = segment.base_record + segment.records
        self.last_ns = segment.last_ns

    def abandon(self) -> None:
        """Let the segments go; the thread that applies closes what it writes."""
        self._cache.forget(list(self._segments))


def _never_dirty(_partition: Partition) -> None:
    raise AssertionError("a replicated topic is written by the thread that applies")


def _all_of(ends: Sequence[Completion[None]]) -> Completion[None]:
    """Return a completion that is settled with the last, and fails as the first that fails."""
    whole: Completion[None] = Completion()
    left = len(ends)

    def note() -> None:
        nonlocal left
        left -= 1
        if not left:
            error = next((each.error for each in ends if each.error is not None), None)
            if error is not None:
                whole.fail(error)
            else:
                whole.settle(None)

    for each in ends:
        each.wake(lambda: note())  # noqa: PLW0108 - each completion needs a waiter of its own
    return whole


class ReplicatedConsumers(ConsumerOffsets):
    """What consumers committed to a replicated topic, as this node has applied it.

    Args:
        storage: the backend.
        scheduler: the loop.
        topic: what applying knows of it, opened.
        node: puts records into the log.
        shard: the topic's.
        clock: the node's wall clock in nanoseconds.
    """

    def __init__(
        self,
        storage: StorageBackend,
        scheduler: Scheduler,
        topic: ReplicatedTopic,
        *,
        node: ClusterNode,
        shard: int,
        clock: Callable[[], int],
    ) -> None:
        super().__init__(storage, scheduler, topic.file.folder, clock=clock)
        self._topic_id = topic.file.identity.id
        self._node = node
        self._shard = shard
        self._versions = {key: each.version for key, each in topic.state.commits.items()}
        self._committed = {
            key: Commit(each.offset, each.time_ns) for key, each in topic.state.commits.items()
        }

    def publish(self, changes: Sequence[Change]) -> None:
        """Let readers see what was applied."""
        for change in changes:
            if not isinstance(change, CommitChange):
                continue
            if change.commit is None:
                self._committed.pop(change.consumer_id, None)
                self._versions.pop(change.consumer_id, None)
            else:
                commit = Commit(change.commit.offset, change.commit.time_ns)
                self._committed[change.consumer_id] = commit
                self._versions[change.consumer_id] = change.commit.version

    def commit(self, consumer_id: int, offset: int) -> Completion[None]:
        """Propose a commit; the completion is settled when it is applied."""
        end: Completion[None] = Completion()

        def attempt(version: int, left: int) -> None:
            body = CommitOffset(
                topic_id=self._topic_id,
                consumer_id=consumer_id,
                version=version,
                offset=offset,
                accepted_ns=self._clock(),
            )
            self._attempt(body, end, attempt, left)

        attempt(self._versions.get(consumer_id, 0), _ATTEMPTS)
        return end

    def delete(self, consumer_id: int) -> Completion[None]:
        """Propose to forget a commit; the completion is settled when that is applied.

        Raises:
            KeyError: it has committed nothing.
        """
        if consumer_id not in self._committed:
            raise KeyError(consumer_id)
        end: Completion[None] = Completion()

        def attempt(version: int, left: int) -> None:
            body = DeleteCommit(topic_id=self._topic_id, consumer_id=consumer_id, version=version)
            self._attempt(body, end, attempt, left)

        attempt(self._versions[consumer_id], _ATTEMPTS)
        return end

    def _attempt(
        self,
        body: CommitOffset | DeleteCommit,
        end: Completion[None],
        again: Callable[[int, int], None],
        left: int,
    ) -> None:
        """Propose a change; repeat it where another one was applied before it."""
        proposed = self._node.propose(self._shard, body)

        def judge() -> None:
            if proposed.error is not None:
                end.fail(proposed.error)
                return
            result = proposed.result()
            if result.status is Status.DONE or (
                isinstance(body, DeleteCommit) and not result.offset
            ):
                end.settle(None)
            elif result.status is Status.STALE and left:
                again(result.offset, left - 1)
            else:
                end.fail(self._refused(result))

        proposed.wake(judge)

    def _refused(self, result: Result) -> Refusal:
        if result.status is Status.NO_TOPIC:
            return topic_not_found(self._topic_id, existed=True, text="Unknown topic")
        if result.status is Status.FULL:
            words = (
                "As many consumers as the cluster allows have committed offsets to this topic; "
                "delete some that are no longer used"
            )
        else:
            words = "Other nodes changed this commit at the same time; commit again"
        return Refusal(ErrorCode.UNKNOWN_ERROR, words)

    def expire(self, before_ns: int) -> int:
        """Return 0: commits of a cluster expire by a record."""
        del before_ns
        return 0
