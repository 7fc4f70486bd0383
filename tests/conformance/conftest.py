"""Servers on real sockets, each on a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from lance_conformance.server.golden.server import Connections, serving


class ServerThread:
    """A server that runs beside the test until it is stopped."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self.port = 0
        self._thread.start()
        assert self._ready.wait(10)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stopped = asyncio.Event()
        async with serving(self._connections) as self.port:
            self._ready.set()
            await self._stopped.wait()

    def stop(self) -> None:
        """Stop it and wait until it is gone."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.fixture
def serve() -> Iterator[Callable[[Connections], int]]:
    """Start servers; each call returns the port of a new one."""
    started: list[ServerThread] = []

    def start(connections: Connections) -> int:
        started.append(ServerThread(connections))
        return started[-1].port

    yield start
    for server in started:
        server.stop()
