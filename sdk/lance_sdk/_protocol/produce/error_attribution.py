"""Which batch a text error was about, when several are unacknowledged (AMB-10)."""

from collections.abc import Callable
from typing import Final

from lance_sdk._protocol.connection import Connection
from lance_sdk.errors import ServerError

_BARRIERS: Final = 2
"""Keepalives to pass before an unacknowledged batch is known to be the refused one: the
deployed server may write an answer before the acks of earlier frames of the same read, but
not before those of an earlier read (AMB-10)."""


class ErrorAttribution:
    """Waits, with nothing new being sent, until only the refused batch can be unacknowledged.

    Args:
        attributed: called with the error once every other acknowledgement must have come.

    Attributes:
        error: what the server said; None while none waits to be attributed.
    """

    __slots__ = ("_attributed", "_connection", "error")

    def __init__(self, attributed: Callable[[ServerError, float], None]) -> None:
        self._attributed = attributed
        self._connection: Connection | None = None
        self.error: ServerError | None = None

    def __repr__(self) -> str:
        return f"<ErrorAttribution {self.error!r}>"

    def begin(self, error: ServerError, connection: Connection, now: float) -> None:
        """Begin, unless one is being looked into already."""
        if self.error is None:
            self.error, self._connection = error, connection
            self._pass(_BARRIERS, now)

    def drop(self) -> None:
        """Forget it: the connection is gone, and everything is sent again anyway."""
        self.error = self._connection = None

    def _pass(self, left: int, now: float) -> None:
        error, connection = self.error, self._connection
        if error is None or connection is None:
            return
        if left:
            connection.ping(now, lambda at: self._pass(left - 1, at))
            return
        self.drop()
        self._attributed(error, now)
