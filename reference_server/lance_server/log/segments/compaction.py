"""Compaction: many small segments become one (design section 25, AMB-40).

The merged segment is written beside its sources, made durable and read back. Then the topic's
file records the change, the merged files get their names, readers are led to them, and the
sources go. A stop at any moment leaves either the sources or a merged segment that is complete;
the next start goes on from what the topic's file says.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lance_server.log.metadata.topic_file import Merge, TopicFile
from lance_server.log.segments.indexes import index_names
from lance_server.log.segments.segment_files import SIDECAR_SUFFIX, Segment, SegmentName
from lance_server.log.segments.sidecar import HEADER_SIZE, encode_header
from lance_server.log.segments.sidecar_scan import read_entries, scan_segment, uncovered
from lance_server.storage.contract import StorageBackend, read_at
from lance_spec.messages.engine import SidecarEntry

DRAFT_SUFFIX: Final = ".tmp"
"""What the name of a merged file ends with until it is placed."""
_CHUNK: Final = 1024 * 1024


class _UnreadableError(Exception):
    """A source has a bad sector: as with damage, another attempt finds the same."""


@contextmanager
def _reading_source() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        raise _UnreadableError from error


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """Which segments are merged.

    Attributes:
        min_segments: how many small segments in a row it takes.
        max_segments: most segments merged at once.
        small: a segment of fewer bytes is small.
    """

    min_segments: int = 4
    max_segments: int = 16
    small: int = 1024 * 1024


def candidates(
    segments: Sequence[Segment], policy: CompactionPolicy, max_size: int
) -> Sequence[Segment]:
    """Return closed small segments that follow each other without a gap; empty when too few.

    Args:
        segments: by rising base.
        policy: which segments are merged.
        max_size: most bytes in a merged segment.
    """
    run: list[Segment] = []
    for segment in segments:
        if run and not _goes_on(run, segment, policy, max_size):
            if len(run) >= policy.min_segments:
                return run
            run = []
        if segment.live is None and segment.size < policy.small and not segment.unmergeable:
            run.append(segment)
    return run if len(run) >= policy.min_segments else []


def _goes_on(
    run: Sequence[Segment], segment: Segment, policy: CompactionPolicy, max_size: int
) -> bool:
    return (
        segment.live is None
        and segment.size < policy.small
        and not segment.unmergeable
        and run[-1].end_offset == segment.base_offset
        and len(run) < policy.max_segments
        and segment.end_offset - run[0].base_offset <= max_size
    )


def merge(storage: StorageBackend, file: TopicFile, sources: Sequence[Segment]) -> Segment | None:
    """Write, verify and record a merged segment; `place` and `sweep` must follow (worker thread).

    Returns:
        The merged segment, or None when something in the sources is not as it should be: they
        stay as they are.

    Raises:
        OSError: the disk refused; the sources stand.
    """
    assert file.merging is None, "a merge is finished before the next one begins"
    file.settle()  # or else a change that failed halfway may stand for the drafts that go here
    first, last = sources[0], sources[-1]
    name = first.name._replace(end_ns=last.name.end_ns)
    merged = Segment(
        file.folder,
        name,
        first.base_offset,
        first.base_record,
        size=last.end_offset - first.base_offset,
        records=sum(segment.records for segment in sources),
        last_ns=last.last_ns,
    )
    drafts = merged.data_path.name + DRAFT_SUFFIX, merged.sidecar_path.name + DRAFT_SUFFIX
    listed = storage.list_dir(file.folder)
    for draft in (each for each in drafts if each in listed):
        storage.remove(file.folder / draft)
    try:
        is_whole = _write_drafts(storage, file, merged, sources)
    except _UnreadableError:
        is_whole = False
    if not is_whole:
        for draft in drafts:
            storage.remove(file.folder / draft)
        return None
    storage.sync_dir(file.folder)  # the drafts must be there wherever the record of them is
    file.merge(Merge(name.data, tuple(segment.name.data for segment in sources)))
    return merged


def _write_drafts(
    storage: StorageBackend, file: TopicFile, merged: Segment, sources: Sequence[Segment]
) -> bool:
    """Write both files, durably; return whether every batch of the sources is in them."""
    data = storage.open(_draft(merged.data_path), create=True)
    try:
        sidecar = storage.open(_draft(merged.sidecar_path), create=True)
        try:
            header = encode_header(
                file.identity.id, merged.base_offset, merged.base_record, merged.name.start_ns
            )
            storage.write(sidecar, header, 0)
            place = HEADER_SIZE
            for segment in sources:
                shift = segment.base_offset - merged.base_offset
                found = _copy(storage, segment, data, shift)
                if not _is_explained(file, segment, found):
                    return False
                entries = b"".join(_moved(entry, shift) for entry in found if entry is not None)
                storage.write(sidecar, entries, place)
                place += len(entries)
            storage.sync(data)
            storage.sync(sidecar)
            scan = scan_segment(storage, data, sidecar)
            return scan.end == merged.size and all(scan.slots)
        finally:
            storage.close(sidecar)
    finally:
        storage.close(data)


def _copy(
    storage: StorageBackend, source: Segment, target: int, shift: int
) -> list[SidecarEntry | None]:
    """Copy a segment's data; return its entries, None for one that is void."""
    data = storage.open(source.data_path)
    try:
        for start in range(0, source.size, _CHUNK):
            with _reading_source():
                chunk = read_at(storage, data, min(_CHUNK, source.size - start), start)
            storage.write(target, chunk, shift + start)
    finally:
        storage.close(data)
    sidecar = storage.open(source.sidecar_path)
    try:
        with _reading_source():
            return list(read_entries(storage, sidecar))
    finally:
        storage.close(sidecar)


def _is_explained(
    file: TopicFile, segment: Segment, entries: Sequence[SidecarEntry | None]
) -> bool:
    """Whether each byte of a segment has an entry, or lies in a hole that is known.

    A range without either is damage. In a merged segment it would read as a hole.
    """
    base = segment.base_offset
    if not all(entries):
        return False
    found = uncovered([entry for entry in entries if entry is not None], segment.size)
    return all(file.is_hole(base + start, base + end) for start, end in found)


def _moved(entry: SidecarEntry, shift: int) -> bytes:
    return replace(entry, relative_offset=entry.relative_offset + shift).with_crc().encode()


def place(storage: StorageBackend, file: TopicFile) -> None:
    """Give the files of a recorded merge their names (worker thread, and at a start)."""
    if file.merging is None:
        return
    target = SegmentName.parse(file.merging.target)
    assert target is not None, "the topic's file was checked when it was read"
    names = storage.list_dir(file.folder)
    for final in (target.data, target.sidecar):
        if final + DRAFT_SUFFIX in names:
            storage.rename(file.folder / (final + DRAFT_SUFFIX), file.folder / final)
    storage.sync_dir(file.folder)


def sweep(storage: StorageBackend, file: TopicFile) -> None:
    """Remove the sources of a recorded merge (worker thread, and at a start)."""
    if file.merging is None:
        return
    names = set(storage.list_dir(file.folder))
    for name in sorted(names.intersection(leftovers(file.merging))):
        storage.remove(file.folder / name)
    storage.sync_dir(file.folder)
    file.merged()


def leftovers(merging: Merge) -> Iterator[str]:
    """Yield the names of what only the sources needed."""
    target = SegmentName.parse(merging.target)
    for source in merging.sources:
        name = SegmentName.parse(source)
        if name is None or target is None:
            continue
        yield from index_names(name.key)
        if name.data != target.data:
            yield name.data
        if name.key != target.key:
            yield f"{name.key}{SIDECAR_SUFFIX}"


def _draft(path: Path) -> Path:
    return path.with_name(path.name + DRAFT_SUFFIX)
