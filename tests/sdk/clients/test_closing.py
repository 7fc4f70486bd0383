"""Opening, closing and looking at a producer, on three clients."""

from typing import Any

import pytest

from lance_sdk.errors import (
    ClosedError,
    DeliveryError,
    DeliveryFailed,
    NotOpenError,
    RecordsLost,
    UsageError,
)
from lance_sdk.testing import FakePeer, FakeServer
from lance_sdk.testing.server import Hook
from lance_spec.enums import ErrorCode
from lance_spec.frames import Frame

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


async def test_close_reports_what_was_lost(api: Any, server: FakeServer, until: Any) -> None:
    """And returns in time, although nothing is ever acknowledged."""
    server.on_ingest = silent
    producer = api.producer(server.url())
    async with producer:
        await producer.send_many([b"x"] * 7)
        await until(server, lambda: len(server.ingested) == 1)
        report = await producer.close(timeout=0.05)
    assert (report.delivered, report.lost, report.maybe_applied) == (0, 7, 7)
    assert not report.clean
    assert isinstance(report.error, DeliveryError)


async def test_leaving_the_block_raises_what_was_lost(
    api: Any, server: FakeServer, until: Any
) -> None:
    """Nothing is lost silently."""
    server.on_ingest = silent

    async def lose_a_record() -> None:
        async with api.producer(server.url(), close_timeout=0.05) as producer:
            await producer.send(b"x")
            await until(server, lambda: len(server.ingested) == 1)

    with pytest.raises(RecordsLost, match="1 of 1 records were not delivered") as caught:
        await lose_a_record()
    assert caught.value.maybe_applied
    assert caught.value.report.lost == 1


async def test_a_failure_that_was_seen_is_not_raised_again(api: Any, server: FakeServer) -> None:
    """The program has dealt with it."""
    server.on_ingest = refuse(ErrorCode.INVALID_PAYLOAD)
    async with api.producer(server.url()) as producer:
        delivery = await producer.send(b"x")
        with pytest.raises(DeliveryFailed):
            await delivery


async def fail_after_sending(producer: Any) -> None:
    """Leave a producer's block with an exception of the program's own."""
    async with producer:
        await producer.send(b"x")
        raise KeyError("the program's")


async def test_the_blocks_own_exception_is_not_hidden(api: Any, server: FakeServer) -> None:
    """What was lost is in the report only."""
    server.on_ingest = silent
    with pytest.raises(KeyError):
        await fail_after_sending(api.producer(server.url(), close_timeout=0.05))


async def test_leaving_the_block_delivers_everything(api: Any, server: FakeServer) -> None:
    """Even what still lingers, and even when the block raises."""
    with pytest.raises(KeyError):
        await fail_after_sending(api.producer(server.url(), linger=100.0))
    assert server.records() == [b"x"]


async def test_use_before_open_and_after_close_is_refused(api: Any, server: FakeServer) -> None:
    """With an error that says what to do, never with a hang."""
    producer = api.producer(server.url())
    with pytest.raises(NotOpenError, match="with"):
        await producer.send(b"x")
    with pytest.raises(NotOpenError):
        await producer.flush()
    await producer.open()
    with pytest.raises(UsageError, match="open already"):
        await producer.open()
    await producer.close()
    with pytest.raises(ClosedError):
        await producer.send(b"x")
    with pytest.raises(ClosedError):
        await producer.send_many([b"x"])
    with pytest.raises(ClosedError):
        await producer.open()
    assert (await producer.close()).clean


async def test_closing_what_was_never_open_is_no_error(api: Any, server: FakeServer) -> None:
    """And nothing connects any more."""
    producer = api.producer(server.url())
    assert (await producer.close()).clean
    assert server.accepted == 0


async def test_repr_shows_the_state(api: Any, server: FakeServer) -> None:
    """Where to, in what state, what is buffered, how far away."""
    producer = api.producer(server.url())
    assert " NOTOPEN buffered=0 in_flight=0" in repr(producer)
    async with producer:
        assert f"lance://127.0.0.1:{server.port}/orders OPEN" in repr(producer)
        assert "rtt=" in repr(producer)
    assert " CLOSED " in repr(producer)


async def test_stats_count(api: Any, server: FakeServer) -> None:
    """Records, batches, bytes, connections."""
    async with api.producer(server.url()) as producer:
        await producer.send_many([b"x"] * 10)
        await producer.flush()
        stats = producer.stats()
    assert (stats.acked_records, stats.failed_records, stats.in_flight) == (10, 0, 0)
    assert (stats.state, stats.peer_dialect, stats.connects) == ("ready", "specified", 1)
    assert stats.buffered_bytes == 0
    assert stats.bytes_sent > 60


async def test_bytes_are_counted_over_all_connections(
    api: Any, server: FakeServer, until: Any
) -> None:
    """A connection that is lost takes nothing of what it counted with it."""
    async with api.producer(server.url(), keepalive_interval=0.05) as producer:
        await producer.send_many([b"x" * 1000])
        await producer.flush()
        before = producer.stats()
        server.drop_all()
        await until(server, lambda: producer.stats().connects == 2)
        after = producer.stats()
    assert after.bytes_sent >= before.bytes_sent
    assert after.bytes_received >= before.bytes_received
