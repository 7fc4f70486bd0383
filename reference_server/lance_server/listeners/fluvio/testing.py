"""Stand-ins for tests: both servers with their log, and a client that sends what it is told."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from lance_server.config.settings import Address
from lance_server.embedded import EmbeddedServer, running
from lance_server.listeners.fluvio.cluster import Cluster
from lance_server.listeners.fluvio.listener import FluvioListener, fluvio_listeners
from lance_server.listeners.fluvio.options import FluvioOptions
from lance_server.storage.contract import StorageBackend
from lance_spec.messages.fluvio import Frame, Request, Response

_DEADLINE: Final = 10.0
LOCAL: Final = Address("127.0.0.1", 0)


class FluvioServers:
    """Running servers and the log behind them.

    Args:
        server: the server that they belong to.
        cluster: what both share.
        listeners: the SPU and the SC.

    Attributes:
        server: the server that they belong to.
        cluster: what both share.
    """

    def __init__(
        self, server: EmbeddedServer, cluster: Cluster, listeners: list[FluvioListener]
    ) -> None:
        self.server = server
        self.cluster = cluster
        self._listeners = listeners

    def __repr__(self) -> str:
        return f"<FluvioServers sc={self.sc} spu={self.spu}>"

    @property
    def spu(self) -> tuple[str, int]:
        """Where the SPU listens."""
        return self._listeners[0].address.host, self._listeners[0].address.port

    @property
    def sc(self) -> tuple[str, int]:
        """Where the SC listens."""
        return self._listeners[1].address.host, self._listeners[1].address.port


@contextmanager
def fluvio_servers(
    data_dir: Path,
    options: FluvioOptions | None = None,
    storage: StorageBackend | None = None,
    **config: Any,
) -> Iterator[FluvioServers]:
    """Run a server with both listeners on free ports.

    Args:
        data_dir: where to keep the data.
        options: settings of the listeners.
        storage: the backend of the log, for tests that make disks fail.
        config: fields of `ServerConfig`.
    """
    cluster = Cluster(options)
    listeners = fluvio_listeners(LOCAL, LOCAL, cluster)
    with running(data_dir, storage=storage, listeners=listeners, **config) as server:
        yield FluvioServers(server, cluster, listeners)


class FluvioPeer:
    """A client that sends exactly what it is told, and reads frame by frame.

    Args:
        address: the server.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=_DEADLINE)
        self._file = self.socket.makefile("rb")
        self._number = 0

    def __repr__(self) -> str:
        return f"<FluvioPeer {self._number} requests>"

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

    def send(self, key: int, version: int, body: bytes) -> int:
        """Send a request; return its correlation id."""
        self._number += 1
        request = Request(
            api_key=key,
            api_version=version,
            correlation_id=self._number,
            client_id="test",
            body=body,
        )
        self.socket.sendall(Frame(body=request.encode()).encode())
        return self._number

    def receive(self) -> Response:
        """Return the next response.

        Raises:
            EOFError: the server closed.
        """
        return Response.decode(self._exactly(int.from_bytes(self._exactly(4), "big")))

    def _exactly(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise EOFError(f"the server closed: {len(data)} of {size} bytes came")
        return data

    def ask(self, key: int, version: int, body: bytes) -> bytes:
        """Send a request and return the body of its response."""
        number = self.send(key, version, body)
        response = self.receive()
        assert response.correlation_id == number, f"{response} answers {number}"
        return response.body

    def closed(self) -> bool:
        """Whether the server ends the connection without a further word."""
        try:
            self.receive()
        except (EOFError, ConnectionError):
            return True
        return False
