"""How much is in a log: by topic, by type of record, by hour."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_sdk.spark.logs.batches import plan
from lance_sdk.spark.logs.contract import InputSplit
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import Options
from lance_sdk.spark.pipelines.page import page_of
from lance_sdk.spark.pipelines.plotting import draw
from lance_sdk.spark.pipelines.session import spread
from lance_sdk.spark.pipelines.volume import Volume
from lance_sdk.spark.rows.columns import arrow_schema
from lance_sdk.spark.rows.null_times import null_times

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HOUR_NS: Final = 3600 * 10**9
_COLUMNS: Final = ("topic", "type", "size", "ts_ns")


@dataclass(frozen=True, slots=True)
class Report:
    """How much is in a log.

    Attributes:
        volumes: by topic, hour and type; none in a dry run.
        planned: bytes to read, by topic, or by slot.
        null_times: records whose time is after the year 2262, which have no hour here.
    """

    volumes: Sequence[Volume]
    planned: Mapping[str, int] = field(default_factory=dict)
    null_times: int = 0

    @property
    def records(self) -> int:
        """How many records there are."""
        return sum(each.records for each in self.volumes)

    @property
    def bytes(self) -> int:
        """Bytes of all values."""
        return sum(each.bytes for each in self.volumes)


def report(
    spark: "SparkSession | None",
    options: Mapping[str, str],
    tell: Callable[[int, int], object] | None = None,
    *,
    dry_run: bool = False,
) -> Report:
    """Count what a log holds.

    Args:
        spark: the session whose tasks count; None counts in processes on this machine.
        options: what to read, as for the format ``lwp``.
        tell: called with splits done and splits in all.
        dry_run: only say what would be read.

    Raises:
        LanceError: the log cannot be read.
    """
    parsed = Options.parse(options)
    splits = plan(open_log(parsed), parsed)
    planned: dict[str, int] = {}
    for split in splits:
        planned[split.topic] = planned.get(split.topic, 0) + split.size
    if dry_run:
        return Report([], planned)
    sums: dict[tuple[str, int, int], list[int]] = {}
    beyond = 0
    for found, null in spread(spark, splits, partial(count_split), tell):
        beyond += null
        for topic, hour, kind, records, size in found:
            sums.setdefault((topic, hour, kind), [0, 0])[0] += records
            sums[topic, hour, kind][1] += size
    return Report(sorted(Volume(*key, *both) for key, both in sums.items()), planned, beyond)


def count_split(split: InputSplit) -> tuple[list[tuple[str, int, int, int, int]], int]:
    """Return (topic, hour, type, records, bytes) of a split, and how many times are too large."""
    tables, beyond = [], 0
    for batch in split.read(arrow_schema(_COLUMNS)):
        beyond += null_times(batch)
        tables.append(_count(batch))
    if not tables:
        return [], 0
    grouped = pa.concat_tables(tables).group_by(["topic", "hour", "type"])
    total = grouped.aggregate([("records", "sum"), ("bytes", "sum")])
    names = ("topic", "hour", "type", "records_sum", "bytes_sum")
    return list(zip(*(total[name].to_pylist() for name in names), strict=True)), beyond


def _count(batch: pa.RecordBatch) -> pa.Table:
    hours = pc.multiply(pc.divide(batch["ts_ns"], _HOUR_NS), 3600)
    table = pa.table(
        {
            "topic": batch["topic"],
            "hour": pc.fill_null(hours, -1),
            "type": batch["type"],
            "bytes": batch["size"].cast(pa.int64()),
        }
    )
    grouped = table.group_by(["topic", "hour", "type"])
    total = grouped.aggregate([("bytes", "count"), ("bytes", "sum")])
    names = {"bytes_count": "records", "bytes_sum": "bytes"}
    return total.rename_columns([names.get(name, name) for name in total.column_names]).select(
        ["topic", "hour", "type", "records", "bytes"]
    )


def plot(report: Report, path: str | Path) -> None:
    """Draw the volume of the topics by hour, or by day where there are more than two weeks.

    The largest topics have a colour each; all others are one. Records whose time is not known stand
    apart.

    Args:
        report: what to draw.
        path: the picture; its suffix decides the kind: svg, png or pdf.

    Raises:
        ConfigError: matplotlib is missing, or there is nothing to draw.
    """
    draw(report.volumes, path)


def write_page(report: Report, path: str | Path) -> None:
    """Write a report as one HTML page that needs nothing else: sums, the picture and every number.

    Args:
        report: what to write.
        path: the page.

    Raises:
        ConfigError: matplotlib is missing.
        OSError: the page cannot be written.
    """
    Path(path).write_text(page_of(report.volumes), encoding="utf-8")
