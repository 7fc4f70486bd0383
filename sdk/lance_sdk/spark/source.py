"""The format ``lwp`` as Spark sees it: thin classes around what is tested without Spark.

What only some queries need is imported by them: every task of Spark's collects the garbage of its
process, which takes the longer the more modules there are.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lance_sdk.errors import ConfigError
from lance_sdk.spark.failures import plainly
from lance_sdk.spark.logs.batches import plan
from lance_sdk.spark.logs.contract import InputSplit
from lance_sdk.spark.logs.input_partitions import packed
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import PLACES, TARGETS, Options, options_of_table
from lance_sdk.spark.pushdown import Range
from lance_sdk.spark.rows.columns import check_schema
from lance_sdk.spark.rows.null_times import warned
from lance_sdk.spark.tables import check_target, table_options, table_schema, times_by_type

if TYPE_CHECKING:
    from lance_sdk.spark.streaming.group_commits import GroupCommits
    from lance_sdk.spark.streaming.streams import StreamOffsets
    from lance_sdk.spark.writing import sinks

_RowRule: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]
_EVERYTHING = 2**62
"""Bytes: more than any log has."""


class LwpDataSource(DataSource):
    """Topics, segment files and slots as DataFrames; see the guide for its options.

    ::

        spark.read.format("lwp").option("servers", "localhost:1992").option("topic", "orders")
    """

    @plainly()
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._said = {name: options[name] for name in options}
        self._options = Options.parse(self._said)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "lwp"

    def schema(self) -> StructType:
        """Return the columns of a query that does not say."""
        return table_schema(self._options.chosen_columns, options_of_table(self._said))

    @plainly()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads a batch query."""
        options = self._options_with(schema)
        kind = _PushdownReader if options.pushdown else _BatchReader
        return kind(options, _arrow(schema))

    @plainly()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """Return what reads a streaming query."""
        return _StreamReader(self._options_with(schema).of_stream(), _arrow(schema))

    @plainly()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return what writes a DataFrame; a log is only ever appended to."""
        from lance_sdk.spark.writing import sinks  # noqa: PLC0415 - only for queries that write

        options = self._options_with(schema)
        sink = sinks.batch_sink(options, schema.names, overwrite=overwrite)
        return _Writer(sink, self._row_rules(schema))

    @plainly()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - Spark's
        """Return what writes a streaming query."""
        from lance_sdk.spark.writing import sinks  # noqa: PLC0415 - only for queries that write

        options = self._options_with(schema)
        sink = sinks.stream_sink(options, schema.names, overwrite=overwrite)
        return _StreamWriter(sink, self._row_rules(schema))

    def _row_rules(self, schema: StructType) -> list[_RowRule]:
        """Return what is done to rows before they are written.

        Raises:
            ConfigError: it cannot be told where they are to go.
        """
        from lance_sdk.spark.rows.encoding import own_times, without_offsets  # noqa: PLC0415 - as above

        found: list[_RowRule] = []
        if not any(name.lower() in TARGETS for name in self._said):
            check_target(schema)
            found.append(without_offsets)
        if times_by_type(schema):
            found.append(own_times)
        return found

    def _options_with(self, schema: StructType) -> Options:
        """Return the options, with those that the columns of a table bring along.

        Columns keep them in whatever is made of the table, so they count only where a query does
        not itself say where to read or to write.

        Raises:
            ConfigError: nothing says where.
        """
        if any(name.lower() in PLACES for name in self._said):
            return self._options
        of_table = table_options(schema)
        if not of_table and not self._said:
            raise ConfigError(
                "say where to read or write: option servers=host:port with topic=NAME, or a path "
                "of files. A table of Spark's catalog that was created with columns of its own, or "
                "AS SELECT, has no options: create it without; the option columns=A,B chooses "
                "columns"
            )
        return Options.parse(of_table | self._said)


def _arrow(schema: StructType) -> pa.Schema:
    arrow = to_arrow_schema(schema, timezone="UTC")
    check_schema(arrow)
    return arrow


def _read(partition: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if partition is None or partition.value is None:  # no splits: one empty partition
        return
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


class _Message(WriterCommitMessage):
    """What a task tells the driver."""

    def __init__(self, told: Any) -> None:
        self.told = told


def _told(messages: list[WriterCommitMessage | None]) -> list[Any]:
    return [each.told for each in messages if isinstance(each, _Message)]


def _written(
    sink: "sinks.Sink", rules: Iterable[_RowRule], batches: Iterator[pa.RecordBatch]
) -> WriterCommitMessage:
    for rule in rules:
        batches = map(rule, batches)
    return _Message(sink.write(batches, _task()))


class _Writer(DataSourceArrowWriter):
    def __init__(self, sink: "sinks.Sink", rules: list[_RowRule]) -> None:
        self._sink = sink
        self._rules = rules

    @plainly()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _written(self._sink, self._rules, iterator)

    @plainly()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.commit(_told(messages), 0)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.abort(_told(messages), 0)


class _StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, sink: "sinks.Sink", rules: list[_RowRule]) -> None:
        self._sink = sink
        self._rules = rules

    @plainly()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _written(self._sink, self._rules, iterator)

    @plainly()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        self._sink.commit(_told(messages), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        self._sink.abort(_told(messages), batchId)


def _task() -> "sinks.Task":
    """Return which task this is, by what Spark tells only inside of it."""
    from pyspark import TaskContext  # noqa: PLC0415 - there is one in tasks only

    from lance_sdk.spark.writing import sinks  # noqa: PLC0415 - only for queries that write

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
