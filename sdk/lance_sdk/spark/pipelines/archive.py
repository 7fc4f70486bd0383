"""Archiving: a log into Parquet files, going on where the last run stopped."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lance_sdk.errors import ConfigError
from lance_sdk.spark import register
from lance_sdk.spark.failures import own_errors
from lance_sdk.spark.files.storage import entries, read_file
from lance_sdk.spark.logs.batches import plan
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import NAMES, Options, RecordFormat
from lance_sdk.spark.pipelines.archive_files import locked, relocate
from lance_sdk.spark.pipelines.compact import finish
from lance_sdk.spark.pipelines.session import refuse_connect
from lance_sdk.spark.rows.column_names import TYPES
from lance_sdk.spark.streaming.checkpoint import STORED_VERSION, decode_checkpoint, version_of
from lance_sdk.spark.streaming.streams import StreamOffsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS: Final = (
    "topic",
    "offset",
    "type",
    "key",
    "value",
    "timestamp",
    "ts_ns",
    "time_source",
)
STORED_COLUMNS: Final = ("topic", "offset", "type", "value", "ts_ns")
"""Those of an archive that was begun by the first release; it goes on with them."""
_CHECKPOINT: Final = "_lwp_checkpoint"
_PARTITIONS: Final = ("topic", "date", "hour")
_NULL_TIMES: Final = "null_times"
_POLL: Final = 0.2
_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR


@dataclass(frozen=True, slots=True)
class Archived:
    """What one run archived.

    Attributes:
        target: where the Parquet files are.
        records: how many were added; None in a dry run, which reads none.
        bytes: of the log that were read, or in a dry run: that would be.
        topics: how far each topic is archived.
        null_times: records whose time is after the year 2262: their ``ts_ns`` is null, and their
            ``timestamp`` is in microseconds.
    """

    target: str
    records: int | None
    bytes: int
    topics: Mapping[str, int]
    null_times: int = 0


def archive(
    spark: "SparkSession | None",
    options: Mapping[str, str],
    target: str,
    *,
    partition_by: Sequence[str] = ("topic",),
    dry_run: bool = False,
    tell: Callable[[int, int], object] | None = None,
) -> Archived:
    """Append to an archive what a log has and the archive has not.

    Repeat it as often as you like: each run goes on where the last one stopped, also one that was
    killed, and every record is in the archive once. It may be copied or moved between two runs.

    Args:
        spark: the session; a dry run needs none.
        options: what to read, as for the format ``lwp``.
        target: folder of the archive; its checkpoint stands in it.
        partition_by: some of ``topic``, ``date`` (such as ``2026-01-31``) and ``hour`` (such as
            ``2026-01-31-05``), both UTC, of the records' times; of the run where none is known:
            such as records without a time of their own from a server that cannot tell (AMB-61).
        dry_run: only say how much there would be to do.
        tell: called with bytes done and bytes in all.

    Raises:
        ConfigError: the options do not fit, or another run works on the archive.
        LanceError: the log cannot be read.
    """
    unknown = [name for name in partition_by if name not in _PARTITIONS]
    if unknown:
        raise ConfigError(f"partition by {', '.join(_PARTITIONS)}, not by {unknown[0]!r}")
    check_target(target)
    said = {NAMES["starting_offsets"]: "earliest", **options}
    parsed = Options.parse(said)
    form = _form(parsed, target)
    if dry_run:
        return _would(parsed, target)
    if spark is None:
        raise ConfigError("only a dry run of an archive needs no Spark session")
    refuse_connect(spark)
    register(spark)
    with locked(target):
        relocate(target)
        finish(target)
        said[NAMES["record_format"]] = form
        query = _query(spark, said, target, partition_by)
        with own_errors():
            return _followed(query.start(target), target, parsed, tell)


def _query(
    spark: "SparkSession", options: Mapping[str, str], target: str, partition_by: Sequence[str]
) -> Any:
    """Return what writes into the archive."""
    columns = STORED_COLUMNS if options[NAMES["record_format"]] == "stored" else COLUMNS
    reader = spark.readStream.format("lwp").options(**options).schema(_schema(columns))
    return (
        _dated(_observed(reader.load()), partition_by)
        .writeStream.format("parquet")
        .partitionBy(*partition_by)
        .option("checkpointLocation", f"{target.rstrip('/')}/{_CHECKPOINT}")
        .trigger(availableNow=True)
    )


def check_target(target: str) -> None:
    """Refuse what cannot be the folder of an archive.

    Raises:
        ConfigError: it is empty, or a file.
    """
    if not target:
        raise ConfigError("the folder of the archive has no name; say where the archive is to be")
    if "://" not in target and Path(target).exists() and not Path(target).is_dir():
        raise ConfigError(f"{target} is a file; name the folder of an archive, or a new one")


def check_archive(options: Mapping[str, str]) -> int:
    """Look whether there is what an archive is to be made of, before Spark starts.

    Returns:
        Bytes of its topics.

    Raises:
        ConfigError: the options do not fit.
        LanceError: the log cannot be seen.
    """
    views = open_log(Options.parse({NAMES["starting_offsets"]: "earliest", **options})).look()
    return sum(view.end - view.start for view in views)


def _form(options: Options, target: str) -> RecordFormat:
    """Return in which form values are archived: that in which the archive was begun.

    Raises:
        ConfigError: the other one is asked for.
    """
    begun, asked = _begun_form(f"{target.rstrip('/')}/{_CHECKPOINT}/offsets"), options.record_format
    if begun is not None and asked not in {None, begun}:
        raise ConfigError(
            f"recordFormat={asked}: {target} was begun with recordFormat={begun} and goes on so; "
            "begin a new archive in another folder"
        )
    return begun or asked or "payload"


def _begun_form(offsets: str) -> RecordFormat | None:
    """Return the form of an archive by the version of its checkpoint; None where it has none."""
    try:
        batches = [each for each in entries(offsets) if each.name.isdigit()]
    except FileNotFoundError:
        return None
    if not batches:
        return None
    newest = max(batches, key=lambda each: int(each.name))
    line = read_file(newest.path).decode().splitlines()[-1]
    return "stored" if version_of(json.loads(line)) == STORED_VERSION else "payload"


def _schema(columns: Sequence[str]) -> str:
    return ", ".join(f"{name} {TYPES[name]}" for name in columns)


def _observed(frame: "DataFrame") -> "DataFrame":
    """Have the query's progress count times that are null because they are too large."""
    if "timestamp" not in frame.columns:
        return frame
    from pyspark.sql.functions import expr  # noqa: PLC0415 - heavy

    count = expr("count_if(ts_ns IS NULL AND timestamp IS NOT NULL)")
    return frame.observe(_NULL_TIMES, count.alias(_NULL_TIMES))


def _dated(frame: "DataFrame", partition_by: Sequence[str]) -> "DataFrame":
    own = "unix_seconds(timestamp)" if "timestamp" in frame.columns else f"ts_ns div {10**9}"
    known = f"coalesce({own}, {int(time.time())})"  # else the time at which it is archived
    date = f"date_from_unix_date(cast({known} div {_DAY} as int))"
    hour = f"{date} || '-' || lpad(cast(({known} div {_HOUR}) % 24 as string), 2, '0')"
    columns = {"date": date, "hour": hour}
    wanted = [f"{columns[name]} as {name}" for name in columns if name in partition_by]
    return frame.selectExpr("*", *wanted)


def _followed(
    query: Any, target: str, options: Options, tell: Callable[[int, int], object] | None
) -> Archived:
    """Wait for the run, telling how far it is."""
    seen: dict[int, Any] = {}
    total = 0
    while not query.awaitTermination(_POLL):
        total = total or _backlog(query)
        _collect(query, seen)
        if tell is not None and total:
            tell(min(total, _bytes(seen)), total)
    _collect(query, seen)
    records = sum(int(each["numInputRows"]) for each in seen.values())
    last = seen[max(seen)] if seen else None
    topics = _ends(last) if last else _would(options, target).topics
    observed = [each["observedMetrics"].get(_NULL_TIMES) for each in seen.values()]
    null_times = sum(int(row[_NULL_TIMES]) for row in observed if row is not None)
    return Archived(target, records, _bytes(seen), topics, null_times)


def _collect(query: Any, seen: dict[int, Any]) -> None:
    for each in query.recentProgress:
        seen[int(each["batchId"])] = each


def _offsets(source: Any, name: str) -> dict[str, Any]:
    found = source[name]
    return decode_checkpoint(json.loads(found) if isinstance(found, str) else found or _NOTHING)


_NOTHING: Final = {"v": 1, "topics": {}}


def _ends(progress: Any) -> dict[str, int]:
    checkpoints = _offsets(progress["sources"][0], "endOffset")
    return {name: checkpoint.offset for name, checkpoint in checkpoints.items()}


def _bytes(seen: Mapping[int, Any]) -> int:
    total = 0
    for each in seen.values():
        if each["numInputRows"]:
            checkpoints = _offsets(each["sources"][0], "endOffset")
            total += sum(
                checkpoint.offset - checkpoint.start for checkpoint in checkpoints.values()
            )
    return total


def _backlog(query: Any) -> int:
    """Return how many bytes this run has to do, once the query tells."""
    progress = query.lastProgress
    if progress is None or not progress["sources"][0].get("latestOffset"):
        return 0
    first = _offsets(progress["sources"][0], "endOffset")
    last = _offsets(progress["sources"][0], "latestOffset")
    return sum(
        max(0, checkpoint.offset - first[name].start)
        for name, checkpoint in last.items()
        if name in first
    )


def _would(options: Options, target: str) -> Archived:
    log = open_log(options)
    progress = StreamOffsets(log, options)
    progress.initial()
    ends = {
        name: checkpoint.offset for name, checkpoint in decode_checkpoint(progress.ends()).items()
    }
    size = sum(split.size for split in plan(log, options))
    return Archived(target, None, size, ends)
