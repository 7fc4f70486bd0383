"""A non-blocking socket, plain or TLS, as the thread pump sees it."""

import socket
import ssl
from collections import deque
from collections.abc import Iterable

from lance_spec.checksum import Buffer

_MAX_PARTS = 512
"""Buffers given to one ``sendmsg``; every system takes at least 1024 (IOV_MAX)."""


class Stream:
    """A connected plain socket with what could not be sent yet.

    Args:
        sock: non-blocking and connected.
        address: the peer, for messages.
    """

    def __init__(self, sock: socket.socket, address: str) -> None:
        self.sock = sock
        self.address = address
        self._backlog: deque[memoryview] = deque()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address} backlog={len(self._backlog)}>"

    @property
    def backlog(self) -> bool:
        """Whether something waits for the socket to take it."""
        return bool(self._backlog)

    def queue(self, buffers: Iterable[Buffer]) -> None:
        """Put bytes behind what waits already."""
        self._backlog.extend(map(memoryview, buffers))

    def flush(self) -> None:
        """Send as much as the socket takes.

        Raises:
            OSError: when the connection is gone.
        """
        while self._backlog:
            try:
                self._sent(self._send_some())
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return

    def _send_some(self) -> int:
        parts = [self._backlog[i] for i in range(min(len(self._backlog), _MAX_PARTS))]
        return self.sock.sendmsg(parts)

    def _sent(self, count: int) -> None:
        backlog = self._backlog
        while backlog and count >= len(backlog[0]):
            count -= len(backlog.popleft())
        if count:
            backlog[0] = backlog[0][count:]

    def receive(self, buffer: memoryview) -> int | None:
        """Fill ``buffer`` with what has arrived.

        Returns:
            The number of bytes; 0 at the end of the stream; None when there is nothing now.

        Raises:
            OSError: when the connection is gone.
        """
        try:
            return self.sock.recv_into(buffer)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()


class TlsStream(Stream):
    """The same over TLS, which takes one buffer at a time."""

    def _send_some(self) -> int:
        return self.sock.send(self._backlog[0])


def start_tls(
    sock: socket.socket, context: ssl.SSLContext, host: str, address: str
) -> tuple[TlsStream, ssl.SSLSocket]:
    """Wrap a connected socket; the handshake is still to be done."""
    wrapped = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
    return TlsStream(wrapped, address), wrapped
