"""LZ4 in Ingest frames (AMB-20)."""

import os
from typing import Any

import lz4.frame
import pytest

from lance_sdk.errors import Unsupported
from lance_sdk.testing import FakePeer, FakeServer
from lance_server import running
from lance_spec.enums import Flag
from lance_spec.frames import Frame
from lance_spec.records import encode_records

pytestmark = pytest.mark.anyio

VALUES = [b"the same again and again"] * 100


async def send(api: Any, url: str, values: list[bytes], **options: Any) -> None:
    """Send everything as one batch."""
    async with api.producer(url, linger=60.0, **options) as producer:
        await producer.send_many(values)


@pytest.mark.parametrize("compression", ["auto", "lz4"])
async def test_batches_are_compressed(api: Any, server: FakeServer, compression: str) -> None:
    """As exactly one LZ4 frame; the records that are stored are the ones that were sent."""
    flags: list[int] = []

    def note(_peer: FakePeer, frame: Frame) -> bool:
        flags.append(frame.flags)
        return False

    server.on_ingest = note
    await send(api, server.url(), VALUES, compression=compression)
    assert flags == [Flag.BATCH_MODE | Flag.COMPRESSED]
    (batch,) = server.ingested
    assert len(batch.payload) < len(encode_records(VALUES)) / 5
    assert lz4.frame.decompress(batch.payload) == encode_records(VALUES)
    assert server.records() == VALUES


async def test_auto_leaves_alone_what_does_not_get_smaller(api: Any, server: FakeServer) -> None:
    """lz4 does not."""
    noise = [os.urandom(1000)]
    await send(api, server.url(), noise, compression="auto")
    await send(api, server.url(), noise, compression="lz4")
    plain, packed = server.ingested
    assert plain.payload == encode_records(noise)
    assert packed.payload != plain.payload
    assert packed.records == plain.records


async def test_nothing_is_compressed_unasked(api: Any, server: FakeServer) -> None:
    """The default costs no time."""
    await send(api, server.url(), VALUES)
    assert server.ingested[0].payload == encode_records(VALUES)


async def test_a_deployed_server_gets_nothing_compressed(api: Any, deployed: FakeServer) -> None:
    """It would store it as it is: auto does without, lz4 is refused (AMB-20)."""
    await send(api, deployed.url(), VALUES, compression="auto")
    assert deployed.ingested[0].payload == encode_records(VALUES)
    with pytest.raises(Unsupported, match="AMB-20"):
        await send(api, deployed.url(), VALUES, compression="lz4")


async def test_a_retry_repeats_every_byte(api: Any, server: FakeServer) -> None:
    """Also of the compressed form, so that the server knows it again (AMB-25)."""
    server.on_ingest = lambda peer, _frame: peer.number == 1 and (peer.close() or True)
    await send(api, server.url(), VALUES, compression="auto")
    first, second = server.ingested
    assert (first.batch_id, first.timestamp_ns, first.payload) == (
        second.batch_id,
        second.timestamp_ns,
        second.payload,
    )


async def test_the_reference_server_stores_the_records(api: Any) -> None:
    """Decompressed, as every consumer expects them."""
    with running() as server:
        url = f"{server.url}/orders"
        await send(api, url, VALUES, compression="lz4", create_topic=True)
        async with api.consumer(url, stop_at_end=True) as consumer:
            assert [record.value async for record in consumer] == VALUES
