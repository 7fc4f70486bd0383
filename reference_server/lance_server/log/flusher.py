"""Group commit: when which partitions are made durable (AMB-41).

With nothing in flight a batch is flushed at once, by a worker thread; or, where the policy allows
it, a lone small one by the event loop's thread, as long as the disk is about as quick as handing
it over (`QuickDisk`). While a flush runs, what arrives is collected for the next one; it starts
when the running one ends, or beside it once 4 MiB are waiting or the first waiting byte is 5 ms
old, so that one slow sync does not hold up the other topics.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from lance_server.log.commit_batch import CommitBatch
from lance_server.log.partition import Partition
from lance_server.runtime.completion import Completion, Waiters, wake_all
from lance_server.runtime.disk_backlog import Backlog
from lance_server.runtime.scheduling import Scheduler, Timer
from lance_server.storage.contract import StorageBackend, Write

_log = logging.getLogger(__name__)
_SMOOTHING: Final = 8
"""Flushes over which their usual time is taken."""
_DWELL: Final = 16
"""Small flushes by workers, at least, until the event loop's thread is given them again."""
_STALL: Final = 20
"""How many times too slow one flush must be for the event loop's thread to make no more."""


@dataclass(frozen=True, slots=True)
class FlushPolicy:
    """When waiting bytes are flushed although another flush is running.

    Attributes:
        max_bytes: as soon as so many bytes wait.
        max_delay: as soon as the first of them has waited so long, in seconds.
        overlap: at most so many flushes at once.
        lone_bytes: the most bytes of a batch that came alone and that the event loop's thread
            flushes itself; 0 is never.
        quick: for how many seconds it may be held up by that, as small flushes go lately.
    """

    max_bytes: int = 4 * 1024 * 1024
    max_delay: float = 0.005
    overlap: int = 2
    lone_bytes: int = 0
    quick: float = 0.001


class QuickDisk:
    """Whether small flushes are so quick, lately, that the event loop's thread may make them.

    It stops when they usually take too long, or when one stalls. It begins again when they take
    less than half of that, as workers make them, and not before some were made so.

    Args:
        quick: seconds that a small flush may usually take.

    Attributes:
        is_quick: whether they are.
        usual: seconds that a small flush takes, as they go lately.
        changes: how often it began or stopped.
    """

    __slots__ = ("_kept", "_quick", "changes", "is_quick", "usual")

    def __init__(self, quick: float) -> None:
        self._quick = quick
        self.is_quick = True
        self._kept = 0
        self.usual = 0.0
        self.changes = 0

    def __repr__(self) -> str:
        return f"<QuickDisk {self.is_quick}, {1e6 * self.usual:.0f} µs>"

    def note(self, seconds: float) -> None:
        """Note what a small flush took."""
        self.usual += (seconds - self.usual) / _SMOOTHING
        self._kept += 1
        if self.is_quick:
            changes = self.usual >= self._quick or seconds >= _STALL * self._quick
        else:
            changes = self._kept >= _DWELL and self.usual < self._quick / 2
        if changes:
            self.is_quick = not self.is_quick
            self._kept = 0
            self.changes += 1


_Jobs: TypeAlias = list[tuple[Partition, CommitBatch]]
"""What each partition has in one flush."""


class Flusher:
    """Decides when partitions are flushed. Belongs to the event loop's thread.

    Args:
        storage: the backend.
        scheduler: the loop and its worker threads.
        policy: when, and by whom.
        backlog: counts what is not durable yet.
        clock: tells the seconds that flushes take.

    Attributes:
        flushes: how many flushes were started.
        lone_flushes: those of them that the event loop's thread made itself.
        quick_disk: whether it is to make them, as small flushes go lately.
        clock: tells the seconds that flushes take.
    """

    def __init__(
        self,
        storage: StorageBackend,
        scheduler: Scheduler,
        policy: FlushPolicy,
        backlog: Backlog,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._policy = policy
        self._backlog = backlog
        self._dirty: dict[Partition, None] = {}
        self._running = 0
        self._considering = False
        self._overdue = False
        self._timer: Timer | None = None
        self._idle: Completion[None] | None = None
        self._alone = False
        """Whether the last turn of the loop brought one batch, and this thread flushed it."""
        self._took_lone = False
        """Whether the first batch of this turn was flushed at once."""
        self._caring = False
        """Whether a worker does what the storage backend wants done between flushes."""
        self.flushes = self.lone_flushes = 0
        self.quick_disk = QuickDisk(policy.quick)
        self.clock = clock

    def __repr__(self) -> str:
        return f"<Flusher {len(self._dirty)} dirty partitions, {self._running} flushes running>"

    def mark_dirty(self, partition: Partition) -> None:
        """Note that a partition has something to flush.

        The decision is left until everything that has arrived by now was appended.
        """
        if not partition.flushing:
            self._dirty[partition] = None
        if not self._considering:
            self._consider_soon()

    def flush_lone(self) -> float:
        """Make a batch that came alone durable at once, if this thread is to do it.

        Only the first in a turn of the loop, and only as long as batches come alone: of several
        connections that send at the same time, each would wait for the syncs of all others.

        Returns:
            The seconds that it took.
        """
        if not self._alone or not self._is_for_here():
            return 0.0
        self._alone, self._took_lone = False, True
        return self._flush_here()

    def _consider_soon(self) -> None:
        self._considering = True
        self._scheduler.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._considering = False
        took_lone, self._took_lone = self._took_lone, False
        if took_lone:
            self._care()
        if self._dirty:
            self._consider()
            self._alone = self._alone and not took_lone
        else:
            self._alone = took_lone

    def _consider(self) -> None:
        if not self._dirty:
            return
        if not self._running or (self._running < self._policy.overlap and self._is_due()):
            self._start()
        if self._dirty and self._timer is None and not self._overdue:
            self._timer = self._scheduler.call_later(self._policy.max_delay, self._on_time)

    def _is_due(self) -> bool:
        if self._overdue:
            return True
        if self._backlog.size < self._policy.max_bytes:  # with what is being flushed: at most that
            return False
        waiting = sum(partition.dirty_bytes for partition in self._dirty)
        return waiting >= self._policy.max_bytes

    def _on_time(self) -> None:
        self._timer = None
        self._overdue = True
        self._consider()

    def _start(self) -> None:
        self._alone = self._is_for_here()
        if self._alone:
            self._flush_here()
            self._care()
            return
        jobs = self._begin()
        self._running += 1
        written = self._scheduler.run("flush", lambda: self._write_all(jobs))
        written.wake(lambda: self._written(jobs, written))

    def _begin(self) -> _Jobs:
        jobs = [(partition, partition.begin_flush()) for partition in self._dirty]
        self._dirty.clear()
        self._overdue = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.flushes += 1
        return jobs

    def _is_for_here(self) -> bool:
        """Whether the event loop's thread is to make a lone batch durable itself."""
        most = self._policy.lone_bytes
        if not most or self._running or len(self._dirty) != 1 or not self.quick_disk.is_quick:
            return False
        (partition,) = self._dirty
        return partition.has_lone(most)

    def _flush_here(self) -> float:
        jobs = self._begin()
        self.lone_flushes += 1
        problem: Exception | None = None
        seconds = 0.0
        try:
            seconds = self._write_all(jobs)
            self.quick_disk.note(seconds)
        except Exception as error:  # noqa: BLE001 - as a worker's it fails the batches
            problem = error
        self._finish(jobs, problem)
        # Later: with a peer that sends batch after batch this would recurse.
        if self._dirty and not self._considering:
            self._consider_soon()
        if self._idle is not None:
            self._note_if_idle()
        return seconds

    def _written(self, jobs: _Jobs, written: Completion[float]) -> None:
        self._running -= 1
        if written.error is None:
            self._note_time(jobs, written.result())
        self._finish(jobs, written.error)
        self._care()
        self._consider()
        if self._idle is not None:
            self._note_if_idle()

    def _note_time(self, jobs: _Jobs, seconds: float) -> None:
        """Note what a flush took, if it was like one that this thread may make."""
        if len(jobs) == 1 and len(jobs[0][1].data) <= self._policy.lone_bytes:
            self.quick_disk.note(seconds)

    def _care(self) -> None:
        """Have a worker do what the storage backend wants done, one such work at a time."""
        work = None if self._caring else self._storage.pending_work()
        if work is not None:
            self._caring = True
            cared = self._scheduler.run("wal", work)
            cared.wake(lambda: self._cared(cared))

    def _cared(self, cared: Completion[None]) -> None:
        self._caring = False
        if cared.error is not None:
            _log.error("the write-ahead log could not be given room: %s", cared.error)

    def _write_all(self, jobs: _Jobs) -> float:
        """Make what several partitions have durable together (any thread); return seconds."""
        begun, writes = self.clock(), list[Write]()
        for partition, commit_batch in jobs:
            writes += partition.prepare(commit_batch)
        errors = self._storage.commit(writes) if writes else []
        error, has_failed, taken = None, any(errors), 0
        for partition, commit_batch in jobs:
            if has_failed:
                begins, taken = taken, taken + len(commit_batch.writes)
                error = next(filter(None, errors[begins:taken]), None)
            partition.conclude(commit_batch, error)
        return self.clock() - begun

    def _finish(self, jobs: _Jobs, problem: Exception | None) -> None:
        woken: Waiters = {}  # at the end, and once whoever waits for many of these partitions
        dirty = self._dirty
        for partition, commit_batch in jobs:
            try:
                if waiters := partition.finish(commit_batch, problem):
                    woken |= waiters
            except Exception:  # noqa: BLE001 - it is told, and the other partitions are finished
                _log.exception("%r could not finish a flush", partition)
            if partition.dirty:
                dirty[partition] = None
        wake_all(woken)

    def _note_if_idle(self) -> None:
        if self._idle is not None and not self._running and not self._dirty:
            self._idle.settle(None)
            self._idle = None

    def when_idle(self) -> Completion[None]:
        """Return an outcome that is settled when nothing is dirty or in flight."""
        if self._idle is None:
            self._idle = Completion()
            if not self._running and not self._dirty:
                idle, self._idle = self._idle, None
                idle.settle(None)
                return idle
        return self._idle
