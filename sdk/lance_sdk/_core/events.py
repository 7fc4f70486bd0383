"""What a core tells its pump."""

from dataclasses import dataclass
from typing import TypeAlias

from lance_sdk._core.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection passed its handshake.

    Attributes:
        peer: the address that was dialled.
        dialect: name of the dialect it speaks.
    """

    peer: str
    dialect: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A connection ended, or could not be made.

    Attributes:
        error: why.
        retry_in: seconds until the next attempt; None when there is none.
    """

    error: Exception
    retry_in: float | None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something an operator should read in the log."""

    message: str


Event: TypeAlias = Outcome | Connected | Disconnected | Notice


@dataclass(frozen=True, slots=True)
class Connect:
    """The session wants a connection; answer with ``connected`` or ``dial_failed``.

    Attributes:
        host: name or address to resolve and dial.
        port: TCP port.
        tls: whether to speak TLS.
        timeout: seconds for each of dns, tcp and tls.
    """

    host: str
    port: int
    tls: bool
    timeout: float


@dataclass(frozen=True, slots=True)
class Close:
    """The session wants its connection (or its attempt at one) ended; answer ``disconnected``."""


Action: TypeAlias = Connect | Close
