"""Lifecycle of the sync API classes: opening, closing, and being dropped."""

import time
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lance_sdk._api.arguments.unit_parsing import seconds
from lance_sdk._api.deadlines import deadline_after
from lance_sdk._api.factory import ClientCore, driver_options, not_opened, open_deadline
from lance_sdk._api.no_pickle import NotPicklable
from lance_sdk._api.with_statements import OpenedByWith
from lance_sdk._io.at_exit import leaving_time, warn_of_lost_block
from lance_sdk._io.threads.thread_driver import ThreadDriver
from lance_sdk.errors import NotOpenError, RecordsLost, UsageError
from lance_sdk.types import CloseReport

if TYPE_CHECKING:
    from lance_sdk._api.consumer_core import ConsumerCore
    from lance_sdk._api.producer_core import ProducerCore


class Lifecycle(NotPicklable, OpenedByWith):
    """Base of `Producer`, `Consumer` and `Client`.

    Args:
        core: the parts that were put together.
    """

    def __init__(self, core: "ProducerCore | ConsumerCore | ClientCore") -> None:
        self._url = core.url
        self._config = core.config
        self._session = core.session
        self._name = f"{type(self).__name__} {core.url}"
        self._driver = ThreadDriver(core.session, self._name, **driver_options(core))

    def open(self) -> Self:
        """Connect; a ``with`` block does it by itself.

        Raises:
            ConnectFailed: no host could be used; every attempt is listed.
            TopicNotFound: the topic does not exist.
            ServerError: the server refused, for example the token.
            UsageError: it is open already, or was closed.
        """
        if not isinstance(self._driver.usage_error, NotOpenError):
            self._driver.check()
            raise UsageError(f"{self._name} is open already; use it, or make another one")
        self._begin()
        try:
            self._driver.start()
            self._await_opened()
            self._opened()
        except BaseException:
            self._driver.close(0.0)
            self._end(0.0)
            raise
        return self

    def _begin(self) -> None:
        """Get ready before the driver starts."""
        self._session.open(time.monotonic())

    def _opened(self) -> None:
        """Go on once there is a connection."""

    def _await_opened(self) -> None:
        opened, timeout = self._session.opened, open_deadline(self._url, self._config)
        if not self._driver.wait(opened, timeout):
            raise not_opened(self._url, timeout, self._session.situation())
        if opened.error is not None:
            raise opened.error.with_traceback(None)

    def close(self, timeout: float | None = None) -> CloseReport:
        """Finish and disconnect; always returns.

        Args:
            timeout: seconds for what is not acknowledged yet; by default ``close_timeout``.

        Returns:
            What was delivered and what was not.
        """
        return self._close(timeout, failed=False)

    def _close(self, timeout: float | None, *, failed: bool) -> CloseReport:
        limit = seconds("close_timeout", self._config.close_timeout)
        until = deadline_after(limit if timeout is None else timeout)
        until = self._finish(until, failed=failed)
        self._driver.close(max(0.0, until - time.monotonic()))
        self._end(max(0.0, until - time.monotonic()))
        return self._report()

    def _finish(self, until: float, *, failed: bool) -> float:
        """Do what still needs the connection; return the deadline for the rest; never raises."""
        del failed
        return until

    def _end(self, timeout: float) -> None:
        """Let go of what stands beside the connection, after it has ended; never raises."""

    def _report(self) -> CloseReport:
        return CloseReport()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        report = self._close(leaving_time(kind), failed=kind is not None)
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
