"""The session of a consumer: it can go into another dialect for a while, and come back (AMB-27)."""

from typing import Any

from lance_sdk._protocol.consume.fetcher import Fetcher
from lance_sdk._protocol.events import Action, Disconnected
from lance_sdk._protocol.reconnecting_session import Session
from lance_sdk._protocol.session_handler import SessionState
from lance_sdk.errors import ConnectionLost
from lance_spec.dialect import Dialect


class _Leaving(ConnectionLost):
    """A connection is given up for one in another dialect, at the same server."""


class FetchSession(Session):
    """A session whose fetcher may need a range in another dialect.

    Args:
        app: the fetcher, which says so in `Fetcher.fallback`.
        *args: those of `Session`.
        **options: likewise.
    """

    def __init__(self, app: Fetcher, *args: Any, **options: Any) -> None:
        super().__init__(app, *args, **options)
        self._fetcher = app

    def next_action(self, now: float) -> Action | None:
        """Return what the driver must do about the connection, once: leave a wrong dialect, too."""
        wanted = self._pin() or self._dialect
        connection = self.connection
        if self.state is SessionState.READY and connection and connection.dialect != wanted:
            self._drop(_Leaving(f"going on in dialect {wanted}"))
        return super().next_action(now)

    def disconnected(self, error: Exception | None, now: float) -> None:
        """Take note that the connection is gone; perhaps its dialect is not spoken here."""
        fallback, connection = self._fetcher.fallback, self.connection
        if fallback is not None and connection is not None and not connection.received_bytes:
            refusal = fallback.refused()
            if refusal is not None:
                self._fetcher.fail(refusal)
        super().disconnected(error, now)

    def _next_host(self, cause: Exception, now: float) -> None:
        if isinstance(cause, _Leaving):
            self._leave_connection()
            self._resume(now, cause, 0.0)
            self._events[-1] = Disconnected(cause, 0.0, usual=True)
        else:
            super()._next_host(cause, now)

    def _proved(self, dialect: Dialect) -> None:
        if self._fetcher.fallback is None:
            super()._proved(dialect)

    def _pin(self) -> Dialect | None:
        fallback = self._fetcher.fallback
        return super()._pin() if fallback is None else fallback.dialect
