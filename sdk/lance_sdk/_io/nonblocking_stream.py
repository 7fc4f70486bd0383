"""A non-blocking socket as the thread driver sees it; `TlsStream` is the same over TLS."""

import socket
from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from lance_sdk._io.platform import send_parts
from lance_spec.checksum import Buffer

_MAX_PARTS = 512
"""Buffers given to one ``sendmsg``; every system takes at least 1024 (IOV_MAX)."""


class Stream:
    """A connected plain socket with what could not be sent yet.

    Args:
        sock: non-blocking and connected.
        address: the peer, for messages.
    """

    not_now: ClassVar[tuple[type[OSError], ...]] = (BlockingIOError,)
    """What the socket raises where it can take or give nothing at the moment."""
    plain: ClassVar[bool] = True
    """Whether bytes go through the socket as they are, and none is kept on this side of it."""

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

    @property
    def decrypted(self) -> bool:
        """Whether bytes have arrived that ``select`` cannot see."""
        return False

    def queue(self, buffers: Iterable[Buffer]) -> None:
        """Put bytes after what waits already."""
        self._backlog.extend(map(memoryview, buffers))

    def flush(self) -> None:
        """Send as much as the socket takes.

        Raises:
            OSError: when the connection is gone.
        """
        while self._backlog:
            try:
                self._sent(self._send_some())
            except self.not_now:
                return

    def _send_some(self) -> int:
        parts = [self._backlog[i] for i in range(min(len(self._backlog), _MAX_PARTS))]
        return send_parts(self.sock, parts)

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
        except self.not_now:
            return None

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()
