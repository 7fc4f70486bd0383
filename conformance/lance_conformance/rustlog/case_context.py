"""The conversation of one case: connections, own topics, controls and checks."""

from collections.abc import Sequence

from lance_conformance.engine.base_context import BaseContext
from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.expectations import Allowed
from lance_conformance.rustlog.dialect import Forms
from lance_conformance.rustlog.peer import Peer, exactly, kind
from lance_conformance.rustlog.requests import (
    LIST,
    commit,
    create,
    fetch,
    json_committed,
    produce,
)
from lance_conformance.rustlog.wire.frame import framed
from lance_conformance.rustlog.wire.message import Message

Exchange = tuple[Message, Allowed]


class CaseContext(BaseContext):
    """One case's conversation with the target.

    Topics stay: no request of RustLog deletes one.

    Args:
        conditions: What the run has in common.
        case_id: Goes into names and into the seed.
        budget: Seconds until the deadline.

    Attributes:
        side: A connection for all that is not the question itself.
        speech: What the target speaks.
    """

    side: Peer
    speech: Forms

    def __init__(self, conditions: Conditions, case_id: str, budget: float) -> None:
        super().__init__(conditions, case_id, budget)
        self.speech = conditions.dialect

    async def begin(self) -> None:
        """Ask the control probe; no case starts before it is answered.

        Raises:
            Blocked: It is not.
        """
        async with self.precondition("the control probe on a fresh connection"):
            self.side = await self.probe()

    async def probe(self) -> Peer:
        """Ask for the topics, or in JSON for an offset, on a fresh connection."""
        peer = await self.open()
        await peer.ask(*self.exchange())
        return peer

    def exchange(self) -> Exchange:
        """A request that every target of this dialect answers, as no echo could."""
        if self.speech.binary:
            return LIST, kind("ListTopics", "broker-topics/list")
        group = self.name()
        return (
            json_committed(group, 0, group),
            exactly("offset-fetch-response/none", "OffsetFetch", "json", offset=None),
        )

    async def open(self) -> Peer:
        """A fresh connection."""
        connection = await self.connected()
        return Peer(connection, self.time, read_only=self.conditions.read_only)

    async def topic(self, partitions: int = 2) -> str:
        """A topic of this case's own.

        Raises:
            Blocked: The target does not create it.
        """
        name = self.name()
        async with self.precondition("creating a topic"):
            await self.create(name, partitions)
        return name

    async def create(self, name: str, partitions: int) -> None:
        """Create a topic of this name."""
        await self.side.ask(create(name, partitions), kind("CreateTopic", "broker-topics/create"))

    async def store(self, topic: str, records: Sequence[bytes], partition: int = 0) -> None:
        """Store records.

        Raises:
            Blocked: The target does not take them.
        """
        async with self.precondition("storing records"):
            request = produce(topic, partition, records)
            await self.side.ask(request, kind("Produce", "broker-produce/answer"))

    async def filled(self, count: int = 3, size: int = 20) -> tuple[str, list[bytes]]:
        """A topic of this case's own, with records in its partition 0."""
        topic, records = await self.topic(), self.values(count, size)
        await self.store(topic, records)
        return topic, records

    async def commit(self, group: str, topic: str, offset: int, partition: int = 0) -> None:
        """Note how far a group has read.

        Raises:
            Blocked: The target does not take it.
        """
        async with self.precondition("committing an offset"):
            await self.side.ask(
                commit(group, topic, partition, offset),
                exactly("broker-groups/commit", "OffsetCommit", success=1),
            )

    async def stored(self, topic: str, partition: int = 0) -> tuple[bytes, ...]:
        """The records of a partition, as one Fetch returns them.

        Raises:
            Blocked: They cannot be read.
        """
        async with self.precondition("reading the partition back"):
            answer = await self.side.ask(
                fetch(topic, partition, 0), kind("Fetch", "broker-fetch/answer")
            )
        records: tuple[bytes, ...] = answer.fields["records"]
        return records

    async def spoil(
        self, right: Exchange, wrong: bytes, fault: str, *allowed: Allowed, stays: bool = True
    ) -> None:
        """Send a right request, then a payload with one fault on a fresh connection.

        Args:
            right: The control: a request, and the answer it must bring, else the case is blocked.
            wrong: The payload of the stimulus.
            fault: The one field in which it is wrong.
            *allowed: What it may bring.
            stays: The connection must serve the next request.
        """
        async with self.precondition("the same request without its fault"):
            await self.side.ask(*right)
        await self.hurt(framed(wrong), fault, *allowed, stays=stays)

    async def hurt(
        self, stimulus: bytes, fault: str, *allowed: Allowed, stays: bool = True
    ) -> Peer:
        """Send wrong bytes on a fresh connection, and see that the target gets over it.

        Args:
            stimulus: The bytes.
            fault: The one field in which they are wrong.
            *allowed: What they may bring.
            stays: The connection must serve the next request.
        """
        peer = await self.open()
        peer.send_bytes(stimulus, fault)
        await peer.expect(*allowed)
        if stays:
            await peer.ask(*self.exchange())
        await self.still_alive()
        return peer
