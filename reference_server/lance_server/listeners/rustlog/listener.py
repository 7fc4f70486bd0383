"""The RustLog listener: its socket, and which clients are let in."""

import asyncio
from typing import Final

from lance_server.config.settings import Address, ServerConfig
from lance_server.listeners.rustlog.connection import Connection
from lance_server.listeners.rustlog.options import RustlogOptions
from lance_server.listeners.rustlog.service import Shared
from lance_server.log.log_manager import LogManager
from lance_server.network.peer_log import peer_logger
from lance_server.network.sockets import bind, not_listening
from lance_server.security.authorizer import Authorizer, Security
from lance_server.security.tls import identity_of

_log = peer_logger(__name__)
_BUFFER: Final = 256 * 1024


class RustlogListener:
    """Serves RustLog's protocol from the server's log.

    Args:
        address: where to listen; port 0 lets the system choose. Published clients know only
            port 9092 of this machine.
        options: dialect, limits and security.

    Attributes:
        name: the protocol.
        address: where it listens; after `start` with the port that was bound.
    """

    name = "rustlog"

    def __init__(self, address: Address, options: RustlogOptions | None = None) -> None:
        self.address = address
        self._options = options or RustlogOptions()
        self._security = self._options.security or Security()
        self._shared: Shared | None = None
        self._listening: list[asyncio.Server] = []
        self._open: dict[Connection, asyncio.Task[None] | None] = {}

    def __repr__(self) -> str:
        return f"<RustlogListener {self.address}: {len(self._open)} connections>"

    async def start(self, engine: LogManager) -> None:
        """Listen, and serve the log to whoever connects.

        Raises:
            ListenError: the address cannot be listened on.
        """
        self._shared = Shared.over(engine, self._options)
        sockets = bind(self.address)
        context = self._security.context
        try:
            for each in sockets:
                self._listening.append(
                    await asyncio.start_server(self._serve, sock=each, ssl=context, limit=_BUFFER)
                )
        except OSError as error:
            self._stop_accepting()
            for each in sockets:
                each.close()
            raise not_listening(self.address, error) from error
        self.address = Address(*sockets[0].getsockname()[:2])

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

    def _stop_accepting(self) -> None:
        for server in self._listening:
            server.close()

    def reload(self, config: ServerConfig) -> None:
        """Take the certificates and rules of a configuration; nothing else of it.

        Raises:
            ConfigError: one of them cannot be used; all stay as they were.
        """
        self._security.reload(config.tls, config.auth, config.access)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= self._options.max_connections:
            _log.warning("rustlog: more than %d connections", self._options.max_connections)
            writer.transport.abort()
            return
        assert self._shared is not None, "it was started"
        authorizer = Authorizer(self._security)
        authorizer.client = identity_of(writer.get_extra_info("ssl_object"))
        connection = Connection(self._shared, reader, writer, authorizer)
        self._open[connection] = asyncio.current_task()
        self._shared.counts.connections.inc()
        try:
            await connection.run()
        except asyncio.CancelledError:
            connection.abort()
        finally:
            del self._open[connection]
            self._shared.counts.connections.dec()
