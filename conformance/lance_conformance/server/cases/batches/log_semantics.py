"""Cases about the log as a whole: what was acknowledged is there, once, whole and in order."""

import asyncio
from collections.abc import Sequence

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import ack
from lance_conformance.server.peer import Peer
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


def _batches(ctx: CaseContext, topic: Topic, count: int, records: int = 2) -> list[Frame]:
    return [ingest(topic.id, ctx.batch(), ctx.values(records)) for _ in range(count)]


def _joined(frames: Sequence[Frame]) -> bytes:
    return b"".join(frame.payload for frame in frames)


async def _whole(
    ctx: CaseContext, topic: Topic, size: int, step: int = 65536, peer: Peer | None = None
) -> bytes:
    """The whole log, fetch by fetch, or a little more than its size where it seems endless."""
    data, offset = b"", 0
    while len(data) <= size:
        got = await ctx.fetch(topic, offset, step, peer)
        if not got.data:
            break
        data += got.data
        ctx.check(got.next_offset > offset, "field:next_offset", f"it stays at {offset}")
        offset = got.next_offset
    return data


@case("log/acked-is-there", "4.2/all-acked")
async def acked_is_there(ctx: CaseContext) -> None:
    """Of a long pipeline everything that was acknowledged is in the log, and nothing else."""
    topic = await ctx.topic()
    frames = _batches(ctx, topic, PIPELINE)
    async with ctx.precondition("the acknowledgements"):
        await _send_all(ctx.side, frames, "10.2/pipelined")
    right = _joined(frames)
    data = await _whole(ctx, topic, len(right))
    ctx.check(data == right, "data", f"{len(right)} bytes were acknowledged, {len(data)} are there")


async def _produce(ctx: CaseContext, topic: Topic) -> list[list[Frame]]:
    """What several producers stored at the same time, each in its order."""
    peers = [await ctx.open() for _ in range(PRODUCERS)]
    sent: list[list[Frame]] = [[] for _ in peers]
    async with ctx.precondition("storing from several connections"):
        for _ in range(ROUNDS):
            rounds = [_batches(ctx, topic, 1, 3) for _ in peers]
            for own, new in zip(sent, rounds, strict=True):
                own.extend(new)
            await asyncio.gather(
                *(_send_all(p, new, "4.2/one-ack") for p, new in zip(peers, rounds, strict=True))
            )
    return sent


def _size(sent: Sequence[Sequence[Frame]]) -> int:
    return sum(len(frame.payload) for own in sent for frame in own)


@case("log/batches-not-torn", "4.2/not-torn")
async def batches_not_torn(ctx: CaseContext) -> None:
    """The records of a batch lie side by side, whoever else is writing."""
    topic = await ctx.topic()
    sent = await _produce(ctx, topic)
    data = await _whole(ctx, topic, _size(sent))
    for own in sent:
        for frame in own:
            ctx.check(frame.payload in data, "data", f"batch {frame.batch_id} is torn or gone")


@case("log/producer-order", "10.2/producer-order")
async def producer_order(ctx: CaseContext) -> None:
    """The batches of each producer lie in the order in which it sent them."""
    topic = await ctx.topic()
    sent = await _produce(ctx, topic)
    data = await _whole(ctx, topic, _size(sent))
    for own in sent:
        places = [data.find(frame.payload[:25]) for frame in own]
        ctx.check(places == sorted(places), "order", f"batches of one producer lie at {places}")


@case("log/nothing-twice", "4.2/once", quick=False)
async def nothing_twice(ctx: CaseContext) -> None:
    """What several producers stored is there once, and takes the room it needs."""
    topic = await ctx.topic()
    sent = await _produce(ctx, topic)
    right = _size(sent)
    size = len(await _whole(ctx, topic, right))
    ctx.check(size == right, "data-size", f"{right} bytes were acknowledged, {size} are there")


@case("log/readers-agree", "5.8/readers-agree")
async def readers_agree(ctx: CaseContext) -> None:
    """Whoever reads, and in steps of whatever size, gets the same bytes."""
    topic = await ctx.topic()
    size = 0
    for _ in range(2):
        size += len(await ctx.store(topic, ctx.values(4, 30)))
    seen = [await _whole(ctx, topic, size, step, await ctx.open()) for step in (65536, 110, 75)]
    ctx.check(seen[0] and len(set(seen)) == 1, "data", "three readers must get the same bytes")


@case("log/visible-to-all", "4.2/receipt-everywhere")
async def visible_to_all(ctx: CaseContext) -> None:
    """What was acknowledged on one connection is there for every other one at once."""
    topic = await ctx.topic()
    reader = await ctx.open()
    async with ctx.precondition("reading the empty topic"):
        await ctx.fetch(topic, 0, peer=reader)
    for _ in range(2):
        await ctx.store(topic, ctx.values(1))
    data = (await ctx.fetch(topic, 0, peer=reader)).data
    ctx.check(len(data) == 50, "data-size", f"50 bytes are acknowledged, {len(data)} are visible")


@case("log/grows-only", "5.8/grows-only", quick=False)
async def grows_only(ctx: CaseContext) -> None:
    """What was read once stays as it was, however much is written after it."""
    topic = await ctx.topic()
    before = b""
    for _ in range(8):
        await ctx.store(topic, ctx.values(2))
        now = (await ctx.fetch(topic, 0)).data
        ctx.check(now.startswith(before), "data", f"the first {len(before)} bytes have changed")
        ctx.check(len(now) > len(before), "data-size", "the log has not grown")
        before = now


@case("log/end-follows", "5.8/end-follows", quick=False)
async def end_follows(ctx: CaseContext) -> None:
    """The end of the log is the number of bytes stored so far, after every batch."""
    topic = await ctx.topic()
    end = 0
    for count in (1, 5, 2):
        end += len(await ctx.store(topic, ctx.values(count)))
        where = (await ctx.fetch(topic, END_OFFSET)).next_offset
        ctx.check(where == end, "field:next_offset", f"the end must be {end}, is {where}")


@case("log/topics-interleaved", "6.1/isolation")
async def topics_interleaved(ctx: CaseContext) -> None:
    """Batches for several topics in one pipeline each go to their own."""
    topics = [await ctx.topic() for _ in range(2)]
    frames = [batch for _ in range(4) for t in topics for batch in _batches(ctx, t, 1)]
    async with ctx.precondition("the acknowledgements"):
        await _send_all(ctx.side, frames, "10.2/pipelined")
    for topic in topics:
        right = _joined([frame for frame in frames if frame.topic_id == topic.id])
        held = await _whole(ctx, topic, len(right))
        ctx.check(held == right, "data", f"topic {topic.id} holds other records")


@case("log/half-a-batch", "3.4/half-a-frame")
async def half_a_batch(ctx: CaseContext) -> None:
    """Of a batch whose connection ends in the middle of it nothing is stored."""
    topic, peer = await ctx.topic(), await ctx.open()
    frame = ingest(topic.id, ctx.batch(), ctx.values(3))
    half = HEADER_SIZE + boundaries(frame.payload)[2] + 3
    peer.send_bytes(peer.encode(frame)[:half])
    peer.drop()
    await ctx.still_alive()
    data = (await ctx.fetch(topic, 0)).data
    ctx.check(data == b"", "data", f"{len(data)} bytes of half a batch are in the log")


@case("log/whole-or-nothing", "4.2/whole-or-nothing", quick=False)
async def whole_or_nothing(ctx: CaseContext) -> None:
    """A batch whose sender does not wait for the Ack is stored wholly or not at all."""
    topic, peer = await ctx.topic(), await ctx.open()
    frame = ingest(topic.id, ctx.batch(), ctx.values(3))
    peer.send(frame)
    peer.drop()
    await ctx.still_alive()
    data = (await ctx.fetch(topic, 0)).data
    right = data in (b"", frame.payload)
    ctx.check(right, "data", f"{len(data)} bytes of a batch of {len(frame.payload)} are in the log")


@case("log/any-bytes", "8.1/any-bytes", quick=False)
async def any_bytes(ctx: CaseContext) -> None:
    """A value may hold any bytes: frames, record headers, zeros, line ends."""
    topic = await ctx.topic()
    inner = ctx.side.encode(ingest(topic.id, 1, ctx.values(1)))
    values = [inner, bytes(40), b"\x01\x05\0\0\0LANC\r\n\0\xff", bytes(range(256))]
    payload = await ctx.store(topic, values)
    data = await _whole(ctx, topic, len(payload))
    ctx.check(data == payload, "data", "the values must come back as they were")


@case("log/beyond-64-kib", "8.7/large-log", quick=False)
async def beyond_64_kib(ctx: CaseContext) -> None:
    """A batch and a Fetch of more than 64 KiB come through whole."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(3, 24_000))
    data = (await ctx.fetch(topic, 0, 2**20)).data
    ctx.check(data == payload, "data", f"{len(payload)} bytes were stored, {len(data)} came back")


@case("log/many-records", "5.9/record-count", quick=False)
async def many_records(ctx: CaseContext) -> None:
    """A batch of 300 records is one of 300 records when it is fetched.

    The published server says 1 whenever there is data.
    """
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(300, 2))
    got = await ctx.fetch(topic, 0)
    ctx.check(got.data == payload, "data", "the records must come back as they were")
    right = 300 if ctx.specified else 1
    said = got.record_count
    ctx.check(said in (right, None), "field:record_count", f"must be {right}, is {said}")


@case("log/retry-elsewhere-once", "10.4/retry-elsewhere", dialects=("specified",), quick=False)
async def retry_elsewhere_once(ctx: CaseContext) -> None:
    """A batch that comes again on a new connection, unchanged, is acknowledged and stored once."""
    topic = await ctx.topic()
    frame = ingest(topic.id, NONCE + ctx.batch(), ctx.values(2))
    for _ in range(2):
        peer = await ctx.open()
        await peer.ask(frame, ack(frame.batch_id, "AMB-25"))
        peer.drop()
    data = await ctx.stored(topic)
    ctx.check(data == frame.payload, "data", f"{len(frame.payload)} bytes, stored {len(data)}")


@case("log/other-producer-same-id", "10.4/other-producer", quick=False)
async def other_producer_same_id(ctx: CaseContext) -> None:
    """Two producers that both count from 1 and send the same are two producers."""
    topic = await ctx.topic()
    frame = ingest(topic.id, 1, ctx.values(1))
    for _ in range(2):
        peer = await ctx.open()
        await peer.ask(frame, ack(frame.batch_id, "AMB-25"))
        peer.drop()
    data = await ctx.stored(topic)
    ctx.check(data == frame.payload * 2, "data", f"two batches were sent, {len(data)} bytes stored")
