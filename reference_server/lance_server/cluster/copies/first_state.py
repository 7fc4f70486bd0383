"""A data directory becomes the first state of a cluster: a single server's, or a node's.

The topics, their files, commits and settings stay as they are. The Genesis of each shard names a
digest of all of it, and marks are written that say: so it was after the Genesis. The log has
nothing of it, so other nodes begin with a clone. Until the folder of the marks has its name, the
directory is a single server's; every step may be repeated.

The directory of a node, whose log is lost or to be left, is brought back to its marks, which are
then written anew for the other log, that of shard 0 last.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from lance_server.cluster.applying.catalog import Catalog
from lance_server.cluster.applying.mark import (
    FOLDER,
    MARK_SUFFIX,
    Mark,
    TopicMark,
    load_mark,
    mark_path,
    save_mark,
)
from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.settings import DIGEST_MARK, Settings
from lance_server.cluster.applying.shard import ShardState
from lance_server.cluster.applying.topic import Commit, TopicState, WindowFile
from lance_server.cluster.records import genesis_of, next_digest
from lance_server.cluster.replicated_log import Entry, StopNodeError
from lance_server.errors import DataDirError
from lance_server.listeners.shared_offsets import (
    FLUVIO_CONSUMERS,
    RUSTLOG_GROUPS,
    named_commits,
)
from lance_server.log.dedup import is_lasting
from lance_server.log.disk_reserve import DiskReserve
from lance_server.log.metadata.catalog import FILE_NAME as CATALOG_FILE
from lance_server.log.metadata.catalog import TopicIdAllocator
from lance_server.log.metadata.checksummed_file import backup_of, save_document
from lance_server.log.metadata.consumer_offsets import FILE_NAME as CONSUMERS_FILE
from lance_server.log.metadata.consumer_offsets import FIRST_FILE_NAME, ConsumerOffsets
from lance_server.log.metadata.topic_file import TopicFile
from lance_server.log.recovery.startup import CLEAN_MARKER
from lance_server.log.retention.expiry_clock import FILE_NAME as CLOCK_FILE
from lance_server.log.retention.rules import WINDOW_SUFFIX, window_files
from lance_server.log.segments.indexes import index_segment
from lance_server.log.segments.segment_files import (
    DATA_SUFFIX,
    SIDECAR_SUFFIX,
    Segment,
    SegmentName,
)
from lance_server.log.segments.sidecar import HEADER_SIZE, decode_header, meta_of
from lance_server.log.segments.sidecar_scan import read_entries
from lance_server.offline.sync_scheduler import SyncScheduler, existing, opened_on
from lance_server.offline.verifying import verify
from lance_server.runtime.directory_lock import DataDirLock
from lance_server.storage.contract import (
    StorageBackend,
    opened,
    read_at,
    read_file,
    remove_folder,
)
from lance_server.storage.pwritev import PwritevStorage
from lance_spec.limits import DEFAULT_TOPIC_ID
from lance_spec.messages.engine import SidecarEntry

_DRAFT: Final = "cluster.tmp"
_MAX_SIDECAR: Final = 1 << 31
_SIDECARS: Final = (SIDECAR_SUFFIX, WINDOW_SUFFIX)
_LEFT: Final = (CONSUMERS_FILE, FIRST_FILE_NAME, RUSTLOG_GROUPS, FLUVIO_CONSUMERS)
"""Files of a topic that a mark stands for."""


@dataclass(frozen=True, slots=True)
class FirstState:
    """What a cluster begins with.

    Attributes:
        topics: of each shard, by id.
        catalog: which topics there are.
        digest: of all of it, in hexadecimal digits.
        notes: what a cluster has not got of it.
        settings: those that the cluster has to have, or None for any.
    """

    topics: Sequence[Mapping[int, TopicMark]]
    catalog: Mapping[str, Any]
    digest: str
    notes: Sequence[str]
    settings: Settings | None = None


def _read_first_state(storage: StorageBackend, data_dir: Path, shards: int) -> FirstState:
    """Return what the directory of a stopped server holds; its segments are closed by then.

    Args:
        storage: the backend.
        data_dir: the directory, held by the caller.
        shards: over how many shards its topics are spread.

    Raises:
        DataDirError: it is damaged, or a newer release wrote it.
        OSError: the disk refused.
    """
    _refuse_damage(storage, data_dir)
    with opened_on(storage, data_dir) as (engine, _):
        problems = [f"topic {key}: {words}" for key, words in engine.problems.items()]
    if problems:
        raise DataDirError(f"{data_dir} cannot be used: {problems[0]}")
    folder = data_dir / "segments"
    allocator = TopicIdAllocator(storage, folder)
    allocator.load()
    found = {
        int(name): _Topic(storage, folder / name).read()
        for name in storage.list_dir(folder)
        if name.isdecimal()
    }
    topics = _spread(found, shards)
    catalog = _catalog(allocator, topics)
    notes = [
        f"the partitioned topic '{each.name}' is {len(each.topic_ids)} topics from now on"
        for each in allocator.partitioned.values()
    ]
    return FirstState(topics, catalog, _digest(storage, folder, topics, catalog), notes)


def _read_node(storage: StorageBackend, data_dir: Path, shards: int) -> FirstState:
    """Return what the directory of a stopped node holds.

    Args:
        storage: the backend.
        data_dir: the directory, held by the caller.
        shards: how many the cluster is to have.

    Raises:
        DataDirError: it is damaged, lacks shards, or a newer release wrote it.
        OSError: the disk refused.
    """
    marks = _marks(storage, data_dir, shards)
    if len({mark.identity for mark in marks}) == 1:  # else they are being written anew
        try:
            Replica.open(storage, data_dir, marks[0].identity, shards, lambda _shard: 0).release()
        except StopNodeError as error:
            raise DataDirError(str(error)) from error
        marks = _marks(storage, data_dir, shards)
    findings = verify(data_dir, storage=storage).findings
    if findings:
        raise DataDirError(
            f"{data_dir} is damaged: {findings[0]}; name the directory of another node"
        )
    topics = [mark.topics for mark in marks]
    catalog, settings = marks[0].state.catalog.to_body(), marks[0].state.settings
    digest = _digest(storage, data_dir / "segments", topics, catalog)
    notes = ["segment size, duplicate window and limits are those of the cluster before"]
    return FirstState(topics, catalog, digest, notes, settings)


def _marks(storage: StorageBackend, data_dir: Path, shards: int) -> list[Mark]:
    """Return the marks of all shards.

    Raises:
        DataDirError: there are others, or not all.
    """
    found = {
        int(name)
        for name in (
            each.removeprefix("shard-").removesuffix(MARK_SUFFIX)
            for each in storage.list_dir(data_dir / FOLDER)
        )
        if name.isdecimal()
    }
    if found != set(range(shards)):
        raise DataDirError(
            f"{data_dir} is the directory of a node with the shards {sorted(found)}, and the "
            f"cluster is to have {shards}: name that of a node which hosts all shards, and give "
            "--shards as many"
        )
    marks = [load_mark(storage, data_dir, number) for number in range(shards)]
    return [mark for mark in marks if mark is not None]


def _refuse_damage(storage: StorageBackend, data_dir: Path) -> None:
    findings = verify(data_dir, storage=storage).findings
    if findings:
        raise DataDirError(
            f"{data_dir} is not as a clean stop leaves it: {findings[0]}; see `lance-server verify "
            f"{data_dir}`, run `lance-server repair {data_dir}`, then repeat the command"
        )


def _spread(found: Mapping[int, TopicMark], shards: int) -> list[dict[int, TopicMark]]:
    """Give each topic to the shard with the fewest bytes; the default one to shard 0."""
    topics: list[dict[int, TopicMark]] = [{} for _ in range(shards)]
    used = [0] * shards
    for topic_id, topic in sorted(found.items()):
        shard = 0 if topic_id == DEFAULT_TOPIC_ID else used.index(min(used))
        topics[shard][topic_id] = topic
        used[shard] += topic.state.end - topic.log_start.offset
    return topics


def _catalog(
    allocator: TopicIdAllocator, topics: Sequence[Mapping[int, TopicMark]]
) -> dict[str, Any]:
    entries, highest = {}, 0
    for shard, several in enumerate(topics):
        for topic_id, topic in several.items():
            highest = max(highest, topic_id)
            entries[str(topic_id)] = {
                "name": topic.identity.name,
                "created_at": topic.identity.created_at,
                "topic_epoch": topic.identity.epoch,
                "max_age_secs": topic.retention.max_age_secs,
                "max_bytes": topic.retention.max_bytes,
                "shard": shard,
            }
    return {
        "topics": entries,
        "next_id": max(allocator.next_id, highest + 1),
        "epoch_floor": allocator.epoch_floor,
        "retired": [[name, epoch] for name, epoch in allocator.retired.items()],
    }


def _digest(
    storage: StorageBackend,
    folder: Path,
    topics: Sequence[Mapping[int, TopicMark]],
    catalog: Mapping[str, Any],
) -> str:
    """Return a digest of the topics and of their sidecars, which have the data's checksums."""
    told = [catalog, [{key: topic.to_body() for key, topic in each.items()} for each in topics]]
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for topic_id in sorted(key for each in topics for key in each):
        for name in storage.list_dir(folder / str(topic_id)):
            if name.endswith((DATA_SUFFIX, *_SIDECARS)):
                digest.update(name.encode())
            if name.endswith(_SIDECARS):
                path = folder / str(topic_id) / name
                digest.update(read_file(storage, path, _MAX_SIDECAR))
    return digest.hexdigest()


class _Topic:
    """Reads one topic of a server that was stopped cleanly."""

    def __init__(self, storage: StorageBackend, folder: Path) -> None:
        self._storage = storage
        self._folder = folder
        loaded = TopicFile.load(storage, folder)
        if loaded is None:
            raise DataDirError(f"{folder} has no metadata; see `lance-server verify`")
        self._file, _ = loaded
        self._holes = dict(self._file.holes)
        self._state = TopicState()

    def read(self) -> TopicMark:
        """Return the topic as a mark has it, and write the indexes that nodes have.

        Raises:
            DataDirError: it is damaged.
            OSError: the disk refused.
        """
        file, state = self._file, self._state
        self._read_windows()
        state.end, state.end_record = file.log_start.offset, file.log_start.record
        self._read_segments()
        self._grow_to(max(state.end, file.next_offset))
        self._read_commits()
        return TopicMark(file.identity, file.retention, file.log_start, state, None, self._holes)

    def _read_windows(self) -> None:
        """Note the sidecars of dropped segments, oldest first."""
        state = self._state
        for path in reversed(window_files(self._storage, self._folder)):
            entries = self._entries(path)
            state.lasting += _count_lasting(entries)
            last_ns = entries[-1].server_time_ns if entries else 0
            state.windows.append(WindowFile(path.stem, state.lasting, last_ns))
            self._note_last(path.stem, last_ns)
        state.dropped_lasting = state.lasting

    def _note_last(self, key: str, last_ns: int) -> None:
        state, name = self._state, SegmentName.parse(key + DATA_SUFFIX)
        assert name is not None, "it was found by its name"
        state.last_key, state.last_start_ns = key, max(state.last_start_ns, name.start_ns)
        state.last_ns = max(state.last_ns, last_ns)

    def _read_segments(self) -> None:
        names = [SegmentName.parse(each) for each in self._storage.list_dir(self._folder)]
        state = self._state
        for name in sorted((each for each in names if each is not None), key=lambda each: each[:2]):
            path = self._folder / name.sidecar
            with opened(self._storage, path) as fd:
                header = decode_header(read_at(self._storage, fd, HEADER_SIZE, 0))
            entries = self._entries(path)
            segment = Segment(self._folder, name, header.base_offset, header.base_record)
            index_segment(self._storage, segment, 0)
            self._grow_to(segment.base_offset)
            last = entries[-1]
            state.end = segment.base_offset + last.relative_offset + last.stored_length
            state.end_record = segment.base_record + sum(each.record_count for each in entries)
            state.lasting += _count_lasting(entries)
            self._note_last(name.key, last.server_time_ns)

    def _grow_to(self, offset: int) -> None:
        """Note that a crash made offsets up to here retired ones."""
        if offset > self._state.end:
            self._holes[self._state.end] = offset
            self._state.end = offset

    def _entries(self, path: Path) -> list[SidecarEntry]:
        with opened(self._storage, path) as fd:
            entries = list(read_entries(self._storage, fd))
        valid = [each for each in entries if each is not None]
        if len(valid) < len(entries) or (not valid and not path.name.endswith(WINDOW_SUFFIX)):
            raise DataDirError(f"{path} is damaged; see `lance-server verify`")
        return valid

    def _read_commits(self) -> None:
        """Take over what consumers have committed, those of other protocols, too."""
        consumers, state = (
            ConsumerOffsets(self._storage, SyncScheduler(), self._folder),
            self._state,
        )
        consumers.load()
        commits = [(key, *each) for key, each in sorted(consumers.commits().items())]
        commits += sorted(named_commits(self._storage, self._folder))
        for version, (consumer, offset, time_ns) in enumerate(commits, 1):
            state.commits[consumer] = Commit(min(offset, state.end), time_ns, version)
            state.commit_version = version


def _count_lasting(entries: Sequence[SidecarEntry]) -> int:
    return sum(is_lasting(meta_of(entry)) for entry in entries)


def _adopt(
    storage: StorageBackend,
    data_dir: Path,
    state: FirstState,
    identity: str,
    begun: Sequence[Entry],
) -> None:
    """Make the directory that of a node which has applied the Genesis of each shard.

    The marks of a node before take the place of those that are there, one by one.

    Args:
        storage: the backend.
        data_dir: the directory.
        state: what it holds.
        identity: of the log.
        begun: the Genesis of each shard, as the log has it.

    Raises:
        OSError: the disk refused; the call may be repeated.
    """
    marks = {
        entry.shard: Mark(
            identity, _state_after(entry, state.catalog), state.topics[entry.shard], ()
        )
        for entry in begun
    }
    if FOLDER in storage.list_dir(data_dir):
        for number in sorted(marks, reverse=True):
            save_mark(storage, data_dir, number, marks[number])
        return
    draft = data_dir / _DRAFT
    if _DRAFT in storage.list_dir(data_dir):
        remove_folder(storage, draft)
    storage.make_dir(draft)
    for number, mark in marks.items():
        save_document(storage, draft / mark_path(data_dir, number).name, mark.to_body())
    storage.sync_dir(draft)
    storage.rename(draft, data_dir / FOLDER)
    storage.sync_dir(data_dir)


def _state_after(entry: Entry, catalog: Mapping[str, Any]) -> ShardState:
    """Return what is known of a shard once its Genesis is applied."""
    genesis = genesis_of(entry)
    return ShardState(
        position=entry.position + 1,
        epoch=entry.epoch,
        digest=next_digest(0, entry.record),
        time_ns=entry.time_ns,
        settings=Settings.of(genesis),
        apply_version=genesis.apply_version,
        catalog=Catalog() if entry.shard else Catalog.from_body(catalog),
    )


def _remove_leftovers(storage: StorageBackend, data_dir: Path) -> None:
    """Remove what a single server keeps and a node does not.

    Raises:
        OSError: the disk refused; the call may be repeated.
    """
    folder = data_dir / "segments"
    _remove(storage, data_dir, (CLEAN_MARKER, CLOCK_FILE, DiskReserve.FILE_NAME))
    _remove(storage, folder, (CATALOG_FILE,))
    for name in filter(str.isdecimal, storage.list_dir(folder)):
        _remove(storage, folder / name, _LEFT)


def _remove(storage: StorageBackend, folder: Path, names: Sequence[str]) -> None:
    doomed = {each for name in names for each in (name, backup_of(folder / name).name)}
    for name in sorted(doomed.intersection(storage.list_dir(folder))):
        storage.remove(folder / name)
    storage.sync_dir(folder)


class Founding:
    """Turns a directory, which the caller holds, into that of a cluster's first node.

    Args:
        data_dir: the directory.
        shards: how many the cluster has.

    Raises:
        DataDirError: it is damaged, or a newer release wrote it.
        OSError: the disk refused.
    """

    def __init__(self, data_dir: Path, shards: int) -> None:
        self._storage = PwritevStorage()
        self._data_dir = data_dir
        self._mark: Mark | None = None
        self._shards = shards
        self._state: FirstState | None = None
        if FOLDER in self._storage.list_dir(data_dir):
            self._mark, *_ = _marks(self._storage, data_dir, shards)
        else:
            self._state = _read_first_state(self._storage, data_dir, shards)

    def __repr__(self) -> str:
        return f"<Founding with {self._data_dir}>"

    def settings(self, chosen: Settings) -> Settings:
        """Return the settings of the cluster, whose name has the digest of what it begins with.

        The others are those of the cluster before, where the directory is a node's.
        """
        state = self._state
        if state is None:
            return chosen
        name = f"{chosen.cluster_id}{DIGEST_MARK}{state.digest}"
        before = state.settings or chosen
        return replace(before, cluster_id=name, created_ns=chosen.created_ns)

    def check_log(self, identity: str) -> None:
        """Find out whether the directory is a node's of this log; read that of another log's node.

        Raises:
            DataDirError: the cluster of this log did not begin with it; or it is damaged.
            OSError: the disk refused.
        """
        if self._mark is None:
            return
        if self._mark.identity != identity:
            self._state = _read_node(self._storage, self._data_dir, self._shards)
            return
        settings = self._mark.state.settings
        if settings is None or not settings.first_state:
            raise DataDirError(
                f"{self._data_dir} is the directory of a node of this cluster, which did not begin "
                "with it: there is nothing to do. For a new cluster name another topic"
            )

    def finish(self, identity: str, begun: Sequence[Entry]) -> Iterator[str]:
        """Make the directory a node's; yield what was done.

        Args:
            identity: of the log.
            begun: the Genesis of each shard, as the log has it.

        Raises:
            DataDirError: the cluster began with something else.
            OSError: the disk refused; the command may be repeated.
        """
        state = self._state
        if state is not None:
            found = Settings.of(genesis_of(begun[0]))
            if found.first_state != state.digest:
                raise DataDirError(
                    f"the cluster {found.cluster_id} exists already and did not begin with what "
                    f"{self._data_dir} holds now; name another topic"
                )
            _adopt(self._storage, self._data_dir, state, identity, begun)
            yield from state.notes
        _remove_leftovers(self._storage, self._data_dir)
        yield (
            f"{self._data_dir} is the first node's directory: start it there with --offer-copies, "
            "then clone it for each further node (lance-server clone DIR --from HOST:PORT)"
        )


@contextmanager
def founding_of(data_dir: Path, shards: int) -> Iterator[Founding]:
    """Hold the directory of a stopped server that a cluster is to begin with.

    Raises:
        DataDirBusyError: a server is using it.
        DataDirError: it is damaged, is not a data directory, or a newer release wrote it.
    """
    with DataDirLock(existing(data_dir)):
        try:
            yield Founding(data_dir, shards)
        except OSError as error:
            raise DataDirError(f"{data_dir}: {error}") from error
