"""Refusals of the QWP endpoint."""

from lance_server.lwp.refusals import Refusal
from lance_spec.enums import ErrorCode
from lance_spec.messages.qwp import ErrorResponse, Status

_MAX_TEXT = 1024


class QwpRefusal(Exception):  # noqa: N818 - it is an answer to a message, not a failure of ours
    """A message that is answered with an error frame; nothing of it is stored.

    Attributes:
        status: the status of the frame.
        text: why, for people.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text

    def frame(self, wire_sequence: int) -> bytes:
        """Return the error frame for a message."""
        text = self.text.encode(errors="replace")[:_MAX_TEXT]
        text = text.decode(errors="ignore").encode()
        return ErrorResponse(status=self.status, wire_sequence=wire_sequence, text=text).encode()


def bad_message(text: str) -> QwpRefusal:
    """Return the answer to a message that cannot be read."""
    return QwpRefusal(Status.PARSE_ERROR, text)


def dictionary_gap(text: str) -> QwpRefusal:
    """Return the answer to a symbol that was never defined on this connection."""
    return QwpRefusal(Status.DICTIONARY_GAP, text)


_STATUS = {
    ErrorCode.INVALID_TOPIC_NAME: Status.SCHEMA_MISMATCH,
    ErrorCode.BACKPRESSURE: Status.NOT_WRITABLE,
    ErrorCode.TOPIC_ALREADY_EXISTS: Status.NOT_WRITABLE,
    ErrorCode.TOPIC_DELETED: Status.NOT_WRITABLE,
    ErrorCode.NOT_LEADER: Status.NOT_WRITABLE,
    ErrorCode.QUORUM_NOT_REACHED: Status.NOT_WRITABLE,
    ErrorCode.CLUSTER_NOT_READY: Status.NOT_WRITABLE,
    ErrorCode.AUTHENTICATION_REQUIRED: Status.SECURITY_ERROR,
    ErrorCode.ACCESS_DENIED: Status.SECURITY_ERROR,
}


def from_log(error: Exception) -> QwpRefusal:
    """Return the answer to rows that the log did not take."""
    if isinstance(error, Refusal):
        return QwpRefusal(_STATUS.get(error.code, Status.WRITE_ERROR), error.message)
    return QwpRefusal(Status.INTERNAL_ERROR, f"the rows could not be stored: {error}")
