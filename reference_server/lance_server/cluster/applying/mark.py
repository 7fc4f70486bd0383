"""Marks: how far the files of a shard are durable, and all that is not in the files.

A mark is written after a sync of every file that changed. It is the intent of a recovery, too:
at a start the files are brought back to what it says, however often that takes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from lance_server.cluster.applying.catalog import Catalog
from lance_server.cluster.applying.settings import Settings
from lance_server.cluster.applying.shard import NodeEntry, Shard, ShardState
from lance_server.cluster.applying.topic import (
    Commit,
    Removal,
    ReplicatedTopic,
    TopicState,
    WindowFile,
)
from lance_server.errors import DataDirError
from lance_server.log.metadata.catalog import DELETED_PREFIX
from lance_server.log.metadata.checksummed_file import backup_of, load_document, save_document
from lance_server.log.metadata.topic_file import LogStart, Retention, StoredIdentity
from lance_server.log.recovery.startup import CLUSTER_FOLDER
from lance_server.log.retention.rules import WINDOW_SUFFIX
from lance_server.log.segments.indexes import index_names
from lance_server.log.segments.segment_files import DATA_SUFFIX, SIDECAR_SUFFIX, SegmentName
from lance_server.storage.contract import StorageBackend, remove_folder
from lance_spec.bodies import take_int, take_str
from lance_spec.errors import DecodeError
from lance_spec.messages.replication import NodeStatus

FOLDER: Final = CLUSTER_FOLDER
"""The folder of marks within the data directory; a directory that has it is a node's."""
MARK_SUFFIX: Final = ".json"
UNFINISHED: Final = "unfinished"
"""The file among the marks that says that the directory is a clone which is not whole."""
_BODY: Final = "mark"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class TopicMark:
    """A topic as of a mark.

    Attributes:
        identity: who it is.
        retention: how much of it is kept.
        log_start: where it begins.
        state: what else is known of it.
        active: bytes and batches of the segment that is open, or None.
        holes: ranges of offsets that a single server retired before, start to end.
    """

    identity: StoredIdentity
    retention: Retention
    log_start: LogStart
    state: TopicState
    active: tuple[int, int] | None
    holes: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, topic: ReplicatedTopic) -> Self:
        """Return the topic as it is now."""
        file, writer = topic.file, topic.active
        active = None if writer is None else (writer.size, writer.batches)
        return cls(file.identity, file.retention, file.log_start, topic.state, active, file.holes)

    def to_body(self) -> dict[str, Any]:
        """Return what `from_body` takes."""
        state = self.state
        return {
            "name": self.identity.name,
            "created_at": self.identity.created_at,
            "topic_epoch": self.identity.epoch,
            "max_age_secs": self.retention.max_age_secs,
            "max_bytes": self.retention.max_bytes,
            "start_offset": self.log_start.offset,
            "start_record": self.log_start.record,
            **{name: getattr(state, name) for name in _NUMBERS},
            "last_key": state.last_key,
            "active": None if self.active is None else list(self.active),
            "windows": [list(each) for each in state.windows],
            "commits": {str(key): list(each) for key, each in state.commits.items()},
            **({"holes": sorted(self.holes.items())} if self.holes else {}),
        }

    @classmethod
    def from_body(cls, topic_id: int, body: Mapping[str, Any]) -> Self:
        """Return the topic that a mark holds.

        Raises:
            DecodeError: a field is missing or has another type.
        """
        of = {name: take_int(body, name, _BODY) for name in (*_NUMBERS, *_FIGURES)}
        state = TopicState(
            **{name: of[name] for name in _NUMBERS},
            last_key=take_str(body, "last_key", _BODY),
            commits={
                int(key): Commit(*_numbers(each, 3, "commits"))
                for key, each in _object(body, "commits").items()
            },
            windows=[
                WindowFile(str(key), *_numbers(rest, 2, "windows"))
                for key, *rest in _list(body, "windows")
            ],
        )
        active = body.get("active")
        sizes = None if active is None else _numbers(active, 2, "active")
        return cls(
            StoredIdentity(
                topic_id, take_str(body, "name", _BODY), of["created_at"], of["topic_epoch"]
            ),
            Retention(of["max_age_secs"], of["max_bytes"]),
            LogStart(of["start_offset"], of["start_record"]),
            state,
            None if sizes is None else (sizes[0], sizes[1]),
            _pairs(body.get("holes", [])),
        )


_NUMBERS: Final = (
    *("retention_version", "end", "end_record", "last_ns", "last_start_ns"),
    *("lasting", "dropped_lasting", "commit_version"),
)
_FIGURES: Final = (
    *("created_at", "topic_epoch", "max_age_secs", "max_bytes", "start_offset", "start_record"),
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A shard as of a position.

    Attributes:
        identity: of the log that its records came from.
        state: what is known beside the topics.
        topics: the topics by id.
        removals: files that go once the mark is durable.
    """

    identity: str
    state: ShardState
    topics: Mapping[int, TopicMark]
    removals: Sequence[Removal]

    @classmethod
    def of(cls, shard: Shard, identity: str) -> Self:
        """Return the mark of a shard as it is now; its files must be synced before it is saved."""
        topics = {key: TopicMark.of(topic) for key, topic in shard.topics.items()}
        return cls(identity, shard.state, topics, shard.pending_removals())

    def to_body(self) -> dict[str, Any]:
        """Return what `from_body` takes."""
        state = self.state
        assert state.settings is not None, "a mark comes after the Genesis"
        return {
            "format": _FORMAT,
            "identity": self.identity,
            **{name: getattr(state, name) for name in _STATE},
            "epoch": state.epoch + 1,
            "settings": state.settings.to_body(),
            "catalog": state.catalog.to_body(),
            "ended": sorted(state.ended),
            "hosts": sorted(state.hosts),
            "nodes": [
                [
                    *(entry.process, entry.position, entry.time_ns),
                    *(entry.status.encode().hex(), list(entry.former)),
                ]
                for _, entry in sorted(state.nodes.items())
            ],
            "topics": {str(key): topic.to_body() for key, topic in self.topics.items()},
            "removals": [list(each) for each in self.removals],
        }

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        """Return the mark that a document holds.

        Raises:
            DecodeError: a field is missing, has another type, or comes from a newer release.
        """
        take_int(body, "format", _BODY, _FORMAT + 1)
        nodes = {}
        for process, position, time_ns, status, former in _list(body, "nodes"):
            told = NodeStatus.decode(bytes.fromhex(status))
            nodes[told.node_id] = NodeEntry(process, position, time_ns, told, tuple(former))
        state = ShardState(
            **{name: take_int(body, name, _BODY) for name in _STATE},
            epoch=take_int(body, "epoch", _BODY) - 1,
            settings=Settings.from_body(_object(body, "settings")),
            catalog=Catalog.from_body(_object(body, "catalog")),
            ended=set(_list(body, "ended")),
            hosts=set(_list(body, "hosts")),
            nodes=nodes,
        )
        topics = {
            int(key): TopicMark.from_body(int(key), topic)
            for key, topic in _object(body, "topics").items()
        }
        removals = [Removal(*each) for each in _list(body, "removals")]
        return cls(take_str(body, "identity", _BODY), state, topics, removals)


_STATE: Final = ("position", "digest", "time_ns", "apply_version")


def _pairs(found: Any) -> dict[int, int]:
    pairs = [_numbers(each, 2, "holes") for each in found]
    return {start: end for start, end in pairs}  # noqa: C416 - the pairs are lists


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name)
    if not isinstance(found, dict):
        raise DecodeError(_BODY, name, 0, "an object", repr(found)[:80])
    return found


def _list(body: Mapping[str, Any], name: str) -> list[Any]:
    found = body.get(name)
    if not isinstance(found, list):
        raise DecodeError(_BODY, name, 0, "a list", repr(found)[:80])
    return found


def _numbers(found: Any, count: int, name: str) -> list[int]:
    if not isinstance(found, list) or len(found) != count:
        raise DecodeError(_BODY, name, 0, f"{count} numbers", repr(found)[:80])
    return [int(each) for each in found]


def mark_path(data_dir: Path, shard: int) -> Path:
    """Return where the mark of a shard stands."""
    return data_dir / FOLDER / f"shard-{shard}{MARK_SUFFIX}"


def save_mark(storage: StorageBackend, data_dir: Path, shard: int, mark: Mark) -> None:
    """Save a mark, durably, in two copies.

    Raises:
        OSError: the disk refused; the next start finds this mark or the one before.
    """
    save_document(storage, mark_path(data_dir, shard), mark.to_body())


def load_mark(storage: StorageBackend, data_dir: Path, shard: int) -> Mark | None:
    """Return the mark of a shard, or None where there is none.

    Raises:
        DataDirError: neither copy can be used.
    """
    path = mark_path(data_dir, shard)
    document = load_document(storage, path)
    if document is None:
        return None
    try:
        return Mark.from_body(document.body)
    except (DecodeError, ValueError, TypeError) as error:
        raise DataDirError(
            f"{path}: {error}; fetch it from another node (`lance-server clone DIR --from "
            "HOST:PORT`), or upgrade this one if a newer release wrote it"
        ) from error


def remove_mark(storage: StorageBackend, data_dir: Path, shard: int) -> None:
    """Remove the mark of a shard, durably, whether both copies are there or one.

    Raises:
        OSError: the disk refused; the call may be repeated.
    """
    path = mark_path(data_dir, shard)
    names = storage.list_dir(path.parent)
    for copy in (path, backup_of(path)):
        if copy.name in names:
            storage.remove(copy)
    storage.sync_dir(path.parent)


def remove(storage: StorageBackend, folder: Path, removals: Sequence[Removal]) -> None:
    """Remove what a durable mark says may go; what is gone already is fine.

    Args:
        storage: the backend.
        folder: where the topics' folders lie.
        removals: what may go.

    Raises:
        OSError: the disk refused; the call may be repeated.
    """
    touched: dict[int, None] = {}
    for each in removals:
        if each.kind == "topic":
            _remove_topic(storage, folder, each.topic_id)
        elif str(each.topic_id) in storage.list_dir(folder):
            _remove_files(storage, folder / str(each.topic_id), each)
            touched[each.topic_id] = None
    for topic_id in touched:
        if str(topic_id) in storage.list_dir(folder):
            storage.sync_dir(folder / str(topic_id))


def _remove_topic(storage: StorageBackend, folder: Path, topic_id: int) -> None:
    grave = folder / f"{DELETED_PREFIX}{topic_id}"
    names = storage.list_dir(folder)
    if str(topic_id) in names:
        storage.rename(folder / str(topic_id), grave)
        storage.sync_dir(folder)
    elif grave.name not in names:
        return
    remove_folder(storage, grave)


def _remove_files(storage: StorageBackend, folder: Path, removal: Removal) -> None:
    """Remove a segment's data and indexes, or a sidecar that the window needs no more."""
    names, key = storage.list_dir(folder), removal.key
    if removal.kind == "window":
        doomed = [f"{key}{WINDOW_SUFFIX}"]
    else:
        if f"{key}{SIDECAR_SUFFIX}" in names:
            storage.rename(folder / f"{key}{SIDECAR_SUFFIX}", folder / f"{key}{WINDOW_SUFFIX}")
        doomed = index_names(key)
        for name in names:
            parsed = SegmentName.parse(name) if name.endswith(DATA_SUFFIX) else None
            if parsed is not None and parsed.key == key:
                doomed.append(name)
    for name in doomed:
        if name in names:
            storage.remove(folder / name)
