"""Senders that stall: they cost a bounded time and a bounded amount of memory."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from lance_server.listeners.qwp import QwpOptions, Script
from lance_server.listeners.qwp.session import Session
from lance_server.listeners.qwp.testing import Endpoint, QwpPeer, endpoint, longs, message
from lance_server.runtime.memory_quota import Quota
from lance_server.security.authorizer import Authorizer, Security
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import FaultyStorage, eventually


def gone(qwp: Endpoint) -> bool:
    """Whether nothing is left of any connection."""
    return not qwp.listener._open and qwp.listener.quota.used == 0


def test_a_sender_that_leaves_while_the_disk_stalls_is_forgotten(tmp_path: Path) -> None:
    """With more messages on their way than may wait, and nobody left to tell."""
    disk = FaultyStorage(PwritevStorage())
    options = QwpOptions(max_unanswered=2)
    with endpoint(tmp_path, storage=disk, inline_commits=False, options=options) as qwp:
        peer = QwpPeer(qwp.addr)
        peer.ok(longs("t", 0))
        disk.block_syncs()
        try:
            peer.send(*(longs("t", number) for number in range(1, 20)))
            assert disk.sync_reached.wait(10)
            peer.socket.socket.close()
        finally:
            disk.release_syncs()
        eventually(lambda: gone(qwp))
        peer.__exit__(None, None, None)


def test_more_messages_than_may_wait_are_all_answered(tmp_path: Path) -> None:
    """The bound slows a sender down, and loses nothing."""
    with (
        endpoint(tmp_path, options=QwpOptions(max_unanswered=2)) as qwp,
        QwpPeer(qwp.addr) as peer,
    ):
        assert peer.ok(*(longs("t", number) for number in range(50))).wire_sequence == 49
        assert qwp.values("t") == [*range(50)]


def test_memory_is_given_back_with_the_connection(tmp_path: Path) -> None:
    """Dictionaries, unfinished messages and waiting rows."""
    with endpoint(tmp_path) as qwp:
        peer = QwpPeer(qwp.addr)
        peer.ok(message(b"\0\x02\x03abc\x01d", 0))
        peer.socket.socket.sendall(b"\x82\xff" + (10_000).to_bytes(8) + bytes(4000))
        eventually(lambda: qwp.listener.quota.used > 3000)
        peer.socket.socket.close()
        eventually(lambda: gone(qwp))
        peer.__exit__(None, None, None)


UPGRADE = (
    b"GET /write/v4 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
PINGS = (b"\x89\xfd" + bytes(4) + bytes(125)) * 1000


def flood(peer: socket.socket) -> None:
    """Send pings and read nothing."""
    for _ in range(300):
        peer.sendall(PINGS)


def test_a_flood_of_pings_is_cut_off(tmp_path: Path) -> None:
    """Pongs that nobody reads do not pile up."""
    with endpoint(tmp_path) as qwp:
        address = (qwp.listener.address.host, qwp.listener.address.port)
        with socket.socket() as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.settimeout(20)
            peer.connect(address)
            peer.sendall(UPGRADE)
            assert peer.recv(20).startswith(b"HTTP/1.1 101")
            with pytest.raises(ConnectionError):
                flood(peer)
        eventually(lambda: gone(qwp))


class DeafPeer:
    """A connection whose peer sends one message and never reads."""

    def __init__(self) -> None:
        self.aborted = asyncio.Event()
        self.transport: Any = self
        self._messages = [message(b"\0\0", 0)]

    def abort(self) -> None:
        """Note that the connection was given up."""
        self.aborted.set()

    async def recv(self) -> bytes:
        """Return the message, and then nothing any more."""
        if self._messages:
            return self._messages.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(self, data: bytes) -> None:
        """Wait for a peer that does not read."""
        del data
        await asyncio.Event().wait()

    async def close(self, code: int, reason: str) -> None:
        """Say goodbye."""
        del code, reason


def test_a_sender_that_does_not_read_is_let_go() -> None:
    """An answer that it does not take in time ends its connection."""

    async def serve() -> None:
        peer = DeafPeer()
        session = Session(
            peer,  # type: ignore[arg-type]  # it has what a session uses
            0,
            None,  # type: ignore[arg-type]  # the message has no tables
            QwpOptions(idle_timeout=0.05),
            script=Script(),
            held=Quota(1000).new_holder(),
            authorizer=Authorizer(Security()),
            durable=False,
        )
        async with asyncio.timeout(10):
            await session.run()
        assert peer.aborted.is_set()

    asyncio.run(serve())
