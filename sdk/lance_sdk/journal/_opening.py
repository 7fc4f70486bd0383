"""Opening a slot: lock it, read it, put it in order, and hand over a ring that goes on."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lance_sdk.journal._chain import Found
from lance_sdk.journal._layout import CORRUPT, DUAL_SIZE, FSN_FLOOR, MANIFEST, WATERMARK
from lance_sdk.journal._lock import acquire
from lance_sdk.journal._picture import Picture, look
from lance_sdk.journal._place import Placement
from lance_sdk.journal._ring import Ring
from lance_sdk.journal._segment import HAS_MANIFEST, Segment, Span
from lance_sdk.journal._sidefile import NO_FSN, SideFile
from lance_sdk.journal._slot import DiskSlot, MemorySlot, Slot, quarantined
from lance_sdk.journal.config import JournalConfig
from lance_sdk.journal.files import Anonymous, Files, Lock, MappedFile
from lance_sdk.journal.types import Problem
from lance_spec.messages.store_forward import (
    FsnFloorRecord,
    ManifestRecord,
    SegmentHeader,
    WatermarkRecord,
)


@dataclass(slots=True)
class Opened:
    """A slot that is ready.

    Attributes:
        slot: where segments are kept.
        ring: the segments.
        problems: what was found damaged or missing, and what was done about it.
    """

    slot: Slot
    ring: Ring
    problems: tuple[Problem, ...]


def in_memory(config: JournalConfig) -> Opened:
    """Return an empty ring in memory."""
    total = config.total_bytes(on_disk=False)
    ring = Ring(
        [], None, next_fsn=0, acked_fsn=-1, segment_bytes=config.segment_bytes, total_bytes=total
    )
    return Opened(MemorySlot(config), ring, ())


def on_disk(files: Files, path: Path, config: JournalConfig) -> Opened:
    """Lock a slot and bring it into order.

    Raises:
        SlotLocked: somebody holds it.
        SlotUnreadable: it cannot be read without guessing.
        OSError: the folder or a side file cannot be created or read.
    """
    files.make_folder(path)
    lock = acquire(files, path)
    try:
        return _opened(files, path, config, lock)
    except BaseException:
        lock.close()
        raise


def _opened(files: Files, path: Path, config: JournalConfig, lock: Lock) -> Opened:
    picture = look(files, path, config.kind)
    problems = _Problems(files, path, config.quarantine_bytes, picture)
    # Records that guide the next recovery are right before anything they speak of is touched.
    slot = DiskSlot(
        files,
        path,
        config,
        lock,
        manifest=_manifest(files, path, picture, problems),
        watermark=_watermark(files, path, picture, problems),
        floor=_floor(files, path, picture, problems),
        generation=picture.generation,
        no_manifest=problems.no_manifest,
    )
    segments = [
        _segment(files, slot, each, placed, base)
        for (each, base), placed in zip(picture.chain.order, picture.placements, strict=True)
    ]
    active = _active(files, slot, picture, segments, problems)
    if active is not None:
        slot.expect(active, picture.next_fsn)
    _clear(files, path, picture, problems)
    ring = Ring(
        segments[:-1] if active is not None and picture.active is None else segments,
        active,
        next_fsn=picture.next_fsn,
        acked_fsn=picture.acked_fsn,
        segment_bytes=config.segment_bytes,
        total_bytes=config.total_bytes(on_disk=True),
    )
    return Opened(slot, ring, tuple(problems.all))


class _Problems:
    """Problems, and what is kept of damaged bytes before they are cleared.

    Attributes:
        all: the problems, with what was done about them.
        sizes: bytes of each side file that exists, by name.
        no_manifest: why there is no manifest on disk, or None.
    """

    def __init__(self, files: Files, path: Path, room: int, picture: Picture) -> None:
        self.all = list(picture.problems)
        self.sizes = picture.sizes
        self.no_manifest: OSError | None = None
        self._files = files
        self._slot = path
        self._room = room

    def cannot_write(self, path: Path, error: OSError) -> None:
        """Note that a side file lives in memory."""
        text = f"cannot be written ({error}); until the slot is opened again it is kept in memory"
        self.all.append(Problem("damaged_side_file", path, 0, text))
        if path.name == MANIFEST:
            self.no_manifest = error

    def keep_copy(self, path: Path, offset: int, data: memoryview) -> None:
        """Set bytes aside, if there is room, before they are zeroed."""
        copy = path.with_name(f"{path.name}.{offset}{CORRUPT}")
        try:
            if self._fits(len(data)):
                self._files.replace(copy, bytes(data))
                self._done(path, offset, f"copied to {copy.name} and cleared")
            else:
                self._done(path, offset, "cleared without a copy: quarantine_bytes is used up")
        except OSError as error:
            self._done(path, offset, f"cleared without a copy: {error}")

    def set_aside(self, path: Path, offset: int, size: int) -> None:
        """Rename a file that is not part of the ring, or delete it where there is no room."""
        if self._fits(size):
            self._files.rename(path, path.with_name(path.name + CORRUPT))
            self._done(path, offset, f"renamed to {path.name}{CORRUPT}")
        else:
            self._files.remove(path)
            self._done(path, offset, "deleted: quarantine_bytes is used up")

    def _fits(self, size: int) -> bool:
        return quarantined(self._files, self._slot) + size <= self._room

    def _done(self, path: Path, offset: int, what: str) -> None:
        for number, each in enumerate(self.all):
            if (each.path, each.offset) == (path, offset):
                told = f"{each.text}; {what}"
                self.all[number] = Problem(each.kind, path, offset, told, each.lost)


def _manifest(files: Files, path: Path, picture: Picture, problems: "_Problems") -> SideFile:
    if picture.manifest.damage and picture.manifest.record is None:
        with suppress(OSError):
            files.rename(path / MANIFEST, path / f"{MANIFEST}{CORRUPT}")
        picture.sizes.pop(MANIFEST, None)
    active = picture.next_fsn
    if picture.active is None and picture.chain.order:
        active = picture.chain.order[-1][1]
    said = picture.manifest.record
    values = (picture.head_base, active)
    return _side(files, path / MANIFEST, said, ManifestRecord, values, problems=problems)


def _watermark(files: Files, path: Path, picture: Picture, problems: "_Problems") -> SideFile:
    acked = NO_FSN if picture.acked_fsn < 0 else picture.acked_fsn
    said = picture.watermark.record
    return _side(files, path / WATERMARK, said, WatermarkRecord, (acked, 0), problems=problems)


def _floor(files: Files, path: Path, picture: Picture, problems: "_Problems") -> SideFile:
    said = picture.floor.record
    least = max(picture.next_fsn, said.floor if said else 0)
    return _side(files, path / FSN_FLOOR, said, FsnFloorRecord, (least, 0), problems=problems)


def _side(
    files: Files,
    path: Path,
    said: ManifestRecord | WatermarkRecord | FsnFloorRecord | None,
    kind: type[ManifestRecord | WatermarkRecord | FsnFloorRecord],
    values: tuple[int, int],
    *,
    problems: "_Problems",
) -> SideFile:
    """Open a side file in its current form, with a record that says what is true now.

    On a full disk it is kept in memory instead, so that the slot can be drained: what drains it
    makes the room that the next opening needs.
    """
    generation = said.generation if said else 0
    try:
        if problems.sizes.get(path.name) != DUAL_SIZE:
            files.replace(path, SideFile.fresh(kind.MAGIC, generation + 1, *values))
            generation += 1
        file = files.open(path, writable=True)
        file.reserve()
    except OSError as error:
        problems.cannot_write(path, error)
        file = Anonymous(DUAL_SIZE)
    side = SideFile(file, kind.MAGIC, generation)
    side.store(*values)
    return side


def _segment(files: Files, slot: DiskSlot, found: Found, placed: Placement, base: int) -> Segment:
    spans = [Span(run.fsn, run.fsn + run.count, run.offset, run.end) for run in placed.runs]
    file = files.open(found.path, writable=True)
    segment = slot.segment(file, spans, base=base, created_us=found.created_us)
    segment.damaged = bool(placed.lost or found.scan.holes)
    if found.claim != base:
        file.write(0, SegmentHeader(HAS_MANIFEST, base, found.created_us).encode())
        file.sync()
    segment.release()
    # Whoever wrote it may not have synced it.
    segment.unsynced = True
    return segment


def _active(
    files: Files,
    slot: DiskSlot,
    picture: Picture,
    segments: list[Segment],
    problems: _Problems,
) -> Segment | None:
    """Return the segment that takes the next frame, reopened; None when a new one is needed."""
    spans: list[Span] = []
    if picture.active is not None:
        found = picture.active
    elif segments and not segments[-1].damaged and segments[-1].stop == picture.next_fsn:
        found, spans = picture.chain.order[-1][0], segments[-1].spans
    else:
        return None
    file = files.open(found.path, writable=True)
    base = spans[0].first if spans else picture.next_fsn
    segment = slot.segment(file, spans, base=base, created_us=found.created_us)
    try:
        file.reserve()
    except OSError:
        # A sparse file on a full disk: a store into it could kill the process (SIGBUS).
        file.close()
        return None
    _clear_tail(segment, found, file, problems)
    segment.unsynced = bool(spans)
    return segment


def _clear_tail(segment: Segment, found: Found, file: MappedFile, problems: _Problems) -> None:
    """Copy an unfinished frame aside and zero it: left there, it could look like a frame later."""
    start, stop = found.scan.end, found.scan.residue
    if stop > start:
        problems.keep_copy(found.path, start, segment.view[start:stop])
        segment.view[start:stop] = bytes(stop - start)
        file.sync()


def _clear(files: Files, path: Path, picture: Picture, problems: _Problems) -> None:
    """Delete spares and segments that the manifest gave up; set aside what is damaged."""
    kept = None if picture.active is None else picture.active.path
    for each in (*picture.empty, *picture.chain.unplaced, *picture.chain.trimmed):
        if each.path == kept:
            continue
        if each.header_problem or each.scan.residue > each.scan.end:
            offset = each.header_offset if each.header_problem else each.scan.end
            problems.set_aside(each.path, offset, each.size)
        else:
            files.remove(each.path)
    files.sync_folder(path)
