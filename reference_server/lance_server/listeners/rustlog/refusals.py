"""Refusals of the RustLog listener: the published broker's codes and words."""

from lance_server.lwp.refusals import Refusal
from lance_spec.messages.rustlog import ErrorCode, ErrorResponse

_MAX_TEXT = 1024


class RustlogRefusal(Exception):  # noqa: N818 - it is an answer to a request, not a failure of ours
    """A request that is answered with an error.

    Attributes:
        code: why, for programs.
        text: why, for people.
        closes: whether the connection ends with it.
    """

    def __init__(self, code: ErrorCode, text: str, *, closes: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.text = text[:_MAX_TEXT]
        self.closes = closes

    @property
    def answer(self) -> ErrorResponse:
        """It as a message."""
        return ErrorResponse(code=self.code, message=self.text)


def reason(error: Exception) -> str:
    """Return what the log says of a failure, in its own words."""
    return error.message if isinstance(error, Refusal) else str(error)


def internal(error: Exception) -> RustlogRefusal:
    """Return the answer to a request that failed or is forbidden: the broker has no code for it."""
    return RustlogRefusal(ErrorCode.INTERNAL, f"Internal server error: {reason(error)}")
