"""Records that are not delivered."""
# ruff: noqa: D103 - the table says what each program gets wrong

import errno
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.mistakes.registry import URL, mistake, wrong

from lance_sdk import Producer
from lance_sdk.errors import LanceError
from lance_sdk.hooks import DisconnectEvent, Hooks
from lance_sdk.testing import FakeServer
from lance_server import running
from lance_server.testing.storage import FaultyStorage, MemoryStorage
from lance_spec.enums import ErrorCode


def _certain(delivery: Any) -> LanceError:
    with pytest.raises(LanceError) as caught:
        delivery.result()
    assert not caught.value.maybe_applied
    assert caught.value.__cause__ is not None
    return caught.value


@mistake
def disk_full(folder: Path) -> None:
    disk = FaultyStorage(MemoryStorage())
    with running(folder / "data", storage=disk) as server:
        with Producer(f"{server.url}/orders", create_topic=True) as producer:
            producer.send(b"x").result(5)
        with Producer(f"{server.url}/orders", delivery_timeout=1.0) as producer:
            disk.fail = {"write": errno.ENOSPC}
            delivery = producer.send(b"y")
            try:
                raise _certain(delivery)
            finally:
                disk.fail = {}


@mistake
def disk_fails(folder: Path) -> None:
    disk = FaultyStorage(MemoryStorage())
    with (
        running(folder / "data", storage=disk) as server,
        Producer(f"{server.url}/orders", create_topic=True) as producer,
    ):
        producer.send(b"x").result(5)
        disk.fail = {"sync": errno.EIO}
        delivery = producer.send(b"y")
        try:
            delivery.result(5)
        finally:
            disk.fail = {}


def refusing(code: ErrorCode, text: str, **options: Any) -> None:
    """Send to a server that refuses every batch."""
    with FakeServer() as server:

        def refuse(peer: Any, frame: Any) -> bool:
            peer.error(code, text, batch_id=frame.batch_id)
            return True

        server.on_ingest = refuse
        with Producer(server.url(), delivery_timeout=0.3, **options) as producer:
            producer.send(b"x").result()


wrong("rate-limited", lambda: refusing(ErrorCode.RATE_LIMITED, "too many batches"))
wrong("not-allowed", lambda: refusing(ErrorCode.ACCESS_DENIED, "orders is read only for you"))
wrong("quorum", lambda: refusing(ErrorCode.QUORUM_NOT_REACHED, "1 of 2 nodes"))


@mistake
def server_does_not_acknowledge(_folder: Path) -> None:
    with FakeServer() as server:
        server.on_ingest = lambda _peer, _frame: True
        with Producer(server.url(), delivery_timeout=0.3) as producer:
            producer.send(b"x").result()


@mistake
def result_too_early(_folder: Path) -> None:
    with FakeServer() as server:
        server.on_ingest = lambda _peer, _frame: True
        producer = Producer(server.url()).open()
        try:
            producer.send(b"x").result(0.05)
        finally:
            producer.close(0.0)


class Left(Hooks):
    """Tells when the connection has ended."""

    def __init__(self) -> None:
        self.told = threading.Event()

    def on_disconnect(self, event: DisconnectEvent) -> None:
        """Note it."""
        del event
        self.told.set()


def opened_and_left(**options: Any) -> Producer:
    """Return a producer that knows that its server has gone."""
    left = Left()
    with FakeServer() as server:
        producer = Producer(server.url(), hooks=left, **options).open()
    assert left.told.wait(20)
    return producer


@mistake
def server_gone(_folder: Path) -> None:
    producer = opened_and_left(delivery_timeout=0.5, backoff_base=0.01)
    try:
        producer.send(b"x").result()
    finally:
        producer.close(0.0)


@mistake
def server_gone_at_close(_folder: Path) -> None:
    producer = opened_and_left(close_timeout=0.3)
    delivery = producer.send(b"x")
    producer.close()
    delivery.result()


@mistake
def buffer_full(_folder: Path) -> None:
    with FakeServer() as server:
        server.on_ingest = lambda _peer, _frame: True
        small = {"buffer_bytes": 2000, "batch_bytes": 1000}
        producer = Producer(server.url(), on_full="raise", **small).open()  # type: ignore[call-overload]
        try:
            for _ in range(10):
                producer.send(b"x" * 500)
        finally:
            producer.close(0.0)


@mistake
def buffer_full_for_long(_folder: Path) -> None:
    with FakeServer() as server:
        server.on_ingest = lambda _peer, _frame: True
        small = {"buffer_bytes": 2000, "batch_bytes": 1000}
        producer = Producer(server.url(), block_timeout=0.1, **small).open()  # type: ignore[call-overload]
        try:
            for _ in range(10):
                producer.send(b"x" * 500)
        finally:
            producer.close(0.0)


@mistake
def journal_not_a_folder(folder: Path) -> None:
    (folder / "file").write_text("")
    with Producer(URL, journal=folder / "file" / "slot"):
        pass
