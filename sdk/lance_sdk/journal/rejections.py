"""Rejections of a frame by a server, and their policies (SF client section 14)."""
# ruff: noqa: N818 - these names say what happened; "Error" would repeat the module's name

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from lance_sdk._errors.base import LanceError
from lance_sdk.errors import AccessDenied, AuthenticationFailed, AuthenticationRequired
from lance_sdk.journal.errors import JournalError


class Category(Enum):
    """Why a frame was not taken; the value names the option ``on_<value>_error``."""

    SCHEMA_MISMATCH = "schema"
    """The frame does not fit what the server has; sending it again changes nothing."""
    PARSE_ERROR = "parse"
    """The server cannot read the frame."""
    INTERNAL_ERROR = "internal"
    """The server failed inside."""
    SECURITY_ERROR = "security"
    """The server refuses this client."""
    WRITE_ERROR = "write"
    """The server cannot write at the moment, or not there."""
    PROTOCOL_VIOLATION = "protocol"
    """The connection ended in a way that blames what was sent."""
    UNKNOWN = "unknown"
    """A reason that this client does not know; never taken for a reason to give frames up."""
    UNSUPPORTED = "unsupported"
    """The server at hand cannot keep such a frame (AMB-13, AMB-24, AMB-32); it was not sent."""
    DAMAGED = "damaged"
    """The frame is not on disk as it was stored, and cannot be sent."""

    @property
    def option(self) -> str:
        """The name of the option that sets its policy."""
        return f"on_{self.value}_error"


class Policy(Enum):
    """What is done about a rejected frame."""

    RETRY = "retriable"
    """Reconnect and send again; a frame that is rejected over and over halts the sender."""
    RETRY_OTHER = "retriable_other"
    """The same, at another host where there is one."""
    HALT = "terminal"
    """Stop sending; the frame and all after it stay."""
    DEAD_LETTER = "dead_letter"
    """Write the frame to the dead-letter file, and go on after it."""
    DROP = "drop"
    """Give the frame up, and go on after it; only the error tells."""


DEFAULT_POLICIES: Final[Mapping[Category, Policy]] = {
    Category.SCHEMA_MISMATCH: Policy.HALT,
    Category.PARSE_ERROR: Policy.HALT,
    Category.INTERNAL_ERROR: Policy.RETRY,
    Category.SECURITY_ERROR: Policy.HALT,
    Category.WRITE_ERROR: Policy.RETRY,
    Category.PROTOCOL_VIOLATION: Policy.RETRY,
    Category.UNKNOWN: Policy.RETRY,
    Category.UNSUPPORTED: Policy.DEAD_LETTER,
    Category.DAMAGED: Policy.DROP,
}
"""What is done unless the options say otherwise (SF-10, SF-11)."""


QWP_POLICIES: Final[Mapping[Category, Policy]] = {
    Category.SCHEMA_MISMATCH: Policy.DEAD_LETTER,
    Category.PARSE_ERROR: Policy.HALT,
    Category.INTERNAL_ERROR: Policy.HALT,
    Category.SECURITY_ERROR: Policy.HALT,
    Category.WRITE_ERROR: Policy.DEAD_LETTER,
    Category.PROTOCOL_VIOLATION: Policy.HALT,
    Category.UNKNOWN: Policy.HALT,
    Category.UNSUPPORTED: Policy.DEAD_LETTER,
    Category.DAMAGED: Policy.DROP,
}
"""The same for QWP, as section 14 of its document says (SF-37).

What it drops is kept as a dead letter, where there is a folder for it.
"""
QWP_FORCED: Final = frozenset({Category.PROTOCOL_VIOLATION, Category.UNKNOWN})
"""Categories of QWP that always halt (SF client section 14)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """One refusal, as the error handler gets it.

    Attributes:
        category: why.
        message: the server's words, or this client's.
        first_fsn: the first frame it is about.
        last_fsn: the last one.
        status: the server's status or error code; -1 when there was none.
        wire_seq: the number of the frame on its connection; -1 when there is none.
        table: the table or topic, where exactly one is known.
        policy: what is done about it.
        strikes: how often this frame was rejected so far, this time included.
        at: seconds since the Unix epoch.
        maybe_stored: whether the frame may be at the server all the same: it was sent before, on a
            connection that ended without an answer, or by an earlier sender of the slot.
    """

    category: Category
    message: str
    first_fsn: int
    last_fsn: int
    status: int = -1
    wire_seq: int = -1
    table: str | None = None
    policy: Policy = Policy.HALT
    strikes: int = 1
    at: float = 0.0
    maybe_stored: bool = False

    def __str__(self) -> str:
        one = self.first_fsn == self.last_fsn
        which = f"frame {self.first_fsn}" if one else f"frames {self.first_fsn} to {self.last_fsn}"
        if self.first_fsn > self.last_fsn:
            damaged = self.category is Category.DAMAGED
            which = "frames without a number" if damaged else "no frame"
        where = f" of {self.table!r}" if self.table else ""
        code = f" ({self.status:#04x})" if self.status >= 0 else ""
        doubt = "; an earlier attempt was not answered and may have stored it"
        told = f"{which}{where} rejected, {self.category.value}{code}: {self.message}"
        return told + (doubt if self.maybe_stored else "")


class AfterRejection(Enum):
    """What the transport of a rejected frame does next."""

    CONTINUE = "continue"
    """The frame is dealt with; go on after it."""
    RECONNECT = "reconnect"
    """Close this connection; another will send the frame again."""
    RECONNECT_ELSEWHERE = "reconnect elsewhere"
    """The same, at another host where there is one."""
    HALT = "halt"
    """Fail with `Outbox.failure`."""


class SenderHalted(JournalError):
    """The sender stopped for good; frames that are not acknowledged stay in a slot on disk.

    Attributes:
        rejection: what stopped it.
    """

    def __init__(self, rejection: Rejection) -> None:
        self.rejection = rejection
        way_out = f", or set {rejection.category.option}=dead_letter to go on without the frame"
        if rejection.category in QWP_FORCED or rejection.first_fsn > rejection.last_fsn:
            way_out = ""
        super().__init__(
            f"store-and-forward halted: {rejection}. Repair the cause and open the sender again"
            f"{way_out}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rejection,)


_SECURITY: Final = (AuthenticationRequired, AuthenticationFailed, AccessDenied)


def session_ended(error: LanceError, first_fsn: int, last_fsn: int, at: float) -> Rejection:
    """Return what the error handler gets when a session ended for good, not for one frame.

    Args:
        error: why.
        first_fsn: the first frame that is not settled.
        last_fsn: the last one.
        at: seconds since the Unix epoch.
    """
    security = isinstance(error, _SECURITY)
    return Rejection(
        category=Category.SECURITY_ERROR if security else Category.PROTOCOL_VIOLATION,
        message=str(error),
        first_fsn=first_fsn,
        last_fsn=last_fsn,
        at=at,
    )
