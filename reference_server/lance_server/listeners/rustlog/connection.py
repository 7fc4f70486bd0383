"""One connection: a request in, its answer out, strictly one at a time."""

import asyncio
import socket
from typing import Any, Final

from lance_server.listeners.rustlog.codecs import BINARY, JSON, MAX_FRAME, Form, form_of
from lance_server.listeners.rustlog.refusals import RustlogRefusal
from lance_server.listeners.rustlog.service import Service, Shared
from lance_server.network.fairness import WorkSlice
from lance_server.network.peer_log import peer_logger
from lance_server.runtime.memory_quota import HeldQuota
from lance_server.security.authorizer import Authorizer
from lance_spec.messages.rustlog import ErrorCode, FetchRequest

_log = peer_logger(__name__)
_LENGTH: Final = 4
_READ: Final = 256 * 1024
_IN_PLACE: Final = 32 * 1024
"""Requests and answers up to this size are taken apart on the event loop, others on a thread."""


class Connection:
    """Serves one client.

    Args:
        shared: what all connections share.
        reader: what the client sends.
        writer: what it is sent.
        authorizer: knows what it may do.
    """

    def __init__(
        self,
        shared: Shared,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        authorizer: Authorizer,
    ) -> None:
        self._shared = shared
        self._options = shared.options
        self._reader = reader
        self._writer = writer
        self._service = Service(shared, authorizer)
        self._form: Form = JSON if self._options.dialect == "json" else BINARY
        self._draining = asyncio.Event()
        self._idle = asyncio.Lock()
        peer: socket.socket = writer.get_extra_info("socket")
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __repr__(self) -> str:
        return f"<Connection {type(self._form).__name__}>"

    async def run(self) -> None:
        """Serve until the client leaves, misbehaves or is silent for too long."""
        serving = asyncio.create_task(self._serve())
        draining = asyncio.create_task(self._draining.wait())
        try:
            await asyncio.wait((serving, draining), return_when=asyncio.FIRST_COMPLETED)
            if not serving.done():
                await self._idle.acquire()  # the request that is being carried out is answered
        finally:
            draining.cancel()
            serving.cancel()
            [problem] = await asyncio.gather(serving, return_exceptions=True)
            self._report(problem)
            self._writer.close()

    def drain(self) -> None:
        """Take no more requests."""
        self._draining.set()

    def abort(self) -> None:
        """End at once."""
        self._writer.transport.abort()

    def _report(self, problem: BaseException | None) -> None:
        if isinstance(problem, TimeoutError):
            _log.info("a client is disconnected: it was silent for too long, or took nothing")
            self.abort()
        elif isinstance(problem, Exception) and not isinstance(problem, OSError | EOFError):
            _log.error("a connection failed", exc_info=problem)

    async def _serve(self) -> None:
        """Answer requests one after the other."""
        held = self._shared.memory.new_holder()
        turn = WorkSlice()
        closes = False
        while not closes:
            try:
                async with asyncio.timeout(self._options.idle_timeout):
                    first = await self._reader.readexactly(1)
                async with self._idle:
                    answer, closes = await self._answered(first, held)
                    await self._send(answer)
            finally:
                held.release()
            await turn.step()

    async def _answered(self, first: bytes, held: HeldQuota) -> tuple[bytes, bool]:
        """Return the answer to the request that begins with a byte, and whether it is the last."""
        try:
            payload = await self._frame(first, held)
            self._form = form_of(payload, self._options.dialect)
            return await self._in_time(payload, held), False
        except RustlogRefusal as refusal:
            self._shared.counts.failed.inc()
            return self._form.write(refusal.answer), refusal.closes

    async def _frame(self, first: bytes, held: HeldQuota) -> bytes:
        """Return the payload of a frame; its bytes are held as they come.

        Raises:
            RustlogRefusal: it has none, or too much.
        """
        async with asyncio.timeout(self._options.frame_timeout):
            size = int.from_bytes(first + await self._reader.readexactly(_LENGTH - 1), "big")
            if not 1 <= size <= MAX_FRAME:
                raise self._form.no_frame(size)
            found = bytearray()
            while len(found) < size:
                wanted = min(size - len(found), _READ)
                await held.wait_for(wanted)
                found += await self._reader.readexactly(wanted)
        return bytes(found)

    async def _in_time(self, payload: bytes, held: HeldQuota) -> bytes:
        seconds = self._options.frame_timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._carried_out(payload, held)
        except TimeoutError:
            text = f"Internal server error: not done in {seconds:g} s"
            raise RustlogRefusal(ErrorCode.INTERNAL, text, closes=True) from None

    async def _carried_out(self, payload: bytes, held: HeldQuota) -> bytes:
        form = self._form
        await held.wait_for(len(payload) * form.parsed)
        request = await self._on_thread(len(payload), form.read, payload)
        if isinstance(request, FetchRequest):
            held.release()
            await held.wait_for(min(request.max_bytes, MAX_FRAME) * form.parsed)
        answer = await self._service.handle(request, form)
        size = sum(map(len, getattr(answer, "records", ()))) + getattr(answer, "record_count", 0)
        return await self._written(size, answer)

    async def _written(self, size: int, answer: Any) -> bytes:
        written: bytes = await self._on_thread(size, self._form.write, answer)
        if len(written) <= MAX_FRAME:
            return written
        if not hasattr(answer, "next_offset"):
            text = "Internal server error: the answer does not fit in a frame"
            raise RustlogRefusal(ErrorCode.INTERNAL, text)
        following = answer.next_offset
        text = (
            f"Fetch failed: the record at offset {following - 1} does not fit in a frame; "
            f"go on from offset {following}"
        )
        raise RustlogRefusal(ErrorCode.FETCH_FAILED, text)

    async def _on_thread(self, size: int, work: Any, argument: Any) -> Any:
        """Do what takes time in proportion to a size where it holds up nobody."""
        if size <= _IN_PLACE:
            return work(argument)
        async with self._shared.readers:
            return await asyncio.to_thread(work, argument)

    async def _send(self, payload: bytes) -> None:
        """Send an answer, and wait until the client has taken most of what it was sent.

        Raises:
            TimeoutError: it took too long; the connection is of no use any more.
        """
        self._writer.write(len(payload).to_bytes(_LENGTH, "big"))
        self._writer.write(payload)
        async with asyncio.timeout(self._options.frame_timeout):
            await self._writer.drain()
