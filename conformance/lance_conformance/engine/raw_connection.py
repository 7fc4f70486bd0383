"""The socket end of one connection."""

import asyncio
import socket
import ssl
from typing import Literal, cast

from lance_conformance.engine.failures import NotApplicable
from lance_conformance.engine.socket_bytes import unread_bytes
from lance_conformance.engine.transcript import Transcript

READ_AHEAD = 32 * 1024 * 1024
"""Unread bytes at which the kit stops reading, so that no target can fill its memory."""


NARROW = 256 * 1024
"""Bytes that the socket of a slow reader holds, roughly."""
WIDE = 1024 * 1024
"""The same once it reads on."""


class RawConnection(asyncio.Protocol):
    """Bytes in and bytes out of one connection, every one of them recorded.

    Unlike a stream reader it hands out what had arrived before a reset: an error frame that a
    target sends before it closes the connection still counts.

    Args:
        number: The number of the connection within its case.
        transcript: Where the bytes are recorded.
    """

    def __init__(self, number: int, transcript: Transcript) -> None:
        self.number = number
        self.closed: Literal["fin", "rst"] | None = None
        self._transcript = transcript
        self._unread = bytearray()
        self._paused = False
        self._news = asyncio.Event()
        self._transport: asyncio.Transport | None = None

    def __repr__(self) -> str:
        return f"<RawConnection {self.number} closed={self.closed} unread={len(self._unread)}>"

    @property
    def address(self) -> str | None:
        """The address of the target, `None` before the connection stands."""
        peer = self._transport.get_extra_info("peername") if self._transport else None
        return str(peer[0]) if peer else None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Record and keep what arrived; stop reading when too much is unread."""
        self._transcript.received(self.number, data)
        self._unread += data
        self._news.set()
        if len(self._unread) > READ_AHEAD and self._transport is not None:
            self._transport.pause_reading()
            self._paused = True

    def eof_received(self) -> bool:
        """Take the end of the target's half as the end of the connection."""
        self._end("fin")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Record how the connection ended, unless the kit ended it itself."""
        self._end("fin" if exc is None else "rst")
        self._transport = None  # asyncio forgets its loop, and fails when it is aborted again

    def _end(self, how: Literal["fin", "rst"]) -> None:
        if self.closed is None:
            self.closed = how
            self._transcript.closed(self.number, how)
        self._news.set()

    def write(self, data: bytes, fault: str | None = None, shown: bytes | None = None) -> None:
        """Send bytes; on a connection that has ended they go nowhere, which the reader will see.

        Args:
            data: The bytes.
            fault: The field that is wrong on purpose.
            shown: What is recorded in their place, where they hold a secret.
        """
        self._transcript.sent(self.number, data if shown is None else shown, fault)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def take(self) -> bytes:
        """The bytes that arrived since the last call."""
        data = bytes(self._unread)
        self._unread.clear()
        self._news.clear()
        if self._paused and self._transport is not None:
            self._transport.resume_reading()
            self._paused = False
        return data

    def stop_reading(self) -> None:
        """Leave what comes to the sockets, of which ours shall hold little."""
        if self._transport is not None:
            self._hold(NARROW)
            self._transport.pause_reading()

    @property
    def held(self) -> int:
        """Bytes that came and wait in our socket; 0 where the system does not tell."""
        if self._transport is None:
            return 0
        return unread_bytes(self._transport.get_extra_info("socket"))

    def read_on(self) -> None:
        """Read again."""
        if self._transport is not None and not self._transport.is_closing():
            self._hold(WIDE)
            self._transport.resume_reading()

    def _hold(self, size: int) -> None:
        assert self._transport is not None
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)

    async def wait(self, deadline: float) -> bool:
        """Wait for bytes or the end of the connection.

        Args:
            deadline: Time of the event loop's clock.

        Returns:
            Whether there is news; `False` at the deadline.
        """
        try:
            async with asyncio.timeout_at(deadline):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def finish(self) -> None:
        """Send nothing more, and go on listening.

        Raises:
            NotApplicable: The connection is TLS, which ends both directions or none.
        """
        if self._transport is not None and not self._transport.is_closing():
            if not self._transport.can_write_eof():
                raise NotApplicable("TLS cannot end one direction of a connection")
            self._transport.write_eof()

    def drop(self) -> None:
        """End the connection at once, without a trace in the transcript."""
        self.closed = self.closed or "fin"
        if self._transport is not None:
            self._transport.abort()


async def connect(
    host: str,
    port: int,
    connection: RawConnection,
    deadline: float,
    *,
    context: ssl.SSLContext | None = None,
    server_name: str | None = None,
) -> None:
    """Open a connection.

    Args:
        host: Where the target listens.
        port: Where the target listens.
        connection: The protocol that takes the connection.
        deadline: Time of the event loop's clock.
        context: For a TLS connection.
        server_name: The name that the target's certificate must be for.

    Raises:
        OSError: The target refused, or did not answer in time.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout_at(deadline):
            await loop.create_connection(
                lambda: connection,
                host,
                port,
                ssl=context,
                server_hostname=None if context is None else server_name,
            )
    except TimeoutError:
        raise TimeoutError("it was not accepted in time") from None
