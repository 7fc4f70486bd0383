"""Finding the frames of one segment, also after damage.

A frame is believed only when its checksum fits. Where one does not, three things can have
happened. The append did not finish, and nothing follows: a torn tail. Or the length changed: then
the frame ends where a valid frame follows and its checksum fits with the length that this place
implies, which proves it. Or payload or checksum changed: then the next frame stands where the
length says. If none of these is the case, the first place from which frames follow on counts, and
how many frames lie before it is unknown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from lance_sdk.journal._slot.layout import (
    FIRST_FRAME,
    FRAME_CRC,
    FRAME_HEADER,
    FRAME_HEADER_SIZE,
    MAX_SEGMENT_BYTES,
    crc32c,
)
from lance_spec._native import accelerator

_CHUNK: Final = 1 << 16
_ZEROS: Final = bytes(_CHUNK)
SEARCH_FACTOR: Final = 32
"""A search after damage may checksum so many times the bytes of the segment, and no more."""
_LOOK: Final = 128
"""What a look at one place costs of that; several times as many bytes could be checksummed."""
_PAGE: Final = 4096
_CANDIDATES: Final = 16
"""So many possible next frames are held against the damaged frame's checksum."""


@dataclass(slots=True)
class FrameRun:
    """Frames that follow each other without a gap.

    Attributes:
        offset: where the first one starts.
        end: where the last one ends.
        count: how many there are.
        fsn: number of the first, once it is placed in the ring.
    """

    offset: int
    end: int
    count: int
    fsn: int = 0


@dataclass(frozen=True, slots=True)
class Hole:
    """Bytes between or after runs that are not valid frames.

    Attributes:
        offset: where they start.
        end: where they end.
        frames: how many frames they were, or None when that is unknown.
        reason: what was found.
    """

    offset: int
    end: int
    frames: int | None
    reason: str


@dataclass(slots=True)
class Scan:
    """The frames of one segment.

    Attributes:
        runs: valid frames, in order; one run in an undamaged segment, none in an empty one.
        holes: ``holes[i]`` lies after ``runs[i]``; a hole before the first run has an empty
            run before it.
        end: where the last valid frame ends.
        residue: where the bytes after that end that are not zero stop; ``end`` when all are.
        unsearched: bytes after a hole that were not searched, because it took too long.
    """

    runs: list[FrameRun] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    end: int = FIRST_FRAME
    residue: int = FIRST_FRAME
    unsearched: int = 0

    @property
    def frames(self) -> int:
        """How many valid frames there are."""
        return sum(run.count for run in self.runs)


def scan(view: memoryview) -> Scan:
    """Return the frames of a segment whose header was read."""
    found, budget = Scan(), _Budget(SEARCH_FACTOR * len(view) + _CHUNK)
    offset = min(FIRST_FRAME, len(view))
    while True:
        run = follow(view, offset)
        found.runs.append(run)
        found.end = run.end
        found.residue = last_nonzero(view, run.end)
        if found.residue == run.end:
            return found
        hole = _hole(view, run.end, found.residue, budget)
        if hole is None:
            found.unsearched = budget.left_out
            return found
        found.holes.append(hole)
        if hole.end >= found.residue:
            found.end = found.residue = hole.end
            return found
        offset = hole.end


def follow(view: memoryview, offset: int) -> FrameRun:
    """Return the valid frames that follow each other from ``offset`` on."""
    if accelerator is None:
        count, end = follow_in_python(view, offset)
    else:
        count, end = accelerator.follow_ring(view, offset, crc32c)
    return FrameRun(offset, end, count)


def follow_in_python(view: memoryview, offset: int) -> tuple[int, int]:
    """Return how many valid frames follow each other from ``offset`` on, and where they end."""
    size, count = len(view), 0
    unpack, checksum, header = FRAME_HEADER.unpack_from, crc32c, FRAME_HEADER_SIZE
    last = size - header
    while offset <= last:
        crc, length = unpack(view, offset)
        end = offset + header + length
        if end > size or checksum(view[offset + 4 : end]) != crc:
            break
        offset = end
        count += 1
    return count, offset


def last_nonzero(view: memoryview, start: int) -> int:
    """Return the offset after the last byte from ``start`` on that is not zero."""
    end = len(view)
    while end > start:
        begin = max(start, end - _CHUNK)
        chunk = bytes(view[begin:end])
        if chunk != _ZEROS[: end - begin]:
            return begin + len(chunk.rstrip(b"\0"))
        end = begin
    return start


class _Budget:
    """How much a search may still read; damage must not make opening a slot take for ever."""

    def __init__(self, bytes_left: int) -> None:
        self.bytes_left = bytes_left
        self.left_out = 0

    def spend(self, amount: int) -> bool:
        self.bytes_left -= amount + 1
        return self.bytes_left > 0


def _hole(view: memoryview, offset: int, residue: int, budget: _Budget) -> Hole | None:
    """Return what lies at ``offset`` instead of a frame; None when no frame follows it."""
    candidates = _next_frames(view, offset, residue, budget)
    for each in candidates:
        if budget.spend(each - offset) and _matches_with_end(view, offset, each):
            return Hole(offset, each, 1, "the frame's length is damaged")
    stated = _stated_end(view, offset)
    if stated is not None and _frame_at(view, stated, budget):
        return Hole(offset, stated, 1, "the frame does not match its checksum")
    if candidates:
        return Hole(offset, candidates[0], None, "bytes that are not frames")
    if budget.left_out and (stated is None or residue > stated):
        return Hole(offset, residue, None, "bytes, which were not searched for frames to the end")
    return None


def _stated_end(view: memoryview, offset: int) -> int | None:
    if offset + FRAME_HEADER_SIZE > len(view):
        return None
    _, length = FRAME_HEADER.unpack_from(view, offset)
    end: int = offset + FRAME_HEADER_SIZE + length
    return end if length and end <= len(view) else None


def _frame_at(view: memoryview, offset: int, budget: _Budget) -> bool:
    """Whether a valid, non-empty frame starts at ``offset``."""
    end = _stated_end(view, offset)
    if end is None or not budget.spend(end - offset):
        return False
    crc: int = FRAME_CRC.unpack_from(view, offset)[0]
    return crc32c(view[offset + 4 : end]) == crc


def _next_frames(view: memoryview, offset: int, residue: int, budget: _Budget) -> list[int]:
    """Return the first places after a damaged frame where valid frames start.

    Several, because a payload may hold bytes that look like frames. A checksum is costly where
    the length is wrong, so places that another frame seems to follow come first; of the others
    only those before the first frame so found can matter.
    """
    start, found = offset + FRAME_HEADER_SIZE + 1, list[int]()
    for leading in (True, False):
        stop = found[0] if found else residue
        for place in _plausible(view, start, stop):
            if not budget.spend(_LOOK):
                budget.left_out = 0 if found else residue - place
                break
            if _leads_on(view, place, residue) is leading and _frame_at(view, place, budget):
                found.append(place)
                if len(found) >= _CANDIDATES:
                    break
    return sorted(found)


def _leads_on(view: memoryview, place: int, residue: int) -> bool:
    """Whether a frame that starts here would end before another one, or with the data."""
    end = _stated_end(view, place)
    if end is None:
        return False
    return end - residue <= _PAGE if end >= residue else _stated_end(view, end) is not None


def _plausible(view: memoryview, start: int, stop: int) -> Iterator[int]:
    """Yield the places whose length field could be one: not 0, and its upper bytes are small."""
    size = len(view)
    fourth = size >> 24
    third = 0xFF if fourth else size >> 16
    small = b"[\\x00-\\x%02x][\\x00-\\x%02x]" % (third, fourth)
    pattern = re.compile(b"(?=.{4}(?!\\0{4}).." + small + b")", re.DOTALL)
    for found in pattern.finditer(bytes(view[start : stop + FRAME_HEADER_SIZE])):
        yield start + found.start()


def _matches_with_end(view: memoryview, offset: int, end: int) -> bool:
    """Whether the frame at ``offset`` is intact but for a length that should reach ``end``."""
    length = end - offset - FRAME_HEADER_SIZE
    if not 0 < length <= MAX_SEGMENT_BYTES:
        return False
    crc: int = FRAME_CRC.unpack_from(view, offset)[0]
    return crc32c(FRAME_CRC.pack(length) + bytes(view[offset + FRAME_HEADER_SIZE : end])) == crc
