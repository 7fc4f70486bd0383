"""Refusals of the Fluvio servers: codes that every client knows."""

from typing import Final

from lance_server.lwp.refusals import Refusal
from lance_spec.enums import ErrorCode as LogCode
from lance_spec.messages.fluvio import ErrorCode, ErrorText, Outcome, OutcomeDetail

DONE: Final = Outcome(code=ErrorCode.NONE, detail=None)
"""The outcome of what succeeded."""

_MAX_TEXT: Final = 1024


class FluvioRefusal(Exception):  # noqa: N818 - it is an answer to a request, not a failure of ours
    """A request, or a part of one, that is answered with an error.

    Attributes:
        outcome: the code with its fields.
        text: why, for people; `Status` responses carry it beside any code.
    """

    def __init__(self, code: ErrorCode, text: str, detail: OutcomeDetail = None) -> None:
        super().__init__(text)
        self.text = text[:_MAX_TEXT]
        self.outcome = Outcome(code=code, detail=detail)


class ProtocolError(Exception):
    """A request that cannot be answered: the connection ends."""


def told(text: str) -> FluvioRefusal:
    """Return a refusal whose text reaches the user of a published client."""
    return FluvioRefusal(ErrorCode.OTHER, text, ErrorText(text=text[:_MAX_TEXT]))


def no_partition(topic: str, partition: int) -> FluvioRefusal:
    """Return the answer to a request for a partition that is not there."""
    return FluvioRefusal(
        ErrorCode.NOT_LEADER_FOR_PARTITION, f"there is no partition {partition} of '{topic}'"
    )


_CODES: Final = {
    LogCode.AUTHENTICATION_REQUIRED: ErrorCode.PERMISSION_DENIED,
    LogCode.ACCESS_DENIED: ErrorCode.PERMISSION_DENIED,
    LogCode.STORAGE_ERROR: ErrorCode.STORAGE_ERROR,
    LogCode.QUORUM_NOT_REACHED: ErrorCode.REQUEST_TIMED_OUT,
    LogCode.CLUSTER_NOT_READY: ErrorCode.STORAGE_ERROR,
    LogCode.TOPIC_ALREADY_EXISTS: ErrorCode.TOPIC_ALREADY_EXISTS,
    LogCode.TOPIC_NOT_FOUND: ErrorCode.TOPIC_NOT_FOUND,
    LogCode.TOPIC_DELETED: ErrorCode.TOPIC_NOT_FOUND,
    LogCode.INVALID_TOPIC_NAME: ErrorCode.TOPIC_INVALID_NAME,
}


def from_log(error: Exception) -> FluvioRefusal:
    """Return the answer to what the log did not do."""
    if isinstance(error, FluvioRefusal):
        return error
    if not isinstance(error, Refusal):
        return FluvioRefusal(ErrorCode.STORAGE_ERROR, f"the server's disk failed: {error}")
    code = _CODES.get(error.code)
    return told(error.message) if code is None else FluvioRefusal(code, error.message)
