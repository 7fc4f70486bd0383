"""The ring as numbers: which segments there are, what is acknowledged, what may go.

Nothing here waits, locks or touches a file.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from lance_sdk.journal._ring.segment import Segment

_UNSYNCED_MOST: Final = 32
"""So many sealed segments may wait to be synced; each keeps two descriptors open."""
_FOLD_LEAST: Final = 64 << 10
"""Fewer acknowledged bytes than this are not worth a hole."""


class Ring:
    """The segments of one journal, oldest first.

    Attributes:
        sealed: segments that take no more frames.
        active: the segment that takes the next frame; None where a new one must be begun.
        spare: a segment that was prepared for the next rotation.
        awaited: whether a frame that does not fit in the active segment waits for it.
        next_fsn: number that the next frame gets.
        acked_fsn: every frame up to this one is acknowledged; -1 means none is.
        durable_fsn: every frame up to this one was synced; -1 means none was.
        sent_fsn: highest number that was handed out; -1 means none was.
        segment_bytes: size of a new segment.
        total_bytes: cap on what all segments take.
    """

    def __init__(
        self,
        segments: list[Segment],
        active: Segment | None,
        *,
        next_fsn: int,
        acked_fsn: int,
        segment_bytes: int,
        total_bytes: int,
    ) -> None:
        self.sealed = segments
        self.active = active
        self.spare: Segment | None = None
        self.awaited = False
        self.next_fsn = next_fsn
        self.acked_fsn = acked_fsn
        self.durable_fsn = acked_fsn
        self.sent_fsn = acked_fsn
        self.segment_bytes = segment_bytes
        self.total_bytes = total_bytes

    def __repr__(self) -> str:
        return (
            f"<Ring acked {self.acked_fsn}, durable {self.durable_fsn}, next {self.next_fsn}; "
            f"{len(self.sealed)} sealed, active {self.active}>"
        )

    def __iter__(self) -> Iterator[Segment]:
        yield from self.sealed
        if self.active is not None:
            yield self.active

    @property
    def resident_bytes(self) -> int:
        """Bytes that all segments take."""
        spare = self.spare.size if self.spare else 0
        return spare + sum(each.size - each.reclaimed for each in self)

    @property
    def has_headroom(self) -> bool:
        """Whether one more segment is allowed."""
        return self.resident_bytes + self.segment_bytes <= self.total_bytes

    @property
    def wants_spare(self) -> bool:
        """Whether a segment should be prepared: the active one is half full, or does not do."""
        if self.spare is not None or self.too_many_unsynced:
            return False
        if self.active is None or self.awaited:
            return True
        return self.active.end * 2 >= self.active.size

    @property
    def oldest(self) -> Segment | None:
        """The oldest segment, or None when there is none."""
        return next(iter(self), None)

    @property
    def newest(self) -> Segment | None:
        """The newest segment, or None when there is none."""
        return self.active or (self.sealed[-1] if self.sealed else None)

    def next_stamp(self, wall_us: int) -> int:
        """Return when a segment that begins now was created: no two of a slot have one stamp."""
        return max((wall_us, 1, *(each.created_us + 1 for each in self)))

    def rotate(self) -> Segment:
        """Seal the active segment and put the spare in its place."""
        assert self.spare is not None, "a spare is reserved before the active segment is full"
        assert self.spare.base == self.next_fsn, "a segment begins with the next number"
        if self.active is not None:
            assert self.active.stop <= self.next_fsn, "numbers only grow"
            self.sealed.append(self.active)
        self.active, self.spare = self.spare, None
        self.awaited = False
        return self.active

    def trimmable(self) -> list[Segment]:
        """Return the sealed segments of which every frame is acknowledged."""
        found = []
        for each in self.sealed:
            if each.stop - 1 > self.acked_fsn:
                break
            found.append(each)
        return found

    def drop(self, segments: list[Segment]) -> None:
        """Forget the oldest segments."""
        assert self.sealed[: len(segments)] == segments, "the oldest segments go first"
        del self.sealed[: len(segments)]

    def holding(self, fsn: int) -> Segment | None:
        """Return the first segment with a frame numbered ``fsn`` or higher."""
        return next((each for each in self if each.stop > fsn), None)

    def unsynced_sealed(self) -> list[Segment]:
        """Return the sealed segments that are not known to be on disk; they are the newest."""
        found = list(takewhile(lambda each: each.unsynced, reversed(self.sealed)))
        return found[::-1]

    @property
    def too_many_unsynced(self) -> bool:
        """Whether the disk is so far behind that open files pile up."""
        return len(self.unsynced_sealed()) >= _UNSYNCED_MOST

    def foldable(self) -> Segment | None:
        """Return the oldest segment, if enough at its beginning is acknowledged.

        How many bytes that is, is estimated from the number of frames.
        """
        oldest = self.oldest
        if oldest is None or oldest.damaged or not oldest.base < self.acked_fsn < oldest.stop:
            return None
        share = (self.acked_fsn - oldest.base) / (oldest.stop - oldest.base)
        garbage = share * (oldest.end - oldest.reclaimed)
        return oldest if garbage >= max(_FOLD_LEAST, oldest.size // 4) else None

    def has_garbage(self, *, folding: bool) -> bool:
        """Whether maintenance has something to delete or, where it may, to fold."""
        if self.sealed and self.sealed[0].stop - 1 <= self.acked_fsn:
            return True
        return folding and self.foldable() is not None

    def backlog_frames(self) -> int:
        """Return how many frames are not acknowledged."""
        return sum(each.frames(self.acked_fsn) for each in self)

    def backlog_bytes(self) -> int:
        """Return the payload bytes of frames that are not acknowledged."""
        waiting = (each for each in self if each.stop - 1 > self.acked_fsn)
        return sum(each.payload_bytes(self.acked_fsn) for each in waiting)
