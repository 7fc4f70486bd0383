"""Brokers that are not there, go away, or answer nonsense."""

import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lance_sdk.errors import (
    ConfigError,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    RemoteProtocolError,
)
from lance_sdk.rustlog import NoSuchPartition, RustlogClient
from lance_server.listeners.rustlog.testing import Broker
from lance_server.testing import free_port

from .conftest import Client


def framed(payload: bytes) -> bytes:
    """Return a frame."""
    return len(payload).to_bytes(4, "big") + payload


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """Answer each request on one connection, then close it; the address is yielded."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                for each in answers:
                    client.recv(65536)
                    client.sendall(each)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


ASKS: dict[str, Callable[[Client], Any]] = {
    "produce": lambda client: client.produce("demo", [b"a"]),
    "fetch": lambda client: client.fetch("demo"),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("what", "unknown"), [("produce", True), ("fetch", False)])
async def test_a_lost_connection_says_what_is_unknown(api: str, what: str, unknown: bool) -> None:
    """Whether the broker may have stored something."""
    with answering(b"") as address:
        client = Client(api, address)
        with pytest.raises(ConnectionLost) as caught:
            await ASKS[what](client)
        await client.close()
    assert caught.value.maybe_applied is unknown


@pytest.mark.anyio
async def test_nobody_there_is_told_with_the_address(api: str) -> None:
    """And what was tried."""
    address = f"127.0.0.1:{free_port()}"
    client = Client(api, address)
    with pytest.raises(ConnectFailed, match=f"cannot connect to {address}"):
        await client.ping()
    await client.close()


@pytest.mark.anyio
async def test_a_silent_broker_is_not_waited_for_for_ever(api: str) -> None:
    """The connection is not used again: a late answer would be taken for another's."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(api, f"127.0.0.1:{silent.getsockname()[1]}", timeout=0.2)
        with pytest.raises(DeadlineExceeded, match=r"did not answer in 0\.2 s"):
            await client.ping()
        assert "idle" in repr(client)
        await client.close()


@pytest.mark.anyio
async def test_a_connection_that_was_closed_meanwhile_is_not_used(api: str) -> None:
    """Whoever asks next gets a new one, and nothing is in doubt."""
    closed = threading.Event()
    stored = framed(b"\x01" + bytes(8) + (1).to_bytes(4, "big"))

    def serve() -> None:
        for answer in (framed(b"\xff"), stored):
            client, _ = server.accept()
            with client:
                client.recv(65536)
                client.sendall(answer)
            closed.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        client = Client(api, f"127.0.0.1:{server.getsockname()[1]}")
        await client.ping()
        closed.wait(10)
        assert (await client.produce("demo", [b"a"])).count == 1
        await client.close()
        thread.join(10)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("dialect", "answer", "complaint"),
    [
        ("binary", framed(b"\x01"), "not an answer to a FetchRequest"),
        ("binary", framed(b"\x02\xff\xff\xff\xff" + bytes(8)), "FetchResponse.records"),
        ("binary", framed(b"\x02\x00\x00\x00\x01\x00\x00\x00\x00" + bytes(8)), "be numbered"),
        ("binary", framed(b"\x02" + bytes(12)) + b"more", "bytes after its answer"),
        ("binary", bytes(4), "an answer of 0 bytes"),
        ("binary", b"HTTP/1.1 400", "an answer of 1213486160 bytes"),
        ("json", framed(b"HTTP"), "expected JSON"),
        ("json", framed(b'{"Produce":{"offsets":[]}}'), "a FetchResponse, got a ProduceResponse"),
        ("json", framed(b'{"Fetch":{"records":[],"next_offset":1.0}}'), "next_offset"),
    ],
)
async def test_nonsense_is_named(api: str, dialect: str, answer: bytes, complaint: str) -> None:
    """And ends the connection."""
    with answering(answer) as address:
        client = Client(api, address, dialect=dialect)
        with pytest.raises(RemoteProtocolError, match=complaint):
            await client.fetch("demo")
        assert "idle" in repr(client)
        await client.close()


@pytest.mark.anyio
async def test_part_of_a_batch_is_an_error(api: str) -> None:
    """A broker that fails in the middle keeps what it had stored."""
    answer = framed(b"\x01" + bytes(8) + (1).to_bytes(4, "big"))
    with answering(answer) as address:
        client = Client(api, address)
        with pytest.raises(RemoteProtocolError, match="stored 1 of 2 records"):
            await client.produce("demo", [b"a", b"b"])
        await client.close()


def test_threads_take_turns(rustlog: Broker) -> None:
    """Each gets the answer to its own request."""
    host, port = rustlog.address
    found: list[int] = []
    with RustlogClient(f"{host}:{port}") as client:
        client.create_topic("demo")

        def produce() -> None:
            found.extend(client.produce("demo", [b"a"]).base_offset for _ in range(10))

        threads = [threading.Thread(target=produce) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == list(range(40))


@pytest.mark.parametrize(
    ("address", "options", "complaint"),
    [
        ("", {}, "is not an address"),
        ("host:port", {}, "is not an address"),
        ("host:0", {}, "is not an address"),
        ("host:70000", {}, "is not an address"),
        ("localhost", {"dialect": "xml"}, "'binary' or 'json'"),
        ("localhost", {"timeout": 0}, "timeout must be"),
        ("localhost", {"timeout": "soon"}, "timeout must be"),
    ],
)
def test_options_that_make_no_sense_are_named(
    address: str, options: dict[str, Any], complaint: str
) -> None:
    """When the client is made."""
    with pytest.raises(ConfigError, match=complaint):
        RustlogClient(address, **options)


@pytest.mark.parametrize(
    ("address", "shown"),
    [("localhost", "localhost:9092"), ("[::1]", "::1:9092"), ("[::1]:7", "::1:7")],
)
def test_the_port_of_published_brokers_is_the_default(address: str, shown: str) -> None:
    """They have no other."""
    assert shown in repr(RustlogClient(address))


def test_errors_can_be_pickled() -> None:
    """They travel between processes."""
    again = pickle.loads(pickle.dumps(NoSuchPartition(10, "none")))
    assert (type(again), again.code, again.message) == (NoSuchPartition, 10, "none")
