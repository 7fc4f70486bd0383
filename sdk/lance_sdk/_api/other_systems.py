"""Addresses and connections of the clients for other systems' servers."""

import socket
import ssl
from typing import Any, Final, TypeAlias

import anyio
from anyio.abc import ByteStream, SocketAttribute

from lance_sdk._api.interruptible import ready
from lance_sdk._io.dialer import Dialer, DialFailed
from lance_sdk._io.platform import wait_for
from lance_sdk._protocol.events import Connect
from lance_sdk.errors import Attempt, ConfigError, ConnectFailed, DeadlineExceeded

Address: TypeAlias = tuple[str, int]
Tls: TypeAlias = ssl.SSLContext | bool | None
GONE: Final = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
"""What says that a connection for tasks is of no use any more."""
_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""These protocols have no keepalive of their own; the system's tells of a peer that vanished."""


def parse_address(address: str, default_port: int) -> Address:
    """Return host and port.

    Args:
        address: such as ``localhost:9003``.
        default_port: where such servers usually listen.

    Raises:
        ConfigError: it is not an address.
    """
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(default_port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536):
        raise ConfigError(
            f"{address!r} is not an address: expected HOST:PORT, as in localhost:{default_port}"
        )
    return host, int(port)


def tls_context(tls: Tls) -> ssl.SSLContext | None:
    """Return what protects connections; True stands for the system's authorities."""
    if isinstance(tls, ssl.SSLContext):
        return tls
    return ssl.create_default_context() if tls else None


def is_quiet(sock: Any) -> bool:
    """Whether an idle connection is still open: these servers say nothing unasked."""
    return not wait_for(sock, write=False, seconds=0)


def raw_socket(stream: ByteStream) -> Any:
    """Return the socket below a connection for tasks."""
    return stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - a stream, no database


def connect(address: Address, timeout: float, tls: ssl.SSLContext | None) -> socket.socket:
    """Return a connected socket.

    Args:
        address: the server.
        timeout: seconds that it may take.
        tls: what protects the connection, or None.

    Raises:
        ConnectFailed: the server cannot be reached.
    """
    target = f"{address[0]}:{address[1]}"
    action = Connect(address[0], address[1], tls is not None, timeout)
    try:
        found = Dialer(action, tls, ready).dial().sock
        _set_up(found)
    except DialFailed as failed:
        attempts = [_attempt(target, timeout, *each) for each in failed.tries]
        raise ConnectFailed(target, attempts) from attempts[-1].cause
    found.setblocking(True)
    return found


def _attempt(
    target: str, timeout: float, phase: str, address: str | None, cause: Exception
) -> Attempt:
    if isinstance(cause, DeadlineExceeded):
        cause = DeadlineExceeded(f"no answer in {timeout:g} s")
    return Attempt(target, phase, cause, address)


def _set_up(sock: Any) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):  # not on every system
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def connect_async(
    address: Address,
    timeout: float,  # noqa: ASYNC109 - both APIs take the same parameters
    tls: ssl.SSLContext | None,
) -> ByteStream:
    """Return a connection for tasks; see `connect`.

    Raises:
        ConnectFailed: the server cannot be reached.
    """
    target = f"{address[0]}:{address[1]}"
    try:
        with anyio.fail_after(timeout):
            stream = await _opened(address, tls)
        _set_up(raw_socket(stream))
    except GONE as error:
        raise ConnectFailed(target, [Attempt(target, "tcp", error)]) from error
    return stream


async def _opened(address: Address, tls: ssl.SSLContext | None) -> ByteStream:
    host, port = address
    if tls is None:
        return await anyio.connect_tcp(host, port)
    return await anyio.connect_tcp(host, port, ssl_context=tls, tls_standard_compatible=False)
