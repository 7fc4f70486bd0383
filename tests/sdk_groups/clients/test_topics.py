"""Partitioned topics, and several topics at once: producers, consumers and groups (AMB-59)."""

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from anyio import fail_after
from tests.sdk_groups.conftest import Threaded, append

import lance_sdk
from lance_sdk import Client, Consumer, PartitionedTopic, Producer
from lance_sdk.errors import (
    ClosedError,
    ConfigError,
    InvalidPayload,
    NotOpenError,
    TopicAlreadyExists,
    TopicDeleted,
    TopicNotFound,
    Unsupported,
    UsageError,
)
from lance_sdk.offsets import FileStore
from lance_sdk.partitions import PartitionedProducer, partition_of
from lance_sdk.testing import FakeServer
from lance_server.embedded import EmbeddedServer
from lance_spec.codec.siphash import fluvio_partition

pytestmark = pytest.mark.anyio


@pytest.fixture
def client(server: EmbeddedServer) -> Iterator[Client]:
    """Return a client of the server."""
    with Client(server.url) as client:
        yield client


@pytest.fixture
def orders(client: Client) -> PartitionedTopic:
    """Return a partitioned topic of four partitions."""
    return client.create_topic(f"orders{uuid4().hex[:8]}", partitions=4)


@pytest.fixture
def make(api: str, server: EmbeddedServer) -> Callable[..., Any]:
    """Return what makes a class by its sync name, with async methods."""

    def made(name: str, *arguments: Any, at: str = "", **options: Any) -> Any:
        kind = getattr(lance_sdk, name if api == "threads" else f"Async{name}")
        chosen = {"backoff_base": 0.001, **options}
        built = kind(f"{server.url}{at}", *arguments, **chosen)
        return Threaded(built) if api == "threads" else built

    return made


def stored(server: EmbeddedServer, name: str) -> list[bytes]:
    """Return the values of a topic."""
    with Consumer(f"{server.url}/{name}", stop_at_end=True) as consumer:
        return [bytes(record.value) for record in consumer]


# Topics


def test_partitions_are_created_as_one(client: Client, orders: PartitionedTopic) -> None:
    """The answer, the look-up and the list say the same."""
    assert orders.names == tuple(f"{orders.name}-{index}" for index in range(4))
    assert (orders.partitions, orders.partitioner) == (4, "murmur2")
    assert client.get_partitioned_topic(orders.name).names == orders.names
    assert orders.name in [each.name for each in client.list_partitioned_topics()]
    assert set(orders.names) <= {each.name for each in client.list_topics()}


async def test_tasks_create_extend_and_delete_them_too(make: Callable[..., Any]) -> None:
    """With the same names and results."""
    name = uuid4().hex[:8]
    async with make("Client") as client:
        await client.create_topic(name, partitions=2, partitioner="siphash", max_age_secs=60)
        assert (await client.get_topic(f"{name}-1")).max_age_secs == 60
        assert (await client.add_partitions(name, 3)).partitions == 3
        await client.set_retention(name, max_bytes=2**30)
        assert (await client.get_topic(f"{name}-2")).max_bytes == 2**30
        await client.delete_topic(name)
        with pytest.raises(TopicNotFound):
            await client.get_partitioned_topic(name)


def test_an_existing_one_is_returned_if_it_is_the_same(
    client: Client, orders: PartitionedTopic
) -> None:
    """With another number of partitions it is not what was asked for."""
    same = client.create_topic(orders.name, partitions=4, exist_ok=True)
    assert same.names == orders.names
    with pytest.raises(TopicAlreadyExists):
        client.create_topic(orders.name, partitions=5, exist_ok=True)


def test_partitions_are_not_taken_away(client: Client, orders: PartitionedTopic) -> None:
    """The server says how many there are."""
    with pytest.raises(InvalidPayload, match="has 4"):
        client.add_partitions(orders.name, 3)


@pytest.mark.parametrize("option", [{"partitions": 0}, {"partitions": 2, "partitioner": "crc"}])
def test_options_of_creation_must_make_sense(client: Client, option: Any) -> None:
    """Nothing is asked of the server then."""
    with pytest.raises(ConfigError):
        client.create_topic("never", **option)


def test_a_server_without_descriptions_is_told_apart() -> None:
    """The advice is to give names."""
    with (
        FakeServer() as fake,
        Client(fake.url()) as client,
        pytest.raises(Unsupported, match="PartitionedProducer"),
    ):
        client.create_topic("orders", partitions=2)


@pytest.mark.parametrize("kind", [Producer, Consumer])
def test_what_is_for_one_topic_says_what_is_for_several(
    server: EmbeddedServer, orders: PartitionedTopic, kind: Any
) -> None:
    """Also with create_topic=True nothing else is created."""
    options = {"create_topic": True} if kind is Producer else {}
    with pytest.raises(TopicNotFound, match=r"TopicsProducer .* TopicsConsumer"):
        kind(f"{server.url}/{orders.name}", **options).open()


# Producing


@pytest.mark.parametrize(
    ("partitioner", "expected"), [("murmur2", partition_of), ("siphash", fluvio_partition)]
)
async def test_keys_go_where_the_description_says(
    make: Callable[..., Any],
    client: Client,
    server: EmbeddedServer,
    partitioner: Any,
    expected: Callable[[bytes, int], int],
) -> None:
    """A key has one partition, the one that clients of Kafka or Fluvio choose."""
    whole = client.create_topic(uuid4().hex[:8], partitions=3, partitioner=partitioner)
    sent: dict[int, list[bytes]] = defaultdict(list)
    async with make("TopicsProducer", at=f"/{whole.name}") as producer:
        for number in range(60):
            key, value = b"key-%d" % (number % 7), b"%d" % number
            await producer.send(value, key=key)
            sent[expected(key, 3)].append(value)
        await producer.flush()
    assert {number: stored(server, whole.names[number]) for number in sent} == sent


async def test_records_without_a_key_take_turns(
    make: Callable[..., Any], server: EmbeddedServer, orders: PartitionedTopic
) -> None:
    """Every partition gets as many as the others."""
    async with make("TopicsProducer", at=f"/{orders.name}") as producer:
        for number in range(8):
            await producer.send(b"%d" % number)
    assert [len(stored(server, name)) for name in orders.names] == [2, 2, 2, 2]


async def test_a_producer_sends_to_several_topics(
    make: Callable[..., Any], server: EmbeddedServer, orders: PartitionedTopic
) -> None:
    """Partitioned or not; topics that are missing are created where that is asked for."""
    news = uuid4().hex[:8]
    async with make("TopicsProducer", create_topic=True) as producer:
        for number in range(4):
            await producer.send(b"%d" % number, topic=orders.name, partition=1)
            await producer.send(b"%d" % number, topic=news)
        await producer.flush()
        assert producer.topics == (orders.name, news)
        counted = {
            name: sum(each.acked_records for each in parts)
            for name, parts in producer.stats().items()
        }
        assert counted == {orders.name: 4, news: 4}
    assert stored(server, orders.names[1]) == stored(server, news) == [b"0", b"1", b"2", b"3"]


async def test_a_topic_that_is_missing_fails_its_record_alone(
    make: Callable[..., Any], orders: PartitionedTopic
) -> None:
    """The producer goes on."""
    async with make("TopicsProducer", at=f"/{orders.name}") as producer:
        with pytest.raises(TopicNotFound):
            await producer.send(b"lost", topic="missing")
        await producer.send(b"kept")
        await producer.flush()


async def test_a_producer_of_topics_says_when_it_cannot_send(make: Callable[..., Any]) -> None:
    """Before it is open, without a topic, and after it was closed."""
    producer = make("TopicsProducer")
    with pytest.raises(NotOpenError):
        await producer.send(b"early", topic="any")
    async with producer:
        with pytest.raises(ConfigError, match="topic="):
            await producer.send(b"where")
    with pytest.raises(ClosedError):
        await producer.send(b"late", topic="any")


def test_another_partitioner_is_refused(server: EmbeddedServer, orders: PartitionedTopic) -> None:
    """The description names one, and keys would be split."""
    producer = PartitionedProducer(f"{server.url}/{orders.name}", partitioner=fluvio_partition)
    with pytest.raises(ConfigError, match="murmur2"):
        producer.open()


def test_each_topic_has_its_journal(
    server: EmbeddedServer, orders: PartitionedTopic, tmp_path: Path
) -> None:
    """In a folder of its own, so that partitions do not wait for each other."""
    url = f"{server.url}/{orders.name}"
    with PartitionedProducer(url, journal=tmp_path, on_full="journal") as producer:
        producer.send(b"one", key=b"k")
        producer.flush()
    assert {each.name for each in tmp_path.iterdir()} == set(orders.names)


# Consuming


def fill(server: EmbeddedServer, topic: PartitionedTopic, count: int = 20) -> list[int]:
    """Write numbers to a partitioned topic, each with itself as the key."""
    with PartitionedProducer(f"{server.url}/{topic.name}") as producer:
        for number in range(count):
            producer.send(b"%d" % number, key=b"%d" % number)
    return list(range(count))


async def test_a_consumer_of_a_partitioned_topic_gets_all_partitions(
    make: Callable[..., Any], server: EmbeddedServer, orders: PartitionedTopic
) -> None:
    """Over one connection."""
    numbers = fill(server, orders)
    async with make("TopicsConsumer", at=f"/{orders.name}", stop_at_end=True) as consumer:
        found = [int(record.value) async for record in consumer]
        assert sorted(found) == numbers
        assert consumer.stats().server.connects == 1


async def test_a_consumer_reads_several_topics(
    make: Callable[..., Any], server: EmbeddedServer, orders: PartitionedTopic
) -> None:
    """By name and number, each record with the topic it is of."""
    numbers, news = fill(server, orders), uuid4().hex[:8]
    append(server.url, news, 5)
    wanted = [orders.name, news]
    async with make("TopicsConsumer", wanted, stop_at_end=True) as consumer:
        found = [(record.topic, int(record.value)) async for record in consumer]
    assert [value for topic, value in found if topic == news] == list(range(5))
    assert sorted(value for topic, value in found if topic != news) == numbers


async def test_a_pattern_finds_topics_and_those_that_come_later(
    make: Callable[..., Any], server: EmbeddedServer
) -> None:
    """Within the refresh interval."""
    stem = uuid4().hex[:8]
    append(server.url, f"{stem}a", 1)
    append(server.url, f"other{stem}a", 1)
    options = {"pattern": f"{stem}.", "refresh_interval": 0.02}
    async with make("TopicsConsumer", **options) as consumer:
        assert (await consumer.poll(10.0)).topic == f"{stem}a"
        append(server.url, f"{stem}b", 1)
        assert (await consumer.poll(10.0)).topic == f"{stem}b"
        assert [topic.label for topic in consumer.assignment] == [f"{stem}a", f"{stem}b"]


@pytest.mark.parametrize("start", ["beginning", "end"])
async def test_partitions_that_are_added_are_read_from_their_beginning(
    make: Callable[..., Any], server: EmbeddedServer, start: str
) -> None:
    """Within the refresh interval; nothing that is written to them is passed over."""
    name = f"orders{uuid4().hex[:8]}"
    with Client(server.url) as client:
        client.create_topic(name, partitions=1)
        options = {"start": start, "refresh_interval": 0.02}
        async with make("TopicsConsumer", [name], **options) as consumer:
            client.add_partitions(name, 2)
            append(server.url, f"{name}-1", 1)
            assert (await consumer.poll(10.0)).topic == f"{name}-1"
            assert [topic.label for topic in consumer.assignment] == [f"{name}-0", f"{name}-1"]


async def test_a_producer_takes_up_partitions_that_are_added(
    make: Callable[..., Any], server: EmbeddedServer, client: Client
) -> None:
    """Keys go where the larger number of partitions puts them; what was sent before stays."""
    name, key = f"orders{uuid4().hex[:8]}", b"customer-1"
    client.create_topic(name, partitions=2)
    with fail_after(60):
        async with make("TopicsProducer", refresh_interval=0.02) as producer:
            await producer.send(b"early", topic=name, key=key)
            client.add_partitions(name, 7)
            while len(producer.stats()[name]) < 7:
                await producer.send(b"meanwhile", topic=name)
                await producer.flush()
            await producer.send(b"late", topic=name, key=key)
    assert partition_of(key, 2) != partition_of(key, 7)
    for number, value in ((partition_of(key, 2), b"early"), (partition_of(key, 7), b"late")):
        with Consumer(f"{server.url}/{name}-{number}", stop_at_end=True) as consumer:
            assert value in [record.value for record in consumer]


def test_partitions_that_cannot_be_opened_are_left_for_later(
    server: EmbeddedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer goes on with those that it has, and takes up the others at the next look."""
    name, opened = f"orders{uuid4().hex[:8]}", Producer.open
    refused: list[Producer[Any]] = []

    def refuse_once(producer: Producer[Any]) -> Producer[Any]:
        if f"{name}-1" in repr(producer) and not refused:
            refused.append(producer)
            raise TopicNotFound("not yet")
        return opened(producer)

    client.create_topic(name, partitions=1)
    with PartitionedProducer(f"{server.url}/{name}", refresh_interval=0.02) as producer:
        monkeypatch.setattr(Producer, "open", refuse_once)
        client.add_partitions(name, 2)
        while len(producer.partitions) < 2:
            producer.send(b"meanwhile")
            producer.flush()
    assert len(refused) == 1


def test_a_producer_of_given_names_looks_for_no_others(server: EmbeddedServer) -> None:
    """There is no description that it could ask for."""
    names = [f"orders{uuid4().hex[:8]}-0"]
    with PartitionedProducer(
        server.url, names, create_topic=True, refresh_interval=0.02
    ) as producer:
        producer.send(b"value")
        assert producer._watch is None


async def test_a_topic_of_a_pattern_may_be_deleted_and_created_again(
    make: Callable[..., Any], client: Client, server: EmbeddedServer, tmp_path: Path
) -> None:
    """The consumer lets the first one go, with what it holds for it, and reads the second."""
    name = uuid4().hex[:8]
    options = {"offsets": f"file:{tmp_path}", "consumer": "app", "refresh_interval": 0.02}
    append(server.url, name, 1)
    async with make("TopicsConsumer", pattern=name, **options) as consumer:
        assert (await consumer.poll(10.0)).count == 1
        [first] = consumer.assignment
        client.delete_topic(name)
        with fail_after(30):
            while consumer.assignment:
                with suppress(TopicDeleted):
                    await consumer.poll(0.01)
        assert consumer.errors == {}
        store = FileStore(tmp_path)
        store.claim("app", first)  # nobody has it
        store.forget("app", first)
        store.close()
        append(server.url, name, 2)
        with fail_after(30):
            assert [record.value for record in await consumer.poll(20.0)] == [b"0", b"1"]


async def test_a_deleted_topic_that_was_named_is_an_error(
    make: Callable[..., Any], client: Client, server: EmbeddedServer
) -> None:
    """Until the application acts; the look for topics of the pattern changes nothing about it."""
    name, other = uuid4().hex[:8], uuid4().hex[:8]
    append(server.url, name, 1)
    async with make(
        "TopicsConsumer", [name], pattern=f"{other}|{name}", refresh_interval=0.02
    ) as consumer:
        assert (await consumer.poll(10.0)).count == 1
        client.delete_topic(name)
        with fail_after(30):
            while not consumer.errors:
                with suppress(TopicDeleted):
                    await consumer.poll(0.01)
        append(server.url, other, 1)
        await consumer.pause(name)
        assert (await consumer.poll(20.0)).topic == other
        assert [topic.label for topic in consumer.errors] == [name]


async def test_positions_are_committed_for_each_topic(
    make: Callable[..., Any], server: EmbeddedServer, orders: PartitionedTopic, tmp_path: Path
) -> None:
    """The next consumer of the name goes on where this one was."""
    fill(server, orders)
    options = {"offsets": f"file:{tmp_path}", "consumer": "app", "stop_at_end": True}
    first: list[int] = []
    async with make("TopicsConsumer", [orders.name], **options) as consumer:
        async for record in consumer:
            first.append(int(record.value))
            if len(first) == 7:
                break
    async with make("TopicsConsumer", [orders.name], **options) as consumer:
        rest = [int(record.value) async for record in consumer]
    assert sorted(first + rest) == list(range(20))


async def test_what_was_not_processed_is_read_again(
    make: Callable[..., Any], server: EmbeddedServer, orders: PartitionedTopic, tmp_path: Path
) -> None:
    """Leaving with an exception does not commit the record at hand."""
    fill(server, orders, 3)
    options = {"offsets": f"file:{tmp_path}", "consumer": "app", "stop_at_end": True}
    failed: list[bytes] = []

    async def fail() -> None:
        async with make("TopicsConsumer", [orders.name], **options) as consumer:
            async for record in consumer:
                failed.append(bytes(record.value))
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with make("TopicsConsumer", [orders.name], **options) as consumer:
        assert failed[0] in [bytes(record.value) async for record in consumer]


async def test_topics_have_positions_of_their_own(
    make: Callable[..., Any], server: EmbeddedServer
) -> None:
    """Seek, pause, lag and position are about one of them."""
    one, two = (uuid4().hex[:8] for _ in range(2))
    for name in (one, two):
        append(server.url, name, 3)
    async with make("TopicsConsumer", [one, two]) as consumer:
        await consumer.pause(one)
        assert (await consumer.poll(10.0)).topic == two
        lags = {topic.label: lag for topic, lag in (await consumer.lag()).items()}
        assert lags[two] == 0
        assert lags[one] > 0
        await consumer.resume(one)
        assert (await consumer.poll(10.0)).topic == one
        await consumer.seek(two, "beginning")
        again = await consumer.poll(10.0)
        assert (again.topic, again.offset) == (two, 0)
        assert consumer.position(two) == again.next_offset
        with pytest.raises(UsageError):
            await consumer.seek("third", "end")


async def test_a_group_is_given_a_partitioned_topic_by_its_name(
    member: Callable[..., Any], server: EmbeddedServer, orders: PartitionedTopic
) -> None:
    """Its members share the partitions."""
    numbers = fill(server, orders)
    async with member(topics=[orders.name], stop_at_end=True) as consumer:
        found = [int(record.value) async for record in consumer]
        assert [topic.label for topic in consumer.assignment] == list(orders.names)
    assert sorted(found) == numbers


@pytest.mark.parametrize("start", ["beginning", "end"])
async def test_a_member_takes_up_partitions_that_are_added(
    member: Callable[..., Any], client: Client, server: EmbeddedServer, start: str
) -> None:
    """From their beginning, within the refresh interval."""
    name = f"orders{uuid4().hex[:8]}"
    client.create_topic(name, partitions=1)
    async with member(topics=[name], start=start, refresh_interval=0.02) as consumer:
        client.add_partitions(name, 2)
        append(server.url, f"{name}-1", 3)
        batch = await consumer.poll(10.0)
        assert (batch.topic, batch.offset) == (f"{name}-1", 0)


async def test_partitions_that_are_added_are_shared(
    member: Callable[..., Any], client: Client
) -> None:
    """Members that are open have a rebalance, in which nothing is lost that they hold."""
    name, lost = f"orders{uuid4().hex[:8]}", []
    client.create_topic(name, partitions=2)
    options = {"topics": [name], "refresh_interval": 0.02, "on_lost": lost.extend}
    async with member(member="a", **options) as one, member(member="b", **options) as two:
        await polled_until(lambda: len(one.assignment) == len(two.assignment) == 1, one, two)
        client.add_partitions(name, 6)
        await polled_until(lambda: len(one.assignment) == len(two.assignment) == 3, one, two)
        assert not set(one.assignment) & set(two.assignment)
    assert lost == []


async def polled_until(reached: Callable[[], bool], *members: Any) -> None:
    """Have members look for records until something holds."""
    with fail_after(30.0):
        while not reached():
            for each in members:
                await each.poll(0.01)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"topics": "orders"},
        {"topics": [b"orders"]},
        {"pattern": "("},
        {"topics": ["a"], "refresh_interval": 0},
        {"topics": ["a"], "max_poll_records": -1},
        {"topics": ["a"], "offsets": "server", "consumer": "c"},
    ],
    ids=str,
)
def test_options_of_a_consumer_must_make_sense(options: Any) -> None:
    """Each says what is wrong."""
    with pytest.raises(ConfigError):
        lance_sdk.TopicsConsumer("lance://localhost", **options)


@pytest.mark.parametrize("name", ["TopicsProducer", "TopicsConsumer"])
def test_both_apis_are_the_same(name: str) -> None:
    """What threads have, tasks have, with the same parameters."""
    sync, tasks = (getattr(lance_sdk, prefix + name) for prefix in ("", "Async"))
    assert inspect.signature(sync) == inspect.signature(tasks)
    mine, theirs = (
        {each for each in dir(kind) if not each.startswith("_")} for kind in (sync, tasks)
    )
    assert mine == theirs
    for method in mine:
        if callable(getattr(sync, method)):
            one, two = (inspect.signature(getattr(kind, method)) for kind in (sync, tasks))
            assert list(one.parameters.values()) == list(two.parameters.values())
