"""Reading a slot: what its files say together, without changing any of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from lance_sdk.journal._chain import Chain, Found, arrange
from lance_sdk.journal._hand_over import compare
from lance_sdk.journal._layout import (
    DUAL_SIZE,
    FIRST_FRAME,
    FSN_FLOOR,
    MANIFEST,
    STATE,
    WATERMARK,
    generation_of,
)
from lance_sdk.journal._place import SHORT, Placement, place
from lance_sdk.journal._scan import Hole, Scan, last_nonzero, scan
from lance_sdk.journal._segment import HAS_MANIFEST
from lance_sdk.journal._sidefile import RecordT, Selected, select, select_watermark, signed
from lance_sdk.journal.config import SlotKind
from lance_sdk.journal.errors import SlotForOthers
from lance_sdk.journal.files import Files
from lance_sdk.journal.types import Problem
from lance_spec.errors import DecodeError
from lance_spec.messages.store_forward import (
    FsnFloorRecord,
    ManifestRecord,
    SegmentHeader,
    SlotStateRecord,
    WatermarkRecord,
)

_TOO_NEW = {"version", "flags", "reserved"}
"""Header fields with which a newer writer would say that its format differs (SF-02)."""


@dataclass(slots=True, kw_only=True)
class Picture:
    """What a slot holds.

    Attributes:
        chain: segments with frames, in order, and those that are given up.
        placements: where the frames of each segment of the chain stand.
        empty: segment files without a frame.
        active: the empty segment that waits for the next frame, if there is one.
        manifest: what the manifest says.
        watermark: what the watermark says.
        floor: what the floor says.
        state: what the last writer of this project left.
        acked_fsn: every frame up to this one is acknowledged.
        next_fsn: number of the next frame.
        generations: numbers in names of segments, also of those that were set aside.
        problems: what is damaged or missing.
        gaps: ranges of frames that are not acknowledged and that no file holds.
        notes: what another writer did with the slot, for people.
        foreign: segments that this project did not write.
        sizes: bytes of each side file that exists, by name.
    """

    chain: Chain
    placements: list[Placement]
    empty: list[Found]
    manifest: Selected[ManifestRecord]
    watermark: Selected[WatermarkRecord]
    floor: Selected[FsnFloorRecord]
    state: Selected[SlotStateRecord]
    generations: set[int]
    sizes: dict[str, int]
    active: Found | None = None
    acked_fsn: int = -1
    next_fsn: int = 0
    problems: list[Problem] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    foreign: set[Path] = field(default_factory=set)

    @property
    def stamps(self) -> tuple[int, int]:
        """When the oldest and the newest segment were created; 0 without one."""
        every = [each for each, _ in self.chain.order] + ([self.active] if self.active else [])
        return (every[0].created_us, every[-1].created_us) if every else (0, 0)

    @property
    def head_base(self) -> int:
        """Number of the oldest frame, or of the next one when there is none."""
        return self.chain.order[0][1] if self.chain.order else self.next_fsn


def look(files: Files, slot: Path, kind: SlotKind) -> Picture:
    """Read a slot.

    Raises:
        SlotUnreadable: it belongs to another protocol, was written by a newer format, or its
            segments contradict each other.
        OSError: a file cannot be read.
    """
    names = files.names(slot)
    _refuse_other_kind(slot, names, kind)
    found = [_segment(files, slot / name) for name in names if name.endswith(kind.suffix)]
    sizes: dict[str, int] = {}
    manifest = _side(files, slot, MANIFEST, ManifestRecord, sizes)
    watermark = _watermark(files, slot, sizes)
    floor = _side(files, slot, FSN_FLOOR, FsnFloorRecord, sizes)
    state = _side(files, slot, STATE, SlotStateRecord, sizes)
    seen = compare(found, manifest.record, watermark.record, floor.record, state.record)
    if not seen.manifest_holds:
        manifest = Selected(None)
    if not seen.watermark_holds:
        watermark = Selected(None)
    acked = signed(watermark.record.fsn) if watermark.record else -1
    chain = arrange(found, manifest.record, acked)
    picture = Picture(
        chain=chain,
        placements=_place_all(chain, manifest.record),
        empty=[each for each in found if not each.width],
        manifest=manifest,
        watermark=watermark,
        floor=floor,
        state=state,
        generations={each for each in map(generation_of, names) if each is not None},
        sizes=sizes,
        notes=seen.notes,
        foreign=seen.foreign,
    )
    _settle(picture, slot)
    return picture


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


def _segment(files: Files, path: Path) -> Found:
    file = files.open(path, writable=False)
    try:
        return _found(path, memoryview(file.read(0, file.size)))
    finally:
        file.close()


def _found(path: Path, view: memoryview) -> Found:
    found = Found(
        path=path,
        generation=generation_of(path.name),
        size=len(view),
        claim=None,
        flags=0,
        created_us=0,
        scan=scan(view) if len(view) > FIRST_FRAME else Scan(),
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


def _place_all(chain: Chain, manifest: ManifestRecord | None) -> list[Placement]:
    if not chain.order:
        return []
    bases = [base for _, base in chain.order]
    behind: list[int | None] = [*bases[1:], None]
    if manifest is not None and manifest.active_base > bases[-1]:
        behind[-1] = manifest.active_base
    return [
        place(each.scan, base, following)
        for (each, base), following in zip(chain.order, behind, strict=True)
    ]


def _settle(picture: Picture, slot: Path) -> None:
    """Decide what is acknowledged and what comes next, and name what is wrong."""
    reached = picture.placements[-1].next_fsn if picture.placements else None
    picture.active = _waiting(picture, reached)
    picture.next_fsn = _next_fsn(picture, reached)
    _settle_acked(picture, slot)
    _name_problems(picture, slot, reached)


def _next_fsn(picture: Picture, reached: int | None) -> int:
    manifest, floor = picture.manifest.record, picture.floor.record
    if picture.active is not None and picture.active.claim is not None:
        return picture.active.claim
    stated = manifest.active_base if manifest else 0
    if reached is not None and not _lost_active(picture):
        return max(reached, stated)
    # Nothing says how far the missing segment went, but no frame was beyond the floor.
    return max(reached or 0, stated, floor.floor if floor else 0)


def _lost_active(picture: Picture) -> bool:
    """Whether the segment that the manifest calls active is not there."""
    manifest = picture.manifest.record
    if manifest is None or picture.active is not None:
        return False
    return not picture.chain.order or picture.chain.order[-1][1] < manifest.active_base


def _waiting(picture: Picture, reached: int | None) -> Found | None:
    """Return the empty segment that was the active one."""
    manifest = picture.manifest.record
    wanted = manifest.active_base if manifest else reached
    if wanted is None or (reached is not None and wanted < reached):
        return None
    fitting = [each for each in picture.empty if each.claim == wanted]
    return max(fitting, key=lambda each: each.generation or 0, default=None)


def _settle_acked(picture: Picture, slot: Path) -> None:
    picture.acked_fsn = picture.head_base - 1
    watermark = picture.watermark.record
    if watermark is None:
        return
    fsn = signed(watermark.fsn)
    if -1 <= fsn < picture.next_fsn:
        picture.acked_fsn = max(picture.acked_fsn, fsn)
        return
    text = (
        f"the watermark says {fsn}, but the last frame is {picture.next_fsn - 1}; it is ignored, "
        f"and frames from {picture.acked_fsn + 1} on are sent again"
    )
    picture.problems.append(Problem("damaged_side_file", slot / WATERMARK, 0, text))


def _name_problems(picture: Picture, slot: Path, reached: int | None) -> None:
    problems = picture.problems
    for name, said in (
        (MANIFEST, picture.manifest),
        (WATERMARK, picture.watermark),
        (FSN_FLOOR, picture.floor),
        (STATE, picture.state),
    ):
        if said.damage:
            problems.append(Problem("damaged_side_file", slot / name, said.offset, said.damage))
    flagged = any(each.flags & HAS_MANIFEST for each, _ in picture.chain.order)
    if flagged and picture.manifest.record is None and not picture.notes:
        text = "there is no valid manifest; it was rebuilt from the segments"
        problems.append(Problem("damaged_side_file", slot / MANIFEST, 0, text))
    _name_gaps(picture, slot, reached)
    for (each, base), placed in zip(picture.chain.order, picture.placements, strict=True):
        problems.extend(_of_segment(each, base, placed, picture))
    _name_missing_files(picture)
    for each in picture.chain.unplaced:
        text = f"{each.header_problem}; nothing else says which numbers its frames have"
        text += f" ({each.scan.frames} can be read)"
        problems.append(Problem("damaged_header", each.path, each.header_offset, text))
    lost_active = _lost_active(picture)
    for each in picture.empty:
        if each.header_problem or (lost_active and each.claim is None):
            text = each.header_problem or "the file is blank"
            text += "; no frame was found in it"
            problems.append(Problem("damaged_header", each.path, each.header_offset, text))
        elif each.scan.residue > each.scan.end:
            problems.append(_torn(each))


def _name_gaps(picture: Picture, slot: Path, reached: int | None) -> None:
    """Name frames that the manifest knows of and no segment holds."""
    manifest, watermark = picture.manifest.record, picture.watermark.record
    if manifest is None:
        return
    acked = signed(watermark.fsn) if watermark else -1
    acked = acked if acked < picture.next_fsn else -1
    held = manifest.head_base if reached is None else reached
    first = manifest.active_base if reached is None else picture.head_base
    for lost in (
        _unacked(manifest.head_base, first - 1, acked),
        _unacked(max(held, first), manifest.active_base - 1, acked),
    ):
        if lost is not None:
            text = "the manifest names frames that no segment holds"
            picture.problems.append(Problem("missing_frames", slot / MANIFEST, 0, text, lost))
    lost = _unacked(max(held, manifest.active_base), picture.next_fsn - 1, acked)
    if lost is not None and _lost_active(picture):
        text = "the last segment is not there; how many frames it had is not known, at most these"
        picture.problems.append(Problem("missing_frames", slot / MANIFEST, 0, text, lost))


def _name_missing_files(picture: Picture) -> None:
    """Find the lost frames that no file accounts for: there a segment file is missing.

    A file with a damaged header, or one that a loss of power left blank or short, accounts for
    what is missing where it stands.
    """
    stated = [each.lost for each in picture.problems if each.path.name == MANIFEST and each.lost]
    missing = [] if _ends_are_there(picture) else stated
    order = picture.chain.order
    for (one, _), placed, (two, _) in zip(order, picture.placements, order[1:], strict=False):
        if _names_are_complete(one, two, picture.generations):
            continue
        for hole, first, last in placed.lost:
            lost = _unacked(first, last, picture.acked_fsn)
            if hole.reason == SHORT and lost is not None:
                missing.append(lost)
    emptied = [each for each in picture.empty if each is not picture.active]
    if not picture.chain.unplaced and not any(each.claim is None for each in emptied):
        claims = [each.claim or 0 for each in emptied]
        picture.gaps = _joined(
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


def _ends_are_there(picture: Picture) -> bool:
    """Whether the oldest and the newest segment are the ones that this project left."""
    state = picture.state.record
    there = {each.created_us for each, _ in picture.chain.order}
    there |= {each.created_us for each in picture.empty if each.claim is not None}
    return state is not None and {state.head_created_us, state.active_created_us} <= there


def _names_are_complete(one: Found, two: Found, generations: set[int]) -> bool:
    """Whether no file between two segments can have been deleted."""
    if one.generation is None or two.generation is None:
        return False
    between = range(one.generation + 1, two.generation)
    return one.generation < two.generation and generations.issuperset(between)


def _of_segment(each: Found, base: int, placed: Placement, picture: Picture) -> list[Problem]:
    problems = []
    if each.claim != base:
        text = each.header_problem or f"base_seq says {each.claim}"
        text += f"; by its neighbours the segment starts at frame {base}, and is read so"
        offset = each.header_offset if each.claim is None else 8
        problems.append(Problem("damaged_header", each.path, offset, text))
    for hole, first, last in placed.lost:
        lost = _unacked(first, last, picture.acked_fsn)
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


def _torn(each: Found) -> Problem:
    text = f"{each.scan.residue - each.scan.end} bytes of a frame that was not finished"
    if each.scan.unsearched:
        text += f"; the last {each.scan.unsearched} were not searched for frames"
    return Problem("torn_tail", each.path, each.scan.end, text)


def _unacked(first: int, last: int, acked: int) -> tuple[int, int] | None:
    first = max(first, acked + 1)
    return (first, last) if first <= last else None
