"""Answers to batches that a node could not put into the log."""

from typing import Final

from lance_server.cluster.replicated_log import AppendError, StopNodeError
from lance_server.lwp.refusals import Refusal
from lance_spec.enums import ErrorCode

_SECOND: Final = 1_000_000_000
_MOST_SKEW: Final = _SECOND


def maybe_applied(reason: str) -> Refusal:
    """Return the answer to a batch of which nobody knows whether it is stored, and why."""
    return Refusal(
        ErrorCode.QUORUM_NOT_REACHED,
        f"Whether it was stored is not known: {reason}; send it again with the same id",
        ends_connection=True,
    )


def as_refusal(error: AppendError) -> Refusal:
    """Return the answer to a batch that the log did not report as appended."""
    if error.maybe_applied:
        return maybe_applied(str(error))
    return Refusal(ErrorCode.PAYLOAD_TOO_LARGE, f"Nothing was stored: {error}")


def told_of(error: Exception) -> str:
    """Return why a node has stopped, and what to do, where the error does not say it."""
    if isinstance(error, OSError):
        return f"{error}: make room on the disk, or mend it, and start this node again"
    return str(error) if isinstance(error, StopNodeError) else repr(error)


def clock_problem(skew_ns: int) -> str | None:
    """Return what is wrong with a clock that is so far off the log's, or None.

    A node with such a clock takes no writes, and proposes nothing that depends on it.
    """
    if abs(skew_ns) <= _MOST_SKEW:
        return None
    return f"this node's clock is {skew_ns / _SECOND:+.1f} s off the log's: set it right"
