"""Closing the gaps of a slot of which segment files are gone for good.

Every reader refuses a slot whose segments do not join (SF client section 6.5). Frames before a gap
get higher numbers, up to the gap's end: they join, and no number rises above what was given out.
"""

from pathlib import Path

from lance_sdk.journal._layout import MANIFEST, WATERMARK
from lance_sdk.journal._picture import Picture
from lance_sdk.journal._place import SHORT, Placement
from lance_sdk.journal._sidefile import SideFile
from lance_sdk.journal.files import Files
from lance_sdk.journal.types import Problem
from lance_spec.messages.store_forward import ManifestRecord, SegmentHeader, WatermarkSimple


def close_gaps(files: Files, slot: Path, picture: Picture) -> list[Problem]:
    """Renumber what stands before gaps; return what was lost.

    A kill in the middle leaves a gap elsewhere, and the same frames.

    Args:
        files: the file system.
        slot: the folder; its lock is held.
        picture: what it holds.

    Raises:
        OSError: a file cannot be written; the slot still has a gap.
    """
    following = newest = picture.next_fsn
    acked = picture.acked_fsn
    for (found, base), placed in zip(
        reversed(picture.chain.order), reversed(picture.placements), strict=True
    ):
        shift = following - _held_end(placed)
        following = base + shift
        if found is picture.chain.order[-1][0] and picture.active is None:
            newest = following
        if not shift:
            continue
        file = files.open(found.path, writable=True)
        try:
            file.write(0, SegmentHeader(found.flags, following, found.created_us).encode())
            file.sync()
        finally:
            file.close()
        if base <= picture.acked_fsn < _held_end(placed):
            acked = picture.acked_fsn + shift
    if picture.acked_fsn >= 0:
        files.replace(slot / WATERMARK, WatermarkSimple(max(acked, following - 1)).encode())
    said = picture.manifest.record
    generation = 1 + (said.generation if said else 0)
    manifest = SideFile.fresh(ManifestRecord, generation, following, newest)
    files.replace(slot / MANIFEST, manifest)
    return [_given_up(slot, lost) for lost in picture.gaps]


def _held_end(placed: Placement) -> int:
    """Return the number after the last frame that the segment accounts for."""
    short = [last - first + 1 for hole, first, last in placed.lost if hole.reason == SHORT]
    return placed.next_fsn - sum(short)


def _given_up(slot: Path, lost: tuple[int, int]) -> Problem:
    text = "no file holds these frames; they were given up, and those before them renumbered"
    return Problem("missing_frames", slot, 0, text, lost)
