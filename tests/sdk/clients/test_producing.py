"""Producers, on three clients, against a scripted server on a real socket."""

import threading
from typing import Any

import anyio
import pytest

from lance_sdk.errors import (
    BufferFull,
    ClosedError,
    DeadlineExceeded,
    DeliveryExpired,
    DeliveryFailed,
    InvalidPayload,
    RecordTooLarge,
    TopicNotFound,
)
from lance_sdk.testing import FakePeer, FakeServer
from lance_sdk.testing.server import Hook
from lance_spec.enums import ErrorCode
from lance_spec.frames import Frame
from lance_spec.records import decode_records

pytestmark = pytest.mark.anyio


def refuse(code: ErrorCode) -> Hook:
    """Return a hook that refuses every Ingest frame."""

    def hook(peer: FakePeer, frame: Frame) -> bool:
        peer.error(code, f"refused with {code.name}", batch_id=frame.batch_id)
        return True

    return hook


def silent(_peer: object, _frame: object) -> bool:
    """Take a frame and say nothing."""
    return True


async def test_records_arrive_in_the_order_in_which_they_were_sent(
    api: Any, server: FakeServer
) -> None:
    """One by one and in bulk."""
    values = [b"%d" % number for number in range(2000)]
    async with api.producer(server.url()) as producer:
        for value in values[:100]:
            await producer.send(value)
        await producer.send_many(values[100:])
    assert server.records() == values


async def test_a_delivery_tells_its_receipt(api: Any, server: FakeServer) -> None:
    """Topic, batch, place in the batch, attempts."""
    async with api.producer(server.url()) as producer:
        deliveries = [await producer.send(value) for value in (b"a", b"b", b"c")]
        receipts = [await delivery.result() for delivery in deliveries]
    places = {
        (batch.batch_id, place): value
        for batch in server.ingested
        for place, (_, value) in enumerate(decode_records(batch.records))
    }
    found = [places[receipt.batch_id, receipt.index] for receipt in receipts]
    assert found == [b"a", b"b", b"c"]
    assert {(receipt.topic_id, receipt.attempts) for receipt in receipts} == {(1, 1)}
    assert deliveries[0].done()
    assert deliveries[0].exception() is None


async def test_a_bulk_delivery_counts_its_records(api: Any, server: FakeServer) -> None:
    """One handle for all of them, over several batches."""
    async with api.producer(server.url(), batch_bytes=1000) as producer:
        deliveries = await producer.send_many(bytes(50) for _ in range(100))
        assert await deliveries == 100
    assert len(server.ingested) > 1


async def test_a_callback_is_called_once_with_its_delivery(api: Any, server: FakeServer) -> None:
    """Before or after the acknowledgement; one that raises harms nobody."""
    called: list[object] = []
    release = threading.Event()
    server.on_ingest = lambda _peer, _frame: not release.wait(10)
    async with api.producer(server.url()) as producer:
        delivery = await producer.send(b"a")

        def bad(_delivery: object) -> None:
            raise ValueError("callbacks may raise")

        delivery.add_done_callback(bad)
        delivery.add_done_callback(called.append)
        release.set()
        await producer.flush()
        delivery.add_done_callback(called.append)
    assert len(called) == 2
    assert all(each.done() for each in called)


async def test_a_lone_record_leaves_after_linger(api: Any, server: FakeServer) -> None:
    """Nobody has to flush."""
    async with api.producer(server.url(), linger=0.001) as producer:
        delivery = await producer.send(b"alone")
        await delivery.result(timeout=10)
    assert server.records() == [b"alone"]


async def test_linger_is_no_rate_limit(api: Any, server: FakeServer) -> None:
    """Full batches leave at once, however long linger is."""
    async with api.producer(server.url(), linger=100.0, batch_bytes=1000) as producer:
        deliveries = await producer.send_many([bytes(995)] * 50)
        assert await deliveries.result(timeout=30) == 50


async def test_flush_sends_what_lingers(api: Any, server: FakeServer) -> None:
    """And returns when everything is acknowledged."""
    async with api.producer(server.url(), linger=100.0) as producer:
        delivery = await producer.send(b"a")
        await producer.flush(timeout=10)
        assert delivery.done()


async def test_flush_raises_what_failed(api: Any, server: FakeServer) -> None:
    """The first failure among what it waited for."""
    server.on_ingest = refuse(ErrorCode.INVALID_PAYLOAD)
    async with api.producer(server.url()) as producer:
        await producer.send(b"a")
        with pytest.raises(DeliveryFailed) as caught:
            await producer.flush()
    assert isinstance(caught.value.cause, InvalidPayload)
    assert not caught.value.maybe_applied


async def test_flush_gives_up_waiting_in_time(api: Any, server: FakeServer, until: Any) -> None:
    """The delivery goes on."""
    server.on_ingest = silent
    producer = api.producer(server.url())
    async with producer:
        await producer.send(b"a")
        with pytest.raises(DeadlineExceeded, match="the delivery goes on"):
            await producer.flush(timeout=0.05)
        await until(server, lambda: len(server.ingested) == 1)
        server.on_ingest = None
        server.drop_all()
        await producer.flush(timeout=10)
    assert server.records() == [b"a"]


async def test_a_full_buffer_raises_where_that_is_the_policy(
    api: Any, server: FakeServer, until: Any
) -> None:
    """The record is not accepted, and the message says what to do."""
    server.on_ingest = silent
    options = {"on_full": "raise", "batch_bytes": 1000, "buffer_bytes": 3000}
    producer = api.producer(server.url(), **options)
    async with producer:
        for _ in range(3):
            await producer.send(bytes(995))
        with pytest.raises(BufferFull, match="buffer_bytes=3000"):
            await producer.send(b"x")
        with pytest.raises(BufferFull):
            await producer.send_many([b"x"])
        await until(server, lambda: len(server.ingested) == 3)
        report = await producer.close(timeout=0)
    assert report.lost == 3
    assert report.maybe_applied == 3


async def test_a_full_buffer_blocks_until_there_is_room(api: Any, server: FakeServer) -> None:
    """Everything is delivered, in order, with a buffer that holds only three batches."""
    values = [number.to_bytes(2, "big") + bytes(993) for number in range(40)]
    release = threading.Event()
    server.on_ingest = lambda _peer, _frame: not release.wait(10)
    options = {"batch_bytes": 1000, "buffer_bytes": 3000}
    async with api.producer(server.url(), **options) as producer:
        for value in values[:3]:
            await producer.send(value)
        release.set()
        for value in values[3:20]:
            await producer.send(value)
        await producer.send_many(values[20:])
    assert server.records() == values


async def test_records_at_once_wait_for_room_too(api: Any, server: FakeServer) -> None:
    """As `send` does; each list is in the log as a whole."""
    lists = [[(bytes([number]) * 300, 0x01)] * 3 for number in range(20)]
    options = {"batch_bytes": 1000, "buffer_bytes": 2000}
    async with api.producer(server.url(), **options) as producer:
        for records in lists:
            await producer.send_records(records)
    assert server.records() == [value for records in lists for value, _ in records]


@pytest.mark.parametrize("on_full", ["block", "raise"])
async def test_records_that_never_fit_together_are_refused(
    api: Any, server: FakeServer, on_full: str
) -> None:
    """At once, with how much there is room for; none of them is sent."""
    options = {"batch_bytes": 1000, "buffer_bytes": 2000, "on_full": on_full}
    async with api.producer(server.url(), **options) as producer:
        with pytest.raises(RecordTooLarge, match=r"3 records, 2115 bytes.*buffer_bytes=2000"):
            await producer.send_records([(bytes(700), 0x01)] * 3)
        with pytest.raises(RecordTooLarge, match="largest this server takes"):
            await producer.send_records([(b"small", 0x01), (bytes(2**24 + 1), 0x01)])
    assert server.ingested == []


async def test_blocking_ends_with_block_timeout(api: Any, server: FakeServer) -> None:
    """A server that never acknowledges does not stop the program for good."""
    server.on_ingest = silent
    options = {"batch_bytes": 1000, "buffer_bytes": 1000, "block_timeout": 0.05}
    producer = api.producer(server.url(), **options)
    async with producer:
        await producer.send(bytes(995))
        with pytest.raises(BufferFull):
            await producer.send(b"x")
        await producer.close(timeout=0)


async def test_a_dropped_connection_loses_and_doubles_nothing(api: Any, server: FakeServer) -> None:
    """Batches come again under their own ids; a server that remembers ids stores each once."""
    seen = 0

    def drop_every_third(peer: FakePeer, _frame: Frame) -> bool:
        nonlocal seen
        seen += 1
        if seen % 3 == 0 and seen < 20:
            peer.close()
            return True
        return False

    server.on_ingest = drop_every_third
    values = [number.to_bytes(2, "big") + bytes(48) for number in range(400)]
    async with api.producer(server.url(), batch_bytes=1100, max_in_flight=4) as producer:
        await producer.send_many(values)
        await producer.flush(timeout=60)
        assert producer.stats().connects > 3
    once: dict[int, bytes] = {}
    for frame in server.ingested:
        assert once.setdefault(frame.batch_id, frame.payload) == frame.payload
    stored = [value for batch in sorted(once) for _, value in decode_records(once[batch])]
    assert stored == values


async def test_garbage_from_the_server_costs_a_reconnect_and_nothing_else(
    api: Any, server: FakeServer
) -> None:
    """Bytes that are no frame end the connection; the batch goes again."""

    def garble_once(peer: FakePeer, _frame: Frame) -> bool:
        if peer.number > 1:
            return False
        peer.send(b"\xde\xad\xbe\xef" * 100)
        return True

    server.on_ingest = garble_once
    async with api.producer(server.url()) as producer:
        delivery = await producer.send(b"a")
        receipt = await delivery.result(timeout=30)
    assert receipt.attempts == 2
    assert server.records() == [b"a"]


async def test_late_acknowledgements_are_waited_for(api: Any, server: FakeServer) -> None:
    """A slow disk is not a failure."""
    release = threading.Event()

    def late(_peer: object, _frame: object) -> bool:
        return not release.wait(10)

    server.on_ingest = late
    async with api.producer(server.url()) as producer:
        delivery = await producer.send(b"a")
        with pytest.raises(DeadlineExceeded):
            await delivery.result(timeout=0.02)
        release.set()
        await delivery.result(timeout=10)


async def test_no_acknowledgement_in_delivery_timeout_is_a_failure(
    api: Any, server: FakeServer
) -> None:
    """It may have been stored: nobody knows."""
    server.on_ingest = silent
    async with api.producer(server.url(), delivery_timeout=0.5, linger=0) as producer:
        delivery = await producer.send(b"a")
        with pytest.raises(DeliveryExpired) as caught:
            await delivery
    assert caught.value.maybe_applied
    assert caught.value.retryable


async def test_a_text_error_finds_its_batch(api: Any, deployed: FakeServer) -> None:
    """A deployed server names no batch; the producer finds out by itself (AMB-10)."""

    def refuse_second(peer: FakePeer, frame: Frame) -> bool:
        if b"bad" not in bytes(frame.payload):
            return False
        peer.error(ErrorCode.TOPIC_NOT_FOUND, "Unknown topic")
        return True

    deployed.on_ingest = refuse_second
    producer = api.producer(deployed.url(), batch_records=1)
    async with producer:
        deliveries = [await producer.send(value) for value in (b"1", b"bad", b"3")]
        await deliveries[0].result(timeout=10)
        with pytest.raises(DeliveryFailed) as caught:
            await deliveries[1].result(timeout=10)
        await deliveries[2].result(timeout=10)
        await (await producer.send(b"4")).result(timeout=10)
    assert isinstance(caught.value.cause, TopicNotFound)
    assert deployed.records() == [b"1", b"3", b"4"]


async def test_backpressure_slows_and_does_not_stop(api: Any, server: FakeServer) -> None:
    """Every record is delivered while the server complains about each batch."""

    def complain(peer: FakePeer, _frame: Frame) -> bool:
        peer.backpressure()
        return False

    server.on_ingest = complain
    async with api.producer(server.url(), batch_bytes=500) as producer:
        await producer.send_many([bytes(100)] * 200)
        await producer.flush(timeout=30)
        assert producer.stats().backpressure == len(server.ingested)
    assert len(server.records()) == 200


async def test_no_keepalive_storm_is_possible(api: Any, server: FakeServer) -> None:
    """A server that answers each Keepalive with hundreds gets one answer, not hundreds."""

    def storm(peer: FakePeer, _frame: Frame) -> bool:
        for _ in range(500):
            peer.keepalive()
        return True

    server.on_keepalive = storm
    async with api.producer(server.url()) as producer:
        await producer.send(b"a")
        await producer.flush(timeout=10)
    sent = server.frames.count("KEEPALIVE")
    assert 1 <= sent <= 4


async def test_control_requests_never_travel_beside_ingest(api: Any, server: FakeServer) -> None:
    """On every connection all questions come before the first batch (AMB-10)."""
    seen = 0

    def drop_twice(peer: FakePeer, _frame: Frame) -> bool:
        nonlocal seen
        seen += 1
        if seen < 3:
            peer.close()
        return seen < 3

    server.on_ingest = drop_twice
    async with api.producer(server.url()) as producer:
        await (await producer.send(b"a")).result(timeout=30)
    assert server.frames == ["KEEPALIVE", "LIST_TOPICS", "INGEST"] * 3


async def test_a_deleted_topic_fails_the_batch_with_its_reason(
    api: Any, server: FakeServer
) -> None:
    """The server knows the number no longer."""
    async with api.producer(server.url()) as producer:
        await (await producer.send(b"a")).result(timeout=10)
        server.topics._logs.pop(1)
        with pytest.raises(DeliveryFailed) as caught:
            await (await producer.send(b"b")).result(timeout=10)
    assert isinstance(caught.value.cause, TopicNotFound)


async def test_a_topic_that_vanished_ends_the_producer(api: Any, server: FakeServer) -> None:
    """On reconnecting the name leads nowhere; what is unacknowledged fails and says why."""

    def vanish(peer: FakePeer, _frame: Frame) -> bool:
        server.topics._names.clear()
        peer.close()
        return True

    server.on_ingest = vanish
    async with api.producer(server.url()) as producer:
        delivery = await producer.send(b"a")
        with pytest.raises(DeliveryFailed) as caught:
            await delivery.result(timeout=10)
        assert isinstance(caught.value.cause, TopicNotFound)
        assert caught.value.maybe_applied
        with pytest.raises(ClosedError, match="orders"):
            await producer.send(b"b")


async def test_flush_tells_what_failed_just_before_it(api: Any, server: FakeServer) -> None:
    """A record that was refused before the flush began is not passed over in silence."""
    server.on_ingest = refuse(ErrorCode.INVALID_PAYLOAD)
    async with api.producer(server.url()) as producer:
        delivery = await producer.send(b"a")
        waiting = threading.Event()
        delivery._batch.waiter.add_callback(delivery._batch, waiting.set)
        await anyio.to_thread.run_sync(waiting.wait, 10)
        with pytest.raises(DeliveryFailed):
            await producer.flush()
        await producer.flush()  # it is told once


async def test_records_that_are_handed_over_at_once_share_a_batch(
    api: Any, server: FakeServer
) -> None:
    """Of whatever types they are, and though nothing is in flight."""
    async with api.producer(server.url()) as producer:
        deliveries = await producer.send_records([(b"a", 0x01), (b"{}", 0x02), (b"c", 0x80)])
        await producer.flush(timeout=10)
    assert [delivery.done() for delivery in deliveries] == [True] * 3
    assert [batch.record_count for batch in server.ingested] == [3]
