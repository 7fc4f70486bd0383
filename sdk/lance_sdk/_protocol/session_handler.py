"""The interface of session handlers, with the session's place and deadlines."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.connection import Connection, ConnectionLimits, FrameHandler
from lance_spec.bodies import TopicInfo


class SessionState(Enum):
    """Where a session stands; see the picture in `lance_sdk._protocol.reconnecting_session`."""

    IDLE = "idle"
    WAITING = "waiting"
    DIALING = "dialing"
    HANDSHAKE = "handshake"
    READY = "ready"
    CLOSED = "closed"


LINKED = {SessionState.DIALING, SessionState.HANDSHAKE, SessionState.READY}
"""States in which the driver holds a connection or an attempt at one."""


class SessionHandler(FrameHandler, Protocol):
    """What a session carries."""

    @property
    def drained(self) -> bool:
        """Nothing is left to do."""
        ...

    @property
    def pinned(self) -> bool:
        """The dialect must not change: Ingest frames are unacknowledged."""
        ...

    def ready(self, connection: Connection, topic: TopicInfo | None, now: float) -> None:
        """A connection may be used; raise a `LanceError` to end the session for good."""
        ...

    def fill(self, connection: Connection, now: float) -> None:
        """Put what is due onto the ready connection."""
        ...

    def lost(self, now: float) -> None:
        """The ready connection is gone, and with it whatever was not answered."""
        ...

    def next_deadline(self) -> float:
        """Return when `handle_timeout` may have something to do."""
        ...

    def handle_timeout(self, now: float) -> None:
        """Do what is due."""
        ...

    def close(self, now: float) -> None:
        """Take nothing more in; finish what is there."""
        ...

    def abort(self, error: LanceError, now: float) -> None:
        """Settle everything that is left with this error."""
        ...


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Deadlines of a session, in seconds, and how it connects.

    Attributes:
        tls: whether it speaks TLS.
        connect_timeout: for the handshake, and each step before it.
        open_timeout: how long the first connection is tried for.
        connection: deadlines of each connection.
        speaks_http: tells of a host and port whether an HTTP server is there; asked when a
            handshake stays without an answer. None does not ask.
    """

    tls: bool
    connect_timeout: float
    open_timeout: float
    connection: ConnectionLimits
    speaks_http: Callable[[str, int], bool] | None = None
