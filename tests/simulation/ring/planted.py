"""Planted faults of the ring."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.simulation.mutants import Mutant, Patch, Search, always, nothing
from tests.simulation.ring.plan import make_plan
from tests.simulation.ring.run import carry_out

from lance_sdk.journal._ring import appender, ring
from lance_sdk.journal._ring.segment import Segment
from lance_sdk.journal._slot import recovery, storage

RING: Final = Search(make_plan, carry_out, Path(__file__).with_name("matrix.json"))


def _numbers_after(_: Any) -> Callable[..., None]:
    """Return a renumbering that keeps the old numbers in memory unless all of it succeeded."""

    def renumber(_: Any, file: Any, segment: Any, *place: Any) -> None:
        fsn, offset, lock = place
        length = offset - storage.FIRST_FRAME - storage.FRAME_HEADER_SIZE
        crc = storage._crc_of_zeros(length)
        file.write(storage._BASE_SEQ, storage._FOLD.pack(fsn, segment.created_us, crc, length))
        file.sync()
        with lock:
            segment.folded(fsn)

    return renumber


def _numbers_with_holes(right: Any) -> Callable[..., Any]:
    """Return a fold that forgets its new numbers where no holes can be punched."""

    def fold(self: Any, segment: Any, fsn: int, offset: int, lock: Any) -> Any:
        folded = Segment.folded
        if not self._files._holes:
            Segment.folded = lambda *_: None  # type: ignore[method-assign]
        try:
            return right(self, segment, fsn, offset, lock)
        finally:
            Segment.folded = folded  # type: ignore[method-assign]

    return fold


def _sync_twice(right: Any) -> Callable[..., Any]:
    """Return a sync of frames that believes the second attempt."""

    def sync_frames(self: Any, segment: Any) -> None:
        try:
            right(self, segment)
        except OSError:
            right(self, segment)

    return sync_frames


def _one_more(right: Any) -> Callable[..., Any]:
    return lambda self: self.sealed[: len(right(self)) + 1] if self.sealed else []


def _unsynced_promise(right: Any) -> Callable[..., Any]:
    def sync(self: Any, segments: Any, upto: int) -> None:
        right(self, segments[:-1], upto)

    return sync


def _too_early(right: Any) -> Callable[..., Any]:
    """Return a wait for the disk that says yes at once."""

    def wait_durable(self: Any, fsn: int, timeout: float | None) -> None:
        del timeout
        self._state.sync_wanted = max(self._state.sync_wanted, fsn)

    del right
    return wait_durable


def _woken_always(_: Any) -> Callable[..., Any]:
    def wait_for_room(self: Any, room: Any, deadline: float, began: float) -> None:
        state = self._state
        state.wake_reserver()
        state.wake_maintenance()
        left = deadline - state.clock()
        if left <= 0 or not appender.wait_on(room, left):
            raise self.full(state.clock() - began)

    return wait_for_room


def _shared(right: Any) -> Callable[..., Any]:
    def acquire(files: Any, slot: Any) -> Any:
        files._locked.clear()
        return right(files, slot)

    return acquire


RING_MUTANTS: Final = (
    Mutant("a fold that may have happened is taken for not done",
           (Patch(storage.DiskSlot, "_renumber", _numbers_after),), ("fold",)),
    Mutant("without holes a fold forgets its numbers",
           (Patch(storage.DiskSlot, "fold", _numbers_with_holes),), ("fold",), ("no holes",)),
    Mutant("frames whose sync failed count as durable in the next process",
           (Patch(recovery, "_doubtful", always(False)),), ("doubt",)),
    Mutant("the second sync of frames is believed",
           (Patch(storage.DiskSlot, "_sync_frames", _sync_twice),), ("doubt", "any")),
    Mutant("frames are durable before the disk says so",
           (Patch(appender.Appender, "wait_durable", _too_early),), (), ("append", "flush")),
    Mutant("the newest segment is not synced",
           (Patch(storage.DiskSlot, "sync", _unsynced_promise),)),
    Mutant("frames are deleted that nobody acknowledged",
           (Patch(ring.Ring, "trimmable", _one_more),)),
    Mutant("names of a slot are never synced",
           (Patch(storage.DiskSlot, "_sync_folder", nothing),)),
    Mutant("two processes share a slot", (Patch(recovery, "acquire", _shared),), ("any",)),
    Mutant("an append that waits for a full disk never sleeps",
           (Patch(appender.Appender, "_wait_for_room", _woken_always),), ("any",)),
)  # fmt: skip
