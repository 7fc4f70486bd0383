"""Planted faults of the store, of one wrong step each."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.simulation.faults import class_of
from tests.simulation.mount import Mount
from tests.simulation.mutants import Mutant, Patch, always, nothing

from lance_server.log import dedup, flusher, log_manager, maintenance, partition
from lance_server.log.metadata import catalog, checksummed_file, consumer_offsets, topic_file
from lance_server.log.reading import segment_cache
from lance_server.log.recovery import startup, topic_recovery
from lance_server.log.retention import enforcement, rules
from lance_server.log.segments import (
    active_segment,
    compaction,
    indexes,
    segment_files,
    sidecar_scan,
    sidecar_search,
)
from lance_server.runtime.completion import Completion
from lance_server.runtime.disk_monitor import WatchedStorage
from lance_server.storage import contract


def _skipping(matters: Callable[[Path], bool]) -> Callable[[Any], Callable[..., Any]]:
    """Return a maker of storage methods that do nothing for some paths."""

    def make(right: Any) -> Callable[..., Any]:
        def method(self: Mount, where: Any) -> Any:
            path = where if isinstance(where, Path) else self.files[where][0]
            return None if matters(path) else right(self, where)

        return method

    return make


def _all_entries_valid(_: Any) -> Callable[..., bool]:
    return lambda _file, _segment, found: all(found)


def _unsynced(kind: str, **how: Any) -> Mutant:
    """Return the store that never syncs a class of files."""
    patch = Patch(Mount, "sync", _skipping(lambda path: class_of(path) == kind))
    return Mutant(f"a {kind} file is never synced", (patch,), **how)


def _unsynced_folder(name: str, depth: int, **how: Any) -> Mutant:
    """Return the store that never syncs the folders of a depth below the root."""
    patch = Patch(Mount, "sync_dir", _skipping(lambda path: len(path.parts) == depth))
    return Mutant(f"the names in {name} are never synced", (patch,), **how)


def _commit_in_cache(_: Any) -> Callable[..., Any]:
    def commit(self: WatchedStorage, writes: Sequence[Any]) -> list[None]:
        for each in writes:
            self.inner.write(*each)
        return [None] * len(writes)

    return commit


def _commit_without_errors(right: Any) -> Callable[..., Any]:
    def commit(self: WatchedStorage, writes: Sequence[Any]) -> list[None]:
        right(self, writes)
        return [None] * len(writes)

    return commit


def _commit_all_but_last(right: Any) -> Callable[..., Any]:
    return lambda self, writes: [*right(self, writes[:-1]), None]


def _in_memory_only(right: Any) -> Callable[..., Any]:
    """Return a method of a topic's file, or the catalog, that changes memory and does not save."""

    def method(self: Any, *arguments: Any) -> Any:
        save = type(self)._save
        type(self)._save = lambda _: None
        try:
            return right(self, *arguments)
        finally:
            type(self)._save = save

    return method


def _replace_in_place(_: Any) -> Callable[..., Any]:
    def replace_file(storage: Any, path: Path, data: bytes) -> None:
        try:
            fd = storage.open(path)
        except FileNotFoundError:
            fd = storage.open(path, create=True)
        try:
            storage.truncate(fd, 0)
            storage.write(fd, data, 0)
            storage.sync(fd)
        finally:
            storage.close(fd)
        storage.sync_dir(path.parent)

    return replace_file


def _one_copy(_: Any) -> Callable[..., Any]:
    def save_document(storage: Any, path: Path, body: Any) -> None:
        contract.replace_file(storage, path, checksummed_file._encode(body))

    return save_document


def _acked_at_once(right: Any) -> Callable[..., Any]:
    def commit(*arguments: Any, **named: Any) -> Completion[None]:
        right(*arguments, **named)
        outcome: Completion[None] = Completion()
        outcome.settle(None)
        return outcome

    return commit


def _one_more(right: Any) -> Callable[..., Any]:
    return lambda segments, *rest, **named: min(len(segments), right(segments, *rest, **named) + 1)


def _only_first_job(right: Any) -> Callable[..., Any]:
    return lambda self, jobs, problem: right(self, jobs[:1], problem)


def _no_locks(_: Any) -> Callable[..., Any]:
    return _FreeForAll


class _FreeForAll:
    """A lock that keeps nobody out."""

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


def _release_half(_: Any) -> Callable[..., Any]:
    return lambda self: self._storage.close(self._data)


def _later(right: Any) -> Callable[..., Any]:
    return lambda self, time_ns: right(self, time_ns + 1)


def _unmoved(right: Any) -> Callable[..., Any]:
    return lambda entry, _: right(entry, 0)


def _clean_ends_wrong(right: Any) -> Callable[..., Any]:
    return lambda storage, data_dir, ends, *rest: right(
        storage, data_dir, {key: end + 100 for key, end in ends.items()}, *rest
    )


def _only_on_this_page(right: Any) -> Callable[..., Any]:
    """Return a search for duplicates that does not look at what is on its way."""

    def find_duplicate(self: Any, batch_id: int, digest: bytes) -> Any:
        batches = self._open_batch, self._flushing
        self._open_batch = self._flushing = None
        try:
            return right(self, batch_id, digest)
        finally:
            self._open_batch, self._flushing = batches

    return find_duplicate


def _error_forgotten(right: Any) -> Callable[..., Any]:
    return lambda self, group, _: right(self, group, None)


def _empty_window(_: Any) -> Callable[..., Any]:
    return lambda self, *_args: dedup.DuplicateWindow(self._limits)


def _marker_stays(right: Any) -> Callable[..., Any]:
    def take(self: Any) -> Any:
        storage = self._storage
        remove = type(storage).remove
        type(storage).remove = lambda *_: None
        try:
            return right(self)
        finally:
            type(storage).remove = remove

    return take


def _wrong_bytes(right: Any) -> Callable[..., Any]:
    """Return a copy that takes the first bytes of each source twice."""

    def copy(storage: Any, source: Any, target: int, shift: int) -> Any:
        entries = right(storage, source, target, shift)
        storage.write(target, b"\0\0\0\0", shift)
        return entries

    return copy


def _all_well(_: Any) -> Callable[..., Any]:
    """Return a scan that finds everything as it should be, whatever is there."""

    class Believed:
        def __init__(self, size: int) -> None:
            self.end = size
            self.slots = b"\1"

    return lambda storage, data, _sidecar: Believed(storage.size(data))


def _without_windows(right: Any) -> Callable[..., Any]:
    def remove(storage: Any, file: Any) -> None:
        right(storage, file)
        for path in rules.window_files(storage, file.folder):
            storage.remove(path)

    return remove


def _scan_believes(_: Any) -> Callable[..., Any]:
    return lambda _storage, _data, entry, position: entry.relative_offset >= position


def _short_batches(right: Any) -> Callable[..., Any]:
    def writes(self: Any, data: Any, batches: Any, topic_end: int) -> Any:
        first, second = right(self, data, batches, topic_end)
        return [first._replace(data=first.data[:-1] + b"\0"), second]

    return writes


def _settle_before(right: Any) -> Callable[..., Any]:
    """Return a begin of a flush that tells clients that it has ended well."""

    def begin_flush(self: Any) -> Any:
        group = right(self)
        waiters, group.outcome._waiters = group.outcome._waiters, {}
        group.outcome.done = True
        for waiter in waiters:
            waiter()
        group.outcome.done = False
        return group

    return begin_flush


def _never_busy(right: Any) -> Callable[..., Any]:
    def visit(self: Any, topic: Any) -> None:
        self._busy.clear()
        right(self, topic)

    return visit


STEPS: Final = (
    Mutant("commits end in the page cache", (Patch(WatchedStorage, "commit", _commit_in_cache),)),
    Mutant("errors of commits are ignored",
           (Patch(WatchedStorage, "commit", _commit_without_errors),)),
    Mutant("the last file of a commit is left out",
           (Patch(WatchedStorage, "commit", _commit_all_but_last),)),
    _unsynced("draft"),
    _unsynced("sidecar"),
    _unsynced("wal", modes=("wal",)),
    _unsynced_folder("a topic's folder", 4),
    _unsynced_folder("the folder of all topics", 3),
    _unsynced_folder("the data directory", 2),
    Mutant("documents are written in place",
           (Patch(checksummed_file, "replace_file", _replace_in_place),)),
    Mutant("documents are kept once", (
        Patch(checksummed_file, "save_document", _one_copy),
        Patch(topic_file, "save_document", _one_copy),
        Patch(catalog, "save_document", _one_copy),
    ), ("rot",)),
    Mutant("duplicates are never found",
           (Patch(partition.Partition, "find_duplicate", always(None)),)),
    Mutant("duplicates are not found after a start",
           (Patch(startup.LogOpener, "_window", _empty_window),)),
    Mutant("duplicates of what is on its way are not found",
           (Patch(partition.Partition, "find_duplicate", _only_on_this_page),)),
    Mutant("recovery believes entries without a look at the data",
           (Patch(sidecar_scan, "_matches", _scan_believes),)),
    Mutant("recovery cuts nothing", (Patch(topic_recovery.TopicRecovery, "_cut", nothing),)),
    Mutant("recovery keeps entries of holes",
           (Patch(topic_recovery.TopicRecovery, "_drop_entries", nothing),)),
    Mutant("offsets are not reserved ahead of use",
           (Patch(topic_file.TopicFile, "reserve", nothing),), (), ("os",)),
    Mutant("a failed write is not cut back",
           (Patch(segment_files.SegmentWriter, "cut_back", nothing),)),
    Mutant("a failed write is acknowledged",
           (Patch(partition.Partition, "conclude", _error_forgotten),)),
    Mutant("retention drops a segment too many", (Patch(enforcement, "expired", _one_more),)),
    Mutant("the change of a floor is not saved",
           (Patch(topic_file.TopicFile, "retire", _in_memory_only),), ("retire",)),
    Mutant("a change of retention is not saved",
           (Patch(topic_file.TopicFile, "set_retention", _in_memory_only),)),
    Mutant("merged entries are neither moved nor read back",
           (Patch(compaction, "_moved", _unmoved), Patch(compaction, "scan_segment", _all_well))),
    Mutant("a merge is not recorded", (Patch(topic_file.TopicFile, "merge", _in_memory_only),),
           ("merge",)),
    Mutant("merged files keep the names of drafts",
           (Patch(maintenance, "place", nothing), Patch(topic_recovery, "place", nothing))),
    Mutant("merging changes bytes, and nothing is read back",
           (Patch(compaction, "_copy", _wrong_bytes),
            Patch(compaction, "scan_segment", _all_well))),
    Mutant("sources of a merge stay and are forgotten", (Patch(maintenance, "sweep", nothing),)),
    Mutant("ids of topics are not saved", (Patch(catalog.TopicIdAllocator, "_save", nothing),)),
    Mutant("a new topic's file is not saved", (Patch(topic_file.TopicFile, "save", nothing),)),
    Mutant("commits of offsets are acknowledged at once",
           (Patch(consumer_offsets.ConsumerOffsets, "commit", _acked_at_once),)),
    Mutant("the mark of a clean stop stays",
           (Patch(startup.LogOpener, "_take_clean_marker", _marker_stays),)),
    Mutant("the mark of a clean stop lies",
           (Patch(log_manager, "save_clean_marker", _clean_ends_wrong),)),
    Mutant("acknowledged before the flush",
           (Patch(partition.Partition, "begin_flush", _settle_before),)),
    Mutant("a time seek goes too far",
           (Patch(sidecar_search.SidecarSearch, "first_since", _later),)),
    Mutant("a sidecar stays open", (Patch(segment_files.SegmentWriter, "release", _release_half),)),
    Mutant("files that were read stay open",
           (Patch(segment_cache.SegmentCache, "_evict", nothing),)),
    Mutant("only the first topic of a flush is answered",
           (Patch(flusher.Flusher, "_finish", _only_first_job),)),
    Mutant("a topic's file has no lock", (Patch(topic_file, "new_lock", _no_locks),)),
    Mutant("two visits of one topic at once",
           (Patch(maintenance.Maintenance, "visit", _never_busy),), ("merge", "retire")),
    Mutant("the last byte of a flush is lost",
           (Patch(segment_files.SegmentWriter, "writes", _short_batches),)),
    Mutant("sidecars of dropped segments go with them",
           (Patch(enforcement, "remove_retired", _without_windows),), ("retire",)),
    Mutant("a closed segment keeps the name of an open one",
           (Patch(active_segment.ActiveSegment, "_close", nothing),)),
    Mutant("holes that a crash tore are not recorded",
           (Patch(topic_file.TopicFile, "retire_holes", nothing),), (), ("os",)),
    Mutant("a merge takes damage for a hole",
           (Patch(compaction, "_is_explained", _all_entries_valid),), ("rot",)),
    Mutant("indexes are wrong", (Patch(indexes, "encode_secondary", always(b"wrong")),)),
)  # fmt: skip
