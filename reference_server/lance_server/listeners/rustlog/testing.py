"""Stand-ins for tests: a broker with its log, and a client that sends what it is told."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from lance_server.config.settings import Address
from lance_server.embedded import EmbeddedServer, running
from lance_server.listeners.rustlog.listener import RustlogListener
from lance_server.listeners.rustlog.options import RustlogOptions
from lance_server.storage.contract import StorageBackend
from lance_spec.messages import rustlog as messages
from lance_spec.messages.rustlog import ErrorResponse, Frame
from lance_spec.rustlog import json_messages

_DEADLINE: Final = 10.0


class Broker:
    """A running listener and the log behind it.

    Args:
        server: the server that it belongs to.
        listener: the listener.

    Attributes:
        server: the server that it belongs to.
    """

    def __init__(self, server: EmbeddedServer, listener: RustlogListener) -> None:
        self.server = server
        self._listener = listener

    def __repr__(self) -> str:
        return f"<Broker {self.address}>"

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return self._listener.address.host, self._listener.address.port


@contextmanager
def broker(
    data_dir: Path,
    options: RustlogOptions | None = None,
    storage: StorageBackend | None = None,
    **server: Any,
) -> Iterator[Broker]:
    """Run a server with the listener on a free port for the length of a ``with`` block."""
    listener = RustlogListener(Address("127.0.0.1", 0), options)
    with running(data_dir, storage=storage, listeners=[listener], **server) as embedded:
        yield Broker(embedded, listener)


class RustlogPeer:
    """A client that sends exactly what it is told, and reads frame by frame.

    Args:
        address: the broker.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=_DEADLINE)
        self._file = self.socket.makefile("rb")

    def __repr__(self) -> str:
        return f"<RustlogPeer {self.socket.getpeername()}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self.socket.close()

    def send(self, payload: bytes) -> None:
        """Send a frame."""
        self.socket.sendall(Frame(payload=payload).encode())

    def receive(self) -> bytes:
        """Return the payload of the next frame.

        Raises:
            EOFError: the broker closed.
        """
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def _exactly(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise EOFError(f"the broker closed: {len(data)} of {size} bytes came")
        return data

    def ask(self, request: Any) -> Any:
        """Send a binary request and return its answer, which is of the same type or an error."""
        self.send(request.encode())
        payload = self.receive()
        if payload[0] == ErrorResponse.TYPE:
            return ErrorResponse.decode(payload)
        return _answer_to(type(request)).decode(payload)

    def ask_json(self, request: json_messages.JsonRequest) -> json_messages.JsonAnswer:
        """Send a JSON request and return its answer."""
        self.send(json_messages.encode_request(request))
        return json_messages.decode_answer(self.receive())

    def refused(self, payload: bytes) -> tuple[int, str]:
        """Send a payload and return code and text of the binary error that answers it."""
        self.send(payload)
        error = ErrorResponse.decode(self.receive())
        return error.code, error.message

    def closed(self) -> bool:
        """Whether the broker ends the connection without a further word."""
        try:
            self.receive()
        except (EOFError, ConnectionError):
            return True
        return False


def _answer_to(request: type) -> Any:
    name = request.__name__.replace("Request", "Response")
    return getattr(messages, name)
