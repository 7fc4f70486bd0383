"""Bringing a node's files back to its mark after a stop, clean or not.

What was written after the mark is cut away: the records that say it are in the log, and applying
them again gives the same bytes. Every step may be repeated, so a crash in the middle costs
nothing. What lies below the mark and is not what it should be is damage of the disk: the node
does not start on it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from lance_server.cluster.applying.mark import Mark, TopicMark
from lance_server.cluster.applying.settings import Settings
from lance_server.cluster.applying.shard import Shard
from lance_server.cluster.applying.topic import Extent, ReplicatedTopic
from lance_server.cluster.applying.window import ExactWindow
from lance_server.errors import DataDirError
from lance_server.log.dedup import is_lasting
from lance_server.log.metadata.catalog import DELETED_PREFIX
from lance_server.log.metadata.topic_file import TopicFile, is_hole
from lance_server.log.retention.rules import WINDOW_SUFFIX
from lance_server.log.segments.indexes import INDEX_SUFFIXES, index_names
from lance_server.log.segments.segment_files import (
    DATA_SUFFIX,
    SIDECAR_SUFFIX,
    Segment,
    SegmentName,
    SegmentWriter,
)
from lance_server.log.segments.sidecar import (
    ENTRY_SIZE,
    HEADER_SIZE,
    BatchIndex,
    decode_header,
    meta_of,
)
from lance_server.log.segments.sidecar_scan import last_entry, load_index, read_entries
from lance_server.storage.contract import StorageBackend, read_at, remove_folder
from lance_spec.errors import DecodeError
from lance_spec.messages.engine import SidecarEntry

_DRAFT: Final = ".tmp"
_SUFFIXES: Final = (DATA_SUFFIX, SIDECAR_SUFFIX, *INDEX_SUFFIXES)
_REMEDY: Final = (
    "the disk is damaged; fetch what is damaged from another node: `lance-server clone DIR --from "
    "HOST:PORT`"
)


class DamagedFilesError(DataDirError):
    """Files below the mark are not what they should be."""


class _Order(NamedTuple):
    """Where a segment stands among those of its topic."""

    start_record: int
    start_ns: int

    @classmethod
    def of(cls, key: str) -> "_Order | None":
        parsed = SegmentName.parse(f"{key}{DATA_SUFFIX}")
        return None if parsed is None else cls(parsed.start_record, parsed.start_ns)


def restore(storage: StorageBackend, data_dir: Path, number: int, shards: int, mark: Mark) -> Shard:
    """Bring the files of a shard back to its mark and return it, ready to apply what follows.

    Args:
        storage: the backend.
        data_dir: the node's directory.
        number: of the shard.
        shards: how many there are.
        mark: the shard's; what it says may go is gone.

    Raises:
        DamagedFilesError: files below the mark are not what they should be.
        OSError: the disk refused.
    """
    folder, settings = data_dir / "segments", mark.state.settings
    assert settings is not None, "a mark comes after the Genesis"
    topics = {
        topic_id: _restore_topic(storage, folder / str(topic_id), settings, topic)
        for topic_id, topic in mark.topics.items()
    }
    return Shard(number, shards, storage, folder, state=mark.state, topics=topics)


def remove_unknown_topics(storage: StorageBackend, folder: Path, known: frozenset[int]) -> None:
    """Remove the folders of topics that began after the marks, and what is left of deleted ones.

    Args:
        storage: the backend.
        folder: where the topics' folders lie.
        known: the topics of the marks of all shards.

    Raises:
        OSError: the disk refused.
    """
    for name in storage.list_dir(folder):
        if name.startswith(DELETED_PREFIX) or (name.isdecimal() and int(name) not in known):
            remove_folder(storage, folder / name)
    storage.sync_dir(folder)


def _restore_topic(
    storage: StorageBackend, folder: Path, settings: Settings, mark: TopicMark
) -> ReplicatedTopic:
    topic = _TopicFiles(storage, folder, mark)
    topic.remove_later()
    extents, writer = topic.open_segments()
    file = _restore_file(storage, folder, mark, extents)
    window = _rebuild_window(storage, folder, settings, mark, extents)
    return ReplicatedTopic(
        storage,
        file,
        settings,
        state=mark.state,
        window=window,
        extents=extents,
        writer=writer,
    )


class _TopicFiles:
    """The files of one topic, on the way back to a mark."""

    def __init__(self, storage: StorageBackend, folder: Path, mark: TopicMark) -> None:
        self._storage = storage
        self._folder = folder
        self._mark = mark
        if folder.name not in storage.list_dir(folder.parent):
            raise DamagedFilesError(f"{folder} is missing; {_REMEDY}")
        self._last = _Order.of(mark.state.last_key) or _Order(0, -1)
        self._active_key = None if mark.active is None else mark.state.last_key

    def remove_later(self) -> None:
        """Remove drafts, segments that were begun after the mark, and stale indexes."""
        names = self._storage.list_dir(self._folder)
        stale = index_names(self._active_key) if self._active_key is not None else []
        for name in names:
            if name.endswith(_DRAFT) or name in stale or self._is_later(name):
                self._storage.remove(self._folder / name)
        self._storage.sync_dir(self._folder)

    def _is_later(self, name: str) -> bool:
        for suffix in _SUFFIXES:
            if name.endswith(suffix):
                key = name.removesuffix(suffix).partition("-")[0]
                order = _Order.of(key)
                return order is not None and order > self._last
        return False

    def open_segments(self) -> tuple[list[Extent], SegmentWriter | None]:
        """Return the segments by rising base, and what writes the one that is open.

        Raises:
            DamagedFilesError: one is missing, too short, or not what its sidecar says.
        """
        names = [SegmentName.parse(each) for each in self._storage.list_dir(self._folder)]
        found = sorted((each for each in names if each is not None), key=lambda each: each[:2])
        extents: list[Extent] = []
        writer: SegmentWriter | None = None
        place = self._mark.log_start.offset
        for name in found:
            if name.key == self._active_key:
                extent, writer = self._cut_active(name)
            else:
                extent = self._open_closed(name)
            if self._after_hole(place, extent.segment.base_offset) != extent.segment.base_offset:
                raise self._damaged(extent.segment.data_path, f"does not begin at {place}")
            place = extent.end
            extents.append(extent)
        self._check_end(extents, self._after_hole(place, self._mark.state.end), writer)
        return extents, writer

    def _after_hole(self, start: int, end: int) -> int:
        """Return where a retired range of offsets ends, or its start where there is no such."""
        return end if start < end and is_hole(self._mark.holes, start, end) else start

    def _check_end(self, extents: Sequence[Extent], end: int, writer: SegmentWriter | None) -> None:
        """Compare with the mark what the files hold, all together."""
        state = self._mark.state
        last = extents[-1].segment if extents else None
        record = self._mark.log_start.record if last is None else last.base_record + last.records
        wanted_active = self._mark.active is not None
        if (end, record, writer is not None) != (state.end, state.end_record, wanted_active):
            raise self._damaged(
                self._folder, f"ends at byte {end}, record {record}; the mark says {state.end}, "
                f"{state.end_record}"
            )  # fmt: skip

    def _damaged(self, path: Path, what: str) -> DamagedFilesError:
        return DamagedFilesError(f"{path} {what}; {_REMEDY}")

    def _open_closed(self, name: SegmentName) -> Extent:
        if name.end_ns is None:
            raise self._damaged(self._folder / name.data, "should be closed")
        segment = self._segment(name)
        data, sidecar = self._open(segment)
        try:
            size, entry = self._storage.size(data), last_entry(self._storage, sidecar)
            told = 0 if entry is None else entry.relative_offset + entry.stored_length
            if entry is None or told != size:
                raise self._damaged(segment.data_path, f"has {size} bytes, its sidecar {told}")
            segment.size, segment.last_ns = size, entry.server_time_ns
            segment.records = self._count_records(sidecar, segment)
        finally:
            self._storage.close(data)
            self._storage.close(sidecar)
        return Extent(segment, segment.end_offset, segment.last_ns)

    def _count_records(self, sidecar: int, segment: Segment) -> int:
        total = 0
        for entry in read_entries(self._storage, sidecar):
            if entry is None:
                raise self._damaged(segment.sidecar_path, "has a damaged entry")
            total += entry.record_count
        return total

    def _segment(self, name: SegmentName) -> Segment:
        path = self._folder / name.sidecar
        try:
            sidecar = self._storage.open(path)
        except FileNotFoundError as error:
            raise self._damaged(path, "is missing") from error
        try:
            header = decode_header(read_at(self._storage, sidecar, HEADER_SIZE, 0))
        except DecodeError as error:
            raise self._damaged(path, f"is damaged ({error})") from error
        finally:
            self._storage.close(sidecar)
        return Segment(self._folder, name, header.base_offset, header.base_record)

    def _open(self, segment: Segment) -> tuple[int, int]:
        data = self._storage.open(segment.data_path)
        try:
            return data, self._storage.open(segment.sidecar_path)
        except OSError:
            self._storage.close(data)
            raise

    def _cut_active(self, name: SegmentName) -> tuple[Extent, SegmentWriter]:
        """Cut the segment that was open at the mark, and give it its open name."""
        assert self._mark.active is not None, "it is the open one"
        size, batches = self._mark.active
        segment = self._segment(name)
        data, sidecar = self._open(segment)
        try:
            entries = HEADER_SIZE + batches * ENTRY_SIZE
            if self._storage.size(data) < size or self._storage.size(sidecar) < entries:
                raise self._damaged(segment.data_path, f"is shorter than the {size} bytes marked")
            self._storage.truncate(data, size)
            self._storage.truncate(sidecar, entries)
            self._storage.sync(data)
            self._storage.sync(sidecar)
            segment.size = size
            segment.live = self._live_index(segment, data, sidecar)
        finally:
            self._storage.close(data)
            self._storage.close(sidecar)
        self._give_open_name(segment)
        segment.last_ns = self._mark.state.last_ns
        return Extent(segment, segment.end_offset, segment.last_ns), SegmentWriter.resume(
            self._storage, segment, batches
        )

    def _live_index(self, segment: Segment, data: int, sidecar: int) -> BatchIndex:
        segment.records = self._count_records(sidecar, segment)
        index = load_index(self._storage, segment, data, sidecar)
        if (index.ends[-1] if index.ends else 0) != segment.size or index.holes:
            raise self._damaged(segment.sidecar_path, "does not fit its data")
        return index

    def _give_open_name(self, segment: Segment) -> None:
        open_name = segment.name._replace(end_ns=None)
        if segment.name != open_name:
            self._storage.rename(segment.data_path, self._folder / open_name.data)
            self._storage.sync_dir(self._folder)
            segment.name = open_name


def _restore_file(
    storage: StorageBackend, folder: Path, mark: TopicMark, extents: Sequence[Extent]
) -> TopicFile:
    """Write the topic's file as it was at the mark."""
    file = TopicFile(storage, folder, mark.identity, mark.retention)
    file.log_start = mark.log_start
    file.next_offset = mark.log_start.offset
    file.holes = mark.holes
    file.bases = {each.segment.name.key: each.segment.base_offset for each in extents}
    file.save()
    return file


def _rebuild_window(
    storage: StorageBackend,
    folder: Path,
    settings: Settings,
    mark: TopicMark,
    extents: Sequence[Extent],
) -> ExactWindow:
    """Fill the duplicate window from the newest entries of the sidecars."""
    sidecars = [folder / f"{each.key}{WINDOW_SUFFIX}" for each in mark.state.windows]
    sidecars += [each.segment.sidecar_path for each in extents]
    parts: list[list[SidecarEntry]] = []
    missing = settings.window_entries
    for path in reversed(sidecars):
        if missing <= 0:
            break
        parts.append(_lasting(storage, path))
        missing -= len(parts[-1])
    window = ExactWindow(settings.window)
    for part in reversed(parts):
        for entry in part:
            window.add(entry.batch_id, meta_of(entry).digest, entry.server_time_ns)
    return window


def _lasting(storage: StorageBackend, path: Path) -> list[SidecarEntry]:
    """Return the entries of lasting batches of a sidecar.

    Raises:
        DamagedFilesError: it is missing or damaged.
    """
    try:
        sidecar = storage.open(path)
    except FileNotFoundError as error:
        raise DamagedFilesError(f"{path} is missing; {_REMEDY}") from error
    try:
        entries = list(read_entries(storage, sidecar))
    finally:
        storage.close(sidecar)
    valid = [entry for entry in entries if entry is not None]
    if len(valid) < len(entries):
        raise DamagedFilesError(f"{path} has a damaged entry; {_REMEDY}")
    return [entry for entry in valid if is_lasting(meta_of(entry))]
