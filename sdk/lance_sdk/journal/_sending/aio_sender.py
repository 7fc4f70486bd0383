"""Base of the async store-and-forward senders: the twin of `_sending.sender`.

What may wait for the disk runs in a worker thread; what cannot wait runs where it is called.
"""
# ruff: noqa: ASYNC109 - both APIs take the same parameters

import contextlib
import time
import warnings
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from anyio import to_thread

from lance_sdk._api.with_statements import OpenedByAsyncWith
from lance_sdk._io.at_exit import leaving_time, warn_of_lost_block
from lance_sdk._io.tasks.task_driver import TaskDriver
from lance_sdk._io.tasks.uncancelled import closing, take
from lance_sdk.errors import DeadlineExceeded
from lance_sdk.journal._sending.base import SenderState
from lance_sdk.journal._sending.config import ForwardConfig
from lance_sdk.journal._sending.core import SenderCore, open_core
from lance_sdk.journal._sending.sender import OPEN_LIMIT, Append, Level, checked_level
from lance_sdk.journal.config import Durability
from lance_sdk.journal.drainers import start_drainers
from lance_sdk.journal.errors import JournalFull
from lance_sdk.journal.sender_stats import FramesLost, SenderReport
from lance_sdk.journal.transport import TransportFactory

if TYPE_CHECKING:
    from lance_sdk._protocol.completion import Completion


class AsyncForwardingSender(SenderState, OpenedByAsyncWith):
    """Base of the async senders, on asyncio and trio.

    Args:
        config: the settings.
        factory: makes the transport.
        name: for messages.
    """

    def __init__(self, config: ForwardConfig, factory: TransportFactory, name: str) -> None:
        super().__init__(config, factory, name)
        self._driver: TaskDriver | None = None

    # Opening and closing

    async def open(self) -> Self:
        """Take the slot, recover it, and start sending; an ``async with`` block does it by itself.

        Raises:
            SlotLocked: somebody else holds the slot.
            SlotUnreadable: the slot cannot be read without guessing.
            ConnectFailed: no server could be used, and ``initial_connect`` is not ``async``.
            UsageError: it is open already, or was closed.
        """
        self._check_new()
        opening = partial(open_core, self._settings, self._factory)
        core = await take(opening, SenderCore.release)
        self._core = core
        try:
            await to_thread.run_sync(self._prepared, core)  # it may wait for the disk
            self._driver = TaskDriver(core.transport, self._name, **self._settings.driver_options)
            core.attend(self._driver)
            core.transport.open(time.monotonic())
            self._driver.start()
            await self._await_opened(core, self._driver)
            start_drainers(core, self._settings, self._factory)
        except BaseException:
            await self._release(core)
            raise
        return self

    async def _await_opened(self, core: SenderCore, driver: TaskDriver) -> None:
        if self._settings.initial_connect == "async":
            return
        limit = self._settings.reconnect_budget or OPEN_LIMIT
        if not await driver.wait(core.transport.opened, limit):
            raise DeadlineExceeded(f"{self._name}: no server could be used within {limit:.1f} s")
        if core.transport.opened.error is not None:
            raise core.transport.opened.error.with_traceback(None)

    @closing
    async def close(self, timeout: float | None = None) -> SenderReport:
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
                done = await self._wait_acked(core.journal.next_fsn - 1, limit)
                self._waited(core, limit, done=done)
        finally:
            report = await self._release(core)
        untold = core.untold_failure()
        if untold is not None:
            raise untold.with_traceback(None)
        return report

    @closing
    async def _release(self, core: SenderCore) -> SenderReport:
        """Stop every task and thread, close the slot, and note what is left."""
        try:
            if self._driver is not None:
                await self._driver.close(0.0)
        finally:
            report = await to_thread.run_sync(core.release)
            self._report = report
        return report

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            report = await self.close(leaving_time(kind))
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

    async def _store(self, append: Append, timeout: float | None) -> int:
        """Store a frame and have it sent.

        Where the caller is cancelled while it waits for room or for the disk, the frame may have
        been stored.
        """
        core = self._usable()
        try:
            fsn = await self._append(append, timeout)
        except JournalFull as full:
            raise core.explained(full) from full.__cause__
        self._wake(core)
        return fsn

    async def _append(self, append: Append, timeout: float | None) -> int:
        if self.durability is not Durability.APPEND:
            with contextlib.suppress(JournalFull):
                return append(0.0)
        return await to_thread.run_sync(append, timeout)

    def _wake(self, core: SenderCore) -> None:
        if core.outbox.idle and self._driver is not None:
            self._driver.wake()

    async def flush(self) -> int:
        """End a batch; return the number of the last frame that is stored.

        It never waits for the network; with `Durability.FLUSH` it waits for the disk.

        Raises:
            NotYetDurable: the disk did not confirm in time.
            LanceError: what halted the sender.
        """
        core = self._usable()
        if self.durability is Durability.FLUSH:
            await to_thread.run_sync(core.journal.flush)
        self._wake(core)
        return core.journal.next_fsn - 1

    async def wait(
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
            return await to_thread.run_sync(
                partial(core.journal.wait, target, limit), abandon_on_cancel=True
            )
        if level is Level.SYNCED:
            return await to_thread.run_sync(
                partial(core.synced, target, limit), abandon_on_cancel=True
            )
        done = await self._wait_acked(target, limit)
        if not done:
            core.check()
        return done

    async def _wait_acked(self, fsn: int, timeout: float) -> bool:
        assert self._driver is not None
        milestone: Completion = self._opened().outbox.milestone(fsn)
        self._driver.wake()
        return await self._driver.wait(milestone, timeout) and milestone.error is None
