"""Everything this package raises, in one tree.

::

    LanceError
    ├─ ConfigError                    a bad option or URL (also a ValueError)
    ├─ UsageError                     the program calls things in an order that cannot work
    │   ├─ NotOpenError · ClosedError · ConcurrencyError · ForkedError
    ├─ TransportError                 the network (also an OSError)
    │   ├─ ConnectFailed              no host answered; lists every attempt and its phase
    │   └─ ConnectionLost             an established connection ended
    ├─ DeadlineExceeded               a wait ran out of time (also a TimeoutError)
    ├─ ProtocolError
    │   ├─ LocalProtocolError         this side asked for something LWP cannot carry
    │   └─ RemoteProtocolError        the peer broke LWP
    │       └─ FrameError             … in a frame header; names field, offset, values
    │           └─ ChecksumMismatch
    ├─ Unsupported                    the server has no such feature
    ├─ ConsumeError                   the log at this place cannot be consumed
    │   ├─ MisalignedOffset · CorruptRecord · OpaqueRecords · UndecodableRecord
    │   └─ LogTruncated · TopicChanged
    ├─ ServerError                    an ErrorResponse, one subclass per code of LWP section 12.2
    └─ DeliveryError                  a record was not delivered
        ├─ RecordTooLarge · UnsafeRecordType · BufferFull
        ├─ DeliveryExpired            not acknowledged in time
        │   └─ StillInJournal         … but safe: the journal delivers it later
        └─ DeliveryFailed · RecordsLost

Two facts stand on every error: ``retryable`` (trying again may succeed) and ``maybe_applied``
(the outcome is unknown: the server may have done what was asked).
"""
# ruff: noqa: N818 - these names say what happened; "Error" would repeat the module's name

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lance_sdk._errors.advice import HTTP_ADVICE, advice, peer_advice, tls_advice, words
from lance_sdk._errors.base import LanceError
from lance_sdk._errors.consume import (
    ConsumeError,
    CorruptRecord,
    LogTruncated,
    MisalignedOffset,
    OpaqueRecords,
    TopicChanged,
    UndecodableRecord,
)
from lance_sdk._errors.server import (
    AccessDenied,
    AuthenticationFailed,
    AuthenticationRequired,
    ClusterNotReady,
    ConnectionLimitReached,
    ConsumerNotFound,
    CrcMismatch,
    InternalServerError,
    InvalidMagic,
    InvalidOffset,
    InvalidPayload,
    InvalidTopicName,
    LeaderUnknown,
    NotLeader,
    OffsetOutOfRange,
    PayloadTooLarge,
    QuorumNotReached,
    RateLimited,
    ServerBackpressure,
    ServerError,
    ServerTimeout,
    StorageError,
    TopicAlreadyExists,
    TopicDeleted,
    TopicNotFound,
    UnknownServerError,
    VersionMismatch,
    server_error,
)
from lance_sdk.types import CloseReport

__all__ = [
    "AccessDenied",
    "Attempt",
    "AuthenticationFailed",
    "AuthenticationRequired",
    "BufferFull",
    "ChecksumMismatch",
    "ClosedError",
    "ClusterNotReady",
    "ConcurrencyError",
    "ConfigError",
    "ConnectFailed",
    "ConnectionLimitReached",
    "ConnectionLost",
    "ConsumeError",
    "ConsumerNotFound",
    "CorruptRecord",
    "CrcMismatch",
    "DeadlineExceeded",
    "DeliveryError",
    "DeliveryExpired",
    "DeliveryFailed",
    "DeliveryWarning",
    "ForkedError",
    "FrameError",
    "InternalServerError",
    "InvalidMagic",
    "InvalidOffset",
    "InvalidPayload",
    "InvalidTopicName",
    "LanceError",
    "LeaderUnknown",
    "LocalProtocolError",
    "LogTruncated",
    "MisalignedOffset",
    "NotLeader",
    "NotOpenError",
    "OffsetOutOfRange",
    "OpaqueRecords",
    "PayloadTooLarge",
    "ProtocolError",
    "QuorumNotReached",
    "RateLimited",
    "RecordTooLarge",
    "RecordsLost",
    "RemoteProtocolError",
    "ServerBackpressure",
    "ServerError",
    "ServerTimeout",
    "StillInJournal",
    "StorageError",
    "TopicAlreadyExists",
    "TopicChanged",
    "TopicDeleted",
    "TopicNotFound",
    "TransportError",
    "UndecodableRecord",
    "UnknownServerError",
    "UnsafeRecordType",
    "Unsupported",
    "UsageError",
    "VersionMismatch",
    "server_error",
]


class ConfigError(LanceError, ValueError):
    """An option or a URL that cannot be used; the message names it and suggests a remedy."""


class UsageError(LanceError):
    """The program uses an object in a way that cannot work."""


class NotOpenError(UsageError):
    """The object was not opened; use it in a ``with`` block or call ``open()`` first."""


class ClosedError(UsageError):
    """The object was closed, or closed itself after an error that cannot be retried."""


class ConcurrencyError(UsageError):
    """Two tasks or threads use something at once that only one may use."""


class ForkedError(UsageError):
    """The object was opened before ``os.fork()``; open a new one in the child."""


class TransportError(LanceError, OSError):
    """The network failed."""

    retryable = True


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to reach a server.

    Attributes:
        endpoint: ``host:port`` as configured.
        phase: how far it came: ``dns``, ``tcp``, ``tls``, ``handshake``, ``auth`` or ``topic``.
        cause: what ended it.
        address: the address that was dialled, once there was one.
        dialect: the dialect that was spoken, once something was said.
    """

    endpoint: str
    phase: str
    cause: Exception
    address: str | None = None
    dialect: str | None = None

    def __str__(self) -> str:
        where = self.endpoint if self.address is None else f"{self.endpoint} [{self.address}]"
        how = self.phase if self.dialect is None else f"{self.phase} ({self.dialect})"
        return f"{where} {how}: {_in_words(self.cause)}"


def _in_words(cause: Exception) -> str:
    if isinstance(cause, FrameError) and cause.field == "magic":
        first = bytes.fromhex(cause.got)
        return f"the answer begins with {str(first)[1:]}, and not with 'LANC' as LWP does"
    return words(cause)


def _advice_about(attempt: Attempt, tls: bool) -> str:  # noqa: PLR0911 - one table
    cause = attempt.cause
    if attempt.phase == "dns":
        return "Check the host name, or use an IP address."
    if isinstance(cause, ConfigError):
        return "Check the files named in tls_ca=, tls_cert= and tls_key=."
    if attempt.phase == "auth":
        return "Check token=: the function that returns it failed, or the server did not take it."
    if attempt.phase == "tls":
        return tls_advice(cause)
    if isinstance(cause, ServerError) or attempt.phase == "tcp":
        return advice(cause)
    if isinstance(cause, FrameError) and cause.field == "magic":
        return peer_advice(cause.got)
    if isinstance(cause, RemoteProtocolError) and "HTTP" in str(cause):
        return HTTP_ADVICE
    if isinstance(cause, ConnectionLost) and "first byte" in str(cause):
        if tls:
            return "The server ended the connection: it may ask for a certificate (tls_cert=)."
        return (
            "The server is starting or stopping (open_timeout= waits for it), speaks TLS there "
            "(use lances://), or is not a LANCE server."
        )
    return (
        "Check that the port is a LANCE server's, whether it speaks TLS (lances://), and dialect=."
    )


class ConnectFailed(TransportError):
    """No host could be used.

    Attributes:
        attempts: every try, in order.
    """

    def __init__(self, target: str, attempts: Sequence[Attempt]) -> None:
        self.target = target
        self.attempts = tuple(attempts)
        tries = "1 attempt" if len(attempts) == 1 else f"{len(attempts)} attempts"
        lines = "".join(f"\n  {attempt}" for attempt in attempts)
        super().__init__(f"cannot connect to {target} ({tries}):{lines}\n{self._advice()}")

    def _advice(self) -> str:
        tls = self.target.startswith("lances:")
        sentences = dict.fromkeys(_advice_about(each, tls) for each in self.attempts)  # in order
        return "\n".join(sentences) or advice(None)

    def __reduce__(self) -> tuple[type["ConnectFailed"], tuple[str, tuple[Attempt, ...]]]:
        return type(self), (self.target, self.attempts)


class ConnectionLost(TransportError):
    """An established connection ended.

    Attributes:
        peer: address of the other side.
    """

    def __init__(self, message: str, *, peer: str = "", maybe_applied: bool = False) -> None:
        self.peer = peer
        self.maybe_applied = maybe_applied
        super().__init__(message)


class DeadlineExceeded(LanceError, TimeoutError):
    """A wait ran out of time; what was waited for goes on unless the message says otherwise."""

    retryable = True

    def __init__(self, message: str, *, maybe_applied: bool = False) -> None:
        self.maybe_applied = maybe_applied
        super().__init__(message)


class ProtocolError(LanceError):
    """LWP was broken."""


class LocalProtocolError(ProtocolError):
    """This program asked for something that LWP cannot carry."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that LWP does not allow; its connection was closed."""

    retryable = True


class FrameError(RemoteProtocolError):
    """A frame header that cannot be read (LWP section 11).

    Attributes:
        field: name of the header field at fault.
        offset: its position in the stream, in bytes.
        expected: what LWP asks for, in words.
        got: what stood there, in words.
    """

    def __init__(self, field: str, offset: int, expected: str, got: str) -> None:
        self.field = field
        self.offset = offset
        self.expected = expected
        self.got = got
        super().__init__(f"{field} at stream byte {offset}: expected {expected}, got {got}")

    def __reduce__(self) -> tuple[type["FrameError"], tuple[str, int, str, str]]:
        return type(self), (self.field, self.offset, self.expected, self.got)


class ChecksumMismatch(FrameError):
    """A header or payload CRC that does not fit its bytes (LWP section 11.3)."""


class Unsupported(LanceError):
    """The server has no such feature; the message names it, and what works instead."""


class DeliveryError(LanceError):
    """A record was not delivered."""


class RecordTooLarge(DeliveryError):
    """The record is over the protocol's or the buffer's limit; it was not accepted."""


class UnsafeRecordType(DeliveryError):
    """The record's type is not safe to store at this server (AMB-13); it was not accepted."""


class BufferFull(DeliveryError):
    """The producer's buffer is full; the record was not accepted."""

    retryable = True


class DeliveryExpired(DeliveryError):
    """The delivery timeout passed before the server acknowledged the batch.

    ``__cause__`` is what the server last said about it, or what ended the last connection.

    Attributes:
        batch_id: the batch's identifier; 0 when it was never sent.
        topic: the topic it was for.
        server: ``host:port`` of the server in use, or tried last.
        attempts: how often it was sent.
    """

    retryable = True

    def __init__(
        self,
        message: str,
        *,
        batch_id: int = 0,
        maybe_applied: bool = False,
        topic: str = "",
        server: str = "",
        attempts: int = 0,
    ) -> None:
        self.batch_id = batch_id
        self.maybe_applied = maybe_applied
        self.topic = topic
        self.server = server
        self.attempts = attempts
        super().__init__(message)


class StillInJournal(DeliveryExpired):
    """The record waits in the journal, which delivers it later: do not send it again."""

    retryable = False


class DeliveryFailed(DeliveryError):
    """The server refused the batch, or the producer ended before it was acknowledged.

    Attributes:
        batch_id: the batch's identifier; 0 when it was never sent.
        cause: the error that decided it, often a `ServerError`.
        topic: the topic it was for.
        server: ``host:port`` of the server in use, or tried last.
        attempts: how often it was sent.
    """

    def __init__(
        self,
        cause: LanceError,
        *,
        batch_id: int = 0,
        maybe_applied: bool = False,
        topic: str = "",
        server: str = "",
        attempts: int = 0,
        advice: str = "",
    ) -> None:
        self.batch_id = batch_id
        self.cause = cause
        self.topic = topic
        self.server = server
        self.attempts = attempts
        self._advice = advice
        self.retryable = cause.retryable
        self.maybe_applied = maybe_applied or cause.maybe_applied
        outcome = "may or may not have been stored" if self.maybe_applied else "not stored"
        where = f" for topic {topic!r} at {server}" if topic else ""
        end = "" if not advice or str(cause).endswith((".", ")")) else "."
        super().__init__(f"record{where} {outcome}: {cause}{end} {advice}".rstrip())
        self.__cause__ = cause

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("batch_id", "maybe_applied", "topic", "server", "attempts")
        facts = {name: getattr(self, name) for name in names}
        return _refail, (self.cause, {**facts, "advice": self._advice})


def _refail(cause: LanceError, facts: dict[str, Any]) -> DeliveryFailed:
    return DeliveryFailed(cause, **facts)


class RecordsLost(DeliveryError):
    """Leaving a ``with`` block found records that were not delivered.

    Attributes:
        report: what ``close()`` found.
    """

    def __init__(self, report: CloseReport) -> None:
        self.report = report
        self.maybe_applied = report.maybe_applied > 0
        total = report.delivered + report.lost
        super().__init__(f"{report.lost} of {total} records were not delivered: {report.error}")
        self.__cause__ = report.error

    def __reduce__(self) -> tuple[type["RecordsLost"], tuple[CloseReport]]:
        return type(self), (self.report,)


class DeliveryWarning(RuntimeWarning):
    """Records were still undelivered when the interpreter ended."""
