"""A small HTTP/1.1 server: h11 reads and writes, asyncio moves the bytes."""

import asyncio
import contextlib
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Final

import h11

from lance_server.config.settings import Address
from lance_server.http.http_messages import Request, Response, text
from lance_server.network.peer_log import peer_logger
from lance_server.network.sockets import bind

_log = peer_logger(__name__)
_CHUNK: Final = 64 * 1024
_LARGEST_BODY: Final = 64 * 1024
_LARGEST_HEAD: Final = 32 * 1024
_MOST_CONNECTIONS: Final = 64
_REQUEST_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 60.0


class HttpServer:
    """Answers requests on one address.

    Args:
        address: where to listen.
        answer: returns the answer to a request.

    Attributes:
        address: where it listens; after `start` with the port that was bound.
    """

    def __init__(self, address: Address, answer: Callable[[Request], Awaitable[Response]]) -> None:
        self.address = address
        self._answer = answer
        self._servers: list[asyncio.Server] = []
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def __repr__(self) -> str:
        return f"<HttpServer {self.address} {len(self._tasks)} connections>"

    async def start(self) -> None:
        """Listen.

        Raises:
            ListenError: the address is not to be had.
        """
        sockets = bind(self.address)
        self.address = Address(*sockets[0].getsockname()[:2])
        for each in sockets:
            self._servers.append(await asyncio.start_server(self._accept, sock=each, limit=_CHUNK))

    async def stop(self) -> None:
        """Close everything."""
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= _MOST_CONNECTIONS:
            next(iter(self._tasks)).cancel()  # the oldest: probes must get through
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks[task] = writer
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        with contextlib.suppress(OSError):
            self._tasks.pop(task).close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        exchange = _Exchange(reader, writer)
        try:
            while (request := await exchange.next_request()) is not None:
                if not await exchange.respond(await self._safely(request)):
                    break
        except (h11.RemoteProtocolError, OSError, TimeoutError) as error:
            _log.debug("an HTTP connection ended: %s", error)

    async def _safely(self, request: Request) -> Response:
        try:
            return await self._answer(request)
        except Exception:  # noqa: BLE001 - a mistake here must not end the server
            _log.exception("a mistake of this server at %s %s", request.method, request.path)
            return text(500, "The server made a mistake; its log has the details")


class _Exchange:
    """The requests of one connection, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST_HEAD)
        peer = writer.get_extra_info("peername")
        self._method = b""
        self._is_local = bool(peer) and ipaddress.ip_address(peer[0]).is_loopback

    async def next_request(self) -> Request | None:
        """Return the next request, or None when there is none.

        Raises:
            h11.RemoteProtocolError: it is not HTTP.
            TimeoutError: it does not arrive.
        """
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        async with asyncio.timeout(_IDLE_SECONDS):
            head = await self._next_event()
        if not isinstance(head, h11.Request):
            return None
        self._method = head.method
        body = b""
        async with asyncio.timeout(_REQUEST_SECONDS):
            while isinstance(part := await self._next_event(), h11.Data):
                body += part.data
                if len(body) > _LARGEST_BODY:
                    await self.respond(text(413, "The request is too large"))
                    return None
        path, _, query = head.target.decode("latin-1").partition("?")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        return Request(head.method.decode(), path, query, headers, body, self._is_local)

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_CHUNK))
        return event

    async def respond(self, response: Response) -> bool:
        """Send an answer; return whether the connection goes on."""
        headers = [
            ("content-type", response.content_type),
            ("content-length", str(len(response.body))),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            *response.headers.items(),
        ]
        head = h11.Response(status_code=response.status, headers=headers)
        parts = [self._http.send(head)]
        if self._method != b"HEAD":
            parts.append(self._http.send(h11.Data(data=response.body)))
        parts.append(self._http.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part for part in parts if part))
        async with asyncio.timeout(_REQUEST_SECONDS):
            await self._writer.drain()
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
