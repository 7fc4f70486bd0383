"""Taking the counters of a journal."""

from lance_sdk.journal._state import State
from lance_sdk.journal.types import JournalStats


def statistics(state: State) -> JournalStats:
    """Return the counters as they are now; what cannot be read counts as nothing."""
    with state.lock:
        ring = state.ring
        frames = ring.backlog_frames()
        return JournalStats(
            next_fsn=ring.next_fsn,
            sent_fsn=ring.sent_fsn,
            acked_fsn=ring.acked_fsn,
            durable_fsn=ring.durable_fsn,
            backlog_frames=frames,
            backlog_bytes=_backlog_bytes(state),
            backlog_age=_backlog_age(state) if frames else 0.0,
            resident_bytes=ring.resident_bytes,
            segments=sum(1 for _ in ring) + (ring.spare is not None),
            backpressure_stalls=state.stalls,
            syncs=state.syncs,
            reclaimed_bytes=state.reclaimed,
            holes=state.slot.holes,
            last_disk_error=_last_error(state),
        )


def _backlog_bytes(state: State) -> int:
    try:
        return state.ring.backlog_bytes()
    except OSError as error:
        state.upkeep_error = error
        return 0


def _backlog_age(state: State) -> float:
    oldest = state.ring.acked_fsn + 1
    age = state.ages.of(oldest, state.clock())
    if age is not None:
        return age
    segment = state.ring.holding(oldest)
    begun = segment.created_us / 1_000_000 if segment else state.wall()
    return max(0.0, state.wall() - begun)


def _last_error(state: State) -> str:
    error = state.failure or state.reserve_error or state.upkeep_error
    return "" if error is None else str(error) or type(error).__name__
