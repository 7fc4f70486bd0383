"""Connections in memory: bytes take their time, links break or fall silent."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import anyio
from tests.simulation.groups.loop import PROCESS, SimulatedLoop

from lance_sdk._io.dialer import DialFailed


class End:
    """One end of a link; satisfies what drivers and the coordinator need of a connection.

    Attributes:
        address: of the other end.
    """

    def __init__(self, link: "Link", address: str) -> None:
        self._link = link
        self._data = bytearray()
        self._news = asyncio.Event()
        self._error: OSError | None = None
        self._over = False
        self.address = address
        self.other: End

    @property
    def open(self) -> bool:
        """Whether it was not closed, here or there."""
        return not self._over

    def arrive(self, data: bytes) -> None:
        """Take bytes."""
        self._data += data
        self._news.set()

    def end(self, error: OSError | None) -> None:
        """Take note that the link is over."""
        self._over, self._error = True, self._error or error
        self._news.set()

    async def _send(self, data: bytes) -> None:
        if self._over:
            raise self._error or ConnectionResetError(104, "Connection reset by peer")
        self._link.carry(self.other, data)
        await asyncio.sleep(0)

    async def _next(self) -> bytes:
        while not self._data:
            if self._over:
                if self._error is not None:
                    raise self._error
                return b""
            self._news.clear()
            await self._news.wait()
        data = bytes(self._data)
        self._data.clear()
        return data

    async def aclose(self) -> None:
        """Close: the other end learns it, if anything arrives there."""
        self.end(None)
        self._link.hang_up(self.other)


class ClientEnd(End):
    """The end of who dialled: a `lance_sdk._io.tasks.transport.Transport`."""

    async def send(self, buffers: list[Any]) -> None:
        """Send buffers."""
        await self._send(b"".join(bytes(each) for each in buffers))

    async def receive(self, take: Callable[[bytes], object]) -> None:
        """Hand over what arrives until the end."""
        while data := await self._next():
            take(data)


class ServerEnd(End):
    """The end of who was dialled: a byte stream of anyio's."""

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        try:
            await self._send(bytes(data))
        except OSError as error:
            raise anyio.BrokenResourceError from error

    async def receive(self, size: int) -> bytes:
        """Return what comes next."""
        del size
        try:
            data = await self._next()
        except OSError as error:
            raise anyio.BrokenResourceError from error
        if not data:
            raise anyio.EndOfStream
        return data


class Link:
    """A connection between a process and a service.

    Attributes:
        who: dialled.
        host: was dialled.
        silent: whether bytes vanish, and nobody is told.
        over: whether it has ended.
    """

    def __init__(self, network: "Network", who: str, host: str) -> None:
        self._network = network
        self._last: dict[End, float] = {}
        self.who = who
        self.host = host
        self.silent = False
        self.over = False
        self.near = ClientEnd(self, f"{host}:1")
        self.far = ServerEnd(self, who)
        self.near.other, self.far.other = self.far, self.near

    def carry(self, to: End, data: bytes) -> None:
        """Carry bytes; those sent first arrive first."""
        if not self.silent and not self.over:
            self._later(to, lambda: to.arrive(data))

    def hang_up(self, to: End) -> None:
        """Tell one end that the other has closed."""
        if not self.silent and not self.over:
            self._later(to, lambda: to.end(None))

    def _later(self, to: End, what: Callable[[], object]) -> None:
        loop = self._network.loop
        at = max(self._last.get(to, 0.0) + 1e-6, loop.now + self._network.latency())
        self._last[to] = at
        token = PROCESS.set("world")
        loop.call_at(at, self._unless_over, what)
        PROCESS.reset(token)

    def _unless_over(self, what: Callable[[], object]) -> None:
        if not self.silent and not self.over:
            what()

    def cut(self) -> None:
        """End it for both, at once."""
        self.over = True
        for end in (self.near, self.far):
            end.end(ConnectionResetError(104, "Connection reset by peer"))


class Network:
    """All links.

    Args:
        loop: the event loop.
        random: decides latencies.

    Attributes:
        services: what answers at a host, while it does.
        links: that are in use.
    """

    def __init__(self, loop: SimulatedLoop, random: Random) -> None:
        self.loop = loop
        self._random = random
        self.services: dict[str, Callable[[ServerEnd], Awaitable[None]]] = {}
        self.links: list[Link] = []
        self.slow = 1.0

    def latency(self) -> float:
        """Return how long bytes take."""
        return self._random.uniform(0.0005, 0.02) * self.slow

    async def dial(self, action: Any, tls: Any) -> ClientEnd:
        """Connect to a service.

        Raises:
            DialFailed: nobody is there.
        """
        del tls
        await asyncio.sleep(self.latency())
        service = self.services.get(action.host)
        if service is None:
            refused = ConnectionRefusedError(111, "Connection refused")
            raise DialFailed([("tcp", action.host, refused)])
        link = Link(self, PROCESS.get(), action.host)
        self.links = [each for each in self.links if not each.over]
        self.links.append(link)
        token = PROCESS.set(action.host)
        self.loop.create_task(self._serve(service, link))
        PROCESS.reset(token)
        return link.near

    async def _serve(self, service: Callable[[ServerEnd], Awaitable[None]], link: Link) -> None:
        try:
            await service(link.far)
        finally:
            await link.far.aclose()

    def of(self, who: str, host: str | None = None) -> list[Link]:
        """Return the links of a process, or those to one host."""
        return [
            link
            for link in self.links
            if not link.over and link.who == who and host in {None, link.host}
        ]

    def drop_host(self, host: str) -> None:
        """Take a service away, with all links to it."""
        self.services.pop(host, None)
        for link in self.links:
            if link.host == host and not link.over:
                link.cut()
