"""The golden server: sockets around the rules."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import cast

from lance_conformance.golden.codec import SIZE, Wire, parse
from lance_conformance.golden.commands import obey
from lance_conformance.golden.deployed import Deployed
from lance_conformance.golden.ingest import INVALID_PAYLOAD
from lance_conformance.golden.specified import Specified
from lance_conformance.golden.state import Connection, Refused, Replies

GOLDEN: dict[str, type[Specified]] = {"specified": Specified, "deployed": Deployed}


class Session(asyncio.Protocol):
    """One connection.

    Args:
        rules: The rules of the server, shared by all its connections.
    """

    def __init__(self, rules: Specified) -> None:
        self._rules = rules
        self._state = Connection()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Serve what one read brought."""
        if self._transport is None or self._transport.is_closing():
            return
        for reply in self._answers(data):
            self._transport.write(self._rules.encode(reply))
        if self._state.closing:
            self.hang_up()

    def hang_up(self) -> None:
        """Close the connection once everything is sent."""
        if self._transport is not None:
            self._transport.close()

    def _answers(self, data: bytes) -> Replies:
        self._state.tail += data
        last_words: Replies = []
        frames = list(self._frames(last_words))
        self._state.tail = self._rules.kept(self._state.tail, len(frames))
        replies: Replies = []
        for frame in self._rules.served(frames):
            replies += self._serve(frame)
        return [*self._rules.arranged(replies), *last_words]

    def _frames(self, last_words: Replies) -> Iterator[Wire]:
        """Whole frames; where the stream is no good, what is said before it is closed."""
        while len(self._state.tail) >= SIZE:
            header = parse(self._state.tail)
            refused = self._refused(header)
            end = SIZE + header.length
            if refused is None and len(self._state.tail) < end:
                return
            payload = self._state.tail[SIZE:end]
            if refused is None and not self._rules.payload_crc_ok(header, payload):
                refused = self._rules.last_words(header)
            if refused is not None:
                last_words += refused
                self._state.closing = True
                return
            self._state.tail = self._state.tail[end:]
            yield header._replace(payload=payload)

    def _refused(self, header: Wire) -> Replies | None:
        rules = self._rules
        right = (
            rules.magic_ok(header.magic)
            and rules.version_ok(header.version)
            and rules.reserved_ok(header.reserved)
            and rules.bit_7_ok(header.flags)
            and rules.header_crc_ok(header)
        )
        if not right:
            return rules.last_words(header)
        return None if rules.length_ok(header.length) else rules.oversize_words(header)

    def _serve(self, frame: Wire) -> Replies:
        kind = self._rules.kind(frame)
        try:
            if kind == "control":
                return obey(self._rules, frame.batch_id, frame.payload)
            if kind == "keepalive":
                return self._rules.keepalives(frame)
            if kind == "ingest":
                return self._ingest(frame)
            if kind == "ambiguous":
                _refuse_flags(frame)
        except Refused as no:
            batch = kind in ("ingest", "ambiguous")
            details = self._rules.details(frame) if batch else {}
            return [self._rules.error(no.refusal.code, no.refusal.words, details)]
        return self._rules.ambient(self._state, frame)

    def _ingest(self, frame: Wire) -> Replies:
        rules = self._rules
        if not frame.payload:
            return rules.empty(frame)
        topic = rules.ingest_topic(self._state, frame.topic)
        seen = rules.seen(self._state, frame)
        if seen == "again":
            return rules.acks(frame)
        if seen == "other" or not self._right(frame):
            topic.log += rules.stored_though_refused(frame)
            raise Refused(INVALID_PAYLOAD, "batch id, record count and records do not fit")
        topic.log = rules.stored(topic, frame.payload)
        self._state.batches[frame.topic, frame.batch_id] = (frame.timestamp, frame.payload)
        return rules.acks(frame)

    def _right(self, frame: Wire) -> bool:
        rules = self._rules
        return (
            rules.batch_id_ok(frame.batch_id)
            and rules.chain_ok(frame.payload)
            and rules.count_ok(frame.records, frame.payload)
            and rules.timestamp_ok(frame.timestamp)
            and rules.types_ok(frame.payload)
        )


def _refuse_flags(frame: Wire) -> None:
    raise Refused(INVALID_PAYLOAD, f"flags {frame.flags:#04x} make no kind of frame")


def sessions(rules: Specified) -> "Connections":
    """Connections that share one set of rules, golden or mutated."""
    return lambda: Session(rules)


Connections = Callable[[], asyncio.BaseProtocol]
"""Makes the protocol of each new connection."""


@asynccontextmanager
async def serving(connections: Connections) -> AsyncIterator[int]:
    """A server on the loopback interface, for as long as the context lasts.

    Args:
        connections: Makes the protocol of each connection, see `sessions`.

    Yields:
        The port.
    """
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connections, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
