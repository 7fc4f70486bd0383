"""The scripted server's sockets: what a client does there, and what it is answered."""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager

from lance_conformance.client.scripted.connection import ScriptedConnection
from lance_conformance.client.scripted.model import Model, trigger_of
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.rules import broken_rules
from lance_conformance.client.scripted.script import On, Refuse, Step
from lance_conformance.engine.transcript import Transcript

HOST = "127.0.0.1"


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
        broken: Rules that a frame broke, with the first such frame and what is wrong with it.
        unreadable: Why the bytes of a connection are no frames; empty when they all are.
        sides: The connections in order.
        foreign: Connections that began in the other dialect.
        read: The values of the records that the client has read.
        told: What the client said in words when it failed.
        tickets: Batches that it was given and did not wait for.
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
        self.broken: dict[str, tuple[ReceivedFrame, str]] = {}
        self.unreadable = ""
        self.sides: list[ScriptedConnection] = []
        self.foreign = 0
        self.read: list[bytes] = []
        self.told: list[str] = []
        self.tickets = 0
        self.transcript = transcript
        self._script = script
        self._numbers = numbers
        self._counts: Counter[str] = Counter()
        self._news = asyncio.Event()

    def __repr__(self) -> str:
        return f"<ScriptedServer {self.port} frames={len(self.seen)} connections={len(self.sides)}>"

    # -- what the connections tell -----------------------------------------------------------------

    def enter(self, side: ScriptedConnection) -> int:
        """Take a connection; return its number."""
        self.sides.append(side)
        self.tell()
        return next(self._numbers)

    def tell(self) -> None:
        """Wake whoever waits for something to happen."""
        self._news.set()

    def steps(self, what: str) -> Sequence[Step] | None:
        """The script's steps for what a client has just done; None for the right answer."""
        self._counts[what] += 1
        for entry in self._script:
            if entry.what == what and entry.nth in (0, self._counts[what]):
                return entry.steps
        return None

    def take(self, sighting: ReceivedFrame) -> None:
        """Judge a frame by the rules that all of them must keep."""
        self.seen.append(sighting)
        for name, wrong in broken_rules(sighting, self.model.dialect).items():
            self.broken.setdefault(name, (sighting, wrong))
        self.tell()

    def stored(self) -> None:
        """Push what is new to every subscription."""
        for side in self.sides:
            side.push_news()

    # -- what the case asks ------------------------------------------------------------------------

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
            for side in self.sides:
                side.drop()
            self.transcript.recording = True
