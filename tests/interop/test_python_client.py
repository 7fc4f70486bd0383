"""The published Python client, `lnc-client` 0.2.9, with our server and our SDK."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.restarted import RestartedServer

from lance_sdk import Client, Consumer, Producer
from lance_sdk.errors import TopicNotFound
from lance_spec.dialect import DEPLOYED
from lance_spec.frames import FrameKind, FrameSplitter

lnc_client = pytest.importorskip("lnc_client", reason="needs lnc-client: tox run -e interop")

VALUES = [b"value %d" % number for number in range(200)]


@asynccontextmanager
async def peer(address: str) -> AsyncIterator[Any]:
    """Its management client, connected."""
    host, _, port = address.partition(":")
    config = lnc_client.ClientConfig(host=host, port=int(port))
    async with lnc_client.LanceClient(config) as client:
        yield client


async def produce(address: str, topic: str, values: list[bytes], **options: Any) -> None:
    """Send with its producer, and wait for every acknowledgement."""
    config = lnc_client.ProducerConfig(**options)
    producer = await lnc_client.Producer.connect(address, config)
    for value in values:
        await producer.send_async(topic, value)
    await producer.flush()
    await producer.close()


async def open_consumer(address: str, topic: str, **options: Any) -> Any:
    """Its consumer; by id, because 0.2.9 breaks when it looks a name up by itself."""
    async with peer(address) as client:
        number = (await client.get_topic_by_name(topic)).id
    config = lnc_client.StandaloneConfig.new_with_id(
        "reader", topic, number, poll_timeout_s=10.0, **options
    )
    return await lnc_client.StandaloneConsumer.connect(address, config)


async def consume(address: str, topic: str, count: int, **options: Any) -> list[bytes]:
    """Read with its consumer."""
    consumer = await open_consumer(address, topic, **options)
    found: list[bytes] = []
    while len(found) < count and (result := await consumer.poll()):
        found += [record.value for record in result.records]
    await consumer.close()
    return found


def read(address: str, topic: str) -> list[bytes]:
    """Read with our consumer."""
    with Consumer(f"lance://{address}/{topic}", stop_at_end=True) as consumer:
        return [record.value for record in consumer]


def write(address: str, topic: str, values: list[bytes], **options: Any) -> None:
    """Send with our producer."""
    with Producer(f"lance://{address}/{topic}", create_topic=True, **options) as producer:
        producer.send_many(values)


@pytest.fixture
def topic(address: str, name: str) -> str:
    """The name of a topic that exists."""
    with Client(f"lance://{address}") as client:
        client.create_topic(name)
    return name


def test_we_read_what_it_produced(address: str, topic: str) -> None:
    """Every record, in order."""
    asyncio.run(produce(address, topic, VALUES))
    assert read(address, topic) == VALUES


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
def test_it_reads_what_we_produced(address: str, name: str, dialect: str) -> None:
    """Whatever we speak."""
    write(address, name, VALUES, dialect=dialect)
    assert asyncio.run(consume(address, name, len(VALUES))) == VALUES


def test_small_fetches_lose_it_nothing(address: str, name: str) -> None:
    """It drops a record that is cut, and our server cuts none that fits (AMB-19)."""
    write(address, name, VALUES)
    found = asyncio.run(consume(address, name, len(VALUES), max_fetch_bytes=50))
    assert found == VALUES


def test_what_it_compresses_is_read_by_everybody(address: str, topic: str) -> None:
    """It sends bare LZ4 blocks, and the server stores the records that are in them (AMB-20)."""
    values = [b"x" * 1000, b"y" * 1000]
    asyncio.run(produce(address, topic, values, compression=True))
    assert read(address, topic) == values
    assert asyncio.run(consume(address, topic, 2)) == values


def test_topics_are_the_same_for_both(address: str, name: str) -> None:
    """Created, found, listed and deleted by it."""

    async def live() -> None:
        async with peer(address) as client:
            made = await client.create_topic(name)
            assert await client.create_topic(name) == made
            assert (await client.get_topic(made.id)).name == name
            assert made.id in {each.id for each in await client.list_topics()}
            await client.delete_topic(made.id)
            with pytest.raises(lnc_client.LanceError):
                await client.get_topic(made.id)

    asyncio.run(live())
    with Client(f"lance://{address}") as client, pytest.raises(TopicNotFound):
        client.get_topic(name)


def test_retention_it_sets_is_what_we_read(address: str, name: str) -> None:
    """At creation and later."""

    async def live() -> list[tuple[int | None, int | None]]:
        seen = []
        async with peer(address) as client:
            made = await client.create_topic_with_retention(name, 3600, 1_000_000)
            seen.append(limits(address, name))
            await client.set_retention(made.id, 60, 2_000_000)
            seen.append(limits(address, name))
        return seen

    assert asyncio.run(live()) == [(3600, 1_000_000), (60, 2_000_000)]


def limits(address: str, topic: str) -> tuple[int | None, int | None]:
    """What our client is told of a topic's retention."""
    with Client(f"lance://{address}") as client:
        info = client.get_topic(topic)
    return info.max_age_secs, info.max_bytes


def test_its_commits_are_acknowledged(address: str, name: str, tmp_path: Path) -> None:
    """And its consumer goes on from its own file."""

    async def run(count: int) -> list[bytes]:
        consumer = await open_consumer(address, name, offset_dir=tmp_path)
        found: list[bytes] = []
        while len(found) < count:
            found += [record.value for record in (await consumer.poll()).records]
        await consumer.commit()
        await consumer.close()
        return found

    write(address, name, VALUES[:50])
    assert asyncio.run(run(50)) == VALUES[:50]
    write(address, name, VALUES[50:])
    assert asyncio.run(run(150)) == VALUES[50:]


def test_nothing_that_it_was_acknowledged_is_lost_in_an_outage(restarted: RestartedServer) -> None:
    """A kill while it sends. It does not connect again: it is closed, and another one sends on."""
    acked: list[bytes] = []

    async def send_on(producer: Any, topic: int, number: int, many: asyncio.Event) -> None:
        for each in count():
            value = b"%d %d" % (number, each)
            await producer.send(topic, value)
            acked.append(value)
            if len(acked) == 20:
                many.set()

    async def live(topic: int) -> None:
        producer = await lnc_client.Producer.connect(restarted.address)
        many = asyncio.Event()
        running = [asyncio.ensure_future(send_on(producer, topic, n, many)) for n in range(4)]
        await many.wait()
        await asyncio.to_thread(restarted.kill)
        with pytest.raises(lnc_client.LanceError):
            await producer.send(topic, b"never")
        await producer.close()
        await asyncio.gather(*running, return_exceptions=True)
        await produce(restarted.address, "orders", [b"last"])

    with Client(restarted.url) as client:
        topic = client.create_topic("orders")
    asyncio.run(live(topic.id))
    found = read(restarted.address, "orders")
    assert len(set(found)) == len(found)
    assert set(acked) <= set(found)
    assert found[-1] == b"last"


def test_its_consumer_goes_on_after_an_outage(restarted: RestartedServer, tmp_path: Path) -> None:
    """A new one, from its own file; that of before the outage does not connect again."""

    async def run(broken: bool, count: int) -> list[bytes]:
        consumer = await open_consumer(restarted.address, "orders", offset_dir=tmp_path / "at")
        found: list[bytes] = []
        while len(found) < count:
            found += [record.value for record in (await consumer.poll()).records]
        await consumer.commit()
        if broken:
            await asyncio.to_thread(restarted.kill)
            with pytest.raises(lnc_client.LanceError):
                await consumer.poll()
        await consumer.close()
        return found

    write(restarted.address, "orders", VALUES[:50])
    assert asyncio.run(run(True, 50)) == VALUES[:50]
    write(restarted.address, "orders", VALUES[50:])
    assert asyncio.run(run(False, 150)) == VALUES[50:]


class Relay:
    """Stands between a client and the server, and counts the keepalives that pass."""

    def __init__(self, address: str) -> None:
        self._target = address.partition(":")[::2]
        self.from_client = 0
        self.from_server = 0
        self._flows: list[asyncio.Task[None]] = []

    async def start(self) -> tuple[str, int]:
        """Listen; return host and port."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._server = server
        host, port = server.sockets[0].getsockname()
        return str(host), int(port)

    async def stop(self) -> None:
        """End every connection."""
        self._server.close()
        for flow in self._flows:
            flow.cancel()
        await asyncio.gather(*self._flows, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self._target
        answers, questions = await asyncio.open_connection(host, int(port))
        self._flows += [
            asyncio.ensure_future(self._pass(reader, questions, "from_client")),
            asyncio.ensure_future(self._pass(answers, writer, "from_server")),
        ]

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counter: str
    ) -> None:
        splitter = FrameSplitter((DEPLOYED,))
        try:
            while data := await reader.read(65536):
                kinds = [frame.kind for frame in splitter.receive_data(data)]
                seen = getattr(self, counter) + kinds.count(FrameKind.KEEPALIVE)
                setattr(self, counter, seen)
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


def test_its_echoes_make_no_storm(address: str) -> None:
    """It answers every keepalive with another; our server ends that after a burst (AMB-23)."""

    async def live() -> tuple[int, int]:
        relay = Relay(address)
        host, port = await relay.start()
        connection = await lnc_client.connection.connect(host, port, keepalive_interval_s=0.1)
        with suppress(TimeoutError):
            await asyncio.wait_for(connection.recv_frame(), 3.0)
        await connection.close()
        await relay.stop()
        return relay.from_client, relay.from_server

    asked, answered = asyncio.run(live())
    assert 256 <= answered < 270
    assert asked < answered + 40


def test_unsubscribing_fails_though_the_server_answers(address: str, topic: str) -> None:
    """It does not know the Ack that LWP section 5.13 asks for; commits go unread."""

    async def live() -> tuple[Any, Any]:
        async with peer(address) as client:
            number = (await client.get_topic_by_name(topic)).id
            subscribed = await client.subscribe(number, 0, 65536, 7)
            with pytest.raises(lnc_client.LanceError, match="Expected control frame, got flags"):
                await client.unsubscribe(number, 7)
            return subscribed, await client.commit_offset(number, 7, 0)

    assert asyncio.run(live()) == ({}, {})


def test_its_consumer_cannot_look_a_name_up(address: str, topic: str) -> None:
    """A fault of 0.2.9, whatever the server."""
    config = lnc_client.StandaloneConfig.with_topic_name("reader", topic)
    with pytest.raises(TypeError, match="'TopicInfo' object is not subscriptable"):
        asyncio.run(lnc_client.StandaloneConsumer.connect(address, config))
