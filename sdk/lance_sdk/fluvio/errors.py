"""Errors between this client and Fluvio's servers, except those of the network."""

from typing import TYPE_CHECKING, Final

from lance_sdk.errors import (
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    LanceError,
    LocalProtocolError,
    RemoteProtocolError,
    Unsupported,
)
from lance_spec.messages.fluvio import ErrorCode, ErrorText, OffsetEvicted, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_sdk.errors import Attempt

__all__ = ["FluvioRefused"]

PASSING: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_FOR_PARTITION,
        ErrorCode.PARTITION_NOT_LEADER,
        ErrorCode.PARTITION_PENDING_INITIALIZATION,
        ErrorCode.SPU_OFFLINE,
    }
)
"""Codes of a partition whose leader moves or is about to come; nothing was stored."""
_RETRYABLE: Final = PASSING | {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.STORAGE_ERROR}


class FluvioRefused(LanceError):  # noqa: N818 - what a server says, not a fault
    """A server refused a request.

    Attributes:
        what: what was asked for, in words.
        code: why, as Fluvio numbers it.
        text: what the server says beside the code, or nothing.
        server: which server said it, or nothing where the client found out by itself.
    """

    def __init__(
        self,
        what: str,
        code: ErrorCode,
        text: str = "",
        *,
        server: str = "",
        retryable: bool | None = None,
    ) -> None:
        self.what = what
        self.code = code
        self.text = text
        self.server = server
        self.retryable = code in _RETRYABLE if retryable is None else retryable
        super().__init__(what, code, text)

    def __str__(self) -> str:
        by = f" [{self.server}]" if self.server else ""
        said = f": {self.text}" if self.text else ""
        return f"{self.what}{by}: {self.code.name.lower().replace('_', ' ')} ({self.code:d}){said}"

    def __reduce__(self) -> "tuple[object, ...]":
        return _refused_again, (self.what, self.code, self.text, self.server, self.retryable)


def _refused_again(
    what: str, code: ErrorCode, text: str, server: str, retryable: bool
) -> FluvioRefused:
    return FluvioRefused(what, code, text, server=server, retryable=retryable)


class FluvioUnreachable(ConnectFailed):
    """A Fluvio server cannot be reached; it says for what.

    Attributes:
        what: what was to be done.
        met: whether the client had reached the cluster before.
    """

    def __init__(
        self, target: str, attempts: "Sequence[Attempt]", what: str = "", *, met: bool = True
    ) -> None:
        self.what = what
        self.met = met
        super().__init__(target, attempts)

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.what}: {text}" if self.what else text

    def _advice(self) -> str:
        phases = {attempt.phase for attempt in self.attempts}
        if "dns" in phases:
            return "Check the host name; an SPU's is the one that the cluster was told."
        if "tls" in phases:
            return "Check the certificate, or leave out `tls` where the cluster speaks plainly."
        return "Check that the cluster's SC or SPU runs and listens there."

    def __reduce__(self) -> "tuple[object, ...]":  # type: ignore[override]
        return type(self), (self.target, self.attempts, self.what)


def located(error: LanceError, what: str, peer: str, *, met: bool = True) -> LanceError:
    """Return an error that says what was done, and on which server.

    Args:
        error: what went wrong.
        what: what was done; it names topic and partition.
        peer: host and port of the server.
        met: whether the client has reached the cluster before.
    """
    match error:
        case FluvioRefused():
            error.server = error.server or peer
            return error
        case ConnectFailed():
            return FluvioUnreachable(error.target, error.attempts, what, met=met)
        case ConnectionLost():
            text = f"{what}: {error}"
            return ConnectionLost(text, peer=peer, maybe_applied=error.maybe_applied)
        case DeadlineExceeded():
            return DeadlineExceeded(f"{what}: {error}", maybe_applied=error.maybe_applied)
        case RemoteProtocolError() | LocalProtocolError() | Unsupported():
            return type(error)(f"{what} [{peer}]: {error}")
    return error


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
