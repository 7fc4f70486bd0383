"""What carries a connection: asyncio's protocol, on its own loop and on uvloop; trio's socket."""

import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import pytest
import trustme
from anyio import to_thread
from anyio.lowlevel import checkpoint

from lance_sdk import AsyncClient, AsyncConsumer, AsyncProducer
from lance_sdk._io.tasks.asyncio_transport import ProtocolTransport
from lance_sdk._io.tasks.transport import TaskTransport
from lance_sdk._io.tasks.transport_factory import dial
from lance_sdk._io.tasks.trio_transport import StreamTransport
from lance_sdk._protocol.events import Connect
from lance_sdk.testing import FakeServer
from lance_spec.checksum import Buffer

LOOPS = {
    "asyncio": ("asyncio", {"use_uvloop": False}),
    "uvloop": ("asyncio", {"use_uvloop": True}),
    "trio": ("trio", {}),
}
MUCH = bytes(32 * 1024 * 1024)
"""More than the buffers of both sides take."""
REFUSE = struct.pack("ii", 1, 0)
"""For ``SO_LINGER``: closing resets the connection."""

GONE = "(?i)connection|pipe"
"""What the system says of a connection that is gone."""

Main = Callable[..., Awaitable[Any]]


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    """Return each event loop in turn."""
    if request.param == "uvloop":
        pytest.importorskip("uvloop", reason="uvloop is not installed")
    return str(request.param)


def run(loop: str, main: Main, *args: Any) -> Any:
    """Run an async function on an event loop."""

    async def limited() -> Any:
        with anyio.fail_after(60):
            return await main(*args)

    backend, options = LOOPS[loop]
    return anyio.run(limited, backend=backend, backend_options=options)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Return a listening socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        yield listener


async def connect(listener: socket.socket) -> tuple[TaskTransport, socket.socket]:
    """Return both ends of a connection."""
    transport = await dial(Connect("127.0.0.1", listener.getsockname()[1], False, 20.0), None)
    peer = await to_thread.run_sync(lambda: listener.accept()[0])
    return transport, peer


def forget(_data: Buffer) -> None:
    """Take what arrives and do nothing with it."""


def test_each_event_loop_has_its_transport(loop: str, listener: socket.socket) -> None:
    """On asyncio the loop calls the driver by itself, on trio there is a socket of anyio's."""

    async def main() -> type:
        transport, peer = await connect(listener)
        peer.close()
        await transport.aclose()
        return type(transport)

    assert run(loop, main) is (StreamTransport if loop == "trio" else ProtocolTransport)


def test_bytes_that_came_before_the_reader_are_not_lost(loop: str, listener: socket.socket) -> None:
    """They wait in the system until somebody takes them."""

    async def main() -> bytes:
        transport, peer = await connect(listener)
        with peer:
            peer.sendall(b"early")
            peer.shutdown(socket.SHUT_WR)
            for _ in range(20):  # let the event loop read, if it wants to
                await checkpoint()
            taken = bytearray()
            await transport.receive(taken.extend)
        await transport.aclose()
        return bytes(taken)

    assert run(loop, main) == b"early"


def test_much_arrives_in_order(loop: str, listener: socket.socket) -> None:
    """In pieces, each of which counts only until it was taken."""
    much = bytes(range(256)) * 20_000

    async def main() -> bytes:
        transport, peer = await connect(listener)
        taken = bytearray()

        def send() -> None:
            with peer:
                peer.sendall(much)

        async with anyio.create_task_group() as group:
            group.start_soon(to_thread.run_sync, send)
            await transport.receive(taken.extend)
        await transport.aclose()
        return bytes(taken)

    assert run(loop, main) == much


def test_sending_lasts_until_the_system_has_everything(loop: str, listener: socket.socket) -> None:
    """A peer that does not read holds the sender up, and no memory fills."""

    async def main() -> int:
        transport, peer = await connect(listener)
        done = anyio.Event()

        async def send() -> None:
            await transport.send([b"head", memoryview(MUCH), b"tail"])
            done.set()

        async with anyio.create_task_group() as group:
            group.start_soon(send)
            await to_thread.run_sync(peer.recv, 1)  # it has begun
            assert not done.is_set()
            count = 1 + await to_thread.run_sync(_drain, peer, len(MUCH) + 7)
        assert done.is_set()
        peer.close()
        await transport.aclose()
        return count

    assert run(loop, main) == len(MUCH) + 8


def _drain(peer: socket.socket, size: int) -> int:
    count = 0
    while count < size and (data := peer.recv(1 << 20)):
        count += len(data)
    return count


def test_a_sender_that_waits_is_told_of_the_end(loop: str, listener: socket.socket) -> None:
    """The connection is gone; it need not wait for room."""

    async def main() -> None:
        transport, peer = await connect(listener)

        async def reset_soon() -> None:
            await to_thread.run_sync(peer.recv, 1)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, REFUSE)
            peer.close()

        async with anyio.create_task_group() as group:
            group.start_soon(reset_soon)
            with pytest.raises(OSError, match=GONE):
                await transport.send([MUCH])
        await transport.aclose()

    run(loop, main)


def test_a_reset_is_told_to_who_receives(loop: str, listener: socket.socket) -> None:
    """In the system's words."""

    async def main() -> None:
        transport, peer = await connect(listener)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, REFUSE)
        peer.close()
        with pytest.raises(ConnectionResetError):
            await transport.receive(forget)
        with pytest.raises(OSError, match=GONE):
            await transport.send([b"late"])
        await transport.aclose()

    run(loop, main)


def test_what_taking_raises_reaches_who_receives(loop: str, listener: socket.socket) -> None:
    """An event loop would only log it."""

    def fail(_data: Buffer) -> None:
        raise KeyError("mine")

    async def main() -> None:
        transport, peer = await connect(listener)
        with peer:
            peer.sendall(b"x")
            with pytest.raises(KeyError, match="mine"):
                await transport.receive(fail)
        await transport.aclose()

    run(loop, main)


def test_closing_ends_the_connection_at_once(loop: str, listener: socket.socket) -> None:
    """Although the peer takes nothing, and something waits to be sent."""

    async def main() -> None:
        transport, peer = await connect(listener)
        with peer:
            async with anyio.create_task_group() as group:
                group.start_soon(transport.send, [MUCH])
                await to_thread.run_sync(peer.recv, 1)
                group.cancel_scope.cancel()
            await transport.aclose()
            while await to_thread.run_sync(_still_sends, peer):
                pass

    run(loop, main)


def _still_sends(peer: socket.socket) -> bool:
    try:
        return bool(peer.recv(1 << 20))
    except ConnectionResetError:
        return False


def test_a_handshake_that_is_cancelled_closes_the_socket(
    loop: str, listener: socket.socket
) -> None:
    """Nothing is left behind; the peer sees the end."""

    async def main() -> bytes:
        async with anyio.create_task_group() as group:
            action = Connect("127.0.0.1", listener.getsockname()[1], True, 20.0)
            group.start_soon(dial, action, None)
            peer = await to_thread.run_sync(lambda: listener.accept()[0])
            await to_thread.run_sync(peer.recv, 1)  # the handshake has begun
            group.cancel_scope.cancel()
        with peer:
            while data := await to_thread.run_sync(_received, peer):
                pass
            return data

    assert run(loop, main) == b""


def _received(peer: socket.socket) -> bytes:
    try:
        return peer.recv(1 << 20)
    except ConnectionResetError:
        return b""


def test_uvloop_carries_everything_over_tls(server: FakeServer) -> None:
    """A producer, a consumer and a client of an application that uses it."""
    pytest.importorskip("uvloop", reason="uvloop is not installed")
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    values = [bytes(1000)] * 500

    async def main() -> None:
        async with AsyncClient(server.url()) as client:
            assert await client.ping() > 0
        async with AsyncProducer(url, tls=trust, backoff_base=0.001) as producer:
            await producer.send_many(values)
            await producer.flush()
            secure.drop_all()
            await (await producer.send(b"again")).result(timeout=30)
        async with AsyncConsumer(url, tls=trust, stop_at_end=True) as consumer:
            assert [record.value async for record in consumer] == [*values, b"again"]

    with FakeServer(tls=context) as secure:
        url = f"lances://localhost:{secure.port}/orders"
        run("uvloop", main)
