"""The client for threads, against the servers of this project."""

from itertools import islice

import pytest

from lance_sdk.errors import ClosedError, ConfigError, ConnectFailed, ConnectionLost
from lance_sdk.fluvio import FluvioClient, FluvioRefused, FluvioTopic, Offsets, StoredRecords
from lance_server.listeners.fluvio.testing import FluvioServers
from lance_spec.messages.fluvio import ErrorCode


def test_records_come_back_as_they_were_sent(address: str) -> None:
    """Value, key, time and offset make the way there and back."""
    with FluvioClient(address) as client:
        client.create_topic("orders")
        with client.producer("orders") as producer:
            producer.send(b"one", key="k", timestamp_ms=1_700_000_000_123)
            producer.send("two", timestamp_ms=-1)
            assert producer.flush() == [StoredRecords(0, 0, 1), StoredRecords(0, 1, 1)]
        with client.consumer("orders", stop_at_end=True) as consumer:
            one, two = consumer
    assert (one.offset, one.value, one.key) == (0, b"one", b"k")
    assert one.timestamp_ms == 1_700_000_000_123
    assert one.timestamp is not None
    assert one.timestamp.year == 2023
    assert (two.offset, two.value, two.key, two.timestamp_ms) == (1, b"two", None, None)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_spoken(address: str, compression: str) -> None:
    """What is packed is unpacked."""
    values = [b"value %d" % number * 10 for number in range(2000)]
    with FluvioClient(address, compression=compression) as client:
        client.create_topic("packed")
        with client.producer("packed") as producer:
            for value in values:
                producer.send(value)
        with client.consumer("packed", stop_at_end=True) as consumer:
            assert [each.value for each in consumer] == values


def test_a_full_send_buffer_is_sent(address: str) -> None:
    """Nobody needs to flush by hand, and memory stays bounded."""
    with FluvioClient(address, buffer_bytes=1000, batch_bytes=300) as client:
        client.create_topic("orders")
        producer = client.producer("orders")
        stored = [each for _ in range(100) for each in producer.send(b"x" * 100)]
        assert sum(each.count for each in stored) == 100
        assert [each.base_offset for each in stored[:3]] == [0, 3, 6]
        assert client.offsets("orders") == Offsets(0, 100)


def test_one_key_goes_to_one_partition(address: str) -> None:
    """Keys decide the partition, records without a key go round."""
    with FluvioClient(address) as client:
        client.create_topic("wide", partitions=3)
        producer = client.producer("wide")
        for _ in range(9):
            producer.send(b"same", key=b"key")
        keyed = producer.flush()
        for _ in range(9):
            producer.send(b"round")
        assert {each.partition for each in producer.flush()} == {0, 1, 2}
        assert len({each.partition for each in keyed}) == 1
        assert producer.send(b"there", partition=2) == []
        assert [each.partition for each in producer.flush()] == [2]


def test_a_live_consumer_sees_what_comes(address: str) -> None:
    """A consumer at the end goes on with what is produced later."""
    with FluvioClient(address) as client:
        client.create_topic("live")
        with client.consumer("live", start="end") as consumer, client.producer("live") as producer:
            for number in range(3):
                producer.send(b"%d" % number)
                producer.flush()
                assert [each.value for each in consumer.poll(10)] == [b"%d" % number]
            assert consumer.lag == 0
            assert consumer.poll(0.05) == []


def test_a_consumer_begins_inside_a_batch(address: str) -> None:
    """No record before the wanted one is given out."""
    with FluvioClient(address) as client:
        client.create_topic("orders")
        with client.producer("orders") as producer:
            for number in range(100):
                producer.send(b"%d" % number)
        with client.consumer("orders", start=57) as consumer:
            assert [each.offset for each in islice(consumer, 2)] == [57, 58]


def test_a_named_consumer_goes_on_where_it_was(address: str) -> None:
    """The server keeps what was committed, until it is told to forget."""
    with FluvioClient(address) as client:
        client.create_topic("orders")
        with client.producer("orders") as producer:
            for number in range(5):
                producer.send(b"%d" % number)
        with client.consumer("orders", consumer_id="worker") as consumer:
            assert [each.offset for each in islice(consumer, 2)] == [0, 1]
            consumer.commit()
            assert client.committed("orders", 0, "worker") == 1
        with client.consumer("orders", consumer_id="worker") as consumer:
            assert next(iter(consumer)).value == b"2"
        client.forget("orders", 0, "worker")
        assert client.committed("orders", 0, "worker") is None


def test_topics_are_listed(address: str) -> None:
    """The list tells partitions and what belongs to the cluster."""
    with FluvioClient(address) as client:
        client.create_topic("wide", partitions=2)
        assert client.topics() == [
            FluvioTopic("consumer-offset", 1, system=True),
            FluvioTopic("wide", 2, system=False),
        ]
        client.delete_topic("wide")
        assert [each.name for each in client.topics()] == ["consumer-offset"]


@pytest.mark.parametrize(
    ("doing", "code"),
    [
        (lambda client: client.producer("missing"), ErrorCode.TOPIC_NOT_FOUND),
        (lambda client: client.consumer("orders", 7), ErrorCode.NOT_LEADER_FOR_PARTITION),
        (lambda client: client.create_topic("orders"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (lambda client: client.create_topic("a/b"), ErrorCode.TOPIC_INVALID_NAME),
        (
            lambda client: client.create_topic("none", partitions=0),
            ErrorCode.TOPIC_INVALID_CONFIGURATION,
        ),
        (lambda client: client.delete_topic("missing"), ErrorCode.TOPIC_NOT_FOUND),
        (
            lambda client: client.delete_topic("consumer-offset"),
            ErrorCode.INVALID_DELETE_REQUEST,
        ),
        (
            lambda client: client.consumer("orders", start=5).poll(10),
            ErrorCode.OTHER,
        ),
    ],
)
def test_a_refusal_says_why(address: str, doing: object, code: ErrorCode) -> None:
    """Every refusal carries the server's code and what was asked for."""
    assert callable(doing)
    with FluvioClient(address) as client:
        client.create_topic("orders")
        with pytest.raises(FluvioRefused) as caught:
            doing(client)
        assert caught.value.code is code


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"compression": "brotli"}, "expected one of none, gzip"),
        ({"timeout": 0}, "expected more than 0"),
    ],
)
def test_settings_are_checked(options: dict[str, object], complaint: str) -> None:
    """A setting that cannot work is refused at once."""
    with pytest.raises(ConfigError, match=complaint):
        FluvioClient("localhost:9003", **options)


@pytest.mark.parametrize("address", ["", "host:port", ":1", "host:0", "host:99999"])
def test_addresses_are_checked(address: str) -> None:
    """What is not an address is refused at once."""
    with pytest.raises(ConfigError, match="is not an address"):
        FluvioClient(address)


def test_nobody_there_is_said_plainly() -> None:
    """A server that is not there is named."""
    with (
        pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:1 "),
        FluvioClient("127.0.0.1:1") as client,
    ):
        client.topics()


def test_who_is_no_fluvio_server_is_named(servers: FluvioServers) -> None:
    """A wrong port is the first thing to look at."""
    with (
        pytest.raises(ConnectionLost, match=r"is this the address of a Fluvio SC\?"),
        FluvioClient("{}:{}".format(*servers.server.address), retry_for=0.1) as client,
    ):
        client.topics()


def test_a_closed_client_says_so(address: str) -> None:
    """Nothing is sent after the end."""
    client = FluvioClient(address)
    client.close()
    with pytest.raises(ClosedError):
        client.topics()
