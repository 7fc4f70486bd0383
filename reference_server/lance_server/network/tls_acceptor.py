"""Letting TLS connections in: handshakes cost memory before anybody is known, so they are few."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Final

from lance_server.network.peer_log import peer_logger

_log = peer_logger(__name__)

MOST_HANDSHAKES: Final = 256
"""Handshakes under way at once; beyond it the oldest makes room."""

_PAUSE: Final = 1.0


class TlsAcceptor:
    """Accepts connections on a socket and makes them TLS.

    Args:
        listening: the socket, which listens.
        greet: returns the protocol of a new connection.
        context: certificates.
        timeout: seconds that a handshake may take.
    """

    def __init__(
        self,
        listening: socket.socket,
        greet: Callable[[], asyncio.BaseProtocol],
        context: ssl.SSLContext,
        timeout: float,
    ) -> None:
        self._listening = listening
        self._greet = greet
        self._context = context
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._accepting = self._loop.create_task(self._accept())

    def __repr__(self) -> str:
        return f"<TlsAcceptor {len(self._handshakes)} handshakes>"

    def close(self) -> None:
        """Accept nobody any more, and end handshakes that are under way; twice is once."""
        if self._listening.fileno() < 0:
            return
        self._accepting.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()
        for task in list(self._handshakes):
            task.cancel()

    async def _accept(self) -> None:
        while True:
            try:
                connection, _ = await self._loop.sock_accept(self._listening)
            except OSError as error:
                _log.error("cannot accept connections: %s", error)
                await asyncio.sleep(_PAUSE)
                continue
            if len(self._handshakes) >= MOST_HANDSHAKES:
                oldest = next(iter(self._handshakes))
                self._forget(oldest)
                oldest.cancel()
            task = self._loop.create_task(self._shake_hands(connection))
            self._handshakes[task] = None
            task.add_done_callback(self._forget)
            await asyncio.sleep(0)  # accept() does not yield while connections wait

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._handshakes.pop(task, None)

    async def _shake_hands(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._greet,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._timeout,
            )
        except OSError as error:  # certificates that do not fit and time that is up among them
            _log.debug("a TLS handshake failed: %s", error)
            with contextlib.suppress(OSError):
                connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise
