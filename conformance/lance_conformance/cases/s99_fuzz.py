"""Cases with random stimuli: the same for the same seed, and judged by a model."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lance_conformance.cases.chance import hunt, told
from lance_conformance.cases.registry import case
from lance_conformance.peer.conn import Peer
from lance_conformance.peer.dialogue import Dialogue, Topic
from lance_conformance.peer.expect import ack, answer, keepalive, topic_response
from lance_conformance.peer.verdict import Failure
from lance_conformance.protocols.outcomes import Allowed, closed
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


def _flip(c: Dialogue, field: str) -> Flip:
    start, size = PLACES[field]
    return Flip(field, start + c.rng.randrange(size), c.rng.randrange(8))


async def _flipped(c: Dialogue, frame: Frame, flip: Flip, *allowed: Allowed) -> None:
    """Send a frame with one bit inverted on a fresh connection."""
    peer = await c.open()
    peer.send_bytes(flip.of(peer.encode(frame)))
    try:
        await peer.expect(*allowed)
    except Failure as failure:
        raise told(c, str(flip), failure) from failure
    finally:
        peer.drop()


def _after_flip(c: Dialogue, frame: Frame, flip: Flip) -> list[Allowed]:
    """What a frame with one inverted bit may bring; nothing where it must be waited for."""
    cite = "9.3/any-bit"
    number = int.from_bytes(flip.of(frame.encode(c.dialect.compute))[12:20], "little")
    length = int.from_bytes(flip.of(frame.encode(c.dialect.compute))[32:36], "little")
    if flip.field == "batch_id":
        return [ack(number, cite)]
    if flip.field == "timestamp_ns" or (flip.field == "record_count" and not c.specified):
        return [ack(frame.batch_id, cite)]
    if flip.field == "record_count":
        return [c.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-27")]
    if flip.field == "payload_length" and length > MAX_PAYLOAD:
        return [c.error(ErrorCode.PAYLOAD_TOO_LARGE, cite="AMB-17"), closed(cite)]
    waits = flip.field == "payload_length" and not 0 < length < len(frame.payload)
    return [] if waits else [closed(cite)]


@case("fuzz/header-bits", "9.3/any-bit", quick=False, weight=3)
async def header_bits(c: Dialogue) -> None:
    """Whatever bit of a header is inverted, the frame is judged by what it says then.

    Two random bits of each field but the topic. Bytes 0 to 11 and the payload's checksum close the
    connection; other numbers are taken as they stand.
    """
    frame = ingest((await c.topic()).id, c.rng.randrange(1, 2**32), c.values(2))
    for field in FIELDS * 2:
        flip = _flip(c, field)
        allowed = _after_flip(c, frame, flip)
        if allowed:
            await _flipped(c, frame, flip, *allowed)
    await c.still_alive()


@case("fuzz/payload-bits", "11.3/any-bit", quick=False, weight=3)
async def payload_bits(c: Dialogue) -> None:
    """Whatever bit of a payload is inverted, its checksum closes the connection."""
    topic = await c.topic()
    frame = ingest(topic.id, c.batch(), c.values(3, 40))
    for _ in range(8):
        place = c.rng.randrange(len(frame.payload))
        flip = Flip("payload", HEADER_SIZE + place, c.rng.randrange(8))
        await _flipped(c, frame, flip, closed("11.3/any-bit"))
    await c.still_alive()
    c.check(await c.stored(topic) == b"", "stored", "a payload with a wrong checksum is stored")


@case("fuzz/garbage", "11.1/any-bytes", weight=3)
async def garbage(c: Dialogue) -> None:
    """Random bytes as long as a header or longer close the connection, without a frame."""
    for _ in range(8):
        noise = bytes([c.rng.randrange(ord("L"))]) + c.rng.randbytes(c.rng.randrange(43, 200))
        peer = await c.open()
        peer.send_bytes(noise)
        try:
            await peer.expect(closed("11.1/any-bytes"))
        except Failure as failure:
            raise told(c, noise.hex(), failure) from failure
    await c.still_alive()


@case("fuzz/ends", "3.4/any-end", quick=False, weight=3)
async def ends(c: Dialogue) -> None:
    """Wherever in a frame a client goes away, nothing of the frame is stored."""
    topic = await c.topic()
    frame = ingest(topic.id, c.batch(), c.values(4, 10))
    whole = HEADER_SIZE + len(frame.payload)
    for length in sorted(c.rng.sample(range(1, whole), 10)):
        peer = await c.open()
        peer.send_bytes(peer.encode(frame)[:length])
        await asyncio.sleep(0)
        peer.drop()
    await c.still_alive()
    size = len(await c.stored(topic))
    c.check(size == 0, "stored", f"{size} bytes are stored of frames that never became whole")


# -- chains ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Batch:
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


def _batch(c: Dialogue) -> Batch:
    """A batch that is damaged in one place, mostly."""
    sizes = [c.rng.randrange(12) for _ in range(c.rng.randrange(1, 8))]
    data = b"".join(record(c.rng.randbytes(n), c.rng.randrange(1, 6)) for n in sizes)
    at = c.rng.randrange(len(data))
    damage = c.rng.randrange(5)
    if damage == 0:
        data = data[:at] + c.rng.randbytes(1) + data[at + 1 :]
    elif damage == 1:
        data = data[: max(at, 1)]
    elif damage == 2:
        data += c.rng.randbytes(c.rng.randrange(1, RECORD_HEADER))
    return Batch(data, len(sizes) + (damage == 3))


@case("fuzz/chains", "8.4/any-chain", quick=False, weight=3)
async def chains(c: Dialogue) -> None:
    """Of batches that are damaged at random the whole ones are stored and the others are not.

    The published server stores all of them.
    """
    batches = [_batch(c) for _ in range(30)]

    async def attempt(some: Sequence[Batch]) -> None:
        topic, peer = await c.topic(), await c.open()
        for number, batch in enumerate(some, 1):
            await _judged(c, peer, topic, number, batch)
        if c.specified:
            right = b"".join(batch.payload for batch in some if batch.right)
            stored = await c.stored(topic)
            c.check(stored == right, "stored", f"{len(right)} bytes must be stored: {len(stored)}")

    await hunt(c, batches, attempt)


async def _judged(c: Dialogue, peer: Peer, topic: Topic, number: int, batch: Batch) -> None:
    frame = ingest(topic.id, number, [])
    frame = replace(frame, payload=batch.payload, record_count=batch.count)
    codes = (ErrorCode.INVALID_PAYLOAD, ErrorCode.PAYLOAD_TOO_LARGE)
    fits = batch.right or not c.specified
    await peer.ask(frame, ack(number, "8.4/any-chain") if fits else c.error(*codes, cite="AMB-27"))


# -- streams ---------------------------------------------------------------------------------------


@case("fuzz/cuts", "3.4/any-cut", quick=False, weight=3)
async def cuts(c: Dialogue) -> None:
    """Wherever a stream of frames is cut, each of its frames is served."""
    topic = await c.topic()
    peer = await c.open()
    batches = [ingest(topic.id, c.batch(), c.values(1, c.rng.randrange(60))) for _ in range(12)]
    stream = b"".join(peer.encode(frame) for batch in batches for frame in (batch, KEEPALIVE))
    places = sorted(c.rng.sample(range(1, len(stream)), 40))
    for start, end in zip([0, *places], [*places, len(stream)], strict=True):
        peer.send_bytes(stream[start:end])
        await asyncio.sleep(0)
    due = [ack(batch.batch_id, "3.4/any-cut") for batch in batches]
    for _ in range(2 * len(batches)):
        try:
            event = await peer.frame(keepalive("3.4/any-cut"), *due[:1])
        except Failure as failure:
            raise told(c, f"cut at {places}", failure) from failure
        due = due[1:] if event.flags == Flag.ACK else due
    right = b"".join(batch.payload for batch in batches)
    c.check(await c.stored(topic) == right, "data", "the twelve batches must be stored in order")


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


def _operation(c: Dialogue, *kinds: str) -> Operation:
    rng = c.rng
    what, topic = rng.choice(kinds), rng.randrange(2)
    if what == "store":
        values = tuple(rng.randbytes(rng.randrange(40)) for _ in range(rng.randrange(1, 5)))
        return Operation(what, topic, values)
    return Operation(what, topic, place=rng.random(), most=rng.randrange(1, 300))


class World:
    """The target beside its model.

    Args:
        c: The dialogue.
        peer: The connection on which everything is asked.
        topics: Two topics.
    """

    def __init__(self, c: Dialogue, peer: Peer, topics: Sequence[Topic]) -> None:
        self._c = c
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
        got, rest = self._c.read(self._peer, reply), log[start : start + operation.most]
        self._c.check(
            rest.startswith(got.data) and bool(got.data) == bool(rest),
            "data",
            f"{len(got.data)} bytes from byte {start} of {len(log)} are not what was stored there",
        )
        right = start + len(got.data)
        self._c.check(
            got.next_offset == right, "field:next_offset", f"{got.next_offset}, must be {right}"
        )


@case("fuzz/sequences", "5.8/any-sequence", quick=False, weight=3)
async def sequences(c: Dialogue) -> None:
    """Whatever is asked in whatever order, two topics hold what was stored and nothing else.

    Six batches and forty random operations; each answer is held against a model of the two logs.
    """
    operations = [_operation(c, "store") for _ in range(6)]
    operations += [_operation(c, *KINDS) for _ in range(40)]

    async def attempt(some: Sequence[Operation]) -> None:
        world = World(c, await c.open(), [await c.topic() for _ in range(2)])
        for operation in some:
            await world.do(operation)

    await hunt(c, operations, attempt)
