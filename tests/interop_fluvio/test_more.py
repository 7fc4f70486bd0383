"""Further checks of our client, in both APIs, with our listener and with a real cluster."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pytest

from lance_sdk.errors import ClosedError, ConfigError
from lance_sdk.fluvio import FluvioRefused, Offsets
from lance_server.testing import eventually
from lance_spec.codec.siphash import fluvio_partition
from lance_spec.messages.fluvio import ErrorCode

from .both_apis import Connect
from .test_client import delete, store, values_of

KEYS = [b"key %d" % number for number in range(24)]


def test_500_batches_go_in_one_request(connect: Connect, topic: str) -> None:
    """Batches of one record each are all stored, in order."""
    values = [b"%d" % number for number in range(500)]
    with connect(batch_bytes=1) as client:
        client.create_topic(topic)
        with client.producer(topic) as producer:
            for value in values:
                producer.send(value)
            assert sum(each.count for each in producer.flush()) == 500
        assert values_of(client, topic) == values


def test_a_topic_that_is_made_again_is_empty(
    connect: Connect, topic: str, request: pytest.FixtureRequest
) -> None:
    """Deleted records do not come back, and the new topic works."""
    if "cluster" in request.node.name:
        pytest.skip("a published SC often hangs when a name is used again (FLV-02)")
    with connect() as client:
        client.create_topic(topic)
        store(client, topic, [b"a", b"b"])
        delete(client, topic, 2)
        client.create_topic(topic)
        store(client, topic, [b"c"])
        assert values_of(client, topic) == [b"c"]


def test_eight_threads_share_a_client(connect: Connect, topic: str) -> None:
    """Each has a producer of its own; all records are stored, each one's in order."""
    with connect(buffer_bytes=500) as client:
        client.create_topic(topic)

        def run(number: int) -> None:
            store(client, topic, [b"%d %d" % (number, each) for each in range(200)])

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(run, range(8)))
        found = values_of(client, topic)
    for number in range(8):
        wanted = [b"%d %d" % (number, each) for each in range(200)]
        assert [each for each in found if each.startswith(b"%d " % number)] == wanted


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_keys_go_where_fluvios_producers_put_them(
    connect: Connect, topic: str, partitions: int
) -> None:
    """24 of 24, as the published client's vectors say."""
    with connect() as client:
        client.create_topic(topic, partitions=partitions)
        assert placed(client.producer(topic)) == [fluvio_partition(key, partitions) for key in KEYS]


def placed(producer: Any) -> list[int]:
    """Store a record of each key; return which partitions they went to."""
    found = []
    for key in KEYS:
        producer.send(b"v", key=key)
        found += [each.partition for each in producer.flush()]
    return found


def test_another_partitioner_decides(connect: Connect, topic: str) -> None:
    """A function of one's own takes the key and the number of partitions."""
    with connect(partitioner=lambda key, count: len(key) % count) as client:
        client.create_topic(topic, partitions=2)
        assert placed(client.producer(topic)) == [len(key) % 2 for key in KEYS]


def test_a_record_may_name_its_partition(connect: Connect, topic: str) -> None:
    """Whatever its key."""
    with connect() as client:
        client.create_topic(topic, partitions=3)
        with client.producer(topic) as producer:
            for key in KEYS:
                producer.send(b"v", key=key, partition=2)
        ends = [client.offsets(topic, each).end for each in range(3)]
    assert ends == [0, 0, len(KEYS)]


def test_a_flush_tells_where_records_are(connect: Connect, topic: str) -> None:
    """Partition, first offset and count of each batch."""
    with connect() as client:
        client.create_topic(topic)
        producer = client.producer(topic)
        for base, count in ((0, 2), (2, 3)):
            for _ in range(count):
                producer.send(b"v")
            (stored,) = producer.flush()
            assert (stored.partition, stored.base_offset, stored.count) == (0, base, count)


def test_a_consumer_at_the_end_has_nothing(connect: Connect, topic: str) -> None:
    """It does not see what is there already."""
    with connect() as client:
        client.create_topic(topic)
        store(client, topic, [b"a"])
        with client.consumer(topic, start="end") as consumer:
            assert consumer.offset == 1
            assert consumer.poll(0.05) == []


def test_an_empty_topic_ends_at_once(connect: Connect, topic: str) -> None:
    """There is nothing to wait for."""
    with connect() as client:
        client.create_topic(topic)
        assert values_of(client, topic) == []
        assert client.offsets(topic) == Offsets(0, 0)


def test_nothing_is_beyond_the_end(connect: Connect, topic: str) -> None:
    """A consumer that begins there is refused, with the offset."""
    with connect() as client:
        client.create_topic(topic)
        store(client, topic, [b"a"])
        with client.consumer(topic, start=99) as consumer, pytest.raises(FluvioRefused) as caught:
            consumer.poll(20)
    assert "99" in str(caught.value)


@pytest.mark.parametrize("end", [(), ("stop_at_end",)])
def test_two_consumers_have_everything(connect: Connect, topic: str, end: tuple[str, ...]) -> None:
    """One takes nothing from the other."""
    values = [b"%d" % number for number in range(50)]
    named = dict.fromkeys(end, True)
    with connect() as client:
        client.create_topic(topic)
        store(client, topic, values)
        with client.consumer(topic, **named) as one, client.consumer(topic, **named) as two:
            found = [[each.value for each in islice(both, 50)] for both in (one, two)]
    assert found == [values, values]


def test_offsets_are_kept_for_each_partition(connect: Connect, topic: str) -> None:
    """A named consumer is somewhere else in each."""
    with connect() as client:
        client.create_topic(topic, partitions=2)
        with client.producer(topic) as producer:
            for number in range(10):
                producer.send(b"v", partition=number % 2)
        for partition, offset in enumerate((1, 3)):
            with client.consumer(topic, partition, consumer_id="c") as consumer:
                assert consumer.poll(20)
                consumer.commit(offset)
        assert [client.committed(topic, each, "c") for each in range(2)] == [1, 3]


def test_a_commit_goes_back_where_it_is_told_to(connect: Connect, topic: str) -> None:
    """The last one counts."""
    with connect() as client:
        client.create_topic(topic)
        store(client, topic, [b"%d" % number for number in range(5)])
        with client.consumer(topic, consumer_id="c") as consumer:
            assert consumer.poll(20)
            for offset in (3, 1):
                consumer.commit(offset)
                assert client.committed(topic, 0, "c") == offset


def test_a_consumer_without_a_name_keeps_nothing(connect: Connect, topic: str) -> None:
    """A commit says what is missing."""
    with connect() as client:
        client.create_topic(topic)
        store(client, topic, [b"a"])
        with client.consumer(topic) as consumer:
            assert consumer.poll(20)
            with pytest.raises(ConfigError, match="consumer_id"):
                consumer.commit(0)


def test_nobody_is_forgotten(connect: Connect, topic: str) -> None:
    """What was never committed may be forgotten."""
    with connect() as client:
        client.create_topic(topic)
        client.forget(topic, 0, "nobody")
        assert client.committed(topic, 0, "nobody") is None


def test_text_is_utf_8(connect: Connect, topic: str) -> None:
    """Values and keys may be text."""
    with connect() as client:
        client.create_topic(topic)
        with client.producer(topic) as producer:
            producer.send("größe", key="ключ")
        with client.consumer(topic, stop_at_end=True) as consumer:
            (found,) = consumer
    assert (found.value.decode(), found.key and found.key.decode()) == ("größe", "ключ")


@pytest.mark.parametrize(
    ("value", "key"),
    [(b"", None), (b"", b""), (bytes(range(256)), bytes(range(256))), (b"v", b"k" * 60_000)],
)
def test_any_bytes_come_back(connect: Connect, topic: str, value: bytes, key: bytes | None) -> None:
    """Empty, binary and long ones."""
    with connect() as client:
        client.create_topic(topic)
        with client.producer(topic) as producer:
            producer.send(value, key=key)
        with client.consumer(topic, stop_at_end=True) as consumer:
            (found,) = consumer
    assert (found.value, found.key) == (value, key)


def test_a_record_may_have_no_time(connect: Connect, topic: str) -> None:
    """It comes back without one."""
    with connect() as client:
        client.create_topic(topic)
        with client.producer(topic) as producer:
            producer.send(b"v", timestamp_ms=-1)
        with client.consumer(topic, stop_at_end=True) as consumer:
            (found,) = consumer
    assert found.timestamp_ms is None


@pytest.mark.parametrize(
    "options", [{"delivery": "at_most_once"}, {"read_committed": True}, {"batch_bytes": 200}]
)
def test_every_way_to_produce_stores(connect: Connect, topic: str, options: dict[str, Any]) -> None:
    """Whatever is promised, and however it is cut."""
    values = [b"%0100d" % number for number in range(100)]
    with connect(**options) as client:
        client.create_topic(topic)
        store(client, topic, values)
        assert values_of(client, topic) == values


def test_records_are_kept_for_as_long_as_the_cluster_allows(connect: Connect, topic: str) -> None:
    """Ten seconds at least."""
    with connect() as client:
        client.create_topic(f"{topic}-long", retention_secs=3600)
        with pytest.raises(FluvioRefused) as caught:
            client.create_topic(topic, retention_secs=5)
    assert caught.value.code is ErrorCode.TOPIC_INVALID_CONFIGURATION


def test_a_deleted_topic_takes_nothing(connect: Connect, topic: str) -> None:
    """A producer is told that it is gone."""
    with connect(retry_for=0) as client:
        client.create_topic(topic)
        store(client, topic, [b"a"])
        delete(client, topic, 1)
        eventually(lambda: topic not in {each.name for each in client.topics()})
        with pytest.raises(FluvioRefused) as caught:
            client.producer(topic)
    assert caught.value.code is ErrorCode.TOPIC_NOT_FOUND


@pytest.mark.parametrize(
    "use",
    [
        lambda client, _: client.topics(),
        lambda client, topic: client.offsets(topic),
        lambda client, topic: client.producer(topic),
    ],
)
def test_a_closed_client_says_so(
    connect: Connect, topic: str, use: Callable[[Any, str], object]
) -> None:
    """Every call does."""
    with connect() as client:
        client.create_topic(topic)
    with pytest.raises(ClosedError, match="closed"):
        use(client, topic)
