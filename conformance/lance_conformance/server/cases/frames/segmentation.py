"""Cases about frames and TCP segments, which have nothing to do with each other."""

import asyncio
from collections.abc import Sequence

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import ack, keepalive, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.control import KEEPALIVE, LIST_TOPICS, get_topic, ingest
from lance_conformance.wire.frame import HEADER_SIZE, Frame


async def _settle(ctx: CaseContext) -> None:
    """Let the target see what was sent so far: a round trip on another connection."""
    await ctx.side.ask(LIST_TOPICS, topic_response("5.4/answer"))


async def _send_in_pieces(ctx: CaseContext, peer: Peer, data: bytes, cuts: Sequence[int]) -> None:
    start = 0
    for cut in cuts:
        peer.send_bytes(data[start:cut])
        start = cut
        await _settle(ctx)
    peer.send_bytes(data[start:])


async def _ingest(ctx: CaseContext) -> tuple[Peer, Topic, Frame]:
    topic = await ctx.topic()
    return await ctx.open(), topic, ingest(topic.id, ctx.batch(), ctx.values(2))


@case("seg/byte-by-byte", "3.4/stream")
async def byte_by_byte(ctx: CaseContext) -> None:
    """An Ingest that arrives one byte at a time is acknowledged and stored whole."""
    peer, topic, frame = await _ingest(ctx)
    data = peer.encode(frame)
    for position in range(len(data)):
        peer.send_bytes(data[position : position + 1])
        await asyncio.sleep(0)  # one turn of the loop, so that each byte is a write of its own
    await peer.expect(ack(frame.batch_id, "3.4/stream"))
    ctx.check(await ctx.stored(topic) == frame.payload, "data", "the payload must be stored whole")


@case("seg/cut-in-header", "3.4/stream")
async def cut_in_header(ctx: CaseContext) -> None:
    """A header that arrives in pieces is put together again."""
    peer, _, frame = await _ingest(ctx)
    await _send_in_pieces(ctx, peer, peer.encode(frame), [1, 8, HEADER_SIZE - 1])
    await peer.expect(ack(frame.batch_id, "3.4/stream"))


@case("seg/cut-before-payload", "3.4/stream")
async def cut_before_payload(ctx: CaseContext) -> None:
    """A payload that arrives after its header, in pieces, belongs to it."""
    peer, topic, frame = await _ingest(ctx)
    await _send_in_pieces(ctx, peer, peer.encode(frame), [HEADER_SIZE, HEADER_SIZE + 7])
    await peer.expect(ack(frame.batch_id, "3.4/stream"))
    ctx.check(await ctx.stored(topic) == frame.payload, "data", "the payload must be stored whole")


@case("seg/coalesced-frames", "3.4/stream")
async def coalesced_frames(ctx: CaseContext) -> None:
    """Three frames in one segment are three frames."""
    topic = await ctx.topic()
    peer = await ctx.open()
    peer.send(get_topic(topic.id), KEEPALIVE, get_topic(topic.id))
    for _ in range(3):
        await peer.expect(keepalive("3.4/stream"), topic_response("3.4/stream"))


@case("seg/frame-and-a-half", "3.4/stream")
async def frame_and_a_half(ctx: CaseContext) -> None:
    """The beginning of a frame after a whole one is kept until the rest arrives."""
    peer, _, frame = await _ingest(ctx)
    data = peer.encode(frame)
    peer.send_bytes(peer.encode(LIST_TOPICS) + data[:20])
    await peer.expect(topic_response("3.4/stream"))
    peer.send_bytes(data[20:])
    await peer.expect(ack(frame.batch_id, "3.4/stream"))
