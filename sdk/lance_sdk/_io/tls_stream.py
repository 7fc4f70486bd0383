"""A non-blocking TLS socket, loaded only where TLS is spoken."""

import socket
import ssl
from collections.abc import Callable
from typing import ClassVar

from lance_sdk._io.nonblocking_stream import Stream


class TlsStream(Stream):
    """A stream over TLS, which takes one buffer at a time.

    Args:
        sock: a connected socket, without a handshake.
        context: how to speak TLS.
        host: the name that the server's certificate must bear.
        address: the peer, for messages.
    """

    not_now: ClassVar[tuple[type[OSError], ...]] = (
        BlockingIOError,
        ssl.SSLWantReadError,
        ssl.SSLWantWriteError,
    )
    plain: ClassVar[bool] = False

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, host: str, address: str
    ) -> None:
        self._wrapped = context.wrap_socket(
            sock, server_hostname=host, do_handshake_on_connect=False
        )
        super().__init__(self._wrapped, address)

    @property
    def decrypted(self) -> bool:
        """Whether TLS holds decrypted bytes, of one TLS record at most."""
        return self._wrapped.pending() > 0

    def shake_hands(self, wait: Callable[[socket.socket, bool], None]) -> None:
        """Agree on keys with the server.

        Args:
            wait: waits until a socket is writable, or readable when the flag is False; raises
                where that takes too long.

        Raises:
            OSError: the handshake failed.
        """
        while True:
            try:
                self._wrapped.do_handshake()
            except ssl.SSLWantReadError:
                wait(self._wrapped, False)
            except ssl.SSLWantWriteError:
                wait(self._wrapped, True)
            else:
                return

    def _send_some(self) -> int:
        return self.sock.send(self._backlog[0])
