"""Archives that are replayed without Spark: read in order, or left to it."""

import importlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_sdk.errors import ConfigError
from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.pipelines import replay
from lance_sdk.spark.pipelines.archive_files import METADATA
from lance_sdk.spark.pipelines.archive_reader import archived_topics

At = Mapping[str, str]
MOMENT = datetime(2026, 1, 1, 12, tzinfo=UTC)
NANOSECONDS = int(MOMENT.timestamp()) * 10**9


class Archive:
    """An archive as Spark writes it.

    Args:
        home: its folder.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._noted: list[str] = []

    def add(self, name: str, *records: dict[str, Any], noted: bool = True) -> None:
        """Write a file; Spark's times are of a form that other programs have given up."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = {key: [record[key] for record in records] for key in records[0]}
        types = {"type": pa.int32(), "key": pa.binary(), "timestamp": pa.timestamp("us", "UTC")}
        table = pa.table({key: pa.array(column, types.get(key)) for key, column in columns.items()})
        pq.write_table(table, path, use_deprecated_int96_timestamps=True)
        if noted:
            status = {"path": path.as_uri(), "size": path.stat().st_size, "action": "add"}
            self._noted.append(json.dumps(status))
            (self.home / METADATA).mkdir(exist_ok=True)
            (self.home / METADATA / "0").write_text("\n".join(["v1", *self._noted]))


def row(offset: int, value: bytes | None = b"v", **more: Any) -> dict[str, Any]:
    """Return a record as an archive has it, without key and time unless they are said."""
    plain = {"type": 255 if value is None else 1, "key": None, "timestamp": None, "ts_ns": None}
    times = {"time_source": "record" if "ts_ns" in more else None}
    return {"offset": offset, "value": value, **plain, **times, **more}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """An archive without a file."""
    return Archive(tmp_path / "archive")


@pytest.fixture
def replayed(at: At, archive: Archive) -> Callable[..., Mapping[str, int]]:
    """Replay the archive in this process and those that it starts; return records by topic."""

    def run(**more: str) -> Mapping[str, int]:
        return replay(None, str(archive.home), {**at, "createTopic": "true", **more}).topics

    return run


def test_every_field_comes_back(
    archive: Archive, reader: Any, at: At, replayed: Callable[..., Mapping[str, int]]
) -> None:
    """Keys, times to the nanosecond, tombstones, and names that a path cannot have."""
    records = [
        row(0, b"both", key=b"k", timestamp=MOMENT, ts_ns=NANOSECONDS + 7, type=18),
        row(40, None, key=b"k", type=16),
        row(80, None),
        row(90, b"time", timestamp=MOMENT, ts_ns=NANOSECONDS, type=17),
        row(120, b"server", timestamp=MOMENT, ts_ns=NANOSECONDS, time_source="server"),
    ]
    archive.add("topic=a%3Ab/0.parquet", *records)
    archive.add("topic=007/0.parquet", row(0, b"other"))
    assert replayed() == {"a:b": 5, "007": 1}
    names = ("type", "key", "value", "ts_ns")
    found = reader.rows(reader.splits(**at, topic="a:b"), *names, "time_source")
    sources = [each.pop("time_source") for each in found]
    assert sources == ["record", "server", "server", "record", "server"]
    own = [
        each | {"ts_ns": each["ts_ns"] if source == "record" else None}
        for each, source in zip(found, sources, strict=True)
    ]
    expected = [{name: record[name] for name in names} for record in records]
    assert own == [*expected[:4], expected[4] | {"ts_ns": None}]
    assert reader.values(**at, topic="007") == [b"other"]


def test_files_are_read_in_the_order_of_their_offsets(
    archive: Archive, reader: Any, at: At, replayed: Callable[..., Mapping[str, int]]
) -> None:
    """Those that Spark has noted, and no other; several topics become one in their order."""
    archive.add("topic=b/0.parquet", row(0, b"b0"))
    archive.add("topic=a/0.parquet", row(80, b"a2"), row(90, b"a3"))
    archive.add("topic=a/1.parquet", row(0, b"a0"), row(40, b"a1"))
    archive.add("topic=a/2.parquet", row(99, b"of a task that died"), noted=False)
    assert replayed(topic="all") == {"a": 4, "b": 1}
    assert reader.values(**at, topic="all") == [b"a0", b"a1", b"a2", b"a3", b"b0"]


def test_a_large_archive_is_written_by_several_processes(
    archive: Archive,
    reader: Any,
    at: At,
    replayed: Callable[..., Mapping[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A topic by one of them, so that it keeps its order."""
    module = importlib.import_module("lance_sdk.spark.pipelines.replay")
    monkeypatch.setattr(module, "_ONE_TASK", 0)
    for topic in ("a", "b"):
        archive.add(f"topic={topic}/0.parquet", row(0, b"0"), row(6, b"1"))
    assert replayed() == {"a": 2, "b": 2}
    assert [reader.values(**at, topic=topic) for topic in ("a", "b")] == [[b"0", b"1"]] * 2


def test_a_repetition_stores_nothing_twice(
    archive: Archive,
    reader: Any,
    at: At,
    replayed: Callable[..., Mapping[str, int]],
    tmp_path: Path,
) -> None:
    """With semantics=exactly-once, under its name."""
    archive.add("topic=a/0.parquet", *(row(10 * number, b"%d" % number) for number in range(20)))
    once = {"semantics": "exactly-once", "txnId": "again", "ledgerPath": str(tmp_path / "log")}
    for _ in range(2):
        assert replayed(**once) == {"a": 20}
    assert reader.values(**at, topic="a") == [b"%d" % number for number in range(20)]


def test_an_archive_of_the_first_release_is_replayed(
    archive: Archive, reader: Any, at: At, replayed: Callable[..., Mapping[str, int]]
) -> None:
    """Its values are as they are stored, with the key before the payload."""
    stored = {"offset": 0, "type": 16, "value": b"\x01\x00kv", "ts_ns": None}
    archive.add("topic=a/0.parquet", stored)
    assert replayed() == {"a": 1}
    rows = reader.rows(reader.splits(**at, topic="a"), "key", "value")
    assert rows == [{"key": b"k", "value": b"v"}]


@pytest.mark.parametrize(
    "files",
    [
        {"date=2026-01-01/0.parquet": [0]},
        {"topic=a/0.parquet": [0, 20], "topic=a/1.parquet": [10]},
        {"topic=a/0.parquet": [20, 10]},
        {"topic=a/0.parquet": [0], "topic=a/1.parquet": [0]},
    ],
)
def test_what_is_not_in_order_is_left_to_spark(
    archive: Archive, at: At, files: dict[str, list[int]]
) -> None:
    """As are files of several topics; the error says so where there is no session."""
    for name, offsets in files.items():
        archive.add(name, *(row(offset) for offset in offsets))
    assert archived_topics(str(archive.home)) is None
    with pytest.raises(ConfigError, match="only Spark can replay it: its files are none, or not"):
        replay(None, str(archive.home), at)


def test_a_folder_without_files_is_no_archive(archive: Archive, at: At) -> None:
    """Unless Spark has noted that there are none yet."""
    archive.home.mkdir()
    with pytest.raises(ConfigError, match="is not an archive: it has no Parquet files"):
        replay(None, str(archive.home), at)
    (archive.home / METADATA).mkdir()
    with pytest.raises(ConfigError, match="only Spark can replay it: its files are none, or not"):
        replay(None, str(archive.home), at)


@pytest.mark.parametrize("place", [4, -1])
def test_a_file_that_is_damaged_is_told(archive: Archive, disk: Any, place: int) -> None:
    """By its name, wherever the damage is."""
    archive.add("topic=a/0.parquet", row(0))
    disk.spoil(archive.home / "topic=a/0.parquet", place)
    with pytest.raises(DataDamaged, match=r"topic=a/0.parquet cannot be read: .*restore it"):
        replay(None, str(archive.home), {"servers": "127.0.0.1:9"})


def test_a_condition_is_left_to_spark(archive: Archive, at: At) -> None:
    """It is written in SQL."""
    archive.add("topic=a/0.parquet", row(0))
    with pytest.raises(ConfigError, match="only Spark can replay it: a condition is SQL"):
        replay(None, str(archive.home), at, condition="offset > 7")


def test_a_dry_run_writes_nothing(archive: Archive) -> None:
    """It counts, and asks no server."""
    archive.add("topic=a/0.parquet", row(0), row(10))
    assert replay(None, str(archive.home), {"servers": "127.0.0.1:9"}, dry_run=True).records == 2
