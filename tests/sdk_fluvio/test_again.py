"""What the client does after a connection was lost."""

import socket
import threading
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from tests.interrupts import strikes

from lance_sdk.errors import (
    ClosedError,
    ConfigError,
    ConnectFailed,
    ConnectionLost,
    TransportError,
    UsageError,
)
from lance_sdk.fluvio import (
    AsyncFluvioClient,
    FluvioClient,
    FluvioRefused,
    StoredRecords,
)
from lance_sdk.fluvio._asks import Ask, Pause
from lance_sdk.fluvio._driver import Driver
from lance_sdk.fluvio._producing import deliver
from lance_sdk.fluvio._retries import Retries
from lance_sdk.fluvio._send_buffer import SendBuffer
from lance_sdk.fluvio._topics import Leader, Leaders
from lance_sdk.fluvio.types import FluvioSettings
from lance_sdk.testing import LoadedDice, ManualClock
from lance_spec.codec.siphash import fluvio_partition
from lance_spec.messages.fluvio import ComputedReplicas, ErrorCode, Outcome, PartitionResolution

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


def test_ctrl_c_leaves_no_connection_locked() -> None:
    """Wherever it strikes the look whether the server keeps the connection."""
    nobody: Any = None
    with ExitStack() as stack:
        ours, _theirs = (stack.enter_context(each) for each in socket.socketpair())
        for strike in strikes():
            driver = Driver(nobody, ("127.0.0.1", 1), FluvioSettings())
            driver._connected = ours
            strike(lambda driver=driver: driver.usable)  # type: ignore[misc]  # it returns a bool
            assert not driver._lock.locked()


def test_a_consumer_gives_up_when_it_is_told_to(proxy: Proxy) -> None:
    """Without retries the loss is an error, and the consumer is at its end."""
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
            with pytest.raises(UsageError, match="no records were received"):
                consumer.commit(0)
            fill(client, b"b")
            assert [each.value for each in consumer.poll(10)] == [b"b"]
            consumer.commit(1)
        assert client.committed("orders", 0, "me") == 1


@pytest.mark.parametrize("retry_for", [0, 30])
def test_a_client_outlives_an_outage_while_it_was_idle(proxy: Proxy, retry_for: float) -> None:
    """While the SPU is away calls fail as a LanceError or wait; when it is back they succeed."""
    with FluvioClient(proxy.sc, retry_for=retry_for, delivery="at_most_once") as client:
        client.create_topic("orders")
        fill(client, b"a")
        producer = client.producer("orders")
        target, proxy.target = proxy.target, ("127.0.0.1", 1)
        proxy.cut()
        if not retry_for:
            for _ in range(3):
                with pytest.raises(TransportError, match=r"offsets of 'orders' partition 0"):
                    client.offsets("orders")
            producer.send(b"lost")
            with pytest.raises(TransportError, match=r"produce to 'orders' partition 0"):
                producer.flush()
        back = threading.Timer(0.2, lambda: setattr(proxy, "target", target))
        back.start()
        if not retry_for:
            back.join()
        producer.send(b"b")
        assert producer.flush() == [StoredRecords(0, 1, 1)]
        assert client.offsets("orders").end == 2
        back.join()


def test_records_that_cannot_go_now_hold_up_no_others() -> None:
    """A partition without a leader does not keep another partition's records from the log."""
    send_buffer, known = two_partitions()
    steps = deliver(send_buffer, known, FluvioSettings(), Retries(10, ManualClock(), LoadedDice()))
    assert asked(next(steps)) == (0, ("one", 1))
    assert asked(steps.throw(ConnectFailed("one:1", []))) == (0, ("two", 2))
    assert steps.send(produced(7)) == Pause(0.02)
    assert len(send_buffer) == 1
    steps.close()


def test_a_cancelled_flush_keeps_its_records() -> None:
    """What may not have been stored waits for the next flush, under at least once."""
    send_buffer, known = two_partitions()
    steps = deliver(send_buffer, known, FluvioSettings(), Retries(10, ManualClock(), LoadedDice()))
    next(steps)
    steps.close()
    assert len(send_buffer) == 2


def test_a_batch_that_a_leader_refused_alone_goes_again_alone() -> None:
    """Of several batches in a request only those that were not stored are sent again."""
    known = Leaders("t", [Leader(("one", 1), online=True)])
    send_buffer = SendBuffer(known, fluvio_partition, 1000)
    for value in (b"a" * 10, b"b" * 10):
        send_buffer.add(value, None, 0, None)
    settings = FluvioSettings(batch_bytes=10)
    steps = deliver(send_buffer, known, settings, Retries(10, ManualClock(), LoadedDice()))
    assert asked(next(steps)) == (0, ("one", 1))
    assert steps.send(produced(0, None)) == Pause(0.02)
    assert [each.value for each in send_buffer.take(0)] == [b"b" * 10]
    steps.close()


def two_partitions() -> tuple[SendBuffer, Leaders]:
    """Return a record for each of two partitions with leaders of their own."""
    found = [Leader(("one", 1), online=True), Leader(("two", 2), online=True)]
    known = Leaders("t", found)
    send_buffer = SendBuffer(known, fluvio_partition, 1000)
    for partition in (0, 1):
        send_buffer.add(b"v", None, 0, partition)
    return send_buffer, known


def produced(*offsets: int | None) -> SimpleNamespace:
    """Return the response to a Produce request: an offset for each batch, None where refused."""
    entries = [
        SimpleNamespace(
            base_offset=each,
            outcome=Outcome(
                code=ErrorCode.NOT_LEADER_FOR_PARTITION if each is None else ErrorCode.NONE,
                detail=None,
            ),
        )
        for each in offsets
    ]
    return SimpleNamespace(topics=[SimpleNamespace(partitions=entries)])


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
    """That the server closed it meanwhile is not an error of the next request."""
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
    known = Leaders("t", [Leader(old, online=True)])
    settings = FluvioSettings(delivery="at_most_once")
    retries = Retries(10, ManualClock(), LoadedDice())
    send_buffer = SendBuffer(known, fluvio_partition, 1000)
    send_buffer.add(b"a", None, 0, None)
    steps = deliver(send_buffer, known, settings, retries)
    assert asked(next(steps)) == (0, old)
    moved = FluvioRefused("produce", ErrorCode.NOT_LEADER_FOR_PARTITION)
    assert steps.throw(moved) == Pause(0.02)
    assert asked(steps.send(None)) == (1003, None)
    replicas = ComputedReplicas(partitions=1, replication=1, ignore_rack=True)
    topic = {"name": "t", "spec": SimpleNamespace(replicas=replicas)}
    assert asked(steps.send(listed(topic))) == (1003, None)
    endpoint = SimpleNamespace(port=9006, ingress=[SimpleNamespace(hostname="new", ip=None)])
    assert asked(steps.send(listed({"id": 7, "public_endpoint": endpoint}))) == (1003, None)
    partition = {"name": "t-0", "leader": 7, "resolution": PartitionResolution.ONLINE}
    assert asked(steps.send(listed(partition))) == (0, new)
    assert known.at(0) == new
    steps.close()


def asked(wanted: Ask | Pause) -> tuple[int, tuple[str, int] | None]:
    """Return what is asked of whom."""
    assert isinstance(wanted, Ask)
    return wanted.key, wanted.at


def test_patience_ends() -> None:
    """Waits grow, and the error comes when the time is over; progress begins again."""
    clock = ManualClock()
    retries = Retries(1.0, clock, LoadedDice())
    error = ConnectFailed("host:1", [])
    waits = []
    for _ in range(4):
        waits.append(retries.after(error))
        clock.advance(waits[-1])
    assert waits == [0.02, 0.04, 0.08, 0.16]
    clock.advance(0.6)
    with pytest.raises(ConnectFailed):
        retries.after(error)
    retries.progressed()
    assert retries.after(error) == 0.02


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
