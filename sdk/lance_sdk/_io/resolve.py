"""Host names to addresses, with a blocking call.

A blocking ``getaddrinfo`` on a thread that is already running works even while the
interpreter ends; event loops hand it to a new thread, which can no longer be started then.
"""

import socket
from collections.abc import Sequence
from typing import Any, TypeAlias

SocketAddress: TypeAlias = tuple[socket.AddressFamily, tuple[Any, ...]]
"""A family, and what ``connect`` takes."""


def resolve(host: str, port: int) -> list[SocketAddress]:
    """Return the addresses of a host, in the order in which to try them.

    Raises:
        OSError: when it has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return unique([(socket.AddressFamily(entry[0]), entry[4]) for entry in found])


def unique(addresses: Sequence[SocketAddress]) -> list[SocketAddress]:
    """Return the addresses without repetitions, in order."""
    return list(dict.fromkeys(addresses))


def show(address: SocketAddress) -> str:
    """Return ``host:port`` of a numeric address."""
    host, port = address[1][:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
