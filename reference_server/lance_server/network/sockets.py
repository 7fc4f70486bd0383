"""Binds sockets to an address."""

import socket
from typing import Any

from lance_server.config.settings import Address
from lance_server.errors import ListenError


def bind(address: Address) -> list[socket.socket]:
    """Return sockets that are bound to an address and do not listen yet.

    A name may stand for several addresses; with port 0 only one of them is taken, IPv4 first, so
    that there is one port to tell.

    Raises:
        ListenError: the name is unknown, or the address is not to be had.
    """
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except UnicodeError as error:
        raise ListenError(f"cannot listen on {address}: not a host name: {error}") from error
    except OSError as error:
        raise not_listening(address, error) from error
    targets = sorted(
        dict.fromkeys((family, target) for family, _, _, _, target in found),
        key=lambda each: each[0] != socket.AF_INET,
    )
    sockets: list[socket.socket] = []
    try:
        for family, target in targets[:1] if address.port == 0 else targets:
            sockets.append(_bound(family, target))
    except OSError as error:
        for each in sockets:
            each.close()
        raise not_listening(address, error) from error
    return sockets


def _bound(family: int, target: tuple[Any, ...]) -> socket.socket:
    each = socket.socket(family, socket.SOCK_STREAM)
    try:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        each.bind(target)
    except OSError:
        each.close()
        raise
    return each


def not_listening(address: Address, error: OSError) -> ListenError:
    """Return the error that tells why an address cannot be listened on."""
    return ListenError(
        f"cannot listen on {address}: {error.strerror}; "
        "is another server running there, or does the address belong to another machine?"
    )
