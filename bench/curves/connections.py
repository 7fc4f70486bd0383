"""Many connections to a server at once, from one thread: requests out, answers of one size in."""

import selectors
import socket
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from lance_spec.enums import Flag
from lance_spec.limits import HEADER_SIZE

PATIENT = ("--idle-timeout", "600")
"""An option for servers: connections are idle while it is the turn of other points."""
_TIMEOUT = 60.0
_BUFFER = 1 << 20


class _Connection:
    """One connection with requests to send."""

    def __init__(self, peer: socket.socket, answer: int) -> None:
        self._requests = iter(list[bytes]())
        self._peer = peer
        self._payload = answer - HEADER_SIZE
        self._head = b""
        self._left = 0
        """Bytes of the present payload that have not come yet."""
        self.waiting = 0
        """Requests without a whole answer."""

    def ask(self, requests: list[bytes], room: int) -> None:
        """Begin with other requests."""
        self._requests = iter(requests)
        self.send(room)

    def send(self, room: int) -> None:
        """Send requests until so many are on their way, or there are none left."""
        while self.waiting < room and (request := next(self._requests, None)) is not None:
            self._peer.sendall(request)
            self.waiting += 1

    def receive(self, buffer: memoryview) -> None:
        """Count the answers that have come."""
        received = self._peer.recv_into(buffer)
        if not received:
            raise RuntimeError("the server ended the connection")
        place = 0
        while place < received:
            if self._left:
                taken = min(self._left, received - place)
                self._left -= taken
                self.waiting -= not self._left
            else:
                taken = min(HEADER_SIZE - len(self._head), received - place)
                self._head += buffer[place : place + taken]
                self._judge()
            place += taken

    def _judge(self) -> None:
        """Look at a header once all of it is here."""
        if len(self._head) < HEADER_SIZE:
            return
        flags, size = self._head[5], int.from_bytes(self._head[32:36], "little")
        if not flags & Flag.BACKPRESSURE:  # which says that the server is busy, as it should be
            if not flags & (Flag.ACK | Flag.CONTROL) or size != self._payload:
                raise RuntimeError(f"not the answer that was expected: {self._head!r}")
            self._left = size
            self.waiting -= not size
        self._head = b""


class Connections:
    """Connections to one server, and what they do together.

    Args:
        address: ``host:port``.
        count: how many connections.
        answer: bytes of every answer.

    Raises:
        OSError: one cannot be made.
    """

    def __init__(self, address: str, count: int, answer: int) -> None:
        host, port = address.split(":")
        self._stack = ExitStack()
        self._selector = self._stack.enter_context(selectors.DefaultSelector())
        self._buffer = memoryview(bytearray(_BUFFER))
        self._connections = []
        for _ in range(count):
            peer = self._stack.enter_context(socket.create_connection((host, int(port)), _TIMEOUT))
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.append(_Connection(peer, answer))
            self._selector.register(peer, selectors.EVENT_READ, self._connections[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def drive(self, requests: list[list[bytes]], window: int) -> None:
        """Send each connection's requests until all of all are answered.

        Args:
            requests: each connection's.
            window: requests that each has on their way at most.

        Raises:
            RuntimeError: another answer came, or none.
        """
        for connection, wanted in zip(self._connections, requests, strict=True):
            connection.ask(wanted, window)
        busy = sum(1 for connection in self._connections if connection.waiting)
        while busy:
            ready = self._selector.select(_TIMEOUT)
            if not ready:
                raise RuntimeError("the server is silent")
            for key, _ in ready:
                connection = key.data
                connection.receive(self._buffer)
                connection.send(window)
                busy -= not connection.waiting


def drive(address: str, requests: list[bytes], answer: int, window: int = 128) -> None:
    """Send requests over one connection until all are answered."""
    with Connections(address, 1, answer) as connections:
        connections.drive([requests], window)
