"""Values that a journal reports about itself."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

ProblemKind: TypeAlias = Literal[
    "torn_tail", "damaged_frame", "missing_frames", "damaged_header", "damaged_side_file"
]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was not as a clean stop leaves it.

    Attributes:
        kind: ``torn_tail`` (an append that did not finish, or lost pages at the end),
            ``damaged_frame``, ``missing_frames`` (a segment is missing or ends early),
            ``damaged_header`` (of a segment) or ``damaged_side_file``.
        path: the file.
        offset: the byte in it where the trouble starts.
        text: what was found and what was done about it.
        lost: first and last number of the un-acknowledged frames that cannot be delivered, or
            None when none is known to be lost.
        unnumbered: frames that can be read and are not delivered, because nothing says which
            numbers they have; beside those of ``lost``.
    """

    kind: ProblemKind
    path: Path
    offset: int
    text: str
    lost: tuple[int, int] | None = None
    unnumbered: int = 0

    def __str__(self) -> str:
        lost = ""
        if self.lost is not None:
            first, last = self.lost
            which = f"frame {first}" if first == last else f"frames {first} to {last}"
            lost = f"; {which} cannot be delivered"
        return f"{self.path} at byte {self.offset}: {self.text}{lost}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotReport:
    """What a slot holds, read without changing a byte.

    Attributes:
        path: the slot's folder.
        frames: number of frames that can be read and are not acknowledged.
        first_fsn: the lowest of them; ``last_fsn + 1`` when there are none.
        last_fsn: the highest number in use; -1 in a slot that was never used.
        acked_fsn: every frame up to this one is acknowledged; -1 means none is.
        segments: names of the segment files that hold frames, oldest first.
        problems: what is damaged or missing.
        failed: the text of ``.failed``, or None when no drainer gave up on the slot.
        on_disk: frames that can be read, acknowledged ones included.
        acknowledged: those of them that are acknowledged.
        damaged: the most frames that are lost: damaged, or in no file.
        foreign: those on disk that stand in segments of another client.
        notes: what another client did with the slot.
    """

    path: Path
    frames: int
    first_fsn: int
    last_fsn: int
    acked_fsn: int
    segments: tuple[str, ...]
    problems: tuple[Problem, ...]
    failed: str | None
    on_disk: int = 0
    acknowledged: int = 0
    damaged: int = 0
    foreign: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStats:
    """Counters of one journal; readable at any time, also after a failure and after close.

    Attributes:
        next_fsn: number that the next frame will get.
        sent_fsn: highest number handed out by `Journal.read_from`; -1 means none.
        acked_fsn: every frame up to this one is acknowledged; -1 means none is.
        durable_fsn: every frame up to this one was synced to disk; -1 means none was.
        backlog_frames: frames that are not acknowledged.
        backlog_bytes: bytes of their payloads.
        backlog_age: seconds since the oldest of them was appended, or since its segment was begun
            where it was found on disk; 0 when there is none.
        resident_bytes: bytes that all segments take.
        segments: number of segment files, a prepared spare included.
        backpressure_stalls: appends that had to wait for room.
        syncs: times that segment data was synced.
        reclaimed_bytes: bytes given back by hole punching.
        holes: whether holes are punched: ``on``, ``off``, or why they cannot be.
        last_disk_error: the latest disk error that is being retried, as text; "" when none is.
    """

    next_fsn: int
    sent_fsn: int
    acked_fsn: int
    durable_fsn: int
    backlog_frames: int
    backlog_bytes: int
    backlog_age: float
    resident_bytes: int
    segments: int
    backpressure_stalls: int
    syncs: int
    reclaimed_bytes: int
    holes: str
    last_disk_error: str


def lost_in(problems: Iterable[Problem]) -> int:
    """Return the most frames that problems say are lost."""
    found = list(problems)
    numbered = sum(each.lost[1] - each.lost[0] + 1 for each in found if each.lost is not None)
    return numbered + sum(each.unnumbered for each in found)


DrainerStep: TypeAlias = Literal[
    "started", "progress", "drained", "empty", "stopped", "skipped", "failed"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainerEvent:
    """What a drainer did with one slot.

    Attributes:
        slot: the slot's folder.
        step: ``started``, ``progress`` (about once a second), ``drained`` (everything that waited
            was acknowledged by a server, or given up by policy), ``empty`` (nothing waited; no
            server was asked), ``stopped`` (its sender was closed), ``skipped`` (somebody holds
            it, it is for others, no server could be reached, the disk does not answer: another
            time it may work; or ``.failed`` is there) or ``failed`` (``.failed`` was written).
        settled_fsn: every frame up to this one is dealt with; -1 before the slot is open.
        last_fsn: the last frame of the slot.
        reason: why it was skipped or failed, as text.
        acked_frames: frames that a server acknowledged in this run.
        lost_frames: the most frames that are lost: damaged, missing, or dropped by policy.
        dead_letters: frames that were refused and kept as dead letters.
    """

    slot: Path
    step: DrainerStep
    settled_fsn: int = -1
    last_fsn: int = -1
    reason: str = ""
    acked_frames: int = 0
    lost_frames: int = 0
    dead_letters: int = 0


DrainerListener: TypeAlias = Callable[[DrainerEvent], object]
