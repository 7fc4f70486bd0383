"""The golden servers: two sockets around one set of rules."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import cast

from lance_conformance.fluvio.golden.codec import Cursor, Malformed
from lance_conformance.fluvio.golden.framing import Head, Replies, Reply
from lance_conformance.fluvio.golden.objects import (
    code,
    read_creation,
    read_deletion,
)
from lance_conformance.fluvio.golden.reading import ReadingRules
from lance_conformance.fluvio.golden.state import (
    Connection,
    Memory,
    Refused,
    Watch,
)

DIALECT = "published"


class Rules(ReadingRules):
    """All hooks together."""

    def __init__(self) -> None:
        self.memory = Memory()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} topics={len(self.memory.topics)}>"

    # Pushing -------------------------------------------------------------------------------------

    def woken(self) -> None:
        """After every request: whoever has something to push does."""
        self.memory.wake()

    def pushes_on(self, _connection: Connection, /) -> bool:
        """Every connection is pushed to."""
        return True

    def watches(self, connection: Connection, watch: Watch, /) -> None:
        """Keep a watch beside those there are."""
        connection.watches.append(watch)

    def watch_correlation(self, watch: Watch, /) -> int:
        """Every piece of a watch carries the id of its request."""
        return watch.correlation

    def stream_correlation(self, correlation: int, /) -> int:
        """Every piece of a stream carries the id of its request."""
        return correlation


class Session(asyncio.Protocol):
    """One connection.

    Args:
        rules: The rules of both servers.
        role: ``sc`` or ``spu``.
    """

    def __init__(self, rules: Rules, role: str) -> None:
        self._rules = rules
        self._state = Connection(role)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, and be told when there may be something to push."""
        self._transport = cast("asyncio.Transport", transport)
        self._rules.memory.wakers[self._push] = None
        self._rules.memory.connections.append(self._state)

    def connection_lost(self, exc: Exception | None) -> None:
        """Be told no more."""
        del exc
        memory = self._rules.memory
        memory.wakers.pop(self._push, None)
        memory.connections.remove(self._state)
        self._rules.left(self._state)
        if self._state.tail and not self._rules.survives(self._state.tail):
            memory.dead = True

    def data_received(self, data: bytes) -> None:
        """Serve what one read brought."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._rules.memory.dead or not self._rules.admits(self._state):
            return
        self._state.tail += data
        frames = list(self._frames())
        self._state.tail = self._rules.kept(self._state.tail, len(frames))
        replies: Replies = []
        for frame in self._rules.served(frames):
            if not self._state.closing:
                replies += self._served(frame)
        self._send(self._rules.arranged(replies))
        if self._state.closing:
            self.hang_up()
        self._rules.woken()

    def hang_up(self) -> None:
        """Close the connection once everything is sent."""
        if self._transport is not None:
            self._transport.write(self._rules.last_words())
            self._transport.close()

    def _send(self, replies: Replies) -> None:
        if self._transport is not None and not self._transport.is_closing():
            for reply in replies:
                self._transport.write(self._rules.encode(reply))

    def _frames(self) -> Iterator[bytes]:
        tail = self._state.tail
        while len(tail) >= 4:
            length = int.from_bytes(tail[:4], "big", signed=True)
            if not self._rules.length_ok(self._state.role, length):
                self._state.closing = self._rules.closes_on_length(length)
                tail = b""
                break
            if len(tail) < 4 + length:
                break
            yield tail[4 : 4 + length]
            tail = tail[4 + length :]
        self._state.tail = tail

    def _served(self, frame: bytes) -> Replies:
        head = Head(0, 0, 0, b"")
        try:
            cursor = Cursor(frame)
            head = Head(cursor.take("H"), cursor.take("h"), cursor.take("i"), b"")
            head = head._replace(body=self._body(cursor))
            if self._rules.repeated(self._state, head.correlation):
                return []
            body = self._obey(head)
        except Malformed:
            self._state.closing = not self._rules.serves_on(self._state, head)
            return []
        if body is None:
            return []
        return [Reply(self._rules.correlation(head.correlation), body)]

    def _body(self, cursor: Cursor) -> bytes:
        if not self._rules.client_ok(cursor.words()):
            raise Malformed("an unknown client")
        return cursor.data[cursor.at :]

    def _obey(self, head: Head) -> bytes | None:
        if not self._rules.takes(self._state.role, head.key, head.version):
            raise Malformed(f"no request {head.key} in version {head.version}")
        if head.key == 18:
            return self._rules.versions(self._state.role)
        return self._obey_sc(head) if self._state.role == "sc" else self._obey_spu(head)

    def _obey_sc(self, head: Head) -> bytes | None:
        rules = self._rules
        if head.key == 1001:
            creation = read_creation(head.body)
            return self._status(creation.name, lambda: rules.create(creation))
        if head.key == 1002:
            name = read_deletion(head.body)
            return self._status(name, lambda: rules.delete(name))
        if head.key == 1003:
            return rules.list_objects(head.body, head.version)
        return self._watch(head)

    def _status(self, name: str, act: Callable[[], None]) -> bytes:
        try:
            act()
        except Refused as refused:
            return self._rules.status(name, refused.outcome, f"no topic '{name}'")
        return self._rules.status(name, code(0), None)

    def _watch(self, head: Head) -> bytes:
        kind = Cursor(head.body).words()
        watch = Watch(head.correlation, head.version, kind, dict(self._rules.memory.topics))
        found = self._rules.first_watched(kind, head.version)
        self._rules.watches(self._state, watch)
        return self._rules.watched(kind, [], found)

    def _obey_spu(self, head: Head) -> bytes | None:
        rules, body, version = self._rules, head.body, head.version
        if head.key == 1003:
            stream = rules.opened_stream(body, head.correlation, version)
            self._state.streams[stream.number] = stream
            return None
        obeyed: dict[int, Callable[[], bytes | None]] = {
            0: lambda: rules.produce(body, version),
            1002: lambda: rules.fetch_offsets(body, version),
            1005: lambda: rules.update_offsets(self._state, body),
            1006: lambda: rules.update_consumer(self._state, body),
            1007: lambda: rules.delete_consumer(body),
            1008: lambda: rules.fetch_consumers(body, version),
        }
        return obeyed[head.key]()

    def _push(self) -> None:
        if not self._rules.pushes_on(self._state):
            return
        for watch in self._state.watches:
            if body := self._rules.pushed(watch):
                self._send([Reply(self._rules.watch_correlation(watch), body)])
        for stream in list(self._state.streams.values()):
            if body := None if stream.ended else self._rules.pushed_piece(stream):
                self._send([Reply(self._rules.stream_correlation(stream.correlation), body)])


@asynccontextmanager
async def serving(rules: Rules, session: type[Session] = Session) -> AsyncIterator[int]:
    """Both servers on the loopback interface, for as long as the context lasts.

    Args:
        rules: Golden or mutated.
        session: What serves a connection.

    Yields:
        The port of the SC; it tells where the SPU is.
    """
    loop = asyncio.get_running_loop()
    spu = await loop.create_server(lambda: session(rules, "spu"), "127.0.0.1", 0)
    sc = await loop.create_server(lambda: session(rules, "sc"), "127.0.0.1", 0)
    rules.memory.spu_port = spu.sockets[0].getsockname()[1]
    try:
        yield sc.sockets[0].getsockname()[1]
    finally:
        sc.close()
        spu.close()
