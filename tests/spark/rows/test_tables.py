"""Options of tables in Spark's catalog, and conditions that narrow what is looked at."""

import gc
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pip install 'lance-sdk[spark]'")

from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual
from pyspark.sql.types import StructField, StructType

from lance_sdk.errors import ConfigError
from lance_sdk.spark import readers
from lance_sdk.spark.errors import SinkError
from lance_sdk.spark.options import Options, options_of_table
from lance_sdk.spark.pushdown import Range
from lance_sdk.spark.rows.encoding import own_times, without_offsets
from lance_sdk.spark.source import LwpDataSource
from lance_sdk.spark.tables import table_options, table_schema, times_by_type

CREATED = {
    "provider": "lwp",
    "owner": "me",
    "option.servers": "a:1",
    "servers": "a:1",
    "topic": "t",
}
"""What Spark hands over when a table is created."""


def test_the_columns_of_a_table_bring_its_options_along() -> None:
    """Also after Spark has kept them as JSON in its catalog."""
    schema = LwpDataSource(dict(CREATED)).schema()
    kept = StructType.fromJson(schema.jsonValue())
    assert table_options(kept) == {"servers": "a:1", "topic": "t"}
    assert LwpDataSource({})._options_with(kept).servers == "a:1"


def test_a_query_that_says_where_to_read_goes_by_that_alone() -> None:
    """What is made of a table keeps its metadata."""
    schema = LwpDataSource(dict(CREATED)).schema()
    options = LwpDataSource({"path": "/data"})._options_with(schema)
    assert (options.servers, options.path, options.topics) == (None, ("/data",), ())


def test_other_columns_bring_nothing_along() -> None:
    """Of a query, or of a table that was created with columns of its own."""
    assert table_options(LwpDataSource({"servers": "a:1", "topic": "t"}).schema()) == {}
    assert table_options(table_schema(["value"], None)) == {}


def test_a_table_with_columns_of_its_own_is_told_what_it_lacks() -> None:
    """Spark asks nobody for its columns, so that its options have nowhere to stand."""
    with pytest.raises(ConfigError, match="create it without; the option columns"):
        LwpDataSource({}).reader(table_schema(["value"], None))


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_streaming_query_is_not_told_where_to_end(name: str) -> None:
    """It would go on all the same."""
    text = {"endingOffsets": "latest", "endingTimestamp": "5"}.get(name, '{"t": 5}')
    source = LwpDataSource({"servers": "a:1", "topic": "t", name: text})
    source.reader(source.schema())
    with pytest.raises(ConfigError, match=f"option {name} is for batch queries"):
        source.streamReader(source.schema())


def test_rows_that_were_read_are_not_for_a_table() -> None:
    """They bring the options of the table that they were read from along."""
    rows = pa.record_batch({"offset": pa.array([None, 5], pa.int64()), "value": [b"a", b"b"]})
    with pytest.raises(SinkError, match="were read from a topic"):
        without_offsets(rows)
    assert without_offsets(rows[:1]) == rows[:1]


def test_a_table_without_offsets_is_not_written_to() -> None:
    """Nothing would tell rows that were read."""
    schema = LwpDataSource({**CREATED, "columns": "key,value"}).schema()
    assert table_options(schema)["topic"] == "t"
    with pytest.raises(ConfigError, match="without the column offset can only be read"):
        LwpDataSource({}).writer(schema, False)


def test_a_query_that_names_a_topic_may_write_what_was_read() -> None:
    """It says itself where to."""
    schema = LwpDataSource({**CREATED, "columns": "key,value"}).schema()
    assert LwpDataSource({"topic": "u"}).writer(schema, False)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("type,timestamp,value", True),
        ("type,ts_ns,value", True),
        ("timestamp,value", False),
        ("type,timestamp,time_source,value", False),
        ("type,value", False),
    ],
)
def test_types_tell_whose_times_are_where_nothing_else_does(columns: str, expected: bool) -> None:
    """In the columns of the source; the column ``time_source`` tells it itself."""
    schema = LwpDataSource({"servers": "a:1", "columns": columns}).schema()
    assert times_by_type(schema) is expected
    made = StructType([StructField(each.name, each.dataType) for each in schema.fields])
    assert not times_by_type(made)


def test_the_times_of_a_server_are_left_out_by_type() -> None:
    """Also in a keyed record; a row without a type keeps its time."""
    rows = pa.record_batch(
        {
            "type": pa.array([1, 17, 16, 18, None], pa.int32()),
            "timestamp": pa.array([5] * 5, pa.timestamp("us", "UTC")),
            "value": [b"v"] * 5,
        }
    )
    found = own_times(rows)
    assert found["timestamp"].is_valid().to_pylist() == [False, True, False, True, True]
    assert found["value"] == rows["value"]


def test_a_secret_does_not_go_into_a_table() -> None:
    """Its options are shown to whoever may read it."""
    with pytest.raises(ConfigError, match="'token' cannot stand in a table"):
        options_of_table({**CREATED, "token": "secret"})


@pytest.mark.parametrize(
    ("said", "topic", "wanted"),
    [
        ({}, "a", {"a"}),
        ({"topics": "a,b"}, "b", {"b"}),
        ({"topics": "a,b"}, "c", None),
        ({"topicsPattern": "a.*"}, "a.b", {"a.b"}),
        ({"topicsPattern": "a.*"}, "b", None),
    ],
)
def test_a_topic_that_is_asked_for_narrows_what_is_looked_at(
    said: dict[str, str], topic: str, wanted: set[str] | None
) -> None:
    """To that one, taken as it is written."""
    kept = Range()
    assert kept.only_topic(topic)
    options = kept.narrowed(Options.parse({"servers": "a:1", **said}))
    names = ["a", "b", "c", "a.b", "axb"]
    assert (None if options is None else {n for n in names if options.wants(n)}) == wanted


def test_conditions_on_a_topic_list_no_other(
    produce: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A condition costs what the option would."""
    from lance_sdk.spark.logs import batches  # noqa: PLC0415 - an extra

    for name in ("a", "b"):
        produce(name, 10)
    seen: list[str] = []

    def spied(log: Any, options: Options) -> Any:
        seen.extend(view.name for view in log.look())
        return batches.plan(log, options)

    monkeypatch.setattr(readers, "plan", spied)
    said = {"path": str(server.data_dir), "pushdown": "true"}
    schema = table_schema(["topic", "offset", "value"], None)
    made: Any = LwpDataSource(said).reader(schema)
    conditions = [EqualTo(("topic",), "b"), GreaterThanOrEqual(("offset",), 45)]
    assert list(made.pushFilters(conditions)) == []
    (partition,) = made.partitions()
    assert [len(batch) for batch in made.read(partition)] == [9]
    assert seen == ["b"]


def test_a_worker_looks_once_whether_its_modules_are_garbage(produce: Any, server: Any) -> None:
    """Spark's workers look after each task, and modules stay."""
    produce("orders", 10)
    schema = table_schema(["value"], None)
    made: Any = LwpDataSource({"path": str(server.data_dir)}).reader(schema)
    (partition,) = made.partitions()
    gc.unfreeze()
    readers._keep_modules.cache_clear()
    try:
        assert sum(len(batch) for batch in made.read(partition)) == 10
        kept = gc.get_freeze_count()
        assert kept > 10_000
        list(made.read(partition))
        assert gc.get_freeze_count() <= kept, "what a task has made is not kept"
    finally:
        gc.unfreeze()
