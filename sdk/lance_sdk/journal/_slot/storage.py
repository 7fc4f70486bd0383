"""Storage of a ring's segments: a folder on disk, or memory."""

import math
import struct
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Final, Protocol

from lance_sdk.journal._ring.segment import Segment, Span
from lance_sdk.journal._slot.layout import (
    CORRUPT,
    FAILED,
    FIRST_FRAME,
    FRAME_HEADER,
    FRAME_HEADER_SIZE,
    MANIFEST,
    WATERMARK,
    crc32c,
    segment_name,
)
from lance_sdk.journal._slot.side_files import NO_FSN, SideFile, WatermarkFile
from lance_sdk.journal.config import JournalConfig
from lance_sdk.journal.files import Anonymous, Files, Lock, SlotFile
from lance_spec.messages.store_forward import FailedSentinel

_PAGE = 4096
_BASE_SEQ = 8
"""Offset of ``base_seq`` in a segment's header."""
_FLOOR_LEAST: Final = 64
"""Numbers by which the floor rises at least."""
_FLOOR_SHARE: Final = 8
"""It rises by this part of the frames that the segment has."""
_CHUNK: Final = 1 << 20
"""Bytes that are written at once where a segment is written again."""
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

    def begin(self, segment: Segment, fsn: int, created_us: int, head: Segment | None) -> None:
        """Let an empty segment follow the active one; ``head`` None means it is the head."""
        ...

    def expect(self, segment: Segment, fsn: int) -> None:
        """Raise the floor above a number that a segment is about to give out."""
        ...

    def acked(self, fsn: int) -> None:
        """Keep the watermark; it survives this process at once."""
        ...

    def sync(self, segments: Sequence[Segment], upto: int) -> None:
        """Wait until the frames of these segments, and the way to them, are on disk.

        Args:
            segments: every segment with frames up to ``upto`` that is not known to be on disk.
            upto: the last frame that is durable then.
        """
        ...

    def sync_acks(self) -> None:
        """Wait until the watermark, and what the transport needs beside it, is on disk."""
        ...

    def advance(self, head: Segment | None, active: Segment | None, next_fsn: int) -> None:
        """Say that segments before ``head`` are given up; None means that there is none left."""
        ...

    def delete(self, segments: Sequence[Segment]) -> None:
        """Delete given-up segments; damaged ones are set aside."""
        ...

    def fold(
        self, segment: Segment, fsn: int, offset: int, lock: AbstractContextManager[object]
    ) -> int:
        """Give back the space before ``offset``, where frame ``fsn + 1`` starts; return bytes.

        Args:
            segment: it has more frames than these.
            fsn: the last frame of which the space is given back.
            offset: where the next one starts.
            lock: held while the numbers of the segment change.

        Raises:
            FoldFailed: the disk did not confirm the new numbers.
        """
        ...

    def mark_failed(self, reason: str) -> None:
        """Keep drainers away from the slot until somebody removes ``.failed``."""
        ...

    def close(self, next_fsn: int, spare: Segment | None, drained: Sequence[Segment]) -> None:
        """Leave the slot in order and unlock it.

        Args:
            next_fsn: number of the next frame.
            spare: a segment that was prepared and not begun.
            drained: the segments that are left where every frame is acknowledged.
        """
        ...

    def forked(self) -> None:
        """Let go of descriptors in a forked child; the parent keeps the lock."""
        ...

    @property
    def symbols(self) -> tuple[int, int]:
        """What `note_symbols` kept: a count and a checksum."""
        ...

    def note_symbols(self, count: int, crc: int) -> None:
        """Keep what the frames of this slot need of a dictionary beside it (SF-04)."""
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

    def begin(self, segment: Segment, fsn: int, created_us: int, head: Segment | None) -> None:
        """Number the segment."""
        del head
        segment.begin(fsn, created_us)

    def expect(self, segment: Segment, fsn: int) -> None:
        """Do nothing: numbers end with the process."""

    def acked(self, fsn: int) -> None:
        """Do nothing: the ring knows."""

    def sync(self, segments: Sequence[Segment], upto: int) -> None:
        """Do nothing: there is no disk."""

    def sync_acks(self) -> None:
        """Do nothing: there is no disk."""

    def advance(self, head: Segment | None, active: Segment | None, next_fsn: int) -> None:
        """Do nothing: the ring knows."""

    def delete(self, segments: Sequence[Segment]) -> None:
        """Do nothing: memory goes when nobody looks at it."""

    def fold(
        self, segment: Segment, fsn: int, offset: int, lock: AbstractContextManager[object]
    ) -> int:
        """Give nothing back."""
        del segment, fsn, offset, lock
        return 0

    def mark_failed(self, reason: str) -> None:
        """Do nothing: no drainer finds memory."""

    def close(self, next_fsn: int, spare: Segment | None, drained: Sequence[Segment]) -> None:
        """Do nothing: there is nothing to leave."""

    def forked(self) -> None:
        """Do nothing: there are no descriptors."""

    @property
    def symbols(self) -> tuple[int, int]:
        """Nothing: the dictionary ends with the process, too."""
        return (0, 0)

    def note_symbols(self, count: int, crc: int) -> None:
        """Do nothing: the dictionary ends with the process, too."""


def _never(path: Path) -> SlotFile:
    raise AssertionError(f"memory has no file {path}")


class FoldFailed(OSError):  # noqa: N818 - says what happened; "Error" would repeat it
    """The new numbers of a folded segment may not be on disk, and unsynced frames neither."""


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
        watermark: WatermarkFile,
        floor: SideFile,
        state: SideFile,
        generation: int,
        symbols: tuple[int, int] = (0, 0),
        blanks: Sequence[Path] = (),
        no_manifest: OSError | None = None,
    ) -> None:
        self.path: Path | None = path
        self._no_manifest = no_manifest
        self._blanks = blanks
        self.holes = "on" if config.holes else "off"
        self._files = files
        self._folder = path
        self._config = config
        self._lock = lock
        self._manifest = manifest
        self._watermark = watermark
        self._floor = floor
        self._state = state
        self._stamps: tuple[int, ...] = (0, 0)
        self._head_base = 0
        self._stamps_unsynced = False
        self._durable = NO_FSN
        self._boot = files.boot()
        self._symbols = symbols
        self._generation = generation
        self._folder_unsynced = True
        self._acks_unsynced = True
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

    def segment(self, file: SlotFile, spans: list[Span], *, base: int, created_us: int) -> Segment:
        """Return the segment in a file of this slot."""
        return Segment(file, spans, base=base, created_us=created_us, reopen=self._reopen)

    def _reopen(self, path: Path) -> SlotFile:
        return self._files.open(path, writable=False)

    def begin(self, segment: Segment, fsn: int, created_us: int, head: Segment | None) -> None:
        """Stamp the segment, then raise the floor above its first number, then name it."""
        segment.begin(fsn, created_us)
        self.expect(segment, fsn)
        first = not self._stamps[1]
        self.advance(head or segment, segment, fsn)
        if first:
            self._state.sync()  # a loss of power must not make our own slot look foreign

    def expect(self, segment: Segment, fsn: int) -> None:
        """Raise the floor a little above a number that a segment is about to give out.

        Not by much: where the segment is lost, the floor is all that says how many frames it
        had. By a share, so that a long segment needs few raises, each of which costs a sync.
        """
        room = (segment.size - segment.end) // (FRAME_HEADER_SIZE + 1)
        self.floor = fsn + min(room, max(_FLOOR_LEAST, (fsn - segment.base) // _FLOOR_SHARE))
        self._floor.store(int(self.floor))

    def acked(self, fsn: int) -> None:
        """Store the watermark; where that fails, nothing is deleted until it was stored."""
        with suppress(OSError):
            self._watermark.store(fsn)

    def note_symbols(self, count: int, crc: int) -> None:
        """Keep what the frames of this slot need of a dictionary beside it (SF-04)."""
        before, self._symbols = self._symbols, (count, crc)
        try:
            self._store_state()
        except OSError:
            self._symbols = before
            raise

    @property
    def symbols(self) -> tuple[int, int]:
        """What `note_symbols` kept: a count and a checksum."""
        return self._symbols

    def _store_state(self) -> None:
        head, active = self._stamps
        self._state.store(head, active, self._durable, self._boot, *self._symbols)

    def sync(self, segments: Sequence[Segment], upto: int) -> None:
        """Sync what the frames need beside them, then frames, then what leads to them."""
        self._sync_beside()
        self._sync_first_acks()
        for each in segments:
            self._sync_frames(each)
        self._floor.sync()
        self._manifest.sync()
        self._sync_stamps()
        self._sync_folder()
        if upto >= 0:
            self._durable = upto
            self._store_state()

    def _sync_first_acks(self) -> None:
        """Sync the watermark once: what it said before may cover numbers that were given again.

        Another client may have left it in the page cache; a loss of power would bring back the one
        before that, and with it the end of frames that are about to be called durable.
        """
        if self._acks_unsynced:
            self._watermark.sync()
            self._acks_unsynced = False

    def _sync_stamps(self) -> None:
        """Let the state on disk name the segments before a frame in them is promised."""
        if self._stamps_unsynced:
            self._stamps_unsynced = False
            try:
                self._state.sync()
            except OSError:
                self._stamps_unsynced = True
                raise

    def sync_sides(self) -> None:
        """Wait until manifest, floor and state are on disk."""
        for side in (self._floor, self._manifest, self._state):
            side.sync()

    def _sync_frames(self, segment: Segment) -> None:
        if segment.path is None:
            return
        file = segment.file or self._files.open(segment.path, writable=True)
        try:
            if segment.doubtful:
                _write_again(file, segment.end)
            file.sync()
            segment.doubtful = False
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
        self._sync_beside()

    def _sync_beside(self) -> None:
        """Sync the transport's side files, and what is noted of them."""
        for name in self._config.synced_before_trim:
            with suppress(FileNotFoundError):
                side = self._files.open(self._folder / name, writable=True)
                try:
                    side.sync()
                finally:
                    side.close()
                self._state.sync()

    def advance(self, head: Segment | None, active: Segment | None, next_fsn: int) -> None:
        """Store the manifest, and by which stamps its segments are known again."""
        bases = [next_fsn if each is None else each.base for each in (head, active)]
        stamps = tuple(0 if each is None else each.created_us for each in (head, active))
        if bases[0] < self._head_base:
            # It was given up, and is only here because its removal failed, or seemed to.
            bases[0], stamps = self._head_base, (self._stamps[0], stamps[1])
        self._head_base = bases[0]
        self._stamps_unsynced |= stamps != self._stamps
        self._stamps = stamps
        self._manifest.store(*bases)
        self._store_state()

    def delete(self, segments: Sequence[Segment]) -> None:
        """Sync what gives them up and what knows the others, then delete, then sync the folder."""
        self._manifest.sync()
        self._state.sync()
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

    def fold(
        self, segment: Segment, fsn: int, offset: int, lock: AbstractContextManager[object]
    ) -> int:
        """Turn acknowledged frames into one frame of zeros and punch it out.

        The segment's base becomes ``fsn``, and its first frame, numbered so, reaches to
        ``offset``: every reader still finds the frames after it. Base and frame header are
        written in one call, and synced before anything is emptied. Until the zeros follow, that
        frame's checksum does not fit, which recovery takes for what it is: an acknowledged frame.
        """
        end = offset // _PAGE * _PAGE
        if self.holes != "on" or end <= _PAGE or segment.path is None:
            return 0
        file = segment.file or self._files.open(segment.path, writable=True)
        try:
            self._renumber(file, segment, fsn, offset, lock)
            return self._empty(file, offset)
        finally:
            if file is not segment.file:
                file.close()

    def _renumber(
        self,
        file: SlotFile,
        segment: Segment,
        fsn: int,
        offset: int,
        lock: AbstractContextManager[object],
    ) -> None:
        """Write the new numbers; memory follows what the file says then, whatever failed."""
        length = offset - FIRST_FRAME - FRAME_HEADER_SIZE
        numbers = _FOLD.pack(fsn, segment.created_us, _crc_of_zeros(length), length)
        with lock:
            try:
                file.write(_BASE_SEQ, numbers)
            finally:
                if file.read(_BASE_SEQ, len(numbers)) == numbers:
                    segment.folded(fsn)
        try:
            file.sync()
        except OSError as error:
            segment.doubtful = True
            raise FoldFailed(error.errno, error.strerror, str(segment.path)) from None

    def _empty(self, file: SlotFile, offset: int) -> int:
        """Fill the folded frame with zeros, without blocks where the file system can do that."""
        first, end = FIRST_FRAME + FRAME_HEADER_SIZE, offset // _PAGE * _PAGE
        file.write(first, bytes(_PAGE - first))
        file.write(end, bytes(offset - end))
        try:
            file.punch(_PAGE, end - _PAGE)
        except OSError as error:
            self.holes = f"not possible: {error}"
            for place in range(_PAGE, end, _CHUNK):
                file.write(place, bytes(min(_CHUNK, end - place)))
            return 0
        return end - _PAGE

    def mark_failed(self, reason: str) -> None:
        """Write ``.failed``."""
        text = FailedSentinel(reason.encode()).encode()
        self._files.replace(self._folder / FAILED, text)

    def close(self, next_fsn: int, spare: Segment | None, drained: Sequence[Segment]) -> None:
        """Leave the exact next number and no spare, sync, and unlock whatever happens.

        A slot that is drained keeps no segment: another client would send it again.
        """
        try:
            self._floor.store(next_fsn)
            self._floor.sync()
            self._watermark.sync()
            if spare is not None and spare.path is not None:
                spare.release()
                self._files.remove(spare.path)
                self._folder_unsynced = True
            if drained:
                self._leave_nothing(drained, next_fsn)
            self._sync_folder()
        finally:
            self.forked()

    def _leave_nothing(self, drained: Sequence[Segment], next_fsn: int) -> None:
        """Delete what is acknowledged, then the files that spoke of it."""
        self._manifest.store(next_fsn, next_fsn)
        self.delete(drained)
        for path in self._blanks:
            with suppress(FileNotFoundError):
                self._files.remove(path)
        for name in (MANIFEST, *self._config.synced_before_trim, WATERMARK):
            with suppress(FileNotFoundError):
                self._files.remove(self._folder / name)
        self._folder_unsynced = True

    def forked(self) -> None:
        """Close descriptors."""
        for side in (self._manifest, self._watermark, self._floor, self._state):
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


def _write_again(file: SlotFile, end: int) -> None:
    """Write a file's bytes as they are, so that a sync really sends them to the disk."""
    for place in range(0, end, _CHUNK):
        file.write(place, file.read(place, min(_CHUNK, end - place)))


def _crc_of_zeros(length: int) -> int:
    return crc32c(FRAME_HEADER.pack(0, length)[4:] + bytes(length))
