"""Our clients against the published Python client, on the same server in its own process."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from time import process_time
from typing import TypeAlias

import anyio
import lnc_client

from bench import worker
from bench.harness import Rate, Scenario, rate
from bench.peers import server_process
from lance_sdk import AsyncConsumer, AsyncProducer, Client, Consumer, Delivery, Producer, RecordType
from lance_sdk._protocol.produce.delivery import Batch

_OURS = 200_000
_THEIRS = 10_000
_VALUE = b"x" * 100
_HANDLES = 1 / 0.5e-6
"""Delivery handles a second: 0.5 us a record is what one may cost at most."""
_IN_BATCH = 624
"""Records of 100 bytes that fill a frame of 64 KiB."""
_SENDING = "lnc-client 0.2.9, pipelined send_async"

Sides: TypeAlias = tuple[Rate, Rate]


def _send(address: str, topic: str) -> None:
    with Producer(f"lance://{address}/{topic}", dialect="deployed") as producer:
        send = producer.send
        for _ in range(_OURS):
            send(_VALUE)
        producer.flush()


def _send_batches(address: str, topic: str) -> None:
    batch = [_VALUE] * _IN_BATCH
    with Producer(f"lance://{address}/{topic}", dialect="deployed") as producer:
        for _ in range(_OURS // _IN_BATCH):
            producer.send_many(batch)
        producer.flush()


async def _send_async(address: str, topic: str) -> None:
    async with AsyncProducer(f"lance://{address}/{topic}", dialect="deployed") as producer:
        for _ in range(_OURS):
            await producer.send(_VALUE)
        await producer.flush()


async def _peer_send(address: str, topic_id: int) -> None:
    producer = await lnc_client.Producer.connect(address)
    for _ in range(_THEIRS):
        await producer.send_async(topic_id, _VALUE)
    await producer.flush()
    await producer.close()


async def _peer_send_batches(address: str, topic_id: int) -> None:
    batch = [lnc_client.TlvRecord(1, _VALUE)] * _IN_BATCH
    producer = await lnc_client.Producer.connect(address)
    for _ in range(_OURS // _IN_BATCH):
        await producer.send_batch(topic_id, batch)
    await producer.close()


async def _peer_poll(address: str, topic_id: int, count: int) -> None:
    config = lnc_client.StandaloneConfig.new_with_id(
        f"bench-{os.getpid()}", "", topic_id, poll_timeout_s=10.0, auto_commit_interval_s=None
    )
    consumer = await lnc_client.StandaloneConsumer.connect(address, config)
    seen = 0
    while seen < count and (result := await consumer.poll()):
        seen += result.record_count
    await consumer.close()
    if seen < count:
        raise RuntimeError(f"the peer saw {seen} of {count} records")


def _poll(address: str, topic: str, count: int) -> None:
    seen = 0
    url = f"lance://{address}/{topic}"
    with Consumer(url, dialect="deployed", stop_at_end=True) as consumer:
        for batch in consumer.batches():
            seen += len(batch)
    if seen != count:
        raise RuntimeError(f"saw {seen} of {count} records")


async def _poll_async(address: str, topic: str, count: int) -> None:
    seen = 0
    url = f"lance://{address}/{topic}"
    async with AsyncConsumer(url, dialect="deployed", stop_at_end=True) as consumer:
        async for batch in consumer.batches():
            seen += len(batch)
    if seen != count:
        raise RuntimeError(f"saw {seen} of {count} records")


def _make_handles() -> float:
    """Make what `Producer.send` returns, keep it until its batch is settled, and let go of it.

    Returns:
        Handles a second of this process's own time: the limit is not a ratio to another program, so
        whatever else the machine does must not count.
    """
    count, began = 0, process_time()
    for _ in range(_OURS // _IN_BATCH):
        batch = Batch(RecordType.RAW_DATA, 0.0, 1.0, None)
        handles = [Delivery(batch, index) for index in range(_IN_BATCH)]
        batch.seal()
        batch.finish(1.0)
        count += len(handles) if handles[-1].done() else 0
    return count / (process_time() - began)


@contextmanager
def _handles() -> Iterator[tuple[Rate, Rate]]:
    yield _make_handles, lambda: _HANDLES


def _topic(address: str) -> tuple[str, int]:
    name = f"bench-{os.urandom(4).hex()}"
    with Client(f"lance://{address}") as client:
        return name, client.create_topic(name).id


@contextmanager
def _sync_send() -> Iterator[tuple[Rate, Rate]]:
    with server_process() as address:
        name, number = _topic(address)
        yield (
            rate(_OURS, lambda: _send(address, name)),
            rate(_THEIRS, lambda: asyncio.run(_peer_send(address, number))),
        )


@contextmanager
def _async_send(loop: str) -> Iterator[tuple[Rate, Rate]]:
    with server_process() as address:
        name, number = _topic(address)
        yield (
            rate(_OURS, lambda: anyio.run(_send_async, address, name, backend=loop)),
            rate(_THEIRS, lambda: asyncio.run(_peer_send(address, number))),
        )


@contextmanager
def _batches() -> Iterator[tuple[Rate, Rate]]:
    with server_process() as address:
        name, number = _topic(address)
        yield (
            rate(_OURS, lambda: _send(address, name)),
            rate(
                _OURS // _IN_BATCH * _IN_BATCH,
                lambda: asyncio.run(_peer_send_batches(address, number)),
            ),
        )


@contextmanager
def _explicit() -> Iterator[tuple[Rate, Rate]]:
    with server_process() as address:
        name, number = _topic(address)
        count = _OURS // _IN_BATCH * _IN_BATCH
        yield (
            rate(count, lambda: _send_batches(address, name)),
            rate(count, lambda: asyncio.run(_peer_send_batches(address, number))),
        )


@contextmanager
def _polling() -> Iterator[tuple[Rate, Rate]]:
    with server_process() as address:
        name, number = _topic(address)
        _send(address, name)
        yield (
            rate(_OURS, lambda: _poll(address, name, _OURS)),
            rate(_OURS, lambda: asyncio.run(_peer_poll(address, number, _OURS))),
        )


@contextmanager
def _async_polling(loop: str) -> Iterator[tuple[Rate, Rate]]:
    with server_process() as address:
        name, number = _topic(address)
        _send(address, name)
        yield (
            rate(_OURS, lambda: anyio.run(_poll_async, address, name, _OURS, backend=loop)),
            rate(_OURS, lambda: asyncio.run(_peer_poll(address, number, _OURS))),
        )


@contextmanager
def _pure_send() -> Iterator[Sides]:
    with server_process() as address:
        name, number = _topic(address)
        job = {"url": f"lance://{address}/{name}", "count": _OURS, "size": len(_VALUE)}
        yield (
            lambda: _OURS / worker.run("send", pure=True, dialect="deployed", **job).seconds,
            rate(_THEIRS, lambda: asyncio.run(_peer_send(address, number))),
        )


@contextmanager
def _pure_poll() -> Iterator[Sides]:
    with server_process() as address:
        name, number = _topic(address)
        _send(address, name)
        url = f"lance://{address}/{name}"
        yield (
            lambda: _OURS / worker.run("poll", pure=True, url=url, records=_OURS).seconds,
            rate(_OURS, lambda: asyncio.run(_peer_poll(address, number, _OURS))),
        )


def _on(
    loop: str, name: str, other: str, sides: Callable[[str], AbstractContextManager[Sides]]
) -> Scenario:
    """Return a scenario of the async API on one event loop."""
    return Scenario(name=name, unit="records/s", other=other, sides=partial(sides, loop))


SCENARIOS = (
    Scenario(
        name="clients/delivery-handle",
        unit="handles/s",
        other="0.5 us a record, which a handle may cost to make, to settle and to let go",
        sides=_handles,
    ),
    Scenario(
        name="clients/sync-send-100B",
        unit="records/s",
        other="lnc-client 0.2.9, pipelined send_async",
        sides=_sync_send,
    ),
    _on("asyncio", "clients/async-send-100B", _SENDING, _async_send),
    _on("trio", "clients/trio-send-100B", _SENDING, _async_send),
    Scenario(
        name="clients/send-vs-batches-100B",
        unit="records/s",
        other="lnc-client 0.2.9, explicit 64 KiB batches (ours: single sends, batched for you)",
        sides=_batches,
    ),
    Scenario(
        name="clients/explicit-batches-100B",
        unit="records/s",
        other="lnc-client 0.2.9, explicit 64 KiB batches (ours: send_many of as many records)",
        sides=_explicit,
    ),
    Scenario(
        name="clients/poll-decode-100B",
        unit="records/s",
        other="lnc-client 0.2.9, poll",
        sides=_polling,
    ),
    Scenario(
        name="clients/pure-send-100B",
        unit="records/s, without the compiled loops",
        other=_SENDING,
        sides=_pure_send,
    ),
    Scenario(
        name="clients/pure-poll-100B",
        unit="records/s, without the compiled loops",
        other="lnc-client 0.2.9, poll",
        sides=_pure_poll,
    ),
    _on("asyncio", "clients/async-poll-100B", "lnc-client 0.2.9, poll", _async_polling),
    _on("trio", "clients/trio-poll-100B", "lnc-client 0.2.9, poll", _async_polling),
)
