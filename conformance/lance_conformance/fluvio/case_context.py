"""The conversation of one case: both servers, own topics, records and checks."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from lance_conformance.engine.base_context import BaseContext
from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.failures import Blocked, Failure, NotApplicable
from lance_conformance.fluvio.peer import Peer, Ticket
from lance_conformance.fluvio.wire.calls import (
    FETCH_BYTES,
    Call,
    api_versions,
    create_topic,
    delete_topic,
    list_objects,
    produce,
    stream_fetch,
    update_offsets,
)
from lance_conformance.fluvio.wire.compression import Compression
from lance_conformance.fluvio.wire.errors import Outcome
from lance_conformance.fluvio.wire.objects import ObjectKind, Partition
from lance_conformance.fluvio.wire.records import Record, StoredRecord, batch
from lance_conformance.fluvio.wire.responses import Appended, Produced, StreamPiece

A = TypeVar("A")
Role = Literal["sc", "spu"]
_LOOK = 0.02
"""Seconds between two looks at what the SC has heard."""
_EMPTY = 8
"""Pieces without a new record that a stream may bring in a row."""
DIALECT = "published"
"""There is one: that of the published programs."""


@dataclass(frozen=True, slots=True)
class FluvioDialect:
    """What is spoken, and where the records are: the only dialect there is.

    Attributes:
        name: As it is called in reports.
        spu: Host and port of the SPU, as the SC told; `None` before it was asked.
        late: The SC hears of new records only later. Published ones cannot create topics any more
            where one was deleted before.
        left: Topics of cases that have ended; they go when all have.
    """

    name: str = DIALECT
    spu: tuple[str, int] | None = None
    late: bool = False
    left: list[str] = field(default_factory=list, compare=False)


@dataclass(slots=True)
class OpenStream:
    """A stream that is being read.

    Attributes:
        peer: The connection.
        ticket: What every piece answers.
        stream: Its id, once a piece has come.
    """

    peer: Peer
    ticket: Ticket[StreamPiece]
    stream: int = -1

    async def piece(self) -> StreamPiece:
        """The next piece, which must be no error."""
        found = await self.peer.answer(self.ticket)
        expect_done(found.outcome, "a piece of a stream", self.peer)
        self.stream = found.stream
        return found

    async def acknowledge(self, offset: int) -> None:
        """Say that everything before an offset was read, and let more come."""
        (told,) = await self.peer.ask(update_offsets((offset, self.stream)))
        expect_done(told.outcome, "an acknowledgement", self.peer)


class CaseContext(BaseContext):
    """One case's conversation with a target.

    Args:
        conditions: What the run has in common.
        case_id: Goes into names and into the seed.
        budget: Seconds until the deadline.

    Attributes:
        sc: A connection to the SC for all that is not the question itself.
    """

    sc: Peer
    _spu: Peer | None = None

    def __init__(self, conditions: Conditions, case_id: str, budget: float) -> None:
        super().__init__(conditions, case_id, budget)
        self._topics: list[str] = []

    # -- beginning and end -------------------------------------------------------------------------

    async def begin(self) -> None:
        """Ask both servers the control probe; no case starts before they answer.

        Raises:
            Blocked: One does not.
        """
        async with self.precondition("the control probe, ApiVersions on fresh connections"):
            self.sc, self._spu = await self.probe()

    async def probe(self) -> tuple[Peer, Peer | None]:
        """Both servers answer ApiVersions with the id of the request, which no echo does."""
        sc = await self._probed("sc")
        return sc, await self._probed("spu") if self.cluster.spu else None

    async def _probed(self, role: Role) -> Peer:
        peer = await self.open(role)
        await peer.raw_answer(peer.post(api_versions()))
        return peer

    @property
    def cluster(self) -> FluvioDialect:
        """What is known of the target."""
        found: FluvioDialect = self.conditions.dialect
        return found

    @property
    def spu(self) -> Peer:
        """A connection to the SPU for all that is not the question itself.

        Raises:
            Blocked: Nobody knows where it is.
        """
        if self._spu is None:
            raise _no_spu()
        return self._spu

    async def tidy_up(self, *, clean: bool) -> None:
        """Delete the topics of this case, whose names no other program uses, or leave them."""
        if self.cluster.late:
            self.cluster.left.extend(self._topics)
        elif self._topics:
            peer = self.sc if clean else await self.open("sc")
            await self.remove(peer, self._topics)

    async def remove(self, peer: Peer, names: Sequence[str]) -> None:
        """Delete topics, those too that are not there."""
        for name in names:
            await peer.ask(delete_topic(name))

    async def settled(self, name: str, ends: Sequence[int]) -> bool:
        """Whether the SC hears, in the time there is, how many records partitions have.

        Args:
            name: A topic of this case.
            ends: The offset after the last record of each partition.
        """
        wanted = [(f"{name}-{number}", end) for number, end in enumerate(ends)]
        until = self.deadline  # of now: each answer moves it
        while True:
            found = (await self.sc.ask(list_objects(ObjectKind.PARTITION))).objects
            told = {each.name: each.end for each in found if isinstance(each, Partition)}
            if all(told.get(part) == end for part, end in wanted):
                return True
            if asyncio.get_running_loop().time() + _LOOK > until:
                return False
            await asyncio.sleep(_LOOK)

    async def before_deletion(self, name: str, *ends: int) -> None:
        """Let the SC hear of the records of a topic before it is deleted.

        Raises:
            Blocked: It does not.
        """
        if self.cluster.late and not await self.settled(name, ends):
            raise Blocked("not-settled", f"cannot ask: the SC never tells the end of {name}")

    # -- connections -------------------------------------------------------------------------------

    async def open(self, role: Role) -> Peer:
        """A fresh connection to one of the servers.

        Raises:
            Failure: It is not accepted.
        """
        if role == "sc":
            return Peer(await self.connected(), self.time)
        if self.cluster.spu is None:
            raise _no_spu()
        host, port = self.cluster.spu
        return Peer(await self.connected(port, host), self.time)

    async def closes(self, role: Role, right: Call[A], wrong: bytes, field: str) -> None:
        """Send a right request, then its twin with one fault, which must end its connection only.

        Args:
            role: Which server is asked.
            right: The control.
            wrong: The bytes of the stimulus.
            field: In which field it is wrong.

        Raises:
            Blocked: The control is not answered.
            Failure: The connection stays, something is answered, or the target is gone.
        """
        async with self.precondition("the same request without its fault"):
            await (self.sc if role == "sc" else self.spu).ask(right)
        peer = await self.open(role)
        peer.send_faulty(wrong, field)
        await peer.expect_closed()
        await self.still_alive()

    # -- topics and records ------------------------------------------------------------------------

    def own(self, name: str) -> str:
        """Note that a name is to be deleted at the end."""
        self._topics.append(name)
        return name

    async def topic(self, partitions: int = 1) -> str:
        """A topic of this case's own.

        Raises:
            Blocked: The target does not create it.
        """
        name = self.own(self.name())
        async with self.precondition("creating a topic"):
            status = await self.sc.ask(create_topic(name, partitions))
            expect_done(status.outcome, "Create", self.sc)
        return name

    def records(self, count: int, size: int = 20) -> list[Record]:
        """Records that can be told apart, the same for the same seed.

        They have no zero byte: which cases a server fails that cuts values there must not be
        a matter of chance.
        """
        return [Record(value.replace(b"\0", b"\1")) for value in self.values(count, size)]

    async def put(
        self,
        topic: str,
        records: Sequence[Record],
        partition: int = 0,
        compression: Compression = Compression.NONE,
    ) -> int:
        """Store one batch and return the offset of its first record.

        Raises:
            Failure: It is refused.
        """
        call = produce([(topic, [(partition, self.batch(records, compression))])])
        return self.appended(await self.spu.ask(call)).base_offset

    async def store(self, topic: str, records: Sequence[Record], partition: int = 0) -> int:
        """Store one batch, for cases about something else.

        Raises:
            Blocked: It is refused.
        """
        async with self.precondition("storing records"):
            return await self.put(topic, records, partition)

    def batch(
        self, records: Sequence[Record], compression: Compression = Compression.NONE
    ) -> bytes:
        """A batch as published producers write it.

        Raises:
            NotApplicable: The package for this compression is missing here.
        """
        try:
            return batch(records, compression)
        except ModuleNotFoundError as missing:
            raise NotApplicable(
                f"needs {missing.name}: pip install 'lance-sdk[fluvio]'"
            ) from missing

    def appended(self, found: Produced) -> Appended:
        """The answer for the only entry of a request, which must be no error."""
        entry = self.entry(found)
        expect_done(entry.outcome, "Produce", self.spu)
        return entry

    def entry(self, found: Produced) -> Appended:
        """The answer for the only entry of a request."""
        entries = [entry for _, listed in found.topics for entry in listed]
        self.check(len(entries) == 1, "body:entries", f"1 entry sent, {len(entries)} answered")
        return entries[0]

    async def reading(self, call: Call[StreamPiece], peer: Peer | None = None) -> OpenStream:
        """A stream on a connection of its own, or on this one."""
        asked = peer or await self.open("spu")
        return OpenStream(asked, asked.post(call))

    async def read(
        self,
        topic: str,
        count: int,
        partition: int = 0,
        offset: int = 0,
        max_bytes: int = FETCH_BYTES,
    ) -> list[StoredRecord]:
        """Some records from an offset on, however many pieces they take.

        Raises:
            Failure: The stream ends, or brings nothing, before they all came.
        """
        found: list[StoredRecord] = []
        empty = 0
        stream = await self.reading(stream_fetch(topic, partition, offset, max_bytes=max_bytes))
        while len(found) < count:
            piece = await stream.piece()
            new = [each for each in piece.records if each.offset >= offset]
            empty = 0 if new else empty + 1
            # Each answer gives the next one its time again, so a stream that goes on and brings
            # nothing new would hold the case for as long as any case may last.
            message = f"{count} records from {offset} on, and {empty} pieces in a row had none"
            self.check(empty < _EMPTY, "timeout", message)
            if not piece.batches and piece.cut > max_bytes:
                max_bytes = piece.cut
                stream.peer.drop()
                call = stream_fetch(topic, partition, offset, max_bytes=max_bytes)
                stream = await self.reading(call)
                continue
            found += new
            if found:
                offset = max(offset, found[-1].offset + 1)
            if len(found) < count:
                await stream.acknowledge(offset)
        stream.peer.drop()
        return found

    async def stored(self, topic: str, count: int, partition: int = 0) -> list[Record]:
        """All records of a partition, for cases about something else.

        Raises:
            Blocked: They cannot be read.
        """
        async with self.precondition("reading the records back"):
            return [each.record for each in await self.read(topic, count, partition)]

    async def turn(self) -> None:
        """Let what was written leave, before more is."""
        await asyncio.sleep(0)

    # -- judging -----------------------------------------------------------------------------------

    def expect_code(self, outcome: Outcome, *codes: int) -> None:
        """Judge an error.

        Args:
            outcome: What came.
            *codes: Those that will do.

        Raises:
            Failure: It is none of them.
        """
        wanted = " or ".join(map(str, codes))
        self.check(
            outcome.code in codes,
            f"error:{outcome.code}",
            f"expected error {wanted}; got {outcome}",
        )


def expect_done(outcome: Outcome, what: str, peer: Peer) -> None:
    """Judge what must succeed.

    Raises:
        Failure: It did not.
    """
    if outcome.code:
        raise Failure(
            f"error:{outcome.code}",
            f"{what} must succeed; got {outcome}",
            expected=(f"{what} without an error",),
            received=str(outcome),
            connection=peer.number,
        )


def _no_spu() -> Blocked:
    """Why an SPU cannot be asked; to a preflight that ran out of time none was told of, either."""
    what = "cannot ask, because the SC does not tell where its SPU is"
    return Blocked("no-spu", what, timing=True)
