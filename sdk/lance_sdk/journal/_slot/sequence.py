"""Giving the frames of a damaged segment their numbers.

Frames carry no number: the first has the segment's base, the others count on. A hole whose frames
are not known is therefore given room: the most that could have been there, or what the next
segment's base leaves over where that is less. So no number is ever given to two frames, and each
later opening gives the same numbers.
"""

import math
from dataclasses import dataclass
from typing import Final

from lance_sdk.journal._slot.layout import FRAME_HEADER_SIZE
from lance_sdk.journal._slot.scan import FrameRun, Hole, Scan

SHORT: Final = "the segment ends early"
"""Reason of a hole of no bytes: frames that should have followed are not there."""


@dataclass(frozen=True, slots=True)
class SequenceAssignment:
    """Where the frames of one segment stand in the ring.

    Attributes:
        runs: the runs that hold frames, numbered.
        next_fsn: the number after the segment.
        lost: each hole with the first and last number it may have held; numbers that are
            missing at the segment's end come last, with a hole of no bytes.
    """

    runs: tuple[FrameRun, ...]
    next_fsn: int
    lost: tuple[tuple[Hole, int, int], ...]


def assign_sequence(
    found: Scan, base: int, next_base: int | None, least_next: int = 0
) -> SequenceAssignment:
    """Number the frames of a segment.

    Args:
        found: what was found in it.
        base: number of its first frame.
        next_base: number of the next segment's first frame, or None for the last segment.
        least_next: the least number that can follow the last segment. It is not a bound for holes:
            the segment that will follow begins later, and then the numbers must be the same.
    """
    widths = _widths(found, None if next_base is None else next_base - base)
    runs: list[FrameRun] = []
    lost: list[tuple[Hole, int, int]] = []
    fsn = base
    for number, run in enumerate(found.runs):
        if run.count:
            runs.append(FrameRun(run.offset, run.end, run.count, fsn))
        fsn += run.count
        if number < len(found.holes):
            width = widths[number]
            lost.append((found.holes[number], fsn, fsn + width - 1))
            fsn += width
    following = least_next if next_base is None else next_base
    if following > fsn:
        end = Hole(found.end, found.residue, following - fsn, SHORT)
        lost.append((end, fsn, following - 1))
        fsn = following
    return SequenceAssignment(tuple(runs), fsn, tuple(lost))


def least_width(found: Scan) -> int:
    """Return the fewest numbers that the segment's frames and holes can take."""
    return found.frames + sum(hole.frames or 1 for hole in found.holes)


def _widths(found: Scan, room: int | None) -> list[int]:
    """Return how many numbers each hole takes.

    A hole of unknown frames takes what its bytes could have held, as far as there is room. What
    they could not have held was at the segment's end: so the frames after a hole keep the numbers
    that the first opening gave them, however far the next segment's base is.
    """
    widths = [hole.frames or 1 for hole in found.holes]
    left = math.inf if room is None else room - found.frames - sum(widths)
    for number, hole in enumerate(found.holes):
        if hole.frames is None:
            most = max(1, (hole.end - hole.offset) // (FRAME_HEADER_SIZE + 1))
            more = max(0, int(min(most - 1, left)))
            widths[number] += more
            left -= more
    return widths
