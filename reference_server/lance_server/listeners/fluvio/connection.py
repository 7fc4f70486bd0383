"""One connection: frames in, responses out, streams beside them."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol

from lance_server.listeners.fluvio.cluster import Cluster
from lance_server.listeners.fluvio.refusals import ProtocolError
from lance_server.network.fairness import WorkSlice
from lance_server.network.peer_log import peer_logger
from lance_server.runtime.memory_quota import HeldQuota
from lance_server.security.authorizer import Authorizer
from lance_spec.errors import DecodeError
from lance_spec.messages.fluvio import Request

_log = peer_logger(__name__)
_LENGTH: Final = 4
_READ: Final = 256 * 1024
_BEGIN: Final = 64 * 1024
"""Bytes of a request that is too large from which it is known what to answer."""
_DISCARDED: Final = 8
"""Times the limit of a request that one may be long and still be answered."""

Answer = bytes | Awaitable[bytes] | None
"""The body of a response, now or later; None where a stream answers."""


class Handler(Protocol):
    """What one of the servers does with the requests of one connection."""

    async def handle(self, request: Request) -> Answer:
        """Carry a request out.

        Raises:
            ProtocolError: it cannot be answered.
            DecodeError: it cannot be read.
        """
        ...

    def oversize(self, request: Request, size: int) -> bytes:
        """Return the answer to a request that is too large, of which this is the begin.

        Raises:
            ProtocolError: it cannot be answered.
        """
        ...

    def at_once(self, frame: bytes) -> tuple[int, bytes | Awaitable[bytes]] | None:
        """Carry out a request that came whole and alone, without waiting for anything.

        Returns:
            Its number, and what answers it; None if it is one for `handle`.
        """
        ...


class StreamProtocol(asyncio.StreamReaderProtocol):
    """Reads a stream; what its connection can serve where it was read is not put into it.

    Attributes:
        serve: takes what was read, and returns whether it was served.
    """

    serve: Callable[[bytes], bool] | None = None

    def data_received(self, data: bytes) -> None:
        """Serve what was read, or let the stream's reader have it."""
        if self.serve is None or not self.serve(data):
            super().data_received(data)


class _Unanswered:
    """Counts requests that wait for their answers."""

    def __init__(self) -> None:
        self.count = 0
        self._fewer = asyncio.Event()

    def __repr__(self) -> str:
        return f"<_Unanswered {self.count}>"

    def add(self) -> None:
        self.count += 1

    def remove(self) -> None:
        self.count -= 1
        self._fewer.set()

    async def wait_below(self, most: int) -> None:
        """Wait until fewer than ``most`` requests wait."""
        while self.count >= most:
            self._fewer.clear()
            await self._fewer.wait()


class Connection:
    """Serves one client.

    Args:
        cluster: what the servers share.
        reader: what the client sends.
        writer: what it is sent; its transport has a `StreamProtocol`.
        authorizer: knows what it may do.

    Attributes:
        authorizer: knows what the client may do.
        local: the address that the client connected to.
    """

    def __init__(
        self,
        cluster: Cluster,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        authorizer: Authorizer,
    ) -> None:
        self._cluster = cluster
        self._options = cluster.options
        self._reader = reader
        self._writer = writer
        self.authorizer = authorizer
        self._handler: Handler | None = None
        self._unanswered = _Unanswered()
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams = 0
        self._is_between = False
        """Whether the reader waits for the first byte of a request."""
        self._heard_at = 0.0
        self._draining = asyncio.Event()
        self._sending = asyncio.Lock()
        peer: socket.socket = writer.get_extra_info("socket")
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.local: str = peer.getsockname()[0]

    def __repr__(self) -> str:
        return f"<Connection {len(self._tasks)} tasks, {self._streams} streams>"

    async def run(self, handler: Handler) -> None:
        """Serve until the client leaves, misbehaves or is silent for too long."""
        self._handler = handler
        protocol = self._writer.transport.get_protocol()
        assert isinstance(protocol, StreamProtocol), "the listener made it"
        protocol.serve = self._serve_at_once
        reading = asyncio.create_task(self._read_all(handler))
        draining = asyncio.create_task(self._draining.wait())
        try:
            await asyncio.wait((reading, draining), return_when=asyncio.FIRST_COMPLETED)
            if draining.done() or not isinstance(reading.exception(), ConnectionError):
                await self._finish()
        finally:
            draining.cancel()
            await self._end(reading)

    def drain(self) -> None:
        """Take no more requests; those that were received are answered."""
        self._draining.set()

    def abort(self) -> None:
        """End at once."""
        self._writer.transport.abort()

    async def _finish(self) -> None:
        """Wait for the requests that wait for the disk; streams have no end to wait for.

        A client that ended only its own side, or sent nonsense after them, wants the answers.
        """
        await self._unanswered.wait_below(1)

    async def _end(self, reading: asyncio.Task[None]) -> None:
        tasks = {reading, *self._tasks}
        for task in tasks:
            task.cancel()
        for problem in await asyncio.gather(*tasks, return_exceptions=True):
            self._report(problem)
        self._writer.transport.abort() if reading.cancelled() else self._writer.close()

    def _report(self, problem: BaseException | None) -> None:
        if isinstance(problem, ProtocolError | DecodeError | TimeoutError):
            _log.info("a client is disconnected: %s", str(problem) or "it was silent for too long")
        elif isinstance(problem, Exception) and not isinstance(problem, OSError | EOFError):
            _log.error("a connection failed", exc_info=problem)

    # Requests ----------------------------------------------------------------------------------

    async def _read_all(self, handler: Handler) -> None:
        turn = WorkSlice()
        while True:
            await turn.step()
            hold = self._cluster.quota.new_holder()
            try:
                frame, size = await self._frame(hold)
                request = Request.decode(frame)
                await self._discard(size - len(frame))
                del frame
                await self._unanswered.wait_below(self._options.max_unanswered)
                if self._draining.is_set():
                    hold.release()
                    return
                answer = await self._handled(handler, request, size)
            except BaseException:
                hold.release()
                raise
            if isinstance(answer, Awaitable):
                self._spawn(self._answer(request.correlation_id, answer, hold))
                continue
            hold.release()
            self._unanswered.remove()
            if answer is not None:
                await self.send(request.correlation_id, answer)

    async def _handled(self, handler: Handler, request: Request, size: int) -> Answer:
        self._unanswered.add()
        try:
            if size > self._options.max_frame:
                return handler.oversize(request, size)
            return await handler.handle(request)
        except BaseException:
            self._unanswered.remove()
            raise

    async def _frame(self, hold: HeldQuota) -> tuple[bytes, int]:
        """Return the next request, without its length; its bytes are held as they come.

        Of a request that is too large only the begin is returned; the size is of the whole.
        """
        first = await self._first_byte()
        async with asyncio.timeout(self._options.frame_timeout):
            size = int.from_bytes(first + await self._reader.readexactly(_LENGTH - 1), "big")
            most = self._options.max_frame
            if size > _DISCARDED * most:
                raise ProtocolError(f"a request of {size} bytes, over the limit of {most}")
            taken = size if size <= most else min(size, _BEGIN)
            found = bytearray()
            while len(found) < taken:
                wanted = min(taken - len(found), _READ)
                await hold.wait_for(wanted)
                found += await self._reader.readexactly(wanted)
        return bytes(found), size

    async def _first_byte(self) -> bytes:
        """Return the first byte of the next request; some before it may be served at once.

        Raises:
            TimeoutError: the client was silent for too long.
        """
        self._heard_at = asyncio.get_running_loop().time()
        while True:
            until = self._heard_at + self._options.idle_timeout
            self._is_between = True
            try:
                async with asyncio.timeout_at(None if self._streams else until):
                    return await self._reader.readexactly(1)
            except TimeoutError:
                if until >= self._heard_at + self._options.idle_timeout:
                    raise
            finally:
                self._is_between = False

    def _serve_at_once(self, data: bytes) -> bool:
        """Serve a request that came whole, with nothing before it; return whether it was served."""
        handler, hold = self._handler, self._cluster.quota.new_holder()
        answered = None
        if handler is not None and self._may_serve_at_once(data, hold):
            answered = handler.at_once(data[_LENGTH:])
        if answered is None:
            hold.release()
            self._is_between = False  # the reader has something to read
            return False
        self._heard_at = asyncio.get_running_loop().time()
        number, answer = answered
        if isinstance(answer, bytes):
            hold.release()
            self._write(number, answer)
        else:
            self._unanswered.add()
            self._spawn(self._answer(number, answer, hold))
        return True

    def _may_serve_at_once(self, data: bytes, hold: HeldQuota) -> bool:
        size = int.from_bytes(data[:_LENGTH], "big")
        return (
            self._is_between
            and len(data) == _LENGTH + size
            and size <= self._options.max_frame
            and self._unanswered.count < self._options.max_unanswered
            and not self._draining.is_set()
            and not self._writer.transport.get_write_buffer_size()
            and hold.hold("request", size)
        )

    async def _discard(self, size: int) -> None:
        """Read the rest of a request that is too large: its answer must find the client reading."""
        async with asyncio.timeout(self._options.frame_timeout):
            while size:
                size -= len(await self._reader.readexactly(min(size, _READ)))

    async def _answer(self, number: int, answer: Awaitable[bytes], hold: HeldQuota) -> None:
        try:
            await self.send(number, await answer)
        finally:
            hold.release()
            self._unanswered.remove()

    async def send(self, number: int, body: bytes) -> None:
        """Send a response, and wait until the client has taken most of what it was sent.

        Raises:
            TimeoutError: it took too long; the connection is of no use any more.
        """
        async with self._sending:
            self._write(number, body)
            try:
                async with asyncio.timeout(self._options.frame_timeout):
                    await self._writer.drain()
            except TimeoutError:
                self._writer.transport.abort()
                raise

    def _write(self, number: int, body: bytes) -> None:
        head = (len(body) + 4).to_bytes(4, "big") + number.to_bytes(4, "big", signed=True)
        self._writer.write(head + body)

    # Streams -----------------------------------------------------------------------------------

    def stream(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something that sends many responses, until it or the connection ends.

        Raises:
            ProtocolError: the client has too many of them.
        """
        if self._streams >= self._options.max_streams:
            raise ProtocolError(f"more than {self._options.max_streams} streams and watches")
        self._streams += 1
        self._spawn(self._streamed(work))

    async def _streamed(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        finally:
            self._streams -= 1

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is None:
            return
        self._report(task.exception())
        self._writer.transport.abort()  # a response is missing: nothing more can be trusted
