"""Cases about many connections, and about peers that are slow (LWP section 13.2)."""

import asyncio

from lance_conformance.server.case_context import ALIVE, CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import ack, answer
from lance_conformance.server.peer import Peer
from lance_conformance.wire.control import LIST_TOPICS, fetch, get_topic, ingest
from lance_conformance.wire.frame import Command, Frame

VISITORS = 24
MANY = 64
READS = 120
"""Answers that nobody reads, 60 KB each: more than the sockets of both sides hold."""
SENDING = 6 * 1024 * 1024
"""More than the target's socket holds of what it sends, by the settings that systems come with."""
AT_LEAST, AT_MOST = 0.05, 3.0
"""Seconds to fill the target's socket."""
WRITES = 400


async def _served(ctx: CaseContext, topic: Topic) -> None:
    """Somebody else is served: reads, writes and asks."""
    peer = await ctx.open()
    await peer.ask(LIST_TOPICS, ALIVE)
    frame = ingest(topic.id, ctx.batch(), ctx.values(1))
    await peer.ask(frame, ack(frame.batch_id))


async def _both_full(ctx: CaseContext, topic: Topic, peer: Peer) -> None:
    """Serve others until the sockets of a slow reader are full on both sides.

    Ours is full when what it holds does not grow any more. The target's is full after as many times
    the time that this took as it holds more; none of it is left to luck.
    """
    clock = asyncio.get_running_loop().time
    began = grown = clock()
    held = 0
    while held == 0 or clock() - grown < max(AT_LEAST, grown - began):
        await _served(ctx, topic)
        if peer.held > held:
            held, grown = peer.held, clock()
        elif clock() - began > AT_MOST:
            break
    rate = held / max(grown - began, 0.001)
    until = clock() + min(AT_MOST, max(AT_LEAST, 2 * SENDING / rate if rate else AT_MOST))
    while clock() < until:
        await _served(ctx, topic)


async def _unread(ctx: CaseContext) -> tuple[Topic, bytes, Peer]:
    """A topic of 60 KiB, and a connection that asks for it often and reads nothing."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, [bytes([number]) * 20_000 for number in range(3)])
    peer = await ctx.open()
    peer.read_slowly()
    peer.send(*[fetch(topic.id, 0, len(payload))] * READS)
    return topic, payload, peer


@case("crowd/slow-reader-harms-nobody", "13.2/slow-reader", quick=False)
async def slow_reader_harms_nobody(ctx: CaseContext) -> None:
    """While one peer leaves megabytes of answers unread, others are served."""
    other = await ctx.topic()
    _, _, peer = await _unread(ctx)
    await _both_full(ctx, other, peer)
    await _served(ctx, other)
    peer.drop()


@case("crowd/slow-reader-gets-everything", "13.2/slow-reader", quick=False)
async def slow_reader_gets_everything(ctx: CaseContext) -> None:
    """A peer that begins to read late gets every answer, whole and in order."""
    other = await ctx.topic()
    _, payload, peer = await _unread(ctx)
    await _both_full(ctx, other, peer)
    peer.read_on()
    for _ in range(READS):
        frame = await peer.frame(answer(Command.FETCH_RESPONSE, "13.2/slow-reader"))
        ctx.check(ctx.read(peer, frame).data == payload, "data", "each answer must be the topic")


@case("crowd/unread-acks", "13.2/slow-reader", quick=False)
async def unread_acks(ctx: CaseContext) -> None:
    """Hundreds of batches sent before the first Ack is read are all acknowledged, in order."""
    topic = await ctx.topic()
    peer = await ctx.open()
    frames = [ingest(topic.id, ctx.batch(), ctx.values(1, 8)) for _ in range(WRITES)]
    peer.read_slowly()
    peer.send(*frames)
    await ctx.still_alive()
    peer.read_on()
    for frame in frames:
        await peer.expect(ack(frame.batch_id, "13.2/slow-reader"))


async def _unfinished(ctx: CaseContext, frame: Frame, size: int) -> list[Peer]:
    peers = [await ctx.open() for _ in range(VISITORS)]
    for peer in peers:
        peer.send_bytes(peer.encode(frame)[:size])
    return peers


@case("crowd/half-headers", "13.2/unfinished")
async def half_headers(ctx: CaseContext) -> None:
    """Peers that stop in the middle of a header hold nobody up, and may go on."""
    topic = await ctx.topic()
    request = get_topic(topic.id)
    peers = await _unfinished(ctx, request, 20)
    await _served(ctx, topic)
    for peer in peers:
        peer.send_bytes(peer.encode(request)[20:])
        await peer.expect(answer(Command.TOPIC_RESPONSE, "13.2/unfinished"))


@case("crowd/half-payloads", "13.2/unfinished", quick=False)
async def half_payloads(ctx: CaseContext) -> None:
    """Peers that stop in the middle of a large batch hold nobody up, and store nothing."""
    topic, other = await ctx.topic(), await ctx.topic()
    batch = ingest(topic.id, ctx.batch(), [bytes(200_000)])
    await _unfinished(ctx, batch, 50_000)
    await _served(ctx, other)
    ctx.check(not await ctx.stored(topic), "data", "half a batch is in the topic")


@case("crowd/many", "13.2/crowd", quick=False)
async def many(ctx: CaseContext) -> None:
    """Sixty-four connections at a time are all served."""
    topic = await ctx.topic()
    peers = [await ctx.open() for _ in range(MANY)]
    for peer in peers:
        peer.send(get_topic(topic.id))
    for peer in peers:
        await peer.expect(answer(Command.TOPIC_RESPONSE, "13.2/crowd"))


@case("crowd/come-and-go", "13.2/crowd", quick=False)
async def come_and_go(ctx: CaseContext) -> None:
    """Connections that come and go leave room for others."""
    for _ in range(MANY):
        (await ctx.open()).drop()
    await ctx.still_alive()
