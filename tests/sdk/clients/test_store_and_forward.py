"""A producer with a real journal and a real server that comes and goes."""

from pathlib import Path
from typing import Any

import pytest

from lance_server import running
from lance_server.testing import free_port

pytestmark = pytest.mark.anyio

DIRECT = [b"direct %03d" % number for number in range(100)]
SPILLED = [b"spilled %04d" % number + bytes(100) for number in range(2000)]
AFTER = [b"after %03d" % number for number in range(100)]


async def values(api: Any, url: str) -> list[bytes]:
    """Return everything in the topic."""
    async with api.consumer(url, stop_at_end=True) as consumer:
        return [record.value async for batch in consumer.batches() for record in batch]


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
async def test_an_outage_longer_than_the_memory_loses_and_doubles_nothing(
    api: Any, tmp_path: Path, dialect: str
) -> None:
    """Before, during and after: every record once and in order (SF-33, AMB-25)."""
    options = {"journal": tmp_path / "journal", "on_full": "journal", "buffer_bytes": 70_000}
    with running(tmp_path / "data", dialect=dialect, port=free_port()) as first:
        url, port = f"{first.url}/orders", first.address[1]
        producer = api.producer(url, create_topic=True, **options)
        await producer.open()
        await (await producer.send_many(DIRECT)).result(timeout=30)
    handles = await producer.send_many(SPILLED)
    with running(tmp_path / "data", dialect=dialect, port=port):
        assert await handles.result(timeout=60) == len(SPILLED)
        await (await producer.send_many(AFTER)).result(timeout=60)
        report = await producer.close()
        assert (report.lost, report.journaled) == (0, 0)
        assert await values(api, url) == DIRECT + SPILLED + AFTER


async def test_the_next_process_delivers_what_this_one_kept(api: Any, tmp_path: Path) -> None:
    """Closing without a server keeps the records; opening with one sends them first."""
    options = {"journal": tmp_path / "journal", "create_topic": True}
    with running(tmp_path / "data", port=free_port()) as server:
        url, port = f"{server.url}/orders", server.address[1]
    producer = api.producer(url, **options)
    await producer.open()
    await producer.send_many(DIRECT)
    report = await producer.close(timeout=0.2)
    assert (report.lost, report.journaled) == (0, len(DIRECT))
    with running(tmp_path / "data", port=port):
        async with api.producer(url, **options) as producer:
            await producer.send_many(AFTER)
            await producer.flush(timeout=60)
        assert await values(api, url) == DIRECT + AFTER
