"""Seeking to a time (AMB-37)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from lance_sdk.errors import ConfigError, Unsupported
from lance_sdk.testing import FakeServer
from lance_server import running
from lance_spec.records import encode_records

pytestmark = pytest.mark.anyio

SECOND = 1_000_000_000


def at(second: int) -> datetime:
    """Return a time so many seconds after the epoch."""
    return datetime.fromtimestamp(second, UTC)


@pytest.fixture
def timed(server: FakeServer) -> Iterator[FakeServer]:
    """Return a server whose records came at 100, 200 and 300 seconds."""
    for second in (100, 200, 300):
        server.topics.clock_ns = lambda now=second: now * SECOND
        server.topics.append(1, encode_records([b"%d" % second]))
    return server


async def values(consumer: Any) -> list[bytes]:
    """Return everything up to the end."""
    return [record.value async for record in consumer]


@pytest.mark.parametrize(
    ("second", "found"), [(0, 3), (100, 3), (101, 2), (200, 2), (300, 1), (301, 0)]
)
async def test_a_seek_to_a_time_finds_what_was_stored_then_or_later(
    api: Any, timed: FakeServer, second: int, found: int
) -> None:
    """By the server's clock."""
    async with api.consumer(timed.url(), start=at(second), stop_at_end=True) as consumer:
        assert await values(consumer) == [b"100", b"200", b"300"][3 - found :]


async def test_an_open_consumer_travels(api: Any, timed: FakeServer) -> None:
    """Forth and back."""
    async with api.consumer(timed.url(), stop_at_end=True) as consumer:
        for second, found in ((300, [b"300"]), (150, [b"200", b"300"])):
            await consumer.seek(at(second))
            assert await values(consumer) == found


async def test_the_url_knows_times(api: Any, timed: FakeServer) -> None:
    """In the form of ISO 8601."""
    url = timed.url(start="1970-01-01T00:03:20Z")
    async with api.consumer(url, stop_at_end=True) as consumer:
        assert await values(consumer) == [b"200", b"300"]
    with pytest.raises(ConfigError, match="expected a time such as"):
        api.consumer(timed.url(start="1970-13-01"))


async def test_a_time_without_a_zone_is_refused(api: Any, timed: FakeServer) -> None:
    """It could mean two things."""
    with pytest.raises(ConfigError, match="no time zone"):
        api.consumer(timed.url(), start=at(100).replace(tzinfo=None))


async def test_a_server_without_times_says_so(api: Any, deployed: FakeServer) -> None:
    """And what works instead."""
    async with api.consumer(deployed.url(), start=at(100)) as consumer:
        with pytest.raises(Unsupported, match="seek to an offset"):
            await consumer.poll(timeout=10)


async def test_the_reference_server_knows_times(api: Any) -> None:
    """Before everything, and after everything."""
    with running() as server:
        url = f"{server.url}/orders"
        async with api.producer(url, create_topic=True) as producer:
            await producer.send(b"x")
        async with api.consumer(url, start=at(0), stop_at_end=True) as consumer:
            assert await values(consumer) == [b"x"]
        async with api.consumer(url, start=datetime.min.replace(tzinfo=UTC)) as consumer:
            assert (await consumer.poll(timeout=10)).count == 1
        for future in (datetime(2200, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
            async with api.consumer(url, start=future, stop_at_end=True) as consumer:
                assert await values(consumer) == []
