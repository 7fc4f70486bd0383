"""Cases about frames that never become whole (LWP section 3.4)."""

from lance_conformance.server.case_context import ALIVE, CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import ack
from lance_conformance.wire.control import LIST_TOPICS, ingest
from lance_conformance.wire.frame import HEADER_SIZE


async def _seen(ctx: CaseContext) -> None:
    """Let the target see what was sent so far."""
    for _ in range(2):
        await ctx.side.ask(LIST_TOPICS, ALIVE)


async def _nothing(ctx: CaseContext, topic: Topic) -> None:
    size = len(await ctx.stored(topic))
    ctx.check(size == 0, "stored", f"{size} bytes are stored of a frame that is not whole")


@case("seg/unfinished-not-stored", "3.4/whole", quick=False)
async def unfinished_not_stored(ctx: CaseContext) -> None:
    """Whole records in a frame that is not whole yet are not stored; with its rest they are."""
    topic = await ctx.topic()
    peer, frame = await ctx.open(), ingest(topic.id, ctx.batch(), ctx.values(2))
    data = peer.encode(frame)
    rest = len(frame.payload) // 2
    peer.send_bytes(data[:-rest])
    await _seen(ctx)
    await _nothing(ctx, topic)
    peer.send_bytes(data[-rest:])
    await peer.expect(ack(frame.batch_id, "3.4/whole"))
    ctx.check(await ctx.stored(topic) == frame.payload, "data", "the whole payload must be stored")


async def _abandoned(ctx: CaseContext, missing: int) -> None:
    topic = await ctx.topic()
    peer, frame = await ctx.open(), ingest(topic.id, ctx.batch(), ctx.values(2))
    peer.send_bytes(peer.encode(frame)[:-missing])
    await _seen(ctx)
    peer.drop()
    await ctx.still_alive()
    await _nothing(ctx, topic)


@case("seg/abandoned-in-payload", "3.4/whole", quick=False)
async def abandoned_in_payload(ctx: CaseContext) -> None:
    """Of a frame whose client goes away in the middle of its payload nothing is stored."""
    await _abandoned(ctx, 25)


@case("seg/abandoned-before-payload", "3.4/whole", quick=False)
async def abandoned_before_payload(ctx: CaseContext) -> None:
    """A client that goes away after a header leaves nothing, and harms nobody."""
    await _abandoned(ctx, 50)


@case("seg/abandoned-in-header", "3.4/whole", quick=False)
async def abandoned_in_header(ctx: CaseContext) -> None:
    """A client that goes away in the middle of a header leaves nothing, and harms nobody."""
    await _abandoned(ctx, 50 + HEADER_SIZE // 2)
