"""The conversation of one case: connections, own topics, controls and checks."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lance_conformance.dialect import Dialect
from lance_conformance.peer.conditions import Conditions
from lance_conformance.peer.conn import Peer, connect
from lance_conformance.peer.expect import (
    Allowed,
    Event,
    Quiet,
    ack,
    answer,
    error,
    topic_response,
)
from lance_conformance.peer.link import Link
from lance_conformance.peer.own_topics import OwnTopics
from lance_conformance.peer.transcript import Transcript
from lance_conformance.peer.verdict import Blocked, Failure, KitError
from lance_conformance.wire.control import (
    LIST_TOPICS,
    Fetched,
    create_topic,
    fetch,
    ingest,
    read_fetched,
    read_json,
)
from lance_conformance.wire.crc import crc32_ieee
from lance_conformance.wire.frame import Command, Frame, faulty_field

TEARDOWN = 2.0
"""Seconds for removing the topics of a case; what is left then stays."""
ALIVE = answer(Command.TOPIC_RESPONSE, "5.4/answer")
"""The control probe: ListTopics must bring a TopicResponse, which no echo can."""

Outcome = Sequence[Allowed] | Quiet


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of this case's own."""

    id: int
    name: str


class Dialogue:
    """One case's conversation with the target.

    Args:
        conditions: What the run has in common.
        case_id: Goes into the names of topics and into the seed.
        budget: Seconds until the deadline.
    """

    def __init__(self, conditions: Conditions, case_id: str, budget: float) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.conditions = conditions
        self.dialect = conditions.dialect
        self.specified = conditions.dialect.name == "specified"
        self.deadline = began + budget
        self.rng = random.Random(f"{conditions.seed}/{case_id}")  # noqa: S311 - repeatable values
        self.transcript = Transcript(lambda: loop.time() - began)
        self._slug = case_id.replace("/", "-")
        self._peers: list[Peer] = []
        self._beginning = f"{conditions.prefix}-{conditions.run_id}-"
        self._own_topics = OwnTopics(self._beginning)
        self._names = 0
        self._batches = 0

    def __repr__(self) -> str:
        return f"<Dialogue {self._slug} peers={len(self._peers)} topics={self._own_topics!r}>"

    # -- beginning and end -------------------------------------------------------------------------

    async def begin(self) -> None:
        """Ask the control probe; no case starts before it is answered.

        Raises:
            Blocked: It is not.
        """
        async with self.control("the control probe, ListTopics on a fresh connection"):
            self.side = await self._probe()

    async def end(self, *, clean: bool) -> None:
        """Remove the topics of this case; whatever goes wrong here is not the target's fault.

        Args:
            clean: All that was asked has been answered, so the first connection can go on.
        """
        self.transcript.recording = False
        try:
            if self._own_topics:
                async with asyncio.timeout(TEARDOWN):
                    await self._tidy_up(clean=clean)
        except (OSError, Failure):
            pass  # a teardown never judges
        finally:
            for peer in self._peers:
                peer.drop()

    async def _tidy_up(self, *, clean: bool) -> None:
        self.deadline = asyncio.get_running_loop().time() + TEARDOWN
        peer = self.side if clean and self.side.usable else await self.open()
        peer.deadline = self.deadline
        await self._own_topics.delete(peer)

    # -- connections -------------------------------------------------------------------------------

    async def open(self, dialect: Dialect | None = None) -> Peer:
        """A fresh connection.

        Args:
            dialect: Another one than the target was found to speak.

        Raises:
            Failure: The target does not accept it.
        """
        link = Link(len(self._peers) + 1, self.transcript)
        target = self.conditions.target
        try:
            await connect(target.address or target.host, target.port, link, self.deadline)
        except OSError as problem:
            reason = "timeout" if isinstance(problem, TimeoutError) else "refused"
            raise Failure(reason, f"no connection to {target}: {problem}") from problem
        peer = Peer(link, dialect or self.dialect, self.deadline, self._own_topics.adopt)
        self._peers.append(peer)
        return peer

    async def _probe(self) -> Peer:
        peer = await self.open()
        await peer.ask(LIST_TOPICS, ALIVE)
        return peer

    async def still_alive(self) -> None:
        """After a hostile stimulus: a fresh connection must be served as before.

        Raises:
            Failure: It is not.
        """
        try:
            await self._probe()
        except Failure as failure:
            raise Failure(
                "target-died",
                f"after the stimulus the target no longer serves ListTopics: {failure.message}",
                expected=failure.expected,
                received=failure.received,
                connection=failure.connection,
                timing=failure.timing,
            ) from failure

    @asynccontextmanager
    async def control(self, what: str) -> AsyncIterator[None]:
        """Steps that must succeed before the case proves anything.

        Args:
            what: What the steps are, for the report.

        Raises:
            Blocked: They failed.
        """
        try:
            yield
        except Failure as failure:
            raise Blocked(
                failure.reason,
                f"cannot ask, because {what} failed: {failure.message}",
                expected=failure.expected,
                received=failure.received,
                connection=failure.connection,
                timing=failure.timing,
            ) from failure

    async def duel(
        self,
        right: Frame,
        wrong: Frame,
        *,
        answer: Allowed,
        specified: Outcome,
        deployed: Outcome,
    ) -> tuple[Peer, Event | None]:
        """Send a right frame, then its twin with exactly one fault on a fresh connection.

        Args:
            right: The control.
            wrong: The stimulus.
            answer: What the control must bring, else the case is blocked.
            specified: What the stimulus may bring in the `specified` dialect.
            deployed: The same in the `deployed` dialect.

        Returns:
            The connection of the stimulus and what came, `None` where silence was asked for.
        """
        async with self.control("the same frame without its fault"):
            await self.side.ask(right, answer)
        peer = await self.open()
        peer.send_faulty(wrong, _the_fault(right, wrong))
        event = await self.expect(peer, specified=specified, deployed=deployed)
        await self.still_alive()
        return peer, event

    async def expect(self, peer: Peer, *, specified: Outcome, deployed: Outcome) -> Event | None:
        """Expect what the dialect in force allows; `Quiet` asks for silence."""
        allowed = specified if self.specified else deployed
        if isinstance(allowed, Quiet):
            await peer.expect_quiet(allowed.cite)
            return None
        return await peer.expect(*allowed)

    # -- topics and data ---------------------------------------------------------------------------

    def name(self, tail: str = "") -> str:
        """A topic name that no other case and no other run uses."""
        self._names += 1
        return f"{self._beginning}{self._slug}-{self._names}{tail}"

    @property
    def unknown_topic(self) -> int:
        """A topic id that no target has given away, another one in each case."""
        return 0xF000_0000 + crc32_ieee(self._slug.encode()) % 2**24

    def values(self, count: int, size: int = 20) -> list[bytes]:
        """Record values that can be told apart, the same for the same seed."""
        return [self.rng.randbytes(size) for _ in range(count)]

    def batch(self) -> int:
        """A batch id that this case has not used, below the range of producer nonces (AMB-25)."""
        self._batches += 1
        return self._batches

    async def topic(self) -> Topic:
        """A topic of this case's own.

        Raises:
            Blocked: The target does not create it.
        """
        name = self.name()
        async with self.control("creating a topic"):
            frame = await self.side.ask(create_topic(name), topic_response("5.3/answer"))
            topic_id = (read_json(frame.payload) or {}).get("id")
            if not isinstance(topic_id, int) or not 0 < topic_id < 2**32:
                raise self.side.failure("field:id", f"a topic with the id {topic_id!r}")
        return Topic(topic_id, name)

    async def doomed_topic(self) -> Topic:
        """A topic that the case may delete: GetTopic confirms that it is this case's own.

        Raises:
            Blocked: The target does not create it, or says that it is another one.
        """
        topic = await self.topic()
        async with self.control("making sure that the topic to delete is the kit's own"):
            if not await self._own_topics.confirmed(self.side, topic.id):
                raise self.side.failure("field:name", f"topic {topic.id} is not {topic.name}")
        return topic

    async def store(self, topic: Topic, values: Sequence[bytes]) -> bytes:
        """Store one batch and return its payload.

        Raises:
            Blocked: It is not acknowledged.
        """
        frame = ingest(topic.id, self.batch(), values)
        async with self.control("storing records"):
            await self.side.ask(frame, ack(frame.batch_id))
        return frame.payload

    async def fetch(
        self, topic: Topic, start: int, max_bytes: int = 65536, peer: Peer | None = None
    ) -> Fetched:
        """Fetch, and read the answer without judging more than its form."""
        asked = peer or self.side
        frame = await asked.ask(
            fetch(topic.id, start, max_bytes), answer(Command.FETCH_RESPONSE, "5.9/answer")
        )
        return self.read(asked, frame)

    def read(self, peer: Peer, frame: Frame) -> Fetched:
        """Read a FetchResponse.

        Raises:
            Failure: It is shorter than its header.
        """
        try:
            return read_fetched(frame.payload, self.dialect.fetch_header)
        except ValueError as problem:
            raise peer.failure("body:too-short", str(problem)) from problem

    async def stored(self, topic: Topic) -> bytes:
        """All the data of a topic, as one Fetch returns it, for cases about something else.

        Raises:
            Blocked: It cannot be read.
        """
        async with self.control("reading the topic back"):
            return (await self.fetch(topic, 0)).data

    # -- judging -----------------------------------------------------------------------------------

    def error(self, *codes: int, cite: str, text: str = "") -> Allowed:
        """An ErrorResponse in the form this target uses."""
        return error(codes, text, self.dialect, cite)

    def check(self, holds: object, reason: str, message: str) -> None:
        """Judge one fact.

        Args:
            holds: Whether it is as it must be.
            reason: The reason code if not.
            message: What must be and what is.

        Raises:
            Failure: It does not hold.
        """
        if not holds:
            raise Failure(reason, message, connection=self.transcript.last_connection())


def _the_fault(right: Frame, wrong: Frame) -> str:
    try:
        return faulty_field(right, wrong)
    except ValueError as problem:
        raise KitError(str(problem)) from problem
