"""Cancelling a task cancels its wait, never what it asked for, and never the stream."""

import threading
from collections.abc import Iterator

import anyio
import pytest
from anyio import to_thread
from anyio.lowlevel import checkpoint

from lance_sdk import AsyncClient, AsyncConsumer, AsyncProducer
from lance_sdk.errors import ClosedError, DeadlineExceeded
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.enums import Command
from lance_spec.frames import Frame
from lance_spec.records import encode_records

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run on both event loops."""
    return str(request.param)


@pytest.fixture
def held(server: FakeServer) -> Iterator[threading.Event]:
    """Return what lets the server go on; until then it keeps every batch."""
    release = threading.Event()
    server.on_ingest = lambda _peer, _frame: not release.wait(10)
    yield release
    release.set()


async def test_cancelling_the_wait_does_not_cancel_the_send(
    server: FakeServer, held: threading.Event
) -> None:
    """The record is delivered, and the same handle can be awaited again."""
    async with AsyncProducer(server.url()) as producer:
        delivery = await producer.send(b"x")
        with anyio.move_on_after(0.01) as scope:
            await delivery
        assert scope.cancelled_caught
        held.set()
        receipt = await delivery
    assert receipt.attempts == 1
    assert server.records() == [b"x"]


async def test_an_opening_may_be_cancelled_at_every_step(server: FakeServer) -> None:
    """Also between the decision to connect and the first step of the task that does."""
    for steps in [*range(8)] * 25:  # the order of tasks is random on trio
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_after, steps, group.cancel_scope)
            async with AsyncClient(server.url(), close_timeout=1.0):
                await anyio.sleep_forever()
    async with AsyncClient(server.url()) as client:
        assert await client.ping() > 0


async def _cancel_after(steps: int, scope: anyio.CancelScope) -> None:
    for _ in range(steps):
        await checkpoint()
    scope.cancel()


async def test_cancelling_a_call_does_not_shift_the_answers(server: FakeServer) -> None:
    """The late answer falls into its tombstone; the next caller gets his own."""
    release = threading.Event()

    def late(_peer: FakePeer, frame: Frame) -> bool:
        return frame.command is Command.LIST_TOPICS and not release.wait(10)

    server.on_control = late
    async with AsyncClient(server.url()) as client:
        with anyio.move_on_after(0.01) as scope:
            await client.list_topics()
        assert scope.cancelled_caught
        release.set()
        assert (await client.get_topic(1)).name == "orders"
        assert await client.ping() > 0


async def test_cancelling_a_poll_loses_no_record(server: FakeServer) -> None:
    """What arrives for a poll that nobody waits for any more is there for the next."""
    async with AsyncConsumer(server.url(), poll_interval=0.001) as consumer:
        for _ in range(5):
            with anyio.move_on_after(0.005):
                await consumer.poll()
        server.topics.append(1, encode_records([b"a", b"b"]))
        batch = await consumer.poll(timeout=10)
        assert batch is not None
        assert [record.value for record in batch] == [b"a", b"b"]


async def test_a_cancelled_block_still_delivers_what_was_sent(server: FakeServer) -> None:
    """Leaving takes its bounded time even then."""
    with anyio.CancelScope() as scope:
        async with AsyncProducer(server.url(), linger=60) as producer:
            await producer.send_many([b"x"] * 100)
            scope.cancel()
            await anyio.sleep_forever()
    assert server.records() == [b"x"] * 100


async def test_a_cancelled_block_is_left_although_nothing_is_acknowledged(
    server: FakeServer,
) -> None:
    """The bounded time is short."""
    server.on_ingest = lambda _peer, _frame: True
    with anyio.fail_after(15), anyio.CancelScope() as scope:
        async with AsyncProducer(server.url()) as producer:
            await producer.send(b"x")
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught


async def test_cancelling_open_leaves_nothing_behind(server: FakeServer) -> None:
    """No task, no connection."""
    server.on_keepalive = lambda _peer, _frame: True
    producer = AsyncProducer(server.url())
    with anyio.move_on_after(0.02) as scope:
        async with producer:
            pytest.fail("the server never answers")
    assert scope.cancelled_caught
    assert "OPEN" not in repr(producer).replace("NOTOPEN", "OPEN")


async def test_many_tasks_may_send_at_once(server: FakeServer) -> None:
    """Every record of every task arrives, each task's in its own order."""

    async def send_some(task: int) -> None:
        for number in range(50):
            await producer.send(b"%d %d" % (task, number))

    async with AsyncProducer(server.url(), batch_bytes=200) as producer:
        async with anyio.create_task_group() as group:
            for task in range(8):
                group.start_soon(send_some, task)
        await producer.flush()
    records = server.records()
    for task in range(8):
        mine = [record for record in records if record.startswith(b"%d " % task)]
        assert mine == [b"%d %d" % (task, number) for number in range(50)]


async def test_a_loop_that_only_sends_does_not_starve_the_driver(server: FakeServer) -> None:
    """Batches leave while the loop is still running."""
    async with AsyncProducer(server.url(), batch_bytes=1000) as producer:
        while len(server.ingested) < 5:
            await producer.send(bytes(995))
            assert producer.stats().buffered_bytes < 30_000_000


async def test_the_callers_exception_is_not_wrapped(server: FakeServer) -> None:
    """The task group inside is nobody's business."""

    async def fail() -> None:
        async with AsyncProducer(server.url()):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail()


async def test_another_task_may_close(server: FakeServer) -> None:
    """Who reads is told; the block is left as usual."""
    async with AsyncConsumer(server.url()) as consumer:

        async def close_soon() -> None:
            await to_thread.run_sync(server.wait_for, lambda: server.frames.count("FETCH") > 2)
            await consumer.close()

        async with anyio.create_task_group() as group:
            group.start_soon(close_soon)
            with pytest.raises(ClosedError):
                await consumer.poll()


async def test_waiting_for_a_delivery_has_a_deadline(
    server: FakeServer, held: threading.Event
) -> None:
    """For one record, for many, for all of them."""
    async with AsyncProducer(server.url(), linger=0) as producer:
        one = await producer.send(b"x")
        many = await producer.send_many([b"y", b"z"])
        for wait in (one.result, many.result, producer.flush):
            with pytest.raises(DeadlineExceeded):
                await wait(timeout=0.01)
        assert not many.done()
        held.set()
        assert await many == 2
        assert "done=True" in repr(many)
