"""The golden server: sockets around the rules."""

import asyncio
from collections.abc import Iterator
from typing import cast

from lance_conformance.engine.selftest.test_server import Connections, serving
from lance_conformance.server.golden.codec import SIZE, Wire, parse
from lance_conformance.server.golden.commands import obey
from lance_conformance.server.golden.deployed import Deployed
from lance_conformance.server.golden.rules.access_rules import INGEST, KEEPALIVE, admitted
from lance_conformance.server.golden.rules.cluster import WRITES
from lance_conformance.server.golden.rules.ingest import INVALID_PAYLOAD
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Connection, Refused, Replies

__all__ = ["GOLDEN", "Connections", "Session", "serving", "sessions"]

GOLDEN: dict[str, type[Specified]] = {"specified": Specified, "deployed": Deployed}


LARGE = 1024 * 1024
"""A payload from which on the rest of a frame is not looked at before it is all there."""


class Session(asyncio.Protocol):
    """One connection.

    Args:
        rules: The rules of the server, shared by all its connections.
    """

    def __init__(self, rules: Specified) -> None:
        self._rules = rules
        self._state = Connection()
        self._spoken = False
        self._rest = bytearray()
        self._missing = 0
        self._transport: asyncio.Transport | None = None
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)
        memory = self._rules.memory
        memory.crowd.append(self)
        if not self._rules.has_room(memory.mute):
            self._transport.close()
        self._watch()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Leave the others."""
        if self._limit is not None:
            self._limit.cancel()
        self._rules.memory.crowd.remove(self)
        self._rules.memory.mute += not self._spoken
        if self._state.tail and not self._state.closing:
            self._rules.orphaned(self._state.tail)
            self._harm("lost", None)

    def data_received(self, data: bytes) -> None:
        """Serve what one read brought."""
        if self._transport is None or self._transport.is_closing():
            return
        self._spoken = True
        self._rules.memory.speaker = self._state
        if self._waits():
            return
        self._rest += data
        if len(self._rest) < self._missing:
            return
        data = bytes(self._rest)
        self._rest.clear()
        self._send(self._answers(data))
        if self._state.closing:
            self.hang_up()
        for member in list(self._rules.memory.crowd):
            member.push()
        self._watch()

    def _watch(self) -> None:
        """End the connection when it is silent for longer than the rules let it be."""
        if self._limit is not None:
            self._limit.cancel()
        seconds = self._rules.idle_limit(self.unfinished)
        if seconds is not None:
            self._limit = asyncio.get_running_loop().call_later(seconds, self.hang_up)

    @property
    def unfinished(self) -> bool:
        """Whether it is in the middle of a frame."""
        return bool(self._state.tail)

    @property
    def unread(self) -> int:
        """Bytes that it was sent and has not taken."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def _waits(self) -> bool:
        crowd = self._rules.memory.crowd
        others = [member for member in crowd if member is not self]
        unfinished = sum(member.unfinished for member in others)
        unread = sum(member.unread > 0 for member in others)
        return self._rules.waits_for_others(len(crowd), unfinished, unread)

    def push(self) -> None:
        """Send what there is for the subscriptions of this connection."""
        self._send(self._rules.pushes(self._state))

    def _send(self, replies: Replies) -> None:
        for reply in replies:
            if self._transport is None or self._transport.is_closing():
                return
            data = self._rules.encode(reply)
            self._transport.write(self._rules.delivered(data, self.unread))

    def _harm(self, fault: str, header: Wire | None) -> None:
        """Let the others suffer, where the rules say so."""
        for member in list(self._rules.memory.crowd):
            if member is not self and self._rules.spreads(fault, header):
                member.hang_up()

    def hang_up(self) -> None:
        """Close the connection once everything is sent."""
        if self._transport is not None:
            self._transport.close()

    def _answers(self, data: bytes) -> Replies:
        self._state.tail += data
        last_words: Replies = []
        self._missing = 0
        frames = list(self._frames(last_words))
        self._state.tail = self._rules.kept(self._state.tail, len(frames))
        replies: Replies = []
        for frame in self._rules.served(frames):
            replies += self._serve(frame)
        return [*self._rules.arranged(replies), *last_words]

    def _frames(self, last_words: Replies) -> Iterator[Wire]:
        """Whole frames; where the stream is not valid, what is said before it is closed."""
        tail, at = self._state.tail, 0
        while len(tail) - at >= SIZE:
            header = parse(tail[at : at + SIZE])
            refused = self._refused(header)
            end = at + SIZE + header.length
            if refused is None and not self._rules.complete(len(tail), end):
                self._missing = end - len(tail) if header.length >= LARGE else 0
                break
            payload = tail[at + SIZE : end]
            if refused is None and not self._rules.payload_crc_ok(header, payload):
                refused = self._rules.last_words(header)
            if refused is not None:
                last_words += refused
                self._state.closing = True
                self._harm("stream", header)
                break
            at = end
            yield header._replace(payload=payload)
        self._state.tail = tail[at:]

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
        return None if rules.announced_ok(header) else rules.oversize_words(header)

    def _end_late(self, kind: str) -> None:
        seconds = self._rules.ends_late(kind)
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, self.hang_up)

    def _serve(self, frame: Wire) -> Replies:
        kind = self._rules.kind(frame)
        self._end_late(kind)
        try:
            if self._rules.leader and _writes(kind, frame):
                return self._rules.elsewhere(frame)
            if kind == "control":
                return obey(self._rules, frame.batch_id, self._rules.asked(frame))
            if kind == "keepalive":
                self._admit(KEEPALIVE)
                return self._rules.keepalives(frame)
            if kind == "ingest":
                return self._ingest(frame)
            if kind == "ambiguous":
                _refuse_flags(frame)
        except Refused as no:
            batch = kind in ("ingest", "ambiguous")
            self._harm("refused", frame)
            self._end_late("refused")
            command = frame.batch_id if kind == "control" else 0
            if not self._rules.stays_after(no.refusal.code, command):
                self._state.closing = True
            details = self._rules.details(frame) if batch else {}
            details = {**details, **no.refusal.details, **self._rules.redirect(no.refusal.code)}
            return [self._rules.error(no.refusal.code, no.refusal.words, details)]
        return self._rules.ambient(self._state, frame)

    def _admit(self, what: int, payload: bytes = b"") -> None:
        if not admitted(self._rules, self._state, what):
            self._rules.without_token(what, payload)

    def _ingest(self, frame: Wire) -> Replies:
        rules = self._rules
        self._admit(INGEST, frame.topic.to_bytes(4, "little") + frame.payload)
        if not frame.payload:
            return rules.empty(frame)
        topic = rules.ingest_topic(self._state, frame.topic)
        frame = frame._replace(payload=rules.opened(frame))
        seen = rules.seen(self._state, frame)
        if seen == "again":
            return rules.acks(frame)
        if seen == "other" or not self._right(frame):
            topic.log += rules.stored_though_refused(frame)
            raise Refused(INVALID_PAYLOAD, "batch id, record count and records do not fit")
        rules.arrived(topic, len(topic.log))
        topic.log = rules.stored(topic, frame.payload)
        content = (frame.timestamp, frame.payload)
        self._state.batches[frame.topic, frame.batch_id] = content
        rules.memory.batches[frame.topic, frame.batch_id] = content
        return rules.acks(frame)

    def _right(self, frame: Wire) -> bool:
        rules = self._rules
        return (
            rules.batch_id_ok(frame.batch_id)
            and rules.batch_ok(frame)
            and rules.timestamp_ok(frame.timestamp)
            and rules.types_ok(frame.payload)
        )


def _writes(kind: str, frame: Wire) -> bool:
    return kind == "ingest" or (kind == "control" and frame.batch_id in WRITES)


def _refuse_flags(frame: Wire) -> None:
    raise Refused(INVALID_PAYLOAD, f"flags {frame.flags:#04x} make no kind of frame")


def sessions(rules: Specified) -> Connections:
    """Connections that share one set of rules, golden or mutated."""
    return lambda: Session(rules)
