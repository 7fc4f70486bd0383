"""Reading a slot: what its files say together, without changing any of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from lance_sdk.journal._ring.segment import HAS_MANIFEST
from lance_sdk.journal._slot.layout import (
    DUAL_SIZE,
    FIRST_FRAME,
    FRAME_HEADER,
    FRAME_HEADER_SIZE,
    FSN_FLOOR,
    MANIFEST,
    STATE,
    WATERMARK,
    generation_of,
)
from lance_sdk.journal._slot.other_writers import check_writers
from lance_sdk.journal._slot.scan import Hole, Scan, last_nonzero, scan
from lance_sdk.journal._slot.segment_list import SegmentFile, SegmentList, order_segments
from lance_sdk.journal._slot.sequence import SHORT, SequenceAssignment, assign_sequence
from lance_sdk.journal._slot.side_files import RecordT, Selected, select, select_watermark, signed
from lance_sdk.journal.config import SlotKind
from lance_sdk.journal.errors import SlotForOthers
from lance_sdk.journal.files import Files
from lance_sdk.journal.types import Problem, lost_in
from lance_spec.errors import DecodeError
from lance_spec.messages.store_forward import (
    FsnFloorRecord,
    ManifestRecord,
    SegmentHeader,
    SlotStateRecord,
    WatermarkRecord,
)

_PAGE = 4096
"""Fewer bytes are not given back (see `DiskSlot.fold`)."""
_TOO_NEW = {"version", "flags", "reserved"}
"""Header fields with which a newer writer would say that its format differs (SF-02)."""


@dataclass(slots=True, kw_only=True)
class SlotSnapshot:
    """What a slot holds.

    Attributes:
        chain: segments with frames, in order, and those that are given up.
        assignments: where the frames of each segment of the chain stand.
        empty: segment files without a frame.
        active: the empty segment that waits for the next frame, if there is one.
        manifest: what the manifest says.
        watermark: what the watermark says.
        floor: what the floor says.
        state: what the last writer of this project left.
        acked_fsn: every frame up to this one is acknowledged.
        stated_fsn: what the watermark says, whether or not that is believed.
        next_fsn: number of the next frame.
        generations: numbers in names of segments, also of those that were set aside.
        problems: what is damaged or missing.
        gaps: ranges of frames that are not acknowledged and that no file holds.
        notes: what another writer did with the slot, for people.
        foreign: segments that this project did not write.
        sizes: bytes of each side file that exists, by name.
        symbols: what the slot's state notes of the dictionary; nothing where another client was
            that keeps one, too, or none of our frames is left.
    """

    chain: SegmentList
    assignments: list[SequenceAssignment]
    empty: list[SegmentFile]
    manifest: Selected[ManifestRecord]
    watermark: Selected[WatermarkRecord]
    floor: Selected[FsnFloorRecord]
    state: Selected[SlotStateRecord]
    generations: set[int]
    sizes: dict[str, int]
    active: SegmentFile | None = None
    acked_fsn: int = -1
    stated_fsn: int = -1
    next_fsn: int = 0
    problems: list[Problem] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    foreign: set[Path] = field(default_factory=set)
    symbols: tuple[int, int] = (0, 0)

    @property
    def stamps(self) -> tuple[int, int]:
        """When the oldest and the newest segment were created; 0 without one."""
        every = [each for each, _ in self.chain.order] + ([self.active] if self.active else [])
        return (every[0].created_us, every[-1].created_us) if every else (0, 0)

    @property
    def head_base(self) -> int:
        """Number of the oldest frame, or of the next one when there is none."""
        return self.chain.order[0][1] if self.chain.order else self.next_fsn


def read_slot(files: Files, slot: Path, kind: SlotKind) -> SlotSnapshot:
    """Read a slot.

    Raises:
        SlotUnreadable: it belongs to another protocol, was written by a newer format, or its
            segments contradict each other.
        OSError: a file cannot be read.
    """
    names = files.names(slot)
    _refuse_other_kind(slot, names, kind)
    found = read_segments(files, slot, kind)
    sizes: dict[str, int] = {}
    manifest = _side(files, slot, MANIFEST, ManifestRecord, sizes)
    watermark = _watermark(files, slot, sizes)
    floor = _side(files, slot, FSN_FLOOR, FsnFloorRecord, sizes)
    state = _side(files, slot, STATE, SlotStateRecord, sizes)
    stated = signed(watermark.record.fsn) if watermark.record else -1
    seen = check_writers(found, manifest.record, watermark.record, floor.record, state.record)
    if not seen.manifest_holds:
        manifest = Selected(None)
    if not seen.watermark_holds:
        watermark = Selected(None)
    acked = signed(watermark.record.fsn) if watermark.record else -1
    chain = order_segments(found, manifest.record, acked)
    snapshot = SlotSnapshot(
        chain=chain,
        assignments=_place_all(chain, manifest.record),
        empty=[each for each in found if not each.width],
        manifest=manifest,
        stated_fsn=stated,
        watermark=watermark,
        floor=floor,
        state=state,
        generations={each for each in map(generation_of, names) if each is not None},
        sizes=sizes,
        notes=seen.notes,
        foreign=seen.foreign,
    )
    if state.record and seen.manifest_holds and sizes.get(WATERMARK) != DUAL_SIZE:
        snapshot.symbols = state.record.symbols, state.record.symbols_crc
    _settle(snapshot, slot)
    return snapshot


def read_segments(files: Files, slot: Path, kind: SlotKind) -> list[SegmentFile]:
    """Read every segment file of a slot, each by itself."""
    return [
        _segment(files, slot / name) for name in files.names(slot) if name.endswith(kind.suffix)
    ]


def read_manifest(files: Files, slot: Path) -> Selected[ManifestRecord]:
    """Read the manifest alone."""
    return _side(files, slot, MANIFEST, ManifestRecord, {})


def _refuse_other_kind(slot: Path, names: list[str], kind: SlotKind) -> None:
    for other in SlotKind:
        strange = [name for name in names if name.endswith(other.suffix)]
        if other is not kind and strange:
            raise SlotForOthers(
                slot / strange[0],
                0,
                f"this is a slot of kind {other.name}, not {kind.name} (SF-31); "
                f"open it with kind=SlotKind.{other.name}, or use another folder",
            )


def _segment(files: Files, path: Path) -> SegmentFile:
    file = files.open(path, writable=False)
    try:
        return _found(path, memoryview(file.read(0, file.size)))
    finally:
        file.close()


def _found(path: Path, view: memoryview) -> SegmentFile:
    found = SegmentFile(
        path=path,
        generation=generation_of(path.name),
        size=len(view),
        claim=None,
        flags=0,
        created_us=0,
        scan=scan(view) if len(view) > FIRST_FRAME else Scan(),
        folded=_is_folded(view),
    )
    try:
        header = SegmentHeader.decode(view[:FIRST_FRAME])
    except DecodeError as error:
        if error.field in _TOO_NEW and len(view) >= FIRST_FRAME:
            raise SlotForOthers(
                path,
                error.offset,
                f"{error}; a newer client may have written it, read it with that",
            ) from None
        found.blank = not any(view[:FIRST_FRAME])
        if last_nonzero(view, 0):
            found.header_problem, found.header_offset = str(error), error.offset
        return found
    found.claim, found.flags, found.created_us = header.base_seq, header.flags, header.created_us
    return found


def _is_folded(view: memoryview) -> bool:
    start = FIRST_FRAME + FRAME_HEADER_SIZE
    if len(view) < start:
        return False
    _, length = FRAME_HEADER.unpack_from(view, FIRST_FRAME)
    return length >= _PAGE - start and last_nonzero(view[: start + length], start) == start


def _side(
    files: Files, slot: Path, name: str, kind: type[RecordT], sizes: dict[str, int]
) -> Selected[RecordT]:
    data = _content(files, slot / name, sizes)
    return Selected(None) if data is None else select(data, kind)


def _watermark(files: Files, slot: Path, sizes: dict[str, int]) -> Selected[WatermarkRecord]:
    data = _content(files, slot / WATERMARK, sizes)
    return Selected(None) if data is None else select_watermark(data)


def _content(files: Files, path: Path, sizes: dict[str, int]) -> bytes | None:
    try:
        data = files.read(path, DUAL_SIZE + 1)
    except FileNotFoundError:
        return None
    sizes[path.name] = len(data)
    return data


def _place_all(chain: SegmentList, manifest: ManifestRecord | None) -> list[SequenceAssignment]:
    if not chain.order:
        return []
    bases = [base for _, base in chain.order]
    least = manifest.active_base if manifest is not None else 0
    return [
        assign_sequence(each.scan, base, following, least)
        for (each, base), following in zip(chain.order, [*bases[1:], None], strict=True)
    ]


def _settle(snapshot: SlotSnapshot, slot: Path) -> None:
    """Decide what is acknowledged and what comes next, and name what is wrong."""
    reached = snapshot.assignments[-1].next_fsn if snapshot.assignments else None
    snapshot.active = _waiting(snapshot, reached)
    snapshot.next_fsn = _next_fsn(snapshot, reached)
    _settle_acked(snapshot, slot)
    _name_problems(snapshot, slot, reached)


def _next_fsn(snapshot: SlotSnapshot, reached: int | None) -> int:
    manifest, floor = snapshot.manifest.record, snapshot.floor.record
    if snapshot.active is not None and snapshot.active.claim is not None:
        return snapshot.active.claim
    stated = manifest.active_base if manifest else 0
    if reached is not None and not _lost_active(snapshot):
        return max(reached, stated)
    # Nothing says how far the missing segment went, but no frame was beyond the floor.
    return max(reached or 0, stated, floor.floor if floor else 0)


def _lost_active(snapshot: SlotSnapshot) -> bool:
    """Whether the segment that the manifest calls active is not there.

    The state of a slot of which every segment was given up names none: then none is missing.
    """
    manifest, state = snapshot.manifest.record, snapshot.state.record
    if manifest is None or snapshot.active is not None:
        return False
    if state is not None and not (state.head_created_us or state.active_created_us):
        return False
    return not snapshot.chain.order or snapshot.chain.order[-1][1] < manifest.active_base


def _waiting(snapshot: SlotSnapshot, reached: int | None) -> SegmentFile | None:
    """Return the empty segment that was the active one."""
    manifest = snapshot.manifest.record
    wanted = manifest.active_base if manifest else reached
    if wanted is None or (reached is not None and wanted < reached):
        return None
    fitting = [each for each in snapshot.empty if each.claim == wanted]
    return max(fitting, key=lambda each: each.generation or 0, default=None)


def _begins_folded(snapshot: SlotSnapshot) -> bool:
    return bool(snapshot.chain.order) and snapshot.chain.order[0][0].folded


def _settle_acked(snapshot: SlotSnapshot, slot: Path) -> None:
    snapshot.acked_fsn = snapshot.head_base - 1
    watermark = snapshot.watermark.record
    covers = watermark is not None and signed(watermark.fsn) < snapshot.next_fsn
    if not covers and snapshot.head_base > 0 and _begins_folded(snapshot):
        snapshot.acked_fsn = snapshot.head_base  # acknowledged, whatever became of the watermark
    if watermark is None:
        return
    fsn = signed(watermark.fsn)
    if -1 <= fsn < snapshot.next_fsn:
        snapshot.acked_fsn = max(snapshot.acked_fsn, fsn)
        return
    text = (
        f"the watermark says {fsn}, but the last frame is {snapshot.next_fsn - 1}; it is ignored, "
        f"and frames from {snapshot.acked_fsn + 1} on are sent again"
    )
    snapshot.problems.append(Problem("damaged_side_file", slot / WATERMARK, 0, text))


def _name_problems(snapshot: SlotSnapshot, slot: Path, reached: int | None) -> None:
    problems = snapshot.problems
    for name, said in (
        (MANIFEST, snapshot.manifest),
        (WATERMARK, snapshot.watermark),
        (FSN_FLOOR, snapshot.floor),
        (STATE, snapshot.state),
    ):
        if said.damage:
            problems.append(Problem("damaged_side_file", slot / name, said.offset, said.damage))
    flagged = any(each.flags & HAS_MANIFEST for each, _ in snapshot.chain.order)
    if flagged and snapshot.manifest.record is None and not snapshot.notes:
        text = "there is no valid manifest; it was rebuilt from the segments"
        problems.append(Problem("damaged_side_file", slot / MANIFEST, 0, text))
    _name_gaps(snapshot, slot, reached)
    for (each, base), assignment in zip(snapshot.chain.order, snapshot.assignments, strict=True):
        problems.extend(_of_segment(each, base, assignment, snapshot))
    _name_missing_files(snapshot)
    accounted = lost_in(problems)
    for each in snapshot.chain.unplaced:
        frames = each.scan.frames
        text = f"{each.header_problem}; nothing else says which numbers its frames have"
        text += f" ({frames} can be read)"
        more = max(0, frames - accounted)
        accounted -= frames - more
        problem = Problem("damaged_header", each.path, each.header_offset, text, unnumbered=more)
        problems.append(problem)
    lost_active = _lost_active(snapshot)
    for each in snapshot.empty:
        if each.header_problem or (lost_active and each.claim is None):
            text = each.header_problem or "the file is blank"
            text += "; no frame was found in it"
            problems.append(Problem("damaged_header", each.path, each.header_offset, text))
        elif each.scan.residue > each.scan.end:
            problems.append(_torn(each))


def _name_gaps(snapshot: SlotSnapshot, slot: Path, reached: int | None) -> None:
    """Name frames that the manifest knows of and no segment holds."""
    manifest, watermark = snapshot.manifest.record, snapshot.watermark.record
    if manifest is None:
        return
    acked = signed(watermark.fsn) if watermark else -1
    acked = acked if acked < snapshot.next_fsn else -1
    held = manifest.head_base if reached is None else reached
    first = manifest.active_base if reached is None else snapshot.head_base
    for lost in (
        _unacked(manifest.head_base, first - 1, acked),
        _unacked(max(held, first), manifest.active_base - 1, acked),
    ):
        if lost is not None:
            text = "the manifest names frames that no segment holds"
            snapshot.problems.append(Problem("missing_frames", slot / MANIFEST, 0, text, lost))
    lost = _unacked(max(held, manifest.active_base), snapshot.next_fsn - 1, acked)
    if lost is not None and _lost_active(snapshot) and _has_lost_frames(snapshot):
        text = "the last segment is not there; how many frames it had is not known, at most these"
        snapshot.problems.append(Problem("missing_frames", slot / MANIFEST, 0, text, lost))


def _name_missing_files(snapshot: SlotSnapshot) -> None:
    """Find the lost frames that no file accounts for: there a segment file is missing.

    A file with a damaged header, or one that a loss of power left blank or short, accounts for
    what is missing where it stands.
    """
    stated = [each.lost for each in snapshot.problems if each.path.name == MANIFEST and each.lost]
    missing = [] if _ends_are_there(snapshot) else stated
    order = snapshot.chain.order
    for (one, _), assignment, (two, _) in zip(order, snapshot.assignments, order[1:], strict=False):
        if _names_are_complete(one, two, snapshot.generations):
            continue
        for hole, first, last in assignment.lost:
            lost = _unacked(first, last, snapshot.acked_fsn)
            if hole.reason == SHORT and lost is not None:
                missing.append(lost)
    emptied = [each for each in snapshot.empty if each is not snapshot.active]
    if not snapshot.chain.unplaced and not any(each.claim is None for each in emptied):
        claims = [each.claim or 0 for each in emptied]
        snapshot.gaps = _joined(
            (first, last)
            for first, last in missing
            if not any(first <= claim <= last for claim in claims)
        )


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges in order, those that follow each other as one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and joined[-1][1] + 1 >= first:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _ends_are_there(snapshot: SlotSnapshot) -> bool:
    """Whether the oldest and the newest segment are the ones that this project left."""
    state, chain = snapshot.state.record, snapshot.chain
    readable = [each for each in snapshot.empty if each.claim is not None]
    bearing = [each for each, _ in chain.order]
    there = {each.created_us for each in (*bearing, *chain.trimmed, *readable)}
    return state is not None and {state.head_created_us, state.active_created_us} - {0} <= there


def _has_lost_frames(snapshot: SlotSnapshot) -> bool:
    """Whether the segment that is not there may have held frames that were promised.

    The state names a segment before a frame in it counts as synced, and the name of its file is
    on disk before that.
    """
    return not _ends_are_there(snapshot) or any(each.claim is None for each in snapshot.empty)


def _names_are_complete(one: SegmentFile, two: SegmentFile, generations: set[int]) -> bool:
    """Whether no file between two segments can have been deleted."""
    if one.generation is None or two.generation is None:
        return False
    if one.generation > two.generation == 1:
        return True  # it had number 0, and got another (SF-40)
    between = range(one.generation + 1, two.generation)
    return one.generation < two.generation and generations.issuperset(between)


def _of_segment(
    each: SegmentFile, base: int, assignment: SequenceAssignment, snapshot: SlotSnapshot
) -> list[Problem]:
    problems = []
    if each.claim != base:
        text = each.header_problem or f"base_seq says {each.claim}"
        text += f"; by its neighbours the segment starts at frame {base}, and is read so"
        offset = each.header_offset if each.claim is None else 8
        problems.append(Problem("damaged_header", each.path, offset, text))
    for hole, first, last in assignment.lost:
        lost = _unacked(first, last, snapshot.acked_fsn)
        if lost is not None:
            problems.append(_of_hole(each.path, hole, lost))
    if each.scan.residue > each.scan.end:
        problems.append(_torn(each))
    return problems


def _of_hole(path: Path, hole: Hole, lost: tuple[int, int]) -> Problem:
    if hole.reason == SHORT:
        return Problem("missing_frames", path, hole.offset, hole.reason, lost)
    text = hole.reason
    if hole.frames is None:
        text = f"{hole.end - hole.offset} {text}; how many they were is not known, at most these"
    return Problem("damaged_frame", path, hole.offset, text, lost)


def _torn(each: SegmentFile) -> Problem:
    text = f"{each.scan.residue - each.scan.end} bytes of a frame that was not finished"
    if each.scan.unsearched:
        text += f"; the last {each.scan.unsearched} were not searched for frames"
    return Problem("torn_tail", each.path, each.scan.end, text)


def _unacked(first: int, last: int, acked: int) -> tuple[int, int] | None:
    first = max(first, acked + 1)
    return (first, last) if first <= last else None
