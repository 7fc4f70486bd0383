"""Group commit: when which partitions are made durable (AMB-41).

With nothing in flight a batch is flushed at once, by a worker thread; or, where the policy says
so, a lone small one by the event loop's thread, as long as the disk is about as quick as handing
it over. While a flush runs, what arrives is collected for the next one; it starts when the
running one ends, or beside it once 4 MiB are waiting or the first waiting byte is 5 ms old, so
that one slow sync does not hold up the other topics.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lance_server.log.group import Group
from lance_server.log.partition import Partition
from lance_server.log.segment import Segment
from lance_server.outcome import Outcome
from lance_server.scheduling import Scheduler, Timer
from lance_server.storage.contract import StorageBackend, Write

_log = logging.getLogger(__name__)
_SMOOTHING: Final = 8
"""Flushes over which their usual time is taken."""


@dataclass(frozen=True, slots=True)
class FlushPolicy:
    """When waiting bytes are flushed although another flush is running.

    Attributes:
        max_bytes: as soon as so many bytes wait.
        max_delay: as soon as the first of them has waited so long, in seconds.
        overlap: at most so many flushes at once.
        lone_bytes: the most bytes of a batch that came alone and that the event loop's thread
            flushes itself; 0 is never.
        quick: for how many seconds it may be held up by that, as flushes go lately.
    """

    max_bytes: int = 4 * 1024 * 1024
    max_delay: float = 0.005
    overlap: int = 2
    lone_bytes: int = 0
    quick: float = 0.001


@dataclass(slots=True)
class _Job:
    """One partition's share of a flush, and what came of it."""

    partition: Partition
    group: Group
    writes: Sequence[Write] = ()
    segment: Segment | None = None
    error: OSError | None = None
    done: bool = False

    def prepare(self) -> Sequence[Write]:
        try:
            self.writes = self.partition.prepare(self.group)
        except OSError as error:
            self.error = error
        return self.writes

    def conclude(self, errors: Sequence[OSError | None]) -> None:
        try:
            if self.error is None:
                self.segment = self.partition.conclude(self.group, next(filter(None, errors), None))
        except OSError as error:
            self.error = error
        self.done = True


class Flusher:
    """Decides when partitions are flushed. Belongs to the event loop's thread.

    Args:
        storage: the backend.
        scheduler: the loop and its worker threads.
        policy: when, and by whom.
        clock: tells the seconds that flushes take.

    Attributes:
        flushes: how many flushes were started.
        clock: tells the seconds that flushes take.
    """

    def __init__(
        self,
        storage: StorageBackend,
        scheduler: Scheduler,
        policy: FlushPolicy,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._policy = policy
        self._dirty: dict[Partition, None] = {}
        self._running = 0
        self._considering = False
        self._overdue = False
        self._timer: Timer | None = None
        self._idle: Outcome[None] | None = None
        self._usual = 0.0
        """Seconds that a flush takes, as they go lately."""
        self._alone = False
        """Whether the last turn of the loop brought one batch, and this thread flushed it."""
        self._took_lone = False
        """Whether the first batch of this turn was flushed at once."""
        self._caring = False
        """Whether a worker does what the storage backend wants done between flushes."""
        self.flushes = 0
        self.clock = clock

    def __repr__(self) -> str:
        return f"<Flusher {len(self._dirty)} dirty partitions, {self._running} flushes running>"

    def mark_dirty(self, partition: Partition) -> None:
        """Note that a partition has something to flush.

        The decision is left until everything that has arrived by now was appended.
        """
        if not partition.flushing:
            self._dirty[partition] = None
        self._consider_soon()

    def flush_lone(self) -> None:
        """Make a batch that came alone durable at once, if this thread is to do it.

        Only the first in a turn of the loop, and only as long as batches come alone: of several
        connections that send at the same time, each would wait for the syncs of all others.
        """
        if self._alone and self._is_for_here():
            self._flush_here()
            self._alone, self._took_lone = False, True

    def _consider_soon(self) -> None:
        if not self._considering:
            self._considering = True
            self._scheduler.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._considering = False
        took_lone, self._took_lone = self._took_lone, False
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
            return
        jobs = self._begin()
        self._running += 1
        written = self._scheduler.run("flush", lambda: self._write_all(jobs))
        written.wake(lambda: self._written(jobs, written))

    def _begin(self) -> list[_Job]:
        jobs = [_Job(partition, partition.begin_flush()) for partition in self._dirty]
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
        if not most or self._running or len(self._dirty) != 1 or self._usual >= self._policy.quick:
            return False
        (partition,) = self._dirty
        return partition.has_lone(most)

    def _flush_here(self) -> None:
        jobs = self._begin()
        try:
            self._note_usual(self._write_all(jobs))
        except Exception as error:  # noqa: BLE001 - as a worker's it fails the batches
            self._finish(jobs, error)
        else:
            self._finish(jobs, None)
        self._care()
        if self._dirty:  # not at once: a peer that sends one batch after the other is no recursion
            self._consider_soon()
        self._note_if_idle()

    def _written(self, jobs: Sequence[_Job], written: Outcome[float]) -> None:
        self._running -= 1
        if written.error is None:
            self._note_usual(written.result())
        self._finish(jobs, written.error)
        self._care()
        self._consider()
        self._note_if_idle()

    def _note_usual(self, seconds: float) -> None:
        self._usual += (seconds - self._usual) / _SMOOTHING

    def _care(self) -> None:
        """Have a worker do what the storage backend wants done, one such work at a time."""
        work = None if self._caring else self._storage.pending_work()
        if work is not None:
            self._caring = True
            cared = self._scheduler.run("wal", work)
            cared.wake(lambda: self._cared(cared))

    def _cared(self, cared: Outcome[None]) -> None:
        self._caring = False
        if cared.error is not None:
            _log.error("the write-ahead log could not be given room: %s", cared.error)

    def _write_all(self, jobs: Sequence[_Job]) -> float:
        """Make the groups of several partitions durable together (any thread); return seconds."""
        begun, writes = self.clock(), list[Write]()
        for job in jobs:
            writes += job.prepare()
        errors = self._storage.commit(writes) if writes else []
        taken = 0
        for job in jobs:
            begins, taken = taken, taken + len(job.writes)
            job.conclude(errors[begins:taken])
        return self.clock() - begun

    def _finish(self, jobs: Sequence[_Job], problem: Exception | None) -> None:
        for job in jobs:
            error = job.error
            if error is None and not job.done:
                error = OSError(f"the flush stopped: {problem}")
            try:
                job.partition.finish(job.group, error, job.segment)
            except Exception:  # noqa: BLE001 - it is told, and the other partitions are finished
                _log.exception("%r could not finish a flush", job.partition)
            if job.partition.dirty:
                self._dirty[job.partition] = None

    def _note_if_idle(self) -> None:
        if self._idle is not None and not self._running and not self._dirty:
            self._idle.settle(None)
            self._idle = None

    def when_idle(self) -> Outcome[None]:
        """Return an outcome that is settled when nothing is dirty or in flight."""
        if self._idle is None:
            self._idle = Outcome()
            if not self._running and not self._dirty:
                idle, self._idle = self._idle, None
                idle.settle(None)
                return idle
        return self._idle
