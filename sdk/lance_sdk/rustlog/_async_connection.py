"""One connection of the client for tasks."""

import ssl
from typing import Final, Self, TypeVar

import anyio
from anyio.abc import ByteStream

from lance_sdk._api.other_systems import GONE, Address, connect_async, is_quiet, raw_socket
from lance_sdk._io.tasks.closing import close_at_once
from lance_sdk.errors import ConnectionLost
from lance_sdk.rustlog._asks import Ask
from lance_sdk.rustlog._connection import late
from lance_sdk.rustlog._wire import Wire

T = TypeVar("T")
_READ: Final = 256 * 1024


class AsyncRustlogConnection:
    """Moves the bytes of one connection.

    Args:
        stream: the connection.
        peer: the broker, for messages.
        timeout: seconds for each request.
    """

    def __init__(self, stream: ByteStream, peer: str, timeout: float) -> None:
        self._stream = stream
        self._peer = peer
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"<AsyncRustlogConnection {self._peer}>"

    @classmethod
    async def open(cls, address: Address, timeout: float, tls: ssl.SSLContext | None) -> Self:  # noqa: ASYNC109 - as in the client for threads
        """Connect.

        Raises:
            ConnectFailed: the broker cannot be reached.
        """
        peer = f"{address[0]}:{address[1]}"
        return cls(await connect_async(address, timeout, tls), peer, timeout)

    @property
    def usable(self) -> bool:
        """Whether the broker keeps the connection."""
        return is_quiet(raw_socket(self._stream))

    async def exchange(self, wire: Wire, frame: bytes, ask: Ask[T]) -> T:
        """Send a request and return what its answer says."""
        try:
            with anyio.fail_after(self._timeout):
                await self._stream.send(frame)
                complete = False
                while not complete:
                    complete = wire.receive_data(await self._stream.receive(_READ))
        except TimeoutError:
            raise late(self._peer, self._timeout, ask) from None
        except GONE as error:
            text = f"{self._peer} closed the connection"
            raise ConnectionLost(text, peer=self._peer, maybe_applied=ask.changes) from error
        return wire.take(ask)

    async def close(self) -> None:
        """Close the connection, also where the caller is cancelled."""
        with anyio.CancelScope(shield=True):
            await close_at_once(self._stream)
