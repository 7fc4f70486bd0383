"""The three clients against the reference server, in both dialects, over a restart."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lance_sdk.errors import MisalignedOffset, OpaqueRecords, TopicAlreadyExists, TopicNotFound
from lance_sdk.types import OpaqueBytes
from lance_sdk.url import parse_url
from lance_server import EmbeddedServer, running
from lance_server.testing import free_port
from lance_spec.dialect import DEPLOYED
from lance_spec.enums import Flag, RecordType
from lance_spec.frames import encode_header
from lance_spec.limits import HEADER_SIZE, MAX_RECORD_VALUE

pytestmark = pytest.mark.anyio

VALUES = [b"record %d" % number * (1 + number % 7) for number in range(3000)]


@pytest.fixture(params=["specified", "deployed"])
def dialect(request: pytest.FixtureRequest) -> str:
    """Return each dialect in turn."""
    return str(request.param)


@pytest.fixture
def reference(tmp_path: Path, dialect: str) -> Iterator[EmbeddedServer]:
    """Return a running reference server that speaks only this dialect."""
    with running(tmp_path / "data", dialect=dialect) as server:
        yield server


async def test_records_make_the_round_trip(api: Any, reference: EmbeddedServer) -> None:
    """Sent, stored, read back in order, from both ends."""
    url = f"{reference.url}/orders"
    async with api.producer(url, create_topic=True, batch_bytes=5000) as producer:
        await producer.send_many(VALUES[:2000])
        for value in VALUES[2000:2050]:
            await producer.send(value)
        await producer.send_many(VALUES[2050:])
        await producer.flush(timeout=30)
    options = {"stop_at_end": True, "max_fetch_bytes": 3000}
    async with api.consumer(url, **options) as consumer:
        found = [record.value async for batch in consumer.batches() for record in batch]
        assert found == VALUES
        assert consumer.lag == 0
    async with api.consumer(url, start="end", stop_at_end=True) as consumer:
        assert await consumer.poll() is None


async def test_a_server_restart_is_survived(api: Any, tmp_path: Path, dialect: str) -> None:
    """The producer goes on with the next server on the same data, and nothing is missing."""
    with running(tmp_path / "data", dialect=dialect, port=free_port()) as first:
        url, port = f"{first.url}/orders", first.address[1]
        producer = api.producer(url, create_topic=True)
        await producer.open()
        await (await producer.send_many(VALUES[:1000])).result(timeout=30)
    with running(tmp_path / "data", dialect=dialect, port=port):
        await (await producer.send_many(VALUES[1000:2000])).result(timeout=30)
        assert producer.stats().connects >= 2
        await producer.close()
        async with api.consumer(url, stop_at_end=True) as consumer:
            assert [record.value async for record in consumer] == VALUES[:2000]


async def test_offsets_are_places_to_come_back_to(api: Any, reference: EmbeddedServer) -> None:
    """Every record's offset and next_offset can be seeked to."""
    url = f"{reference.url}/orders"
    async with api.producer(url, create_topic=True) as producer:
        await producer.send_many(VALUES[:50])
    async with api.consumer(url, stop_at_end=True) as consumer:
        records = [record async for record in consumer]
        for place in (0, 7, 49):
            await consumer.seek(records[place].offset)
            assert [record async for record in consumer] == records[place:]
            await consumer.seek(records[place].next_offset)
            assert [record async for record in consumer] == records[place + 1 :]


async def test_a_misaligned_start_is_noticed(api: Any, tmp_path: Path) -> None:
    """A specified server counts 0 records there (AMB-19)."""
    with running(tmp_path / "data") as server:
        url = f"{server.url}/orders"
        async with api.producer(url, create_topic=True) as producer:
            await producer.send_many(VALUES[:50])
        async with api.consumer(url, start=3, stop_at_end=True) as consumer:
            with pytest.raises(MisalignedOffset):
                await consumer.poll()


async def test_the_largest_record_makes_the_round_trip(api: Any, tmp_path: Path) -> None:
    """16 MiB, with a small fetch size (AMB-32)."""
    value = bytes(range(256)) * (MAX_RECORD_VALUE // 256)
    with running(tmp_path / "data") as server:
        url = f"{server.url}/orders"
        async with api.producer(url, create_topic=True) as producer:
            await (await producer.send(value)).result(timeout=60)
            await producer.send(b"after")
        async with api.consumer(url, stop_at_end=True, max_fetch_bytes=1000) as consumer:
            assert [record.value async for record in consumer] == [value, b"after"]


async def test_topics_are_administered(api: Any, reference: EmbeddedServer) -> None:
    """Created, found, refused, deleted."""
    async with api.client(reference.url) as client:
        created = await client.create_topic("events")
        assert (await client.get_topic("events")).id == created.id
        with pytest.raises(TopicAlreadyExists):
            await client.create_topic("events")
        assert (await client.create_topic("events", exist_ok=True)).id == created.id
        await client.set_retention("events", max_age_secs=3600)
        assert (await client.cluster_status()).node_count == 1
        await client.delete_topic("events")
        with pytest.raises(TopicNotFound):
            await client.get_topic("events")
        assert await client.ping() > 0


async def test_record_types_make_the_round_trip(api: Any, tmp_path: Path) -> None:
    """Every type of LWP section 8.2 and an application's own."""
    types = [*RecordType, 0x80, 0xFE]
    with running(tmp_path / "data") as server:
        url = f"{server.url}/orders"
        async with api.producer(url, create_topic=True) as producer:
            for number in types:
                value = b"" if number == RecordType.NULL else b"\0" * 10
                await producer.send_raw(value, number)
        async with api.consumer(url, stop_at_end=True) as consumer:
            assert [record.type async for record in consumer] == types


async def test_the_default_topic_is_there(api: Any, tmp_path: Path) -> None:
    """Number 0 takes and gives records without being created (AMB-34)."""
    with running(tmp_path / "data") as server:
        url = f"{server.url}?topic_id=0"
        assert parse_url(url).topic_id == 0
        async with api.producer(url) as producer:
            await producer.send(b"x")
        async with api.consumer(url, stop_at_end=True) as consumer:
            assert [record.topic async for record in consumer] == ["#0"]


def store_opaque(server: EmbeddedServer, topic_id: int, *payloads: bytes) -> None:
    """Store bytes that are not records, as a published client may (AMB-27)."""
    with socket.create_connection(server.address, timeout=10) as peer:
        for batch_id, payload in enumerate(payloads, start=1):
            header = encode_header(
                DEPLOYED,
                Flag.BATCH_MODE,
                batch_id=batch_id,
                timestamp_ns=1,
                record_count=1,
                topic_id=topic_id,
                payload=payload,
            )
            peer.sendall(header + payload)
            assert peer.recv(HEADER_SIZE, socket.MSG_WAITALL)


@pytest.fixture
async def mixed(api: Any, tmp_path: Path) -> Any:
    """Return a server whose topic holds a record, bytes that are none, and a record."""
    with running(tmp_path / "data") as server:
        url = f"{server.url}/orders"
        for value in (b"before", b"after"):
            async with api.producer(url, create_topic=True) as producer:
                await (await producer.send(value)).result(timeout=30)
            if value == b"before":
                async with api.client(server.url) as client:
                    topic = await client.get_topic("orders")
                store_opaque(server, topic.id, b"\xffno record", b"\xfenor this")
        yield server


async def test_opaque_bytes_are_handed_out(api: Any, mixed: EmbeddedServer) -> None:
    """Records, then the bytes as they were stored, then records again (AMB-27)."""
    async with api.consumer(f"{mixed.url}/orders", stop_at_end=True, on_opaque="bytes") as found:
        records = [record async for record in found]
    assert [(each.offset, each.value, each.is_opaque) for each in records] == [
        (0, b"before", False),
        (11, b"\xffno record\xfenor this", True),
        (30, b"after", False),
    ]
    assert isinstance(records[1], OpaqueBytes)
    assert records[1].next_offset == 30


async def test_opaque_bytes_come_in_bounded_pieces(api: Any, mixed: EmbeddedServer) -> None:
    """No piece is larger than what one Fetch may bring."""
    options = {"stop_at_end": True, "on_opaque": "bytes", "max_fetch_bytes": 11}
    async with api.consumer(f"{mixed.url}/orders", **options) as consumer:
        batches = [batch async for batch in consumer.batches()]
    pieces = [batch.data for batch in batches if batch.opaque]
    assert b"".join(pieces) == b"\xffno record\xfenor this"
    assert max(map(len, pieces)) <= 11


async def test_a_commit_may_stand_between_opaque_bytes(
    api: Any, mixed: EmbeddedServer, tmp_path: Path
) -> None:
    """The next consumer goes on there; there are no records to compare (AMB-30)."""
    options = {
        "stop_at_end": True,
        "on_opaque": "bytes",
        "max_fetch_bytes": 11,
        "consumer": "c",
        "offsets": f"file:{tmp_path / 'offsets'}",
    }
    url, found = f"{mixed.url}/orders", []
    for _ in range(5):
        async with api.consumer(url, **options) as consumer:
            if (batch := await consumer.poll(10)) is not None:
                found.append(batch.data)
                await consumer.commit()
    assert b"".join(found[1:-1]) == b"\xffno record\xfenor this"
    assert [found[0][5:], found[-1][5:]] == [b"before", b"after"]


async def test_a_server_of_one_dialect_keeps_opaque_bytes(api: Any, tmp_path: Path) -> None:
    """They are handed out in dialect ``deployed`` only: the error says what to do."""
    with running(tmp_path / "data") as server:
        async with api.client(server.url) as client:
            topic = await client.create_topic("orders")
        store_opaque(server, topic.id, b"\xffno record")
    with running(tmp_path / "data", dialect="specified") as server:
        options = {"on_opaque": "bytes", "backoff_base": 0.01, "backoff_cap": 0.02}
        async with api.consumer(f"{server.url}/orders", **options) as consumer:
            with pytest.raises(OpaqueRecords, match="--dialect auto") as caught:
                await consumer.poll(20)
            await consumer.seek(caught.value.next_offset)
            assert await consumer.poll(0.1) is None


async def test_opaque_bytes_are_met_at_the_tail_as_well(api: Any, tmp_path: Path) -> None:
    """A server that pushes ends the subscription there; afterwards it pushes again (AMB-21)."""
    with running(tmp_path / "data") as server:
        url = f"{server.url}/orders"
        async with (
            api.producer(url, create_topic=True) as producer,
            api.consumer(url, on_opaque="bytes", mode="push") as consumer,
        ):
            await (await producer.send(b"before")).result(timeout=30)
            assert (await consumer.poll(30)).data[5:] == b"before"
            async with api.client(server.url) as client:
                store_opaque(server, (await client.get_topic("orders")).id, b"\xffno record")
            batch = await consumer.poll(30)
            assert (batch.opaque, batch.offset, batch.data) == (True, 11, b"\xffno record")
            await (await producer.send(b"after")).result(timeout=30)
            assert (await consumer.poll(30)).data[5:] == b"after"
