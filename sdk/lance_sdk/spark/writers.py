"""What writes for Spark: thin classes around what is tested without Spark."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from lance_sdk.spark.failures import plainly
from lance_sdk.spark.options import Options
from lance_sdk.spark.rows.encoding import own_times, without_offsets
from lance_sdk.spark.tables import check_target, times_by_type
from lance_sdk.spark.writing import sinks

_RowRule: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]


def batch_writer(
    options: Options, schema: StructType, *, is_aimed: bool, overwrite: bool
) -> DataSourceArrowWriter:
    """Return what writes a DataFrame; a log is only ever appended to.

    Args:
        options: of the query.
        schema: of the DataFrame.
        is_aimed: whether the query itself says where to write.
        overwrite: whether what is there was to go, which is refused.
    """
    sink = sinks.batch_sink(options, schema.names, overwrite=overwrite)
    return _Writer(sink, _row_rules(schema, is_aimed=is_aimed))


def stream_writer(
    options: Options, schema: StructType, *, is_aimed: bool, overwrite: bool
) -> DataSourceStreamArrowWriter:
    """Return what writes a streaming query; the arguments are those of `batch_writer`."""
    sink = sinks.stream_sink(options, schema.names, overwrite=overwrite)
    return _StreamWriter(sink, _row_rules(schema, is_aimed=is_aimed))


def _row_rules(schema: StructType, *, is_aimed: bool) -> list[_RowRule]:
    """Return what is done to rows before they are written.

    Raises:
        ConfigError: it cannot be told where they are to go.
    """
    found: list[_RowRule] = []
    if not is_aimed:
        check_target(schema)
        found.append(without_offsets)
    if times_by_type(schema):
        found.append(own_times)
    return found


class _Message(WriterCommitMessage):
    """What a task tells the driver."""

    def __init__(self, told: Any) -> None:
        self.told = told


def _told(messages: list[WriterCommitMessage | None]) -> list[Any]:
    return [each.told for each in messages if isinstance(each, _Message)]


class _SinkWriter:
    """Writes rows to a sink; Spark numbers the batches of a streaming query, and no others."""

    def __init__(self, sink: sinks.Sink, rules: list[_RowRule]) -> None:
        self._sink = sink
        self._rules = rules

    @plainly()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        batches = iterator
        for rule in self._rules:
            batches = map(rule, batches)
        return _Message(self._sink.write(batches, _task()))

    @plainly()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int = 0) -> None:  # noqa: N803 - Spark's
        self._sink.commit(_told(messages), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int = 0) -> None:  # noqa: N803 - Spark's
        self._sink.abort(_told(messages), batchId)


class _Writer(_SinkWriter, DataSourceArrowWriter):
    pass


class _StreamWriter(_SinkWriter, DataSourceStreamArrowWriter):
    pass


def _task() -> sinks.Task:
    """Return which task this is, by what Spark tells only inside of it."""
    from pyspark import TaskContext  # noqa: PLC0415 - there is one in tasks only

    context = TaskContext.get()
    if context is None:
        return sinks.Task()
    batch = context.getLocalProperty("streaming.sql.batchId")
    return sinks.Task(
        partition=context.partitionId(),
        attempt=context.taskAttemptId(),
        query=context.getLocalProperty("sql.streaming.queryId"),
        batch=None if batch is None else int(batch),
    )
