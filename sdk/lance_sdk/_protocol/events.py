"""Events of a core for its driver."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.produce.delivery import Batch


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
        usual: whether connections always end so at this peer.
        told: whether another event tells operators of it.
        redirect: the server that this one named for what was asked, which is tried next.
    """

    error: Exception
    retry_in: float | None
    usual: bool = False
    told: bool = False
    redirect: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something an operator should read in the log.

    Attributes:
        message: what happened.
        kind: what counts as the same incident when it happens again.
    """

    message: str
    kind: str = "notice"


@dataclass(frozen=True, slots=True)
class BacklogSeen:
    """Frames of a journal wait for a server.

    Attributes:
        frames: how many.
        size: bytes of their payloads.
        age: seconds since the oldest was stored.
        outage: seconds for which no server could be used; None when there is no outage.
    """

    frames: int
    size: int
    age: float
    outage: float | None


class Sent(NamedTuple):
    """A batch was handed to the connection.

    Attributes:
        batch: the batch.
        attempt: 1 for the first sending.
        wire_size: bytes of its payload as sent.
        waited: seconds since its first record.
    """

    batch: Batch
    attempt: int
    wire_size: int
    waited: float


class Spilled(NamedTuple):
    """A batch was handed to the journal."""

    batch: Batch


class Throttled(NamedTuple):
    """The server asked for less; ``window`` batches may be in flight from now on."""

    window: int


class Fetched(NamedTuple):
    """Data arrived, asked for or pushed.

    Attributes:
        offset: where it begins.
        size: bytes of it.
        seconds: from the request on; None when it was pushed.
        end: end of the log as far as it is known.
    """

    offset: int
    size: int
    seconds: float | None
    end: int | None


@dataclass(frozen=True, slots=True)
class OffloadedTask:
    """Work that must not be done under the lock, because it may take time.

    Attributes:
        work: does it; raises a `LanceError` when it cannot be done.
        done: called under the lock with the result or the error, and the time.
    """

    work: Callable[[], Any]
    done: Callable[[Any, LanceError | None, float], None]

    def run(self) -> tuple[Any, LanceError | None]:
        """Do the work; return its result, or an error of this package whatever it raised."""
        try:
            return self.work(), None
        except LanceError as error:
            return None, error
        except Exception as error:  # noqa: BLE001 - nothing that fails here may end the driver
            return None, OffloadedTaskFailed(error)


class OffloadedTaskFailed(LanceError):  # noqa: N818 - as in `lance_sdk.errors`
    """Work beside the connection raised what nobody expected; it may succeed later."""

    retryable = True

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.__cause__ = cause


Event: TypeAlias = (
    Completion
    | Connected
    | Disconnected
    | Notice
    | BacklogSeen
    | Sent
    | Spilled
    | Throttled
    | Fetched
    | OffloadedTask
)


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
