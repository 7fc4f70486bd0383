"""Cases about BatchTimes, an extension: when the batches of a range were stored (AMB-61)."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from lance_conformance.engine.registry import CaseFunction
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import SPECIFIED, case
from lance_conformance.server.cases.variation.common import batches, register, send_all
from lance_conformance.server.cases.variation.waiting import pause
from lance_conformance.server.expect import answer, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import (
    BatchTimes,
    batch_times,
    offset_for_time,
    read_batch_times,
)
from lance_conformance.wire.control import control, delete_topic, read_offset
from lance_conformance.wire.frame import Command

END = 2**64 - 1
APART = 0.01
"""Seconds between batches that must not have one time."""
NEEDS = ("batch-times",)


def times_case(case_id: str, clause: str) -> Callable[[CaseFunction], CaseFunction]:
    """Register a case for servers that have the command."""
    return case(case_id, clause, dialects=SPECIFIED, needs=NEEDS, quick=False)


async def _told(ctx: CaseContext, topic: Topic, start: int, end: int) -> BatchTimes:
    right = answer(Command.BATCH_TIMES_RESPONSE, "5.2/batch-times")
    reply = await ctx.side.ask(batch_times(topic.id, start, end), right)
    told = read_batch_times(reply.payload)
    if told is None:
        raise ctx.side.failure("body:size", f"the lengths of the answer do not fit: {reply}")
    return told


async def _all(ctx: CaseContext, topic: Topic, start: int, end: int) -> list[tuple[int, int]]:
    """The times of a range, asked for step by step."""
    found: list[tuple[int, int]] = []
    while True:
        told = await _told(ctx, topic, start, end)
        found += told.times
        if not told.times or told.next_offset >= end:
            return found
        goes_on = told.next_offset > start
        ctx.check(goes_on, "field:next_offset", f"{told.next_offset} does not go on from {start}")
        start = told.next_offset


async def _stored(ctx: CaseContext, topic: Topic, count: int, size: int = 20) -> list[int]:
    """Where each of some batches begins, and the end."""
    frames = batches(ctx, topic, count, size)
    async with ctx.precondition("storing batches"):
        await send_all(ctx.side, frames)
    ends = [0]
    for frame in frames:
        ends.append(ends[-1] + len(frame.payload))
    return ends


def _check(ctx: CaseContext, found: Sequence[tuple[int, int]], right: Sequence[int]) -> None:
    starts = [offset for offset, _ in found]
    told = f"batches begin at {list(right)[:9]}, told are {starts[:9]}"
    ctx.check(starts == list(right), "field:times", told)
    rising = all(before[1] <= after[1] for before, after in pairwise(found))
    ctx.check(rising, "field:times", f"a batch is older than the one before it: {found[:9]}")


async def _ranges(ctx: CaseContext, count: int) -> None:
    """The whole log, each batch alone, and ranges that begin and end within batches."""
    topic = await ctx.topic()
    ends = await _stored(ctx, topic, count)
    starts, last = ends[:-1], ends[-1]
    _check(ctx, await _all(ctx, topic, 0, last), starts)
    for place in sorted({0, 1, count // 2, count - 1}):
        start, end = ends[place], ends[place + 1]
        _check(ctx, await _all(ctx, topic, start, end), [start])
        _check(ctx, await _all(ctx, topic, start + 1, end - 1), [start])
        _check(ctx, await _all(ctx, topic, end - 1, last), starts[place:])
        if place:
            _check(ctx, await _all(ctx, topic, ends[place - 1] + 3, start + 1),
                   [ends[place - 1], start])  # fmt: skip


for _count in (3, 65, 257):
    register(f"time/batches-{_count}", "5.2/batch-times",
             f"The times of {_count} batches are told, each at its offset.",
             partial(_ranges, count=_count), dialects=SPECIFIED, needs=NEEDS,
             weight=2 + _count // 64)  # fmt: skip


@times_case("time/batches-end", "5.2/batch-times-next")
async def batches_end(ctx: CaseContext) -> None:
    """When nothing is left, next_offset is the end of the range, or that of the log."""
    topic = await ctx.topic()
    told = await _told(ctx, topic, 0, END)
    ctx.check(told == (0, ()), "field:next_offset", f"an empty topic ends at 0: {told}")
    ends = await _stored(ctx, topic, 3)
    for end in (ends[1], ends[2] - 1, ends[3]):
        told = await _told(ctx, topic, 0, end)
        ctx.check(told.next_offset == end, "field:next_offset", f"{end} was asked for: {told}")
    for end in (ends[3] + 1, ends[3] + (1 << 32), END):
        told = await _told(ctx, topic, 0, end)
        ctx.check(told.next_offset == ends[3], "field:next_offset", f"it ends at {ends[3]}: {told}")


@times_case("time/batches-agree", "5.2/batch-times-agree")
async def batches_agree(ctx: CaseContext) -> None:
    """The offset of a batch's time is where it begins, and that of a moment later the next one."""
    topic, ends = await ctx.topic(), [0]
    for _ in range(4):
        ends.append(ends[-1] + len(await ctx.store(topic, ctx.values(2))))
        await pause(ctx, APART)
    found = await _all(ctx, topic, 0, ends[-1])
    _check(ctx, found, ends[:-1])
    right = answer(Command.OFFSET_FOR_TIME_RESPONSE, "5.2/offset-for-time")
    for (start, time_ns), after in zip(found, ends[1:], strict=True):
        for more, wanted in ((0, start), (1, after)):
            reply = await ctx.side.ask(offset_for_time(topic.id, time_ns + more), right)
            said = read_offset(reply.payload)
            told = f"{time_ns + more} ns is at {wanted}, not at {said}"
            ctx.check(said == wanted, "field:offset", told)


@times_case("time/batches-topics", "5.2/batch-times-not-found")
async def batches_topics(ctx: CaseContext) -> None:
    """A topic that never was and one that is gone are told apart."""
    topic = await ctx.disposable_topic()
    ends = await _stored(ctx, topic, 2)
    _check(ctx, await _all(ctx, topic, 0, ends[-1]), ends[:-1])
    missing = ctx.error(ErrorCode.TOPIC_NOT_FOUND, cite="AMB-34")
    await ctx.side.ask(batch_times(ctx.unknown_topic, 0, 1), missing)
    async with ctx.precondition("deleting the topic"):
        await ctx.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
    deleted = ctx.error(ErrorCode.TOPIC_DELETED, cite="AMB-34")
    await ctx.side.ask(batch_times(topic.id, 0, 1), deleted)


@times_case("time/batches-payload", "5.2/batch-times-payload")
async def batches_payload(ctx: CaseContext) -> None:
    """A byte too many and a byte too few are refused."""
    topic, _ = await ctx.filled()
    payload = batch_times(topic.id, 0, 10).payload
    refused = ctx.error(ErrorCode.INVALID_PAYLOAD, cite="5.2/batch-times-payload")
    for wrong in (payload[:-1], payload + b"\0", b""):
        await ctx.side.ask(control(Command.BATCH_TIMES, wrong), refused)


@case("log/restart-keeps-batch-times", "5.2/batch-times-restart", dialects=SPECIFIED,
      needs=(*NEEDS, "restart"), quick=False)  # fmt: skip
async def keeps_batch_times(ctx: CaseContext) -> None:
    """Each batch has the same time after a restart, and later ones have later times."""
    topic = await ctx.topic()
    ends = await _stored(ctx, topic, 9)
    before = await _all(ctx, topic, 0, ends[-1])
    _check(ctx, before, ends[:-1])
    await ctx.restart()
    now = await _all(ctx, topic, 0, ends[-1])
    ctx.check(now == before, "field:times", f"the times were {before[:3]}, and are {now[:3]}")
    await ctx.store(topic, ctx.values(1))
    later = await _all(ctx, topic, ends[-1], END)
    told = f"after {before[-1]} came a batch at {later}"
    ctx.check(later and later[0][1] >= before[-1][1], "field:times", told)
