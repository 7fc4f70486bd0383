"""Our client in both APIs, with our listener and with a real cluster."""

from itertools import islice
from typing import Any

import pytest

from lance_sdk.errors import RemoteProtocolError
from lance_sdk.fluvio import FluvioRefused, _topics
from lance_server.testing import eventually
from lance_spec.messages.fluvio import ErrorCode

from .both_apis import Connect

COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]


def store(client: Any, topic: str, values: list[bytes]) -> None:
    """Store values in a topic."""
    with client.producer(topic) as producer:
        for value in values:
            producer.send(value)


def values_of(client: Any, topic: str, partition: int = 0) -> list[bytes]:
    """Return the values that a partition holds."""
    with client.consumer(topic, partition, stop_at_end=True) as consumer:
        return [each.value for each in consumer]


def delete(client: Any, topic: str, end: int) -> None:
    """Delete a topic once the SC has heard of its records: before that it hangs at the next one."""
    eventually(lambda: heard(client, topic) == {end})
    client.delete_topic(topic)
    eventually(lambda: not heard(client, topic))


def heard(client: Any, topic: str) -> set[int]:
    """Return what the SC knows of how far a topic's first partition is, and is committed."""
    found = client.run(_topics.listed("Partition"))
    known = [each.leader_status for each in found if each.name == f"{topic}-0"]
    return {place for each in known for place in (each.end_offset, each.high_watermark)}


def test_more_than_one_response_holds_is_consumed(connect: Connect, topic: str) -> None:
    """A response that ends inside a batch loses nothing: the batch comes with the next one."""
    values = [b"%099d" % number for number in range(40_000)]
    with connect() as client:
        client.create_topic(topic)
        store(client, topic, values)
        assert values_of(client, topic) == values


@pytest.mark.parametrize("max_bytes", [100, 4096, 20_000])
def test_batches_larger_than_max_bytes_are_consumed(
    connect: Connect, topic: str, max_bytes: int
) -> None:
    """Where one batch takes more than `max_bytes`, the consumer asks for more."""
    values = [b"%0999d" % number for number in range(100)]
    with connect(max_bytes=max_bytes) as client:
        client.create_topic(topic)
        store(client, topic, values)
        assert values_of(client, topic) == values


@pytest.mark.parametrize("size", [1_500_000, 12_000_000])
def test_a_large_record_is_consumed(connect: Connect, topic: str, size: int) -> None:
    """A record of more than `max_bytes` comes whole, and so do its neighbours."""
    values = [b"before", b"x" * size, b"after"]
    with connect(max_bytes=1_048_576) as client:
        client.create_topic(topic)
        store(client, topic, values)
        assert values_of(client, topic) == values


def test_a_record_above_the_limit_is_an_error_that_names_the_option(
    connect: Connect, topic: str
) -> None:
    """What a consumer may not take ends it, with the topic, the server and the option."""
    with connect() as client:
        client.create_topic(topic)
        store(client, topic, [b"x" * 300_000])
    with (
        connect(max_frame=200_000, max_bytes=100_000) as client,
        pytest.raises(RemoteProtocolError) as caught,
    ):
        values_of(client, topic)
    assert all(each in str(caught.value) for each in (topic, "partition 0", "[127.", "max_frame"))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_compression_comes_back(connect: Connect, topic: str, compression: str) -> None:
    """What is packed is unpacked, also over several responses."""
    values = [b"value %d" % number * 20 for number in range(5000)]
    with connect(compression=compression, max_bytes=8192) as client:
        client.create_topic(topic)
        store(client, topic, values)
        assert values_of(client, topic) == values


@pytest.mark.parametrize("partitions", [1, 3, 20])
def test_a_new_topic_takes_records_at_once(connect: Connect, topic: str, partitions: int) -> None:
    """Nobody waits between creating a topic and using it; all partitions are used in turn."""
    with connect() as client:
        client.create_topic(topic, partitions=partitions)
        store(client, topic, [b"%d" % number for number in range(60)])
        found = [values_of(client, topic, each) for each in range(partitions)]
        assert found == [
            [b"%d" % number for number in range(first, 60, partitions)]
            for first in range(partitions)
        ]


def test_key_and_time_come_back(connect: Connect, topic: str) -> None:
    """Keys, empty and missing ones too, and times make the way there and back."""
    with connect() as client:
        client.create_topic(topic)
        with client.producer(topic) as producer:
            for key in (b"key", b"", None):
                producer.send(b"v", key=key, timestamp_ms=1_700_000_000_123)
        with client.consumer(topic, stop_at_end=True) as consumer:
            found = list(consumer)
    assert [(each.offset, each.key) for each in found] == [(0, b"key"), (1, b""), (2, None)]
    assert {each.timestamp_ms for each in found} == {1_700_000_000_123}


def test_a_consumer_begins_inside_a_batch(connect: Connect, topic: str) -> None:
    """No record before the wanted one is given out."""
    with connect() as client:
        client.create_topic(topic)
        store(client, topic, [b"%d" % number for number in range(100)])
        with client.consumer(topic, start=57) as consumer:
            assert [each.offset for each in islice(consumer, 2)] == [57, 58]


def test_a_live_consumer_sees_what_comes(connect: Connect, topic: str) -> None:
    """A consumer at the end goes on with what is produced later."""
    with connect() as client:
        client.create_topic(topic)
        with client.consumer(topic, start="end") as consumer, client.producer(topic) as producer:
            for number in range(20):
                producer.send(b"%d" % number)
                producer.flush()
                assert [each.value for each in consumer.poll(10)] == [b"%d" % number]
            assert consumer.lag == 0


def test_a_named_consumer_goes_on_where_it_was(connect: Connect, topic: str) -> None:
    """The cluster keeps what was committed, for each partition and consumer, until it forgets."""
    with connect() as client:
        client.create_topic(topic)
        store(client, topic, [b"%d" % number for number in range(5)])
        assert client.committed(topic, 0, "worker") is None
        with client.consumer(topic, consumer_id="worker") as consumer:
            assert [each.offset for each in islice(consumer, 2)] == [0, 1]
            consumer.commit()
            assert client.committed(topic, 0, "worker") == 1
            assert client.committed(topic, 0, "another") is None
        with client.consumer(topic, consumer_id="worker") as consumer:
            assert next(iter(consumer)).value == b"2"
        client.forget(topic, 0, "worker")
        assert client.committed(topic, 0, "worker") is None


def test_topics_are_listed_with_the_clusters_own(connect: Connect, topic: str) -> None:
    """The list tells partitions, and what belongs to the cluster."""
    with connect() as client:
        client.create_topic(topic, partitions=2)
        found = {each.name: (each.partitions, each.system) for each in client.topics()}
    assert found[topic] == (2, False)
    assert found["consumer-offset"] == (1, True)


def test_a_deleted_topic_ends_its_consumer(connect: Connect, topic: str) -> None:
    """A consumer of a topic that goes away is told so, instead of waiting for ever."""
    with connect() as client:
        client.create_topic(topic)
        store(client, topic, [b"a"])
        with client.consumer(topic) as consumer:
            assert [each.value for each in consumer.poll(10)] == [b"a"]
            delete(client, topic, 1)
            with pytest.raises(FluvioRefused) as caught:
                consumer.poll(20)
        assert caught.value.code is ErrorCode.TOPIC_DELETED
        assert topic not in {each.name for each in client.topics()}


@pytest.mark.parametrize(
    ("doing", "code"),
    [
        (lambda client, _: client.producer("missing"), ErrorCode.TOPIC_NOT_FOUND),
        (lambda client, _: client.consumer("missing"), ErrorCode.TOPIC_NOT_FOUND),
        (lambda client, topic: client.consumer(topic, 7), ErrorCode.NOT_LEADER_FOR_PARTITION),
        (lambda client, topic: client.create_topic(topic), ErrorCode.TOPIC_ALREADY_EXISTS),
        (lambda client, _: client.create_topic("a/b"), ErrorCode.TOPIC_INVALID_NAME),
        (lambda client, _: client.delete_topic("missing"), ErrorCode.TOPIC_NOT_FOUND),
    ],
)
def test_a_refusal_says_why_and_where(
    connect: Connect, topic: str, doing: object, code: ErrorCode
) -> None:
    """Every refusal carries the code, what was asked for, and who refused."""
    assert callable(doing)
    with connect() as client:
        client.create_topic(topic)
        with pytest.raises(FluvioRefused) as caught:
            doing(client, topic)
    assert caught.value.code is code
    assert "[127." in str(caught.value)
