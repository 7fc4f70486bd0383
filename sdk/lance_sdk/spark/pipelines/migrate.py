"""Migrating: what a server or a slot has captured into topics of another server.

Whatever protocol it came in by, LWP, QWP, RustLog or Fluvio, a server keeps it as records. So
moving to another server is reading the files, or the old server, and writing records, each topic
in its order and under a name of your choice.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_sdk.errors import ConfigError
from lance_sdk.journal.config import SlotKind
from lance_sdk.journal.tools import kind_of
from lance_sdk.spark.logs.batches import plan
from lance_sdk.spark.logs.contract import InputSplit
from lance_sdk.spark.logs.resolve import folders_of, open_log
from lance_sdk.spark.logs.slot_log import SlotSplit, slot_files
from lance_sdk.spark.options import Options
from lance_sdk.spark.pipelines.session import spread
from lance_sdk.spark.rows.columns import arrow_schema
from lance_sdk.spark.rows.encoding import frames_of
from lance_sdk.spark.writing.sending import FrameSender

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Migrated:
    """What was moved, or would be.

    Attributes:
        topics: for each topic of the target, the records it got; None in a dry run.
        bytes: that were to be read.
    """

    topics: Mapping[str, int | None]
    bytes: int


def migrate(
    spark: "SparkSession | None",
    source: Mapping[str, str],
    target: Mapping[str, str],
    *,
    rename: Sequence[tuple[str, str]] = (),
    dry_run: bool = False,
    tell: Callable[[int, int], object] | None = None,
) -> Migrated:
    """Copy topics to another server; topics side by side, the records of each in order.

    Records arrive at least once: a task that Spark repeats writes its topic again. To move data
    once, archive it and replay the archive with ``semantics=exactly-once``.

    Args:
        spark: the session whose tasks copy; None copies in processes on this machine.
        source: what to read, as for the format ``lwp``.
        target: where to write; without ``topic``, to topics of the same names.
        rename: pairs of a regular expression, which matches whole names, and what to make of it.
        dry_run: only say what would be copied.
        tell: called with topics done and topics in all.

    Raises:
        ConfigError: the options do not fit.
        LanceError: a side cannot be read or written.
    """
    reading, writing = Options.parse(source), Options.parse(target)
    writing.url()
    splits = _planned(reading)
    names = _names(splits, rename, writing)
    size = sum(split.size for split in splits)
    if dry_run:
        return Migrated(dict.fromkeys(names.values()), size)
    work = [list(group) for _, group in _by_topic(splits)]
    copied = spread(spark, work, partial(copy, writing, rename), tell)
    sums: dict[str, int] = {}
    for counts in copied:
        for name, records in counts.items():
            sums[name] = sums.get(name, 0) + records
    return Migrated(sums, size)


def _planned(options: Options) -> list[InputSplit]:
    for path in options.path:
        for slot in folders_of(path)[1]:
            files, folder = slot_files(slot)
            if kind_of(folder, files) is SlotKind.QWP:
                raise ConfigError(
                    f"{slot} holds QWP frames, which belong to a QWP server: send them to one, "
                    f"for example lance-server --qwp, with: lwp sf drain {slot}"
                )
    return plan(open_log(options), options)


def _by_topic(splits: Sequence[InputSplit]) -> Iterator[tuple[str, list[InputSplit]]]:
    ordered = sorted(splits, key=attrgetter("topic", "start"))
    for topic, group in groupby(ordered, key=attrgetter("topic")):
        yield topic, list(group)


def _names(
    splits: Sequence[InputSplit], rename: Sequence[tuple[str, str]], options: Options
) -> dict[str, str]:
    """Return what every topic is called at the target; a slot's topics are looked up in it.

    Raises:
        ConfigError: two topics would become one, though no option ``topic`` asks for that.
    """
    found: dict[str, str] = {}
    for split in splits:
        for topic in split.topics() if isinstance(split, SlotSplit) else [split.topic]:
            found[topic] = renamed(topic, rename, options)
    sources: dict[str, str] = {}
    for topic, name in found.items():
        other = sources.setdefault(name, topic)
        if other != topic and not options.topics:
            raise ConfigError(
                f"topics {other!r} and {topic!r} would both be called {name!r}, and their records "
                "be mixed; rename one of them otherwise, or say topic=NAME to join all"
            )
    return found


def renamed(topic: str, rename: Sequence[tuple[str, str]], options: Options) -> str:
    """Return what a topic is called at the target: by the first pair that matches."""
    for pattern, replacement in rename:
        try:
            if found := re.fullmatch(pattern, topic):
                return found.expand(replacement)
        except (re.error, IndexError) as error:
            raise ConfigError(f"rename {pattern}={replacement}: {error}") from None
    return options.topics[0] if options.topics else topic


def copy(
    options: Options, rename: Sequence[tuple[str, str]], splits: Sequence[InputSplit]
) -> dict[str, int]:
    """Copy the splits of one topic or slot, in a task; return the records each target got."""

    def named(topic: str) -> str:
        return renamed(topic, rename, options)

    counts: dict[str, int] = {}
    senders: dict[str, FrameSender] = {}
    try:
        for target, batch in _batches(splits, named):
            if target not in senders:
                senders[target] = FrameSender(options, target)
                senders[target].open()
            for frame in frames_of(batch, target, options.batch_bytes, stored=True):
                senders[target].send_frame(frame)
                counts[target] = counts.get(target, 0) + frame.count
        for sender in senders.values():
            sender.finish()
    finally:
        for sender in senders.values():
            sender.close()
    return counts


def _batches(
    splits: Sequence[InputSplit], named: Callable[[str], str]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield batches, as they are stored, with the topic that they go to."""
    for split in splits:
        for batch in split.read(arrow_schema(["topic", "type", "raw"])):
            if len(batch):
                target = named(batch["topic"][0].as_py())
                yield target, batch.select(["type", "raw"]).rename_columns(["type", "value"])
