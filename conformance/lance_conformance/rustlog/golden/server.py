"""Sockets around the golden rules."""

import asyncio
from typing import cast

from lance_conformance.engine.selftest.test_server import Connections
from lance_conformance.rustlog.golden import binary, codec, jsons
from lance_conformance.rustlog.golden.rules import Rules
from lance_conformance.rustlog.golden.state import Connection, Refused


class Session(asyncio.Protocol):
    """One connection.

    Args:
        rules: The rules of the server, shared by all its connections.
        crowd: All connections.
    """

    def __init__(self, rules: Rules, crowd: "list[Session]") -> None:
        self._rules = rules
        self._crowd = crowd
        self.state = Connection()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)
        self._crowd.append(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        """Leave the others."""
        self._crowd.remove(self)

    def eof_received(self) -> None:
        """Take the rest as it is; the connection closes once everything is sent."""
        self._rules.gone(bytes(self.state.tail))

    def data_received(self, data: bytes) -> None:
        """Serve what one read brought."""
        self.state.tail += data
        if not self._deaf():
            for answer in self._answers():
                self._send(self._rules.framed(answer))
            if self.state.closing:
                self.hang_up()

    def _deaf(self) -> bool:
        others = (each.state for each in self._crowd if each is not self)
        waits = any(state.tail and self._rules.holds_up(state) for state in others)
        return self.state.closing or waits

    def _send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def hang_up(self) -> None:
        """Close the connection once everything is sent."""
        if self._transport is not None:
            self._transport.close()

    def _answers(self) -> list[bytes]:
        frames, refusal = self._frames()
        self.state.tail = self._rules.kept(self.state.tail, len(frames))
        answers = self._rules.arranged(self._served(self._rules.served(frames)))
        if refusal is not None:
            answers.append(self._refused(refusal, self._rules.form_of_frame_errors()))
        return answers

    def _frames(self) -> tuple[list[bytes], Refused | None]:
        """Whole frames, and what is said about a length that no frame has."""
        frames: list[bytes] = []
        while len(self.state.tail) >= 4:
            size = int.from_bytes(self.state.tail[:4], "big")
            if not self._rules.length_ok(size):
                self._end(size)
                return frames, self._rules.frame_refusal(size)
            if len(self.state.tail) < 4 + size:
                break
            frames.append(bytes(self.state.tail[4 : 4 + size]))
            del self.state.tail[: 4 + size]
        return frames, None

    def _end(self, size: int) -> None:
        self.state.tail.clear()
        self.state.closing = self._rules.closes(size)
        for other in list(self._crowd):
            if other is not self and self._rules.spreads(other.state):
                other.hang_up()

    def _served(self, frames: list[bytes]) -> list[bytes]:
        answers = []
        while frames:
            payload, frames = frames[0], frames[1:]
            form = self._rules.form(payload)
            carried_out = jsons.answer if form == "json" else binary.answer
            try:
                answers.append(carried_out(self._rules, self.state, payload))
            except Refused as refusal:
                answers.append(self._refused(refusal, form))
                frames = self._rules.after_error(frames)
                if form == "json" and not self._rules.stays_after_bad_json():
                    self.state.closing = True
        return answers

    def _refused(self, refusal: Refused, form: str) -> bytes:
        if form == "json":
            return jsons.written(self._rules.json_error(refusal.text))
        return codec.error(refusal.code, refusal.text)


def sessions(rules: Rules) -> Connections:
    """Connections that share one set of rules, golden or mutated."""
    crowd: list[Session] = []
    return lambda: Session(rules, crowd)
