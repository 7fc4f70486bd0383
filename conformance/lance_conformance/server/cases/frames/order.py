"""Cases about the order of answers (LWP section 10, AMB-28)."""

from dataclasses import replace

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import ack, answer, keepalive, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import KEEPALIVE, fetch, get_topic, ingest
from lance_conformance.wire.frame import Command, FrameKind


@case("ord/control-and-keepalive", "10.2/answers-in-order")
async def control_and_keepalive(ctx: CaseContext) -> None:
    """Control commands and Keepalives of one write are answered in their order."""
    topic = await ctx.topic()
    ctx.side.send(get_topic(topic.id), KEEPALIVE, get_topic(topic.id), KEEPALIVE)
    for _ in range(2):
        await ctx.side.expect(topic_response("AMB-28"))
        await ctx.side.expect(keepalive("AMB-28"))


@case("ord/ingest-then-fetch", "10.2/answers-in-order")
async def ingest_then_fetch(ctx: CaseContext) -> None:
    """A Fetch after an Ingest on one connection is answered after it and sees it.

    The published server answers the Fetch first.
    """
    topic = await ctx.topic()
    frame = ingest(topic.id, ctx.batch(), ctx.values(2))
    fetched = answer(Command.FETCH_RESPONSE, "AMB-28")
    acked = ack(frame.batch_id, "AMB-28")
    ctx.side.send(frame, fetch(topic.id, 0, 1024))
    if ctx.specified:
        await ctx.side.expect(acked)
        got = ctx.read(ctx.side, await ctx.side.frame(fetched))
        ctx.check(got.data == frame.payload, "data", "the Fetch must see the batch before it")
        return
    kinds = {(await ctx.side.frame(acked, fetched)).kind for _ in range(2)}
    ctx.check(
        kinds == {FrameKind.ACK, FrameKind.CONTROL},
        "count",
        f"one answer each must come, not {kinds}",
    )


@case("ord/refused-then-accepted", "10.2/answers-in-order", quick=False)
async def refused_then_accepted(ctx: CaseContext) -> None:
    """In a pipeline a refusal stands at its place between the Acks.

    The published server sends refusals first.
    """
    topic = await ctx.topic()
    frames = [ingest(topic.id, ctx.batch(), ctx.values(1)) for _ in range(3)]
    acks = [ack(frame.batch_id, "AMB-28") for frame in frames]
    refused = ctx.error(ErrorCode.TOPIC_NOT_FOUND, cite="6.4/unknown-topic", text="unknown topic")
    ctx.side.send(frames[0], replace(frames[1], topic_id=ctx.unknown_topic), frames[2])
    if ctx.specified:
        for outcome in (acks[0], refused, acks[2]):
            await ctx.side.expect(outcome)
        return
    kinds = [(await ctx.side.frame(acks[0], refused, acks[2])).kind for _ in range(3)]
    ctx.check(kinds.count(FrameKind.CONTROL) == 1, "count", f"one refusal must come, not {kinds}")
