"""The two servers: where clients connect, and which of them are let in."""

import asyncio
from collections.abc import Callable

from lance_server.config.settings import Address, ServerConfig
from lance_server.listeners.fluvio.cluster import Cluster
from lance_server.listeners.fluvio.connection import Connection, Handler, StreamProtocol
from lance_server.listeners.fluvio.controller import Controller
from lance_server.listeners.fluvio.spu import Spu
from lance_server.log.log_manager import LogManager
from lance_server.network.peer_log import peer_logger
from lance_server.network.sockets import bind, not_listening
from lance_server.security.authorizer import Authorizer
from lance_server.security.tls import identity_of
from lance_spec.fluvio.apis import Server

_log = peer_logger(__name__)
_HANDLERS: dict[Server, Callable[[Cluster, Connection], Handler]] = {"sc": Controller, "spu": Spu}
_BUFFER = 256 * 1024


class FluvioListener:
    """Serves one of Fluvio's two servers; both share a `Cluster`, and the SPU starts first.

    Args:
        server: which of the two.
        address: where to listen; port 0 lets the system choose.
        cluster: what both share.

    Attributes:
        name: the protocol.
        address: where it listens; after `start` with the port that was bound.
    """

    def __init__(self, server: Server, address: Address, cluster: Cluster) -> None:
        self.name = f"fluvio-{server}"
        self.address = address
        self._server: Server = server
        self._cluster = cluster
        self._options = cluster.options
        self._listening: list[asyncio.Server] = []
        self._open: dict[Connection, asyncio.Task[None] | None] = {}

    def __repr__(self) -> str:
        return f"<FluvioListener {self.name} {self.address}: {len(self._open)} connections>"

    async def start(self, engine: LogManager) -> None:
        """Listen, and serve the log to whoever connects.

        Raises:
            ListenError: the address cannot be listened on.
        """
        sockets = bind(self.address)
        context = self._cluster.security.context
        loop = asyncio.get_running_loop()
        try:
            for each in sockets:
                self._listening.append(
                    await loop.create_server(self._new_protocol, sock=each, ssl=context)
                )
        except OSError as error:
            self._stop_accepting()
            for each in sockets:
                each.close()
            raise not_listening(self.address, error) from error
        self.address = Address(*sockets[0].getsockname()[:2])
        self._cluster.open(engine)
        if self._server == "spu":
            self._cluster.spu = self.address

    async def stop(self, deadline: float) -> None:
        """Stop accepting, answer what was received until `deadline` (loop time), then close."""
        self._stop_accepting()
        for connection in self._open:
            connection.drain()
        tasks = [task for task in self._open.values() if task is not None]
        if tasks:
            remaining = max(deadline - asyncio.get_running_loop().time(), 0)
            _, late = await asyncio.wait(tasks, timeout=remaining)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._cluster.close()

    def _stop_accepting(self) -> None:
        for server in self._listening:
            server.close()

    def reload(self, config: ServerConfig) -> None:
        """Take the certificates, tokens and rules of a configuration; nothing else of it.

        Raises:
            ConfigError: one of them cannot be used; all stay as they were.
        """
        if self._server == "sc":  # both share them
            self._cluster.security.reload(config.tls, config.auth, config.access)

    def _new_protocol(self) -> StreamProtocol:
        return StreamProtocol(asyncio.StreamReader(_BUFFER), self._serve)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= self._options.max_connections:
            _log.warning("%s: more than %d connections", self.name, self._options.max_connections)
            writer.transport.abort()
            return
        authorizer = Authorizer(self._cluster.security)
        authorizer.client = identity_of(writer.get_extra_info("ssl_object"))
        connection = Connection(self._cluster, reader, writer, authorizer)
        self._open[connection] = asyncio.current_task()
        try:
            await connection.run(_HANDLERS[self._server](self._cluster, connection))
        except asyncio.CancelledError:
            connection.abort()
        finally:
            del self._open[connection]


def fluvio_listeners(sc: Address, spu: Address, cluster: Cluster) -> list[FluvioListener]:
    """Return both servers in the order in which they must start."""
    return [FluvioListener("spu", spu, cluster), FluvioListener("sc", sc, cluster)]
