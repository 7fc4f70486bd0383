"""Hooks are told of everything, after the fact, and harm nobody."""

import asyncio
import logging
from typing import Any

import pytest

from lance_sdk import Hooks
from lance_sdk.errors import ConfigError, DeliveryFailed, InvalidPayload
from lance_sdk.offsets import MemoryStore
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.enums import ErrorCode
from lance_spec.frames import Frame
from lance_spec.records import encode_records

pytestmark = pytest.mark.anyio


class Diary(Hooks):
    """Writes every event down."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda event: self.events.append((name, event))
        return super().__getattribute__(name)

    def of(self, name: str) -> list[Any]:
        """Return the events of one kind."""
        return [event for kind, event in self.events if kind == name]


@pytest.fixture
def diary() -> Diary:
    """Return hooks that remember."""
    return Diary()


async def test_a_producers_day(api: Any, server: FakeServer, diary: Diary) -> None:
    """Connected, sent, acknowledged, disconnected; sizes and times."""
    url = server.url()
    async with api.producer(url, hooks=diary, compression="lz4", linger=60) as producer:
        await producer.send_many([b"x" * 1000] * 3)
    assert [name for name, _ in diary.events][:3] == [
        "on_connect",
        "on_batch_sent",
        "on_batch_acked",
    ]
    (connected,), (sent,), (acked,) = map(
        diary.of, ("on_connect", "on_batch_sent", "on_batch_acked")
    )
    assert connected.source.endswith(f"lance://127.0.0.1:{server.port}/orders")
    assert (connected.dialect, connected.failures, connected.again) == ("specified", 0, False)
    assert (sent.topic, sent.records, sent.size, sent.attempt) == ("orders", 3, 3015, 1)
    assert sent.wire_size == len(server.ingested[0].payload) < 100
    assert acked.batch_id == sent.batch_id == server.ingested[0].batch_id
    assert 0 <= acked.seconds <= acked.total_seconds


async def test_a_refused_batch_is_told(api: Any, server: FakeServer, diary: Diary) -> None:
    """With the error that its handle has."""

    def refuse(peer: FakePeer, frame: Frame) -> bool:
        peer.error(ErrorCode.INVALID_PAYLOAD, "no", batch_id=frame.batch_id)
        return True

    server.on_ingest = refuse
    async with api.producer(server.url(), hooks=[diary]) as producer:
        with pytest.raises(DeliveryFailed):
            await (await producer.send(b"x")).result(timeout=30)
    (failed,) = diary.of("on_batch_failed")
    assert isinstance(failed.error.cause, InvalidPayload)
    assert (failed.records, failed.attempts) == (1, 1)


async def test_backpressure_is_told(api: Any, server: FakeServer, diary: Diary) -> None:
    """With the window that is left (LWP section 4.4)."""

    def slow_down(peer: FakePeer, _frame: Frame) -> bool:
        peer.backpressure()
        return False

    server.on_ingest = slow_down
    async with api.producer(server.url(), hooks=diary) as producer:
        await (await producer.send(b"x")).result(timeout=30)
    assert [event.window for event in diary.of("on_backpressure")] == [1]


async def test_an_outage_is_told(api: Any, server: FakeServer, diary: Diary) -> None:
    """Its beginning and its end."""
    server.on_ingest = lambda peer, _frame: peer.number == 1 and (peer.close() or True)
    async with api.producer(server.url(), hooks=diary) as producer:
        await (await producer.send(b"x")).result(timeout=30)
    assert [event.again for event in diary.of("on_connect")] == [False, True]
    assert diary.of("on_disconnect")[0].retry_in is not None
    assert [event.attempt for event in diary.of("on_batch_sent")] == [1, 2]


async def test_a_consumers_day(api: Any, server: FakeServer, diary: Diary, until: Any) -> None:
    """Fetched, handed out, pushed, committed."""
    server.topics.append(1, encode_records([b"a", b"b"]))
    options = {"hooks": diary, "offsets": MemoryStore(), "consumer": "billing"}
    async with api.consumer(server.url(), poll_interval=0.001, **options) as consumer:
        assert len(await consumer.poll()) == 2
        await until(server, lambda: "SUBSCRIBE" in server.frames)
        server.topics.append(1, encode_records([b"c"]))
        assert len(await consumer.poll()) == 1
    assert [event.size for event in diary.of("on_fetch") if event.size] == [12]
    assert [(event.offset, event.size) for event in diary.of("on_push")] == [(12, 6)]
    handed_out = [(e.offset, e.next_offset, e.records, e.lag) for e in diary.of("on_records")]
    assert handed_out == [(0, 12, 2, 0), (12, 18, 1, 0)]
    (commit,) = diary.of("on_commit")
    assert (commit.offset, commit.consumer, commit.error) == (18, "billing", None)


async def test_a_clients_calls_are_told(api: Any, server: FakeServer, diary: Diary) -> None:
    """Each with its command and what it took."""
    async with api.client(f"lance://127.0.0.1:{server.port}", hooks=diary) as client:
        await client.list_topics()
        await client.ping()
    assert [event.command for event in diary.of("on_call")] == ["LIST_TOPICS", "Keepalive"]
    assert all(event.seconds >= 0 and event.error is None for event in diary.of("on_call"))


class Broken(Hooks):
    """Raises at every batch."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def on_batch_acked(self, event: object) -> None:
        """Raise."""
        del event
        raise self._error


RAISED = [ValueError("in a hook"), asyncio.CancelledError(), SystemExit(1)]


@pytest.mark.parametrize("error", RAISED, ids=lambda each: type(each).__name__)
async def test_a_hook_that_raises_is_logged_once(
    api: Any,
    server: FakeServer,
    diary: Diary,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
) -> None:
    """And neither stops the stream nor the other hooks, whatever it raises."""
    caplog.set_level(logging.WARNING, "lance_sdk")
    async with api.producer(server.url(), hooks=[Broken(error), diary], linger=0) as producer:
        for _ in range(3):
            await (await producer.send(b"x")).result(timeout=30)
    assert len(diary.of("on_batch_acked")) == 3
    (record,) = caplog.records
    assert record.name == "lance_sdk.hooks"
    assert "Broken.on_batch_acked raised" in record.getMessage()


class Nosy(Hooks):
    """Looks at the producer from inside a hook."""

    producer: Any = None
    seen: Any = None

    def on_batch_acked(self, event: object) -> None:
        """Ask for what needs the lock."""
        del event
        self.seen = self.producer.stats()


async def test_hooks_run_under_no_lock(api: Any, server: FakeServer) -> None:
    """They may use the object that calls them, as long as they do not wait."""
    nosy = Nosy()
    async with api.producer(server.url(), hooks=nosy) as producer:
        nosy.producer = producer
        await (await producer.send(b"x")).result(timeout=30)
    assert nosy.seen.acked_records == 1


async def test_what_is_no_hook_is_refused(api: Any, server: FakeServer) -> None:
    """Before anything is opened."""
    with pytest.raises(ConfigError, match="derived from Hooks"):
        api.producer(server.url(), hooks=print)
