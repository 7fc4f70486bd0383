"""Subscriptions: the server pushes what is new, where it does (AMB-21)."""

from collections.abc import Iterator
from typing import Any

import pytest

from lance_sdk.errors import TopicDeleted, Unsupported
from lance_sdk.testing import FakePeer, FakeServer
from lance_server import EmbeddedServer, running
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame
from lance_spec.records import encode_records

pytestmark = pytest.mark.anyio


@pytest.fixture
def reference() -> Iterator[EmbeddedServer]:
    """Return a running reference server."""
    with running() as server:
        yield server


async def take(consumer: Any, count: int) -> list[bytes]:
    """Return the next records' values."""
    values: list[bytes] = []
    async for record in consumer:
        values.append(record.value)
        if len(values) == count:
            break
    return values


async def test_pushed_records_arrive_without_polling(
    api: Any, server: FakeServer, until: Any
) -> None:
    """At the end of the log the consumer subscribes, and fetches no more."""
    server.topics.append(1, encode_records([b"old"]))
    async with api.consumer(server.url(), poll_interval=0.001) as consumer:
        assert await take(consumer, 1) == [b"old"]
        await until(server, lambda: "SUBSCRIBE" in server.frames)
        fetches = consumer.stats().fetches
        server.topics.append(1, encode_records([b"new", b"newer"]))
        assert await take(consumer, 2) == [b"new", b"newer"]
        stats = consumer.stats()
    assert stats.pushing
    assert stats.pushes == 1
    assert stats.fetches == fetches
    assert consumer.lag == 0


async def test_poll_mode_never_subscribes(api: Any, server: FakeServer) -> None:
    """The same records, asked for."""
    server.topics.append(1, encode_records([b"old"]))
    async with api.consumer(server.url(), mode="poll", poll_interval=0.001) as consumer:
        assert await take(consumer, 1) == [b"old"]
        server.topics.append(1, encode_records([b"new"]))
        assert await take(consumer, 1) == [b"new"]
    assert "SUBSCRIBE" not in server.frames


async def test_a_deployed_server_is_polled(api: Any, deployed: FakeServer) -> None:
    """It takes Subscribe and does not push; the API is the same."""
    deployed.topics.append(1, encode_records([b"old"]))
    async with api.consumer(deployed.url(), poll_interval=0.001) as consumer:
        assert await take(consumer, 1) == [b"old"]
        deployed.topics.append(1, encode_records([b"new"]))
        assert await take(consumer, 1) == [b"new"]
    assert "SUBSCRIBE" not in deployed.frames


async def test_push_mode_is_refused_where_nothing_is_pushed(api: Any, deployed: FakeServer) -> None:
    """With what works instead."""
    with pytest.raises(Unsupported, match="mode='auto' or mode='poll'"):
        async with api.consumer(deployed.url(), mode="push"):
            pytest.fail("it must not open")


async def test_a_slow_application_ends_the_subscription(
    api: Any, server: FakeServer, until: Any
) -> None:
    """Credit stays bounded: beyond prefetch_bytes nothing is pushed, and nothing is lost."""
    options = {"poll_interval": 0.001, "prefetch_bytes": 200, "max_fetch_bytes": 100}
    values = [b"%04d" % number * 5 for number in range(400)]
    async with api.consumer(server.url(), **options) as consumer:
        await until(server, lambda: "SUBSCRIBE" in server.frames)
        for value in values:
            server.topics.append(1, encode_records([value]))
        await until(server, lambda: "UNSUBSCRIBE" in server.frames)
        assert await take(consumer, len(values)) == values


async def test_a_record_larger_than_a_push_arrives_whole(
    api: Any, server: FakeServer, until: Any
) -> None:
    """The server cuts it; the consumer puts it together."""
    value = bytes(range(256)) * 20
    options = {"poll_interval": 0.001, "max_fetch_bytes": 100, "prefetch_bytes": 10_000}
    async with api.consumer(server.url(), **options) as consumer:
        await until(server, lambda: "SUBSCRIBE" in server.frames)
        server.topics.append(1, encode_records([value, b"after"]))
        assert await take(consumer, 2) == [value, b"after"]


async def test_a_lost_connection_takes_the_subscription_along(
    api: Any, server: FakeServer, until: Any
) -> None:
    """The next connection subscribes again, where the consumer is."""
    async with api.consumer(server.url(), poll_interval=0.001) as consumer:
        await until(server, lambda: server.frames.count("SUBSCRIBE") == 1)
        server.topics.append(1, encode_records([b"one"]))
        assert await take(consumer, 1) == [b"one"]
        server.drop_all()
        server.topics.append(1, encode_records([b"two"]))
        assert await take(consumer, 1) == [b"two"]
        await until(server, lambda: server.frames.count("SUBSCRIBE") == 2)


async def test_a_seek_while_pushed_to_goes_where_it_says(
    api: Any, server: FakeServer, until: Any
) -> None:
    """What the server still pushes for the old place is dropped."""
    server.topics.append(1, encode_records([b"one", b"two"]))
    async with api.consumer(server.url(), poll_interval=0.001) as consumer:
        assert await take(consumer, 2) == [b"one", b"two"]
        await until(server, lambda: "SUBSCRIBE" in server.frames)
        await consumer.seek("beginning")
        server.topics.append(1, encode_records([b"three"]))
        assert await take(consumer, 3) == [b"one", b"two", b"three"]


async def test_an_error_ends_the_subscription(api: Any, server: FakeServer, until: Any) -> None:
    """A topic that is deleted while it is pushed raises what it is."""
    peers: list[FakePeer] = []

    def remember(peer: FakePeer, _frame: Frame) -> bool:
        peers.append(peer)
        return False

    server.on_control = remember
    async with api.consumer(server.url(), poll_interval=0.001) as consumer:
        await until(server, lambda: "SUBSCRIBE" in server.frames)
        peers[-1].error(ErrorCode.TOPIC_DELETED, "Topic deleted", topic_id=1)
        with pytest.raises(TopicDeleted):
            await consumer.poll(timeout=10)


@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_PAYLOAD, ErrorCode.UNKNOWN_ERROR, ErrorCode.ACCESS_DENIED]
)
async def test_a_refused_subscribe_falls_back_to_polling(
    api: Any, server: FakeServer, code: ErrorCode
) -> None:
    """A server that does not know the command, or does not grant it, is polled instead."""

    def refuse(peer: FakePeer, frame: Frame) -> bool:
        if frame.command is not Command.SUBSCRIBE:
            return False
        peer.error(code, "Invalid client command")
        return True

    server.on_control = refuse
    async with api.consumer(server.url(), poll_interval=0.001) as consumer:
        assert await consumer.poll(timeout=0.05) is None
        server.topics.append(1, encode_records([b"new"]))
        assert await take(consumer, 1) == [b"new"]
    assert server.frames.count("SUBSCRIBE") == 1


async def test_the_reference_server_pushes(api: Any, reference: EmbeddedServer) -> None:
    """End to end, with records in both phases."""
    url = f"{reference.url}/orders"
    values = [b"%d" % number for number in range(500)]
    async with api.producer(url, create_topic=True) as producer:
        await (await producer.send_many(values[:100])).result(timeout=30)
        async with api.consumer(url, poll_interval=0.001) as consumer:
            assert await take(consumer, 100) == values[:100]
            while not consumer.stats().pushing:
                assert await consumer.poll(timeout=0.01) is None
            for start in range(100, 500, 50):
                await (await producer.send_many(values[start : start + 50])).result(timeout=30)
                assert await take(consumer, 50) == values[start : start + 50]
            assert consumer.stats().pushes > 0
