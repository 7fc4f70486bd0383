"""Topics in partitions: keys keep their partition and their order."""

import inspect
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk import Consumer
from lance_sdk.aio.partitions import AsyncPartitionedProducer
from lance_sdk.errors import ConfigError, TopicNotFound
from lance_sdk.partitions import (
    PartitionedProducer,
    murmur2,
    partition_names,
    partition_of,
)

pytestmark = pytest.mark.anyio

KAFKA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""What Kafka's own tests say of its hash."""


@pytest.mark.parametrize("key", KAFKA)
def test_hash_is_that_of_kafka(key: bytes) -> None:
    """The hash of a key is the one that Kafka's clients compute."""
    assert murmur2(key) == KAFKA[key] & 0xFFFFFFFF


@given(key=st.binary(max_size=40), partitions=st.integers(1, 100))
def test_every_key_has_a_partition(key: bytes, partitions: int) -> None:
    """A key belongs to one of the partitions, always the same."""
    found = partition_of(key, partitions)
    assert 0 <= found < partitions
    assert found == (murmur2(key) & 0x7FFFFFFF) % partitions


async def test_keys_keep_their_order(server: Any, api: str) -> None:
    """All records of a key are in one partition, in the order in which they were sent."""
    names = partition_names(uuid4().hex[:8], 4)
    sent: dict[bytes, list[bytes]] = defaultdict(list)
    records = [(b"key-%d" % (number % 20), b"%d" % number) for number in range(200)]
    if api == "threads":
        with PartitionedProducer(server.url, names, create_topic=True) as producer:
            for key, value in records:
                producer.send(value, key=key)
            producer.flush()
    else:
        async with AsyncPartitionedProducer(server.url, names, create_topic=True) as tasks:
            for key, value in records:
                await tasks.send(value, key=key)
            await tasks.flush()
    for key, value in records:
        sent[key].append(value)
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for number, name in enumerate(names):
        with Consumer(f"{server.url}/{name}", stop_at_end=True) as consumer:
            for record in consumer:
                assert partition_of(record.key, 4) == number
                found[record.key].append(record.value)
    assert found == sent


def test_records_without_a_key_take_turns(server: Any) -> None:
    """Without a key every partition gets as much as the others; a number decides alone."""
    names = partition_names(uuid4().hex[:8], 3)
    with PartitionedProducer(server.url, names, create_topic=True) as producer:
        for number in range(9):
            producer.send(b"%d" % number)
        producer.send(b"here", key=b"any", partition=2)
        with pytest.raises(ConfigError, match="partition=3: expected 0 to 2"):
            producer.send(b"nowhere", partition=3)
        report = producer.close()
    assert (report.delivered, [each.acked_records for each in producer.stats()]) == (10, [3, 3, 4])


async def test_group_shares_partitions(server: Any, member: Callable[..., Any]) -> None:
    """A member of a group that is given the names reads every partition."""
    names = partition_names(uuid4().hex[:8], 3)
    with PartitionedProducer(server.url, names, create_topic=True) as producer:
        for number in range(30):
            producer.send(b"%d" % number)
    async with member(topics=names, stop_at_end=True) as consumer:
        found = [(record.topic, int(record.value)) async for record in consumer]
    assert sorted(found) == sorted((names[number % 3], number) for number in range(30))


def test_missing_partition_leaves_nothing_open(server: Any) -> None:
    """Where one partition does not exist, none stays open."""
    names = partition_names(uuid4().hex[:8], 2)
    with PartitionedProducer(server.url, names[:1], create_topic=True):
        pass
    producer = PartitionedProducer(server.url, names)
    with pytest.raises(TopicNotFound):
        producer.open()
    assert all(each._driver.usage_error is not None for each in producer._producers)


@pytest.mark.parametrize("names", [[], "orders", ["a", "a"]], ids=str)
def test_partitions_that_make_no_sense(names: Any) -> None:
    """Partitions are a list of names, each once."""
    with pytest.raises(ConfigError, match="expected the names of partitions"):
        PartitionedProducer("lance://localhost", names)


def test_number_of_partitions_must_make_sense() -> None:
    """A topic has at least one partition."""
    with pytest.raises(ConfigError, match="partitions=0"):
        partition_names("orders", 0)


def test_both_apis_are_the_same() -> None:
    """What threads have, tasks have, with the same parameters."""
    for name in ("__init__", "send", "flush", "close", "stats", "open"):
        sync, tasks = (
            inspect.signature(getattr(kind, name)).parameters
            for kind in (PartitionedProducer, AsyncPartitionedProducer)
        )
        assert list(sync) == list(tasks)
