"""Cases about Keepalive (LWP sections 2.3 and 4.3)."""

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import answer, keepalive
from lance_conformance.wire.control import KEEPALIVE, LIST_TOPICS
from lance_conformance.wire.frame import Command, FrameKind


@case("kal/answered", "4.3/answer")
async def answered(ctx: CaseContext) -> None:
    """A Keepalive is answered with a Keepalive."""
    await ctx.side.ask(KEEPALIVE, keepalive())


@case("kal/answer-all-zero", "4.3/fields")
async def answer_all_zero(ctx: CaseContext) -> None:
    """In the Keepalive that answers, every field after the header checksum is zero."""
    frame = await ctx.side.ask(KEEPALIVE, keepalive())
    for name in ("batch_id", "timestamp_ns", "record_count", "payload_length", "topic_id"):
        value = getattr(frame, name)
        ctx.check(value == 0, f"field:{name}", f"{name} of a Keepalive must be 0, is {value}")


@case("kal/one-answer-each", "4.3/one-each")
async def one_answer_each(ctx: CaseContext) -> None:
    """Three Keepalives in a burst get three answers, no more and no less."""
    ctx.side.send(KEEPALIVE, KEEPALIVE, KEEPALIVE, LIST_TOPICS)
    rest = [keepalive("4.3/one-each"), answer(Command.TOPIC_RESPONSE, "5.4/answer")]
    kinds = [(await ctx.side.frame(*rest)).kind for _ in range(4)]
    ctx.check(
        kinds.count(FrameKind.KEEPALIVE) == 3,
        "count",
        f"3 Keepalives and a ListTopics were answered by {[kind.value for kind in kinds]}",
    )
    await ctx.side.expect_quiet("4.3/one-each")
