"""Putting frames into the ring, and waiting for room and for the disk."""

from lance_sdk._api.interruptible import Latch, wait_on
from lance_sdk.journal._ring.maintenance import Maintenance
from lance_sdk.journal._ring.segment import Segment
from lance_sdk.journal._ring.shared_state import SharedState
from lance_sdk.journal.errors import JournalFull, NotYetDurable
from lance_spec.checksum import Buffer


class Appender:
    """The producers' side of a journal."""

    def __init__(self, state: SharedState, maintenance: Maintenance) -> None:
        self._state = state
        self._maintenance = maintenance

    def __repr__(self) -> str:
        return f"<Appender of {self._state}>"

    def deadline(self, timeout: float | None) -> float:
        """Return when a wait of ``timeout`` seconds, or of the configured length, ends."""
        state = self._state
        return state.clock() + (state.config.append_timeout if timeout is None else timeout)

    def append(self, payload: Buffer, length: int, timeout: float | None) -> int:
        """Store a frame of a legal length; return its number."""
        state = self._state
        with state.lock:
            if state.refusing:
                raise state.refusal()
            active = state.ring.active
            if active is not None:
                fsn = self._store(active, payload, length)
                if fsn is not None:
                    return fsn
        return self._append_slowly(payload, length, self.deadline(timeout))

    def _broken(self, error: OSError) -> Exception:
        """Take no more frames after a write that failed; the lock is held.

        What it left may look like a frame later: opening the slot again clears that.
        """
        state = self._state
        state.failure = state.failure or error
        state.refusing = True
        state.wake_all()
        return state.refusal()

    def _store(self, active: Segment, payload: Buffer, length: int) -> int | None:
        """Put a frame into the active segment; return None where it does not fit.

        The lock is held. This runs once for each frame: it calls nothing that it need not.
        """
        state = self._state
        ring, slot = state.ring, state.slot
        fsn = ring.next_fsn
        try:
            if fsn >= slot.floor and active.holds(length):
                slot.expect(active, fsn)
            if not active.append(payload, length):
                return None
        except OSError as error:
            raise self._broken(error) from None
        ring.next_fsn = fsn + 1
        now = state.clock()
        if now >= state.lag.due:
            state.lag.appended(fsn, now)
        if state.news.awaited:
            state.news.tell()
        if ring.spare is None and active.end * 2 >= active.size:
            state.wake_reserver()
        return fsn

    def _append_slowly(self, payload: Buffer, length: int, deadline: float) -> int:
        state, began, stalled = self._state, self._state.clock(), False
        while True:
            state.ring.awaited = True
            if not state.threaded:
                self._maintenance.make_room()
            with state.lock:
                if state.refusing:
                    raise state.refusal()
                active = state.ring.active
                if (active is None or not active.holds(length)) and state.ring.spare is not None:
                    try:
                        active = self.rotate()
                    except OSError as error:
                        raise self._broken(error) from None
                fsn = None if active is None else self._store(active, payload, length)
                if fsn is not None:
                    return fsn
                state.stalls += not stalled
                stalled, room = True, state.room.next()
            self._wait_for_room(room, deadline, began)

    def _wait_for_room(self, room: Latch, deadline: float, began: float) -> None:
        state = self._state
        if state.reserve_error is None:  # else it tries again by itself, and tells us each time
            state.wake_reserver()
        state.wake_maintenance()
        left = deadline - state.clock()
        if left <= 0 or not wait_on(room, left):
            with state.lock:
                raise self.full(state.clock() - began)

    def rotate(self) -> Segment:
        """Begin the prepared segment; the lock is held."""
        state = self._state
        assert state.ring.spare is not None, "a spare is reserved before it is needed"
        created_us = state.ring.next_stamp(int(state.wall() * 1_000_000))
        state.slot.begin(state.ring.spare, state.ring.next_fsn, created_us, state.ring.oldest)
        active = state.ring.rotate()
        state.wake_maintenance()
        return active

    def full(self, waited: float) -> JournalFull:
        """Return the error that says what an append is waiting for."""
        state, where = self._state, str(self._state.slot.path or "memory")
        if state.reserve_error is not None:
            return JournalFull("disk", waited, where=where, cause=state.reserve_error)
        if state.ring.has_headroom:
            return JournalFull("reserving", waited, where=where)
        limit, backlog = state.ring.total_bytes, state.ring.backlog_bytes()
        return JournalFull("backlog", waited, where=where, limit=limit, backlog=backlog)

    def wait_durable(self, fsn: int, timeout: float | None) -> None:
        """Wait for a sync that covers ``fsn``; all who wait share one (group commit)."""
        state, deadline = self._state, self.deadline(timeout)
        if not state.threaded:
            self._maintenance.sync()
        while True:
            with state.lock:
                if state.ring.durable_fsn >= fsn:
                    return
                if state.refusing:
                    raise state.refusal()
                state.sync_wanted = max(state.sync_wanted, fsn)
                synced = state.synced.next()
            state.wake_maintenance()
            left = deadline - state.clock()
            if left <= 0 or not wait_on(synced, left):
                raise NotYetDurable(fsn)
