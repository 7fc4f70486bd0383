"""A server on a free port, for as long as a context lasts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

Connections = Callable[[], asyncio.BaseProtocol]
"""Makes the protocol of each new connection."""


@asynccontextmanager
async def serving(connections: Connections) -> AsyncIterator[int]:
    """A server on the loopback interface, for as long as the context lasts.

    Args:
        connections: Makes the protocol of each connection.

    Yields:
        The port.
    """
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connections, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
