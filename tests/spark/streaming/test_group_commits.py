"""A streaming query's progress, committed as a group's."""

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import Coordinator, GroupConsumer
from lance_sdk.errors import ConfigError
from lance_sdk.groups._coordinator.request import describe_groups
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.checkpoint import decode_checkpoint
from lance_sdk.spark.streaming.group_commits import GroupCommits
from lance_sdk.spark.streaming.streams import StreamOffsets
from lance_server.embedded import EmbeddedServer

Fill = Callable[..., list[bytes]]
WHERE = {"startingOffsets": "earliest", "pollInterval": "0s", "commitGroup": "etl"}


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Coordinator]:
    """Coordinates groups."""
    with Coordinator("127.0.0.1:0", store=f"file:{tmp_path / 'offsets'}") as found:
        yield found


@pytest.fixture
def options(at: Mapping[str, str], coordinator: Coordinator) -> Options:
    """The options of a query over two topics that commits as a group."""
    return Options.parse({**at, **WHERE, "topics": "a,b", "commitCoordinator": coordinator.url})


def committed(coordinator: Coordinator) -> dict[str, int | None]:
    """Return what `lwp group status etl` shows."""
    (group,) = describe_groups(coordinator.url, "etl")
    return {
        each.topic.name: None if each.position is None else each.position.offset
        for each in group.topics
    }


def test_each_micro_batch_is_committed(
    produce: Fill, options: Options, coordinator: Coordinator
) -> None:
    """As the offsets at which it ends."""
    for topic in ("a", "b"):
        produce(topic, 100)
    progress = StreamOffsets(open_log(options), options)
    commits = GroupCommits(options)
    at = progress.initial()
    for limit in (900, 1800):
        at = progress.advance(at, limit)
        ends = decode_checkpoint(at)
        commits.commit(ends)
        assert committed(coordinator) == {name: end.offset for name, end in ends.items()}
    commits.close()


def test_a_query_that_goes_on_commits_on(
    produce: Fill, options: Options, coordinator: Coordinator
) -> None:
    """Another driver takes the group's place up."""
    for topic in ("a", "b"):
        produce(topic, 10)
    at = StreamOffsets(open_log(options), options).initial()
    for limit in (90, 180):
        at = StreamOffsets(open_log(options), options).advance(at, limit)
        commits = GroupCommits(options)
        commits.commit(decode_checkpoint(at))
        commits.close()
    assert list(committed(coordinator).values()) == [
        end.offset for end in decode_checkpoint(at).values()
    ]


def test_a_topic_that_comes_is_committed(
    produce: Fill, at: Mapping[str, str], coordinator: Coordinator
) -> None:
    """The member joins again with it."""
    said = {**at, **WHERE, "topicsPattern": "[ab]", "commitCoordinator": coordinator.url}
    options = Options.parse(said)
    progress, commits = StreamOffsets(open_log(options), options), GroupCommits(options)
    place = progress.initial()
    for topic in ("a", "b"):
        produce(topic, 10)
        place = progress.advance(place, 10**6)
        commits.commit(decode_checkpoint(place))
    commits.close()
    assert committed(coordinator) == {"a": 450, "b": 450}


def test_a_consumer_of_the_group_goes_on_where_the_query_ended(
    server: EmbeddedServer, produce: Fill, options: Options, coordinator: Coordinator
) -> None:
    """A commit is a commit."""
    values = produce("a", 10)
    produce("b", 10)
    progress, commits = StreamOffsets(open_log(options), options), GroupCommits(options)
    commits.commit(decode_checkpoint(progress.advance(progress.initial(), 2 * 45 * 4)))
    commits.close()
    with GroupConsumer(
        server.url, group="etl", topics=["a"], coordinator=coordinator.url, stop_at_end=True
    ) as consumer:
        assert [record.value for record in consumer] == values[4:]


def test_a_coordinator_that_is_away_ends_no_query(
    produce: Fill, at: Mapping[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Spark's checkpoint counts; the commit is a warning."""
    produce("a", 10)
    said = {**at, **WHERE, "topic": "a", "commitCoordinator": "127.0.0.1:9", "requestTimeout": "1s"}
    options = Options.parse(said)
    place = StreamOffsets(open_log(options), options).initial()
    GroupCommits(options).commit(decode_checkpoint(place))
    assert "commitGroup=etl" in caplog.text


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"servers": "h:1", "commitGroup": "g"}, "commitGroup needs commitCoordinator"),
        ({"servers": "h:1", "commitCoordinator": "c:2"}, "commitCoordinator is for commitGroup"),
        ({"path": "/d", "commitGroup": "g", "commitCoordinator": "c:2"}, "this query reads files"),
        ({"servers": "h:1", "commitGroup": "g", "commitCoordinator": "c:x"}, "commitCoordinator="),
    ],
)
def test_options_that_do_not_fit_are_refused(said: dict[str, Any], told: str) -> None:
    """As the query is made."""
    with pytest.raises(ConfigError, match=told):
        Options.parse(said)


@pytest.mark.timeout(600)
def test_spark_commits_what_it_has_done(
    spark: Any,
    produce: Fill,
    at: Mapping[str, str],
    coordinator: Coordinator,
    tmp_path: Path,
) -> None:
    """All micro-batches but the last one, which Spark tells its source of with the next."""
    produce("a", 100)
    said = {**at, **WHERE, "topic": "a", "commitCoordinator": coordinator.url}
    rows = spark.readStream.format("lwp").options(**said, maxBytesPerTrigger="2000").load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "cp"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert len([each for each in query.recentProgress if each["numInputRows"]]) == 3
    assert committed(coordinator) == {"a": 3960}


@pytest.mark.timeout(600)
def test_a_listener_hears_of_a_session(
    spark: Any, produce: Fill, at: Mapping[str, str], tmp_path: Path
) -> None:
    """Each micro-batch of its queries: in bytes and records."""
    from lance_sdk.spark.lag_listener import LagListener  # noqa: PLC0415 - an extra

    produce("a", 100)
    heard = threading.Event()
    listener = LagListener(lambda sample: heard.set() if not sample.lag.bytes else None)
    spark.streams.addListener(listener)
    try:
        said = {**at, "topic": "a", "startingOffsets": "earliest", "maxBytesPerTrigger": "2000"}
        rows = spark.readStream.format("lwp").options(**said).load()
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "cp"))
        writer.trigger(availableNow=True).start().awaitTermination()
        assert heard.wait(60)
    finally:
        spark.streams.removeListener(listener)
    found = [(each.topic, each.lag.bytes, each.lag.records) for each in listener.samples]
    assert found[:3] == [("a", 2520, 56), ("a", 540, 12), ("a", 0, 0)]
