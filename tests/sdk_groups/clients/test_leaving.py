"""Leaving the block of what has several topics: cancelled, interrupted, or with an exception."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest
from tests.sdk_groups.conftest import append

import lance_sdk
from lance_sdk import Consumer, TopicsProducer
from lance_sdk._io import at_exit
from lance_sdk.aio.partitions import AsyncPartitionedProducer
from lance_sdk.errors import ClosedError, ConfigError, DeliveryWarning, LanceError, UsageError
from lance_sdk.offsets import FileStore, TopicIdentity
from lance_sdk.partitions import PartitionedProducer
from lance_sdk.testing import FakeServer
from lance_server.embedded import EmbeddedServer

pytestmark = pytest.mark.anyio

HOUR = 3600.0


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run on both event loops."""
    return str(request.param)


@pytest.fixture
def silent() -> Any:
    """Return a server that acknowledges nothing."""
    with FakeServer() as server:
        server.on_ingest = lambda _peer, _frame: True
        yield server


def host(server: FakeServer) -> str:
    """Return where a scripted server is, without a topic."""
    return server.url().rpartition("/")[0]


MAKERS: dict[str, Callable[..., Any]] = {
    "topics": lambda server, **options: TopicsProducer(server.url(), **options),
    "partitions": lambda server, **options: PartitionedProducer(
        host(server), ["orders"], **options
    ),
}
ASYNC_MAKERS: dict[str, Callable[..., Any]] = {
    "topics": lambda url, name, **options: lance_sdk.AsyncTopicsProducer(
        f"{url}/{name}", **options
    ),
    "partitions": lambda url, name, **options: AsyncPartitionedProducer(url, [name], **options),
}


@pytest.mark.parametrize("make", ASYNC_MAKERS.values(), ids=ASYNC_MAKERS)
async def test_a_cancelled_block_delivers_and_closes(
    make: Callable[..., Any], server: EmbeddedServer
) -> None:
    """What was sent is stored, and nothing can be sent any more."""
    name = uuid4().hex[:8]
    with anyio.CancelScope() as scope:
        async with make(server.url, name, create_topic=True) as producer:
            await producer.send(b"x")
            scope.cancel()
    with pytest.raises(UsageError):
        await producer.send(b"y")
    with Consumer(f"{server.url}/{name}", stop_at_end=True) as consumer:
        assert [record.value for record in consumer] == [b"x"]


async def test_a_cancelled_consumer_lets_go_of_its_positions(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    """Another one of its name may begin at once, and the connection has ended."""
    name = uuid4().hex[:8]
    append(server.url, name, 3)
    with anyio.CancelScope() as scope:
        async with lance_sdk.AsyncTopicsConsumer(
            server.url, [name], offsets=f"file:{tmp_path}", consumer="app"
        ) as consumer:
            assert await consumer.poll(10.0) is not None
            [topic] = consumer.assignment
            scope.cancel()
    store = FileStore(tmp_path)
    assert isinstance(topic, TopicIdentity)
    store.claim("app", topic)
    store.close()
    with pytest.raises(ClosedError):
        await consumer.poll(0.0)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_closing_to_the_end_is_not_cancelled(server: EmbeddedServer, tmp_path: Path) -> None:
    """By `asyncio.Task.cancel`, which strikes through anyio's shields."""
    name = uuid4().hex[:8]
    append(server.url, name, 3)
    consumer = await lance_sdk.AsyncTopicsConsumer(
        server.url, [name], offsets=f"file:{tmp_path}", consumer="app"
    ).open()
    assert await consumer.poll(10.0) is not None
    [topic] = consumer.assignment
    closing = asyncio.create_task(consumer.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    store = FileStore(tmp_path)
    found = store.claim("app", topic)
    store.close()
    assert found is not None


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_an_exception_leaves_undelivered_is_told(
    make: Callable[..., Any], silent: FakeServer
) -> None:
    """As by a producer of one topic; the exception itself goes on."""

    def fail() -> None:
        with make(silent, close_timeout=0.01) as producer:
            producer.send(b"x")
            raise KeyError("mine")

    with (
        pytest.warns(DeliveryWarning, match="1 records were not delivered"),
        pytest.raises(KeyError, match="mine"),
    ):
        fail()


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_ctrl_c_does_not_wait_for_the_close_timeout(
    make: Callable[..., Any], silent: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaving takes two seconds at most."""
    monkeypatch.setattr(at_exit, "EXIT_BUDGET", 0.01)

    def interrupt() -> None:
        with make(silent, close_timeout=HOUR) as producer:
            producer.send(b"x")
            raise KeyboardInterrupt

    with pytest.warns(DeliveryWarning), pytest.raises(KeyboardInterrupt):
        interrupt()


def test_closing_does_not_wait_for_a_topic_that_is_being_opened() -> None:
    """Whoever opens it is refused as soon as that has ended."""
    order: list[str] = []
    with FakeServer() as server:
        producer = TopicsProducer(host(server), connect_timeout=1.0).open()
        server.on_keepalive = lambda _peer, _frame: True  # it answers nobody

        def send() -> None:
            with pytest.raises(LanceError):
                producer.send(b"x", topic="orders")
            order.append("refused")

        sending = threading.Thread(target=send)
        sending.start()
        server.wait_for(lambda: bool(server.frames))
        producer.close()
        order.append("closed")
        sending.join()
    assert order == ["closed", "refused"]


async def test_a_topic_opened_while_the_producer_closes_is_closed_again(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No connection is left, and the record is refused."""
    opened: list[AsyncPartitionedProducer] = []
    open_it = AsyncPartitionedProducer.open
    producer = await lance_sdk.AsyncTopicsProducer(server.url, create_topic=True).open()

    async def open_and_close(target: AsyncPartitionedProducer) -> AsyncPartitionedProducer:
        opened.append(await open_it(target))
        await producer.close()
        return target

    monkeypatch.setattr(AsyncPartitionedProducer, "open", open_and_close)
    with pytest.raises(ClosedError):
        await producer.send(b"x", topic=uuid4().hex[:8])
    assert "OPEN" not in repr(opened[0]._producers[0])


def test_a_topic_that_is_not_text_is_refused(server: EmbeddedServer) -> None:
    """In words, and before anything is asked of the server."""
    topic: Any = b"orders"
    with TopicsProducer(server.url) as producer, pytest.raises(ConfigError, match="expected text"):
        producer.send(b"x", topic=topic)


def test_opening_twice_changes_nothing(server: EmbeddedServer) -> None:
    """The second is refused; the first goes on looking for partitions."""
    name = uuid4().hex[:8]
    with lance_sdk.Client(server.url) as client:
        client.create_topic(name, partitions=1)
        with PartitionedProducer(f"{server.url}/{name}", refresh_interval=0.02) as producer:
            with pytest.raises(UsageError, match="is open already"):
                producer.open()
            client.add_partitions(name, 2)
            while len(producer.partitions) < 2:
                producer.send(b"meanwhile")
                producer.flush()
