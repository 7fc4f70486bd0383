"""What cannot be handled is tried again, then stored in a topic of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import AsyncDeadLetters, AsyncProducer, DeadLetters, Producer
from lance_sdk.errors import ConfigError, DeadlineExceeded, UsageError
from lance_sdk.offsets import MemoryStore
from lance_sdk.testing import FakeServer
from lance_sdk.types import OpaqueBytes, Record
from lance_server import EmbeddedServer, running
from lance_spec.enums import RecordType

from .conftest import Threaded

pytestmark = pytest.mark.anyio

VALUES = [b"order %d" % number for number in range(5)]


class Shop:
    """Handles orders, as long as they are lucky.

    Attributes:
        attempts: the values that it was called with.
        luck: how often an unlucky order fails.
    """

    def __init__(self, luck: int = 1000) -> None:
        self.attempts: list[bytes] = []
        self.luck = luck

    def ship(self, record: Record) -> None:
        """Handle a record."""
        self.attempts.append(record.value)
        if record.value.endswith(b"3") and self.attempts.count(record.value) <= self.luck:
            raise ValueError("an unlucky order")

    async def ship_later(self, record: Record) -> None:
        """Handle a record in a task."""
        self.ship(record)


async def handle(producer: Any, shop: Shop, records: list[Record], **options: Any) -> list[bool]:
    """Handle records on whichever face the producer has; return which were handled."""
    if isinstance(producer, Threaded):
        letters = DeadLetters(producer.target, **options)
        return [letters.handle(record, shop.ship) for record in records]
    later = AsyncDeadLetters(producer, **options)
    return [await later.handle(record, shop.ship_later) for record in records]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """Return a running reference server."""
    with running(tmp_path / "data") as server:
        yield server


async def orders(face: Any, server: EmbeddedServer) -> list[Record]:
    """Store the orders, and read them."""
    url = f"{server.url}/orders"
    async with face.producer(url, create_topic=True) as producer:
        await producer.send_many(VALUES)
    async with face.consumer(url, stop_at_end=True) as consumer:
        return [record async for record in consumer]


async def stored(face: Any, server: EmbeddedServer) -> list[tuple[int, bytes]]:
    """Return the dead letters."""
    async with face.consumer(f"{server.url}/failed", stop_at_end=True) as consumer:
        return [(record.type, record.value) async for record in consumer]


async def test_what_fails_again_and_again_is_stored(
    face: Any, server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """As often as was asked for, then once among the dead letters; the log says why."""
    shop, told = Shop(), list[tuple[bytes, str]]()
    records = await orders(face, server)
    async with face.producer(f"{server.url}/failed", create_topic=True) as failed:
        done = await handle(
            failed,
            shop,
            records,
            max_attempts=3,
            told=lambda record, error: told.append((record.value, str(error))),
        )
        assert await stored(face, server) == [(RecordType.RAW_DATA, VALUES[3])]  # before it ends
    assert done == [True, True, True, False, True]
    assert shop.attempts.count(VALUES[3]) == 3
    assert told == [(VALUES[3], "an unlucky order")]
    assert "could not be handled 3 times: ValueError('an unlucky order')" in caplog.text


async def test_what_works_the_second_time_is_no_dead_letter(
    face: Any, server: EmbeddedServer
) -> None:
    """Attempts follow each other at once."""
    shop, records = Shop(luck=1), await orders(face, server)
    async with face.producer(f"{server.url}/failed", create_topic=True) as failed:
        assert all(await handle(failed, shop, records))
    assert await stored(face, server) == []


async def test_other_errors_pass_through(face: Any, server: EmbeddedServer) -> None:
    """Only what `catch` names is a matter of the record; the record is not done then."""
    shop, records = Shop(), await orders(face, server)
    async with face.producer(f"{server.url}/failed", create_topic=True) as failed:
        with pytest.raises(ValueError, match="unlucky"):
            await handle(failed, shop, records, catch=KeyError)
    assert shop.attempts.count(VALUES[3]) == 1


async def test_a_place_is_committed_only_when_the_letter_is_safe(
    face: Any, server: EmbeddedServer
) -> None:
    """Without an acknowledgement the next run meets the record again."""
    await orders(face, server)
    store = MemoryStore()

    async def work(failed: Any) -> None:
        options = {"consumer": "c", "offsets": store, "stop_at_end": True}
        async with face.consumer(f"{server.url}/orders", **options) as consumer:
            async for record in consumer:
                await handle(failed, Shop(), [record], max_attempts=1)

    failed = face.producer(f"{server.url}/failed", create_topic=True)
    with pytest.raises(UsageError):
        await work(failed)  # it is not open
    assert [commit.offset for commit in store.commits("c")] == [3 * 12]
    async with failed:
        await work(failed)
    assert [commit.offset for commit in store.commits("c")] == [5 * 12]
    assert await stored(face, server) == [(RecordType.RAW_DATA, VALUES[3])]


async def test_bytes_that_are_no_records_are_stored_as_raw_data(
    face: Any, server: EmbeddedServer
) -> None:
    """They have no type of their own (AMB-27)."""
    async with face.producer(f"{server.url}/failed", create_topic=True) as failed:
        opaque = OpaqueBytes(0, -1, b"order 3", "orders")
        assert await handle(failed, Shop(), [opaque]) == [False]
    assert await stored(face, server) == [(RecordType.RAW_DATA, b"order 3")]


async def test_a_server_that_does_not_answer_is_not_waited_for_for_ever(
    face: Any,
) -> None:
    """The record is not done, and may come again."""
    record = Record(0, 1, b"order 3", "orders")
    with FakeServer() as quiet:
        quiet.on_ingest = lambda _peer, _frame: True
        async with face.producer(quiet.url()) as failed:
            with pytest.raises(DeadlineExceeded):
                await handle(failed, Shop(), [record], timeout=0.05)
            assert (await failed.close(timeout=0.05)).lost == 1


@pytest.mark.parametrize(
    ("options", "message"), [({"max_attempts": 0}, "1 or more"), ({"timeout": -1}, "timeout")]
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    """The setting is named."""
    with pytest.raises(ConfigError, match=message):
        DeadLetters(Producer("lance://h/t"), **options)
    with pytest.raises(ConfigError, match=message):
        AsyncDeadLetters(AsyncProducer("lance://h/t"), **options)
