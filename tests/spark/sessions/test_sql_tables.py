"""Views and tables of Spark's catalog whose rows are records of a topic."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.sessions.test_session import At, Fill, values

pytestmark = pytest.mark.timeout(
    600
)  # sessions start in five seconds, or in forty on a busy machine


def test_sql(spark: Any, produce: Fill, at: At) -> None:
    """A temporary view."""
    produce("orders", 100)
    said = ", ".join(f"{name} '{value}'" for name, value in {**at, "topic": "orders"}.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders USING lwp OPTIONS ({said})")
    (row,) = spark.sql("SELECT count(*) AS n, max(offset) AS last FROM orders").collect()
    assert (row["n"], row["last"]) == (100, 99 * 45)


@pytest.fixture
def table(spark: Any, at: At) -> Iterator[str]:
    """A table of the topic ``orders`` in Spark's catalog."""
    said = ", ".join(f"{name} '{value}'" for name, value in {**at, "topic": "orders"}.items())
    spark.sql(f"CREATE TABLE orders_table USING lwp OPTIONS ({said}, createTopic 'true')")
    yield "orders_table"
    spark.sql("DROP TABLE orders_table")


def test_a_table_is_read(spark: Any, table: str, produce: Fill) -> None:
    """Whole, in part, by name, with more options, and described."""
    expected = produce("orders", 100)
    assert values(spark.table(table)) == expected
    assert (
        values(spark.read.option("startingOffsets", '{"orders": 45}').table(table)) == expected[1:]
    )
    (row,) = spark.sql(f"SELECT count(*) AS n FROM {table} WHERE offset >= 450").collect()
    assert row["n"] == 90
    assert [row["col_name"] for row in spark.sql(f"DESCRIBE {table}").collect()][:2] == [
        "topic",
        "offset",
    ]


def test_a_table_is_inserted_into(spark: Any, table: str, reader: Any, at: At) -> None:
    """With some of its columns, in any order."""
    spark.sql(f"INSERT INTO {table} (value, key) VALUES (CAST('v' AS BINARY), CAST('k' AS BINARY))")
    spark.sql(f"INSERT INTO {table} (value) SELECT CAST('plain' AS BINARY)")
    rows = reader.rows(reader.splits(**at, topic="orders"), "key", "value")
    assert rows == [{"key": b"k", "value": b"v"}, {"key": None, "value": b"plain"}]


def test_rows_of_one_table_do_not_go_back_into_it_when_they_are_for_another(
    spark: Any, table: str, produce: Fill, reader: Any, at: At
) -> None:
    """Spark does not tell which table is meant, unless the statement names columns."""
    expected = produce("orders", 10)
    said = ", ".join(f"{name} '{value}'" for name, value in {**at, "topic": "copy"}.items())
    spark.sql(f"CREATE TABLE copy_table USING lwp OPTIONS ({said}, createTopic 'true')")
    try:
        with pytest.raises(Exception, match="does not tell which table they are for"):
            spark.sql(f"INSERT INTO copy_table SELECT * FROM {table}")
        spark.sql(f"INSERT INTO copy_table (key, value) SELECT key, value FROM {table}")
    finally:
        spark.sql("DROP TABLE copy_table")
    assert sorted(reader.values(**at, topic="copy")) == expected
    assert reader.values(**at, topic="orders") == expected


def test_a_table_is_streamed_to_another_topic(  # noqa: PLR0917 - fixtures
    spark: Any, table: str, produce: Fill, reader: Any, at: At, tmp_path: Path
) -> None:
    """A query's own options hold against those that its columns bring along."""
    expected = produce("orders", 100)
    rows = spark.readStream.option("startingOffsets", "earliest").table(table).select("value")
    writer = rows.writeStream.format("lwp").options(**at, topic="copy", createTopic="true")
    query = writer.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True)
    query.start().awaitTermination()
    assert reader.values(**at, topic="copy") == expected
    assert len(reader.values(**at, topic="orders")) == 100


def test_a_table_with_a_secret_is_refused(spark: Any) -> None:
    """Spark would show it."""
    with pytest.raises(Exception, match="option 'token' cannot stand in a table"):
        spark.sql("CREATE TABLE t USING lwp OPTIONS (servers 'a:1', topic 't', token 'secret')")
