"""Giving the frames of a damaged segment their numbers.

Frames carry no number: the first has the segment's base, the others count on. A hole whose frames
are not known is therefore given room: what the next segment's base leaves over, or, in the last
segment, more than could have been there, so that no number is ever given to two frames.
"""

from dataclasses import dataclass
from typing import Final

from lance_sdk.journal._layout import FRAME_HEADER_SIZE
from lance_sdk.journal._scan import Hole, Run, Scan

SHORT: Final = "the segment ends early"
"""Reason of a hole of no bytes: frames that should have followed are not there."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the frames of one segment stand in the ring.

    Attributes:
        runs: the runs that hold frames, numbered.
        next_fsn: the number behind the segment.
        lost: each hole with the first and last number it may have held; numbers that are
            missing at the segment's end come last, with a hole of no bytes.
    """

    runs: tuple[Run, ...]
    next_fsn: int
    lost: tuple[tuple[Hole, int, int], ...]


def place(found: Scan, base: int, next_base: int | None) -> Placement:
    """Number the frames of a segment.

    Args:
        found: what was found in it.
        base: number of its first frame.
        next_base: number of the next segment's first frame, or None for the last segment.
    """
    widths = _widths(found, None if next_base is None else next_base - base)
    runs: list[Run] = []
    lost: list[tuple[Hole, int, int]] = []
    fsn = base
    for number, run in enumerate(found.runs):
        if run.count:
            runs.append(Run(run.offset, run.end, run.count, fsn))
        fsn += run.count
        if number < len(found.holes):
            width = widths[number]
            lost.append((found.holes[number], fsn, fsn + width - 1))
            fsn += width
    if next_base is not None and next_base > fsn:
        end = Hole(found.end, found.residue, next_base - fsn, SHORT)
        lost.append((end, fsn, next_base - 1))
        fsn = next_base
    return Placement(tuple(runs), fsn, tuple(lost))


def least_width(found: Scan) -> int:
    """Return the fewest numbers that the segment's frames and holes can take."""
    return found.frames + sum(hole.frames or 1 for hole in found.holes)


def _widths(found: Scan, room: int | None) -> list[int]:
    """Return how many numbers each hole takes."""
    widths = [hole.frames or 1 for hole in found.holes]
    unknown = [number for number, hole in enumerate(found.holes) if hole.frames is None]
    if not unknown:
        return widths
    if room is None:
        for number in unknown:
            hole = found.holes[number]
            widths[number] = max(1, (hole.end - hole.offset) // (FRAME_HEADER_SIZE + 1))
    else:
        widths[unknown[0]] += max(0, room - found.frames - sum(widths))
    return widths
