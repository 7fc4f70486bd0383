"""Cases with random stimuli: the same for the same seed, and judged by a model."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lance_conformance.engine.expectations import Allowed, closed
from lance_conformance.engine.failures import Failure
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.chance import hunt, told
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import ack, answer, keepalive, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import KEEPALIVE, fetch, get_topic, ingest
from lance_conformance.wire.frame import HEADER_SIZE, MAX_PAYLOAD, Command, Flag, Frame
from lance_conformance.wire.tlv import RECORD_HEADER, boundaries, record

FIELDS = (
    *("magic", "version", "flags", "reserved"),
    *("header_crc", "batch_id", "timestamp_ns", "record_count", "payload_length", "payload_crc"),
)
"""Fields of which a bit is inverted. Not the topic: it might be somebody else's."""
PLACES = {
    "magic": (0, 4), "version": (4, 1), "flags": (5, 1), "reserved": (6, 2), "header_crc": (8, 4),
    "batch_id": (12, 8), "timestamp_ns": (20, 8), "record_count": (28, 4),
    "payload_length": (32, 4), "payload_crc": (36, 4),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Flip:
    """One bit of a frame, inverted."""

    field: str
    byte: int
    bit: int

    def __str__(self) -> str:
        return f"bit {self.bit} of byte {self.byte} ({self.field}) inverted"

    def of(self, data: bytes) -> bytes:
        """The bytes with that bit inverted."""
        changed = bytearray(data)
        changed[self.byte] ^= 1 << self.bit
        return bytes(changed)


def _flip(ctx: CaseContext, field: str) -> Flip:
    start, size = PLACES[field]
    return Flip(field, start + ctx.rng.randrange(size), ctx.rng.randrange(8))


async def _flipped(ctx: CaseContext, frame: Frame, flip: Flip, *allowed: Allowed) -> None:
    """Send a frame with one bit inverted on a fresh connection."""
    peer = await ctx.open()
    peer.send_bytes(flip.of(peer.encode(frame)))
    try:
        await peer.expect(*allowed)
    except Failure as failure:
        raise told(ctx, str(flip), failure) from failure
    finally:
        peer.drop()


def _after_flip(ctx: CaseContext, frame: Frame, flip: Flip) -> list[Allowed]:
    """What a frame with one inverted bit may bring; nothing where it must be waited for."""
    cite = "9.3/any-bit"
    number = int.from_bytes(flip.of(frame.encode(ctx.dialect.compute))[12:20], "little")
    length = int.from_bytes(flip.of(frame.encode(ctx.dialect.compute))[32:36], "little")
    if flip.field == "batch_id":
        return [ack(number, cite)]
    if flip.field == "timestamp_ns" or (flip.field == "record_count" and not ctx.specified):
        return [ack(frame.batch_id, cite)]
    if flip.field == "record_count":
        return [ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-27")]
    if flip.field == "payload_length" and length > MAX_PAYLOAD:
        return [ctx.error(ErrorCode.PAYLOAD_TOO_LARGE, cite="AMB-17"), closed(cite)]
    waits = flip.field == "payload_length" and not 0 < length < len(frame.payload)
    return [] if waits else [closed(cite)]


@case("fuzz/header-bits", "9.3/any-bit", quick=False, weight=3)
async def header_bits(ctx: CaseContext) -> None:
    """Whatever bit of a header is inverted, the frame is judged by what it says then.

    Two random bits of each field but the topic. Bytes 0 to 11 and the payload's checksum close the
    connection; other numbers are taken as they stand.
    """
    frame = ingest((await ctx.topic()).id, ctx.rng.randrange(1, 2**32), ctx.values(2))
    for field in FIELDS * 2:
        flip = _flip(ctx, field)
        allowed = _after_flip(ctx, frame, flip)
        if allowed:
            await _flipped(ctx, frame, flip, *allowed)
    await ctx.still_alive()


@case("fuzz/payload-bits", "11.3/any-bit", quick=False, weight=3)
async def payload_bits(ctx: CaseContext) -> None:
    """Whatever bit of a payload is inverted, its checksum closes the connection."""
    topic = await ctx.topic()
    frame = ingest(topic.id, ctx.batch(), ctx.values(3, 40))
    for _ in range(8):
        place = ctx.rng.randrange(len(frame.payload))
        flip = Flip("payload", HEADER_SIZE + place, ctx.rng.randrange(8))
        await _flipped(ctx, frame, flip, closed("11.3/any-bit"))
    await ctx.still_alive()
    ctx.check(await ctx.stored(topic) == b"", "stored", "a payload with a wrong checksum is stored")


@case("fuzz/garbage", "11.1/any-bytes", weight=3)
async def garbage(ctx: CaseContext) -> None:
    """Random bytes as long as a header or longer close the connection, without a frame."""
    for _ in range(8):
        noise = bytes([ctx.rng.randrange(ord("L"))]) + ctx.rng.randbytes(ctx.rng.randrange(43, 200))
        peer = await ctx.open()
        peer.send_bytes(noise)
        try:
            await peer.expect(closed("11.1/any-bytes"))
        except Failure as failure:
            raise told(ctx, noise.hex(), failure) from failure
    await ctx.still_alive()


@case("fuzz/ends", "3.4/any-end", quick=False, weight=3)
async def ends(ctx: CaseContext) -> None:
    """Wherever in a frame a client goes away, nothing of the frame is stored."""
    topic = await ctx.topic()
    frame = ingest(topic.id, ctx.batch(), ctx.values(4, 10))
    whole = HEADER_SIZE + len(frame.payload)
    for length in sorted(ctx.rng.sample(range(1, whole), 10)):
        peer = await ctx.open()
        peer.send_bytes(peer.encode(frame)[:length])
        await asyncio.sleep(0)
        peer.drop()
    await ctx.still_alive()
    size = len(await ctx.stored(topic))
    ctx.check(size == 0, "stored", f"{size} bytes are stored of frames that never became whole")


# -- chains ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FuzzedBatch:
    """A batch whose records were damaged, or not."""

    payload: bytes
    count: int

    def __str__(self) -> str:
        return f"{self.count} records announced, payload {self.payload.hex()}"

    @property
    def right(self) -> bool:
        """Whether it is as many whole records as announced."""
        ends = boundaries(self.payload)
        return ends[-1] == len(self.payload) and len(ends) - 1 == self.count > 0


def _batch(ctx: CaseContext) -> FuzzedBatch:
    """A batch that is damaged in one place, mostly."""
    sizes = [ctx.rng.randrange(12) for _ in range(ctx.rng.randrange(1, 8))]
    data = b"".join(record(ctx.rng.randbytes(n), ctx.rng.randrange(1, 6)) for n in sizes)
    at = ctx.rng.randrange(len(data))
    damage = ctx.rng.randrange(5)
    if damage == 0:
        data = data[:at] + ctx.rng.randbytes(1) + data[at + 1 :]
    elif damage == 1:
        data = data[: max(at, 1)]
    elif damage == 2:
        data += ctx.rng.randbytes(ctx.rng.randrange(1, RECORD_HEADER))
    return FuzzedBatch(data, len(sizes) + (damage == 3))


@case("fuzz/chains", "8.4/any-chain", quick=False, weight=3)
async def chains(ctx: CaseContext) -> None:
    """Of batches that are damaged at random the whole ones are stored and the others are not.

    The published server stores all of them.
    """
    batches = [_batch(ctx) for _ in range(30)]

    async def attempt(some: Sequence[FuzzedBatch]) -> None:
        topic, peer = await ctx.topic(), await ctx.open()
        for number, batch in enumerate(some, 1):
            await _judged(ctx, peer, topic, number, batch)
        if ctx.specified:
            right = b"".join(batch.payload for batch in some if batch.right)
            stored = await ctx.stored(topic)
            ctx.check(
                stored == right, "stored", f"{len(right)} bytes must be stored: {len(stored)}"
            )

    await hunt(ctx, batches, attempt)


async def _judged(
    ctx: CaseContext, peer: Peer, topic: Topic, number: int, batch: FuzzedBatch
) -> None:
    frame = ingest(topic.id, number, [])
    frame = replace(frame, payload=batch.payload, record_count=batch.count)
    codes = (ErrorCode.INVALID_PAYLOAD, ErrorCode.PAYLOAD_TOO_LARGE)
    fits = batch.right or not ctx.specified
    await peer.ask(
        frame, ack(number, "8.4/any-chain") if fits else ctx.error(*codes, cite="AMB-27")
    )


# -- streams ---------------------------------------------------------------------------------------


@case("fuzz/cuts", "3.4/any-cut", quick=False, weight=3)
async def cuts(ctx: CaseContext) -> None:
    """Wherever a stream of frames is cut, each of its frames is served."""
    topic = await ctx.topic()
    peer = await ctx.open()
    batches = [
        ingest(topic.id, ctx.batch(), ctx.values(1, ctx.rng.randrange(60))) for _ in range(12)
    ]
    stream = b"".join(peer.encode(frame) for batch in batches for frame in (batch, KEEPALIVE))
    places = sorted(ctx.rng.sample(range(1, len(stream)), 40))
    for start, end in zip([0, *places], [*places, len(stream)], strict=True):
        peer.send_bytes(stream[start:end])
        await asyncio.sleep(0)
    due = [ack(batch.batch_id, "3.4/any-cut") for batch in batches]
    for _ in range(2 * len(batches)):
        try:
            event = await peer.frame(keepalive("3.4/any-cut"), *due[:1])
        except Failure as failure:
            raise told(ctx, f"cut at {places}", failure) from failure
        due = due[1:] if event.flags == Flag.ACK else due
    right = b"".join(batch.payload for batch in batches)
    ctx.check(
        await ctx.stored(topic) == right, "data", "the twelve batches must be stored in order"
    )


# -- sequences -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operation:
    """Something a client may ask for at any time.

    Attributes:
        what: ``store``, ``fetch``, ``get`` or ``ping``.
        topic: Which of two topics.
        values: What to store.
        place: Where to fetch from, as a share of what is there.
        most: How much to fetch.
    """

    what: str
    topic: int
    values: tuple[bytes, ...] = ()
    place: float = 0.0
    most: int = 0

    def __str__(self) -> str:
        if self.what == "store":
            return f"store {[len(v) for v in self.values]} bytes in topic {self.topic}"
        if self.what == "fetch":
            return f"fetch {self.most} bytes of topic {self.topic} at {self.place:.0%}"
        return f"{self.what} {self.topic}"


KINDS = ("store", "store", "fetch", "fetch", "fetch", "get", "ping")


def _operation(ctx: CaseContext, *kinds: str) -> Operation:
    rng = ctx.rng
    what, topic = rng.choice(kinds), rng.randrange(2)
    if what == "store":
        values = tuple(rng.randbytes(rng.randrange(40)) for _ in range(rng.randrange(1, 5)))
        return Operation(what, topic, values)
    return Operation(what, topic, place=rng.random(), most=rng.randrange(1, 300))


class World:
    """The target beside its model.

    Args:
        ctx: The context of the case.
        peer: The connection on which everything is asked.
        topics: Two topics.
    """

    def __init__(self, ctx: CaseContext, peer: Peer, topics: Sequence[Topic]) -> None:
        self._ctx = ctx
        self._peer = peer
        self._topics = topics
        self._logs = [b"" for _ in topics]
        self._batch = 0

    def __repr__(self) -> str:
        return f"<World {[len(log) for log in self._logs]}>"

    async def do(self, operation: Operation) -> None:
        """Ask the target, and hold its answer against the model."""
        topic = self._topics[operation.topic]
        if operation.what == "store":
            self._batch += 1
            frame = ingest(topic.id, self._batch, operation.values)
            await self._peer.ask(frame, ack(self._batch, "5.8/any-sequence"))
            self._logs[operation.topic] += frame.payload
        elif operation.what == "fetch":
            await self._fetch(topic, self._logs[operation.topic], operation)
        elif operation.what == "get":
            await self._peer.ask(get_topic(topic.id), topic_response("5.8/any-sequence"))
        else:
            await self._peer.ask(KEEPALIVE, keepalive("5.8/any-sequence"))

    async def _fetch(self, topic: Topic, log: bytes, operation: Operation) -> None:
        starts = boundaries(log)
        start = starts[int(operation.place * len(starts))]
        reply = await self._peer.ask(
            fetch(topic.id, start, operation.most),
            answer(Command.FETCH_RESPONSE, "5.8/any-sequence"),
        )
        got, rest = self._ctx.read(self._peer, reply), log[start : start + operation.most]
        self._ctx.check(
            rest.startswith(got.data) and bool(got.data) == bool(rest),
            "data",
            f"{len(got.data)} bytes from byte {start} of {len(log)} are not what was stored there",
        )
        right = start + len(got.data)
        self._ctx.check(
            got.next_offset == right, "field:next_offset", f"{got.next_offset}, must be {right}"
        )


@case("fuzz/sequences", "5.8/any-sequence", quick=False, weight=3)
async def sequences(ctx: CaseContext) -> None:
    """Whatever is asked in whatever order, two topics hold what was stored and nothing else.

    Six batches and forty random operations; each answer is held against a model of the two logs.
    """
    operations = [_operation(ctx, "store") for _ in range(6)]
    operations += [_operation(ctx, *KINDS) for _ in range(40)]

    async def attempt(some: Sequence[Operation]) -> None:
        world = World(ctx, await ctx.open(), [await ctx.topic() for _ in range(2)])
        for operation in some:
            await world.do(operation)

    await hunt(ctx, operations, attempt)
