"""Cases about the log as a whole: what was acknowledged is there, once, whole and in order."""

import asyncio
from collections.abc import Sequence

from lance_conformance.cases.registry import case
from lance_conformance.peer.conn import Peer
from lance_conformance.peer.dialogue import Dialogue, Topic
from lance_conformance.peer.expect import ack
from lance_conformance.wire.control import END_OFFSET, ingest
from lance_conformance.wire.frame import HEADER_SIZE, Frame
from lance_conformance.wire.tlv import boundaries

PIPELINE = 24
PRODUCERS = 3
ROUNDS = 4
NONCE = 7 << 40
"""From here on a batch id is known on every connection (AMB-25)."""


async def _send_all(peer: Peer, frames: Sequence[Frame], cite: str) -> None:
    peer.send(*frames)
    for frame in frames:
        await peer.expect(ack(frame.batch_id, cite))


def _batches(c: Dialogue, topic: Topic, count: int, records: int = 2) -> list[Frame]:
    return [ingest(topic.id, c.batch(), c.values(records)) for _ in range(count)]


def _joined(frames: Sequence[Frame]) -> bytes:
    return b"".join(frame.payload for frame in frames)


async def _whole(c: Dialogue, topic: Topic, step: int = 65536, peer: Peer | None = None) -> bytes:
    """The whole log, fetch by fetch."""
    data, offset = b"", 0
    while True:
        got = await c.fetch(topic, offset, step, peer)
        if not got.data:
            return data
        data += got.data
        c.check(got.next_offset > offset, "field:next_offset", f"it stays at {offset}")
        offset = got.next_offset


@case("log/acked-is-there", "4.2/all-acked")
async def acked_is_there(c: Dialogue) -> None:
    """Of a long pipeline everything that was acknowledged is in the log, and nothing else."""
    topic = await c.topic()
    frames = _batches(c, topic, PIPELINE)
    async with c.control("the acknowledgements"):
        await _send_all(c.side, frames, "10.2/pipelined")
    data = await _whole(c, topic)
    right = _joined(frames)
    c.check(data == right, "data", f"{len(right)} bytes were acknowledged, {len(data)} are there")


async def _produce(c: Dialogue, topic: Topic) -> list[list[Frame]]:
    """What several producers stored at the same time, each in its order."""
    peers = [await c.open() for _ in range(PRODUCERS)]
    sent: list[list[Frame]] = [[] for _ in peers]
    async with c.control("storing from several connections"):
        for _ in range(ROUNDS):
            rounds = [_batches(c, topic, 1, 3) for _ in peers]
            for own, new in zip(sent, rounds, strict=True):
                own.extend(new)
            await asyncio.gather(
                *(_send_all(p, new, "4.2/one-ack") for p, new in zip(peers, rounds, strict=True))
            )
    return sent


@case("log/batches-not-torn", "4.2/not-torn")
async def batches_not_torn(c: Dialogue) -> None:
    """The records of a batch lie side by side, whoever else is writing."""
    topic = await c.topic()
    sent = await _produce(c, topic)
    data = await _whole(c, topic)
    for own in sent:
        for frame in own:
            c.check(frame.payload in data, "data", f"batch {frame.batch_id} is torn or gone")


@case("log/producer-order", "10.2/producer-order")
async def producer_order(c: Dialogue) -> None:
    """The batches of each producer lie in the order in which it sent them."""
    topic = await c.topic()
    sent = await _produce(c, topic)
    data = await _whole(c, topic)
    for own in sent:
        places = [data.find(frame.payload[:25]) for frame in own]
        c.check(places == sorted(places), "order", f"batches of one producer lie at {places}")


@case("log/nothing-twice", "4.2/once", quick=False)
async def nothing_twice(c: Dialogue) -> None:
    """What several producers stored is there once, and takes the room it needs."""
    topic = await c.topic()
    sent = await _produce(c, topic)
    size = len(await _whole(c, topic))
    right = sum(len(frame.payload) for own in sent for frame in own)
    c.check(size == right, "data-size", f"{right} bytes were acknowledged, {size} are there")


@case("log/readers-agree", "5.8/readers-agree")
async def readers_agree(c: Dialogue) -> None:
    """Whoever reads, and in steps of whatever size, gets the same bytes."""
    topic = await c.topic()
    for _ in range(2):
        await c.store(topic, c.values(4, 30))
    seen = [await _whole(c, topic, step, await c.open()) for step in (65536, 110, 75)]
    c.check(seen[0] and len(set(seen)) == 1, "data", "three readers must get the same bytes")


@case("log/visible-to-all", "4.2/receipt-everywhere")
async def visible_to_all(c: Dialogue) -> None:
    """What was acknowledged on one connection is there for every other one at once."""
    topic = await c.topic()
    reader = await c.open()
    async with c.control("reading the empty topic"):
        await c.fetch(topic, 0, peer=reader)
    for _ in range(2):
        await c.store(topic, c.values(1))
    data = (await c.fetch(topic, 0, peer=reader)).data
    c.check(len(data) == 50, "data-size", f"50 bytes are acknowledged, {len(data)} are visible")


@case("log/grows-only", "5.8/grows-only", quick=False)
async def grows_only(c: Dialogue) -> None:
    """What was read once stays as it was, however much is written behind it."""
    topic = await c.topic()
    before = b""
    for _ in range(8):
        await c.store(topic, c.values(2))
        now = (await c.fetch(topic, 0)).data
        c.check(now.startswith(before), "data", f"the first {len(before)} bytes have changed")
        c.check(len(now) > len(before), "data-size", "the log has not grown")
        before = now


@case("log/end-follows", "5.8/end-follows", quick=False)
async def end_follows(c: Dialogue) -> None:
    """The end of the log is the number of bytes stored so far, after every batch."""
    topic = await c.topic()
    end = 0
    for count in (1, 5, 2):
        end += len(await c.store(topic, c.values(count)))
        where = (await c.fetch(topic, END_OFFSET)).next_offset
        c.check(where == end, "field:next_offset", f"the end must be {end}, is {where}")


@case("log/topics-interleaved", "6.1/isolation")
async def topics_interleaved(c: Dialogue) -> None:
    """Batches for several topics in one pipeline each go to their own."""
    topics = [await c.topic() for _ in range(2)]
    frames = [batch for _ in range(4) for t in topics for batch in _batches(c, t, 1)]
    async with c.control("the acknowledgements"):
        await _send_all(c.side, frames, "10.2/pipelined")
    for topic in topics:
        right = _joined([frame for frame in frames if frame.topic_id == topic.id])
        c.check(await _whole(c, topic) == right, "data", f"topic {topic.id} holds other records")


@case("log/half-a-batch", "3.4/half-a-frame")
async def half_a_batch(c: Dialogue) -> None:
    """Of a batch whose connection ends in the middle of it nothing is stored."""
    topic, peer = await c.topic(), await c.open()
    frame = ingest(topic.id, c.batch(), c.values(3))
    half = HEADER_SIZE + boundaries(frame.payload)[2] + 3
    peer.send_bytes(peer.encode(frame)[:half])
    peer.drop()
    await c.still_alive()
    data = (await c.fetch(topic, 0)).data
    c.check(data == b"", "data", f"{len(data)} bytes of half a batch are in the log")


@case("log/whole-or-nothing", "4.2/whole-or-nothing", quick=False)
async def whole_or_nothing(c: Dialogue) -> None:
    """A batch whose sender does not wait for the Ack is stored wholly or not at all."""
    topic, peer = await c.topic(), await c.open()
    frame = ingest(topic.id, c.batch(), c.values(3))
    peer.send(frame)
    peer.drop()
    await c.still_alive()
    data = (await c.fetch(topic, 0)).data
    right = data in (b"", frame.payload)
    c.check(right, "data", f"{len(data)} bytes of a batch of {len(frame.payload)} are in the log")


@case("log/any-bytes", "8.1/any-bytes", quick=False)
async def any_bytes(c: Dialogue) -> None:
    """A value may hold any bytes: frames, record headers, zeros, line ends."""
    topic = await c.topic()
    inner = c.side.encode(ingest(topic.id, 1, c.values(1)))
    values = [inner, bytes(40), b"\x01\x05\0\0\0LANC\r\n\0\xff", bytes(range(256))]
    payload = await c.store(topic, values)
    data = await _whole(c, topic)
    c.check(data == payload, "data", "the values must come back as they were")


@case("log/beyond-64-kib", "8.7/large-log", quick=False)
async def beyond_64_kib(c: Dialogue) -> None:
    """A batch and a Fetch of more than 64 KiB come through whole."""
    topic = await c.topic()
    payload = await c.store(topic, c.values(3, 24_000))
    data = (await c.fetch(topic, 0, 2**20)).data
    c.check(data == payload, "data", f"{len(payload)} bytes were stored, {len(data)} came back")


@case("log/many-records", "5.9/record-count", quick=False)
async def many_records(c: Dialogue) -> None:
    """A batch of 300 records is one of 300 records when it is fetched.

    The published server says 1 whenever there is data.
    """
    topic = await c.topic()
    payload = await c.store(topic, c.values(300, 2))
    got = await c.fetch(topic, 0)
    c.check(got.data == payload, "data", "the records must come back as they were")
    right = 300 if c.specified else 1
    said = got.record_count
    c.check(said in (right, None), "field:record_count", f"must be {right}, is {said}")


@case("log/retry-elsewhere-once", "10.4/retry-elsewhere", dialects=("specified",), quick=False)
async def retry_elsewhere_once(c: Dialogue) -> None:
    """A batch that comes again on a new connection, unchanged, is acknowledged and stored once."""
    topic = await c.topic()
    frame = ingest(topic.id, NONCE + c.batch(), c.values(2))
    for _ in range(2):
        peer = await c.open()
        await peer.ask(frame, ack(frame.batch_id, "AMB-25"))
        peer.drop()
    data = await c.stored(topic)
    c.check(data == frame.payload, "data", f"{len(frame.payload)} bytes, stored {len(data)}")


@case("log/other-producer-same-id", "10.4/other-producer", quick=False)
async def other_producer_same_id(c: Dialogue) -> None:
    """Two producers that both count from 1 and send the same are two producers."""
    topic = await c.topic()
    frame = ingest(topic.id, 1, c.values(1))
    for _ in range(2):
        peer = await c.open()
        await peer.ask(frame, ack(frame.batch_id, "AMB-25"))
        peer.drop()
    data = await c.stored(topic)
    c.check(data == frame.payload * 2, "data", f"two batches were sent, {len(data)} bytes stored")
