"""What every sync store-and-forward sender shares: opening, storing, waiting, closing.

A protocol's sender derives from `ForwardingSender`, builds frames and hands them to `_store`.
"""

import time
import warnings
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from lance_sdk._io.exit import EXIT_BUDGET
from lance_sdk._io.threads import ThreadPump
from lance_sdk._units import shorten
from lance_sdk.errors import ConfigError, DeadlineExceeded
from lance_sdk.journal._engine import Engine, open_engine
from lance_sdk.journal._sender_state import SenderState
from lance_sdk.journal.sender_config import ForwardConfig
from lance_sdk.journal.sender_stats import FramesLost, SenderReport
from lance_sdk.journal.transport import CarrierFactory

if TYPE_CHECKING:
    from lance_sdk._core.outcome import Outcome

Append: TypeAlias = Callable[[float | None], int]
"""Stores one frame within so many seconds (None: as configured, 0: at once) and returns its
number; raises `JournalFull` where there is no room in time."""

OPEN_LIMIT = 3600.0
"""Seconds after which a sync first connect without a budget is given up all the same."""


class Level(Enum):
    """How far a frame has come."""

    STORED = "stored"
    """It is in the journal, and survives the death of this process where that is on disk."""
    SYNCED = "synced"
    """It was synced, and survives a crash of the machine."""
    ACKED = "acked"
    """A server has acknowledged it, durably where that was asked for."""


def checked_level(level: Level | str) -> Level:
    """Return a level that may be given by its name.

    Raises:
        ConfigError: there is none of that name.
    """
    try:
        return Level(level)
    except ValueError:
        known = ", ".join(each.value for each in Level)
        raise ConfigError(
            f"level={shorten(level)}: expected one of {known}; a timeout is given by its name"
        ) from None


class ForwardingSender(SenderState):
    """Base of the sync senders.

    Args:
        config: the settings.
        factory: makes the carrier.
        name: for messages and threads.
    """

    def __init__(self, config: ForwardConfig, factory: CarrierFactory, name: str) -> None:
        super().__init__(config, factory, name)
        self._pump: ThreadPump | None = None

    # Opening and closing

    def open(self) -> Self:
        """Take the slot, recover it, and start sending; a ``with`` block does it by itself.

        Raises:
            SlotLocked: somebody else holds the slot.
            SlotUnreadable: the slot cannot be read without guessing.
            ConnectFailed: no server could be used, and ``initial_connect`` is not ``async``.
            UsageError: it is open already, or was closed.
        """
        self._check_new()
        engine = open_engine(self._settings, self._factory)
        self._engine = engine
        try:
            self._prepared(engine)
            self._pump = ThreadPump(engine.carrier, self._name, **self._settings.pump_options)
            self._pump.count_lost = engine.lost_frames
            engine.carrier.open(time.monotonic())
            self._pump.start()
            self._await_opened(engine, self._pump)
            self._drainers = engine.start_drainers(self._settings, self._factory)
        except BaseException:
            self._release(engine)
            raise
        return self

    def _await_opened(self, engine: Engine, pump: ThreadPump) -> None:
        if self._settings.initial_connect == "async":
            return
        limit = self._settings.reconnect_budget or OPEN_LIMIT
        if not pump.wait(engine.carrier.opened, limit):
            raise DeadlineExceeded(f"{self._name}: no server could be used within {limit:.1f} s")
        if engine.carrier.opened.error is not None:
            raise engine.carrier.opened.error.with_traceback(None)

    def close(self, timeout: float | None = None) -> SenderReport:
        """Wait for acknowledgements, then let go of everything; what is left stays in the slot.

        Args:
            timeout: seconds to wait; None means ``close_timeout``, 0 does not wait.

        Raises:
            LanceError: what halted the sender, unless an error handler or an earlier call has
                told it already; everything is released all the same (SF client section 17).
        """
        if self._report is not None:
            return self._report
        engine = self._opened()
        limit = self._settings.close_timeout if timeout is None else timeout
        try:
            if limit > 0 and self._pump is not None:
                self._wait_acked(engine.journal.next_fsn - 1, limit)
        finally:
            report = self._release(engine)
        untold = engine.untold_failure()
        if untold is not None:
            raise untold.with_traceback(None)
        return report

    def _release(self, engine: Engine) -> SenderReport:
        """Stop every thread, close the slot, and note what is left."""
        try:
            if self._drainers is not None:
                self._drainers.stop()
            if self._pump is not None:
                self._pump.close(0.0)
        finally:
            self._report = engine.release(self._drainers)
        return self._report

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        hurry = kind is not None and not issubclass(kind, Exception)  # Ctrl-C, SystemExit
        try:
            report = self.close(EXIT_BUDGET if hurry else None)
        except Exception:
            if kind is None:
                raise
            return  # the block's own error goes on, and this one was logged
        if kind is None and report.lost_frames:
            raise FramesLost(report)

    def __del__(self) -> None:
        pump = getattr(self, "_pump", None)
        if pump is not None and getattr(self, "_report", None) is None:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=1)
            pump.let_go()

    # Storing

    def _store(self, append: Append, timeout: float | None) -> int:
        """Store a frame and have it sent."""
        engine = self._usable()
        fsn = append(timeout)
        self._wake(engine)
        return fsn

    def _wake(self, engine: Engine) -> None:
        if engine.outbox.idle and self._pump is not None:
            self._pump.wake()

    def flush(self) -> int:
        """End a batch; return the number of the last frame that is stored.

        It never waits for the network; with `Durability.FLUSH` it waits for the disk.

        Raises:
            NotYetDurable: the disk did not confirm in time.
            LanceError: what halted the sender.
        """
        engine = self._usable()
        engine.journal.flush()
        self._wake(engine)
        return engine.journal.next_fsn - 1

    def wait(
        self, level: Level = Level.ACKED, timeout: float | None = None, *, fsn: int | None = None
    ) -> bool:
        """Wait until a frame, and all before it, have come so far.

        Args:
            level: how far.
            timeout: seconds to wait; None means one hour.
            fsn: the frame; None means the last one that is stored.

        Returns:
            Whether they have.

        Raises:
            ConfigError: there is no such level.
            LanceError: what halted the sender.
        """
        engine = self._usable()
        target = engine.journal.next_fsn - 1 if fsn is None else fsn
        limit = OPEN_LIMIT if timeout is None else timeout
        level = checked_level(level)
        if level is Level.STORED:
            return engine.journal.wait(target, limit)
        if level is Level.SYNCED:
            return engine.synced(target, limit)
        done = self._wait_acked(target, limit)
        if not done:
            engine.check()
        return done

    def _wait_acked(self, fsn: int, timeout: float) -> bool:
        assert self._pump is not None
        with self._pump.lock:
            milestone: Outcome = self._opened().outbox.milestone(fsn)
        self._pump.wake()
        return self._pump.wait(milestone, timeout) and milestone.error is None
