"""Base of the sync store-and-forward senders: opening, storing, waiting, closing.

A protocol's sender derives from `ForwardingSender`, builds frames and hands them to `_store`.
"""

import time
import warnings
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_sdk._api.with_statements import OpenedByWith
from lance_sdk._io.at_exit import leaving_time, warn_of_lost_block
from lance_sdk._io.threads.thread_driver import ThreadDriver
from lance_sdk.errors import ConfigError, DeadlineExceeded
from lance_sdk.journal._sending.base import SenderState
from lance_sdk.journal._sending.config import ForwardConfig
from lance_sdk.journal._sending.core import SenderCore, open_core
from lance_sdk.journal.drainers import start_drainers
from lance_sdk.journal.errors import JournalFull
from lance_sdk.journal.sender_stats import FramesLost, SenderReport
from lance_sdk.journal.transport import TransportFactory

if TYPE_CHECKING:
    from lance_sdk._protocol.completion import Completion

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


class ForwardingSender(SenderState, OpenedByWith):
    """Base of the sync senders.

    Args:
        config: the settings.
        factory: makes the transport.
        name: for messages and threads.
    """

    def __init__(self, config: ForwardConfig, factory: TransportFactory, name: str) -> None:
        super().__init__(config, factory, name)
        self._driver: ThreadDriver | None = None

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
        core = open_core(self._settings, self._factory)
        self._core = core
        try:
            self._prepared(core)
            self._driver = ThreadDriver(core.transport, self._name, **self._settings.driver_options)
            core.attend(self._driver)
            core.transport.open(time.monotonic())
            self._driver.start()
            self._await_opened(core, self._driver)
            start_drainers(core, self._settings, self._factory)
        except BaseException:
            self._release(core)
            raise
        return self

    def _await_opened(self, core: SenderCore, driver: ThreadDriver) -> None:
        if self._settings.initial_connect == "async":
            return
        limit = self._settings.reconnect_budget or OPEN_LIMIT
        if not driver.wait(core.transport.opened, limit):
            raise DeadlineExceeded(f"{self._name}: no server could be used within {limit:.1f} s")
        if core.transport.opened.error is not None:
            raise core.transport.opened.error.with_traceback(None)

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
        core = self._opened()
        limit = self._settings.close_timeout if timeout is None else timeout
        try:
            if limit > 0 and self._driver is not None:
                done = self._wait_acked(core.journal.next_fsn - 1, limit)
                self._waited(core, limit, done=done)
        finally:
            report = self._release(core)
        untold = core.untold_failure()
        if untold is not None:
            raise untold.with_traceback(None)
        return report

    def _release(self, core: SenderCore) -> SenderReport:
        """Stop every thread, close the slot, and note what is left."""
        try:
            if self._driver is not None:
                self._driver.close(0.0)
        finally:
            self._report = core.release()
        return self._report

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            report = self.close(leaving_time(kind))
        except Exception:
            if kind is None:
                raise
            return  # the block's own error goes on, and this one was logged
        if kind is None and report.lost_frames:
            raise FramesLost(report)
        warn_of_lost_block(report.lost_frames, self._name, error, what="frames")

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None and getattr(self, "_report", None) is None:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=1)
            driver.let_go(*self._drop_limit())

    # Storing

    def _store(self, append: Append, timeout: float | None) -> int:
        """Store a frame and have it sent."""
        core = self._usable()
        try:
            fsn = append(timeout)
        except JournalFull as full:
            raise core.explained(full) from full.__cause__
        self._wake(core)
        return fsn

    def _wake(self, core: SenderCore) -> None:
        if core.outbox.idle and self._driver is not None:
            self._driver.wake()

    def flush(self) -> int:
        """End a batch; return the number of the last frame that is stored.

        It never waits for the network; with `Durability.FLUSH` it waits for the disk.

        Raises:
            NotYetDurable: the disk did not confirm in time.
            LanceError: what halted the sender.
        """
        core = self._usable()
        core.journal.flush()
        self._wake(core)
        return core.journal.next_fsn - 1

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
        core = self._usable()
        target = core.journal.next_fsn - 1 if fsn is None else fsn
        limit = OPEN_LIMIT if timeout is None else timeout
        level = checked_level(level)
        if level is Level.STORED:
            return core.journal.wait(target, limit)
        if level is Level.SYNCED:
            return core.synced(target, limit)
        done = self._wait_acked(target, limit)
        if not done:
            core.check()
        return done

    def _wait_acked(self, fsn: int, timeout: float) -> bool:
        assert self._driver is not None
        with self._driver.lock:
            milestone: Completion = self._opened().outbox.milestone(fsn)
        self._driver.wake()
        return self._driver.wait(milestone, timeout) and milestone.error is None
