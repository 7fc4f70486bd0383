"""What hosts say against frames, in the words of the error inbox (SF client section 14)."""

from typing import Final

from lance_sdk.journal._journal import Journal
from lance_sdk.journal.errors import JournalError
from lance_sdk.journal.qwp.errors import UpgradeRefused
from lance_sdk.journal.rejections import Category, Rejection
from lance_sdk.journal.transport import Outgoing
from lance_spec.errors import DecodeError
from lance_spec.messages.qwp import ErrorResponse, QwpMessage, Status
from lance_spec.qwp_upgrade import payload_class

_CATEGORIES: Final[dict[int, Category]] = {
    Status.SCHEMA_MISMATCH: Category.SCHEMA_MISMATCH,
    Status.PARSE_ERROR: Category.PARSE_ERROR,
    Status.INTERNAL_ERROR: Category.INTERNAL_ERROR,
    Status.SECURITY_ERROR: Category.SECURITY_ERROR,
    Status.WRITE_ERROR: Category.WRITE_ERROR,
}


def refusal(answer: ErrorResponse, words: str, fsn: int, journal: Journal) -> Rejection:
    """Return what an error frame says about a frame.

    Args:
        answer: the error frame.
        words: its text, without the sender's credentials.
        fsn: the frame.
        journal: has the frame.
    """
    return Rejection(
        category=_CATEGORIES.get(answer.status, Category.UNKNOWN),
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
        category=_CATEGORIES.get(answer.status, Category.UNKNOWN),
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
