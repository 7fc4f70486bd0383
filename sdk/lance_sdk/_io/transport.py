"""The connection under the async pump, behind a seam.

`Transport` is what the pump needs; `dial` makes one from anyio's streams, which run on asyncio
and trio alike. Something closer to one of them, such as an ``asyncio.Protocol``, can take its
place without touching the pump.
"""

import os
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

import anyio
import anyio.to_thread
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from lance_sdk._core.events import Connect
from lance_sdk._io.dialer import DialFailed
from lance_sdk._io.resolve import SocketAddress, show, unique
from lance_sdk._io.tls import Tls, TlsSettings, tls_settings
from lance_sdk.errors import ConfigError, DeadlineExceeded
from lance_spec.checksum import Buffer

_RECEIVE_BYTES = 256 * 1024


class Transport(Protocol):
    """A connection; one task receives while another sends."""

    @property
    def address(self) -> str:
        """The peer, for messages."""
        ...

    async def send(self, buffers: list[Buffer]) -> None:
        """Send all of it.

        Raises:
            OSError: the connection is gone.
        """
        ...

    async def receive(self) -> Buffer:
        """Return the next bytes; none at the end of the stream.

        Raises:
            OSError: the connection is gone.
        """
        ...

    async def aclose(self) -> None:
        """Close at once; nothing is said to the peer."""
        ...


Dial: TypeAlias = Callable[[Connect, Tls], Awaitable[Transport]]
"""Makes a transport, or raises `DialFailed`."""


class AnyioTransport:
    """A transport over an anyio byte stream.

    Args:
        stream: the connected stream.
        address: the peer, for messages.
    """

    def __init__(self, stream: ByteStream, address: str) -> None:
        self._stream = stream
        self.address = address

    def __repr__(self) -> str:
        return f"<AnyioTransport {self.address}>"

    async def send(self, buffers: list[Buffer]) -> None:
        """Send all of it; a broken connection raises `OSError`."""
        data = buffers[0] if len(buffers) == 1 else b"".join(buffers)
        try:
            await self._stream.send(data if isinstance(data, bytes) else bytes(data))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise _as_os_error(error) from error

    async def receive(self) -> Buffer:
        """Return the next bytes; none at the end of the stream."""
        try:
            return await self._stream.receive(_RECEIVE_BYTES)
        except anyio.EndOfStream:
            return b""
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise _as_os_error(error) from error

    async def aclose(self) -> None:
        """Close at once."""
        await anyio.aclose_forcefully(self._stream)


def _as_os_error(error: Exception) -> OSError:
    """Return the system's own error where anyio tells it."""
    cause = error.__cause__
    return cause if isinstance(cause, OSError) else OSError("connection broken")


async def dial(action: Connect, tls: Tls) -> Transport:
    """Dial each address of an endpoint in turn, until one answers.

    Raises:
        DialFailed: with every address and what was wrong with it.
    """
    tries: list[tuple[str, str | None, Exception]] = []
    settings = tls_settings(tls)
    for address in await _resolve(action):
        phase = "tcp"
        try:
            with anyio.fail_after(action.timeout):
                stream: ByteStream = await anyio.connect_tcp(str(address[1][0]), action.port)
            phase = "tls"
            return AnyioTransport(await _secure(stream, action, settings), show(address))
        except (OSError, ConfigError, anyio.EndOfStream, anyio.BrokenResourceError) as error:
            tries.append((phase, show(address), _plain(error, action)))
    raise DialFailed(tries)


async def _resolve(action: Connect) -> list[SocketAddress]:
    try:
        with anyio.fail_after(action.timeout):
            found = await anyio.getaddrinfo(action.host, action.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise DialFailed([("dns", None, _plain(error, action))]) from None
    return unique([(entry[0], entry[4]) for entry in found])


async def _secure(stream: ByteStream, action: Connect, tls: TlsSettings) -> ByteStream:
    if not action.tls:
        return stream
    try:
        with anyio.fail_after(action.timeout):
            return await TLSStream.wrap(
                stream,
                hostname=tls.server_name or action.host,
                ssl_context=await anyio.to_thread.run_sync(tls.load),  # it reads files
                standard_compatible=False,
            )
    except BaseException:
        with anyio.CancelScope(shield=True):
            await anyio.aclose_forcefully(stream)
        raise


def _plain(error: Exception, action: Connect) -> Exception:
    """Return the error that says most, in the system's own words."""
    if isinstance(error, ConfigError):
        return error
    if type(error) is TimeoutError:
        return DeadlineExceeded(f"no answer in {action.timeout:.1f} s (connect_timeout)")
    if isinstance(error, UnicodeError):
        return OSError(f"not a host name: {error}")
    if isinstance(error, anyio.EndOfStream | anyio.BrokenResourceError):
        return OSError("the server ended the connection")
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    if isinstance(cause, ConnectionError) and cause.errno is not None:
        return OSError(cause.errno, os.strerror(cause.errno))
    return cause
