"""Number: many deleted topics are known, and many batches have a time."""

from collections.abc import Sequence
from functools import partial

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import SPECIFIED
from lance_conformance.server.cases.variation.common import batches, created, register, send_all
from lance_conformance.server.cases.variation.number import FEW, SYNCED
from lance_conformance.server.cases.variation.waiting import pause
from lance_conformance.server.expect import answer, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import offset_for_time
from lance_conformance.wire.control import delete_topic, get_topic, read_offset
from lance_conformance.wire.frame import Command

PARTS, ROUNDS = 16, 17
"""How often a span of 64 bits can be cut into so many parts, and once more."""
LAST_TIME = 2**64 - 1
APART = 0.02
"""Seconds between two batches that must not have one time."""


async def _deleted(ctx: CaseContext, count: int) -> None:
    """The first of them, too."""
    async with ctx.precondition("creating and deleting topics"):
        topics = await created(ctx, count)
        for topic in topics:
            await ctx.confirm(topic)
        ctx.side.send(*(delete_topic(topic.id) for topic in topics))
        for _ in topics:
            await ctx.side.frame(topic_response("5.6/delete"))
    deleted = ctx.error(ErrorCode.TOPIC_DELETED, cite="12.2/topic-deleted")
    for topic in topics:
        await ctx.side.ask(get_topic(topic.id), deleted)


async def _offsets(ctx: CaseContext, topic: Topic, times: Sequence[int]) -> list[int]:
    ctx.side.send(*(offset_for_time(topic.id, time_ns) for time_ns in times))
    right = answer(Command.OFFSET_FOR_TIME_RESPONSE, "5.2/offset-for-time")
    frames = [await ctx.side.frame(right) for _ in times]
    found = [read_offset(frame.payload) for frame in frames]
    return [-1 if offset is None else offset for offset in found]


async def _border(ctx: CaseContext, topic: Topic, offset: int) -> tuple[int, int]:
    """The offsets of the last time whose offset is at most this one, and of the time after it."""
    low, high, before, after = 0, LAST_TIME, -1, -1
    for _ in range(ROUNDS):
        times = sorted({low + (high - low) * part // PARTS for part in range(PARTS + 1)})
        found = await _offsets(ctx, topic, times)
        told = f"offsets rise with times, and do not here: {found}"
        ctx.check(found == sorted(found), "field:offset", told)
        late = next((place for place, at in enumerate(found) if at > offset), len(found))
        if late < len(found):
            high, after = times[late], found[late]
        if late:
            low, before = times[late - 1], found[late - 1]
        if high - low <= 1:
            break
    return before, after


async def _timed(ctx: CaseContext, count: int) -> None:
    """The second batch and the last one have times of their own, and are found by them."""
    topic = await ctx.topic()
    frames = batches(ctx, topic, count)
    size = len(frames[0].payload)
    async with ctx.precondition("storing the batches"):
        for some in (frames[:1], frames[1:-1], frames[-1:]):
            await send_all(ctx.side, some)
            await pause(ctx, APART)
    end = size * count
    first = await _border(ctx, topic, 0)
    told = f"the first batches are at {(0, size)}, not at {first}"
    ctx.check(first == (0, size), "field:offset", told)
    last, after = await _border(ctx, topic, end - 1)
    right = (end - size, end)
    told = f"before the end of the log come {right}, not {(last, after)}"
    ctx.check((last, after) == right, "field:offset", told)


for _count in FEW:
    register(
        f"num/deleted-{_count}",
        "12.2/topic-deleted",
        f"Each of {_count} deleted topics is told as one.",
        partial(_deleted, count=_count),
        dialects=SPECIFIED,
        weight=2 + 2 * _count // SYNCED,
        thorough=_count == 65,
    )
for _count in (9, 65, 257):
    register(f"num/times-{_count}", "5.2/offset-for-time-batch",
             f"Of {_count} batches the second and the last are found by their times.",
             partial(_timed, count=_count), needs=("offset-for-time",), dialects=SPECIFIED,
             weight=2 + _count // 64)  # fmt: skip
