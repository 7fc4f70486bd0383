"""Replaying: an archive into topics, in the order of its offsets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_sdk.errors import ConfigError
from lance_sdk.spark import register
from lance_sdk.spark.options import Options
from lance_sdk.spark.pipelines.growth import watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    spark: "SparkSession",
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
        spark: the session.
        source: folder of the archive.
        options: where to write, as for the format ``lwp``; without ``topic`` every record goes to
            the topic that it came from.
        condition: which records, in SQL: ``offset >= 1000 and type = 1``.
        dry_run: only count.
        tell: called with records by which the topics have grown, as far as the server tells, and
            records in all; what others write there meanwhile counts, too.

    Raises:
        ConfigError: the folder is no archive, or the options do not fit.
        LanceError: the server cannot be written to.
    """
    parsed = Options.parse(options)
    parsed.url()
    frame = _archived(spark, source, condition)
    counted = frame.groupBy("topic").count().collect()
    found = Replayed({str(row["topic"]): int(row["count"]) for row in counted})
    if not dry_run and found.records:
        register(spark)
        rows = _ordered(frame, one_topic=bool(parsed.topics))
        with watched(parsed, parsed.topics or found.topics, found.records, tell):
            rows.write.format("lwp").options(**options).mode("append").save()
    return found


def _archived(spark: "SparkSession", source: str, condition: str | None) -> "DataFrame":
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - heavy

    try:
        frame = spark.read.parquet(source)
    except AnalysisException as error:
        told = str(error).partition("\n")[0]
        raise ConfigError(f"{source} is no archive, name the folder of one: {told}") from None
    missing = {"topic", "offset", "type", "value"} - set(frame.columns)
    if missing:
        raise ConfigError(f"{source} is no archive: it has no column {min(missing)!r}")
    frame = frame.select("topic", "offset", "type", "value")
    return frame if condition is None else frame.where(condition)


def _ordered(frame: "DataFrame", *, one_topic: bool) -> "DataFrame":
    """Put every topic into one partition, in the order of its offsets."""
    if one_topic:
        rows = frame.coalesce(1).sortWithinPartitions("topic", "offset")
        return rows.select("type", "value")
    parts = frame.repartition("topic").sortWithinPartitions("topic", "offset")
    return parts.select("topic", "type", "value")
