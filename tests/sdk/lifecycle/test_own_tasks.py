"""An async object's tasks belong to the event loop, and to no block of the task that opened it."""

import asyncio
import threading

import anyio
import pytest
import trio
from anyio import to_thread
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint

from lance_sdk import AsyncClient, AsyncConsumer, AsyncProducer
from lance_sdk.errors import ClosedError
from lance_sdk.testing import FakeServer
from lance_spec.records import encode_records


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run on both event loops."""
    return str(request.param)


@pytest.mark.anyio
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
async def test_objects_are_closed_in_any_order(
    server: FakeServer, order: tuple[int, int, int]
) -> None:
    """Not only in the reverse one of opening; those left go on working."""
    clients = [await AsyncClient(server.url()).open() for _ in order]
    for done, number in enumerate(order):
        await clients[number].close()
        for other in order[done + 1 :]:
            assert await clients[other].ping() > 0


@pytest.mark.anyio
async def test_one_task_opens_and_another_closes(server: FakeServer) -> None:
    """The opener's end is not the object's."""
    opened: list[AsyncProducer] = []

    async def open_one() -> None:
        opened.append(await AsyncProducer(server.url()).open())

    async with anyio.create_task_group() as group:
        group.start_soon(open_one)
    (producer,) = opened
    await producer.send(b"x")
    assert (await producer.close()).delivered == 1


@pytest.mark.anyio
async def test_an_object_outlives_the_scope_in_which_it_was_opened(server: FakeServer) -> None:
    """A timeout around open() alone is left as usual."""
    with anyio.fail_after(20):
        client = await AsyncClient(server.url()).open()
    assert await client.ping() > 0
    await client.close()


@pytest.mark.anyio
async def test_an_object_outlives_the_cancellation_of_its_opener(server: FakeServer) -> None:
    """Who gave it to others takes nothing away from them."""

    async def open_for_others(*, task_status: TaskStatus[AsyncClient]) -> None:
        task_status.started(await AsyncClient(server.url()).open())
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        client = await group.start(open_for_others)
        group.cancel_scope.cancel()
    assert await client.ping() > 0
    await client.close()


@pytest.mark.anyio
async def test_a_dropped_object_closes_its_connection(server: FakeServer) -> None:
    """It says that it was not closed, delivers what it has, and its task ends."""
    held = [await AsyncProducer(server.url()).open()]
    driver = held[0]._driver
    await held[0].send(b"x")
    with pytest.warns(ResourceWarning, match="unclosed <AsyncProducer"):
        held.clear()
    with anyio.fail_after(20):
        await driver._stopped.wait()
    assert server.records() == [b"x"]


@pytest.mark.anyio
async def test_an_object_may_be_dropped_in_another_thread(server: FakeServer) -> None:
    """A finalizer runs anywhere."""
    held = [await AsyncClient(server.url()).open()]
    driver = held[0]._driver
    with pytest.warns(ResourceWarning, match="unclosed <AsyncClient"):
        await to_thread.run_sync(held.clear)
    with anyio.fail_after(20):
        await driver._stopped.wait()


async def _leave_open(server: FakeServer, opened: list[AsyncConsumer]) -> None:
    opened.append(await AsyncConsumer(server.url()).open())


@pytest.mark.parametrize("run", [asyncio.run, lambda main: trio.run(lambda: main)])
def test_an_event_loop_that_ends_takes_the_tasks_along(server: FakeServer, run: object) -> None:
    """The object is closed then; nothing complains but the object itself, when it is dropped."""
    assert callable(run)
    opened: list[AsyncConsumer] = []
    run(_leave_open(server, opened))
    assert repr(opened[0]).startswith("<AsyncConsumer")
    with pytest.raises(ClosedError, match="its task was cancelled"):
        opened[0]._driver.check()


@pytest.mark.anyio
async def test_an_error_in_the_task_is_told_to_who_waits(
    server: FakeServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of this package must neither end the event loop nor let anybody wait for ever."""
    server.topics.append(1, encode_records([b"a"]))
    consumer = await AsyncConsumer(server.url()).open()
    assert await consumer.poll(timeout=20) is not None

    def fail(*_: object) -> None:
        raise AssertionError("a fault")

    monkeypatch.setattr(consumer._session, "receive_data", fail)
    with anyio.fail_after(20), pytest.raises(ClosedError, match="ended by an error"):
        await consumer.poll()
    assert "its task ended by an error" in caplog.text
    await consumer.close()


@pytest.mark.anyio
async def test_ctrl_c_does_not_strike_in_the_objects_tasks(
    server: FakeServer, anyio_backend: str
) -> None:
    """On trio it would end the event loop; it is for the application's main task."""
    protected: list[bool] = []

    def look(delivery: object) -> None:
        del delivery
        inside = threading.current_thread() is threading.main_thread()
        on_trio = anyio_backend == "trio"
        protected.append(inside and (not on_trio or trio.lowlevel.currently_ki_protected()))

    async with AsyncProducer(server.url()) as producer:
        delivery = await producer.send(b"x")
        delivery.add_done_callback(look)
        await delivery
    with anyio.fail_after(20):
        while not protected:
            await checkpoint()
    assert protected == [True]
