"""Refusals of a broker, in addition to the network's failures (`lance_sdk.errors`)."""
# ruff: noqa: N818 - the names say what is wrong, as those of `lance_sdk.errors` do

from typing import Final

from lance_sdk.errors import LanceError
from lance_spec.messages.rustlog import ErrorCode, ErrorResponse

__all__ = ["NoSuchPartition", "RustlogError", "TopicExists"]


class RustlogError(LanceError):
    """A broker refused a request.

    Attributes:
        code: why, as RustLog numbers it; 0 in JSON, which has no codes.
        message: the broker's own sentence.
    """

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{message} (code {code})" if code else message)

    def __reduce__(self) -> tuple[type["RustlogError"], tuple[int, str]]:
        return type(self), (self.code, self.message)


class NoSuchPartition(RustlogError):
    """There is no such topic, or it has no such partition; the broker never creates one itself."""


class TopicExists(RustlogError):
    """There is a topic of this name."""


_KINDS: Final[dict[int, type[RustlogError]]] = {
    ErrorCode.PARTITION_NOT_FOUND: NoSuchPartition,
    ErrorCode.TOPIC_OR_PARTITION_NOT_FOUND: NoSuchPartition,
    ErrorCode.DESCRIBE_TOPIC_FAILED: NoSuchPartition,
    ErrorCode.DESCRIBE_PARTITION_FAILED: NoSuchPartition,
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicExists,
}


def rustlog_error(answer: ErrorResponse) -> RustlogError:
    """Return the error that an answer tells; without a code, its words decide."""
    kind = _KINDS.get(answer.code, RustlogError)
    if not answer.code and answer.message.startswith("partition not found"):
        kind = NoSuchPartition
    return kind(answer.code, answer.message)
