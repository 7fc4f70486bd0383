"""Whether a silent peer is an HTTP server, which waits for the end of a line that never comes."""

import contextlib
import socket
from typing import Final

_SECONDS: Final = 0.4
"""For the whole probe."""


def speaks_http(host: str, port: int) -> bool:
    """Ask a server, on a connection of its own, whether it speaks HTTP; never raises."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection((host, port), timeout=_SECONDS) as sock,
    ):
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return sock.recv(5) == b"HTTP/"
    return False
