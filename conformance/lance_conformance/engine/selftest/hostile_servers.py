"""Servers that attack the kit: it must end in time whatever they do."""

import asyncio
import socket
import struct

from lance_conformance.engine.selftest.null_servers import NullServer, React
from lance_conformance.engine.selftest.test_server import Connections

DRIBBLE = 0.02
"""Seconds between two bytes of the slowest server."""


class Floods(asyncio.Protocol):
    """A server that sends the same bytes for as long as anybody listens.

    Args:
        burst: The bytes of one write.
    """

    def __init__(self, burst: bytes) -> None:
        self._burst = burst
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


def dribbles(answer: bytes) -> React:
    """A server that answers one byte at a time, with pauses.

    Args:
        answer: The right answer to the control probe.
    """

    def react(server: NullServer, data: bytes) -> None:
        if not data:
            return
        loop = asyncio.get_running_loop()
        for position in range(len(answer)):
            loop.call_later(DRIBBLE * position, server.say, answer[position : position + 1])

    return react


def reacting(react: React) -> Connections:
    """The connections of a server that reacts so."""
    return lambda: NullServer(react)
