"""Cases about Ingest that is refused (LWP sections 4.1, 6.4 and 8; AMB-10, AMB-27)."""

from dataclasses import replace

from lance_conformance.engine.expectations import Allowed
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import Quiet, ack, answer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import delete_topic, ingest, read_json
from lance_conformance.wire.frame import Command, Frame
from lance_conformance.wire.tlv import RECORD_HEADER


def _no_topic(ctx: CaseContext, *codes: int) -> list[Allowed]:
    return [ctx.error(*codes, cite="6.4/unknown-topic", text="unknown topic")]


@case("ing/unknown-topic", "6.4/unknown-topic")
async def unknown_topic(ctx: CaseContext) -> None:
    """An Ingest for a topic that does not exist is answered with an ErrorResponse."""
    frame = ingest((await ctx.topic()).id, ctx.batch(), ctx.values(1))
    refused = _no_topic(ctx, ErrorCode.TOPIC_NOT_FOUND)
    await ctx.assert_pair(
        frame,
        replace(frame, topic_id=ctx.unknown_topic),
        answer=ack(frame.batch_id),
        specified=refused,
        deployed=refused,
    )


@case("ing/unknown-topic-keeps-connection", "6.4/connection-stays")
async def unknown_topic_keeps_connection(ctx: CaseContext) -> None:
    """After an Ingest for an unknown topic the connection goes on."""
    topic = await ctx.topic()
    async with ctx.precondition("the refusal of an unknown topic"):
        await ctx.side.ask(
            ingest(ctx.unknown_topic, ctx.batch(), ctx.values(1)),
            *_no_topic(ctx, ErrorCode.TOPIC_NOT_FOUND),
        )
    frame = ingest(topic.id, ctx.batch(), ctx.values(1))
    await ctx.side.ask(frame, ack(frame.batch_id, "6.4/connection-stays"))


@case("ing/error-names-batch", "12.1/batch", dialects=("specified",))
async def error_names_batch(ctx: CaseContext) -> None:
    """The error for an Ingest names the batch in its details, so that a pipeline can tell."""
    frame = await ctx.side.ask(
        ingest(ctx.unknown_topic, 77, ctx.values(1)),
        answer(Command.ERROR_RESPONSE, "6.4/unknown-topic"),
    )
    details = (read_json(frame.payload) or {}).get("details")
    named = details.get("batch_id") if isinstance(details, dict) else None
    ctx.check(named == 77, "field:batch_id", f"details.batch_id must be 77, is {named!r}")


@case("ing/deleted-topic", "6.4/unknown-topic", quick=False)
async def deleted_topic(ctx: CaseContext) -> None:
    """An Ingest for a deleted topic is answered with an ErrorResponse."""
    topic = await ctx.disposable_topic()
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(topic.id), answer(Command.TOPIC_RESPONSE, "5.6/delete"))
    refused = _no_topic(ctx, ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND)
    await ctx.side.ask(ingest(topic.id, ctx.batch(), ctx.values(1)), *refused)


async def _refused(ctx: CaseContext, topic: Topic, right: Frame, wrong: Frame, cite: str) -> None:
    """`specified` refuses what `deployed` stores without looking."""
    await ctx.assert_pair(
        right,
        wrong,
        answer=ack(right.batch_id),
        specified=[ctx.error(ErrorCode.INVALID_PAYLOAD, cite=cite)],
        deployed=[ack(wrong.batch_id, cite)],
    )
    if ctx.specified:
        left = len(await ctx.stored(topic)) - len(right.payload)
        ctx.check(left == 0, "stored", f"the refused batch left {left} bytes")


@case("ing/batch-id-zero", "4.1/batch-id")
async def batch_id_zero(ctx: CaseContext) -> None:
    """An Ingest with the batch id 0 is refused and leaves nothing behind.

    The published server accepts it.
    """
    topic = await ctx.topic()
    right = ingest(topic.id, ctx.batch(), ctx.values(1))
    await _refused(ctx, topic, right, replace(right, batch_id=0), "AMB-33")


@case("ing/record-count-zero", "4.1/record-count", quick=False)
async def record_count_zero(ctx: CaseContext) -> None:
    """An Ingest that announces no records is refused and leaves nothing behind."""
    await _count(ctx, 0)


@case("ing/record-count-too-high", "4.1/record-count")
async def record_count_too_high(ctx: CaseContext) -> None:
    """An Ingest that announces more records than it has is refused and leaves nothing behind."""
    await _count(ctx, 3)


@case("ing/record-count-too-low", "4.1/record-count")
async def record_count_too_low(ctx: CaseContext) -> None:
    """An Ingest that announces fewer records than it has is refused and leaves nothing behind."""
    await _count(ctx, 1)


async def _count(ctx: CaseContext, count: int) -> None:
    topic = await ctx.topic()
    right = ingest(topic.id, ctx.batch(), ctx.values(2))
    await _refused(ctx, topic, right, replace(right, record_count=count), "AMB-27")


@case("ing/chain-cut", "8.4/chain")
async def chain_cut(ctx: CaseContext) -> None:
    """A record whose length runs past the payload is refused and leaves nothing behind."""
    topic = await ctx.topic()
    right = ingest(topic.id, ctx.batch(), ctx.values(2))
    await _refused(ctx, topic, right, replace(right, payload=right.payload[:-1]), "AMB-27")


@case("ing/chain-trailing", "8.4/chain")
async def chain_trailing(ctx: CaseContext) -> None:
    """Bytes after the last record are refused and leave nothing behind."""
    topic = await ctx.topic()
    right = ingest(topic.id, ctx.batch(), ctx.values(2))
    await _refused(ctx, topic, right, replace(right, payload=right.payload + b"\x01\x00"), "AMB-27")


@case("ing/empty", "4.1/payload")
async def empty(ctx: CaseContext) -> None:
    """An Ingest without a payload is refused.

    The published server does not answer it.
    """
    frame = ingest((await ctx.topic()).id, ctx.batch(), ctx.values(1))
    await ctx.assert_pair(
        frame,
        replace(frame, payload=b""),
        answer=ack(frame.batch_id),
        specified=[ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-27")],
        deployed=Quiet("AMB-27"),
    )


@case("ing/half-good-batch", "8.4/chain", quick=False)
async def half_good_batch(ctx: CaseContext) -> None:
    """Of a batch whose second record is broken, the first one is not stored either.

    The broken length makes the third record unreadable, too. The published server stores the batch
    as it is.
    """
    topic = await ctx.topic()
    right = ingest(topic.id, ctx.batch(), ctx.values(3))
    second = RECORD_HEADER + 20
    shorter = (19).to_bytes(4, "little")
    broken = right.payload[: second + 1] + shorter + right.payload[second + RECORD_HEADER :]
    await _refused(ctx, topic, right, replace(right, payload=broken), "AMB-27")
