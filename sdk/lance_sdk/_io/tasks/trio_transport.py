"""A transport over a socket of trio's."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from lance_sdk._io.resolve import SocketAddress
from lance_sdk._io.tasks.transport import RECEIVE_BYTES, Secure
from lance_spec.checksum import Buffer

if TYPE_CHECKING:
    import trio


class StreamTransport:
    """A transport over a byte stream.

    Args:
        stream: the connected stream.
        address: the peer, for messages.
    """

    def __init__(self, stream: ByteStream, address: str) -> None:
        self._stream = stream
        self.address = address

    def __repr__(self) -> str:
        return f"<StreamTransport {self.address}>"

    async def send(self, buffers: list[Buffer]) -> None:
        """Send all of it; a broken connection raises `OSError`."""
        data = buffers[0] if len(buffers) == 1 else b"".join(buffers)
        try:
            await self._stream.send(data if isinstance(data, bytes) else bytes(data))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream) as error:
            # TLS tells the end of the peer's side to a sender, too.
            raise _as_os_error(error) from error

    async def receive(self, take: Callable[[Buffer], object]) -> None:
        """Hand over what arrives until the end of the stream."""
        while True:
            try:
                data = await self._stream.receive(RECEIVE_BYTES)
            except anyio.EndOfStream:
                return
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise _as_os_error(error) from error
            take(data)

    async def aclose(self) -> None:
        """Close at once."""
        await anyio.aclose_forcefully(self._stream)


def _as_os_error(error: Exception) -> OSError:
    """Return the system's own error where anyio tells it."""
    cause = error.__cause__
    return cause if isinstance(cause, OSError) else OSError("connection broken")


class SocketStream(ByteStream):
    """A stream of trio's with the errors of anyio, as `TLSStream` wants it.

    Args:
        stream: the connected stream.
    """

    def __init__(self, stream: "trio.SocketStream") -> None:
        self._stream = stream

    def __repr__(self) -> str:
        return f"<SocketStream {self._stream!r}>"

    async def receive(self, max_bytes: int = RECEIVE_BYTES) -> bytes:
        """Return what arrives; `anyio.EndOfStream` when the peer has ended its side."""
        with _errors_of_anyio():
            data = bytes(await self._stream.receive_some(max_bytes))
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        """Send all of it."""
        with _errors_of_anyio():
            await self._stream.send_all(item)

    async def send_eof(self) -> None:
        """End this side."""
        with _errors_of_anyio():
            await self._stream.send_eof()

    async def aclose(self) -> None:
        """Close at once."""
        await self._stream.aclose()


@contextmanager
def _errors_of_anyio() -> Iterator[None]:
    import trio  # noqa: PLC0415 - only a program that runs on it has it

    try:
        yield
    except trio.ClosedResourceError as error:
        raise anyio.ClosedResourceError from error.__cause__
    except trio.BrokenResourceError as error:
        raise anyio.BrokenResourceError from error.__cause__


async def reach(address: SocketAddress) -> ByteStream:
    """Connect; `anyio.connect_tcp` may lose a socket when it is cancelled as it connects."""
    import trio  # noqa: PLC0415 - as above

    found = trio.socket.socket(address[0], socket.SOCK_STREAM)
    try:
        await found.connect(address[1])
        return SocketStream(trio.SocketStream(found))
    except BaseException:
        found.close()
        raise


async def carry(stream: ByteStream, address: str, secure: Secure | None) -> StreamTransport:
    """Speak TLS, where that is wanted; a stream that does not come to it is closed."""
    if secure is None:
        return StreamTransport(stream, address)
    try:
        wrapped = await TLSStream.wrap(
            stream,
            hostname=secure.host,
            ssl_context=await anyio.to_thread.run_sync(secure.settings.load),  # it reads files
            standard_compatible=False,
        )
    except BaseException:
        with anyio.CancelScope(shield=True):
            await anyio.aclose_forcefully(stream)
        raise
    return StreamTransport(wrapped, address)
