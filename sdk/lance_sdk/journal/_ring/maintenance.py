"""Maintenance of the ring: reserving, syncing, trimming, folding."""

from typing import Final

from lance_sdk.journal._ring.segment import Segment
from lance_sdk.journal._ring.shared_state import SharedState
from lance_sdk.journal._slot.storage import FoldFailed
from lance_sdk.journal.config import Durability

_RETRY: Final = 1.0
"""Seconds after which something that the volume refused is tried again."""
_TRIM_MOST: Final = 64
"""Segments deleted under one sync of the watermark."""


class Maintenance:
    """The work of the journal's threads, one step at a time."""

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self._last_sync = state.clock()

    def __repr__(self) -> str:
        return f"<Maintenance of {self._state}>"

    def reserve(self) -> float | None:
        """Prepare the next segment, if one is wanted and allowed; return when to try again."""
        state = self._state
        with state.lock:
            if state.refusing or not state.ring.wants_spare:
                return None
            if not state.ring.has_headroom:
                return None
        try:
            segment = state.slot.reserve()
        except OSError as error:
            with state.lock:
                state.reserve_error = error
                state.room.tell()
            return _RETRY
        with state.lock:
            state.reserve_error = None
            state.ring.spare = segment
            state.room.tell()
        return None

    def maintain(self) -> float | None:
        """Trim, fold and sync what is due; return when to look again."""
        state = self._state
        if state.refusing:
            return None
        if state.sync_wanted > state.ring.durable_fsn:
            self.sync()
        again = self._tidy()
        if state.config.durability is Durability.PERIODIC:
            due = self._periodic_sync()
            again = due if again is None else min(due, again)
        self.sync_sealed()
        return again

    def make_room(self) -> None:
        """Do what lets an append go on, in its own thread, where the journal has none."""
        if self._tidy() is None and self._state.ring.too_many_unsynced:
            self.sync_sealed()
        self.reserve()

    def finish(self) -> None:
        """Sync and trim for the last time."""
        self.sync()
        self._tidy()

    def _periodic_sync(self) -> float:
        state = self._state
        due = self._last_sync + state.config.sync_interval - state.clock()
        if due > 0:
            return due
        self._last_sync = state.clock()
        self.sync()
        return state.config.sync_interval

    def _tidy(self) -> float | None:
        state = self._state
        try:
            while self.trim():
                pass
            self.fold()
        except OSError as error:
            # Nothing is lost: acknowledged segments stay a little longer.
            state.maintenance_error = error
            return _RETRY
        state.maintenance_error = None
        return None

    def trim(self) -> bool:
        """Delete segments of which every frame is acknowledged; return whether there were any."""
        state = self._state
        with state.syncing:
            with state.lock:
                gone = state.ring.trimmable()[:_TRIM_MOST]
            if not gone:
                return False
            state.slot.sync_acks()
            with state.lock:
                left = next((each for each in state.ring if each not in gone), None)
                newest = None if left is None else state.ring.newest
                state.slot.advance(left, newest, state.ring.next_fsn)
            state.slot.delete(gone)
            with state.lock:
                state.ring.drop(gone)
                state.room.tell()
        state.wake_reserver()
        return True

    def fold(self) -> None:
        """Give back acknowledged space inside the oldest segment, when there is enough of it."""
        state = self._state
        with state.syncing:
            with state.lock:
                segment = state.ring.foldable() if state.slot.holes == "on" else None
                acked = state.ring.acked_fsn
                upto = -1 if segment is None else segment.stop - 1
            if segment is None:
                return
            # One frame stays after the fold, so that the segment is never empty.
            fsn = min(acked, segment.stop - 2)
            with segment.window() as window:
                offset, found = segment.offset_of(fsn + 1, window)
            if found != fsn + 1:
                return  # the file ends early; the reader tells
            if segment.unsynced:
                # Where the frames after the fold were lost, those before it would be found again.
                self._sync([segment], upto)
                if state.failure is not None:
                    return
            state.slot.sync_acks()
            try:
                given = state.slot.fold(segment, fsn, offset, state.lock)
            except FoldFailed as error:
                state.fail(error)
                return
            with state.lock:
                state.reclaimed += given
                segment.reclaimed = given
                state.slot.advance(state.ring.oldest, state.ring.newest, state.ring.next_fsn)
                state.room.tell()

    def sync_sealed(self) -> None:
        """Sync sealed segments, so that a machine crash takes the newest frames and no others."""
        state = self._state
        with state.syncing:
            with state.lock:
                sealed = state.ring.unsynced_sealed()
            if sealed:
                self._sync(sealed, sealed[-1].stop - 1)

    def sync(self) -> None:
        """Sync every frame that was appended before the call."""
        state = self._state
        with state.syncing:
            with state.lock:
                upto = state.ring.next_fsn - 1
                segments = [each for each in state.ring if each.unsynced]
            self._sync(segments, upto)

    def _sync(self, segments: list[Segment], upto: int) -> None:
        state = self._state
        with state.lock:
            for each in segments:
                each.unsynced = False
        try:
            if segments:
                state.slot.sync(segments, upto)
        except OSError as error:
            # The kernel may have dropped the pages it could not write: a second sync that
            # succeeds would prove nothing.
            state.fail(error)
            return
        except BaseException:  # Ctrl-C in the middle of it
            with state.lock:
                for each in segments:
                    each.unsynced = True
            raise
        with state.lock:
            state.syncs += bool(segments)
            if state.failure is None:
                state.ring.durable_fsn = max(state.ring.durable_fsn, upto)
            for each in segments:
                if each is not state.ring.active and not each.unsynced:
                    each.release()
            state.room.tell()
            state.synced.tell()
        state.wake_reserver()
