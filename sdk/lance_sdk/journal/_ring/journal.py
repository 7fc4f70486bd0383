"""The journal: what an application's frames go through on their way to a server."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from lance_sdk._api.interruptible import wait_on
from lance_sdk._io import at_fork
from lance_sdk.errors import ClosedError, ForkedError
from lance_sdk.journal._ring.appender import Appender
from lance_sdk.journal._ring.maintenance import Maintenance
from lance_sdk.journal._ring.reader import read
from lance_sdk.journal._ring.shared_state import SharedState
from lance_sdk.journal._ring.workers import Worker
from lance_sdk.journal._slot import recovery
from lance_sdk.journal._slot.recovery import Opened
from lance_sdk.journal.config import Durability, JournalConfig
from lance_sdk.journal.errors import (
    AckOutOfRange,
    FrameTooLarge,
    JournalFailed,
    NotRetained,
)
from lance_sdk.journal.files import Files, RealFiles
from lance_sdk.journal.types import JournalStats, Problem
from lance_spec.checksum import Buffer


def statistics(state: SharedState) -> JournalStats:
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


def _backlog_bytes(state: SharedState) -> int:
    try:
        return state.ring.backlog_bytes()
    except OSError as error:
        state.maintenance_error = error
        return 0


def _backlog_age(state: SharedState) -> float:
    oldest = state.ring.acked_fsn + 1
    age = state.lag.of(oldest, state.clock())
    if age is not None:
        return age
    segment = state.ring.holding(oldest)
    begun = segment.created_us / 1_000_000 if segment else state.wall()
    return max(0.0, state.wall() - begun)


def _last_error(state: SharedState) -> str:
    error = state.failure or state.reserve_error or state.maintenance_error
    return "" if error is None else str(error) or type(error).__name__


_STOP_TIMEOUT: Final = 10.0
"""Seconds that close waits for a worker whose disk does not answer."""


class Journal:
    """A ring of frames between a producer and the network.

    Frames are appended by any number of threads, read in order and acknowledged by one sender.
    What is not acknowledged stays, across restarts when the journal has a path. Every frame gets
    the next *frame sequence number* (FSN); a number is never given to two frames of one slot, as
    long as the disk keeps what was synced (SF-08).

    Use `Journal.open`; close it, or use it in a ``with`` block.
    """

    def __init__(self, state: SharedState, problems: tuple[Problem, ...]) -> None:
        self._state = state
        self._maintenance = Maintenance(state)
        self._appender = Appender(state, self._maintenance)
        self._workers: list[Worker] = []
        self._final: JournalStats | None = None
        self._limit = state.config.frame_limit
        self._sync_each = state.config.durability is Durability.APPEND
        self.problems = problems
        self._files: Files = RealFiles()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        config: JournalConfig | None = None,
        *,
        files: Files | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open the slot at ``path``, or a journal in memory.

        A slot that was not closed in order is recovered: frames that were being written are
        cleared, damage is set aside, and `problems` says what was found.

        Args:
            path: the slot's folder; it is created, and its parents (SF-29). None keeps
                frames in memory.
            config: the settings; None means the defaults.
            files: the file system; tests put others there.
            clock: monotonic seconds.
            wall_clock: seconds since the Unix epoch.

        Raises:
            SlotLocked: another object or process holds the slot.
            SlotUnreadable: the slot cannot be read without guessing; nothing was changed.
            JournalFull: the slot is empty, and the volume has no space for its first segment.
            OSError: the folder cannot be created or read.
        """
        config = config or JournalConfig()
        if path is None:
            opened = recovery.in_memory(config)
        else:
            opened = recovery.on_disk(files or RealFiles(), Path(path), config)
        journal = cls(SharedState(opened, config, clock, wall_clock), opened.problems)
        journal._files = files or RealFiles()
        try:
            journal._begin(opened)
        except BaseException:
            opened.slot.forked()
            raise
        return journal

    def _begin(self, opened: Opened) -> None:
        state = self._state
        if opened.ring.active is None:
            self._maintenance.reserve()
            if opened.ring.spare is not None:
                with state.lock:
                    self._appender.rotate()
            elif not opened.ring.sealed:
                raise self._appender.full(0.0)
        at_fork.register(self)
        if state.slot.path is not None and state.config.background:
            self._start_workers()

    def _start_workers(self) -> None:
        name = f"lance-journal {self._state.slot.path}"
        reserver = Worker(f"{name} reserve", self._maintenance.reserve, self._state.fail)
        maintenance = Worker(f"{name} maintenance", self._maintenance.maintain, self._state.fail)
        self._state.wake_reserver = reserver.wake
        self._state.wake_maintenance = maintenance.wake
        self._state.threaded = True
        self._workers = [reserver, maintenance]
        for each in self._workers:
            each.start()

    def __repr__(self) -> str:
        ring = self._state.ring
        where = self._state.slot.path or "memory"
        state = f", {type(self._state.refusal()).__name__}" if self._state.refusing else ""
        return f"<Journal {where}: acked {ring.acked_fsn}, next {ring.next_fsn}{state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Appending

    def append(self, payload: Buffer, *, timeout: float | None = None) -> int:
        """Store a frame; return its number.

        What the frame survives from then on is the configured `Durability`.

        Args:
            payload: the frame, 1 byte to `JournalConfig.frame_limit`; it is copied.
            timeout: seconds to wait for room, and for the disk in `Durability.APPEND`; None
                means ``append_timeout``, 0 does not wait for room.

        Raises:
            FrameTooLarge: it is empty or too long.
            TypeError: it is not bytes.
            JournalFull: there was no room in time; the error says what is waited for.
            NotYetDurable: it is stored, but was not synced in time (`Durability.APPEND`).
            JournalFailed: the disk refused to keep earlier frames.
            ClosedError: the journal is closed.
        """
        if type(payload) is not bytes:
            payload = _as_memory(payload)
        length = len(payload)
        if not 0 < length <= self._limit:
            raise FrameTooLarge(length, self._limit)
        fsn = self._appender.append(payload, length, timeout)
        if self._sync_each:
            self._appender.wait_durable(fsn, timeout)
        return fsn

    # Durability

    def flush(self, *, timeout: float | None = None) -> None:
        """End a batch: in `Durability.FLUSH`, wait until every frame appended so far is synced.

        In `Durability.APPEND` they are already; in the other levels this does not wait, use
        `sync` to insist.

        Args:
            timeout: seconds to wait; None means ``append_timeout``.

        Raises:
            NotYetDurable: the disk did not confirm in time.
            JournalFailed: the disk refused.
        """
        if self._state.config.durability in (Durability.FLUSH, Durability.APPEND):
            self.sync(timeout=timeout)

    def sync(self, level: Durability = Durability.FLUSH, *, timeout: float | None = None) -> int:
        """Make every frame appended so far as durable as ``level``, whatever was configured.

        Args:
            level: `Durability.MEMORY` returns at once, the others wait for the disk.
            timeout: seconds to wait; None means ``append_timeout``. Without threads the calling
                thread syncs, and the disk decides how long that takes.

        Returns:
            The last frame that is durable.

        Raises:
            NotYetDurable: the disk did not confirm in time.
            JournalFailed: the disk refused.
            ClosedError: the journal is closed.
        """
        state = self._state
        with state.lock:
            if state.refusing:
                raise state.refusal()
            upto = state.ring.next_fsn - 1
        if level is not Durability.MEMORY:
            self._appender.wait_durable(upto, timeout)
        return state.ring.durable_fsn

    def maintain(self) -> None:
        """Trim, sync and prepare what is due, where the journal has no threads of its own."""
        self._maintenance.maintain()
        self._maintenance.reserve()

    # Sending

    def read_from(self, fsn: int) -> Iterator[tuple[int, bytes]]:
        """Yield (number, payload) from frame ``fsn`` on, until the last one there is.

        Numbers that cannot be delivered are left out; `problems` names them. What is yielded
        counts as sent, and may be acknowledged. Call again with the next number to go on, and
        `wait` to wait for it.

        Args:
            fsn: `acked_fsn` + 1 after connecting; at most `next_fsn`.

        Raises:
            NotRetained: the frame was acknowledged, or does not exist.
            FrameDamaged: while iterating, a frame changed since the slot was opened.
            OSError: while iterating, a segment cannot be read.
        """
        state = self._state
        with state.lock:
            state.raise_if_ended()
            first = state.ring.acked_fsn + 1
            if not first <= fsn <= state.ring.next_fsn:
                raise NotRetained(fsn, first, state.ring.next_fsn)
        return read(state, fsn)

    def wait(self, fsn: int, timeout: float) -> bool:
        """Wait until frame ``fsn`` was appended; return whether it was.

        Raises:
            ClosedError: the journal was closed meanwhile.
        """
        state = self._state
        deadline = state.clock() + timeout
        while True:
            with state.lock:
                if state.ring.next_fsn > fsn:
                    return True
                state.raise_if_ended()
                news = state.news.next()
            left = deadline - state.clock()
            if left <= 0 or not wait_on(news, left):
                return state.ring.next_fsn > fsn

    def ack(self, fsn: int) -> None:
        """Note that the server has every frame up to ``fsn``; their space is given back.

        An acknowledgement that says less than an earlier one changes nothing.

        Raises:
            AckOutOfRange: it is negative, or beyond what `read_from` handed out (SF-35).
            ClosedError: the journal is closed.
        """
        state = self._state
        with state.lock:
            state.raise_if_ended()
            ring = state.ring
            if not 0 <= fsn <= ring.sent_fsn:
                raise AckOutOfRange(fsn, ring.sent_fsn)
            if fsn <= ring.acked_fsn:
                return
            assert fsn < ring.next_fsn, "only a frame that is there is acknowledged"
            ring.acked_fsn = fsn
            state.slot.acked(fsn)
            state.lag.acked(fsn)
            garbage = ring.has_garbage(folding=state.slot.holes == "on")
        if garbage:
            self._collect()

    def _collect(self) -> None:
        if self._state.slot.path is None:
            self._maintenance.trim()
        else:
            self._state.wake_maintenance()

    def mark_failed(self, reason: str) -> None:
        """Write ``.failed``: no drainer adopts the slot until somebody removes that file.

        Call it before `close`, so that the slot is never seen unlocked without it.
        """
        self._state.slot.mark_failed(reason)

    # Reading the state

    @property
    def path(self) -> Path | None:
        """The slot's folder, or None for a journal in memory."""
        return self._state.slot.path

    @property
    def files(self) -> Files:
        """The file system that the journal uses; what a transport keeps beside it goes there."""
        return self._files

    @property
    def noted_symbols(self) -> tuple[int, int]:
        """What `note_symbols` kept last, also in an earlier process: a count and a checksum."""
        return self._state.slot.symbols

    def note_symbols(self, count: int, crc: int) -> None:
        """Keep how many symbols of a dictionary frames refer to, and their checksum (SF-04)."""
        with self._state.lock:
            if self._state.slot.symbols != (count, crc):
                self._state.slot.note_symbols(count, crc)

    @property
    def next_fsn(self) -> int:
        """Number that the next frame will get."""
        return self._state.ring.next_fsn

    @property
    def acked_fsn(self) -> int:
        """Every frame up to this number is acknowledged; -1 means none is."""
        return self._state.ring.acked_fsn

    @property
    def durable_fsn(self) -> int:
        """Every frame up to this number survives a machine crash; -1 means none does."""
        return self._state.ring.durable_fsn

    @property
    def backlog_bytes(self) -> int:
        """Payload bytes of the frames that are not acknowledged."""
        return self.stats().backlog_bytes

    @property
    def backlog_age(self) -> float:
        """Seconds since the oldest frame that is not acknowledged was appended; 0 without one."""
        return self.stats().backlog_age

    def stats(self) -> JournalStats:
        """Return every counter; it never raises, also after a failure and after `close`."""
        return self._final or statistics(self._state)

    # Ending

    def close(self) -> JournalStats:
        """Sync what is there, leave the slot in order and unlock it; return the last counters.

        Frames that are not acknowledged stay in a slot on disk, and end with a journal in memory.
        Closing again returns the same counters.

        Raises:
            JournalFailed: the last sync failed, or the disk does not answer. In the second case
                the slot stays locked until the process ends.
        """
        state = self._state
        with state.lock:
            ended = state.ended is not None
            if not ended:
                state.ended = ClosedError("the journal was closed; open it again")
                state.refusing = True
                state.wake_all()
        if ended:
            return self.stats()
        stopped = [each.stop(_STOP_TIMEOUT) for each in self._workers]
        if not all(stopped):
            state.fail(TimeoutError("the disk does not answer"))
            raise JournalFailed(TimeoutError("the disk does not answer"), self.durable_fsn)
        return self._finish()

    def _finish(self) -> JournalStats:
        state = self._state
        at_fork.unregister(self)
        try:
            if state.failure is None:
                self._maintenance.finish()
            self._final = statistics(state)
        finally:
            self._leave()
        if state.failure is not None:
            raise JournalFailed(state.failure, state.ring.durable_fsn)
        return self._final

    def _leave(self) -> None:
        """Let go of the slot, whatever its disk says."""
        state = self._state
        ring = state.ring
        drained = state.failure is None and ring.acked_fsn >= ring.next_fsn - 1
        try:
            state.slot.close(ring.next_fsn, ring.spare, list(ring) if drained else ())
        except OSError as error:
            state.failure = state.failure or error
        for each in state.ring:
            each.release()

    def forked(self) -> None:
        """Refuse use in a forked child, which has neither the lock nor the threads."""
        state = self._state
        state.make_locks()  # the old ones may be held by threads that are not here
        state.ended = ForkedError("the journal was opened before os.fork(); open another slot here")
        state.refusing = True
        state.slot.forked()


def _as_memory(payload: Buffer) -> memoryview:
    try:
        return memoryview(payload).cast("B")
    except TypeError:
        raise TypeError(f"a frame must be bytes, not {type(payload).__name__}") from None
