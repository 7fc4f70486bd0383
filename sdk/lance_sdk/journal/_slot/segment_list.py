"""Putting the segments of a slot in order.

The order is what the headers claim, as long as the claims agree with each other and with the
manifest. A header has no checksum; where one single claim disagrees and the files' generations and
the manifest agree on where the segment belongs, that is believed. Anything else that overlaps is
refused: there is no telling which frames came first. A segment without a readable header that
fits nowhere is left out, and said to be.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from lance_sdk.journal._slot.scan import Scan
from lance_sdk.journal._slot.sequence import least_width
from lance_sdk.journal.errors import SegmentsOverlap
from lance_spec.messages.store_forward import ManifestRecord

BASE_FIELD = 8
"""Offset of ``base_seq`` in a segment's header."""


@dataclass(slots=True, kw_only=True)
class SegmentFile:
    """One segment file.

    Attributes:
        path: the file.
        generation: the number in its name, or None in ``sf-initial``.
        size: its bytes.
        claim: the base number its header gives, or None when the header is damaged.
        flags: the header's flags.
        created_us: when it was begun, microseconds since the Unix epoch.
        scan: its frames.
        header_problem: what is wrong with the header; "" when nothing is.
        header_offset: where that is.
        blank: whether the header is all zeros, as where it never reached the disk.
        folded: whether its first frame is what acknowledged ones became: a page of zeros or more.
    """

    path: Path
    generation: int | None
    size: int
    claim: int | None
    flags: int
    created_us: int
    scan: Scan
    header_problem: str = ""
    header_offset: int = 0
    blank: bool = False
    folded: bool = False

    @property
    def width(self) -> int:
        """The fewest numbers its frames take."""
        return least_width(self.scan)


@dataclass(slots=True)
class SegmentList:
    """Segments that hold frames, in order.

    Attributes:
        order: each segment with its base, by base.
        trimmed: segments that the manifest gave up already; their frames are acknowledged.
        unplaced: segments with a damaged header that fit nowhere.
    """

    order: list[tuple[SegmentFile, int]] = field(default_factory=list)
    trimmed: list[SegmentFile] = field(default_factory=list)
    unplaced: list[SegmentFile] = field(default_factory=list)


def order_segments(
    segments: list[SegmentFile], manifest: ManifestRecord | None, acked: int = -1
) -> SegmentList:
    """Put the segments that hold frames in order.

    Args:
        segments: the files.
        manifest: what the manifest says, where it speaks of these files.
        acked: every frame up to this one is acknowledged.

    Raises:
        SegmentsOverlap: two segments claim the same numbers.
    """
    bearing = [each for each in segments if each.width]
    claimed = _by_claim(bearing, manifest, acked)
    if not claimed.unplaced and _agrees(claimed.order, manifest):
        return claimed
    return _by_generation(bearing, segments, manifest, acked) or _with_gaps(claimed)


def _by_claim(
    bearing: list[SegmentFile], manifest: ManifestRecord | None, acked: int
) -> SegmentList:
    # What the manifest gave up is only gone where it is acknowledged, too: another writer may
    # have begun again with the same numbers.
    chain, head = SegmentList(), min(manifest.head_base if manifest else 0, acked + 1)
    for each in bearing:
        if each.claim is None:
            chain.unplaced.append(each)
        elif each.claim + each.width <= head:
            chain.trimmed.append(each)
        else:
            chain.order.append((each, each.claim))
    chain.order.sort(key=lambda numbered: numbered[1])
    return chain


def _agrees(order: list[tuple[SegmentFile, int]], manifest: ManifestRecord | None) -> bool:
    """Whether the segments join without a gap, from the manifest's head to its active one."""
    joined = all(_joins(one, two) for one, two in pairwise(order))
    if manifest is None or not order:
        return joined
    last, base = order[-1]
    # A segment after the active one was begun when the process died before saying so.
    reaches = base >= manifest.active_base or base + last.width == manifest.active_base
    return joined and reaches and order[0][1] <= manifest.head_base


def _joins(one: tuple[SegmentFile, int], two: tuple[SegmentFile, int]) -> bool:
    found, base = one
    room = two[1] - base
    damaged = bool(found.scan.holes) or found.scan.residue > found.scan.end
    return room == found.width or (damaged and room > found.width)


def _by_generation(
    bearing: list[SegmentFile],
    segments: list[SegmentFile],
    manifest: ManifestRecord | None,
    acked: int,
) -> SegmentList | None:
    """Order by generation, if that makes sense of all claims but one.

    Frames that wait by their header's claim are never moved to numbers that are acknowledged.
    Where a header is blank, power was lost, and the manifest may be older than the segments:
    then their claims are not to be doubted.
    """
    if any(each.generation is None or each.blank for each in segments):
        return None
    ordered = sorted(bearing, key=lambda each: each.generation or 0)
    for start in range(len(ordered)):
        numbered = _counted(ordered[start:], manifest)
        wrong = [each for each, base in numbered if each.claim != base]
        if len(wrong) != 1 or not _confirmed(numbered, wrong[0], manifest):
            continue
        right = next(base for each, base in numbered if each is wrong[0])
        if right <= acked < (wrong[0].claim or 0) or _fits_better(wrong[0], numbered, acked):
            continue
        if _flipped(wrong[0].claim, right) and all(each.claim != right for each in segments):
            return SegmentList(numbered, ordered[:start])
    return None


def _counted(
    ordered: list[SegmentFile], manifest: ManifestRecord | None
) -> list[tuple[SegmentFile, int]]:
    first = manifest.head_base if manifest else ordered[0].claim or 0
    numbered: list[tuple[SegmentFile, int]] = []
    for each in ordered:
        numbered.append((each, first))
        first += each.width
    return numbered


def _confirmed(
    numbered: list[tuple[SegmentFile, int]], wrong: SegmentFile, manifest: ManifestRecord | None
) -> bool:
    """Whether something else than the doubtful header says where it belongs."""
    last, base = numbered[-1]
    if manifest is not None:
        return base == manifest.active_base
    return last is not wrong and last.claim == base


def _fits_better(
    doubtful: SegmentFile, numbered: list[tuple[SegmentFile, int]], acked: int
) -> bool:
    """Whether the watermark lies in a segment by its own claim, and otherwise beyond all frames."""
    last, base = numbered[-1]
    claim = doubtful.claim
    return acked >= base + last.width and claim is not None and acked < claim + doubtful.width


def _flipped(claim: int | None, right: int) -> bool:
    """Whether one inverted bit explains the claim; a header without one says nothing."""
    return claim is None or (claim ^ right).bit_count() == 1


def _with_gaps(claimed: SegmentList) -> SegmentList:
    for (one, base), (two, next_base) in pairwise(claimed.order):
        if base + one.width > next_base:
            raise SegmentsOverlap(
                two.path,
                BASE_FIELD,
                f"starts at frame {next_base}, but {one.path.name} holds {base} to "
                f"{base + one.width - 1}; move the file that does not belong here away, or keep "
                "both with `lwp sf repair`: the frames of the older file come first, and all are "
                "sent again",
            )
    return claimed
