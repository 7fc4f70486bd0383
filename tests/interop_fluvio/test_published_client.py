"""PyPI ``fluvio`` 0.21.0 produces into our log and consumes from it."""

import signal
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fluvio", reason="the published client fluvio is not installed")

import fluvio

from lance_sdk import Consumer, Producer
from lance_server.testing import ServerProcess, eventually

from .conftest import OPTIONS, Running


def builder() -> Any:
    """Return a new configuration of a published producer."""
    return fluvio.TopicProducerConfigBuilder()


def produce(running: Running, topic: str, values: list[str], config: Any = None) -> list[int]:
    """Send values with the published client; return their offsets."""
    chosen = (config or builder()).build()
    producer = running.client().topic_producer_with_config(topic, chosen)
    sent = [producer.send(f"k{value[:9]}".encode(), value.encode()) for value in values]
    producer.flush()
    return [each.wait().offset() for each in sent]


def consume(running: Running, topic: str, count: int, start: Any, partition: int = 0) -> list[Any]:
    """Read records with the published client."""
    consumer = running.client().partition_consumer(topic, partition)
    return list(islice(consumer.stream(start), count))


def read_with_lwp(running: Running, topic: str, count: int) -> list[Any]:
    """Read the same records from the log."""
    with Consumer(f"{running.url}/{topic}", start="beginning") as consumer:
        return list(islice(consumer, count))


def test_records_come_back_as_they_were_sent(running: Running) -> None:
    """Key, value, time and offset survive the log."""
    running.create("hello")
    assert produce(running, "hello", ["a", "b", "c"]) == [0, 1, 2]
    found = consume(running, "hello", 3, fluvio.Offset.beginning())
    assert [each.value_string() for each in found] == ["a", "b", "c"]
    assert [each.key_string() for each in found] == ["ka", "kb", "kc"]
    assert [each.offset() for each in found] == [0, 1, 2]
    assert all(each.timestamp() > 1_600_000_000_000 for each in found)


def test_lwp_reads_what_fluvio_wrote(running: Running) -> None:
    """The same records are records of the log, with key and time."""
    running.create("hello")
    produce(running, "hello", ["a", "b"])
    found = read_with_lwp(running, "hello", 2)
    times = [each.timestamp() for each in consume(running, "hello", 2, fluvio.Offset.beginning())]
    assert [(each.key, each.body) for each in found] == [(b"ka", b"a"), (b"kb", b"b")]
    assert [each.timestamp_ns // 1_000_000 for each in found] == times


def test_fluvio_reads_what_lwp_wrote(running: Running) -> None:
    """A topic of the log is a Fluvio topic with one partition, without anybody's doing."""
    with Producer(f"{running.url}/plain", create_topic=True) as producer:
        producer.send(b"raw")
        producer.send(b"keyed", key=b"key")
    eventually(lambda: "plain" in running.topics())
    found = consume(running, "plain", 2, fluvio.Offset.beginning())
    assert [each.value_string() for each in found] == ["raw", "keyed"]
    assert found[1].key_string() == "key"


@pytest.mark.parametrize("kind", ["None_", "Gzip", "Snappy", "Lz4", "Zstd"])
def test_every_compression_is_understood(running: Running, kind: str) -> None:
    """What a producer compresses, a consumer reads."""
    running.create("packed")
    config = builder().compression(getattr(fluvio.Compression, kind))
    values = [f"value {number} " + "x" * 100 for number in range(500)]
    assert produce(running, "packed", values, config) == list(range(500))
    found = consume(running, "packed", 500, fluvio.Offset.beginning())
    assert [each.value_string() for each in found] == values


@pytest.mark.parametrize("isolation", ["ReadCommitted", "ReadUncommitted"])
@pytest.mark.parametrize("delivery", ["AtLeastOnce", "AtMostOnce"])
def test_every_promise_is_kept(running: Running, isolation: str, delivery: str) -> None:
    """Records are stored under both isolations and both delivery semantics."""
    running.create("kept")
    config = builder().isolation(getattr(fluvio.Isolation, isolation))
    config = config.delivery_semantic(getattr(fluvio.DeliverySemantic, delivery))
    assert produce(running, "kept", ["a", "b"], config) == [0, 1]
    assert [each.body for each in read_with_lwp(running, "kept", 2)] == [b"a", b"b"]


def test_twenty_thousand_records_all_arrive(running: Running) -> None:
    """Many records keep their order and their numbers, in Fluvio and in the log."""
    running.create("many")
    values = [f"record {number}" for number in range(20_000)]
    assert produce(running, "many", values) == list(range(20_000))
    found = consume(running, "many", 20_000, fluvio.Offset.beginning())
    assert [(each.offset(), each.value_string()) for each in found] == list(enumerate(values))
    logged = read_with_lwp(running, "many", 20_000)
    assert [each.body.decode() for each in logged] == values


def test_partitions_are_topics_of_the_log(running: Running) -> None:
    """Each partition keeps its own records under its own numbers."""
    running.create("wide", partitions=2)
    client = running.client()
    producer = client.topic_producer("wide")
    sent = [producer.send(str(number).encode(), str(number).encode()) for number in range(40)]
    producer.flush()
    places = [(each.partition_id(), each.offset()) for each in (one.wait() for one in sent)]
    assert {partition for partition, _ in places} == {0, 1}
    by_partition: dict[int, list[str]] = {0: [], 1: []}
    for number, (partition, offset) in enumerate(places):
        assert offset == len(by_partition[partition]), "offsets are counted by partition"
        by_partition[partition].append(str(number))
    for partition, name in ((0, "wide"), (1, "wide.1")):
        expected = by_partition[partition]
        count = len(expected)
        found = consume(running, "wide", count, fluvio.Offset.beginning(), partition)
        assert [each.value_string() for each in found] == expected
        logged = read_with_lwp(running, name, count)
        assert [each.body.decode() for each in logged] == expected


def test_a_consumer_begins_where_it_wants(running: Running) -> None:
    """In the middle of a batch, from the beginning and from the end."""
    running.create("hello")
    produce(running, "hello", [str(number) for number in range(100)])
    middle = consume(running, "hello", 2, fluvio.Offset.absolute(50))
    assert [each.value_string() for each in middle] == ["50", "51"]
    late = consume(running, "hello", 3, fluvio.Offset.from_end(3))
    assert [each.value_string() for each in late] == ["97", "98", "99"]
    early = consume(running, "hello", 1, fluvio.Offset.from_beginning(7))
    assert early[0].value_string() == "7"


def test_a_tail_sees_what_comes(running: Running) -> None:
    """A stream at the end goes on with what is produced after it began."""
    running.create("live")
    produce(running, "live", ["before"])
    stream = running.client().partition_consumer("live", 0).stream(fluvio.Offset.beginning())
    assert next(stream).value_string() == "before"
    for round_number in range(5):
        value = f"after {round_number}"
        produce(running, "live", [value])
        assert next(stream).value_string() == value


def managed(running: Running, consumer: str, topic: str = "hello") -> Any:
    """Return a stream whose offsets the server keeps."""
    config = fluvio.ConsumerConfigExtBuilder(topic)
    config.offset_start(fluvio.Offset.beginning())
    config.offset_consumer(consumer)
    config.offset_strategy(fluvio.OffsetManagementStrategy.MANUAL)
    return running.client().consumer_with_config(config.build())


def test_a_managed_consumer_goes_on_where_it_was(tmp_path: Path, running: Running) -> None:
    """Committed offsets outlive the consumer, and the server's death."""
    running.create("hello")
    produce(running, "hello", ["a", "b", "c", "d"])
    stream = managed(running, "worker")
    assert [next(stream).value_string() for _ in range(2)] == ["a", "b"]
    stream.offset_commit()
    stream.offset_flush()
    found = running.client().consumer_offsets()
    assert [(each.consumer_id, each.topic, each.partition, each.offset) for each in found] == [
        ("worker", "hello", 0, 1)
    ]
    assert next(managed(running, "worker")).value_string() == "c"
    running.server.end(signal.SIGKILL)
    with ServerProcess.running(tmp_path / "data", *OPTIONS) as server:
        again = Running(server)
        assert next(managed(again, "worker")).value_string() == "c"
        again.client().delete_consumer_offset("worker", "hello", 0)
        assert again.client().consumer_offsets() == []
        assert next(managed(again, "worker")).value_string() == "a"


def test_topics_are_created_and_deleted(running: Running) -> None:
    """What administration does shows at once, and the log agrees."""
    running.create("hello", partitions=3)
    assert sorted(running.topics()) == ["hello"]
    with pytest.raises(Exception, match="already exists"):
        running.create("hello")
    running.admin().delete_topic("hello")
    assert running.topics() == []
    with pytest.raises(Exception, match=r"(?i)not found"):
        running.admin().delete_topic("hello")


def test_an_open_client_learns_of_a_new_topic(running: Running) -> None:
    """Watches bring what is created after a client connected."""
    client = running.client()
    running.create("late")
    eventually(lambda: _can_produce(client, "late"))


def _can_produce(client: Any, topic: str) -> bool:
    try:
        producer = client.topic_producer(topic)
    except Exception as error:
        if "not found" not in str(error).lower():  # the client has one class for all errors
            raise
        return False
    producer.send_string("value").wait()
    return True


def test_an_unknown_topic_is_named_at_once(running: Running) -> None:
    """A client does not wait a minute for a topic that is not there."""
    with pytest.raises(Exception, match="not found"):
        running.client().topic_producer("missing")


def test_what_cannot_be_created_is_refused(running: Running) -> None:
    """Replication needs more SPUs than there are."""
    spec = fluvio.TopicSpec.create().with_replications(3).build()
    with pytest.raises(Exception, match="replication must be 1"):
        running.admin().create_topic("copies", spec)


def test_a_large_record_makes_the_way(running: Running) -> None:
    """A record larger than a response's usual size is served whole."""
    running.create("large")
    config = builder().batch_size(4 * 1024 * 1024).max_request_size(8 * 1024 * 1024)
    value = "x" * (3 * 1024 * 1024)
    assert produce(running, "large", [value], config) == [0]
    found = consume(running, "large", 1, fluvio.Offset.beginning())
    assert found[0].value_string() == value


def test_a_client_connects_where_it_is_told_to(tmp_path: Path) -> None:
    """The SPU's announced name and port are used, not those where it listens."""
    with ServerProcess.running(tmp_path / "data", *OPTIONS) as server:
        _, port = server.others["fluvio-spu"]
        server.end(signal.SIGTERM)
    fixed = ("--fluvio-sc", "127.0.0.1:0", "--fluvio-spu", f"0.0.0.0:{port}")
    public = ("--fluvio-spu-public", f"localhost:{port}")
    with ServerProcess.running(tmp_path / "data", *fixed, *public) as server:
        running = Running(server)
        running.create("named")
        assert produce(running, "named", ["a"]) == [0]
        found = consume(running, "named", 1, fluvio.Offset.beginning())
        assert [each.value_string() for each in found] == ["a"]
