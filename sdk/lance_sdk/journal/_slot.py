"""Where a ring keeps its segments: a folder on disk, or memory."""

import math
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from lance_sdk.journal._layout import (
    CORRUPT,
    FAILED,
    FIRST_FRAME,
    FRAME_HEADER,
    FRAME_HEADER_SIZE,
    crc32c,
    segment_name,
)
from lance_sdk.journal._segment import Segment, Span
from lance_sdk.journal._sidefile import SideFile
from lance_sdk.journal.config import JournalConfig
from lance_sdk.journal.files import Anonymous, Files, Lock, MappedFile
from lance_spec.messages.store_forward import FailedSentinel

_PAGE = 4096
_BASE_SEQ = 8
"""Offset of ``base_seq`` in a segment's header."""
_FLOOR_LEAST: Final = 64
"""Numbers by which the floor rises at least."""
_FLOOR_SHARE: Final = 8
"""It rises by this part of the frames that the segment has."""
_FOLD = struct.Struct("<QQII")
"""base_seq and created_us of the segment's header, crc and payload_length of its first frame."""


class Slot(Protocol):
    """What the ring asks of the place where it keeps its segments.

    Attributes:
        path: the folder, or None in memory.
        holes: ``on``, ``off``, or why holes cannot be punched.
        floor: no frame may have this number or a higher one before `expect`.
    """

    path: Path | None
    holes: str
    floor: float

    def reserve(self) -> Segment:
        """Return a new, empty segment; an OSError says why there is none."""
        ...

    def begin(self, segment: Segment, fsn: int, created_us: int, head: int | None) -> None:
        """Let an empty segment follow the active one; ``head`` None means it is the head."""
        ...

    def expect(self, segment: Segment, fsn: int) -> None:
        """Raise the floor above a number that a segment is about to give out."""
        ...

    def acked(self, fsn: int) -> None:
        """Keep the watermark; it survives this process at once."""
        ...

    def sync(self, segments: Sequence[Segment]) -> None:
        """Wait until the frames of these segments, and the way to them, are on disk."""
        ...

    def sync_acks(self) -> None:
        """Wait until the watermark, and what the transport needs beside it, is on disk."""
        ...

    def advance(self, head: int, active: int) -> None:
        """Say that segments below ``head`` are given up."""
        ...

    def delete(self, segments: Sequence[Segment]) -> None:
        """Delete given-up segments; damaged ones are set aside."""
        ...

    def fold(self, segment: Segment, fsn: int, offset: int) -> int:
        """Give back the space before ``offset``, where frame ``fsn + 1`` starts; return bytes."""
        ...

    def mark_failed(self, reason: str) -> None:
        """Keep drainers away from the slot until somebody removes ``.failed``."""
        ...

    def close(self, next_fsn: int, spare: Segment | None) -> None:
        """Leave the slot in order and unlock it."""
        ...

    def forked(self) -> None:
        """Let go of descriptors in a forked child; the parent keeps the lock."""
        ...


class MemorySlot:
    """Segments in memory; they end with the process."""

    def __init__(self, config: JournalConfig) -> None:
        self.path: Path | None = None
        self.holes = "off"
        self.floor = math.inf
        self._size = config.segment_bytes

    def __repr__(self) -> str:
        return "<MemorySlot>"

    def reserve(self) -> Segment:
        """Return a segment of fresh memory."""
        return Segment(Anonymous(self._size), [], base=0, created_us=0, reopen=_never)

    def begin(self, segment: Segment, fsn: int, created_us: int, head: int | None) -> None:
        """Number the segment."""
        del head
        segment.begin(fsn, created_us)

    def expect(self, segment: Segment, fsn: int) -> None:
        """Do nothing: numbers end with the process."""

    def acked(self, fsn: int) -> None:
        """Do nothing: the ring knows."""

    def sync(self, segments: Sequence[Segment]) -> None:
        """Do nothing: there is no disk."""

    def sync_acks(self) -> None:
        """Do nothing: there is no disk."""

    def advance(self, head: int, active: int) -> None:
        """Do nothing: the ring knows."""

    def delete(self, segments: Sequence[Segment]) -> None:
        """Do nothing: memory goes when nobody looks at it."""

    def fold(self, segment: Segment, fsn: int, offset: int) -> int:
        """Give nothing back."""
        del segment, fsn, offset
        return 0

    def mark_failed(self, reason: str) -> None:
        """Do nothing: no drainer finds memory."""

    def close(self, next_fsn: int, spare: Segment | None) -> None:
        """Do nothing: there is nothing to leave."""

    def forked(self) -> None:
        """Do nothing: there are no descriptors."""


def _never(path: Path) -> MappedFile:
    raise AssertionError(f"memory has no file {path}")


class DiskSlot:
    """A locked folder with segment and side files.

    The order of writes keeps the folder readable, for this and other clients, wherever the
    process is killed: a segment is stamped before the manifest names it, and the manifest gives
    a segment up before its file goes.
    """

    def __init__(
        self,
        files: Files,
        path: Path,
        config: JournalConfig,
        lock: Lock,
        *,
        manifest: SideFile,
        watermark: SideFile,
        floor: SideFile,
        generation: int,
        no_manifest: OSError | None = None,
    ) -> None:
        self.path: Path | None = path
        self._no_manifest = no_manifest
        self.holes = "on" if config.holes else "off"
        self._files = files
        self._folder = path
        self._config = config
        self._lock = lock
        self._manifest = manifest
        self._watermark = watermark
        self._floor = floor
        self._generation = generation
        self._folder_unsynced = True
        self.floor = 0.0

    def __repr__(self) -> str:
        return f"<DiskSlot {self.path}, next generation {self._generation}>"

    def reserve(self) -> Segment:
        """Create the next segment file with all its blocks."""
        if self._no_manifest is not None:
            raise self._no_manifest
        name = segment_name(self._generation, self._config.kind.suffix)
        file = self._files.create(self._folder / name, self._config.segment_bytes)
        try:
            # A name that is used is never lost, so that a missing file always means damage.
            self._files.sync_folder(self._folder)
        except OSError:
            file.close()
            with suppress(OSError):
                self._files.remove(self._folder / name)
            raise
        self._generation += 1
        return self.segment(file, [], base=0, created_us=0)

    def segment(
        self, file: MappedFile, spans: list[Span], *, base: int, created_us: int
    ) -> Segment:
        """Return the segment in a file of this slot."""
        return Segment(file, spans, base=base, created_us=created_us, reopen=self._reopen)

    def _reopen(self, path: Path) -> MappedFile:
        return self._files.open(path, writable=False)

    def begin(self, segment: Segment, fsn: int, created_us: int, head: int | None) -> None:
        """Stamp the segment, then raise the floor above its first number, then name it."""
        segment.begin(fsn, created_us)
        self.expect(segment, fsn)
        self._manifest.store(fsn if head is None else head, fsn)

    def expect(self, segment: Segment, fsn: int) -> None:
        """Raise the floor a little above a number that a segment is about to give out.

        Not by much: where the segment is lost, the floor is all that says how many frames it
        had. By a share, so that a long segment needs few raises, each of which costs a sync.
        """
        room = (segment.size - segment.end) // (FRAME_HEADER_SIZE + 1)
        self.floor = fsn + min(room, max(_FLOOR_LEAST, (fsn - segment.base) // _FLOOR_SHARE))
        self._floor.store(int(self.floor))

    def acked(self, fsn: int) -> None:
        """Store the watermark."""
        self._watermark.store(fsn)

    def sync(self, segments: Sequence[Segment]) -> None:
        """Sync frames first, then what leads to them."""
        for each in segments:
            self._sync_frames(each)
        self._floor.sync()
        self._manifest.sync()
        self._sync_folder()

    def _sync_frames(self, segment: Segment) -> None:
        if segment.path is None:
            return
        file = segment.file or self._files.open(segment.path, writable=True)
        try:
            file.sync()
        finally:
            if file is not segment.file:
                file.close()

    def _sync_folder(self) -> None:
        if self._folder_unsynced:
            self._folder_unsynced = False
            try:
                self._files.sync_folder(self._folder)
            except OSError:
                self._folder_unsynced = True
                raise

    def sync_acks(self) -> None:
        """Sync the watermark and the transport's side files (SF-04)."""
        self._watermark.sync()
        for name in self._config.synced_before_trim:
            with suppress(FileNotFoundError):
                side = self._files.open(self._folder / name, writable=True)
                try:
                    side.sync()
                finally:
                    side.close()

    def advance(self, head: int, active: int) -> None:
        """Store the manifest."""
        self._manifest.store(head, active)

    def delete(self, segments: Sequence[Segment]) -> None:
        """Sync the manifest that gives them up, then delete, then sync the folder."""
        self._manifest.sync()
        for each in segments:
            each.release()
            each.unsynced = False
            if each.path is not None:
                with suppress(FileNotFoundError):
                    self._discard(each.path, damaged=each.damaged)
        self._folder_unsynced = True
        self._sync_folder()

    def _discard(self, path: Path, *, damaged: bool) -> None:
        room = self._config.quarantine_bytes
        if damaged and quarantined(self._files, self._folder) < room:
            self._files.rename(path, path.with_name(path.name + CORRUPT))
        else:
            self._files.remove(path)

    def fold(self, segment: Segment, fsn: int, offset: int) -> int:
        """Turn acknowledged frames into one frame of zeros and punch it out.

        The segment's base becomes ``fsn``, and its first frame, numbered so, reaches to
        ``offset``: every reader still finds the frames behind it. Base and frame header go to
        disk in one write before anything is emptied. Until the zeros follow, that frame's
        checksum does not fit, which recovery takes for what it is: an acknowledged frame.
        """
        end = offset // _PAGE * _PAGE
        if self.holes != "on" or end <= _PAGE or segment.path is None:
            return 0
        file = segment.file or self._files.open(segment.path, writable=True)
        try:
            return self._fold(file, segment, fsn, offset)
        finally:
            if file is not segment.file:
                file.close()

    def _fold(self, file: MappedFile, segment: Segment, fsn: int, offset: int) -> int:
        first, end = FIRST_FRAME + FRAME_HEADER_SIZE, offset // _PAGE * _PAGE
        crc = _crc_of_zeros(offset - first)
        file.write(_BASE_SEQ, _FOLD.pack(fsn, segment.created_us, crc, offset - first))
        file.sync()
        file.view[first:_PAGE] = bytes(_PAGE - first)
        file.view[end:offset] = bytes(offset - end)
        try:
            file.punch(_PAGE, end - _PAGE)
        except OSError as error:
            self.holes = f"not possible: {error}"
            file.view[_PAGE:end] = bytes(end - _PAGE)
            return 0
        return end - _PAGE

    def mark_failed(self, reason: str) -> None:
        """Write ``.failed``."""
        text = FailedSentinel(reason.encode()).encode()
        self._files.replace(self._folder / FAILED, text)

    def close(self, next_fsn: int, spare: Segment | None) -> None:
        """Leave the exact next number and no spare, sync, and unlock whatever happens."""
        try:
            self._floor.store(next_fsn)
            self._floor.sync()
            self._watermark.sync()
            if spare is not None and spare.path is not None:
                spare.release()
                self._files.remove(spare.path)
                self._folder_unsynced = True
            self._sync_folder()
        finally:
            self.forked()

    def forked(self) -> None:
        """Close descriptors."""
        for side in (self._manifest, self._watermark, self._floor):
            side.file.close()
        self._lock.close()


def quarantined(files: Files, folder: Path) -> int:
    """Return how many bytes of damaged data are set aside in a slot."""
    used = 0
    for name in files.names(folder):
        if name.endswith(CORRUPT):
            file = files.open(folder / name, writable=False)
            used += file.size
            file.close()
    return used


def _crc_of_zeros(length: int) -> int:
    return crc32c(FRAME_HEADER.pack(0, length)[4:] + bytes(length))
