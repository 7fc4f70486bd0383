"""Servers that attack the kit: it must end in time whatever they do."""

import asyncio
import socket
import struct
from collections.abc import Mapping

from lance_conformance.golden.codec import Reply
from lance_conformance.golden.server import GOLDEN, Connections, Session
from lance_conformance.golden.specified import Specified
from lance_conformance.mutants.null import Null, React

DRIBBLE = 0.02
"""Seconds between two bytes of the slowest server."""


class NeverCloses(Session):
    """A golden server, but for one thing: it never closes a connection."""

    def hang_up(self) -> None:
        """Stay."""


class Floods(asyncio.Protocol):
    """A server that sends Keepalives for as long as anybody listens.

    Args:
        rules: A golden server, for its encoding.
    """

    def __init__(self, rules: Specified) -> None:
        self._burst = rules.encode(Reply(0x20)) * 256
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport
        self._send()

    def resume_writing(self) -> None:
        """Go on."""
        self._send()

    def _send(self) -> None:
        transport = self._transport
        if not isinstance(transport, asyncio.WriteTransport) or transport.is_closing():
            return
        transport.write(self._burst)
        if transport.get_write_buffer_size() == 0:
            asyncio.get_running_loop().call_soon(self._send)


def _dribble(server: Null, data: bytes) -> None:
    if not data:
        return
    loop = asyncio.get_running_loop()
    answer = server.rules.encode(Reply(0x40, 0x80, b'{"topics": []}'))
    for position in range(len(answer)):
        loop.call_later(DRIBBLE * position, server.say, answer[position : position + 1])


def _announce_4_gib(server: Null, data: bytes) -> None:
    if data:
        header = bytearray(server.rules.encode(Reply(0x40, 0x80)))
        header[32:36] = b"\xff\xff\xff\xff"
        server.say(bytes(header))


class Resets(asyncio.Protocol):
    """A server that resets every connection at the first byte."""

    def __init__(self) -> None:
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport

    def data_received(self, _data: bytes) -> None:
        """Reset."""
        if self._transport is not None:
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.close()


def _reacting(react: React, rules: type[Specified]) -> Connections:
    return lambda: Null(react, rules())


def hostile(dialect: str) -> Mapping[str, Connections]:
    """The connections of every hostile server, by its name."""
    rules = GOLDEN[dialect]
    shared = rules()
    return {
        "dribbles": _reacting(_dribble, rules),
        "announces-4-gib": _reacting(_announce_4_gib, rules),
        "floods": lambda: Floods(rules()),
        "never-closes": lambda: NeverCloses(shared),
        "resets": Resets,
    }
