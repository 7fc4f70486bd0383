"""Finding a topic's segments on disk, and where in the topic each one begins."""

from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Final

from lance_server.log.report import Finding, Quarantine, RecoveryReport
from lance_server.log.scan import count_entries, last_entry
from lance_server.log.segment import DATA_SUFFIX, SIDECAR_SUFFIX, Segment, SegmentName
from lance_server.log.sidecar import HEADER_SIZE, decode_header, encode_header
from lance_server.log.topic_file import TopicFile
from lance_server.storage.contract import StorageBackend, read_at
from lance_spec.errors import DecodeError
from lance_spec.messages.engine import SidecarHeader

_DRAFT: Final = ".tmp"


class SegmentCollector:
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
                self._note("ignored file", self._folder / text, 0, "its name is no segment's")
        return names

    def _open(self, name: SegmentName, has_sidecar: bool) -> Segment | None:
        """Return the segment that a data file belongs to."""
        if not has_sidecar:
            if self._is_empty(self._folder / name.data):
                self._discard(name, has_sidecar=False)
                return None
            if name.key in self._file.bases:
                self._note("lost sidecar", self._folder / name.sidecar, 0, "begun anew, empty")
                self._create(self._folder / name.sidecar, b"")
        elif self._has_nothing(name):
            self._discard(name, has_sidecar=True)
            return None
        return self._place(name)

    def _place(self, name: SegmentName) -> Segment | None:
        """Learn where the segment begins: from its sidecar, or else from the topic's file."""
        try:
            header = self._header(name)
        except (DecodeError, FileNotFoundError) as error:
            base = self._file.bases.get(name.key)
            if base is None:
                self._set_aside(name, str(error))
                return None
            self._rewrite_header(name, base, str(error))
            return Segment(self._folder, name, base, name.start_record)
        return Segment(self._folder, name, header.base_offset, header.base_record)

    def _header(self, name: SegmentName) -> SidecarHeader:
        header = decode_header(self._read(self._folder / name.sidecar, HEADER_SIZE))
        if header.topic_id != self._file.identity.id:
            expected = f"topic {self._file.identity.id}"
            raise DecodeError("SidecarHeader", "topic_id", 12, expected, str(header.topic_id))
        return header

    def _rewrite_header(self, name: SegmentName, base: int, why: str) -> None:
        path = self._folder / name.sidecar
        header = encode_header(self._file.identity.id, base, name.start_record, name.start_ns)
        fd = self._storage.open(path)
        try:
            self._storage.write(fd, header, 0)
            self._storage.sync(fd)
        finally:
            self._storage.close(fd)
        self._note("repaired", path, HEADER_SIZE, f"header written anew ({why})")

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
        self._note("lost segment", self._folder / closed.data, 0, "begun anew, empty")
        return self._place(closed)

    def _with_lost(self, segments: list[Segment], end: int) -> list[Segment]:
        """Put a file without content where one is known to have been and is gone."""
        taken = {segment.base_offset for segment in segments}
        bounds = sorted({*taken, end})
        self._forget_stale_bases(segments)
        for key, base in self._file.bases.items():
            name = SegmentName.parse(key + DATA_SUFFIX)
            following = bisect_right(bounds, base)
            if base not in taken and name is not None and following < len(bounds):
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
