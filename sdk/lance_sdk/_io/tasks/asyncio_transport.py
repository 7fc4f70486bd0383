"""A transport that asyncio's event loop calls by itself, with no task and no copy in between.

What arrives is read into one buffer, and handed over before the next read.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import cast

import anyio
import anyio.to_thread
from anyio.lowlevel import cancel_shielded_checkpoint

from lance_sdk._io.resolve import SocketAddress
from lance_sdk._io.tasks.transport import RECEIVE_BYTES, Secure
from lance_spec.checksum import Buffer

_GRACE = 1.0
"""Seconds an event loop may take to let go of a connection that was aborted."""
_NO_LIMIT = 1e6
"""Seconds; the dial has a deadline of its own, and asyncio's must not come before it."""


class ProtocolTransport(asyncio.BufferedProtocol):
    """A transport over one of asyncio's.

    Args:
        address: the peer, for messages.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._loop = asyncio.get_running_loop()
        self._under: asyncio.Transport | None = None
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._take: Callable[[Buffer], object] | None = None
        self._early = b""
        self._error: Exception | None = None
        self._ended = self._loop.create_future()
        self._gone = self._loop.create_future()
        self._room: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<ProtocolTransport {self.address} {self._under!r}>"

    # What the driver calls

    async def send(self, buffers: list[Buffer]) -> None:
        """Send all of it; a broken connection raises `OSError`."""
        under = self._connected()
        if len(buffers) == 1:
            under.write(buffers[0])
        else:
            under.writelines(buffers)
            if under.get_write_buffer_size():
                under.set_write_buffer_limits(0)  # looks at it, as 3.12.0 and 3.13.0 forget to do
        if self._room is not None:
            await self._room
            self._connected()

    async def receive(self, take: Callable[[Buffer], object]) -> None:
        """Hand over what arrives until the end of the stream."""
        assert self._under is not None, "it was connected"
        early, self._early = self._early, b""
        if early:
            take(early)
        if not self._ended.done():
            self._take = take
        if not self._under.is_closing():
            self._under.resume_reading()
        await self._ended
        if self._error is not None:
            raise self._error

    async def aclose(self) -> None:
        """Close at once."""
        assert self._under is not None, "it was connected"
        self._take = None
        self._under.abort()
        with anyio.move_on_after(_GRACE, shield=True):
            await self._gone

    def _connected(self) -> asyncio.Transport:
        under = self._under
        if under is None or under.is_closing():
            raise self._error if isinstance(self._error, OSError) else OSError("connection broken")
        return under

    def _end(self, error: Exception | None) -> None:
        self._take = None
        if not self._ended.done():
            self._error = error
            self._ended.set_result(None)

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read nothing before somebody takes it, and hold nothing back of what is sent."""
        under = cast("asyncio.Transport", transport)  # uvloop's is not a subclass of it
        under.set_write_buffer_limits(0)
        under.pause_reading()
        self._under = under

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to put what arrives."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Hand over what has arrived."""
        if self._take is None:
            self._keep(nbytes)
            return
        try:
            self._take(self._buffer[:nbytes])
        except Exception as error:  # noqa: BLE001 - raised to who receives
            self._end(error)

    def _keep(self, nbytes: int) -> None:
        """Keep what nobody takes yet: uvloop begins to read whatever it was told before."""
        if not self._ended.done():
            self._early += self._buffer[:nbytes]
            if self._under is not None:
                self._under.pause_reading()

    def eof_received(self) -> None:
        """End the stream; the event loop closes the connection."""
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who receives, and who waits for room."""
        if exc is not None and not isinstance(exc, OSError):
            exc = OSError(str(exc) or "connection broken")
        self._end(exc)
        self.resume_writing()
        if not self._gone.done():
            self._gone.set_result(None)

    def pause_writing(self) -> None:
        """Let who sends wait for room."""
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let who sends go on."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)


async def reach(address: SocketAddress) -> socket.socket:
    """Connect."""
    sock = socket.socket(address[0], socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(sock, address[1])
    except BaseException:
        sock.close()
        raise
    return sock


async def carry(sock: socket.socket, address: str, secure: Secure | None) -> ProtocolTransport:
    """Speak TLS, where that is wanted; a socket that does not come to it is closed."""
    try:
        context = None
        if secure is not None:
            context = await anyio.to_thread.run_sync(secure.settings.load)  # it reads files
        _, transport = await asyncio.get_running_loop().create_connection(
            lambda: ProtocolTransport(address),
            sock=sock,
            ssl=context,
            server_hostname=None if secure is None else secure.host,
            ssl_handshake_timeout=None if secure is None else _NO_LIMIT,
        )
    except BaseException:
        await cancel_shielded_checkpoint()  # the event loop closes what it has begun with
        sock.close()
        raise
    return transport
