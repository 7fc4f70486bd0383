"""Opening a slot: lock it, read it, put it in order, and hand over a ring that goes on."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lance_sdk.journal._chain import Found
from lance_sdk.journal._gaps import close_gaps
from lance_sdk.journal._layout import (
    CORRUPT,
    DUAL_SIZE,
    FSN_FLOOR,
    MANIFEST,
    STATE,
    WATERMARK,
    WATERMARK_SIZE,
)
from lance_sdk.journal._lock import acquire
from lance_sdk.journal._picture import Picture, look
from lance_sdk.journal._place import Placement
from lance_sdk.journal._ring import Ring
from lance_sdk.journal._segment import HAS_MANIFEST, Segment, Span
from lance_sdk.journal._sidefile import NO_FSN, RecordMaker, SideFile, WatermarkFile, signed
from lance_sdk.journal._slot import DiskSlot, MemorySlot, Slot, quarantined
from lance_sdk.journal.config import JournalConfig
from lance_sdk.journal.errors import SlotHasGap
from lance_sdk.journal.files import Anonymous, Files, Lock, SlotFile
from lance_sdk.journal.types import Problem
from lance_spec.messages.store_forward import (
    FsnFloorRecord,
    ManifestRecord,
    SegmentHeader,
    SlotStateRecord,
    WatermarkSimple,
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
        SlotHasGap: segment files are missing.
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
    if picture.gaps:
        if not config.accept_gaps:
            raise SlotHasGap(path, tuple(picture.gaps))
        told = close_gaps(files, path, picture)
        picture = look(files, path, config.kind)
        picture.problems[:0] = told
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
        state=_state(files, path, picture, problems),
        symbols=_symbols(picture),
        generation=_generation(picture),
        no_manifest=problems.no_manifest,
    )
    boot = files.boot()
    segments = [
        _segment(
            files,
            slot,
            each,
            placed,
            base,
            doubtful=_doubtful(picture, each, placed.next_fsn - 1, boot),
        )
        for (each, base), placed in zip(picture.chain.order, picture.placements, strict=True)
    ]
    active = _active(files, slot, picture, segments, problems)
    if active is not None:
        slot.expect(active, picture.next_fsn)
    slot.advance(*_ends(segments, active), picture.next_fsn)
    if _removable(picture):
        slot.sync_sides()  # what they accounted for is known otherwise before they go
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


def _ends(segments: list[Segment], active: Segment | None) -> tuple[Segment | None, Segment | None]:
    """Return the oldest and the newest segment."""
    every = [*segments, *([] if active is None else [active])]
    return (every[0], every[-1]) if every else (None, None)


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

    def keep_copy(self, path: Path, offset: int, data: bytes) -> None:
        """Set bytes aside, if there is room, before they are zeroed."""
        copy = path.with_name(f"{path.name}.{offset}{CORRUPT}")
        try:
            if self._fits(len(data)):
                self._files.replace(copy, data)
                self._done(path, offset, f"copied to {copy.name} and cleared")
            else:
                self._done(path, offset, "cleared without a copy: quarantine_bytes is used up")
        except OSError as error:
            self._done(path, offset, f"cleared without a copy: {error}")

    def set_aside(self, path: Path, offset: int, size: int, *, frames: int) -> None:
        """Rename a file that is not part of the ring.

        One that holds no frame is deleted where there is no room for it.
        """
        if frames or self._fits(size):
            self._files.rename(path, path.with_name(path.name + CORRUPT))
            self._done(path, offset, f"renamed to {path.name}{CORRUPT}")
        else:
            self._files.remove(path)
            self._done(path, offset, "deleted: it held no frame, and quarantine_bytes is used up")

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


def _watermark(files: Files, path: Path, picture: Picture, problems: "_Problems") -> WatermarkFile:
    acked, place = picture.acked_fsn, path / WATERMARK
    try:
        if problems.sizes.get(WATERMARK) != WATERMARK_SIZE:
            fsn = NO_FSN if acked < 0 else acked
            files.replace(place, WatermarkSimple(fsn).encode())
        file = files.open(place, writable=True)
    except OSError as error:
        problems.cannot_write(place, error)
        file = Anonymous(WATERMARK_SIZE)
    watermark = WatermarkFile(file)
    watermark.store(acked)
    return watermark


def _floor(files: Files, path: Path, picture: Picture, problems: "_Problems") -> SideFile:
    said = picture.floor.record
    least = max(picture.next_fsn, said.floor if said else 0)
    return _side(files, path / FSN_FLOOR, said, FsnFloorRecord, (least,), problems=problems)


def _state(files: Files, path: Path, picture: Picture, problems: "_Problems") -> SideFile:
    said = picture.state.record
    values = (*picture.stamps, NO_FSN, 0, *_symbols(picture))
    state = _side(files, path / STATE, said, SlotStateRecord, values, problems=problems)
    if picture.notes:
        state.sync()
    return state


def _symbols(picture: Picture) -> tuple[int, int]:
    said = picture.state.record
    return (said.symbols, said.symbols_crc) if said else (0, 0)


def _side(
    files: Files,
    path: Path,
    said: ManifestRecord | FsnFloorRecord | SlotStateRecord | None,
    kind: RecordMaker,
    values: tuple[int, ...],
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
            files.replace(path, SideFile.fresh(kind, generation + 1, *values))
            generation += 1
        file = files.open(path, writable=True)
        file.reserve()
    except OSError as error:
        problems.cannot_write(path, error)
        file = Anonymous(DUAL_SIZE)
    side = SideFile(file, kind, generation)
    side.store(*values)
    return side


def _generation(picture: Picture) -> int:
    """Return the number of the next segment's name: no number is left out.

    So a number without a file means that a segment was deleted.
    """
    emptied = {each.generation for each in _removable(picture) if not _kept(each)}
    return max(picture.generations - emptied, default=-1) + 1


def _removable(picture: Picture) -> list[Found]:
    """Return the files that are not part of the ring and not its waiting segment."""
    every = (*picture.empty, *picture.chain.unplaced, *picture.chain.trimmed)
    return [each for each in every if each is not picture.active and not _accounts(each, picture)]


def _accounts(each: Found, picture: Picture) -> bool:
    """Whether a blank file stays: it accounts for frames between others that power took."""
    if each.claim is not None or each.header_problem or each.generation is None:
        return False
    numbers = [found.generation or 0 for found, _ in picture.chain.order]
    return bool(numbers) and min(numbers) < each.generation < max(numbers)


def _kept(each: Found) -> bool:
    """Whether a file that is not part of the ring is set aside and not deleted."""
    return bool(each.header_problem) or each.scan.residue > each.scan.end


def _doubtful(picture: Picture, found: Found, last_fsn: int, boot: int) -> bool:
    """Whether a segment may be clean in memory without being on disk (SF-38).

    After a sync that failed the kernel calls pages clean that never reached the disk, until the
    machine starts again. What the state says was synced in this boot was; what is read in a later
    boot than the one in which it was written comes from the disk.
    """
    state = picture.state.record
    if state is None or not boot or not state.boot or found.path in picture.foreign:
        return True
    if state.boot == boot:
        return last_fsn > signed(state.durable_fsn)
    return bool(picture.foreign) or found is picture.chain.order[-1][0]


def _segment(
    files: Files, slot: DiskSlot, found: Found, placed: Placement, base: int, *, doubtful: bool
) -> Segment:
    spans = [Span(run.fsn, run.fsn + run.count, run.offset, run.end) for run in placed.runs]
    file = files.open(found.path, writable=True)
    segment = slot.segment(file, spans, base=base, created_us=found.created_us)
    segment.damaged = bool(placed.lost or found.scan.holes)
    if found.claim != base:
        file.write(0, SegmentHeader(HAS_MANIFEST, base, found.created_us).encode())
        file.sync()
    segment.release()
    # Its writer may not have synced it.
    segment.unsynced = True
    segment.doubtful = doubtful
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
    doubtful = True
    if picture.active is not None:
        found = picture.active
    elif segments and not segments[-1].damaged and segments[-1].stop == picture.next_fsn:
        found, spans = picture.chain.order[-1][0], segments[-1].spans
        doubtful = segments[-1].doubtful
    else:
        return None
    file = files.open(found.path, writable=True)
    base = spans[0].first if spans else picture.next_fsn
    segment = slot.segment(file, spans, base=base, created_us=found.created_us)
    try:
        file.reserve()
    except OSError:
        # A sparse file on a full disk: writes into it would fail.
        file.close()
        return None
    _clear_tail(found, file, problems)
    segment.unsynced = bool(spans)
    segment.doubtful = doubtful
    return segment


def _clear_tail(found: Found, file: SlotFile, problems: _Problems) -> None:
    """Copy an unfinished frame aside and zero it: left there, it could look like a frame later."""
    start, stop = found.scan.end, found.scan.residue
    if stop > start:
        problems.keep_copy(found.path, start, file.read(start, stop - start))
        file.write(start, bytes(stop - start))
        file.sync()


def _clear(files: Files, path: Path, picture: Picture, problems: _Problems) -> None:
    """Delete spares and segments that the manifest gave up; set aside what is damaged."""
    for each in _removable(picture):
        if _kept(each):
            offset = each.header_offset if each.header_problem else each.scan.end
            problems.set_aside(each.path, offset, each.size, frames=each.scan.frames)
        else:
            files.remove(each.path)
    files.sync_folder(path)
