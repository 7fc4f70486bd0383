"""Reading topics at a server: all of it, parts of it, and what has gone."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import pytest

from lance_sdk import Client, Producer
from lance_sdk.errors import (
    ConfigError,
    DeadlineExceeded,
    MisalignedOffset,
    TopicDeleted,
    TopicNotFound,
)
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.logs import server_log
from lance_sdk.spark.logs.server_calls import batches_of
from lance_sdk.spark.logs.server_log import ServerLog
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.checkpoint import TopicCheckpoint
from lance_server import running
from lance_server.embedded import EmbeddedServer

Fill = Callable[..., list[bytes]]
At = Mapping[str, str]


def test_a_topic_is_read_whole(reader: Any, produce: Fill, at: At) -> None:
    """In order, with offsets that rise by what the records take."""
    values = produce("orders", 500)
    rows = reader.rows(reader.splits(**at, topic="orders"))
    assert [row["value"] for row in rows] == values
    assert [row["offset"] for row in rows] == [45 * number for number in range(500)]
    assert {(row["topic"], row["type"]) for row in rows} == {("orders", 1)}


def test_a_topic_is_one_split_unless_more_are_asked_for(reader: Any, produce: Fill, at: At) -> None:
    """Finding boundaries costs reading the topic once."""
    produce("orders", 10)
    assert len(reader.splits(**at, topic="orders")) == 1


def test_more_splits_hold_the_same_records(reader: Any, produce: Fill, at: At) -> None:
    """Cut at records, none twice and none lost."""
    values = produce("orders", 40, size=100_000)
    splits = reader.splits(**at, topic="orders", minPartitions="3", fetchBytes="200KB")
    assert len(splits) == 3
    assert [row["value"] for row in reader.rows(splits, "value")] == values


@pytest.mark.parametrize("asked", [{"topic": "parts"}, {"topicsPattern": "part."}], ids=str)
def test_a_partitioned_topic_is_one_split_a_partition(
    reader: Any, produce: Fill, at: At, server: EmbeddedServer, asked: dict[str, str]
) -> None:
    """AMB-59: by its name, or by a pattern that its name fits."""
    with Client(server.url) as client:
        client.create_topic("parts", partitions=3)
    values = [value for index in range(3) for value in produce(f"parts-{index}", 5)]
    splits = reader.splits(**at, **asked, minPartitions="3")
    assert len(splits) == 3
    rows = reader.rows(splits)
    assert sorted(row["value"] for row in rows) == sorted(values)
    assert {row["topic"] for row in rows} == {"parts-0", "parts-1", "parts-2"}


def test_a_range_by_offsets(reader: Any, produce: Fill, at: At) -> None:
    """From a record to before another."""
    values = produce("orders", 100)
    begin, end = '{"orders": 450}', '{"orders": 900}'
    found = reader.values(**at, topic="orders", startingOffsets=begin, endingOffsets=end)
    assert found == values[10:20]


def test_a_range_by_time(reader: Any, produce: Fill, at: At) -> None:
    """The server's clock decides (AMB-37)."""
    produce("orders", 10)
    between = datetime.now(UTC)
    later = produce("orders", 10, first=10)
    found = reader.values(**at, topic="orders", startingTimestamp=between.isoformat())
    assert found == later
    before = reader.splits(**at, topic="orders", endingTimestamp=between.isoformat())
    assert len(reader.rows(before)) == 10


def test_several_topics_and_patterns(reader: Any, produce: Fill, at: At) -> None:
    """A pattern must match the whole name."""
    for name in ("logs-a", "logs-b", "other"):
        produce(name, 3)
    by_pattern = reader.rows(reader.splits(**at, topicsPattern="logs-.*"), "topic")
    by_name = reader.rows(reader.splits(**at, topics="other,logs-a"), "topic")
    assert {row["topic"] for row in by_pattern} == {"logs-a", "logs-b"}
    assert {row["topic"] for row in by_name} == {"other", "logs-a"}


def test_an_empty_topic_has_no_splits(reader: Any, server: EmbeddedServer, at: At) -> None:
    """And is not an error."""
    with Client(server.url) as client:
        client.create_topic("empty")
    assert reader.splits(**at, topic="empty") == []


def test_a_topic_that_is_not_there_is_an_error(reader: Any, at: At) -> None:
    """Not an empty table."""
    with pytest.raises(TopicNotFound, match="nowhere"):
        reader.splits(**at, topic="nowhere")


def test_it_must_be_said_what_to_read(reader: Any, at: At) -> None:
    """A server alone does not."""
    with pytest.raises(ConfigError, match="say what to read"):
        reader.splits(**at)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ({"startingOffsets": '{"orders": 90}'}, {"endingOffsets": '{"orders": 45}'}),
        ({"startingTimestamp": "2099-01-01T00:00Z"}, {"endingTimestamp": "1999-01-01T00:00Z"}),
    ],
    ids=["offsets", "times"],
)
def test_ends_that_were_mixed_up_are_refused(
    reader: Any, produce: Fill, at: At, start: At, end: At
) -> None:
    """No query without rows."""
    produce("orders", 10)
    with pytest.raises(ConfigError, match=r"ends at offset .* before its beginning"):
        reader.splits(**at, topic="orders", **start, **end)


def test_a_start_behind_the_end_is_refused(reader: Any, produce: Fill, at: At) -> None:
    """With both numbers."""
    produce("orders", 1)
    with pytest.raises(ConfigError, match="ends at 45, before the offset 90"):
        reader.splits(**at, topic="orders", startingOffsets='{"orders": 90}')


def test_a_deployed_server_is_read_to_its_end(reader: Any, tmp_path: Any) -> None:
    """It does not say where a topic ends; a Fetch at the last offset does (AMB-06)."""
    with running(tmp_path / "old", dialect="deployed") as old:
        url = f"{old.url}/orders"
        with Producer(url, dialect="deployed", create_topic=True) as producer:
            producer.send_many([b"value"] * 100)
        servers = "{}:{}".format(*old.address)
        found = reader.values(servers=servers, topic="orders", dialect="deployed")
    assert found == [b"value"] * 100


def test_a_server_that_falls_silent_is_not_waited_for_forever(at: At) -> None:
    """A task ends, and Spark tries it again elsewhere."""

    class Silent:
        def poll(self, timeout: float) -> None:
            waited.append(timeout)
            began = monotonic()
            while monotonic() - began <= timeout:
                pass

    waited: list[float] = []
    options = Options.parse({**at, "catchUpTimeout": "10ms"})
    with pytest.raises(DeadlineExceeded, match="raise catchUpTimeout"):
        list(batches_of(Silent(), options))  # type: ignore[arg-type]
    assert waited == [0.01]


def test_a_record_larger_than_a_fetch_is_read_whole(reader: Any, produce: Fill, at: At) -> None:
    """The client asks for more (AMB-19)."""
    values = produce("orders", 3, size=300_000)
    assert reader.values(**at, topic="orders", fetchBytes="64KiB") == values


def dropped(removals: Any, server: EmbeddedServer, produce: Fill, topic: str = "orders") -> int:
    """Fill a topic, have its beginning dropped, and return where it begins then."""
    produce(topic, 2000)  # all of it may go into one segment, which is full then
    produce(topic, 2000, first=2000)
    return int(removals.drop(server, topic))


def test_a_start_inside_a_record_is_refused(reader: Any, produce: Fill, at: At) -> None:
    """With the topic's name, as there may be several."""
    produce("orders", 10)
    splits = reader.splits(**at, topic="orders", startingOffsets='{"orders": 7}')
    with pytest.raises(MisalignedOffset, match="topic 'orders': offset 7 lies inside a record"):
        reader.rows(splits)


def test_what_retention_has_dropped_is_missed(
    reader: Any, removals: Any, server: EmbeddedServer, produce: Fill, at: At
) -> None:
    """Before a task has started, or on request not at all."""
    start = dropped(removals, server, produce)
    said = {**at, "topic": "orders", "startingOffsets": '{"orders": 45}'}
    with pytest.raises(DataLost, match="retention has dropped it"):
        reader.splits(**said)
    rows = reader.rows(reader.splits(**said, failOnDataLoss="false"))
    assert rows[0]["offset"] == start


def test_what_goes_between_planning_and_reading_is_missed(
    reader: Any, removals: Any, server: EmbeddedServer, produce: Fill, at: At
) -> None:
    """A task that finds its range gone fails, or on request reads what is left."""
    produce("orders", 10)
    strict = reader.splits(**at, topic="orders")
    lenient = reader.splits(**at, topic="orders", failOnDataLoss="false")
    dropped(removals, server, produce)
    with pytest.raises(DataLost, match="offset 0"):
        reader.rows(strict)
    assert reader.rows(lenient) == []


def test_other_records_than_planned_are_noticed(
    reader: Any, server: EmbeddedServer, produce: Fill, at: At
) -> None:
    """A split that was read when it was planned knows its checksum."""
    produce("orders", 40, size=100_000)
    splits = reader.splits(**at, topic="orders", minPartitions="2")
    with Client(server.url) as client:
        client.delete_topic("orders")
    produce("orders", 40, first=7, size=100_000)
    with pytest.raises(DataLost, match="id 2 instead of 1"):
        reader.rows(splits)
    anonymous = [replace(split, identity=None) for split in splits]
    with pytest.raises(DataLost, match="not those that were there"):
        reader.rows(anonymous)


def test_a_planned_batch_is_waited_for_where_the_server_is_behind(
    reader: Any, produce: Fill, at: At
) -> None:
    """A replica may be, and a server whose files showed a batch a moment before it did."""
    values = produce("orders", 5)
    options = Options.parse({**at, "topic": "orders"})
    behind = ServerLog(options, sleep=lambda _: values.extend(produce("orders", 5, first=5)))
    (view,) = behind.look()
    planned = TopicCheckpoint(view.identity, 0, 2 * view.end)
    rows = reader.rows(behind.splits(planned), "value")
    assert [row["value"] for row in rows] == values
    assert len(values) == 10


def test_a_topic_that_is_being_deleted_is_gone(
    monkeypatch: pytest.MonkeyPatch, produce: Fill, at: At
) -> None:
    """A server says so for a while, and not that there is none."""
    produce("orders", 5)

    def deleted(_: Any, name: str) -> Any:
        raise TopicDeleted(f"topic {name!r} was deleted")

    monkeypatch.setattr(server_log, "_topics_named", deleted)
    assert ServerLog(Options.parse({**at, "topic": "orders"})).look({"orders"}) == []
