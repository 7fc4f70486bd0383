"""`asyncio.Task.cancel`, by which `asyncio.timeout` ends waits, strikes through anyio's shields."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import AsyncConsumer, AsyncProducer
from lance_sdk._io.tasks import uncancelled
from lance_sdk.errors import ClosedError
from lance_sdk.journal import AsyncStoreAndForwardSender, StoreAndForwardSender
from lance_sdk.offsets import FileStore, TopicIdentity
from lance_sdk.testing import FakeServer
from lance_spec.records import encode_records

HOUR = 3600.0
MOST = 60
"""Places in which a program is cancelled; each of these has fewer."""


class CancelledAt:
    """Awaits something, and cancels its own task where that is suspended for the nth time.

    Args:
        work: what is awaited.
        place: when to cancel.
    """

    def __init__(self, work: Awaitable[object], place: int) -> None:
        self._work = work
        self._left = place

    def __await__(self) -> Generator[Any, Any, Any]:
        steps, error = self._work.__await__(), None
        while True:
            try:
                waited = next(steps) if error is None else steps.throw(error)  # type: ignore[call-overload]
            except StopIteration as end:
                return end.value
            self._left -= 1
            if not self._left and (task := asyncio.current_task()) is not None:
                task.cancel()
            error = None
            try:
                yield waited
            except BaseException as raised:  # noqa: BLE001 - handed on
                error = raised


async def cancelled_everywhere(work: Callable[[], Awaitable[object]]) -> AsyncIterator[int]:
    """Cancel some work at each of its places in turn; yield after each."""
    for place in range(1, MOST):
        try:
            await CancelledAt(work(), place)
        except asyncio.CancelledError:
            yield place
        else:
            assert place > 1, "it was never suspended"
            return
    raise AssertionError("it has more places")


async def no_other_task() -> None:
    """Wait until every other task has ended."""
    async with asyncio.timeout(20):
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)


def in_an_event_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Have a test run in a loop that has no other task."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(_main(test, fixtures))

    return run


async def _main(test: Callable[..., Awaitable[None]], fixtures: dict[str, Any]) -> None:
    await test(**fixtures)


@in_an_event_loop
async def test_a_cancelled_consumer_leaves_no_task_and_no_lock(
    server: FakeServer, tmp_path: Path
) -> None:
    """Wherever its task is cancelled, also while it closes."""
    server.topics.append(1, encode_records([b"a", b"b"]))
    topics: list[TopicIdentity] = []

    async def work() -> None:
        async with AsyncConsumer(
            server.url(), consumer="app", offsets=f"file:{tmp_path}", stop_at_end=True
        ) as consumer:
            topics.append(consumer._plan.topic)
            async for _ in consumer:
                await consumer.commit()

    async for _ in cancelled_everywhere(work):
        await no_other_task()
        if topics:
            store = FileStore(tmp_path)
            store.claim("app", topics[0])
            store.close()


@in_an_event_loop
async def test_a_cancelled_sender_leaves_its_slot(server: FakeServer, tmp_path: Path) -> None:
    """Another one may open it at once."""

    async def work() -> None:
        async with AsyncStoreAndForwardSender(server.url(), tmp_path / "slot") as sender:
            await sender.send(b"x")

    async for _ in cancelled_everywhere(work):
        StoreAndForwardSender(server.url(), tmp_path / "slot", close_timeout=0).open().close()
        await no_other_task()


@in_an_event_loop
async def test_a_cancelled_producer_leaves_its_journal(server: FakeServer, tmp_path: Path) -> None:
    """Likewise."""

    async def work() -> None:
        async with AsyncProducer(server.url(), journal=tmp_path / "slot") as producer:
            await producer.send(b"x")

    async for _ in cancelled_everywhere(work):
        StoreAndForwardSender(server.url(), tmp_path / "slot", close_timeout=0).open().close()
        await no_other_task()


@in_an_event_loop
async def test_closing_holds_up_who_is_cancelled_for_a_moment_only(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it goes on alone, and the client is closed."""
    monkeypatch.setattr(uncancelled, "EXIT_BUDGET", 0.01)
    server.on_ingest = lambda _peer, _frame: True
    producer = await AsyncProducer(server.url()).open()
    await producer.send(b"x")
    closing = asyncio.create_task(producer.close(HOUR))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    with pytest.raises(ClosedError):
        await producer.send(b"y")
    server.drop_all()
    server.on_ingest = None
    await no_other_task()


@in_an_event_loop
async def test_what_was_done_is_told_although_nobody_was_cancelled() -> None:
    """Its result, and its error."""

    async def fail() -> None:
        raise KeyError("mine")

    async def answer() -> int:
        return 7

    assert await uncancelled.finish(answer) == 7
    with pytest.raises(KeyError, match="mine"):
        await uncancelled.finish(fail)
    assert await uncancelled.take(lambda: 8, pytest.fail) == 8


@in_an_event_loop
async def test_what_a_cancelled_caller_took_is_given_back() -> None:
    """In a thread, too; what could not be taken is not."""
    given: list[int] = []

    def fail() -> int:
        raise OSError

    for taking in (lambda: 8, fail):
        with pytest.raises(asyncio.CancelledError):
            await CancelledAt(uncancelled.take(taking, given.append), 1)
    assert given == [8]
