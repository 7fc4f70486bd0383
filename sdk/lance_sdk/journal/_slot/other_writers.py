"""Finding out whether another writer used a slot, and which side files of ours hold then.

Published clients share the segments and the lock of a slot, and not all of its side files: one
deletes the segments of a drained slot and leaves our manifest, and later begins again with number
0. What the manifest says is then about other frames. So the slot's state names the oldest and the
newest segment of ours by when they were created. Where neither is there any more, another writer
was (SF-36), and nothing that only we keep is believed.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lance_spec.messages.store_forward import (
    FsnFloorRecord,
    ManifestRecord,
    SlotStateRecord,
    WatermarkRecord,
)

if TYPE_CHECKING:
    from lance_sdk.journal._slot.segment_list import SegmentFile

_HAS_MANIFEST: Final = 1
_NO_FSN: Final = 2**64 - 1


@dataclass(slots=True)
class WriterCheck:
    """What was found out.

    Attributes:
        manifest_holds: whether the manifest is about the segments that are there.
        watermark_holds: whether the watermark is.
        notes: what another writer did, for people.
        foreign: segments that this project did not write.
    """

    manifest_holds: bool = True
    watermark_holds: bool = True
    notes: list[str] = field(default_factory=list)
    foreign: set[Path] = field(default_factory=set)


def check_writers(
    segments: "list[SegmentFile]",
    manifest: ManifestRecord | None,
    watermark: WatermarkRecord | None,
    floor: FsnFloorRecord | None,
    state: SlotStateRecord | None,
) -> WriterCheck:
    """Hold what our side files say against the segments that are there.

    Args:
        segments: every segment file.
        manifest: what the manifest says.
        watermark: what the watermark says.
        floor: what the floor says.
        state: what the state says.
    """
    seen = WriterCheck()
    known = [each for each in segments if state is not None and _is_ours(each, state)]
    seen.foreign = {each.path for each in segments if not _may_be_ours(each, state)}
    if known or not _was_elsewhere(segments, manifest, watermark, state):
        return seen
    seen.manifest_holds = False
    if not segments:
        seen.notes.append("another client emptied the slot")
        return seen
    seen.notes.append("another client used the slot; its segments count, not our manifest")
    # Ours is below the floor; one that the other writer keeps is not ignored without need.
    fsn = -1 if watermark is None or watermark.fsn == _NO_FSN else watermark.fsn
    if state is not None and floor is not None and fsn < floor.floor:
        seen.watermark_holds = False
    return seen


def _is_ours(segment: "SegmentFile", state: SlotStateRecord) -> bool:
    stamps = {state.head_created_us, state.active_created_us} - {0}
    return segment.claim is not None and segment.created_us in stamps


def _may_be_ours(segment: "SegmentFile", state: SlotStateRecord | None) -> bool:
    if segment.claim is None:
        return True
    if state is None or not segment.flags & _HAS_MANIFEST:
        return False
    return segment.created_us <= state.active_created_us


def _was_elsewhere(
    segments: "list[SegmentFile]",
    manifest: ManifestRecord | None,
    watermark: WatermarkRecord | None,
    state: SlotStateRecord | None,
) -> bool:
    """Whether another writer was there since, where no segment proves the contrary."""
    readable = [each for each in segments if each.claim is not None]
    if not segments:
        return manifest is not None and watermark is None
    if not readable:
        return False
    if state is None:
        # A release that kept no state, or another client that keeps a manifest: both flag it.
        lowest = min(readable, key=lambda each: each.claim or 0)
        return not lowest.flags & _HAS_MANIFEST
    if manifest is None:
        return True
    acked = -1 if watermark is None or watermark.fsn == _NO_FSN else watermark.fsn
    return not all(
        _may_be_ours(each, state) and _is_accounted(each, manifest, acked) for each in readable
    )


def _is_accounted(segment: "SegmentFile", manifest: ManifestRecord, acked: int) -> bool:
    """Whether a segment is one that the manifest names, or gave up and power brought back."""
    claim = segment.claim or 0
    if claim < manifest.head_base:
        return claim + segment.width <= min(manifest.head_base, acked + 1)
    return claim <= manifest.active_base
