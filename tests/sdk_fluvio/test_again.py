"""What the client does after a connection was lost."""

from types import SimpleNamespace

import anyio
import pytest

from lance_sdk.errors import ClosedError, ConfigError, ConnectFailed, ConnectionLost, UsageError
from lance_sdk.fluvio import AsyncFluvioClient, FluvioClient, FluvioRefused, StoredRecords
from lance_sdk.fluvio._asks import Ask, Pause
from lance_sdk.fluvio._patience import Patience
from lance_sdk.fluvio._producing import deliver
from lance_sdk.fluvio.types import FluvioSettings
from lance_sdk.testing import LoadedDice, ManualClock
from lance_spec.fluvio_batches import FluvioRecord
from lance_spec.messages.fluvio import ErrorCode

from .breaking import Proxy


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Return each backend."""
    return str(request.param)


def fill(client: FluvioClient, *values: bytes) -> None:
    """Store values in a topic."""
    with client.producer("orders") as producer:
        for value in values:
            producer.send(value)


def test_a_consumer_goes_on_at_its_offset(proxy: Proxy) -> None:
    """Nothing is left out and nothing comes twice, however often its connection breaks."""
    with FluvioClient(proxy.sc) as client:
        client.create_topic("orders")
        fill(client, b"a", b"b")
        with client.consumer("orders") as consumer:
            assert [each.value for each in consumer.poll(10)] == [b"a", b"b"]
            for value in (b"c", b"d"):
                proxy.cut()
                fill(client, value)
                assert [each.value for each in consumer.poll(10)] == [value]
            assert consumer.offset == 4


def test_a_consumer_gives_up_when_it_is_told_to(proxy: Proxy) -> None:
    """Without patience the loss is an error, and the consumer is at its end."""
    with FluvioClient(proxy.sc, retry_for=0) as client:
        client.create_topic("orders")
        with client.consumer("orders") as consumer:
            proxy.cut()
            with pytest.raises(ConnectionLost):
                consumer.poll(10)
            with pytest.raises(ClosedError, match="starts at its offset"):
                consumer.poll(10)


def test_a_wait_ends_in_time_while_nobody_is_there(proxy: Proxy) -> None:
    """The time of a poll holds while the connection is down."""
    with FluvioClient(proxy.sc) as client:
        client.create_topic("orders")
        with client.consumer("orders") as consumer:
            target, proxy.target = proxy.target, ("127.0.0.1", 1)
            proxy.cut()
            assert consumer.poll(0.05) == []
            proxy.target = target


def test_a_commit_needs_what_was_received_since(proxy: Proxy) -> None:
    """The server numbers streams; a new one has no number before its first records."""
    with FluvioClient(proxy.sc) as client:
        client.create_topic("orders")
        fill(client, b"a")
        with client.consumer("orders", consumer_id="me") as consumer:
            consumer.poll(10)
            proxy.cut()
            with pytest.raises(ConnectionLost):
                consumer.commit(0)
            with pytest.raises(UsageError, match="nothing was received"):
                consumer.commit(0)
            fill(client, b"b")
            assert [each.value for each in consumer.poll(10)] == [b"b"]
            consumer.commit(1)
        assert client.committed("orders", 0, "me") == 1


def test_records_are_sent_again_at_least_once(proxy: Proxy) -> None:
    """An answer that is lost costs a second copy, and no record."""
    with FluvioClient(proxy.sc) as client:
        client.create_topic("orders")
        producer = client.producer("orders")
        client.offsets("orders")
        producer.send(b"a")
        proxy.swallow.set()
        assert producer.flush() == [StoredRecords(0, 1, 1)]
        assert client.offsets("orders").end == 2


def test_records_are_sent_once_at_most(proxy: Proxy) -> None:
    """An answer that is lost is an error that says so, and nothing is stored twice."""
    with FluvioClient(proxy.sc, delivery="at_most_once") as client:
        client.create_topic("orders")
        producer = client.producer("orders")
        client.offsets("orders")
        producer.send(b"a")
        proxy.swallow.set()
        with pytest.raises(ConnectionLost) as caught:
            producer.flush()
        assert caught.value.maybe_applied
        assert client.offsets("orders").end == 1


def test_an_idle_connection_may_have_ended(proxy: Proxy) -> None:
    """That the server closed it meanwhile is no error of the next request."""
    with FluvioClient(proxy.sc, delivery="at_most_once", retry_for=0) as client:
        client.create_topic("orders")
        producer = client.producer("orders")
        for number in range(3):
            producer.send(b"a")
            assert producer.flush() == [StoredRecords(0, number, 1)]
            proxy.cut()


@pytest.mark.anyio
async def test_tasks_go_on_too(proxy: Proxy) -> None:
    """Producer and consumer do the same for tasks."""
    async with AsyncFluvioClient(proxy.sc) as client:
        await client.create_topic("orders")
        producer = await client.producer("orders")
        async with await client.consumer("orders") as consumer:
            for number in range(3):
                await producer.send(b"%d" % number)
                await producer.flush()
                assert [each.value for each in await consumer.poll(10)] == [b"%d" % number]
                proxy.cut()
            await producer.send(b"twice")
            await client.offsets("orders")
            proxy.swallow.set()
            assert await producer.flush() == [StoredRecords(0, 4, 1)]


@pytest.mark.anyio
async def test_an_acknowledgement_may_be_cancelled(proxy: Proxy) -> None:
    """A stream whose flow control was interrupted goes on."""
    async with AsyncFluvioClient(proxy.sc) as client:
        await client.create_topic("orders")
        producer = await client.producer("orders")
        async with await client.consumer("orders") as consumer:
            await producer.send(b"one")
            await producer.flush()
            assert [each.value for each in await consumer.poll(10)] == [b"one"]
            proxy.deaf.set()
            with anyio.move_on_after(0.05) as scope:
                await consumer.poll()
            assert scope.cancelled_caught
            proxy.deaf.clear()
            await producer.send(b"two")
            await producer.flush()
            assert [each.value for each in await consumer.poll(10)] == [b"two"]


def listed(*objects: dict[str, object]) -> SimpleNamespace:
    """Return the SC's answer to a List request."""
    return SimpleNamespace(objects=[SimpleNamespace(**each) for each in objects])


def test_a_producer_follows_the_leader() -> None:
    """A partition that moved is looked for, and its records go there."""
    old, new = ("old", 9005), ("new", 9006)
    known = [old]
    settings = FluvioSettings(delivery="at_most_once")
    patience = Patience(10, ManualClock(), LoadedDice())
    records = [FluvioRecord(b"a", None)]
    steps = deliver("t", 0, records, known, settings=settings, patience=patience)
    assert asked(next(steps)) == (0, old)
    moved = FluvioRefused("produce", ErrorCode.NOT_LEADER_FOR_PARTITION)
    assert steps.throw(moved) == Pause(0.02)
    assert asked(steps.send(None)) == (1003, None)
    endpoint = SimpleNamespace(port=9006, ingress=[SimpleNamespace(hostname="new", ip=None)])
    assert asked(steps.send(listed({"id": 7, "public_endpoint": endpoint}))) == (1003, None)
    assert asked(steps.send(listed({"name": "t-0", "leader": 7}))) == (0, new)
    assert known == [new]
    steps.close()


def asked(wanted: Ask | Pause) -> tuple[int, tuple[str, int] | None]:
    """Return what is asked of whom."""
    assert isinstance(wanted, Ask)
    return wanted.key, wanted.at


def test_patience_ends() -> None:
    """Waits grow, and the error comes when the time is over; progress begins anew."""
    clock = ManualClock()
    patience = Patience(1.0, clock, LoadedDice())
    error = ConnectFailed("host:1", [])
    waits = []
    for _ in range(4):
        waits.append(patience.after(error))
        clock.advance(waits[-1])
    assert waits == [0.02, 0.04, 0.08, 0.16]
    clock.advance(0.6)
    with pytest.raises(ConnectFailed):
        patience.after(error)
    patience.progressed()
    assert patience.after(error) == 0.02


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"delivery": "exactly_once"}, "expected one of at_least_once, at_most_once"),
        ({"retry_for": -1}, "expected 0 or more"),
        ({"timeout": "5"}, "expected a number"),
        ({"max_bytes": float("nan")}, "expected a number"),
    ],
)
def test_settings_are_checked(options: dict[str, object], complaint: str) -> None:
    """A promise that cannot be kept is refused."""
    with pytest.raises(ConfigError, match=complaint):
        FluvioClient("localhost:9003", **options)
