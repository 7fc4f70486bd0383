"""An archive's records in the order of their offsets, read without Spark.

That takes no sorting where the files of a topic follow each other, which they do unless records are
archived by the times that their producers gave them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.files.storage import opened
from lance_sdk.spark.pipelines.archive_files import committed_files

_TOPIC: Final = "topic="
_ROWS: Final = 10_000
"""Rows of a batch, as Spark has them."""
_INSTANT: Final = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class ArchivedTopic:
    """A topic of an archive.

    Attributes:
        name: the topic's name.
        files: its Parquet files, by rising offsets.
        records: how many they hold.
        bytes: of the files.
    """

    name: str
    files: tuple[str, ...]
    records: int
    bytes: int

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the records, in the order of their offsets.

        Args:
            columns: those of them that the files have are in the batches, and the topic's name.
        """
        for path in self.files:
            with _parquet(path) as (file, _):
                names = [name for name in columns if name in file.schema_arrow.names]
                for batch in file.iter_batches(_ROWS, columns=names):
                    topic = pa.repeat(pa.scalar(self.name), len(batch))
                    yield _with_instants(batch).append_column("topic", topic)


def archived_topics(archive: str) -> list[ArchivedTopic] | None:
    """Return the topics of an archive that have records, by name.

    Args:
        archive: folder of the archive.

    Returns:
        None where they cannot be read in order as they are: there are no files that Spark has
        noted, a folder is not that of one topic, or files of a topic have offsets between those of
        another.

    Raises:
        ConfigError: Spark's notes cannot be read.
        DataDamaged: a file cannot be read.
        OSError: likewise, or a file is gone.
    """
    files: dict[str | None, list[str]] = {}
    for path in committed_files(archive):
        files.setdefault(_topic_of(path), []).append(path)
    found: list[ArchivedTopic] = []
    for name, paths in files.items():
        topic = None if name is None else _in_order(name, paths)
        if topic is None:
            return None
        if topic.records:
            found.append(topic)
    return sorted(found, key=attrgetter("name")) if files else None


def has_keys(topics: Sequence[ArchivedTopic]) -> bool:
    """Whether there is a column of keys; without one, values are as they are stored."""
    with _parquet(topics[0].files[0]) as (file, _):
        return "key" in file.schema_arrow.names


def _topic_of(path: str) -> str | None:
    """Return the topic that a file's folder says; Spark writes what a path must not have as %XX."""
    for name in reversed(path.split("/")[:-1]):
        if name.startswith(_TOPIC):
            return unquote(name.removeprefix(_TOPIC))
        if "=" not in name:
            break
    return None


def _in_order(name: str, paths: Sequence[str]) -> ArchivedTopic | None:
    """Return a topic with its files in order; None where there is none."""
    ranges: list[tuple[int, int, str]] = []
    records = size = 0
    for path in paths:
        offsets, bytes_of_file = _offsets(path)
        size += bytes_of_file
        records += len(offsets)
        if len(offsets):
            if (np.diff(offsets) <= 0).any():
                return None
            ranges.append((int(offsets[0]), int(offsets[-1]), path))
    ranges.sort()
    if any(last >= first for (_, last, _), (first, _, _) in pairwise(ranges)):
        return None
    return ArchivedTopic(name, tuple(path for _, _, path in ranges), records, size)


def _offsets(path: str) -> tuple[np.ndarray[Any, Any], int]:
    """Return the offsets of a file's records, and its size."""
    with _parquet(path) as (file, size):
        return file.read(columns=["offset"])["offset"].to_numpy(), size


@contextmanager
def _parquet(path: str) -> Iterator[tuple[pq.ParquetFile, int]]:
    """Open a file, whose times may be beyond nanoseconds; yield it with its size.

    Raises:
        DataDamaged: it cannot be read.
        FileNotFoundError: it is gone.
    """
    try:
        with (
            opened(path) as source,
            pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file,
        ):
            yield file, source.size()
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        why = " ".join(str(error).split())
        raise DataDamaged(f"{path} cannot be read: {why}; restore it from a copy") from None


def _with_instants(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose times are instants, as Spark's type is, however they are written."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type):
            times = pc.cast(batch.column(index), _INSTANT)
            batch = batch.set_column(index, field.name, times)
    return batch
