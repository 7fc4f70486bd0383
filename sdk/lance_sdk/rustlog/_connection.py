"""One connection of the client for threads."""

import socket
import ssl
import time
from typing import Any, Final, Self, TypeVar

from lance_sdk._api.interruptible import receive, send_all
from lance_sdk._api.other_systems import Address, connect, is_quiet
from lance_sdk.errors import ConnectionLost, DeadlineExceeded
from lance_sdk.rustlog._asks import Ask
from lance_sdk.rustlog._wire import Wire

T = TypeVar("T")
_READ: Final = 256 * 1024


def late(peer: str, seconds: float, ask: Ask[Any]) -> DeadlineExceeded:
    """Return the error for an answer that did not come in time."""
    text = f"{peer} did not answer in {seconds:g} s"
    return DeadlineExceeded(text, maybe_applied=ask.changes)


class RustlogConnection:
    """Moves the bytes of one connection.

    Args:
        connection: the connection.
        peer: the broker, for messages.
        timeout: seconds for each request.
    """

    def __init__(self, connection: socket.socket, peer: str, timeout: float) -> None:
        self._socket = connection
        self._peer = peer
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"<RustlogConnection {self._peer}>"

    @classmethod
    def open(cls, address: Address, timeout: float, tls: ssl.SSLContext | None) -> Self:
        """Connect.

        Raises:
            ConnectFailed: the broker cannot be reached.
        """
        return cls(connect(address, timeout, tls), f"{address[0]}:{address[1]}", timeout)

    @property
    def usable(self) -> bool:
        """Whether the broker keeps the connection."""
        return is_quiet(self._socket)

    def exchange(self, wire: Wire, frame: bytes, ask: Ask[T]) -> T:
        """Send a request and return what its answer says."""
        deadline = time.monotonic() + self._timeout
        try:
            send_all(self._socket, frame, deadline)
            complete = False
            while not complete:
                complete = wire.receive_data(self._received(ask, deadline))
        except TimeoutError:
            raise late(self._peer, self._timeout, ask) from None
        except ConnectionLost:
            raise
        except OSError as error:
            text = f"{self._peer}: {error}"
            raise ConnectionLost(text, peer=self._peer, maybe_applied=ask.changes) from error
        return wire.take(ask)

    def _received(self, ask: Ask[Any], deadline: float) -> bytes:
        data = receive(self._socket, _READ, deadline)
        if not data:
            text = f"{self._peer} closed the connection"
            raise ConnectionLost(text, peer=self._peer, maybe_applied=ask.changes)
        return data

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
