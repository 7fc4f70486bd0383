"""The conversation of one case: connections, own topics, controls and checks."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from lance_conformance.dialect import Dialect
from lance_conformance.engine.access import EntryMode
from lance_conformance.engine.base_context import BaseContext
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.expectations import Allowed
from lance_conformance.engine.failures import Failure, KitError, NotApplicable
from lance_conformance.engine.raw_connection import RawConnection
from lance_conformance.engine.restarting import pause
from lance_conformance.server.expect import (
    Event,
    Quiet,
    ack,
    answer,
    error,
    let_in,
    topic_response,
)
from lance_conformance.server.features import FEATURES, left_out
from lance_conformance.server.own_topics import OwnTopics
from lance_conformance.server.peer import Peer
from lance_conformance.wire.access import authenticate
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

BETWEEN_ATTEMPTS = 0.05
"""Seconds between two attempts to reach a target that is coming up."""
ALIVE = answer(Command.TOPIC_RESPONSE, "5.4/answer")
"""The control probe: ListTopics must bring a TopicResponse, which no echo can."""

AllowedOutcome = Sequence[Allowed] | Quiet


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of this case's own."""

    id: int
    name: str


class CaseContext(BaseContext):
    """One case's conversation with the target.

    Args:
        conditions: What the run has in common.
        case_id: Goes into the names of topics and into the seed.
        budget: Seconds until the deadline.
    """

    def __init__(self, conditions: Conditions, case_id: str, budget: float) -> None:
        super().__init__(conditions, case_id, budget)
        self.dialect: Dialect = conditions.dialect
        self.specified = self.dialect.name == "specified"
        self._left_out = left_out(case_id, conditions.without & FEATURES.keys(), conditions.missing)
        self._own_topics = OwnTopics(self._beginning)
        self._batches = 0
        self._moved: Target | None = None

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]} topics={self._own_topics!r}>"

    # -- beginning and end -------------------------------------------------------------------------

    async def begin(self) -> None:
        """Ask the control probe; no case starts before it is answered.

        Raises:
            Blocked: It is not.
        """
        async with self.precondition("the control probe, ListTopics on a fresh connection"):
            if self.conditions.fails_over:  # since the case before, it may be on its way up
                self.side = await self._probe_again()
            else:
                self.side = await self.probe()

    async def tidy_up(self, *, clean: bool) -> None:
        """Remove the topics of this case."""
        if not self._own_topics:
            return
        peer = self.side if clean and self.side.usable else await self.open()
        await self._own_topics.delete(peer)

    # -- connections -------------------------------------------------------------------------------

    async def open(
        self,
        dialect: Dialect | None = None,
        *,
        way: EntryMode = EntryMode.USUAL,
        authenticated: bool = True,
    ) -> Peer:
        """A fresh connection; the token is shown on it, if there is one.

        Args:
            dialect: Another one than the target was found to speak.
            way: How it gets in, where the target speaks TLS.
            authenticated: Whether to show the token.

        Raises:
            Failure: The target does not accept it.
        """
        moved = self._moved
        if moved is None:
            connection = await self.connected(way=way)
        else:
            connection = await self.connected(moved.port, moved.address or moved.host, way=way)
        peer = self._speaking(connection, dialect)
        if authenticated and self.conditions.access.token is not None:
            await self.log_in(peer)
        return peer

    def _speaking(self, connection: RawConnection, dialect: Dialect | None = None) -> Peer:
        return Peer(
            connection,
            dialect or self.dialect,
            self.time,
            self._own_topics.adopt,
            read_only=self.conditions.read_only,
            left_out=self._left_out,
        )

    async def log_in(self, peer: Peer) -> Frame:
        """Show the token on a connection; the transcript gets as many stars.

        Raises:
            Failure: The target does not take it.
        """
        token = self.conditions.access.token or b""
        peer.send_secret([authenticate(token)], [authenticate(b"*" * len(token))])
        return await peer.frame(let_in())

    async def restart(self) -> None:
        """Restart the target, and go on when it serves again, or at once at the other node.

        Raises:
            Blocked: It cannot be restarted, or does not come back in time.
            NotApplicable: Nobody said how.
        """
        restart = self.conditions.restart
        if restart is None:
            raise NotApplicable("no way to restart the target was given (--restart-cmd)")
        self.hang_up()
        async with self.precondition("restarting the target"):
            try:
                async with asyncio.timeout_at(self.deadline):
                    await restart(self.conditions.target)
                    if self.conditions.fails_over:
                        self._moved = self.conditions.second
                    self.side = await self._probe_again()
            except OSError as problem:  # TimeoutError is one of them
                reason = "timeout" if isinstance(problem, TimeoutError) else "restart"
                raise Failure(reason, f"the target was not restarted: {problem}") from problem

    async def _probe_again(self) -> Peer:
        """Ask the control probe until the target is there again.

        Raises:
            Failure: It is not before the deadline.
        """
        try:
            async with asyncio.timeout_at(self.deadline):
                while True:
                    try:
                        return await self.probe()
                    except Failure:
                        await pause(BETWEEN_ATTEMPTS)
        except TimeoutError as problem:
            raise Failure("timeout", "the target does not come back") from problem

    async def open_others(self) -> list[Peer]:
        """A fresh connection to each other node of the cluster that was named.

        Raises:
            Blocked: One does not accept it.
            NotApplicable: There is none.
        """
        others = [each for each in (self.conditions.second, self.conditions.third) if each]
        if not others:
            raise NotApplicable("no other node of the cluster was given (--second-target)")
        peers = []
        async with self.precondition("reaching the other nodes"):
            for other in others:
                peer = await self._open_at(other)
                if self.conditions.access.token is not None:
                    await self.log_in(peer)
                peers.append(peer)
        return peers

    async def open_coordinator(self) -> Peer:
        """A fresh connection to the coordinator of consumer groups.

        Raises:
            Blocked: It does not accept it.
            NotApplicable: There is none.
        """
        coordinator = self.conditions.coordinator
        if coordinator is None:
            raise NotApplicable("no coordinator of consumer groups was given (--coordinator)")
        async with self.precondition("reaching the coordinator"):
            return await self._open_at(coordinator)

    async def _open_at(self, other: Target) -> Peer:
        return self._speaking(await self.connected(other.port, other.address or other.host))

    async def probe(self) -> Peer:
        """Ask ListTopics on a fresh connection."""
        peer = await self.open()
        await peer.ask(LIST_TOPICS, ALIVE)
        return peer

    async def assert_pair(
        self,
        right: Frame,
        wrong: Frame,
        *,
        answer: Allowed,
        specified: AllowedOutcome,
        deployed: AllowedOutcome,
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
        async with self.precondition("the same frame without its fault"):
            await self.side.ask(right, answer)
        peer = await self.open()
        peer.send_faulty(wrong, _the_fault(right, wrong))
        event = await self.expect(peer, specified=specified, deployed=deployed)
        await self.still_alive()
        return peer, event

    async def expect(
        self, peer: Peer, *, specified: AllowedOutcome, deployed: AllowedOutcome
    ) -> Event | None:
        """Expect what the dialect in force allows; `Quiet` asks for silence."""
        allowed = specified if self.specified else deployed
        if isinstance(allowed, Quiet):
            await peer.expect_quiet(allowed.cite)
            return None
        event: Event = await peer.expect(*allowed)
        return event

    # -- topics and data ---------------------------------------------------------------------------

    @property
    def unknown_topic(self) -> int:
        """A topic id that no target has given away, another one in each case."""
        return 0xF000_0000 + crc32_ieee(self._slug.encode()) % 2**24

    @property
    def consumer(self) -> int:
        """A consumer id of this case's own."""
        return 0x0123_4567_0000_0000 + crc32_ieee(self._slug.encode())

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
        async with self.precondition("creating a topic"):
            frame = await self.side.ask(create_topic(name), topic_response("5.3/answer"))
            topic_id = (read_json(frame.payload) or {}).get("id")
            if not isinstance(topic_id, int) or not 0 < topic_id < 2**32:
                raise self.side.failure("field:id", f"a topic with the id {topic_id!r}")
        return Topic(topic_id, name)

    async def filled(self, count: int = 4, size: int = 20) -> tuple[Topic, bytes]:
        """A topic of this case's own with one batch, and the batch's payload.

        Raises:
            Blocked: The target does not create or store it.
        """
        topic = await self.topic()
        return topic, await self.store(topic, self.values(count, size))

    async def disposable_topic(self) -> Topic:
        """A topic that the case may delete: GetTopic confirms that it is this case's own.

        Raises:
            Blocked: The target does not create it, or says that it is another one.
        """
        topic = await self.topic()
        await self.confirm(topic)
        return topic

    async def confirm(self, topic: Topic) -> None:
        """Make sure that a topic which the case is about to delete is its own.

        Raises:
            Blocked: The target says that it is another one.
        """
        async with self.precondition("making sure that the topic to delete is the kit's own"):
            if not await self._own_topics.confirmed(self.side, topic.id):
                raise self.side.failure("field:name", f"topic {topic.id} is not {topic.name}")

    async def store(self, topic: Topic, values: Sequence[bytes]) -> bytes:
        """Store one batch and return its payload.

        Raises:
            Blocked: It is not acknowledged.
        """
        frame = ingest(topic.id, self.batch(), values)
        async with self.precondition("storing records"):
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
        async with self.precondition("reading the topic back"):
            return (await self.fetch(topic, 0)).data

    # -- judging -----------------------------------------------------------------------------------

    def error(self, *codes: int, cite: str, text: str = "") -> Allowed:
        """An ErrorResponse in the form this target uses."""
        return error(codes, text, self.dialect, cite)


def _the_fault(right: Frame, wrong: Frame) -> str:
    try:
        return faulty_field(right, wrong)
    except ValueError as problem:
        raise KitError(str(problem)) from problem
