"""One connection of the golden client: bytes in, frames out, and the end of it."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator
from typing import cast

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import KEEPALIVE, ProblemError
from lance_conformance.server.golden.codec import SIZE, Wire, parse


class Connection(asyncio.Protocol):
    """One connection.

    Args:
        rules: How bytes are read.

    Attributes:
        frames: What came and was not looked at yet.
        problem: Why the connection is of no use any more.
        sent: Keepalives sent.
        received: Keepalives received.
        news: Set whenever something has changed.
    """

    def __init__(self, rules: Specified) -> None:
        self.frames: deque[Wire] = deque()
        self.problem: ProblemError | None = None
        self.sent = self.received = 0
        self.news = asyncio.Event()
        self.last_traffic = asyncio.get_running_loop().time()
        self._rules = rules
        self._tail = b""
        self._last_answer = float("-inf")
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take the frames of one read."""
        if self.problem is not None:
            return
        self._tail += data
        try:
            frames = list(self._whole())
        except ProblemError as problem:
            self._fail(problem)
            return
        self._tail = self._rules.kept(self._tail, len(frames))
        for frame in self._rules.served(frames):
            self._take(frame)
        self.news.set()

    def _whole(self) -> Iterator[Wire]:
        while len(self._tail) >= SIZE:
            header = parse(self._tail)
            self._check(header)
            end = SIZE + header.length
            if len(self._tail) < end:
                return
            payload = self._tail[SIZE:end]
            if payload and not self._rules.payload_crc_ok(header, payload):
                raise ProblemError("protocol", "payload checksum")
            self._tail = self._tail[end:]
            yield header._replace(payload=payload)

    def _check(self, header: Wire) -> None:
        rules = self._rules
        checks = (
            ("magic", rules.magic_ok(header.magic)),
            ("version", rules.version_ok(header.version)),
            ("header checksum", rules.header_crc_ok(header)),
            ("reserved bytes", rules.reserved_ok(header.reserved)),
            ("flag bit 7", rules.bit_7_ok(header.flags)),
            ("payload length", rules.length_ok(header.length)),
        )
        for name, right in checks:
            if not right:
                raise ProblemError("protocol", name)

    def _take(self, frame: Wire) -> None:
        if self._rules.has_room(self.frames, frame):
            self.frames.append(frame)
        if courtesy := self._rules.courtesy(frame):
            self.write(courtesy)
        if self._rules.kind(frame.flags) != KEEPALIVE:
            return
        self.received += 1
        now = asyncio.get_running_loop().time()
        if self._rules.answers_keepalive(self.received, self.sent, now - self._last_answer):
            self._last_answer = now
            self.ping()

    def _fail(self, problem: ProblemError) -> None:
        """The stream cannot be trusted any more."""
        if self._rules.gives_up():
            self.problem = self.problem or problem
            self.drop()
        else:
            self._tail = b""
        self.news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end."""
        if not self._rules.notices_the_end():
            return
        how = f": {exc}" if exc else ""
        self.problem = self.problem or ProblemError("closed", f"the connection was closed{how}")
        self.news.set()

    def ping(self) -> None:
        """Send a Keepalive."""
        self.sent += 1
        self.write(self._rules.keepalive())

    def write(self, data: bytes) -> None:
        """Send bytes; on a connection that has ended they go nowhere."""
        self.last_traffic = asyncio.get_running_loop().time()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def wait(self, deadline: float) -> None:
        """Wait for news, at the latest until the deadline."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await self.news.wait()
        self.news.clear()

    def drop(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()
