"""Headers of answers: fields that have no use are 0 in every answer, however large or late."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from lance_conformance.engine.expectations import Allowed, closed
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.combined.history import compressed
from lance_conformance.server.cases.registry import BOTH, SPECIFIED
from lance_conformance.server.cases.variation.common import NOT_FOUND, created, register
from lance_conformance.server.consumers import commit_ack, subscribe_ack, unsubscribe_ack
from lance_conformance.server.expect import ack, answer, catching_up, keepalive, topic_response
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.consumers import (
    commit_offset,
    offset_for_time,
    subscribe,
    unsubscribe,
)
from lance_conformance.wire.control import (
    END_OFFSET,
    KEEPALIVE,
    LIST_TOPICS,
    control,
    create_topic,
    fetch,
    ingest,
)
from lance_conformance.wire.frame import Command, Frame, FrameKind

FIELDS = ("timestamp_ns", "record_count", "topic_id")
SIZE = 100_000
COUNT = 70
"""Records, so many that none of their digits is that of another number here."""
Made = Callable[[CaseContext, int], Frame]
Right = Callable[[CaseContext, Frame], Allowed]


class AnswerRow(NamedTuple):
    """A question, and the answer whose header is looked at.

    Attributes:
        name: In the id.
        words: The answer in a sentence.
        clause: What it is looked at by.
        made: The question about a topic with `COUNT` records.
        right: What must come.
        needs: Capabilities.
        dialects: Where it is asked.
    """

    name: str
    words: str
    clause: str
    made: Made
    right: Right
    needs: tuple[str, ...] = ()
    dialects: tuple[str, ...] = BOTH


def _acked(_: CaseContext, frame: Frame) -> Allowed:
    return ack(frame.batch_id)


def _refused(*codes: int, cite: str) -> Right:
    return lambda ctx, _: ctx.error(*codes, cite=cite)


def _answered(command: int, clause: str) -> Right:
    return lambda _, __: answer(command, clause)


FETCHED = _answered(Command.FETCH_RESPONSE, "5.9/answer")
CONTROL, ACKS = "5.1/answer-fields", "4.2/other-fields"
ROWS = (
    AnswerRow("ack-of-many", f"the Ack of {COUNT} records", ACKS,
              lambda ctx, topic: ingest(topic, ctx.batch(), ctx.values(COUNT)), _acked),
    AnswerRow("ack-of-much", "the Ack of 100,000 bytes", ACKS,
              lambda ctx, topic: ingest(topic, ctx.batch(), ctx.values(1, SIZE)), _acked),
    AnswerRow("ack-of-compressed", "the Ack of a compressed batch", ACKS,
              lambda ctx, topic: compressed(ingest(topic, ctx.batch(), ctx.values(COUNT))),
              _acked, dialects=SPECIFIED),
    AnswerRow("ack-of-unsubscribe", "the Ack of an Unsubscribe", ACKS,
              lambda ctx, topic: unsubscribe(topic, ctx.consumer),
              lambda _, __: unsubscribe_ack("5.13/ack")),
    AnswerRow("fetch", "a FetchResponse", CONTROL,
              lambda _, topic: fetch(topic, 0, 2000), FETCHED),
    AnswerRow("fetch-of-all", f"a FetchResponse with {COUNT} records", CONTROL,
              lambda _, topic: fetch(topic, 0, 1 << 20), FETCHED),
    AnswerRow("fetch-at-end", "a FetchResponse without data", CONTROL,
              lambda _, topic: fetch(topic, END_OFFSET, 1000), FETCHED),
    AnswerRow("subscribe", "a SubscribeAck", CONTROL,
              lambda ctx, topic: subscribe(topic, ctx.consumer, END_OFFSET),
              lambda ctx, _: subscribe_ack(ctx.consumer, cite="5.12/ack")),
    AnswerRow("commit", "a CommitAck", CONTROL,
              lambda ctx, topic: commit_offset(topic, ctx.consumer, 25),
              lambda ctx, _: commit_ack(ctx.consumer, 25, cite="5.14/ack")),
    AnswerRow("time", "an OffsetForTimeResponse", CONTROL,
              lambda _, topic: offset_for_time(topic, 1 << 62),
              _answered(Command.OFFSET_FOR_TIME_RESPONSE, "5.2/offset-for-time"),
              ("offset-for-time",)),
    AnswerRow("refused-batch", "the refusal of a batch", CONTROL,
              lambda ctx, _: ingest(ctx.unknown_topic, ctx.batch(), ctx.values(3)),
              _refused(*NOT_FOUND, cite="6.4/unknown-topic"), dialects=SPECIFIED),
    AnswerRow("refused-fetch", "the refusal of a Fetch", CONTROL,
              lambda ctx, _: fetch(ctx.unknown_topic, 0, 1000),
              _refused(*NOT_FOUND, cite="5.9/not-found"), dialects=SPECIFIED),
    AnswerRow("unknown-command", "the refusal of an unknown command", CONTROL,
              lambda _, __: control(0x7E),
              _refused(ErrorCode.INVALID_PAYLOAD, cite="5.2/unknown"), dialects=SPECIFIED),
)  # fmt: skip


async def _plain(ctx: CaseContext, row: AnswerRow) -> None:
    """Asked twice on a connection, of a topic whose id is not 0; all other fields are 0."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.values(COUNT, SIZE // COUNT))
    peer = await ctx.open()
    for _ in range(2):
        if row.name == "subscribe":
            peer = await ctx.open()
        frame = row.made(ctx, topic.id)
        reply = await peer.ask(frame, row.right(ctx, frame))
        said = {name: getattr(reply, name) for name in FIELDS if getattr(reply, name)}
        ctx.check(not said, "field:other", f"of {row.words} these fields must be 0: {said}")
        bare = row.clause != ACKS or not reply.payload
        ctx.check(bare, "field:other", f"an Ack has no payload, not one of {len(reply.payload)}")


for _row in ROWS:
    register(f"each/bare-{_row.name}", _row.clause,
             f"In the header of {_row.words} the fields that have no use are 0.",
             partial(_plain, row=_row), needs=_row.needs, dialects=_row.dialects,
             twin_of="ing/ack-other-fields-zero" if _row.clause == ACKS
             else "each/header-of-answer-create", weight=2)  # fmt: skip


async def _beyond(ctx: CaseContext) -> None:
    """A target may refuse such a Fetch, or answer it with no data."""
    topic, payload = await ctx.filled()
    codes = ErrorCode.INVALID_OFFSET, ErrorCode.OFFSET_OUT_OF_RANGE
    refused = ctx.error(*codes, cite="5.9/beyond-end")
    request = fetch(topic.id, len(payload) + 40, 1000)
    allowed = catching_up(len(payload)), answer(Command.FETCH_RESPONSE, "5.9/beyond-end"), refused
    reply = await ctx.side.ask(request, *allowed)
    said = {name: getattr(reply, name) for name in FIELDS if getattr(reply, name)}
    ctx.check(not said, "field:other", f"of the answer these fields must be 0: {said}")


register("each/bare-beyond-end", CONTROL,
         "In the header of what a Fetch beyond the end brings the fields that have no use are 0.",
         _beyond, twin_of="each/header-of-answer-create")  # fmt: skip

# -- Keepalives ------------------------------------------------------------------------------------


async def _late_keepalives(ctx: CaseContext) -> None:
    """After batches, commands and refusals, beside a subscription, and after them in one write."""
    topic, peer = await ctx.topic(), await ctx.open()
    batch = ingest(topic.id, 1 << 50, ctx.values(3))
    await peer.ask(batch, ack(batch.batch_id))
    lost = ingest(ctx.unknown_topic, ctx.batch(), ctx.values(1))
    taken = ctx.error(ErrorCode.TOPIC_ALREADY_EXISTS, cite="12.2/topic-exists", text="exists")
    steps: list[tuple[Frame, Allowed]] = [
        (LIST_TOPICS, topic_response("5.4/list")),
        (fetch(topic.id, 0, 1000), FETCHED(ctx, batch)),
        (lost, ctx.error(*NOT_FOUND, cite="6.4/unknown-topic", text="topic")),
        (create_topic(topic.name), taken),
    ]  # fmt: skip
    for frame, right in steps:
        peer.send(frame, KEEPALIVE)
        await peer.expect(right)
        reply = await peer.frame(keepalive("4.3/fields"))
        names = ("batch_id", *FIELDS)
        said = {name: getattr(reply, name) for name in names if getattr(reply, name)}
        ctx.check(not said and not reply.payload, "field:other", f"a Keepalive says {said}")


register("each/bare-keepalive", "4.3/fields",
         "Every Keepalive is all zero, whatever stands before it.", _late_keepalives,
         twin_of="kal/answer-all-zero", weight=2)  # fmt: skip


async def _asked_with_fields(ctx: CaseContext) -> None:
    """Fields that have no use here may be refused, or passed over; the answer has none of them."""
    closes = closed("4.3/fields"), ctx.error(*ANY_ERROR, cite="AMB-26")
    for field in ("batch_id", *FIELDS):
        peer = await ctx.open()
        peer.send_faulty(replace(KEEPALIVE, **{field: 0x0101_0101}), field)  # type: ignore[arg-type]
        reply = await peer.expect(keepalive("4.3/fields"), *closes)
        if isinstance(reply, Frame) and reply.kind is FrameKind.KEEPALIVE:
            said = getattr(reply, field)
            ctx.check(not said, f"field:{field}", f"{field} of a Keepalive must be 0, is {said}")


register("each/bare-keepalive-to-another", "4.3/fields",
         "A Keepalive is all zero, whatever the fields of the one that it answers.",
         _asked_with_fields, twin_of="kal/answer-all-zero")  # fmt: skip

# -- many topics -----------------------------------------------------------------------------------


async def _acks_of_topics(ctx: CaseContext, count: int) -> None:
    """Topics with ids that differ, over one connection."""
    async with ctx.precondition("creating the topics"):
        topics = await created(ctx, count)
    for topic in topics:
        frame = replace(ingest(topic.id, ctx.batch(), ctx.values(2)), timestamp_ns=1 << 62)
        reply = await ctx.side.ask(frame, ack(frame.batch_id))
        said = {name: getattr(reply, name) for name in FIELDS if getattr(reply, name)}
        ctx.check(not said, "field:other", f"of an Ack these fields must be 0: {said}")


register("each/bare-acks", ACKS, "Acks of batches for several topics name none of them.",
         partial(_acks_of_topics, count=5), twin_of="ing/ack-other-fields-zero")  # fmt: skip
