"""One shard: applies its records, one after another, to the topics that belong to it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from lance_server.cluster.applying.catalog import Catalog
from lance_server.cluster.applying.results import Applied, Result, Status
from lance_server.cluster.applying.settings import APPLY_VERSION, Settings
from lance_server.cluster.applying.topic import Change, Removal, ReplicatedTopic
from lance_server.cluster.records import UnknownRecordError, decode, next_digest
from lance_server.cluster.replicated_log import (
    NO_EPOCH,
    Entry,
    FirstStateMissingError,
    LogGapError,
)
from lance_server.log.metadata.topic_file import Retention, StoredIdentity, TopicFile
from lance_server.storage.contract import StorageBackend
from lance_spec.checksum import CRC32C
from lance_spec.codec.ingest_runs import BatchMeta
from lance_spec.limits import DEFAULT_TOPIC_ID
from lance_spec.messages import replication
from lance_spec.messages.replication import LogRecord, RecordKind

_AHEAD_NS: Final = 1_000_000_000
"""How far a sender's clock may be ahead of the log's before the log's time counts."""
_FORMER: Final = 16
"""Former processes of a node that are remembered."""
_DIGESTS: Final = 8192
"""Positions whose digest is remembered, to compare with what other nodes tell."""
_DONE: Final = Result(Status.DONE)
_IGNORED: Final = Result(Status.IGNORED)


@dataclass(slots=True)
class NodeEntry:
    """What a shard knows of a node by its records.

    Attributes:
        process: random number of the process that told it last.
        position: of that record.
        time_ns: when the log took it.
        status: what it told.
        former: processes that had the node's number before it, newest last.
    """

    process: int
    position: int
    time_ns: int
    status: replication.NodeStatus
    former: tuple[int, ...] = ()


@dataclass(slots=True)
class ShardState:
    """What a mark holds of a shard, beside its topics.

    Attributes:
        position: of the next record to apply.
        epoch: leader epoch of the last record that was applied.
        digest: of all records before it.
        time_ns: when the log took the last one.
        settings: those of the cluster; None before the shard's Genesis.
        apply_version: version of the rules.
        catalog: in shard 0, which topics there are.
        ended: topics that ended here before they began.
        hosts: nodes that keep the shard.
        nodes: what is known of nodes, in shard 0.
    """

    position: int
    epoch: int = NO_EPOCH
    digest: int = 0
    time_ns: int = 0
    settings: Settings | None = None
    apply_version: int = APPLY_VERSION
    catalog: Catalog = field(default_factory=Catalog)
    ended: set[int] = field(default_factory=set)
    hosts: set[int] = field(default_factory=set)
    nodes: dict[int, NodeEntry] = field(default_factory=dict)


class Changes(NamedTuple):
    """What readers of a shard may see from now on.

    Attributes:
        shard: its number.
        begun: topics that are new.
        topics: topics that changed, each with its changes in their order.
        ended: topics that are gone.
    """

    shard: int
    begun: Sequence[ReplicatedTopic]
    topics: Sequence[tuple[ReplicatedTopic, Sequence[Change]]]
    ended: Sequence[ReplicatedTopic]


class Shard:
    """Applies the records of one shard.

    Args:
        number: of the shard.
        shards: how many there are.
        storage: the backend.
        folder: where the topics' folders lie.
        state: as of a mark; that of an empty directory by default.
        topics: as of the same mark, by id.
        removals: files that go as soon as it is allowed.

    Attributes:
        number: of the shard.
        state: what is known beside the topics.
        topics: the shard's topics by id.
    """

    def __init__(
        self,
        number: int,
        shards: int,
        storage: StorageBackend,
        folder: Path,
        *,
        state: ShardState,
        topics: dict[int, ReplicatedTopic] | None = None,
    ) -> None:
        self._shards = shards
        self._storage = storage
        self._folder = folder
        self._handlers: dict[RecordKind, Callable[[Any, Entry, LogRecord], Result]] = {
            RecordKind.APPEND: self._append,
            RecordKind.CREATE_TOPIC: self._create_topic,
            RecordKind.DELETE_TOPIC: self._delete_topic,
            RecordKind.TOPIC_BEGINS: self._topic_begins,
            RecordKind.TOPIC_ENDS: self._topic_ends,
            RecordKind.SET_RETENTION: self._set_retention,
            RecordKind.COMMIT_OFFSET: self._commit_offset,
            RecordKind.DELETE_COMMIT: self._delete_commit,
            RecordKind.EXPIRE_COMMITS: self._expire_commits,
            RecordKind.DROP_BEFORE: self._drop_before,
            RecordKind.ROLL: self._roll,
            RecordKind.BARRIER: lambda *_: _DONE,
            RecordKind.NODE_STATUS: self._node_status,
            RecordKind.HOST_JOINS: self._host_joins,
            RecordKind.HOST_LEAVES: self._host_leaves,
            RecordKind.APPLY_VERSION: self._apply_version,
            RecordKind.GENESIS: lambda *_: _IGNORED,
        }
        self.number = number
        self.state = state
        self.topics = topics or {}
        self._begun: list[ReplicatedTopic] = []
        self._ended: list[ReplicatedTopic] = []
        self._touched: dict[int, ReplicatedTopic] = {}
        self._digests: dict[int, int] = {state.position: state.digest}
        self._removals: list[Removal] = []

    def __repr__(self) -> str:
        return f"<Shard {self.number} at {self.state.position}, {len(self.topics)} topics>"

    @property
    def settings(self) -> Settings:
        """The cluster's settings; there are none before the Genesis."""
        assert self.state.settings is not None, "Genesis comes first"
        return self.state.settings

    # Records -----------------------------------------------------------------------------------

    def apply(self, entries: Sequence[Entry]) -> list[Applied]:
        """Apply entries that follow each other; return what came of each.

        Raises:
            StopNodeError: one is missing, or is not a record that this release knows.
            OSError: the disk refused. What was applied is in doubt: the shard must be restored
                from its mark before it is used again.
        """
        return [self._apply(entry) for entry in entries]

    def _apply(self, entry: Entry) -> Applied:
        state = self.state
        if entry.position != state.position:
            raise LogGapError(
                f"shard {self.number}: position {state.position} was expected, the log gave "
                f"{entry.position}; restart the node, and bootstrap it again if this repeats"
            )
        record = decode(self.number, entry)
        if state.settings is None:
            result = self._genesis(record, entry)
        else:
            result = self._handlers[record.kind](record.body, entry, record)
        state.position, state.epoch = entry.position + 1, entry.epoch
        state.time_ns = max(state.time_ns, entry.time_ns)
        state.digest = next_digest(state.digest, entry.record)
        self._digests[state.position] = state.digest
        self._digests.pop(state.position - _DIGESTS, None)
        return Applied(entry.position, record.process, record.counter, result)

    def _genesis(self, record: LogRecord, entry: Entry) -> Result:
        body = record.body
        if not isinstance(body, replication.Genesis):
            raise UnknownRecordError(
                f"shard {self.number}, position {entry.position}: the log does not begin with a "
                "Genesis; create the cluster with `lwp cluster init`, in a log of its own"
            )
        self._check_version(body.apply_version, entry)
        settings = Settings.of(body)
        if settings.first_state:
            raise FirstStateMissingError(
                f"the cluster {settings.cluster_id} began with the data of a single server, which "
                "its log does not have: fetch it from a node that has it, `lance-server clone DIR "
                "--from HOST:PORT`; the first node starts with the directory that was named to "
                "`lwp cluster init --from-data-dir`"
            )
        self.state.settings = settings
        self.state.apply_version = body.apply_version
        if self.number == 0:
            self.state.catalog.add_default(body.created_ns)
            self._begin(DEFAULT_TOPIC_ID, self.state.catalog.topics[DEFAULT_TOPIC_ID].begins(0))
        return _DONE

    def _check_version(self, version: int, entry: Entry) -> None:
        if version > APPLY_VERSION:
            raise UnknownRecordError(
                f"shard {self.number}, position {entry.position}: the cluster works by version "
                f"{version} of the rules, this release knows up to {APPLY_VERSION}; upgrade "
                "this node"
            )

    def _time(self, topic: ReplicatedTopic, accepted_ns: int, entry: Entry) -> int:
        """Return a server time: one fast clock moves it by a second at most."""
        return max(topic.state.last_ns, min(accepted_ns, entry.time_ns + _AHEAD_NS))

    def _append(self, body: replication.Append, entry: Entry, _record: LogRecord) -> Result:
        topic = self._touch(body.topic_id)
        if topic is None:
            return Result(Status.NO_TOPIC, body.topic_id)
        if CRC32C(body.data) != body.stored_crc or not body.data:
            return Result(Status.DAMAGED, body.topic_id)
        batch = BatchMeta(
            len(body.data),
            body.record_count,
            body.batch_id,
            body.client_timestamp_ns,
            self._time(topic, body.accepted_ns, entry),
            body.stored_crc,
            body.flags,
        )
        return topic.append(body.data, batch)

    # Topics ------------------------------------------------------------------------------------

    def _create_topic(
        self, body: replication.CreateTopic, entry: Entry, _record: LogRecord
    ) -> Result:
        if self.number != 0:
            return _IGNORED
        created_ns = min(body.accepted_ns, entry.time_ns + _AHEAD_NS)
        most = self.settings.max_topics
        return self.state.catalog.create(body, created_ns, most, self._shards)

    def _delete_topic(
        self, body: replication.DeleteTopic, _entry: Entry, _record: LogRecord
    ) -> Result:
        return self.state.catalog.delete(body.topic_id) if self.number == 0 else _IGNORED

    def _topic_begins(
        self, body: replication.TopicBegins, _entry: Entry, _record: LogRecord
    ) -> Result:
        if body.topic_id in self.topics or body.topic_id in self.state.ended:
            return Result(Status.IGNORED, body.topic_id)
        self._begin(body.topic_id, body)
        return Result(Status.DONE, body.topic_id)

    def _begin(self, topic_id: int, body: replication.TopicBegins) -> None:
        folder = self._folder / str(topic_id)
        identity = StoredIdentity(topic_id, body.name, body.created_at, body.topic_epoch)
        retention = Retention(body.max_age_secs, body.max_bytes)
        file = TopicFile(self._storage, folder, identity, retention)
        self._storage.make_dir(folder)
        file.save()
        self._storage.sync_dir(self._folder)
        topic = ReplicatedTopic(self._storage, file, self.settings)
        self.topics[topic_id] = topic
        self._begun.append(topic)

    def _topic_ends(self, body: replication.TopicEnds, _entry: Entry, _record: LogRecord) -> Result:
        if body.topic_id in self.state.ended or body.topic_id == DEFAULT_TOPIC_ID:
            return Result(Status.IGNORED, body.topic_id)
        self.state.ended.add(body.topic_id)
        topic = self.topics.pop(body.topic_id, None)
        if topic is not None:
            topic.release()
            self._removals = [each for each in self._removals if each.topic_id != body.topic_id] + [
                Removal(body.topic_id, "topic")
            ]
            self._ended.append(topic)
        return Result(Status.DONE, body.topic_id)

    def _set_retention(
        self, body: replication.SetRetention, _entry: Entry, _record: LogRecord
    ) -> Result:
        topic = self._touch(body.topic_id)
        if topic is None:
            return Result(Status.NO_TOPIC, body.topic_id)
        return topic.set_retention(body.version, Retention(body.max_age_secs, body.max_bytes))

    def _drop_before(
        self, body: replication.DropBefore, entry: Entry, _record: LogRecord
    ) -> Result:
        topic = self._touch(body.topic_id)
        if topic is None:
            return Result(Status.NO_TOPIC, body.topic_id)
        return topic.drop_before(body.offset, body.retention_version, entry.time_ns)

    def _roll(self, body: replication.Roll, _entry: Entry, _record: LogRecord) -> Result:
        topic = self._touch(body.topic_id)
        if topic is None:
            return Result(Status.NO_TOPIC, body.topic_id)
        return topic.roll(body.end)

    # Commits -----------------------------------------------------------------------------------

    def _commit_offset(
        self, body: replication.CommitOffset, entry: Entry, _record: LogRecord
    ) -> Result:
        topic = self._touch(body.topic_id)
        if topic is None:
            return Result(Status.NO_TOPIC, body.topic_id)
        time_ns = min(body.accepted_ns, entry.time_ns + _AHEAD_NS)
        return topic.commit(body.consumer_id, body.version, body.offset, time_ns)

    def _delete_commit(
        self, body: replication.DeleteCommit, _entry: Entry, _record: LogRecord
    ) -> Result:
        topic = self._touch(body.topic_id)
        if topic is None:
            return Result(Status.NO_TOPIC, body.topic_id)
        return topic.delete_commit(body.consumer_id, body.version)

    def _expire_commits(
        self, body: replication.ExpireCommits, _entry: Entry, _record: LogRecord
    ) -> Result:
        topic = self._touch(body.topic_id)
        if topic is None:
            return Result(Status.NO_TOPIC, body.topic_id)
        return topic.expire_commits(body.before_ns, body.kept)

    # Nodes -------------------------------------------------------------------------------------

    def _node_status(self, body: replication.NodeStatus, entry: Entry, record: LogRecord) -> Result:
        """Note what a node told, unless another process has its number."""
        known, former = self.state.nodes.get(body.node_id), tuple[int, ...]()
        if known is not None:
            former = known.former
            if record.process != known.process:
                if record.process in former or body.replaces != known.process:
                    return Result(Status.STALE)
                former = (*former, known.process)[-_FORMER:]
        told = NodeEntry(record.process, entry.position, entry.time_ns, body, former)
        self.state.nodes[body.node_id] = told
        return _DONE

    def _host_joins(self, body: replication.HostJoins, _entry: Entry, _record: LogRecord) -> Result:
        if self.number == body.shard:
            self.state.hosts.add(body.node_id)
        return _DONE

    def _host_leaves(
        self, body: replication.HostLeaves, _entry: Entry, _record: LogRecord
    ) -> Result:
        if self.number == body.shard:
            self.state.hosts.discard(body.node_id)
        self.state.nodes.pop(body.node_id, None)
        return _DONE

    def _apply_version(
        self, body: replication.ApplyVersion, entry: Entry, _record: LogRecord
    ) -> Result:
        self._check_version(body.version, entry)
        self.state.apply_version = max(self.state.apply_version, body.version)
        return _DONE

    def _touch(self, topic_id: int) -> ReplicatedTopic | None:
        """Return a topic that a record is about, and note that it may change."""
        topic = self.topics.get(topic_id)
        if topic is not None:
            self._touched[topic_id] = topic
        return topic

    def take_changes(self) -> Changes:
        """Return what changed since the last call, for the thread of the readers."""
        touched = [(topic, topic.changes) for topic in self._touched.values() if topic.changes]
        for topic, _ in touched:
            topic.changes = []
        changes = Changes(self.number, self._begun, touched, self._ended)
        self._begun, self._touched, self._ended = [], {}, []
        return changes

    def digest_at(self, position: int) -> int | None:
        """Return the digest of all records before a position, or None where it is not known."""
        return self._digests.get(position)

    # Files -------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Make everything durable that was written; a mark may follow.

        Raises:
            OSError: the disk refused: the shard must be restored before it is used again.
        """
        for topic in self.topics.values():
            if topic.dirty:
                topic.sync()

    def index(self) -> None:
        """Write the indexes that closed segments lack.

        Raises:
            OSError: the disk refused.
        """
        for topic in self.topics.values():
            topic.index()

    def pending_removals(self) -> list[Removal]:
        """Return the files that go once a mark at this position is durable."""
        return [*self._removals, *self._topic_removals()]

    def _topic_removals(self) -> Iterator[Removal]:
        for topic in self.topics.values():
            yield from topic.removals

    def removed(self, done: Sequence[Removal]) -> None:
        """Note that files are gone.

        Raises:
            OSError: the disk refused: the shard must be restored before it is used again.
        """
        gone = frozenset(done)
        self._removals = [each for each in self._removals if each not in gone]
        for topic in self.topics.values():
            topic.removed(gone)

    def release(self) -> None:
        """Close all files and leave them as they are."""
        for topic in self.topics.values():
            topic.release()
