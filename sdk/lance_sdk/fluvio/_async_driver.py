"""One connection of the async client."""

import ssl
from typing import TYPE_CHECKING, Any, Final, Self

import anyio

from lance_sdk._api.other_systems import GONE, Address, connect_async, is_quiet, raw_socket
from lance_sdk._io.tasks.closing import close_at_once
from lance_sdk.errors import ConnectionLost, DeadlineExceeded, RemoteProtocolError, TransportError
from lance_sdk.fluvio._asks import Ask
from lance_sdk.fluvio._wire import Wire, not_greeted
from lance_sdk.fluvio.types import FluvioSettings
from lance_spec.fluvio.apis import Server

if TYPE_CHECKING:
    from anyio.abc import ByteStream

_READ: Final = 256 * 1024


class AsyncDriver:
    """Moves the bytes of one connection."""

    def __init__(self, server: Server, address: Address, settings: FluvioSettings) -> None:
        self._lock = anyio.Lock()
        self._timeout = settings.timeout
        self._address = address
        self.peer = f"{address[0]}:{address[1]}"
        self._wire = Wire(server, settings.max_frame)
        self._stream: ByteStream | None = None

    def __repr__(self) -> str:
        return f"<AsyncDriver {self.peer} {self._wire!r}>"

    async def open(self, tls: ssl.SSLContext | None) -> Self:
        self._stream = await connect_async(self._address, self._timeout, tls)
        try:
            self._wire.greeted(await self._answered(self._wire.greet()))
        except (TransportError, RemoteProtocolError) as error:
            await self.close()
            raise not_greeted(error, self._wire.server) from error
        except BaseException:
            await self.close()
            raise
        return self

    @property
    def usable(self) -> bool:
        """Whether the server keeps the connection; only for one without streams."""
        assert self._stream is not None, "it was opened"
        return self._lock.statistics().locked or is_quiet(raw_socket(self._stream))

    async def ask(self, ask: Ask) -> Any:
        """Return what answers a request.

        Raises:
            TransportError: the connection ended.
            DeadlineExceeded: no answer came in time.
        """
        async with self._lock:
            try:
                return await self._answered(self._wire.request(ask))
            except (ConnectionLost, DeadlineExceeded) as error:
                error.maybe_applied = ask.changes
                raise

    async def begin(self, ask: Ask) -> int:
        async with self._lock:
            number = self._wire.request(ask)
            await self._send()
            return number

    async def next(self, number: int, seconds: float | None) -> Any | None:
        """Return the next response of a stream; None when none came in time."""
        async with self._lock:
            with anyio.move_on_after(seconds):
                return await self._wait(number)
        return None

    async def _answered(self, number: int) -> Any:
        try:
            with anyio.fail_after(self._timeout):
                return await self._wait(number)
        except TimeoutError:
            raise DeadlineExceeded(f"{self.peer} did not answer in time") from None

    async def _wait(self, number: int) -> Any:
        await self._send()
        while (response := self._wire.answer(number)) is None:
            self._wire.receive_data(await self._receive())
        return response

    async def _send(self) -> None:
        assert self._stream is not None, "it was opened"
        if data := self._wire.data_to_send():
            try:
                await self._stream.send(data)
            except GONE as error:
                raise ConnectionLost(f"{self.peer}: {error}", peer=self.peer) from error

    async def _receive(self) -> bytes:
        assert self._stream is not None, "it was opened"
        try:
            return await self._stream.receive(_READ)
        except anyio.EndOfStream:
            raise ConnectionLost(f"{self.peer} closed the connection", peer=self.peer) from None
        except GONE as error:
            raise ConnectionLost(f"{self.peer}: {error}", peer=self.peer) from error

    async def close(self) -> None:
        if self._stream is not None:
            await close_at_once(self._stream)
