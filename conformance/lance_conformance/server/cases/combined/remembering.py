"""Time: what a target knows it knows seconds later, too."""

from collections.abc import Awaitable, Callable
from functools import partial

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import BOTH, SPECIFIED
from lance_conformance.server.cases.variation.common import NONCE, holds, register
from lance_conformance.server.cases.variation.waiting import LONG, pause
from lance_conformance.server.consumers import commit_ack, subscribe_ack
from lance_conformance.server.expect import ack, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import commit_offset, subscribe
from lance_conformance.wire.control import (
    create_topic,
    delete_topic,
    get_topic,
    ingest,
    read_json,
    set_retention,
)

SHORT = 3
Kept = Callable[[CaseContext, float], Awaitable[None]]


async def _batch(ctx: CaseContext, seconds: float) -> None:
    """A batch that comes again, on its connection and on another one, is not stored again."""
    topic = await ctx.topic()
    frame = ingest(topic.id, NONCE | 5, ctx.values(2))
    async with ctx.precondition("storing the batch"):
        await ctx.side.ask(frame, ack(frame.batch_id))
    await pause(ctx, seconds)
    for peer in (await ctx.open(), ctx.side):
        await peer.ask(frame, ack(frame.batch_id, "10.4/retry-elsewhere"))
    await holds(ctx, topic, frame.payload)


async def _id(ctx: CaseContext, seconds: float) -> None:
    """Another batch under an id of its connection is refused."""
    topic = await ctx.topic()
    frames = [ingest(topic.id, 3, ctx.values(2)) for _ in range(2)]
    async with ctx.precondition("storing the batch"):
        await ctx.side.ask(frames[0], ack(3))
    await pause(ctx, seconds)
    await ctx.side.ask(frames[1], ctx.error(ErrorCode.INVALID_PAYLOAD, cite="10.4/unique"))
    await holds(ctx, topic, frames[0].payload)


async def _commit(ctx: CaseContext, seconds: float) -> None:
    """A consumer goes on where it committed."""
    topic, payload = await ctx.filled(3)
    offset = len(payload) // 3
    async with ctx.precondition("committing"):
        acked = commit_ack(ctx.consumer, offset, cite="5.14/ack")
        await ctx.side.ask(commit_offset(topic.id, ctx.consumer, offset), acked)
    await pause(ctx, seconds)
    right = subscribe_ack(ctx.consumer, offset, cite="5.14/kept")
    await (await ctx.open()).ask(subscribe(topic.id, ctx.consumer), right)


async def _deleted(ctx: CaseContext, seconds: float) -> None:
    """A deleted topic is told as one, and its name is free."""
    topic = await ctx.disposable_topic()
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
    await pause(ctx, seconds)
    deleted = ctx.error(ErrorCode.TOPIC_DELETED, cite="12.2/topic-deleted")
    for frame in (get_topic(topic.id), ingest(topic.id, ctx.batch(), ctx.values(1))):
        await ctx.side.ask(frame, deleted)


async def _topic(ctx: CaseContext, seconds: float) -> None:
    """A topic without records is there and told as before; its name is taken."""
    topic = await ctx.topic()
    told = topic_response("6.1/identity")
    before = read_json((await ctx.side.ask(get_topic(topic.id), told)).payload)
    await pause(ctx, seconds)
    now = read_json((await ctx.side.ask(get_topic(topic.id), told)).payload)
    ctx.check(now == before, "field:topic", f"a topic was told as {before}, now as {now}")
    taken = ctx.error(ErrorCode.TOPIC_ALREADY_EXISTS, cite="12.2/topic-exists", text="exists")
    await ctx.side.ask(create_topic(topic.name), taken)


async def _records(ctx: CaseContext, seconds: float) -> None:
    """Records of a topic that has neither limit are there."""
    topic, payload = await ctx.filled(5)
    async with ctx.precondition("setting limits"):
        await ctx.side.ask(set_retention(topic.id, 0, 0), topic_response("5.10/answer"))
    await pause(ctx, seconds)
    await holds(ctx, topic, payload)


WIDE = (1 << 32, (1 << 34) + 1, 1 << 40, 1 << 53, 1 << 62, 1 << 63, 2**64 - 1)
"""Limits that no topic reaches: in seconds, in nanoseconds of as many, and in bytes."""
MULTIPLES = tuple((value << 64) // 10**9 + 1 for value in (1, 2, 7))
"""Seconds of which the nanoseconds are hardly more than a multiple of 2^64."""


async def _wide_limits(ctx: CaseContext, seconds: float) -> None:
    """Each topic has another limit; they are set before its records are stored, and after."""
    held = []
    for age, size in (*((wide, 0) for wide in (*WIDE, *MULTIPLES)), *((0, wide) for wide in WIDE)):
        topic = await ctx.topic()
        request = set_retention(topic.id, age, size)
        async with ctx.precondition("setting limits"):
            await ctx.side.ask(request, topic_response("5.10/answer"))
        payload = await ctx.store(topic, ctx.values(3))
        async with ctx.precondition("setting them again"):
            await ctx.side.ask(request, topic_response("5.10/answer"))
        held.append((topic, payload))
    await pause(ctx, seconds)
    for topic, payload in held:
        await holds(ctx, topic, payload)


register("wait/wide-limits", "5.10/keeps",
         f"Limits of up to 2^64-1 seconds or bytes have removed nothing {SHORT} s later.",
         partial(_wide_limits, seconds=SHORT), seconds=SHORT, weight=6)  # fmt: skip

for _name, _clause, _title, _question, _dialects, _twin in (
    ("batch", "10.4/retry-elsewhere", "A batch is known {} s later.", _batch, SPECIFIED,
     "rep/retried"),
    ("batch-id", "10.4/unique", "A batch id is known {} s later.", _id, SPECIFIED, None),
    ("commit", "5.14/kept", "A commit counts {} s later.", _commit, BOTH, None),
    ("deleted", "12.2/topic-deleted", "A deleted topic is known {} s later.", _deleted,
     SPECIFIED, None),
    ("topic", "6.1/identity", "A topic without records is there {} s later.", _topic, BOTH, None),
    ("records", "5.10/no-limit", "Records without a limit are there {} s later.", _records,
     BOTH, None),
):  # fmt: skip
    for _seconds in (LONG, SHORT):
        register(f"wait/known-{_name}-{_seconds}", _clause, _title.format(_seconds),
                 partial(_question, seconds=_seconds), dialects=_dialects, seconds=_seconds,
                 **({"twin_of": _twin} if _twin else {}),
                 thorough=_seconds == SHORT)  # fmt: skip
