"""Cases about many frames and many connections at once (LWP sections 2.1 and 10.2)."""

import asyncio
from dataclasses import replace

from lance_conformance.engine.expectations import closed
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import ack, answer, keepalive, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.control import KEEPALIVE, fetch, get_topic, ingest
from lance_conformance.wire.frame import Command, Frame, FrameKind

LARGE_AND_SMALL = (150_000, 20, 70_000, 20, 20)
"""Bytes of the values."""
CROWD = 24
"""Connections that are open at a time; no server of any use has fewer."""


def _batches(ctx: CaseContext, topic: Topic, count: int) -> list[Frame]:
    return [ingest(topic.id, ctx.batch(), ctx.values(1, 8)) for _ in range(count)]


async def _acked(peer: Peer, frames: list[Frame], cite: str) -> None:
    for frame in frames:
        await peer.expect(ack(frame.batch_id, cite))


async def _deep(ctx: CaseContext, depth: int) -> None:
    topic = await ctx.topic()
    peer, frames = await ctx.open(), _batches(ctx, topic, depth)
    peer.send(*frames)
    await _acked(peer, frames, "10.2/pipelined")
    data = await ctx.stored(topic)
    ctx.check(
        data == b"".join(f.payload for f in frames), "data", f"{depth} batches must be stored"
    )


@case("pipe/depth-200", "10.2/pipelined", quick=False, weight=2)
async def depth_200(ctx: CaseContext) -> None:
    """Two hundred Ingests sent without waiting are acknowledged in order and stored."""
    await _deep(ctx, 200)


@case("pipe/depth-2000", "10.2/pipelined", quick=False, weight=4)
async def depth_2000(ctx: CaseContext) -> None:
    """Two thousand Ingests sent without waiting are acknowledged in order and stored."""
    await _deep(ctx, 2000)


@case("pipe/topics-interleaved", "10.2/ack-order", quick=False, weight=2)
async def topics_interleaved(ctx: CaseContext) -> None:
    """A pipeline to three topics in turn is acknowledged in its order, and each has its own."""
    topics = [await ctx.topic() for _ in range(3)]
    peer = await ctx.open()
    frames = [frame for _ in range(10) for topic in topics for frame in _batches(ctx, topic, 1)]
    peer.send(*frames)
    await _acked(peer, frames, "10.2/ack-order")
    for place, topic in enumerate(topics):
        right = b"".join(frame.payload for frame in frames[place::3])
        data = await ctx.stored(topic)
        ctx.check(data == right, "data", f"topic {topic.id} must hold its ten batches and no other")


@case("pipe/mixed", "10.2/each-answered", quick=False, weight=2)
async def mixed(ctx: CaseContext) -> None:
    """In a pipeline of every kind of frame each one is answered, and nothing else comes."""
    topic = await ctx.topic()
    peer, frames = await ctx.open(), _batches(ctx, topic, 20)
    peer.send(*(f for batch in frames for f in (batch, KEEPALIVE, get_topic(topic.id))))
    allowed = [keepalive("10.2/each-answered"), topic_response("10.2/each-answered")]
    acks = [ack(frame.batch_id, "10.2/each-answered") for frame in frames]
    seen = []
    for _ in range(3 * len(frames)):
        seen.append((await peer.frame(*allowed, *acks[:1])).kind)
        acks = acks[1:] if seen[-1] is FrameKind.ACK else acks
    for kind in (FrameKind.ACK, FrameKind.KEEPALIVE, FrameKind.CONTROL):
        count = seen.count(kind)
        ctx.check(
            count == len(frames), "count", f"{len(frames)} {kind.value}s must come, not {count}"
        )


@case("pipe/fetches", "10.2/each-answered")
async def fetches(ctx: CaseContext) -> None:
    """Fifty Fetches sent without waiting are answered, each with what it asked for."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(50, 11))
    peer = await ctx.open()
    starts = range(0, len(payload), 16)
    peer.send(*(fetch(topic.id, start, 16) for start in starts))
    for start in starts:
        reply = await peer.frame(answer(Command.FETCH_RESPONSE, "10.2/each-answered"))
        got = ctx.read(peer, reply)
        ctx.check(got.data == payload[start : start + 16], "data", f"wrong data from byte {start}")


@case("pipe/crowd", "2.1/connections", quick=False, weight=2)
async def crowd(ctx: CaseContext) -> None:
    """Many connections write to one topic at the same moment; each batch is stored once."""
    topic = await ctx.topic()
    peers = [await ctx.open() for _ in range(CROWD)]
    frames = _batches(ctx, topic, CROWD)
    for peer, frame in zip(peers, frames, strict=True):
        peer.send(frame)
    for peer, frame in zip(peers, frames, strict=True):
        await peer.expect(ack(frame.batch_id, "2.1/connections"))
    data = await ctx.stored(topic)
    size = len(frames[0].payload)
    found = sorted(data[at : at + size] for at in range(0, len(data), size))
    ctx.check(
        found == sorted(f.payload for f in frames), "data", f"{CROWD} batches, each of them once"
    )


@case("pipe/answers-on-own-connection", "2.1/connections", quick=False)
async def answers_on_own_connection(ctx: CaseContext) -> None:
    """What one connection asks is answered on it, and not on the other ones."""
    topic = await ctx.topic()
    asking, listening = await ctx.open(), await ctx.open()
    frames = _batches(ctx, topic, 3)
    asking.send(*frames)
    await _acked(asking, frames, "2.1/connections")
    await asking.ask(get_topic(topic.id), topic_response("2.1/connections"))
    await listening.expect_quiet("2.1/connections")


@case("pipe/large-then-small", "10.2/log-order", quick=False)
async def large_then_small(ctx: CaseContext) -> None:
    """Small batches that follow large ones in the same write are stored after them."""
    topic, peer = await ctx.topic(), await ctx.open()
    frames = [ingest(topic.id, ctx.batch(), ctx.values(1, size)) for size in LARGE_AND_SMALL]
    peer.send(*frames)
    await _acked(peer, frames, "10.2/ack-order")
    right = b"".join(frame.payload for frame in frames)
    data = (await ctx.fetch(topic, 0, len(right))).data
    ctx.check(data == right, "data", f"{len(frames)} batches, large and small, out of order")


@case("pipe/fault-of-a-neighbour", "2.1/connections", quick=False)
async def fault_of_a_neighbour(ctx: CaseContext) -> None:
    """A connection that is closed for a fault takes no other one with it."""
    topic = await ctx.topic()
    good, bad = await ctx.open(), await ctx.open()
    before, behind = _batches(ctx, topic, 2)
    await good.ask(before, ack(before.batch_id))
    bad.send_faulty(replace(KEEPALIVE, magic=b"EVIL"), "magic")
    async with ctx.precondition("the end of a connection with a wrong magic"):
        await bad.expect(closed("11.1/magic"))
    await good.ask(behind, ack(behind.batch_id, "2.1/connections"))


@case("pipe/fault-behind-batches", "11.1/before-fault", quick=False)
async def fault_behind_batches(ctx: CaseContext) -> None:
    """Batches in front of a broken frame are stored whole and in order, or not at all."""
    topic = await ctx.topic()
    peer, frames = await ctx.open(), _batches(ctx, topic, 5)
    broken = peer.encode(KEEPALIVE).replace(b"LANC", b"EVIL")
    peer.send_bytes(b"".join(peer.encode(frame) for frame in frames) + broken)
    acks = [ack(frame.batch_id, "11.1/before-fault") for frame in frames]
    while isinstance(await peer.expect(closed("11.1/before-fault"), *acks[:1]), Frame):
        acks = acks[1:]
    await _is_a_beginning(ctx, topic, frames, least=len(frames) - len(acks))
    await ctx.still_alive()


@case("pipe/gone-in-the-middle", "4.2/receipt", quick=False, weight=2)
async def gone_in_the_middle(ctx: CaseContext) -> None:
    """Of a client that goes away in the middle whole batches are stored, in order."""
    topic = await ctx.topic()
    peer, frames = await ctx.open(), _batches(ctx, topic, 40)
    data = b"".join(peer.encode(frame) for frame in frames)
    peer.send_bytes(data[:-9])
    await peer.expect(ack(frames[0].batch_id))
    peer.drop()
    await ctx.still_alive()
    await _is_a_beginning(ctx, topic, frames[:-1], least=1)


async def _is_a_beginning(ctx: CaseContext, topic: Topic, frames: list[Frame], least: int) -> None:
    data = await ctx.stored(topic)
    ends = [len(b"".join(f.payload for f in frames[:n])) for n in range(len(frames) + 1)]
    whole = len(data) in ends and b"".join(f.payload for f in frames).startswith(data)
    ctx.check(whole, "data", f"{len(data)} bytes are stored, which are not whole batches in order")
    count = ends.index(len(data))
    ctx.check(count >= least, "data", f"{least} batches were acknowledged, {count} are stored")


@case("pipe/side-by-side", "2.1/connections", quick=False)
async def side_by_side(ctx: CaseContext) -> None:
    """Frames of two connections that arrive in pieces, by turns, are not mixed up."""
    topic = await ctx.topic()
    peers = [await ctx.open() for _ in range(2)]
    frames = _batches(ctx, topic, 2)
    streams = [peer.encode(frame) for peer, frame in zip(peers, frames, strict=True)]
    for start in range(0, len(streams[0]), 7):
        for peer, stream in zip(peers, streams, strict=True):
            peer.send_bytes(stream[start : start + 7])
            await asyncio.sleep(0)
    for peer, frame in zip(peers, frames, strict=True):
        await peer.expect(ack(frame.batch_id, "2.1/connections"))
