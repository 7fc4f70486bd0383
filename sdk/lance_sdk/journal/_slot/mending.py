"""Bringing a slot in order that is refused otherwise: gaps, and numbers that two segments have."""

from pathlib import Path

from lance_sdk.journal._slot.layout import MANIFEST, WATERMARK
from lance_sdk.journal._slot.segment_list import BASE_FIELD, SegmentFile
from lance_sdk.journal._slot.sequence import SHORT, SequenceAssignment, assign_sequence
from lance_sdk.journal._slot.side_files import NO_FSN, SideFile
from lance_sdk.journal._slot.snapshot import SlotSnapshot, read_manifest, read_segments
from lance_sdk.journal.config import SlotKind
from lance_sdk.journal.files import Files
from lance_sdk.journal.types import Problem
from lance_spec.messages.store_forward import ManifestRecord, SegmentHeader, WatermarkSimple


def part_segments(files: Files, slot: Path, kind: SlotKind) -> list[Problem]:
    """Give segments of the same numbers different ones, the older first; return what was done.

    Which of them the watermark is about is not known, so all of them are sent again. A kill in
    the middle leaves numbers that two segments have, and the same frames.

    Args:
        files: the file system.
        slot: the folder; its lock is held.
        kind: what slot it is.

    Raises:
        OSError: a file cannot be written.
    """
    bearing = [each for each in read_segments(files, slot, kind) if each.width]
    bearing.sort(key=lambda each: (each.created_us, each.claim or 0))
    numbered: list[tuple[SegmentFile, int]] = []
    following = 0
    for each in bearing:
        if each.claim is not None:
            numbered.append((each, max(each.claim, following)))
            following = assign_sequence(each.scan, numbered[-1][1], None).next_fsn
    files.replace(slot / WATERMARK, WatermarkSimple(NO_FSN).encode())
    said = read_manifest(files, slot).record
    ends = numbered[0][1], numbered[-1][1]
    manifest = SideFile.fresh(ManifestRecord, 1 + (said.generation if said else 0), *ends)
    files.replace(slot / MANIFEST, manifest)
    for each, base in reversed(numbered):
        _renumber(files, each, base)
    return [_parted(each, base) for each, base in numbered if each.claim != base]


def _parted(each: SegmentFile, base: int) -> Problem:
    text = (
        f"starts at frame {each.claim}, as an older segment does or goes beyond; its frames "
        f"follow that one's now, from {base} on, and all frames are sent again"
    )
    return Problem("damaged_header", each.path, BASE_FIELD, text)


def _renumber(files: Files, found: SegmentFile, base: int) -> None:
    if found.claim == base:
        return
    file = files.open(found.path, writable=True)
    try:
        file.write(0, SegmentHeader(found.flags, base, found.created_us).encode())
        file.sync()
    finally:
        file.close()


def close_gaps(files: Files, slot: Path, snapshot: SlotSnapshot) -> list[Problem]:
    """Renumber what stands before gaps; return what was lost.

    A kill in the middle leaves a gap elsewhere, and the same frames.

    Args:
        files: the file system.
        slot: the folder; its lock is held.
        snapshot: what it holds.

    Raises:
        OSError: a file cannot be written; the slot still has a gap.
    """
    following = newest = snapshot.next_fsn
    acked = snapshot.acked_fsn
    for (found, base), assignment in zip(
        reversed(snapshot.chain.order), reversed(snapshot.assignments), strict=True
    ):
        shift = following - _held_end(assignment)
        following = base + shift
        if found is snapshot.chain.order[-1][0] and snapshot.active is None:
            newest = following
        if not shift:
            continue
        _renumber(files, found, following)
        if base <= snapshot.acked_fsn < _held_end(assignment):
            acked = snapshot.acked_fsn + shift
    if snapshot.acked_fsn >= 0:
        files.replace(slot / WATERMARK, WatermarkSimple(max(acked, following - 1)).encode())
    said = snapshot.manifest.record
    generation = 1 + (said.generation if said else 0)
    manifest = SideFile.fresh(ManifestRecord, generation, following, newest)
    files.replace(slot / MANIFEST, manifest)
    return [_given_up(slot, lost) for lost in snapshot.gaps]


def _held_end(assignment: SequenceAssignment) -> int:
    """Return the number after the last frame that the segment accounts for."""
    short = [last - first + 1 for hole, first, last in assignment.lost if hole.reason == SHORT]
    return assignment.next_fsn - sum(short)


def _given_up(slot: Path, lost: tuple[int, int]) -> Problem:
    text = "no file holds these frames; they were given up, and those before them renumbered"
    return Problem("missing_frames", slot, 0, text, lost)
