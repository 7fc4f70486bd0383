"""What becomes of a planned range that is not there any more when it is read (AMB-31)."""

import logging

from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.logs.contract import TopicView
from lance_sdk.spark.streaming.checkpoint import TopicCheckpoint

_log = logging.getLogger(__name__)


def planned_range(
    checkpoint: TopicCheckpoint, view: TopicView | None, *, fail: bool
) -> tuple[int, int]:
    """Return what of a planned micro-batch can be read now.

    Args:
        checkpoint: the plan, as the checkpoint keeps it.
        view: the topic as it is now; None where there is none of that name.
        fail: whether anything that is missing ends the query (``failOnDataLoss``).

    Raises:
        DataLost: the topic is gone, is another one, or lacks a part of the range.
    """
    if view is None:
        why, start, end = "is gone", checkpoint.offset, checkpoint.offset
    elif (difference := checkpoint.topic.difference(view.identity)) is not None:
        why, start, end = (
            f"is another topic now: {difference}",
            checkpoint.offset,
            checkpoint.offset,
        )
    else:
        start, end = max(checkpoint.start, view.start), min(checkpoint.offset, view.end)
        if (start, end) == (checkpoint.start, checkpoint.offset):
            return start, end
        why = f"reaches from offset {view.start} to {view.end} now"
        start = min(start, checkpoint.offset)
    text = (
        f"topic {checkpoint.topic.label!r} {why}, and the batch was planned from offset "
        f"{checkpoint.start} to {checkpoint.offset}"
    )
    if fail:
        raise DataLost(f"{text}; failOnDataLoss=false goes on with what is left")
    lost(text, checkpoint.offset - checkpoint.start - max(0, end - start))
    return start, max(start, end)


def lost(text: str, size: int) -> None:
    """Warn of records that a query was to read and has not, where ``failOnDataLoss=false``."""
    _log.warning("%s: %d bytes of records are left out (failOnDataLoss=false)", text, size)
