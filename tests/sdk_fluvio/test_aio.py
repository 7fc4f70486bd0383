"""The client for tasks, on asyncio and trio, against the servers of this project."""

import inspect

import anyio
import pytest

from lance_sdk.errors import ConnectionLost
from lance_sdk.fluvio import (
    AsyncFluvioClient,
    AsyncFluvioConsumer,
    AsyncFluvioProducer,
    FluvioClient,
    FluvioConsumer,
    FluvioProducer,
    FluvioRefused,
    Offsets,
)
from lance_server.listeners.fluvio.testing import FluvioServers

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Return each backend."""
    return str(request.param)


async def test_records_come_back_as_they_were_sent(address: str) -> None:
    """Producing, consuming and administration work for tasks too."""
    async with AsyncFluvioClient(address, compression="zstd") as client:
        await client.create_topic("orders")
        async with await client.producer("orders") as producer:
            for number in range(100):
                await producer.send(b"%d" % number, key=b"k")
        assert await client.offsets("orders") == Offsets(0, 100)
        async with await client.consumer("orders", stop_at_end=True) as consumer:
            found = [(each.offset, each.key, each.value) async for each in consumer]
        assert found == [(number, b"k", b"%d" % number) for number in range(100)]
        await client.delete_topic("orders")
        assert [each.name for each in await client.topics()] == ["consumer-offset"]


async def test_a_live_consumer_goes_on_where_it_committed(address: str) -> None:
    """Waiting can be given up, commits are kept."""
    async with AsyncFluvioClient(address) as client:
        await client.create_topic("live")
        producer = await client.producer("live")
        async with await client.consumer("live", consumer_id="me") as consumer:
            assert await consumer.poll(0.05) == []
            await producer.send(b"one")
            await producer.flush()
            assert [each.value for each in await consumer.poll(10)] == [b"one"]
            await consumer.commit(0)
        assert await client.committed("live", 0, "me") == 0
        async with await client.consumer("live", consumer_id="me") as consumer:
            assert consumer.offset == 1
        await client.forget("live", 0, "me")
        assert await client.committed("live", 0, "me") is None


async def test_a_cancelled_wait_loses_nothing(address: str) -> None:
    """A consumer whose wait was cancelled receives the record all the same."""
    async with AsyncFluvioClient(address) as client:
        await client.create_topic("live")
        producer = await client.producer("live")
        async with await client.consumer("live") as consumer:
            with anyio.move_on_after(0.05) as scope:
                await consumer.poll()
            assert scope.cancelled_caught
            await producer.send(b"one")
            await producer.flush()
            assert [each.value for each in await consumer.poll(10)] == [b"one"]


async def test_tasks_share_a_client(address: str) -> None:
    """Requests of several tasks do not disturb each other."""
    async with AsyncFluvioClient(address) as client:
        await client.create_topic("shared")

        async def write(number: int) -> None:
            async with await client.producer("shared") as producer:
                await producer.send(b"%d" % number)

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(write, number)
        assert (await client.offsets("shared")).end == 20


async def test_a_refusal_says_why(address: str) -> None:
    """The same errors as for threads."""
    async with AsyncFluvioClient(address) as client:
        with pytest.raises(FluvioRefused, match="'missing'"):
            await client.producer("missing")


async def test_who_is_no_fluvio_server_is_named(servers: FluvioServers) -> None:
    """A wrong port is the first thing to look at."""
    address = "{}:{}".format(*servers.server.address)
    async with AsyncFluvioClient(address, retry_for=0.1) as client:
        with pytest.raises(ConnectionLost, match=r"is this the address of a Fluvio SC\?"):
            await client.topics()


@pytest.mark.parametrize(
    ("plain", "tasks"),
    [
        (FluvioClient, AsyncFluvioClient),
        (FluvioProducer, AsyncFluvioProducer),
        (FluvioConsumer, AsyncFluvioConsumer),
    ],
)
def test_both_apis_have_the_same_methods(plain: type, tasks: type) -> None:
    """Names and parameters are equal, so that a program can change its mind."""
    for name, method in inspect.getmembers(plain, inspect.isfunction):
        if not name.startswith("_"):
            other = inspect.signature(getattr(tasks, name)).parameters
            assert list(inspect.signature(method).parameters) == list(other), name
