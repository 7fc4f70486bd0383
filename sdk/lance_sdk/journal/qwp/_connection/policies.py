"""Events of a QWP host, and the sender's reactions: one table for code, page and tests.

Statuses follow section 14 of the SF client document, closes follow section 15 (SF-37). Where a
rule differs from the document, `Rule.differs` says how and names the row of the register with the
reason.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from lance_sdk.journal._ring.journal import Journal
from lance_sdk.journal.errors import JournalError
from lance_sdk.journal.qwp.errors import UpgradeRefused
from lance_sdk.journal.rejections import QWP_FORCED, QWP_POLICIES, Category, Policy, Rejection
from lance_sdk.journal.transport import Outgoing
from lance_spec.errors import DecodeError
from lance_spec.messages.qwp import ErrorResponse, QwpMessage, Status
from lance_spec.qwp.upgrade import payload_class


def error_of(data: bytes) -> ErrorResponse:
    """Return an error frame: each status but those of OK and durable acknowledgements.

    Raises:
        DecodeError: it is not one.
    """
    if data[:1] != b"\x01":
        return ErrorResponse.decode(data)
    # The document has no status 1, and calls every other status unknown (SF client section 14).
    answer = ErrorResponse.decode(bytes([Status.PARSE_ERROR]) + data[1:])
    answer.status = 1
    return answer


def refusal(answer: ErrorResponse, words: str, fsn: int, journal: Journal) -> Rejection:
    """Return what an error frame says about a frame.

    Args:
        answer: the error frame.
        words: its text, without the sender's credentials.
        fsn: the frame.
        journal: has the frame.
    """
    return Rejection(
        category=category_of(answer.status),
        message=words,
        first_fsn=fsn,
        last_fsn=fsn,
        status=answer.status,
        wire_seq=answer.wire_sequence,
        table=_only_table(fsn, journal),
    )


def _only_table(fsn: int, journal: Journal) -> str | None:
    """Return the table of a frame that has exactly one."""
    try:
        _, data = next(journal.read_from(fsn))
        message = QwpMessage.decode(data)
        tables = payload_class(message.flags).decode(message.payload).tables
    except (StopIteration, JournalError, DecodeError, OSError):
        return None
    return tables[0].name if len(tables) == 1 else None


def credentials_refused(error: UpgradeRefused, first: int, last: int) -> Rejection:
    """Return what it means that a host does not let the sender in."""
    return Rejection(
        category=Category.SECURITY_ERROR,
        message=f"{error}; check username and password, or token",
        first_fsn=first,
        last_fsn=last,
    )


def violation(words: str, first: int, last: int) -> Rejection:
    """Return what it means that a host ended the connection for a breach of the protocol."""
    return Rejection(
        category=Category.PROTOCOL_VIOLATION, message=words, first_fsn=first, last_fsn=last
    )


def no_frame(answer: ErrorResponse, words: str, settled: int) -> Rejection:
    """Return what an error frame says that is about none of the frames.

    Args:
        answer: the error frame.
        words: its text, without the sender's credentials.
        settled: the last frame that is dealt with.
    """
    return Rejection(
        category=category_of(answer.status),
        message=words,
        first_fsn=settled + 1,
        last_fsn=settled,
        status=answer.status,
        wire_seq=answer.wire_sequence,
    )


def too_large(frame: Outgoing, limit: int) -> Rejection:
    """Return what it means that a frame is larger than the host at hand takes."""
    return Rejection(
        category=Category.UNSUPPORTED,
        message=f"the frame has {len(frame.payload)} bytes, and this host takes {limit}",
        first_fsn=frame.fsn,
        last_fsn=frame.fsn,
    )


class Effect(Enum):
    """What the sender does."""

    HALT = "halts; every frame stays in the slot"
    DEAD_LETTER = "keeps a dead letter (in memory: drops the frame) and goes on with the next frame"
    RECONNECT = "connects again and sends again"
    NEXT_HOST = "tries the next host, and sends there"


_EFFECTS: Final = {
    Policy.HALT: Effect.HALT,
    Policy.DEAD_LETTER: Effect.DEAD_LETTER,
    Policy.RETRY: Effect.RECONNECT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What follows from one thing that a host does.

    Attributes:
        signal: what the host does.
        category: what the error handler is told; None where nothing is about a frame or the slot.
        decided: the policy, where it is not that of the category.
        effect: what the sender does; None means what the policy says.
        differs: where the document says otherwise: what, and the register's row with the reason.
        published: what `questdb` 6.0.0 (Python) and the Go client (afc74c3) do, where they differ.
    """

    signal: str
    category: Category | None = None
    decided: Policy | None = None
    effect: Effect | None = None
    differs: str = ""
    published: str = ""

    @property
    def policy(self) -> Policy | None:
        """The default policy, or None where no frame is judged."""
        if self.decided is not None or self.category is None:
            return self.decided
        return QWP_POLICIES[self.category]

    @property
    def follows(self) -> Effect:
        """What the sender does by default."""
        if self.effect is not None:
            return self.effect
        assert self.policy is not None, self.signal
        return _EFFECTS[self.policy]

    @property
    def option(self) -> str:
        """The option that chooses another policy, or "" where none does."""
        if self.category is None or self.decided is not None or self.category in QWP_FORCED:
            return ""
        return self.category.option


STATUSES: Final[dict[int, Rule]] = {
    Status.SCHEMA_MISMATCH: Rule(
        signal="status 0x03, SCHEMA_MISMATCH",
        category=Category.SCHEMA_MISMATCH,
        differs="the document drops the frame without a copy (SF-10)",
        published="Python halts; Go drops the frame",
    ),
    Status.PARSE_ERROR: Rule(
        signal="status 0x05, PARSE_ERROR",
        category=Category.PARSE_ERROR,
    ),
    Status.INTERNAL_ERROR: Rule(
        signal="status 0x06, INTERNAL_ERROR",
        category=Category.INTERNAL_ERROR,
        published="Python tries again, and halts when that was of no use",
    ),
    Status.SECURITY_ERROR: Rule(
        signal="status 0x08, SECURITY_ERROR",
        category=Category.SECURITY_ERROR,
    ),
    Status.WRITE_ERROR: Rule(
        signal="status 0x09, WRITE_ERROR",
        category=Category.WRITE_ERROR,
        differs="the document drops the frame without a copy (SF-10)",
        published="Python tries again, and halts when that was of no use; Go drops the frame",
    ),
    Status.NOT_WRITABLE: Rule(
        signal="status 0x0C, NOT_WRITABLE",
        effect=Effect.RECONNECT,
        differs="unknown to the document, which halts; it is about the moment (SF-37)",
        published="Go halts",
    ),
    Status.DICTIONARY_GAP: Rule(
        signal="status 0x0D, DICTIONARY_GAP",
        category=Category.UNKNOWN,
        decided=Policy.RETRY,
        differs="unknown to the document, which halts; it is about the connection (SF-37)",
        published="Go halts",
    ),
}
"""The statuses that have rules of their own."""
UNKNOWN_STATUS: Final = Rule(
    signal="any other status",
    category=Category.UNKNOWN,
    published="Python tries again, and halts when that was of no use",
)
ABOUT_SYMBOLS: Final = Rule(
    signal="an error status about a message that taught symbols",
    decided=Policy.HALT,
    effect=Effect.HALT,
    differs="the document has no such messages; no frame is blamed for it (SF-04)",
)

TERMINAL_CLOSE: Final = Rule(
    signal="close 1002, 1003, 1007, 1008, 1009 or 1010",
    category=Category.PROTOCOL_VIOLATION,
    published="Python connects again, and halts when that was of no use",
)
TERMINAL_CODES: Final = frozenset({1002, 1003, 1007, 1008, 1009, 1010})
"""Close codes that halt the sender (SF client section 15.1)."""
OTHER_CLOSE: Final = Rule(
    signal="any other close, the end of the stream, a reset",
    effect=Effect.RECONNECT,
)

CREDENTIALS: Final = Rule(
    signal="the upgrade is answered with 401 or 403",
    category=Category.SECURITY_ERROR,
    differs="on_security_error=retriable may ask for another try (SF-37)",
)
WRONG_ROLE: Final = Rule(
    signal="the upgrade is answered with 421 and a role",
    effect=Effect.NEXT_HOST,
)
NOT_UPGRADED: Final = Rule(
    signal="the upgrade is answered with another status, or another version of QWP",
    effect=Effect.NEXT_HOST,
)
UNREADABLE: Final = Rule(
    signal="an answer that cannot be read",
    effect=Effect.RECONNECT,
)
ACK_OF_UNSENT: Final = Rule(
    signal="an OK about a message that was not sent",
    effect=Effect.RECONNECT,
    differs="the document takes it for an OK of everything that was sent (SF-35)",
    published="Python and Go take it for an OK of everything that was sent",
)
SILENCE: Final = Rule(
    signal="nothing for 30 s while frames are unanswered, and no answer to a ping for 30 s more",
    effect=Effect.RECONNECT,
)
NO_PROGRESS: Final = Rule(
    signal="signs of life, and no OK for a frame in request_timeout (120 s)",
    effect=Effect.RECONNECT,
)
TOO_LARGE: Final = Rule(
    signal="a limit (X-QWP-Max-Batch-Size) below the size of a frame, at every host",
    category=Category.UNSUPPORTED,
)

RULES: Final = (
    *STATUSES.values(),
    UNKNOWN_STATUS,
    ABOUT_SYMBOLS,
    TERMINAL_CLOSE,
    OTHER_CLOSE,
    CREDENTIALS,
    WRONG_ROLE,
    NOT_UPGRADED,
    UNREADABLE,
    ACK_OF_UNSENT,
    SILENCE,
    NO_PROGRESS,
    TOO_LARGE,
)
"""The whole table, in the order of the page."""


def rule_of_status(status: int) -> Rule:
    """Return the rule for an error status."""
    return STATUSES.get(status, UNKNOWN_STATUS)


def category_of(status: int) -> Category:
    """Return what the error handler is told of an error status."""
    return rule_of_status(status).category or Category.UNKNOWN


def rule_of_close(code: int) -> Rule:
    """Return the rule for a close code."""
    return TERMINAL_CLOSE if code in TERMINAL_CODES else OTHER_CLOSE
