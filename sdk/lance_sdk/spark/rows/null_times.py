"""Times that the column ``ts_ns`` cannot hold: null there, counted, and told."""

import logging
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

_COUNT: Final = b"lwp.null_times"
"""Where a batch's schema says how many there are in it."""
_log = logging.getLogger(__name__)


def with_null_times(batch: pa.RecordBatch, count: int) -> pa.RecordBatch:
    """Return a batch that says how many of its times are null because they are too large."""
    return batch.replace_schema_metadata({_COUNT: str(count)}) if count else batch


def null_times(batch: pa.RecordBatch) -> int:
    """Return how many times of a batch are null because they are too large."""
    return int((batch.schema.metadata or {}).get(_COUNT, 0))


def warned(batches: Iterable[pa.RecordBatch], label: str) -> Iterator[pa.RecordBatch]:
    """Pass batches on; warn once, at their end, of times that are null because they are too large.

    Args:
        batches: of one split.
        label: what it is, for the warning.
    """
    count = 0
    for batch in batches:
        if found := null_times(batch):
            count += found
            batch = batch.replace_schema_metadata(None)  # noqa: PLW2901 - Spark need not see it
        yield batch
    if count:
        _log.warning(
            "%s: times after the year 2262: %d; ts_ns is null there, and the column timestamp has "
            "them in microseconds",
            label,
            count,
        )
