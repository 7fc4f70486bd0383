"""Replaying: an archive into topics, in the order of its offsets."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lance_sdk.errors import ConfigError
from lance_sdk.spark import register
from lance_sdk.spark.errors import SparkFailed
from lance_sdk.spark.failures import first_line, own_errors
from lance_sdk.spark.options import NAMES, Options
from lance_sdk.spark.pipelines.archive_files import METADATA, moved_files
from lance_sdk.spark.pipelines.archive_reader import ArchivedTopic, archived_topics, has_keys
from lance_sdk.spark.pipelines.growth import watched
from lance_sdk.spark.pipelines.session import refuse_connect, spread
from lance_sdk.spark.writing.sinks import Sink, Task, batch_sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TIMES: Final = ("timestamp", "ts_ns", "time_source")
_COLUMNS: Final = ("topic", "offset", "type", "key", "value", *_TIMES)
_ONE_TASK: Final = 16 << 20
"""Bytes of files that are written before another process has started."""
_WRITTEN: Final = tuple(name for name in _COLUMNS if name not in {"topic", "offset"})
_STORED_COLUMNS: Final = ("topic", "offset", "type", "value")
"""Those of an archive of the first release, whose values are as they are stored."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was replayed, or would be.

    Attributes:
        topics: records by topic of the archive.
    """

    topics: Mapping[str, int]

    @property
    def records(self) -> int:
        """How many records there are."""
        return sum(self.topics.values())


def replay(
    spark: "SparkSession | None",
    source: str,
    options: Mapping[str, str],
    *,
    condition: str | None = None,
    dry_run: bool = False,
    tell: Callable[[int, int], object] | None = None,
) -> Replayed:
    """Write the records of an archive to a server.

    One task writes a topic, so that its records keep their order. With ``semantics=exactly-once``,
    ``txnId`` and ``ledgerPath`` a replay that failed may be repeated.

    Args:
        spark: the session; None works in processes on this machine, which needs an archive whose
            files follow each other, see `archived_topics`, and no condition.
        source: folder of the archive.
        options: where to write, as for the format ``lwp``; without ``topic`` every record goes to
            the topic that it came from.
        condition: which records, in SQL: ``offset >= 1000 and type = 1``.
        dry_run: only count.
        tell: called with records by which the topics have grown, as far as the server tells, and
            records in all; what others write there meanwhile counts, too.

    Raises:
        ConfigError: the folder is not an archive, or the options do not fit.
        LanceError: the server cannot be written to.
    """
    if spark is not None:
        refuse_connect(spark)
    parsed = check_replay(options)
    check_archived(source)
    if spark is None:
        return _replay_here(source, parsed, condition, dry_run=dry_run, tell=tell)
    frame = _archived(spark, source, condition)
    with own_errors():
        counted = frame.groupBy("topic").count().collect()
    found = Replayed({str(row["topic"]): int(row["count"]) for row in counted})
    if not dry_run and found.records:
        register(spark)
        rows = _ordered(frame, one_topic=bool(parsed.topics))
        with watched(parsed, parsed.topics or found.topics, found.records, tell):
            form = {} if "key" in frame.columns else {NAMES["record_format"]: "stored"}
            with own_errors():
                rows.write.format("lwp").options(**form, **options).mode("append").save()
    return found


def needs_spark(source: str, condition: str | None) -> bool:
    """Whether only Spark can replay an archive; reads the offsets in its files.

    Raises:
        LanceError: a file of the archive cannot be read.
    """
    return condition is not None or archived_topics(source) is None


def _replay_here(
    source: str,
    options: Options,
    condition: str | None,
    *,
    dry_run: bool,
    tell: Callable[[int, int], object] | None,
) -> Replayed:
    """Replay in processes on this machine.

    Raises:
        ConfigError: that needs Spark.
    """
    topics = archived_topics(source) if condition is None else None
    if topics is None:
        raise ConfigError(
            f"{source}: only Spark can replay it: "
            + (
                "a condition is SQL"
                if condition is not None
                else "its files are none, or not in order"
            )
        )
    found = Replayed({topic.name: topic.records for topic in topics})
    if not dry_run and found.records:
        if options.record_format is None and not has_keys(topics):
            options = dataclasses.replace(options, record_format="stored")
        sink = batch_sink(options, ["topic", "value"], overwrite=False)
        # Several topics become one in their order: by one task.
        by_one = options.topics or sum(topic.bytes for topic in topics) <= _ONE_TASK
        work = [topics] if by_one else [[topic] for topic in topics]
        with watched(options, options.topics or found.topics, found.records, tell):
            tasks = list(enumerate(work))
            told = spread(None, tasks, partial(_write, sink))
            sink.commit(told, 0)
    return found


def _write(sink: Sink, task: tuple[int, Sequence[ArchivedTopic]]) -> Any:
    """Write topics, in a task; return what the sink's commit has to know."""
    number, topics = task
    batches = (batch for topic in topics for batch in topic.batches(_WRITTEN))
    return sink.write(batches, Task(partition=number))


def check_replay(options: Mapping[str, str]) -> Options:
    """Return the options of a replay, checked before Spark starts.

    Raises:
        ConfigError: they do not fit, or ``semantics=exactly-once`` lacks what it needs.
    """
    parsed = Options.parse(options)
    batch_sink(parsed, ["topic", "value"], overwrite=False)
    return parsed


def check_archived(source: str) -> None:
    """Refuse a folder that is no archive, as far as that is seen without Spark.

    Raises:
        ConfigError: it is not there, or has no Parquet files.
    """
    if "://" in source:  # Arrow may not know the way, and Spark does
        return
    folder = Path(source)
    if not folder.is_dir():
        raise ConfigError(f"{source} is not an archive: there is no such folder")
    if next(folder.rglob("*.parquet"), None) is None and not (folder / METADATA).is_dir():
        raise ConfigError(
            f"{source} is not an archive: it has no Parquet files; name the folder of one"
        )


def _archived(spark: "SparkSession", source: str, condition: str | None) -> "DataFrame":
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - heavy
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415 - likewise

    moved = moved_files(source)
    places = [source] if moved is None else moved
    try:
        with own_errors():
            frame = spark.read.option("basePath", source).parquet(*places)
    except SparkFailed as error:
        told = str(error).removeprefix("Spark: ")
        raise ConfigError(f"{source} is not an archive, name the folder of one: {told}") from None
    missing = {"topic", "offset", "type", "value"} - set(frame.columns)
    if missing:
        raise ConfigError(f"{source} is not an archive: it has no column {min(missing)!r}")
    # What is in the names of folders has the type that it looks like, unless it is said: 007.
    fields = [
        StructField(f.name, StringType() if f.name == "topic" else f.dataType) for f in frame.schema
    ]
    chosen = _COLUMNS if "key" in frame.columns else _STORED_COLUMNS
    typed = spark.read.option("basePath", source).schema(StructType(fields))
    frame = typed.parquet(*places).select(*chosen)
    try:
        return frame if condition is None else frame.where(condition)
    except AnalysisException as error:  # what cannot be parsed is one, too
        raise ConfigError(f"condition {condition!r}: {first_line(error)}") from None


def _ordered(frame: "DataFrame", *, one_topic: bool) -> "DataFrame":
    """Put every topic into one partition, in the order of its offsets."""
    if one_topic:
        rows = frame.coalesce(1).sortWithinPartitions("topic", "offset")
        return rows.drop("topic", "offset")
    return frame.repartition("topic").sortWithinPartitions("topic", "offset").drop("offset")
