"""Opening a slot: lock it, read it, put it in order, and hand over a ring that goes on."""

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lance_sdk.journal._ring.ring import Ring
from lance_sdk.journal._ring.segment import HAS_MANIFEST, Segment, Span
from lance_sdk.journal._slot.layout import (
    CORRUPT,
    DUAL_SIZE,
    FSN_FLOOR,
    MANIFEST,
    STATE,
    WATERMARK,
    WATERMARK_SIZE,
    segment_name,
)
from lance_sdk.journal._slot.lock import acquire
from lance_sdk.journal._slot.mending import close_gaps, part_segments
from lance_sdk.journal._slot.segment_list import SegmentFile
from lance_sdk.journal._slot.sequence import SequenceAssignment
from lance_sdk.journal._slot.side_files import NO_FSN, RecordMaker, SideFile, WatermarkFile, signed
from lance_sdk.journal._slot.snapshot import SlotSnapshot, read_slot
from lance_sdk.journal._slot.storage import DiskSlot, MemorySlot, Slot, quarantined
from lance_sdk.journal.config import JournalConfig, SlotKind
from lance_sdk.journal.errors import SegmentsOverlap, SlotHasGap, SlotUnusable
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
        SlotUnusable: the folder cannot be made or written to.
        SlotUnreadable: it cannot be read without guessing.
        SlotHasGap: segment files are missing.
        OSError: a side file cannot be created or read.
    """
    try:
        files.make_folder(path)
        lock = acquire(files, path)
    except OSError as error:
        raise SlotUnusable(path, error) from error
    try:
        return _opened(files, path, config, lock)
    except BaseException:
        lock.close()
        raise


def _opened(files: Files, path: Path, config: JournalConfig, lock: Lock) -> Opened:
    snapshot = _mended(files, path, config)
    problems = _Problems(files, path, config.quarantine_bytes, snapshot)
    # Records that guide the next recovery are right before anything they speak of is touched.
    slot = DiskSlot(
        files,
        path,
        config,
        lock,
        manifest=_manifest(files, path, snapshot, problems),
        watermark=_watermark(files, path, snapshot, problems),
        floor=_floor(files, path, snapshot, problems),
        state=_state(files, path, snapshot, problems),
        symbols=snapshot.symbols,
        blanks=[each.path for each in snapshot.empty if _accounts(each, snapshot)],
        generation=_generation(snapshot, config.kind),
        no_manifest=problems.no_manifest,
    )
    boot = files.boot()
    segments = [
        _segment(
            files,
            slot,
            each,
            assignment,
            base,
            doubtful=_doubtful(snapshot, each, assignment.next_fsn - 1, boot),
        )
        for (each, base), assignment in zip(snapshot.chain.order, snapshot.assignments, strict=True)
    ]
    active = _active(files, slot, snapshot, segments, problems)
    if active is not None:
        slot.expect(active, snapshot.next_fsn)
    slot.advance(*_ends(segments, active), snapshot.next_fsn)
    if _removable(snapshot):
        slot.sync_sides()  # what they accounted for is known otherwise before they go
    _clear(files, path, snapshot, problems)
    ring = Ring(
        segments[:-1] if active is not None and snapshot.active is None else segments,
        active,
        next_fsn=snapshot.next_fsn,
        acked_fsn=snapshot.acked_fsn,
        segment_bytes=config.segment_bytes,
        total_bytes=config.total_bytes(on_disk=True),
    )
    return Opened(slot, ring, tuple(problems.all))


def _mended(files: Files, path: Path, config: JournalConfig) -> SlotSnapshot:
    """Read a slot; part segments of the same numbers and close gaps first, where that is wanted."""
    told: list[Problem] = []
    try:
        snapshot = read_slot(files, path, config.kind)
    except SegmentsOverlap:
        if not config.accept_gaps:
            raise
        told += part_segments(files, path, config.kind)
        snapshot = read_slot(files, path, config.kind)
    if snapshot.gaps:
        if not config.accept_gaps:
            raise SlotHasGap(path, tuple(snapshot.gaps))
        told += close_gaps(files, path, snapshot)
        snapshot = read_slot(files, path, config.kind)
    if config.kind is SlotKind.QWP and _number_the_first(files, path, snapshot):
        snapshot = read_slot(files, path, config.kind)
    snapshot.problems[:0] = told
    return snapshot


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

    def __init__(self, files: Files, path: Path, room: int, snapshot: SlotSnapshot) -> None:
        self.all = list(snapshot.problems)
        self.sizes = snapshot.sizes
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
                self.all[number] = replace(each, text=told)


def _manifest(files: Files, path: Path, snapshot: SlotSnapshot, problems: "_Problems") -> SideFile:
    if snapshot.manifest.record is None:
        if snapshot.manifest.damage:
            with suppress(OSError):
                files.rename(path / MANIFEST, path / f"{MANIFEST}{CORRUPT}")
        # A void record may have a higher generation than a new one: the file is written as a whole.
        snapshot.sizes.pop(MANIFEST, None)
    active = snapshot.next_fsn
    if snapshot.active is None and snapshot.chain.order:
        active = snapshot.chain.order[-1][1]
    said = snapshot.manifest.record
    values = (snapshot.head_base, active)
    return _side(files, path / MANIFEST, said, ManifestRecord, values, problems=problems)


def _watermark(
    files: Files, path: Path, snapshot: SlotSnapshot, problems: "_Problems"
) -> WatermarkFile:
    acked, place = snapshot.acked_fsn, path / WATERMARK
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
    if snapshot.stated_fsn > acked:
        # It covers numbers that frames will get again; after a loss of power it would be back.
        watermark.sync()
    return watermark


def _floor(files: Files, path: Path, snapshot: SlotSnapshot, problems: "_Problems") -> SideFile:
    said = snapshot.floor.record
    least = max(snapshot.next_fsn, said.floor if said else 0)
    return _side(files, path / FSN_FLOOR, said, FsnFloorRecord, (least,), problems=problems)


def _state(files: Files, path: Path, snapshot: SlotSnapshot, problems: "_Problems") -> SideFile:
    said = snapshot.state.record
    values = (*snapshot.stamps, NO_FSN, 0, *snapshot.symbols)
    state = _side(files, path / STATE, said, SlotStateRecord, values, problems=problems)
    if snapshot.notes:
        state.sync()
    return state


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


def _generation(snapshot: SlotSnapshot, kind: SlotKind) -> int:
    """Return the number of the next segment's name: no number is left out.

    So a number without a file means that a segment was deleted. QWP slots begin with 1 (SF-40).
    """
    emptied = {each.generation for each in _removable(snapshot) if not _kept(each)}
    before = 0 if kind is SlotKind.QWP else -1
    return max(snapshot.generations - emptied, default=before) + 1


def _number_the_first(files: Files, path: Path, snapshot: SlotSnapshot) -> bool:
    """Give ``sf-initial`` and number 0 the next numbers; return whether there was one of them.

    A published client that opens a slot may create its spare under number 0 before it has looked
    which numbers are taken, and so empties the file that has it (SF-40). Where a file has no
    number, nothing shows whether one after it was deleted.
    """
    following = max(snapshot.generations, default=0) + 1
    kept = [each for each, _ in snapshot.chain.order]
    if snapshot.active is not None:
        kept.append(snapshot.active)
    first = [each for each in kept if not each.generation]
    for generation, each in enumerate(first, following):
        files.rename(each.path, path / segment_name(generation, SlotKind.QWP.suffix))
    if first:
        files.sync_folder(path)
    return bool(first)


def _removable(snapshot: SlotSnapshot) -> list[SegmentFile]:
    """Return the files that are not part of the ring and not its waiting segment."""
    every = (*snapshot.empty, *snapshot.chain.unplaced, *snapshot.chain.trimmed)
    return [each for each in every if each is not snapshot.active and not _accounts(each, snapshot)]


def _accounts(each: SegmentFile, snapshot: SlotSnapshot) -> bool:
    """Whether a file without frames stays: it accounts for some between others that power took."""
    if each.width or each.header_problem or each.generation is None or each is snapshot.active:
        return False
    numbers = [found.generation or 0 for found, _ in snapshot.chain.order]
    every = (*snapshot.empty, *snapshot.chain.unplaced, *snapshot.chain.trimmed)
    staying = {found.generation or 0 for found in every if _kept(found) or found is snapshot.active}
    # Those in order have a number, too, and so have those that were set aside.
    staying |= snapshot.generations - {found.generation for found in every}
    last = max(staying, default=0)
    return bool(numbers) and min(numbers) < each.generation < last


def _kept(each: SegmentFile) -> bool:
    """Whether a file that is not part of the ring is set aside and not deleted."""
    return bool(each.header_problem) or each.scan.residue > each.scan.end


def _doubtful(snapshot: SlotSnapshot, found: SegmentFile, last_fsn: int, boot: int) -> bool:
    """Whether a segment may be clean in memory without being on disk (SF-38).

    After a sync that failed the kernel calls pages clean that never reached the disk, until the
    machine starts again. What the state says was synced in this boot was; what is read in a later
    boot than the one in which it was written comes from the disk.
    """
    state = snapshot.state.record
    if state is None or not boot or not state.boot or found.path in snapshot.foreign:
        return True
    if state.boot == boot:
        return last_fsn > signed(state.durable_fsn)
    return bool(snapshot.foreign) or found is snapshot.chain.order[-1][0]


def _segment(
    files: Files,
    slot: DiskSlot,
    found: SegmentFile,
    assignment: SequenceAssignment,
    base: int,
    *,
    doubtful: bool,
) -> Segment:
    spans = [Span(run.fsn, run.fsn + run.count, run.offset, run.end) for run in assignment.runs]
    file = files.open(found.path, writable=True)
    segment = slot.segment(file, spans, base=base, created_us=found.created_us)
    segment.damaged = bool(assignment.lost or found.scan.holes)
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
    snapshot: SlotSnapshot,
    segments: list[Segment],
    problems: _Problems,
) -> Segment | None:
    """Return the segment that takes the next frame, reopened; None when a new one is needed."""
    spans: list[Span] = []
    doubtful = True
    if snapshot.active is not None:
        found = snapshot.active
    elif segments and not segments[-1].damaged and segments[-1].stop == snapshot.next_fsn:
        found, spans = snapshot.chain.order[-1][0], segments[-1].spans
        doubtful = segments[-1].doubtful
    else:
        return None
    file = files.open(found.path, writable=True)
    base = spans[0].first if spans else snapshot.next_fsn
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


def _clear_tail(found: SegmentFile, file: SlotFile, problems: _Problems) -> None:
    """Copy an unfinished frame aside and zero it: left there, it could look like a frame later."""
    start, stop = found.scan.end, found.scan.residue
    if stop > start:
        problems.keep_copy(found.path, start, file.read(start, stop - start))
        file.write(start, bytes(stop - start))
        file.sync()


def _clear(files: Files, path: Path, snapshot: SlotSnapshot, problems: _Problems) -> None:
    """Delete spares and segments that the manifest gave up; set aside what is damaged."""
    for each in _removable(snapshot):
        if _kept(each):
            offset = each.header_offset if each.header_problem else each.scan.end
            problems.set_aside(each.path, offset, each.size, frames=each.scan.frames)
        else:
            files.remove(each.path)
    files.sync_folder(path)
