"""Finding a topic's segments on disk, and where in the topic each one begins."""

import errno
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Final

from lance_server.log.metadata.topic_file import TopicFile
from lance_server.log.recovery.recovery_report import Finding, Quarantine, RecoveryReport
from lance_server.log.segments.segment_files import (
    DATA_SUFFIX,
    SIDECAR_SUFFIX,
    Segment,
    SegmentName,
)
from lance_server.log.segments.sidecar import HEADER_SIZE, decode_header, encode_header
from lance_server.log.segments.sidecar_scan import count_entries, is_without_batches, last_entry
from lance_server.storage.contract import StorageBackend, read_at, replace_file
from lance_spec.errors import DecodeError
from lance_spec.messages.engine import SidecarHeader

_DRAFT: Final = ".tmp"


class SegmentDiscovery:
    """Pairs data files with sidecars and resolves what is missing or damaged about them."""

    def __init__(
        self,
        storage: StorageBackend,
        file: TopicFile,
        report: RecoveryReport,
        quarantine: Quarantine,
    ) -> None:
        self._storage = storage
        self._file = file
        self._folder = file.folder
        self._report = report
        self._quarantine = quarantine

    def collect(self, clean_end: int | None) -> list[Segment]:
        """Return the topic's segments by rising base; each has both of its files.

        Args:
            clean_end: the end of the last segment where a clean stop recorded it.
        """
        listed = self._remove_drafts()
        names = self._names(listed)
        sidecars = {name for name in listed if name.endswith(SIDECAR_SUFFIX)}
        segments = [
            segment
            for name in sorted(names.values())
            if (segment := self._open(name, name.sidecar in sidecars)) is not None
        ]
        orphans = sorted(sidecars - {name.sidecar for name in names.values()})
        segments += [found for name in orphans if (found := self._without_data(name)) is not None]
        segments.sort(key=lambda segment: (segment.base_offset, segment.name))
        return self._with_lost(segments, max(self._file.next_offset, clean_end or 0))

    def look(self) -> list[Segment]:
        """Return the topic's segments by rising base, without writing anything.

        Raises:
            OSError: the disk refused, or the place of a segment is not certain.
        """
        names = self._names(self._storage.list_dir(self._folder))
        going = set(self._file.retiring)
        found = [
            self._certain(name)
            for key, name in names.items()
            if key not in going and not self._was_never_made(name)
        ]
        found.sort(key=lambda segment: (segment.base_offset, segment.name))
        end = found[-1].base_offset if found else 0
        lost = [key for key, base in self._file.bases.items() if base < end and key not in names]
        if lost:
            raise OSError(errno.EIO, f"segment {lost[0]} of {self._folder} is missing")
        return found

    def _was_never_made(self, name: SegmentName) -> bool:
        """Whether these are files that the disk refused to make, and then to remove."""
        return name.key not in self._file.bases and is_without_batches(
            self._storage, self._folder / name.data, self._folder / name.sidecar
        )

    def _certain(self, name: SegmentName) -> Segment:
        try:
            header = self._header(name)
        except DecodeError as error:
            raise OSError(errno.EIO, f"{self._folder / name.sidecar}: {error}") from error
        base = self._file.bases.get(name.key, header.base_offset)
        if base != header.base_offset or self._other_owner(name, header):
            raise OSError(errno.EIO, f"{self._folder / name.sidecar} is another segment's")
        return Segment(self._folder, name, base, name.start_record)

    def _remove_drafts(self) -> list[str]:
        """Remove what an interrupted replacement left; return the other names."""
        listed = self._storage.list_dir(self._folder)
        for draft in (name for name in listed if name.endswith(_DRAFT)):
            self._storage.remove(self._folder / draft)
        return [name for name in listed if not name.endswith(_DRAFT)]

    def _names(self, listed: list[str]) -> dict[str, SegmentName]:
        """Return the segments' names by key; a closed name outranks an open one."""
        names: dict[str, SegmentName] = {}
        for text in listed:
            name = SegmentName.parse(text)
            if name is not None and (name.key not in names or name.end_ns is not None):
                names[name.key] = name
            elif name is None and text.endswith(DATA_SUFFIX):
                self._note("ignored file", self._folder / text, 0, "its name is not a segment's")
        return names

    def _open(self, name: SegmentName, has_sidecar: bool) -> Segment | None:
        """Return the segment that a data file belongs to."""
        if not has_sidecar:
            if self._is_empty(self._folder / name.data):
                self._discard(name, has_sidecar=False)
                return None
            if name.key in self._file.bases:
                self._note("lost sidecar", self._folder / name.sidecar, 0, "begun again, empty")
                self._create(self._folder / name.sidecar, b"")
        elif self._has_nothing(name):
            self._discard(name, has_sidecar=True)
            return None
        return self._place(name)

    def _place(self, name: SegmentName) -> Segment | None:
        """Learn where the segment begins: from its sidecar, or else from the topic's file."""
        base = self._file.bases.get(name.key)
        try:
            header = self._header(name)
        except (DecodeError, FileNotFoundError) as error:
            if base is None:
                self._set_aside(name, str(error))
                return None
            self._rewrite_header(name, base, str(error))
            return Segment(self._folder, name, base, name.start_record)
        if owner := self._other_owner(name, header):
            return self._without_sidecar(name, base, owner)
        if base is not None and base != header.base_offset:
            why = f"it says that the segment begins at offset {header.base_offset}"
            self._rewrite_header(name, base, why)
            return Segment(self._folder, name, base, name.start_record)
        return Segment(self._folder, name, header.base_offset, name.start_record)

    def _header(self, name: SegmentName) -> SidecarHeader:
        return decode_header(self._read(self._folder / name.sidecar, HEADER_SIZE))

    def _other_owner(self, name: SegmentName, header: SidecarHeader) -> str | None:
        """Return which segment a sidecar was written for, if not for the one it is named after."""
        own = self._file.identity.id, name.start_record, name.start_ns
        if (header.topic_id, header.base_record, header.created_ns) == own:
            return None
        key = f"{header.base_record}_{header.created_ns}"
        return f"it was written for segment {key} of topic {header.topic_id}"

    def _without_sidecar(self, name: SegmentName, base: int | None, why: str) -> Segment | None:
        """Return a segment whose sidecar is another one's: nothing in it vouches for the data.

        Also where the data matches it, both were copied here: these offsets mean other bytes.
        """
        if base is None:
            self._set_aside(name, why)
            return None
        path = self._folder / name.sidecar
        size = self._size(path)
        copy = self._quarantine.keep(self._file.identity.id, path, 0, size)
        header = encode_header(self._file.identity.id, base, name.start_record, name.start_ns)
        replace_file(self._storage, path, header)
        self._note("damage", path, size, f"{why}; begun again, empty; a copy is {copy}")
        return Segment(self._folder, name, base, name.start_record)

    def _rewrite_header(self, name: SegmentName, base: int, why: str) -> None:
        path = self._folder / name.sidecar
        header = encode_header(self._file.identity.id, base, name.start_record, name.start_ns)
        fd = self._storage.open(path)
        try:
            self._storage.write(fd, header, 0)
            self._storage.sync(fd)
        finally:
            self._storage.close(fd)
        self._note("repaired", path, HEADER_SIZE, f"header written again ({why})")

    def _set_aside(self, name: SegmentName, why: str) -> None:
        """Move a segment that cannot be placed in the topic to the quarantine."""
        for path in (self._folder / name.data, self._folder / name.sidecar):
            if path.name in self._storage.list_dir(self._folder):
                size = self._size(path)
                copy = self._quarantine.keep(self._file.identity.id, path, 0, size)
                self._storage.remove(path)
                self._note("damage", path, size, f"its place is unknown ({why}); moved to {copy}")
        self._storage.sync_dir(self._folder)

    def _without_data(self, sidecar: str) -> Segment | None:
        """Return the segment of a sidecar whose data file is gone."""
        name = SegmentName.parse(sidecar.removesuffix(SIDECAR_SUFFIX) + DATA_SUFFIX)
        if name is None or self._has_entries(self._folder / sidecar) is False:
            self._storage.remove(self._folder / sidecar)
            return None
        closed = name._replace(end_ns=name.start_ns)
        self._create(self._folder / closed.data, b"")
        self._note("lost segment", self._folder / closed.data, 0, "begun again, empty")
        return self._place(closed)

    def _with_lost(self, segments: list[Segment], end: int) -> list[Segment]:
        """Put a file without content where one is known to have been and is gone."""
        taken = {segment.base_offset for segment in segments}
        keys = {segment.name.key for segment in segments}
        bounds = sorted({*taken, end})
        self._forget_stale_bases(segments)
        for key, base in self._file.bases.items():
            name = SegmentName.parse(key + DATA_SUFFIX)
            if base in taken or key in keys or name is None:
                continue
            following = bisect_right(bounds, base)
            if following < len(bounds):
                stub = name._replace(end_ns=name.start_ns)
                segments.append(self._stub(stub, base, bounds[following]))
        segments.sort(key=lambda segment: (segment.base_offset, segment.name))
        return segments

    def _forget_stale_bases(self, segments: list[Segment]) -> None:
        """Forget, durably, bases that lie within a segment that is there.

        Release 0.1.0 kept the base of a segment that it could not create; a later merge took the
        batches from there on into one segment.
        """
        begins = [segment.base_offset for segment in segments]
        for key, base in list(self._file.bases.items()):
            before = bisect_left(begins, base)
            if before == 0 or (before < len(begins) and begins[before] == base):
                continue
            segment = segments[before - 1]
            if base < segment.base_offset + self._extent(segment.name):
                self._file.forget_base(key)

    def _extent(self, name: SegmentName) -> int:
        """Return how many bytes a segment has by its entries and by the size of its data."""
        fd = self._storage.open(self._folder / name.sidecar)
        try:
            last = last_entry(self._storage, fd)
        finally:
            self._storage.close(fd)
        if last is None:
            return 0
        return min(last.relative_offset + last.stored_length, self._size(self._folder / name.data))

    def _stub(self, name: SegmentName, base: int, limit: int) -> Segment:
        header = encode_header(self._file.identity.id, base, name.start_record, name.start_ns)
        self._create(self._folder / name.sidecar, header)
        self._create(self._folder / name.data, b"", size=limit - base)
        path = self._folder / name.data
        self._note("lost segment", path, limit - base, "its range reads as damage")
        return Segment(self._folder, name, base, name.start_record)

    def _discard(self, name: SegmentName, *, has_sidecar: bool) -> None:
        """Remove the files of a segment that was begun and never written to."""
        base = self._file.bases.get(name.key)
        if base is not None and base >= max(self._file.bases.values()):
            self._file.forget_base(name.key)  # first: a stop may come in between
        self._storage.remove(self._folder / name.data)
        if has_sidecar:
            self._storage.remove(self._folder / name.sidecar)
        self._storage.sync_dir(self._folder)

    def _has_nothing(self, name: SegmentName) -> bool:
        return self._is_empty(self._folder / name.data) and not self._has_entries(
            self._folder / name.sidecar
        )

    def _has_entries(self, path: Path) -> bool:
        fd = self._storage.open(path)
        try:
            return count_entries(self._storage, fd) > 0
        finally:
            self._storage.close(fd)

    def _is_empty(self, path: Path) -> bool:
        return self._size(path) == 0

    def _size(self, path: Path) -> int:
        fd = self._storage.open(path)
        try:
            return self._storage.size(fd)
        finally:
            self._storage.close(fd)

    def _read(self, path: Path, size: int) -> bytearray:
        fd = self._storage.open(path)
        try:
            return read_at(self._storage, fd, size, 0)
        finally:
            self._storage.close(fd)

    def _create(self, path: Path, content: bytes, *, size: int | None = None) -> None:
        fd = self._storage.open(path, create=True)
        try:
            self._storage.write(fd, content, 0)
            if size is not None:
                self._storage.truncate(fd, size)
            self._storage.sync(fd)
        finally:
            self._storage.close(fd)
        self._storage.sync_dir(self._folder)

    def _note(self, kind: str, path: Path, length: int, note: str) -> None:
        topic_id = self._file.identity.id
        self._report.add(Finding(kind, topic_id, path, 0, length, note))
