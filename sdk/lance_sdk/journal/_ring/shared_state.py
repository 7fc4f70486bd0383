"""State that producers, the network's thread and the two workers share, and the lock around it."""

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lance_sdk._api.interruptible import Broadcast
from lance_sdk.journal._slot.recovery import Opened
from lance_sdk.journal.config import JournalConfig
from lance_sdk.journal.errors import JournalFailed

_RESOLUTION: Final = 0.05
"""Seconds: frames appended within this time share one mark."""
_MOST: Final = 4096
"""Marks to keep; beyond it, every second one goes, and ages get coarser."""


class LagTracker:
    """Marks of which frame was appended when.

    Attributes:
        due: when an append needs a mark again.
    """

    def __init__(self) -> None:
        self._marks: deque[tuple[int, float]] = deque()
        self._resolution = _RESOLUTION
        self.due = -1.0

    def __repr__(self) -> str:
        return f"<LagTracker {len(self._marks)} marks every {self._resolution} s>"

    def appended(self, fsn: int, now: float) -> None:
        """Note that a frame was appended; without effect before `due`."""
        if now < self.due:
            return
        self._marks.append((fsn, now))
        self.due = now + self._resolution
        if len(self._marks) > _MOST:
            self._marks = deque(list(self._marks)[::2])
            self._resolution *= 2

    def acked(self, fsn: int) -> None:
        """Forget marks that only acknowledged frames use."""
        marks = self._marks
        while len(marks) > 1 and marks[1][0] <= fsn + 1:
            marks.popleft()
        if len(marks) <= 1:
            self._resolution = _RESOLUTION

    def of(self, fsn: int, now: float) -> float | None:
        """Return the age of a frame in seconds, never too young; None when it is older."""
        if not self._marks or fsn < self._marks[0][0]:
            return None
        appended = next(at for first, at in reversed(self._marks) if first <= fsn)
        return max(0.0, now - appended)


if TYPE_CHECKING:
    from lance_sdk.errors import UsageError

Clock = Callable[[], float]


class SharedState:
    """The ring and everything that is decided about it.

    `lock` is held for memory operations only, never while a file is created, synced or deleted.
    `syncing` is held by whoever syncs or deletes files, and is taken before `lock`.

    Attributes:
        lock: guards the ring and every attribute here.
        room: told when an append may go on.
        news: told when a frame was appended.
        syncing: guards the order of syncs, trims and folds.
        synced: told when frames became durable.
        sync_wanted: highest frame that somebody waits to see synced.
        wake_reserver: asks the worker that reserves for a run.
        wake_maintenance: asks the worker that syncs and trims for a run.
        ring: the segments.
        slot: where they are kept.
        lag: when frames were appended.
        refusing: whether nothing may be appended; `refusal` says why.
        threaded: whether the journal has threads of its own.
        failure: why the disk is not trusted any more, or None.
        ended: that the journal was closed or belongs to another process, or None.
        reserve_error: why there is no next segment, until there is one, or None.
        maintenance_error: why segments could not be deleted or folded, until they could, or None.
        stalls: appends that had to wait.
        syncs: times that segment data was synced.
        reclaimed: bytes given back by punching.
    """

    def __init__(self, opened: Opened, config: JournalConfig, clock: Clock, wall: Clock) -> None:
        self.make_locks()
        self.config = config
        self.clock = clock
        self.wall = wall
        self.ring = opened.ring
        self.slot = opened.slot
        self.sync_wanted = -1
        self.wake_reserver: Callable[[], None] = _nobody
        self.wake_maintenance: Callable[[], None] = _nobody
        self.lag = LagTracker()
        self.refusing = False
        self.threaded = False
        self.failure: BaseException | None = None
        self.ended: UsageError | None = None
        self.reserve_error: OSError | None = None
        self.maintenance_error: OSError | None = None
        self.stalls = 0
        self.syncs = 0
        self.reclaimed = 0

    def make_locks(self) -> None:
        """Make the locks; again in a forked child, where nobody else is."""
        self.lock = threading.Lock()
        self.room = Broadcast()
        self.news = Broadcast()
        self.synced = Broadcast()
        self.syncing = threading.Lock()

    def __repr__(self) -> str:
        return f"<SharedState {self.ring}, refusing: {self.refusal!r}>"

    def fail(self, cause: BaseException) -> None:
        """Take no more frames: what was accepted may not be on disk."""
        with self.lock:
            self.failure = self.failure or cause
            self.refusing = True
            self.wake_all()

    def refusal(self) -> Exception:
        """Return the error for a caller who wants to append."""
        if self.ended is not None:
            return type(self.ended)(*self.ended.args)
        assert self.failure is not None
        return JournalFailed(self.failure, self.ring.durable_fsn)

    def raise_if_ended(self) -> None:
        """Refuse a reader; a failed disk does not stop reading.

        Raises:
            ClosedError: the journal was closed.
            ForkedError: it was opened in another process.
        """
        if self.ended is not None:
            raise self.refusal()

    def wake_all(self) -> None:
        """Let every waiting thread look again; the lock is held."""
        self.room.tell()
        self.news.tell()
        self.synced.tell()


def _nobody() -> None:
    """Stand in for a worker where the journal has no threads."""
