"""What cannot be handled is tried again, then stored in a topic of its own."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import AsyncDeadLetters, AsyncProducer, DeadLetters, Producer, TopicsProducer
from lance_sdk.dead_letters import DeadLetter, Rules
from lance_sdk.errors import ConfigError, DeadlineExceeded, UndecodableRecord, UsageError
from lance_sdk.offsets import MemoryStore
from lance_sdk.testing import FakeServer
from lance_sdk.types import OpaqueBytes, Record
from lance_sdk.values.keyed import join
from lance_server import EmbeddedServer, running
from lance_spec.enums import RecordType
from lance_spec.limits import MAX_RECORD_VALUE

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
    """Handle records on whichever client the producer has; return which were handled."""
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


async def orders(api: Any, server: EmbeddedServer) -> list[Record]:
    """Store the orders, and read them."""
    url = f"{server.url}/orders"
    async with api.producer(url, create_topic=True) as producer:
        await producer.send_many(VALUES)
    async with api.consumer(url, stop_at_end=True) as consumer:
        return [record async for record in consumer]


async def letters_of(api: Any, server: EmbeddedServer) -> list[DeadLetter]:
    """Return the dead letters."""
    async with api.consumer(f"{server.url}/failed", stop_at_end=True) as consumer:
        return [DeadLetter.of(record) async for record in consumer]


async def stored(api: Any, server: EmbeddedServer) -> list[tuple[int, bytes]]:
    """Return the types and values of the records in the dead letters."""
    letters = await letters_of(api, server)
    return [(letter.record.type, letter.record.value) for letter in letters]


async def test_what_fails_again_and_again_is_stored(
    api: Any, server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """As often as was asked for, then once among the dead letters; the log says why."""
    shop, told = Shop(), list[tuple[bytes, str]]()
    records = await orders(api, server)
    async with api.producer(f"{server.url}/failed", create_topic=True) as failed:
        done = await handle(
            failed,
            shop,
            records,
            max_attempts=3,
            told=lambda record, error: told.append((record.value, str(error))),
        )
        assert await stored(api, server) == [(RecordType.RAW_DATA, VALUES[3])]  # before it ends
    assert done == [True, True, True, False, True]
    assert shop.attempts.count(VALUES[3]) == 3
    assert told == [(VALUES[3], "an unlucky order")]
    assert "could not be handled 3 times: ValueError('an unlucky order')" in caplog.text


async def test_what_works_the_second_time_is_no_dead_letter(
    api: Any, server: EmbeddedServer
) -> None:
    """Attempts follow each other at once."""
    shop, records = Shop(luck=1), await orders(api, server)
    async with api.producer(f"{server.url}/failed", create_topic=True) as failed:
        assert all(await handle(failed, shop, records))
    assert await stored(api, server) == []


async def test_other_errors_pass_through(api: Any, server: EmbeddedServer) -> None:
    """Only what `catch` names is a matter of the record; the record is not done then."""
    shop, records = Shop(), await orders(api, server)
    async with api.producer(f"{server.url}/failed", create_topic=True) as failed:
        with pytest.raises(ValueError, match="unlucky"):
            await handle(failed, shop, records, catch=KeyError)
    assert shop.attempts.count(VALUES[3]) == 1


async def test_a_place_is_committed_only_when_the_letter_is_safe(
    api: Any, server: EmbeddedServer
) -> None:
    """Without an acknowledgement the next run meets the record again."""
    await orders(api, server)
    store = MemoryStore()

    async def work(failed: Any) -> None:
        options = {"consumer": "c", "offsets": store, "stop_at_end": True}
        async with api.consumer(f"{server.url}/orders", **options) as consumer:
            async for record in consumer:
                await handle(failed, Shop(), [record], max_attempts=1)

    failed = api.producer(f"{server.url}/failed", create_topic=True)
    with pytest.raises(UsageError):
        await work(failed)  # it is not open
    assert [commit.offset for commit in store.commits("c")] == [3 * 12]
    async with failed:
        await work(failed)
    assert [commit.offset for commit in store.commits("c")] == [5 * 12]
    assert await stored(api, server) == [(RecordType.RAW_DATA, VALUES[3])]


async def test_bytes_that_are_no_records_are_stored_as_raw_data(
    api: Any, server: EmbeddedServer
) -> None:
    """They have no type of their own (AMB-27)."""
    async with api.producer(f"{server.url}/failed", create_topic=True) as failed:
        opaque = OpaqueBytes(0, -1, b"order 3", "orders")
        assert await handle(failed, Shop(), [opaque]) == [False]
    (letter,) = await letters_of(api, server)
    assert letter.record == opaque
    assert letter.record.is_opaque


async def test_a_dead_letter_says_where_it_came_from_and_why(
    api: Any, server: EmbeddedServer
) -> None:
    """Topic, offset, type, key, error and time; the record can be sent again as it was."""
    async with api.producer(f"{server.url}/orders", create_topic=True) as producer:
        await producer.send(b"order 0")
        await producer.send(b"order 3", key="k", timestamp=7)
    async with api.consumer(f"{server.url}/orders", stop_at_end=True) as consumer:
        records = [record async for record in consumer]
    before = time.time_ns()
    async with api.producer(f"{server.url}/failed", create_topic=True) as failed:
        await handle(failed, Shop(), records, max_attempts=2)
    (letter,) = await letters_of(api, server)
    assert letter.record == records[1]
    assert (letter.record.key, letter.record.value) == (b"k", b"order 3")
    assert (letter.error, letter.error_type) == ("an unlucky order", "ValueError")
    assert letter.attempts == 2
    assert before <= letter.time_ns <= time.time_ns()
    assert letter.time.year >= 2025


async def test_a_tombstone_comes_back_from_the_dead_letters(
    api: Any, server: EmbeddedServer
) -> None:
    """Its value is None before and after."""
    tombstone = Record(5, RecordType.NULL, b"", "orders")

    def fail(_record: Record) -> None:
        raise ValueError

    async with api.producer(f"{server.url}/failed", create_topic=True) as failed:
        if isinstance(failed, Threaded):
            DeadLetters(failed.target).handle(tombstone, fail)
        else:
            shop = Shop()
            shop.ship = fail  # type: ignore[method-assign]
            await AsyncDeadLetters(failed).handle(tombstone, shop.ship_later)
    (letter,) = await letters_of(api, server)
    assert letter.record == tombstone


def test_a_record_without_room_for_a_key_is_kept_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing is lost; the log says that the letter does not know where it came from."""
    record = Record(5, RecordType.JSON, b"x" * MAX_RECORD_VALUE, "orders")
    letter = Rules(1, 1.0, Exception, None).letter(record, ValueError("no"))
    assert letter == (record.raw, RecordType.JSON)
    assert "offset 5 of orders has no room for a key" in caplog.text


@pytest.mark.parametrize("key", [None, b"customer", b"[]", b'{"topic": 1}'])
def test_other_records_are_not_dead_letters(key: bytes | None) -> None:
    """The message says where the record stands."""
    raw, kind = (b"x", RecordType.RAW_DATA) if key is None else join(b"x", key, None)
    with pytest.raises(UndecodableRecord, match="offset 9 of failed is not a dead letter"):
        DeadLetter.of(Record(9, kind, raw, "failed"))


async def test_a_server_that_does_not_answer_is_not_waited_for_for_ever(
    api: Any,
) -> None:
    """The record is not done, and may come again."""
    record = Record(0, 1, b"order 3", "orders")
    with FakeServer() as quiet:
        quiet.on_ingest = lambda _peer, _frame: True
        async with api.producer(quiet.url()) as failed:
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


@pytest.mark.parametrize("kind", [DeadLetters, AsyncDeadLetters])
def test_producers_that_cannot_copy_a_record_are_refused(kind: Any) -> None:
    """At once, not at the first record that cannot be handled."""
    with pytest.raises(ConfigError, match="cannot use TopicsProducer"):
        kind(TopicsProducer("lance://h"))
