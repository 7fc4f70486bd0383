"""A streaming query's place: record boundaries, limits, and what became of the log meanwhile."""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from lance_sdk import Client, Producer
from lance_sdk.errors import TransportError
from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.logs.contract import TopicView
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.logs.server_log import ServerLog
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.checkpoint import (
    decode_checkpoint,
)
from lance_sdk.spark.streaming.streams import StreamOffsets
from lance_sdk.values.keyed import join
from lance_server import running
from lance_server.embedded import EmbeddedServer

Fill = Callable[..., list[bytes]]
EVERYTHING = 2**62


class Query:
    """What Spark does with a streaming source, without Spark."""

    def __init__(self, reader: Any, **said: str) -> None:
        options = Options.parse({"pollInterval": "0s", "startingOffsets": "earliest", **said})
        self.waits: list[float] = []
        self._reader = reader
        self._now = 0.0
        self.progress = StreamOffsets(
            open_log(options), options, clock=lambda: self._now, sleep=self._sleep
        )
        self.at = self.progress.initial()

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._now += seconds

    def step(self, limit: int = EVERYTHING) -> list[bytes] | None:
        """Run one micro-batch; None when there is nothing new."""
        end = json.loads(json.dumps(self.progress.advance(self.at, limit)))
        if end == self.at:
            return None
        values = self.replay(end)
        self.at = end
        return values

    def replay(self, end: Mapping[str, Any]) -> list[bytes]:
        """Read a micro-batch that the checkpoint has."""
        return [row["value"] for row in self._reader.rows(self.progress.splits(end), "value")]

    def rest(self, limit: int = EVERYTHING) -> list[bytes]:
        """Run micro-batches until there is nothing new."""
        found: list[bytes] = []
        while (values := self.step(limit)) is not None:
            found += values
        return found


@pytest.fixture(params=["server", "files"])
def source(request: Any, server: EmbeddedServer, at: Mapping[str, str]) -> dict[str, str]:
    """The same topic, asked from the server or read from its files."""
    where = dict(at) if request.param == "server" else {"path": str(server.data_dir)}
    return {**where, "topic": "orders"}


@pytest.fixture
def place(source: dict[str, str]) -> dict[str, str]:
    """The server, or its files, without a choice of topics."""
    return {name: said for name, said in source.items() if name != "topic"}


def test_micro_batches_hold_every_record_once(
    reader: Any, produce: Fill, source: dict[str, str]
) -> None:
    """However they are cut, and with what comes meanwhile."""
    values = produce("orders", 500)
    query = Query(reader, **source)
    found = query.step(7000) or []
    values += produce("orders", 100, first=500)
    found += query.rest(7000)
    assert found == values
    assert query.step() is None


def test_an_end_is_a_records_boundary(reader: Any, produce: Fill, source: dict[str, str]) -> None:
    """An offset in Spark's log cannot be taken back."""
    produce("orders", 500)
    query = Query(reader, **source)
    while query.step(5000) is not None:
        (checkpoint,) = decode_checkpoint(query.at).values()
        assert checkpoint.offset % 45 == 0
        assert checkpoint.start < checkpoint.offset


def test_a_record_larger_than_the_limit_is_taken(
    reader: Any, produce: Fill, source: dict[str, str]
) -> None:
    """The query would stand still otherwise."""
    values = produce("orders", 3, size=5000)
    assert Query(reader, **source).rest(100) == values


def test_a_batch_is_repeated_exactly(reader: Any, produce: Fill, source: dict[str, str]) -> None:
    """From the checkpoint alone, by another driver, with more in the topic than before."""
    values = produce("orders", 300)
    first = Query(reader, **source)
    first.step(5000)
    end = first.at
    produce("orders", 200, first=300)
    again = Query(reader, **{**source, "startingOffsets": "latest"})
    assert again.replay(end) == values[: len(again.replay(end))]
    assert sum(map(len, again.replay(end))) > 0


def test_the_first_batch_begins_where_the_query_did(
    reader: Any, produce: Fill, source: dict[str, str]
) -> None:
    """Spark asks for the initial offset again after a failure, when the end has moved."""
    produce("orders", 100)
    query = Query(reader, **{**source, "startingOffsets": "latest"})
    values = produce("orders", 100, first=100)
    end = query.progress.advance(query.at, EVERYTHING)
    produce("orders", 100, first=200)
    restarted = Query(reader, **{**source, "startingOffsets": "latest"})
    assert restarted.replay(end) == values


def test_available_now_ends_where_the_log_did(
    reader: Any, produce: Fill, source: dict[str, str]
) -> None:
    """What comes later is for the next run."""
    values = produce("orders", 200)
    query = Query(reader, **source)
    query.progress.stop_at_now()
    produce("orders", 50, first=200)
    assert query.rest(3000) == values


def test_a_topic_that_was_created_anew_ends_the_query(
    reader: Any, server: EmbeddedServer, produce: Fill, source: dict[str, str]
) -> None:
    """Its old offsets mean nothing (AMB-30)."""
    produce("orders", 100)
    query = Query(reader, **source)
    query.rest()
    with Client(server.url) as client:
        client.delete_topic("orders")
    produce("orders", 200)
    with pytest.raises(DataLost, match="another topic now: id 2 instead of 1"):
        query.step()


def test_a_topic_that_was_created_anew_is_begun_anew_on_request(
    reader: Any, server: EmbeddedServer, produce: Fill, source: dict[str, str]
) -> None:
    """With failOnDataLoss=false."""
    produce("orders", 100)
    query = Query(reader, **source, failOnDataLoss="false")
    query.rest()
    with Client(server.url) as client:
        client.delete_topic("orders")
    values = produce("orders", 20, first=500)
    assert query.rest() == values


def changed(checkpoint: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a checkpoint with other fields for its topic."""
    body: dict[str, Any] = json.loads(json.dumps(checkpoint))
    body["topics"]["orders"] |= fields
    return body


def test_other_records_before_the_checkpoint_end_the_query(
    reader: Any, produce: Fill, source: dict[str, str]
) -> None:
    """A log that was cut and grew again has the length, and not the records (AMB-31)."""
    produce("orders", 100)
    query = Query(reader, **source)
    query.rest()
    fp = query.at["topics"]["orders"]["fp"] | {"digest": "0" * 32}
    query.at = changed(query.at, fp=fp)
    produce("orders", 10, first=100)
    with pytest.raises(DataLost, match="not those that the query has read"):
        query.step()


def test_a_log_that_ends_before_the_checkpoint_is_waited_for(
    reader: Any, produce: Fill, source: dict[str, str]
) -> None:
    """With growing pauses; then both offsets are named."""
    produce("orders", 100)
    query = Query(reader, **source, catchUpTimeout="20s")
    query.rest()
    query.at = changed(query.at, offset=9000, fp=None, cuts=[])
    with pytest.raises(DataLost, match=r"ends at 4500, before the query's offset 9000.*20 s"):
        query.step()
    assert sum(query.waits) == pytest.approx(20)
    assert query.waits[0] < query.waits[3]


def test_a_log_that_catches_up_is_read_on(
    reader: Any, produce: Fill, source: dict[str, str]
) -> None:
    """A replica may only have been behind."""
    produce("orders", 100)
    query = Query(reader, **source)
    query.rest()
    query.at = changed(query.at, offset=4545, fp=None, cuts=[])
    arrived: list[bytes] = []

    def arrive(seconds: float) -> None:
        query.waits.append(seconds)
        arrived.extend(produce("orders", 3, first=100))

    query.progress._sleep = arrive
    assert query.step() == arrived[1:]


def test_a_cut_log_goes_on_at_its_end_on_request(
    reader: Any, produce: Fill, source: dict[str, str]
) -> None:
    """With failOnDataLoss=false, after the wait."""
    produce("orders", 100)
    query = Query(reader, **source, failOnDataLoss="false", catchUpTimeout="1s")
    query.rest()
    query.at = changed(query.at, offset=9000, fp=None, cuts=[])
    assert query.step() == []
    assert query.rest() == []
    later = produce("orders", 5, first=100)
    assert query.rest() == later


@pytest.mark.parametrize("begin", ["earliest", "latest"])
def test_a_topic_that_appears_is_read_from_its_beginning(
    reader: Any, produce: Fill, place: dict[str, str], begin: str
) -> None:
    """As with Kafka's new partitions, wherever the query itself began."""
    produce("logs-a", 10)
    query = Query(reader, **place, topicsPattern="logs-.*", startingOffsets=begin)
    query.rest()
    produce("other", 10)
    values = produce("logs-b", 10, first=10)
    assert query.rest() == values


def test_every_topic_that_appears_in_a_directory_is_read(
    reader: Any, produce: Fill, server: EmbeddedServer
) -> None:
    """Where no topic is named, also in one that had none when the query began."""
    query = Query(reader, path=str(server.data_dir))
    assert query.step() is None
    values = produce("orders", 10)
    assert query.rest() == values
    values = produce("returns", 10, first=10)
    assert query.rest() == values


def test_a_query_that_goes_on_finds_topics_that_appeared_meanwhile(
    reader: Any, produce: Fill, place: dict[str, str]
) -> None:
    """Its checkpoint does not know them."""
    produce("logs-a", 10)
    first = Query(reader, **place, topicsPattern="logs-.*")
    first.rest()
    values = produce("logs-b", 10, first=10)
    second = Query(reader, **place, topicsPattern="logs-.*")
    second.at = first.at
    assert second.rest() == values


def test_a_topic_that_appears_after_the_start_is_not_available_now(
    reader: Any, produce: Fill, place: dict[str, str]
) -> None:
    """It is for the next run."""
    values = produce("logs-a", 10)
    query = Query(reader, **place, topicsPattern="logs-.*")
    query.progress.stop_at_now()
    produce("logs-b", 10, first=10)
    assert query.rest() == values


def test_a_topic_that_goes_ends_the_query(
    reader: Any, server: EmbeddedServer, produce: Fill, place: dict[str, str]
) -> None:
    """Or is left out, on request."""
    produce("logs-a", 10)
    produce("logs-b", 10)
    strict = Query(reader, **place, topicsPattern="logs-.*")
    lenient = Query(reader, **place, topicsPattern="logs-.*", failOnDataLoss="false")
    strict.rest()
    lenient.rest()
    with Client(server.url) as client:
        client.delete_topic("logs-a")
    with pytest.raises(DataLost, match="'logs-a', which is gone"):
        strict.step()
    assert lenient.rest() == []


def test_a_named_topic_that_goes_ends_the_query(
    reader: Any, server: EmbeddedServer, produce: Fill, source: dict[str, str]
) -> None:
    """Or is left out until it is there again, on request."""
    produce("orders", 10)
    strict = Query(reader, **source)
    lenient = Query(reader, **source, failOnDataLoss="false")
    strict.rest()
    lenient.rest()
    with Client(server.url) as client:
        client.delete_topic("orders")
    with pytest.raises(DataLost, match="'orders', which is gone"):
        strict.step()
    assert lenient.rest() == []
    values = produce("orders", 5, first=10)
    assert lenient.rest() == values


def test_a_directory_that_is_gone_ends_the_query(
    reader: Any, produce: Fill, server: EmbeddedServer
) -> None:
    """As topics that are gone do: a disk that is not mounted is not an empty log."""
    produce("orders", 10)
    query = Query(reader, path=str(server.data_dir))
    query.rest()
    server.stop()
    shutil.rmtree(server.data_dir)
    with pytest.raises(DataLost, match="'orders', which is gone"):
        query.step()


def test_a_limit_is_shared_by_topics(reader: Any, produce: Fill, at: Mapping[str, str]) -> None:
    """A busy topic does not starve a quiet one."""
    produce("logs-a", 1000)
    produce("logs-b", 1000)
    query = Query(reader, **at, topicsPattern="logs-.*")
    query.step(9000)
    checkpoints = decode_checkpoint(query.at)
    assert {checkpoint.offset for checkpoint in checkpoints.values()} == {4500}


def test_questions_in_a_row_wait_for_the_poll_interval(
    reader: Any, produce: Fill, source: dict[str, str]
) -> None:
    """Spark asks every 11 ms when nothing is new."""
    produce("orders", 1)
    query = Query(reader, **{**source, "pollInterval": "2s"})
    query.rest()
    assert max(query.waits) == pytest.approx(2.0)


def test_a_checkpoint_of_the_server_goes_on_in_the_files(
    reader: Any, server: EmbeddedServer, produce: Fill, at: Mapping[str, str]
) -> None:
    """Offsets are the same, and a checkpoint inside a batch loses none of its records."""
    values = produce("orders", 300)
    first = Query(reader, **at, topic="orders")
    found = first.step(1000) or []
    second = Query(reader, path=str(server.data_dir), topic="orders")
    second.at = first.at
    assert found + second.rest() == values


def test_files_that_are_closed_while_the_query_runs_are_read_on(
    reader: Any, produce: Fill, server: EmbeddedServer
) -> None:
    """A server renames a segment when it is full; the micro-batch is planned all the same."""
    values = produce("orders", 100)
    query = Query(reader, path=str(server.data_dir))
    views = query.progress._look()
    assert [view.name for view in views] == ["orders"]
    values += produce("orders", 4000, first=100)
    checkpoint = decode_checkpoint(query.at)["orders"]
    (now,) = open_log(Options.parse({"path": str(server.data_dir)})).look()
    moved = query.progress._log.advance(checkpoint, now, EVERYTHING)
    assert moved.offset == now.end
    assert query.rest() == values


def test_views_name_their_topics() -> None:
    """A topic without a known name goes by its number."""
    assert TopicView(TopicIdentity(7), 0, 0).name == "#7"


def planned(query: Query) -> dict[str, Any]:
    """Return a micro-batch that is in the checkpoint and was not read yet."""
    return json.loads(json.dumps(query.progress.advance(query.at, EVERYTHING)))  # type: ignore[no-any-return]


def create_again(server: EmbeddedServer, produce: Fill, count: int) -> None:
    """Delete the topic and fill one of the same name."""
    with Client(server.url) as client:
        client.delete_topic("orders")
    produce("orders", count, first=70_000)


def test_a_planned_batch_of_another_topic_is_not_read(
    reader: Any, produce: Fill, source: dict[str, str], server: EmbeddedServer
) -> None:
    """The name is the same, the topic is not: no row of it is delivered."""
    produce("orders", 500)
    end = planned(Query(reader, **source))
    create_again(server, produce, 500)
    with pytest.raises(DataLost, match="is another topic now: id"):
        Query(reader, **source).replay(end)
    assert Query(reader, **source, failOnDataLoss="false").replay(end) == []


def test_a_planned_batch_of_a_deleted_topic_is_left_out_on_request(
    reader: Any, produce: Fill, place: dict[str, str], server: EmbeddedServer
) -> None:
    """And the query goes on with the others."""
    produce("orders", 50)
    produce("other", 50)
    lenient = {**place, "topicsPattern": "o.*", "failOnDataLoss": "false"}
    end = planned(Query(reader, **lenient))
    with Client(server.url) as client:
        client.delete_topic("orders")
    query = Query(reader, **lenient)
    assert len(query.replay(end)) == 50
    query.at = end
    values = produce("other", 5, first=50)
    assert query.rest() == values
    with pytest.raises(DataLost, match="'orders' is gone"):
        Query(reader, **place, topicsPattern="o.*").replay(end)


def test_a_planned_batch_that_retention_shortened_is_not_read(
    reader: Any, produce: Fill, server: EmbeddedServer, removals: Any
) -> None:
    """Less than was planned is never delivered as if it were all."""
    values = produce("orders", 2000)  # all of it may go into one segment, which is full then
    values += produce("orders", 2000, first=2000)
    said = {"path": str(server.data_dir), "topic": "orders"}
    end = planned(Query(reader, **said))
    assert removals.drop(server, "orders", 70_000) > 0
    server.stop()
    with pytest.raises(DataLost, match=r"reaches from offset \d+ to 180000 now"):
        Query(reader, **said).replay(end)
    left = Query(reader, **said, failOnDataLoss="false").replay(end)
    assert 0 < len(left) < len(values)
    assert left == values[-len(left) :]


def test_a_topic_created_again_with_as_many_bytes_is_read(
    reader: Any, produce: Fill, source: dict[str, str], server: EmbeddedServer
) -> None:
    """An equal offset is no sign of an equal topic."""
    produce("orders", 100)
    query = Query(reader, **source, failOnDataLoss="false")
    assert len(query.rest()) == 100
    create_again(server, produce, 100)
    found = query.rest()
    assert len(found) == 100
    assert found[0].startswith(b"00070000")


def test_a_batch_that_was_planned_from_files_is_read_from_the_server(
    reader: Any, produce: Fill, server: EmbeddedServer, at: Mapping[str, str]
) -> None:
    """The checkpoint is the same; nothing of the pending batch is left out."""
    values = produce("orders", 3000)
    end = planned(Query(reader, path=str(server.data_dir), topic="orders"))
    assert Query(reader, **at, topic="orders").replay(end) == values


def test_a_batch_that_was_planned_from_the_server_is_read_from_files(
    reader: Any, produce: Fill, server: EmbeddedServer, at: Mapping[str, str]
) -> None:
    """Its fingerprint may lie across two segments."""
    values = produce("orders", 3000)
    end = planned(Query(reader, **at, topic="orders", fetchBytes="16MiB"))
    assert Query(reader, path=str(server.data_dir), topic="orders").replay(end) == values


def test_a_server_that_is_away_is_waited_for_with_one_warning(
    produce: Fill, at: Mapping[str, str], server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """As long as catchUpTimeout says."""
    produce("orders", 10)
    config = server.data_dir, server.address[1]
    server.stop()
    with ExitStack() as stack:
        waits: list[float] = []

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                stack.enter_context(running(config[0], port=config[1]))

        log = ServerLog(Options.parse({**at, "topic": "orders"}), sleep)
        (view,) = log.look()
    assert (view.end, len(waits)) == (450, 3)
    assert len([r for r in caplog.records if "catchUpTimeout" in r.getMessage()]) == 1


def test_a_server_that_stays_away_ends_the_query(
    at: Mapping[str, str], server: EmbeddedServer
) -> None:
    """With the transport's own error."""
    server.stop()
    log = ServerLog(Options.parse({**at, "topic": "orders", "catchUpTimeout": "0s"}))
    with pytest.raises(TransportError):
        log.look()


@pytest.fixture
def keyed(server: EmbeddedServer) -> tuple[bytes, bytes]:
    """Ten records with a key in the topic; returns payload and stored form of each."""
    with Producer(f"{server.url}/orders", create_topic=True, dialect="specified") as producer:
        for _ in range(10):
            producer.send(b"payload", key=b"k")
            producer.flush()  # a batch of its own
    return b"payload", join(b"payload", b"k", None)[0]


def test_a_query_of_the_first_release_goes_on_in_its_form(
    reader: Any, keyed: tuple[bytes, bytes], source: dict[str, str]
) -> None:
    """The batch that it planned, and those that follow; until another form is asked for."""
    payload, stored = keyed
    old = Query(reader, **source, recordFormat="stored")
    end = planned(old)
    assert end["v"] == 1
    query = Query(reader, **source)
    assert query.replay(end) == [stored] * 10
    query.at = old.at
    assert query.step(20) == [stored]
    assert query.at["v"] == 1
    changed = Query(reader, **source, recordFormat="payload")
    changed.at = query.at
    assert changed.step() == [payload] * 9
    assert changed.at["v"] == 2


def test_a_new_query_reads_payloads(
    reader: Any, keyed: tuple[bytes, bytes], source: dict[str, str]
) -> None:
    """Its checkpoint says so."""
    query = Query(reader, **source)
    assert query.step() == [keyed[0]] * 10
    assert query.at["v"] == 2
