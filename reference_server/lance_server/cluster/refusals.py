"""What a node answers to batches that it could not put into the log."""

from lance_server.cluster.replicated_log import AppendError
from lance_server.lwp.refusals import Refusal
from lance_spec.enums import ErrorCode


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
