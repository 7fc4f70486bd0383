"""One connection of the client under test, as the scripted server holds it."""

import asyncio
import itertools
import socket
import struct
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from lance_conformance.client.scripted.model import push, trigger_of
from lance_conformance.client.scripted.received_frame import FrameReader, ReceivedFrame, speaks
from lance_conformance.client.scripted.responses import encode, frame_of
from lance_conformance.client.scripted.script import (
    AckOf,
    Answer,
    Close,
    Nothing,
    Pause,
    Push,
    Refuse,
    Say,
    Stall,
    Step,
)
from lance_conformance.wire.frame import HEADER_SIZE, Flag, Frame

if TYPE_CHECKING:
    from lance_conformance.client.scripted.server import ScriptedServer

Out = bytes | float | Literal["pause", "fin", "rst"]
"""Bytes, seconds to wait, and what else happens to a connection."""
FLOOD = 2000
"""Frames of one connection after which it is closed: no case needs so many."""
TURNS = 1
"""Turns of the event loop between two pieces, so that a client in this process reads them apart."""


class ScriptedConnection(asyncio.Protocol):
    """The server's side of one connection.

    Args:
        stage: The server.
        scripted: Whether the script is for this connection.

    Attributes:
        number: Its number within the case.
        ended: How the client ended it: ``fin`` or ``rst``; None while it has not.
        wronged: The server has sent something that no right server sends here.
        batches: The batches it brought.
        scripted: Whether the script is for it.
    """

    def __init__(self, stage: "ScriptedServer", *, scripted: bool = True) -> None:
        self.number = 0
        self.ended: Literal["fin", "rst"] | None = None
        self.wronged = False
        self.batches: list[ReceivedFrame] = []
        self._stage = stage
        self.scripted = scripted
        self._transport: asyncio.Transport | None = None
        self._first = b""
        self._ours: bool | None = None
        self._stalled = False
        self._gone = False
        self._held = b""
        self._fault: str | None = None
        self._out: deque[Out] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._subscription: tuple[int, int, int] | None = None

    def __repr__(self) -> str:
        return f"<ScriptedConnection {self.number} ended={self.ended} wronged={self.wronged}>"

    # -- what the client does ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, or do with it what the script says."""
        self._transport = cast("asyncio.Transport", transport)
        self.number = self._stage.enter(self)
        self._reader = FrameReader(self.number)
        steps = self._stage.steps("accept") if self.scripted else None
        self._perform(steps or (), None)

    def data_received(self, data: bytes) -> None:
        """Serve what one read brought."""
        self._stage.transcript.received(self.number, data)
        if self._gone or not self._judge_dialect(data):
            return
        data, self._first = self._first + data, b""
        for sighting in self._reader.feed(data):
            self._stage.take(sighting)
            if not self._stalled:
                self._serve(sighting)
        if self._reader.count > FLOOD:
            self._put("fin")
        if self._reader.lost and not self._stage.unreadable:
            self._stage.unreadable = f"connection {self.number}: {self._reader.lost}"
            self._stage.tell()

    def _judge_dialect(self, data: bytes) -> bool:
        """Whether to go on; a connection that begins in the other dialect is closed unheard."""
        if self._ours:
            return True
        self._first += data
        if len(self._first) < HEADER_SIZE:
            return False
        dialect = self._stage.model.dialect
        own = speaks(self._first, dialect.compute)
        self._ours = own or not speaks(self._first, dialect.other_checksum)
        if self._ours:
            self._first = self._first[: -len(data)]
            return True
        self._stage.foreign += 1
        self._put("fin")
        return False

    def eof_received(self) -> bool:
        """Take the end of the client's half as the end of the connection."""
        self._end("fin")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Record how the client ended the connection, unless the server did."""
        self._end("fin" if exc is None else "rst")

    def _end(self, how: Literal["fin", "rst"]) -> None:
        if self.ended is None and not self._gone:
            self.ended = how
            self._stage.transcript.closed(self.number, how)
        self._gone = True
        self._stage.tell()

    # -- what the server does ----------------------------------------------------------------------

    def _serve(self, sighting: ReceivedFrame) -> None:
        what = trigger_of(sighting.frame)
        if what == "ingest":
            self.batches.append(sighting)
        self._note_subscription(what, sighting.frame)
        steps = None
        if self.scripted:
            everything = self._stage.steps("any")
            steps = self._stage.steps(what) if what else None
            steps = everything if steps is None else steps
        self._perform((Answer(),) if steps is None else steps, sighting)
        if what == "ingest" and not self._stalled:
            self._stage.stored()

    def _note_subscription(self, what: str, frame: Frame) -> None:
        if what == "subscribe" and len(frame.payload) == 24:
            topic, start, most, _ = struct.unpack("<IQIQ", frame.payload)
            self._subscription = (topic, start, most)
        elif what == "unsubscribe":
            self._subscription = None

    def push_news(self) -> None:
        """Push what the log has got since the last push (AMB-21)."""
        model = self._stage.model
        if self._subscription is None or model.dialect.name == "deployed" or self._gone:
            return
        topic, start, most = self._subscription
        for frame in model.pushes(topic, start, most):
            self._put(frame.encode(model.dialect.compute))
        self._subscription = (topic, len(model.log), most)

    def _perform(self, steps: Sequence[Step], sighting: ReceivedFrame | None) -> None:
        answers = self._answers(steps, sighting)
        for step in steps:
            self._do(step, sighting, answers)
            if isinstance(step, Stall):
                self._stalled = True
        if len(answers) > 1 and self._subscription is not None:
            topic, _, most = self._subscription  # its first pushes came with the answer
            self._subscription = (topic, len(self._stage.model.log), most)

    def _answers(self, steps: Sequence[Step], sighting: ReceivedFrame | None) -> list[Frame]:
        """The right answer; the frame takes effect, unless it is refused."""
        if sighting is None or any(isinstance(step, Refuse) for step in steps):
            return []
        return self._stage.model.answer(sighting.frame)

    def _do(self, step: Step, sighting: ReceivedFrame | None, answers: Sequence[Frame]) -> None:
        model = self._stage.model
        match step:
            case Answer() if sighting is not None:
                self._answer(step, sighting, answers)
            case AckOf() if step.nth <= len(self.batches):
                batch = self.batches[step.nth - 1]
                ack = Frame(flags=Flag.ACK, batch_id=batch.frame.batch_id)
                self._stage.answered.append(batch)
                self._put(ack.encode(model.dialect.compute) * step.times)
            case Say():
                self.wronged = True
                self._put(step.frame.encode(model.dialect.compute) * step.times)
            case Push():
                self.wronged = True
                pushed = push(step.offset, step.data, step.topic)
                self._put(pushed.encode(model.dialect.compute))
            case Refuse():
                self._refuse(step, sighting)
            case Close():
                self._put(step.how)
            case Pause():
                self._put(step.part * self._stage.operation)
            case Nothing() | Stall() | _:
                pass

    def _answer(self, step: Answer, sighting: ReceivedFrame, answers: Sequence[Frame]) -> None:
        compute = self._stage.model.dialect.compute
        pushed = b"".join(frame.encode(compute) for frame in answers[1:])
        data = encode(step, answers[0], sighting.frame, self._stage.model.dialect) + pushed
        if step.right:
            self._stage.answered.append(sighting)
        else:
            self.wronged = True
            self._fault = next(iter(step.header), "payload")
        data = data[: step.upto]
        if step.hold:
            self._held += data
            return
        pieces = _pieces(data, step.cuts)
        for piece in pieces:
            self._put(piece)
            if step.spread:
                self._put(step.spread * self._stage.operation / len(pieces))
            elif step.cuts:
                self._put("pause")

    def _refuse(self, step: Refuse, sighting: ReceivedFrame | None) -> None:
        model = self._stage.model
        batch = self.batches[step.nth - 1] if step.nth else sighting
        about = batch.frame.batch_id if batch is not None else 0
        place = f"127.0.0.1:{self._stage.elsewhere}"
        error = frame_of(step, model, about, place)
        self._put(error.encode(model.dialect.compute))

    # -- bytes out ---------------------------------------------------------------------------------

    def _put(self, item: Out) -> None:
        if isinstance(item, bytes):
            item, self._held = self._held + item, b""
        if self._writer is None and not isinstance(item, float) and item != "pause":
            self._write(item)
            return
        self._out.append(item)
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write_on())

    async def _write_on(self) -> None:
        while self._out:
            item = self._out.popleft()
            if isinstance(item, float):
                await asyncio.sleep(item)
            elif item == "pause":
                for _ in range(TURNS):
                    await asyncio.sleep(0)
                if self._stage.pause:
                    await asyncio.sleep(self._stage.pause)
            else:
                self._write(item)
        self._writer = None

    def _write(self, item: bytes | Literal["pause", "fin", "rst"]) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if isinstance(item, bytes):
            self._stage.transcript.sent(self.number, item, self._fault)
            self._fault = None
            self._transport.write(item)
            return
        self._gone = True
        if item == "fin":
            self._transport.close()
        else:
            self._reset()

    def _reset(self) -> None:
        assert self._transport is not None
        raw = self._transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def drop(self) -> None:
        """End the connection, without a trace in the transcript."""
        self._gone = True
        self._out.clear()
        if self._transport is not None:
            self._transport.abort()


def _pieces(data: bytes, cuts: tuple[int, ...]) -> list[bytes]:
    if cuts and cuts[0] < 0:
        cuts = tuple(range(-cuts[0], len(data), -cuts[0]))
    ends = [0, *(each for each in cuts if each < len(data)), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(ends)]
