"""The connection under the async driver, behind a seam.

`TaskTransport` is what the driver needs. There are two: on asyncio a protocol that the event loop
calls (`lance_sdk._io.tasks.asyncio_transport`), on trio a socket of anyio's
(`lance_sdk._io.tasks.trio_transport`). `lance_sdk._io.tasks.transport_factory` makes the one that
fits.
"""

import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import anyio

from lance_sdk._io.dialer import DialFailed
from lance_sdk._io.resolve import SocketAddress, show, unique
from lance_sdk._io.tls import Tls, TlsSettings, tls_settings
from lance_sdk._protocol.events import Connect
from lance_sdk.errors import ConfigError, DeadlineExceeded
from lance_spec.checksum import Buffer

RECEIVE_BYTES = 256 * 1024
"""Bytes taken from a connection at once."""

T = TypeVar("T")


class TaskTransport(Protocol):
    """A connection; one task receives while another sends."""

    @property
    def address(self) -> str:
        """The peer, for messages."""
        ...

    async def send(self, buffers: list[Buffer]) -> None:
        """Send all of it; they stay untouched until it returns.

        Raises:
            OSError: the connection is gone.
        """
        ...

    async def receive(self, take: Callable[[Buffer], object]) -> None:
        """Hand over what arrives until the peer ends the stream.

        Args:
            take: called with each piece, which counts only until it returns.

        Raises:
            OSError: the connection is gone.
            Exception: what ``take`` raised.
        """
        ...

    async def aclose(self) -> None:
        """Close at once; nothing is said to the peer."""
        ...


Dial: TypeAlias = Callable[[Connect, Tls], Awaitable[TaskTransport]]
"""Makes a transport, or raises `DialFailed`."""


@dataclass(frozen=True, slots=True)
class Secure:
    """How to speak TLS on one connection.

    Attributes:
        settings: the files or the context.
        host: what the server's certificate must say.
    """

    settings: TlsSettings
    host: str


Reach: TypeAlias = Callable[[SocketAddress], Awaitable[T]]
"""Connects to an address."""
Carry: TypeAlias = Callable[[T, str, Secure | None], Awaitable[TaskTransport]]
"""Makes a transport of a connection; closes it when that fails."""


async def dial_with(action: Connect, tls: Tls, reach: Reach[T], carry: Carry[T]) -> TaskTransport:
    """Dial each address of an endpoint in turn, until one answers.

    Args:
        action: what to dial; its timeout counts for each step of each address.
        tls: how to speak TLS.
        reach: connects.
        carry: goes on from there.

    Raises:
        DialFailed: with every address and what was wrong with it.
    """
    tries: list[tuple[str, str | None, Exception]] = []
    settings = tls_settings(tls)
    secure = Secure(settings, settings.server_name or action.host) if action.tls else None
    for address in await _resolve(action):
        phase = "tcp"
        try:
            with anyio.fail_after(action.timeout):
                reached = await reach(address)
            phase = "tls"
            with anyio.fail_after(action.timeout):
                return await carry(reached, show(address), secure)
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
