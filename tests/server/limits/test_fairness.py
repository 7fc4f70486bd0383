"""No client takes the event loop for itself: every listener works in bounded slices."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lance_server import running
from lance_server.config.settings import Address
from lance_server.embedded import EmbeddedServer
from lance_server.listeners.fluvio.connection import Connection as FluvioConnection
from lance_server.listeners.fluvio.testing import FluvioPeer, fluvio_servers
from lance_server.listeners.rustlog.connection import Connection as RustlogConnection
from lance_server.listeners.rustlog.listener import RustlogListener
from lance_server.network.fairness import SLICE_REQUESTS, SLICE_SECONDS, WorkSlice
from lance_server.testing import RawClient, SessionPeer, eventually, told
from lance_spec.enums import Command
from lance_spec.messages.fluvio import Frame, Request
from lance_spec.messages.lwp import Fetch

FLOOD = 20 * SLICE_REQUESTS


class _Turns:
    """Counts requests in each turn of a server's event loop."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self._seen = count()
        self.most = 0

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        seen = self._count()
        self.most = max(self.most, seen - self._seen)
        self._seen = seen
        loop.call_soon(self.begin, loop)


def turns_of(server: EmbeddedServer, count: Callable[[], int]) -> _Turns:
    """Return what counts requests in each turn of the loop, which has begun."""
    turns, begun, loop = _Turns(count), threading.Event(), server._loop
    assert loop is not None
    loop.call_soon_threadsafe(lambda: (turns.begin(loop), begun.set()))
    assert begun.wait(40)
    return turns


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, method: str) -> Callable[[], int]:
    """Return how often a coroutine of a class was called."""
    calls: list[None] = []
    original = getattr(owner, method)

    async def counting(*args: Any) -> Any:
        calls.append(None)
        return await original(*args)

    monkeypatch.setattr(owner, method, counting)
    return lambda: len(calls)


@contextmanager
def flooding(peer: socket.socket, data: bytes) -> Iterator[None]:
    """Send bytes and throw away what comes back, beside the test."""

    def read() -> None:
        with contextlib.suppress(OSError):  # it is reset when the test has seen enough
            while peer.recv(1024 * 1024):
                pass

    threads = [
        threading.Thread(target=peer.sendall, args=(data,), daemon=True),
        threading.Thread(target=read, daemon=True),
    ]
    for thread in threads:
        thread.start()
    threads[0].join(40)
    yield
    with contextlib.suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)
    threads[1].join(40)


def test_a_slice_ends_with_its_requests() -> None:
    """However quickly they were served."""
    turn = WorkSlice(clock=lambda: 0.0)
    turn.take(SLICE_REQUESTS - 1)
    assert not turn.is_over
    turn.take()
    assert turn.is_over


def test_a_slice_ends_with_its_time() -> None:
    """However few requests were served."""
    now = 0.0
    turn = WorkSlice(clock=lambda: now)
    now = SLICE_SECONDS
    turn.take()
    assert turn.is_over


def test_others_run_when_a_slice_is_used_up() -> None:
    """Between two slices the loop takes one turn."""

    async def serve() -> int:
        others = 0

        def other() -> None:
            nonlocal others
            others += 1
            asyncio.get_running_loop().call_soon(other)

        other()
        turn = WorkSlice(clock=lambda: 0.0)
        for _ in range(10 * SLICE_REQUESTS):
            await turn.step()
        return others

    assert asyncio.run(serve()) >= 10


def test_a_session_yields_after_a_slice() -> None:
    """It says that it could go on, and does so at its next turn."""
    peer = SessionPeer()
    peer.session.receive_data(b"".join(peer.fetch() for _ in range(2 * SLICE_REQUESTS)), peer.now)
    assert peer.counters.answered <= SLICE_REQUESTS
    assert peer.session.yields
    answers = peer.received()
    while some := peer.received():
        answers += some
    assert told(answers) == ["FETCH_RESPONSE"] * 2 * SLICE_REQUESTS


def test_an_lwp_pipeline_leaves_turns_to_others(tmp_path: Path) -> None:
    """What is read is one slice, what waited for its turn another."""
    with running(tmp_path) as server, RawClient(server.address) as client:
        counters = server._running.service.counters
        wanted = client.control(Command.FETCH, Fetch(0, 0, 1024).encode())
        turns = turns_of(server, lambda: counters.answered)
        with flooding(client.socket, wanted * FLOOD):
            eventually(lambda: counters.answered >= FLOOD)
        assert turns.most <= 2 * SLICE_REQUESTS


def test_a_rustlog_pipeline_leaves_turns_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shortest requests that there are, as many as fit in a buffer."""
    served = counted(monkeypatch, RustlogConnection, "_answered")
    listener = RustlogListener(Address("127.0.0.1", 0))
    with running(tmp_path, listeners=[listener]) as server:
        turns = turns_of(server, served)
        with (
            socket.create_connection((listener.address.host, listener.address.port)) as peer,
            flooding(peer, b"\x00\x00\x00\x01\x00" * FLOOD),
        ):
            eventually(lambda: served() >= FLOOD)
        assert turns.most <= SLICE_REQUESTS + 1


def test_a_fluvio_pipeline_leaves_turns_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that are answered at once."""
    served = counted(monkeypatch, FluvioConnection, "_handled")
    request = Request(api_key=18, api_version=2, correlation_id=1, client_id="t", body=b"")
    with fluvio_servers(tmp_path) as servers, FluvioPeer(servers.spu) as peer:
        turns = turns_of(servers.server, served)
        with flooding(peer.socket, Frame(body=request.encode()).encode() * FLOOD):
            eventually(lambda: served() >= FLOOD)
        assert turns.most <= SLICE_REQUESTS + 1
