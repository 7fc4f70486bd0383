"""Lifecycle of the async API classes: opening, closing, and being dropped."""
# ruff: noqa: ASYNC109 - both APIs take the same parameters

import concurrent.futures.thread  # noqa: F401 - name resolution needs it, on the event loop
import time
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lance_sdk._api.arguments.unit_parsing import seconds
from lance_sdk._api.deadlines import deadline_after
from lance_sdk._api.factory import ClientCore, driver_options, not_opened, open_deadline
from lance_sdk._api.no_pickle import NotPicklable
from lance_sdk._api.with_statements import OpenedByAsyncWith
from lance_sdk._io.at_exit import leaving_time, warn_of_lost_block
from lance_sdk._io.tasks.task_driver import TaskDriver
from lance_sdk._io.tasks.uncancelled import closing
from lance_sdk.errors import NotOpenError, RecordsLost, UsageError
from lance_sdk.types import CloseReport

if TYPE_CHECKING:
    from lance_sdk._api.consumer_core import ConsumerCore
    from lance_sdk._api.producer_core import ProducerCore


class AsyncLifecycle(NotPicklable, OpenedByAsyncWith):
    """Base of `AsyncProducer`, `AsyncConsumer` and `AsyncClient`.

    Args:
        core: the parts that were put together.
    """

    def __init__(self, core: "ProducerCore | ConsumerCore | ClientCore") -> None:
        self._url = core.url
        self._config = core.config
        self._session = core.session
        self._name = f"{type(self).__name__} {core.url}"
        self._driver = TaskDriver(core.session, self._name, **driver_options(core))

    async def open(self) -> Self:
        """Connect; an ``async with`` block does it by itself.

        Its helpers are tasks of their own: objects may be closed in any order, and by any task
        of the same event loop.

        Raises:
            ConnectFailed: no host could be used; every attempt is listed.
            TopicNotFound: the topic does not exist.
            ServerError: the server refused, for example the token.
            UsageError: it is open already, or was closed.
        """
        if not isinstance(self._driver.usage_error, NotOpenError):
            self._driver.check()
            raise UsageError(f"{self._name} is open already; use it, or make another one")
        await self._begin()
        try:
            self._driver.start()
            await self._await_opened()
            await self._opened()
        except BaseException:
            await self._abandon()
            raise
        return self

    @closing
    async def _abandon(self) -> None:
        await self._driver.close(0.0)
        await self._end(0.0)

    async def _begin(self) -> None:
        """Get ready before the driver starts."""
        self._session.open(time.monotonic())

    async def _opened(self) -> None:
        """Go on once there is a connection."""

    async def _await_opened(self) -> None:
        opened, timeout = self._session.opened, open_deadline(self._url, self._config)
        if not await self._driver.wait(opened, timeout):
            raise not_opened(self._url, timeout, self._session.situation())
        if opened.error is not None:
            raise opened.error.with_traceback(None)

    async def close(self, timeout: float | None = None) -> CloseReport:
        """Finish and disconnect; always returns, even while the caller is being cancelled.

        Args:
            timeout: seconds for what is not acknowledged yet; by default ``close_timeout``.

        Returns:
            What was delivered and what was not.
        """
        return await self._close(timeout, failed=False)

    @closing
    async def _close(self, timeout: float | None, *, failed: bool) -> CloseReport:
        limit = seconds("close_timeout", self._config.close_timeout)
        until = deadline_after(limit if timeout is None else timeout)
        until = await self._finish(until, failed=failed)
        await self._driver.close(max(0.0, until - time.monotonic()))
        await self._end(max(0.0, until - time.monotonic()))
        return self._report()

    async def _finish(self, until: float, *, failed: bool) -> float:
        """Do what still needs the connection; return the deadline for the rest; never raises."""
        del failed
        return until

    async def _end(self, timeout: float) -> None:
        """Let go of what stands beside the connection, after it has ended; never raises."""

    def _report(self) -> CloseReport:
        return CloseReport()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        report = await self._close(leaving_time(kind), failed=kind is not None)
        if kind is None and report.lost:
            raise RecordsLost(report)
        warn_of_lost_block(report.lost, self._name, error)

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None and driver.usage_error is None:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=1)
            driver.let_go()

    @property
    def _state(self) -> str:
        error = self._driver.usage_error
        return "OPEN" if error is None else type(error).__name__.removesuffix("Error").upper()
