"""The scripted server, and its connections: what a client does there, and what it is answered."""

import asyncio
import itertools
import socket
import ssl
import struct
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal, cast

from lance_conformance.client.scripted.model import Model, push, trigger_of
from lance_conformance.client.scripted.received_frame import FrameReader, ReceivedFrame, speaks
from lance_conformance.client.scripted.responses import encode, faulty, frame_of
from lance_conformance.client.scripted.rules import broken_rules
from lance_conformance.client.scripted.script import (
    AckOf,
    Answer,
    Close,
    Nothing,
    On,
    Pause,
    Push,
    Refuse,
    Say,
    Stall,
    Step,
)
from lance_conformance.engine.transcript import Transcript
from lance_conformance.wire.frame import HEADER_SIZE, Flag, Frame

HOST = "127.0.0.1"
Out = bytes | float | Literal["pause", "fin", "rst"]
"""Bytes, seconds to wait, and what else happens to a connection."""
FLOOD = 2000
"""Frames of one connection after which it is closed: no case needs so many."""
TURNS = 1
"""Turns of the event loop between two pieces, so that a client in this process reads them apart."""


class ScriptedConnection(asyncio.Protocol):
    """The server's side of one connection.

    Args:
        server: The server.
        scripted: Whether the script is for this connection.

    Attributes:
        number: Its number within the case.
        ended: How the client ended it: ``fin`` or ``rst``; None while it has not.
        wronged: The server has sent something that no right server sends here.
        batches: The batches it brought.
        scripted: Whether the script is for it.
    """

    def __init__(self, server: "ScriptedServer", *, scripted: bool = True) -> None:
        self.number = 0
        self.ended: Literal["fin", "rst"] | None = None
        self.wronged = False
        self.batches: list[ReceivedFrame] = []
        self._server = server
        self.scripted = scripted
        self._transport: asyncio.Transport | None = None
        self._first = b""
        self._ours: bool | None = None
        self._stalled = False
        self._leaves = False
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
        self.number = self._server.enter(self)
        self._reader = FrameReader(self.number)
        steps = self._server.steps("accept") if self.scripted else None
        self._perform(steps or (), None)

    def data_received(self, data: bytes) -> None:
        """Serve what one read brought."""
        self._server.transcript.received(self.number, data)
        if self._gone or not self._judge_dialect(data):
            return
        data, self._first = self._first + data, b""
        frames = self._reader.feed(data)
        for place, received in enumerate(frames):
            self._server.take(received)
            self._leaves = _is_ended(received.frame, frames[place + 1 :])
            if not self._stalled:
                self._serve(received)
        if self._server.has_news:
            self._server.push_news()
        if self._reader.count > FLOOD:
            self._put("fin")
        if self._reader.lost and not self._server.unreadable:
            self._server.unreadable = f"connection {self.number}: {self._reader.lost}"
            self._server.tell()

    def _judge_dialect(self, data: bytes) -> bool:
        """Whether to go on; a connection that begins in the other dialect is closed unheard."""
        if self._ours:
            return True
        self._first += data
        if len(self._first) < HEADER_SIZE:
            return False
        dialect = self._server.model.dialect
        own = speaks(self._first, dialect.compute)
        self._ours = own or not speaks(self._first, dialect.other_checksum)
        if self._ours:
            self._first = self._first[: -len(data)]
            return True
        self._server.foreign += 1
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
            self._server.transcript.closed(self.number, how)
        self._gone = True
        self._server.tell()

    # -- what the server does ----------------------------------------------------------------------

    def _serve(self, received: ReceivedFrame) -> None:
        what = trigger_of(received.frame)
        if what == "ingest":
            self.batches.append(received)
        self._note_subscription(what, received.frame)
        steps = None
        if self.scripted:
            everything = self._server.steps("any")
            steps = self._server.steps(what) if what else None
            steps = everything if steps is None else steps
        self._perform((Answer(),) if steps is None else steps, received)
        if what == "ingest" and not self._stalled:
            self._server.has_news = True

    def _note_subscription(self, what: str, frame: Frame) -> None:
        if what == "subscribe" and len(frame.payload) == 24:
            topic, start, most, _ = struct.unpack("<IQIQ", frame.payload)
            self._subscription = (topic, start, most)
        elif what == "unsubscribe":
            self._subscription = None

    def push_news(self) -> None:
        """Push what the log has got since the last push (AMB-21)."""
        model = self._server.model
        if self._subscription is None or model.dialect.name == "deployed" or self._gone:
            return
        topic, start, most = self._subscription
        for frame in model.pushes(topic, start, most):
            self._put(frame.encode(model.dialect.compute))
        self._subscription = (topic, model.end, most)

    def _perform(self, steps: Sequence[Step], received: ReceivedFrame | None) -> None:
        answers = self._answers(steps, received)
        for step in steps:
            self._do(step, received, answers)
            if isinstance(step, Stall):
                self._stalled = True
        if len(answers) > 1 and self._subscription is not None:
            topic, _, most = self._subscription  # its first pushes came with the answer
            self._subscription = (topic, self._server.model.end, most)

    def _answers(self, steps: Sequence[Step], received: ReceivedFrame | None) -> list[Frame]:
        """The right answer; the frame takes effect, unless it is refused."""
        if received is None or any(isinstance(step, Refuse) for step in steps):
            return []
        model = self._server.model
        answers = model.answer(received.opened)
        if not self._leaves and trigger_of(received.frame) == "subscribe":
            answers += model.first_pushes(received.frame, answers[0])
        return answers

    def _do(self, step: Step, received: ReceivedFrame | None, answers: Sequence[Frame]) -> None:
        model = self._server.model
        match step:
            case Answer() if received is not None:
                self._answer(step, received, answers)
            case AckOf() if step.nth <= len(self.batches):
                batch = self.batches[step.nth - 1]
                ack = Frame(flags=Flag.ACK, batch_id=batch.frame.batch_id)
                self._server.note_answer(batch, b"")
                self._put(ack.encode(model.dialect.compute) * step.times)
            case Say():
                self.wronged = True
                self._put(step.frame.encode(model.dialect.compute) * step.times)
            case Push():
                self.wronged = True
                pushed = push(step.offset, step.data, step.topic)
                self._put(pushed.encode(model.dialect.compute))
            case Refuse():
                self._refuse(step, received)
            case Close():
                self._put(step.how)
            case Pause():
                self._put(step.part * self._server.operation)
            case Nothing() | Stall() | _:
                pass

    def _answer(self, step: Answer, received: ReceivedFrame, answers: Sequence[Frame]) -> None:
        compute = self._server.model.dialect.compute
        pushed = b"".join(frame.encode(compute) for frame in answers[1:])
        data = encode(step, answers[0], received.frame, self._server.model.dialect) + pushed
        if step.right:
            length = int.from_bytes(data[32:36], "little")
            self._server.note_answer(received, data[HEADER_SIZE : HEADER_SIZE + length])
        else:
            self.wronged = True
            self._fault = next(iter(step.header), "payload")
        data = data[: step.upto]
        if step.hold:
            self._held += data
            return
        self._put_pieces(data, step.cuts, step.spread)

    def _put_pieces(self, data: bytes, cuts: tuple[int, ...], spread: float = 0.0) -> None:
        pieces = _pieces(data, cuts)
        for piece in pieces:
            self._put(piece)
            if spread:
                self._put(spread * self._server.operation / len(pieces))
            elif cuts:
                self._put("pause")

    def _refuse(self, step: Refuse, received: ReceivedFrame | None) -> None:
        model = self._server.model
        batch = self.batches[step.nth - 1] if step.nth else received
        about = batch.frame.batch_id if batch is not None else 0
        here, elsewhere = (f"{HOST}:{port}" for port in (self._server.port, self._server.elsewhere))
        error = frame_of(step, model, about, here, elsewhere)
        self._put_pieces(faulty(error, step.header, model.dialect), step.cuts)

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
                if self._server.pause:
                    await asyncio.sleep(self._server.pause)
            else:
                self._write(item)
        self._writer = None

    def _write(self, item: bytes | Literal["pause", "fin", "rst"]) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if isinstance(item, bytes):
            self._server.transcript.sent(self.number, item, self._fault)
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


def _is_ended(frame: Frame, later: Sequence[ReceivedFrame]) -> bool:
    """Whether a frame begins a subscription that a later one of the same read ends."""
    if trigger_of(frame) != "subscribe":
        return False
    consumer = frame.payload[16:24]
    ends = (each.frame for each in later if trigger_of(each.frame) == "unsubscribe")
    return any(each.payload[4:12] == consumer for each in ends)


def _pieces(data: bytes, cuts: tuple[int, ...]) -> list[bytes]:
    if cuts and cuts[0] < 0:
        cuts = tuple(range(-cuts[0], len(data), -cuts[0]))
    ends = [0, *(each for each in cuts if each < len(data)), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(ends)]


class ScriptedServer:
    """One scripted server, and all that a client did to it.

    Args:
        model: What it answers where the script says nothing.
        script: Where it departs from that.
        transcript: Where bytes are recorded.
        numbers: Give each connection its number.
        pause: Seconds between the pieces of an answer that is cut.
        operation: Seconds that the client is given for one operation.

    Attributes:
        seen: The frames that came, in order.
        answered: Those of them that were answered rightly.
        replies: The payload of each of these answers.
        broken: Rules that a frame broke, with the first such frame and what is wrong with it.
        unreadable: Why the bytes of a connection are not frames; empty when they all are.
        connections: The connections in order.
        foreign: Connections that began in the other dialect.
        read: The values of the records that the client has read.
        dry: Polls since then that brought none.
        told: What the client said in words when it failed.
        unconnected: The kind of error with which `connect` failed; empty when it did not.
        ran_out: Whether an operation has run out of time, as it may; what comes later may be late.
        tickets: Batches that it was given since its last flush and did not wait for: the ticket of
            each, and its records.
        has_news: Something was stored that is not pushed yet.
    """

    def __init__(
        self,
        model: Model,
        script: Sequence[On],
        transcript: Transcript,
        numbers: Iterator[int],
        *,
        pause: float = 0.0,
        operation: float = 0.0,
    ) -> None:
        self.model = model
        self.pause = pause
        self.operation = operation
        self.port = 0
        self.elsewhere = 0
        self.seen: list[ReceivedFrame] = []
        self.answered: list[ReceivedFrame] = []
        self.replies: list[bytes] = []
        self.broken: dict[str, tuple[ReceivedFrame, str]] = {}
        self.unreadable = ""
        self.connections: list[ScriptedConnection] = []
        self.foreign = 0
        self.read: list[bytes] = []
        self.dry = 0
        self.told: list[str] = []
        self.unconnected = ""
        self.ran_out = False
        self.tickets: list[tuple[str, bytes]] = []
        self.has_news = False
        self.transcript = transcript
        self._script = script
        self._numbers = numbers
        self._counts: Counter[str] = Counter()
        self._meanwhile: Sequence[On] = ()
        self._since: Counter[str] = Counter()
        self._news = asyncio.Event()

    def __repr__(self) -> str:
        counts = f"frames={len(self.seen)} connections={len(self.connections)}"
        return f"<ScriptedServer {self.port} {counts}>"

    # -- what the connections tell -----------------------------------------------------------------

    def enter(self, connection: ScriptedConnection) -> int:
        """Take a connection; return its number."""
        self.connections.append(connection)
        self.tell()
        return next(self._numbers)

    def tell(self) -> None:
        """Wake whoever waits for something to happen."""
        self._news.set()

    def steps(self, what: str) -> Sequence[Step] | None:
        """The script's steps for what a client has just done; None for the right answer."""
        self._counts[what] += 1
        self._since[what] += 1
        for script, counts in ((self._meanwhile, self._since), (self._script, self._counts)):
            for entry in script:
                if entry.what == what and entry.nth in (0, counts[what]):
                    return entry.steps
        return None

    def begin(self, meanwhile: Sequence[On]) -> None:
        """Depart from right answers as this says until another operation begins."""
        self._meanwhile = meanwhile
        self._since.clear()

    def take(self, received: ReceivedFrame) -> None:
        """Judge a frame by the rules that all of them must keep."""
        self.seen.append(received)
        for name, wrong in broken_rules(received, self.model.dialect).items():
            self.broken.setdefault(name, (received, wrong))
        self.tell()

    def push_news(self) -> None:
        """Push what is new to every subscription, when all that came with it is answered."""
        self.has_news = False
        for connection in self.connections:
            connection.push_news()

    def note_answer(self, received: ReceivedFrame, payload: bytes) -> None:
        """Remember a frame that is answered rightly, and the payload of the answer."""
        self.answered.append(received)
        self.replies.append(payload)

    # -- what the case asks ------------------------------------------------------------------------

    @property
    def hung_up(self) -> bool:
        """Whether the client has ended a connection over which nothing wrong was sent."""
        return any(each.ended and not each.wronged for each in self.connections)

    def count(self, what: str) -> int:
        """How often a client has done something."""
        return self._counts[what]

    def frames(self, what: str) -> list[ReceivedFrame]:
        """The frames of one kind."""
        return [each for each in self.seen if trigger_of(each.frame) == what]

    async def until(self, holds: Callable[[], bool], deadline: float) -> bool:
        """Wait until something holds.

        Args:
            holds: Asked whenever something has happened.
            deadline: Time of the event loop's clock.

        Returns:
            Whether it came to hold in time.
        """
        try:
            async with asyncio.timeout_at(deadline):
                while not holds():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return holds()
        return True

    @asynccontextmanager
    async def open(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
        """Listen for as long as the context lasts; ``port`` says where."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: ScriptedConnection(self), HOST, 0, ssl=tls)
        other = None
        if any(isinstance(step, Refuse) for entry in self._script for step in entry.steps):
            other = await loop.create_server(
                lambda: ScriptedConnection(self, scripted=False), HOST, 0
            )
            self.elsewhere = other.sockets[0].getsockname()[1]
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            self.transcript.recording = False
            server.close()
            if other is not None:
                other.close()
            for connection in self.connections:
                connection.drop()
            self.transcript.recording = True
