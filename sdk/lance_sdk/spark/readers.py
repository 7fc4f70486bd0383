"""What reads for Spark: thin classes around what is tested without Spark.

What only some queries need is imported by them: every task of Spark's collects the garbage of its
process, which takes the longer the more modules there are.
"""

import gc
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lance_sdk.spark.failures import plainly
from lance_sdk.spark.logs.batches import plan
from lance_sdk.spark.logs.contract import InputSplit
from lance_sdk.spark.logs.input_partitions import packed
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import Options
from lance_sdk.spark.pushdown import Range
from lance_sdk.spark.rows.columns import check_schema
from lance_sdk.spark.rows.null_times import warned

if TYPE_CHECKING:
    from lance_sdk.spark.streaming.group_commits import GroupCommits
    from lance_sdk.spark.streaming.streams import StreamOffsets

_EVERYTHING = 2**62
"""Bytes: more than any log has."""


def batch_reader(options: Options, schema: StructType) -> DataSourceReader:
    """Return what reads a batch query."""
    kind = _PushdownReader if options.pushdown else _BatchReader
    return kind(options, _arrow(schema))


def stream_reader(options: Options, schema: StructType) -> DataSourceStreamReader:
    """Return what reads a streaming query."""
    return _StreamReader(options, _arrow(schema))


def _arrow(schema: StructType) -> pa.Schema:
    arrow = to_arrow_schema(schema, timezone="UTC")
    check_schema(arrow)
    return arrow


@cache
def _keep_modules() -> None:
    """Have the process never look again whether what it has loaded by now is garbage.

    A worker of Spark's collects its garbage after each task, which takes 25 to 50 ms with the
    modules that are needed here, and next to nothing once they are frozen. Whatever is freed by its
    count of references still is; only cycles that are garbage at this moment stay, some fifty
    objects that imports have left, and once in a worker. So nothing is collected before.
    """
    gc.freeze()


def _read(partition: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if partition is None or partition.value is None:  # no splits: one empty partition
        return
    _keep_modules()
    with plainly():
        for split in partition.value:
            label = f"topic {split.topic!r}, offset {split.start} to {split.end}"
            yield from warned(split.read(schema), label)


def _partitions(splits: list[InputSplit], options: Options) -> list[InputPartition]:
    return [InputPartition(group) for group in packed(splits, options)]


class _BatchReader(DataSourceReader):
    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._range = Range()

    @plainly()
    def partitions(self) -> list[InputPartition]:
        options = self._range.narrowed(self._options)
        splits = [] if options is None else plan(open_log(options), options)
        return _partitions(self._range.of(splits), self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for batch in _read(partition, self._schema):
            yield self._range.keep(batch)


class _PushdownReader(_BatchReader):
    """Takes comparisons with ``offset`` and ``topic`` over from Spark.

    Spark refuses a query that meets a reader with ``pushFilters`` while
    ``spark.sql.python.filterPushdown.enabled`` is off, which it is by default.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 - Spark's
        names = self._schema.names
        for each in filters:
            if not (_column(each) in names and self._take(each)):
                yield each

    def _take(self, each: Filter) -> bool:
        value = getattr(each, "value", None)
        if isinstance(each, IsNotNull):
            return _column(each) in {"offset", "topic"}
        if _column(each) == "topic" and isinstance(each, EqualTo) and isinstance(value, str):
            return self._range.only_topic(value)
        return _column(each) == "offset" and isinstance(value, int) and self._push(each, value)

    def _push(self, each: Filter, value: int) -> bool:
        if isinstance(each, EqualTo):
            return self._range.between(value, value + 1)
        if isinstance(each, GreaterThanOrEqual | GreaterThan):
            return self._range.between(value + isinstance(each, GreaterThan), None)
        if isinstance(each, LessThan | LessThanOrEqual):
            return self._range.between(None, value + isinstance(each, LessThanOrEqual))
        return False


def _column(each: Filter) -> str | None:
    attribute: tuple[str, ...] = getattr(each, "attribute", ())
    return attribute[0] if len(attribute) == 1 else None


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Options, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._progress: StreamOffsets | None = None
        self._commits: GroupCommits | None = None

    def __getstate__(self) -> dict[str, Any]:  # tasks read; place and commits are the driver's
        return self.__dict__ | {"_progress": None, "_commits": None}

    def _place(self) -> "StreamOffsets":
        if self._progress is None:
            from lance_sdk.spark.streaming.streams import StreamOffsets  # noqa: PLC0415 - only for streams

            self._progress = StreamOffsets(open_log(self._options), self._options)
        return self._progress

    @plainly()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        self._place().stop_at_now()

    @plainly()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        return self._place().initial()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        return ReadMaxBytes(self._options.max_bytes_per_trigger)

    @plainly()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's
        return self._place().advance(start, _bytes(limit, self._options))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's
        return None if self._progress is None else self._progress.ends()

    @plainly()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        if start == end:
            return []
        return _partitions(self._place().splits(end), self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition, self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        if self._options.commit_group is None:
            return
        from lance_sdk.spark.streaming.checkpoint import decode_checkpoint  # noqa: PLC0415 - as above
        from lance_sdk.spark.streaming.group_commits import GroupCommits  # noqa: PLC0415 - likewise

        if self._commits is None:
            self._commits = GroupCommits(self._options)
        self._commits.commit(decode_checkpoint(end))

    def stop(self) -> None:
        if self._commits is not None:
            self._commits.close()


def _bytes(limit: ReadLimit, options: Options) -> int:
    if isinstance(limit, ReadMaxBytes):
        return int(limit.max_bytes)
    return _EVERYTHING if isinstance(limit, ReadAllAvailable) else options.max_bytes_per_trigger
