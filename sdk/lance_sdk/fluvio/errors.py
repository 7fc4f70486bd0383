"""What can go wrong between this client and Fluvio's servers, beside the network."""

from lance_sdk.errors import LanceError
from lance_spec.messages.fluvio import ErrorCode, ErrorText, OffsetEvicted, Outcome

__all__ = ["FluvioRefused"]

_RETRYABLE = frozenset(
    {ErrorCode.NOT_LEADER_FOR_PARTITION, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.STORAGE_ERROR}
)


class FluvioRefused(LanceError):  # noqa: N818 - what a server says, not a fault
    """A server refused a request.

    Attributes:
        what: what was asked for, in words.
        code: why, as Fluvio numbers it.
        text: what the server says beside the code, or nothing.
    """

    def __init__(self, what: str, code: ErrorCode, text: str = "") -> None:
        self.what = what
        self.code = code
        self.text = text
        self.retryable = code in _RETRYABLE
        said = f": {text}" if text else ""
        super().__init__(f"{what}: {code.name.lower().replace('_', ' ')} ({code:d}){said}")

    def __reduce__(self) -> tuple[type["FluvioRefused"], tuple[str, ErrorCode, str]]:
        return type(self), (self.what, self.code, self.text)


def check(what: str, outcome: Outcome, text: str | None = None) -> None:
    """Raise what an outcome says.

    Raises:
        FluvioRefused: it is not a success.
    """
    if outcome.code is ErrorCode.NONE:
        return
    detail = outcome.detail
    if isinstance(detail, ErrorText):
        text = detail.text
    elif isinstance(detail, OffsetEvicted):
        text = f"the earliest offset is {detail.next_available}"
    raise FluvioRefused(what, outcome.code, text or "")
