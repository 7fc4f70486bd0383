"""ErrorResponse as exceptions, one class per code (LWP section 12.2)."""
# ruff: noqa: N818 - the classes bear the names of the codes in LWP section 12.2

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from lance_sdk._errors.base import LanceError
from lance_spec.enums import ErrorCode
from lance_spec.limits import END_OFFSET


class ServerError(LanceError):
    """The server answered with an ErrorResponse (LWP section 12).

    Attributes:
        code: the error code; a plain integer when LWP does not list it.
        message: the server's own sentence.
        details: what the server added, for example ``batch_id`` or ``earliest``.
    """

    default_code: ClassVar[int] = ErrorCode.UNKNOWN_ERROR

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode | int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.code = self.default_code if code is None else code
        self.message = message
        self.details: Mapping[str, Any] = details or {}
        end = "" if message.endswith((".", "!", "?")) else "."
        super().__init__(f"{message}{end} (Code {self.code:#04x})")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, int(self.code), dict(self.details))


def _rebuild(
    kind: type[ServerError], message: str, code: int, details: dict[str, Any]
) -> ServerError:
    return kind(message, code=code, details=details)


class UnknownServerError(ServerError):
    """The server could not classify its own error (0x01)."""


class InvalidMagic(ServerError):
    """A frame did not begin with ``LANC`` (0x02)."""

    default_code = ErrorCode.INVALID_MAGIC


class PayloadTooLarge(ServerError):
    """A payload or record is over the server's limit (0x03)."""

    default_code = ErrorCode.PAYLOAD_TOO_LARGE


class InvalidPayload(ServerError):
    """A payload is not what its command asks for (0x04)."""

    default_code = ErrorCode.INVALID_PAYLOAD


class CrcMismatch(ServerError):
    """A checksum did not fit (0x05)."""

    default_code = ErrorCode.CRC_MISMATCH


class VersionMismatch(ServerError):
    """The server does not speak this protocol version (0x06)."""

    default_code = ErrorCode.VERSION_MISMATCH


class TopicNotFound(ServerError):
    """The topic does not exist (0x10); the message says how to create it."""

    default_code = ErrorCode.TOPIC_NOT_FOUND


class TopicAlreadyExists(ServerError):
    """A topic of this name exists (0x11)."""

    default_code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidTopicName(ServerError):
    """The server does not take this topic name (0x12)."""

    default_code = ErrorCode.INVALID_TOPIC_NAME


class TopicDeleted(ServerError):
    """The topic existed once and was deleted (0x13)."""

    default_code = ErrorCode.TOPIC_DELETED


class NotLeader(ServerError):
    """Another node takes this request (0x20)."""

    default_code = ErrorCode.NOT_LEADER
    retryable = True

    @property
    def leader(self) -> str | None:
        """``host:port`` of the leader, where the server says."""
        address = self.details.get("leader_addr")
        return address if isinstance(address, str) else None


class QuorumNotReached(ServerError):
    """Too few replicas confirmed the write (0x21)."""

    default_code = ErrorCode.QUORUM_NOT_REACHED
    retryable = True
    maybe_applied = True


class LeaderUnknown(ServerError):
    """The cluster has no leader at the moment (0x22)."""

    default_code = ErrorCode.LEADER_UNKNOWN
    retryable = True


class ClusterNotReady(ServerError):
    """The cluster is still starting (0x23)."""

    default_code = ErrorCode.CLUSTER_NOT_READY
    retryable = True


class RateLimited(ServerError):
    """Too many requests (0x30)."""

    default_code = ErrorCode.RATE_LIMITED
    retryable = True

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait, where the server says (LWP section 12.3)."""
        wait = self.details.get("retry_after_ms")
        if isinstance(wait, bool) or not isinstance(wait, int | float) or not wait >= 0:
            return None
        return wait / 1000


class ServerBackpressure(ServerError):
    """The server's buffers are full and this frame was refused (0x31, AMB-35)."""

    default_code = ErrorCode.BACKPRESSURE
    retryable = True


class ConnectionLimitReached(ServerError):
    """The server takes no more connections (0x32)."""

    default_code = ErrorCode.CONNECTION_LIMIT
    retryable = True


class AuthenticationRequired(ServerError):
    """The request needs a token (0x40); put it in the URL: ``lance://TOKEN@host``."""

    default_code = ErrorCode.AUTHENTICATION_REQUIRED


class AuthenticationFailed(ServerError):
    """The token was not accepted (0x41)."""

    default_code = ErrorCode.AUTHENTICATION_FAILED


class AccessDenied(ServerError):
    """This client may not do that (0x42)."""

    default_code = ErrorCode.ACCESS_DENIED


class InvalidOffset(ServerError):
    """The offset cannot be read (0x50)."""

    default_code = ErrorCode.INVALID_OFFSET

    @property
    def earliest(self) -> int | None:
        """The earliest offset that can be read, where the server says (AMB-29)."""
        offset = self.details.get("earliest")
        return offset if type(offset) is int and 0 <= offset < END_OFFSET else None


class OffsetOutOfRange(ServerError):
    """The offset lies beyond the end of the log (0x51)."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE


class ConsumerNotFound(ServerError):
    """The server does not know this consumer (0x52)."""

    default_code = ErrorCode.CONSUMER_NOT_FOUND


class InternalServerError(ServerError):
    """The server failed inside (0x60)."""

    default_code = ErrorCode.INTERNAL_ERROR
    maybe_applied = True


class StorageError(ServerError):
    """The server's storage failed (0x61)."""

    default_code = ErrorCode.STORAGE_ERROR
    maybe_applied = True


class ServerTimeout(ServerError):
    """The server ran out of time (0x62)."""

    default_code = ErrorCode.TIMEOUT_ERROR
    retryable = True
    maybe_applied = True


BY_CODE: Final[dict[int, type[ServerError]]] = {
    kind.default_code: kind for kind in ServerError.__subclasses__()
}
"""The class of every code that LWP section 12.2 lists for answers."""


def server_error(code: int, message: str, details: Mapping[str, Any] | None = None) -> ServerError:
    """Return the exception for an ErrorResponse; an unlisted code gives a plain `ServerError`."""
    return BY_CODE.get(code, ServerError)(message, code=code, details=details)
