"""Cases about OffsetForTime, an extension (AMB-37)."""

from collections.abc import Callable, Sequence

from lance_conformance.engine.registry import CaseFunction
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import answer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import offset_for_time
from lance_conformance.wire.control import read_offset
from lance_conformance.wire.frame import Command

LAST_TIME = 2**64 - 1
PARTS = 16
ROUNDS = 16
"""How often 64 bits can be cut into so many parts."""


def time_case(
    case_id: str, clause: str, *, quick: bool = False
) -> Callable[[CaseFunction], CaseFunction]:
    """Register a case for servers that have the command."""
    return case(case_id, clause, dialects=("specified",), needs=("offset-for-time",), quick=quick)


async def _offsets(ctx: CaseContext, topic: Topic, times: Sequence[int]) -> list[int]:
    """The offsets of several times, asked in one write."""
    ctx.side.send(*(offset_for_time(topic.id, time_ns) for time_ns in times))
    right = answer(Command.OFFSET_FOR_TIME_RESPONSE, "5.2/offset-for-time")
    found = []
    for _ in times:
        frame = await ctx.side.frame(right)
        offset = read_offset(frame.payload)
        if offset is None:
            raise ctx.side.failure("body:size", f"8 bytes must come, not {len(frame.payload)}")
        found.append(offset)
    return found


async def _offset(ctx: CaseContext, topic: Topic, time_ns: int) -> int:
    return (await _offsets(ctx, topic, [time_ns]))[0]


@time_case("time/first", "5.2/offset-for-time", quick=True)
async def first(ctx: CaseContext) -> None:
    """The first record at or after the beginning of time is the first record."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.values(2))
    where = await _offset(ctx, topic, 0)
    ctx.check(where == 0, "field:offset", f"the log begins at 0, not at {where}")


@time_case("time/after-all", "5.2/offset-for-time-end")
async def after_all(ctx: CaseContext) -> None:
    """A time after all records is the end of the log."""
    topic = await ctx.topic()
    end = len(await ctx.store(topic, ctx.values(2)))
    where = await _offset(ctx, topic, LAST_TIME)
    ctx.check(where == end, "field:offset", f"the log ends at {end}, not at {where}")


@time_case("time/empty-topic", "5.2/offset-for-time-end")
async def empty_topic(ctx: CaseContext) -> None:
    """In a topic without records every time is offset 0."""
    topic = await ctx.topic()
    for time_ns in (0, LAST_TIME):
        where = await _offset(ctx, topic, time_ns)
        ctx.check(where == 0, "field:offset", f"there is nothing but offset 0, not {where}")


async def time_between(ctx: CaseContext, topic: Topic) -> tuple[int, int]:
    """A time between the first and the last of three batches, and its offset.

    Args:
        ctx: The case.
        topic: An empty topic; the batches are stored in it.

    Raises:
        Failure: Some time has an offset at which no batch begins.
    """
    ends = [0]
    for _ in range(3):
        ends.append(ends[-1] + len(await ctx.store(topic, ctx.values(2))))
    low, high = 0, LAST_TIME
    for _ in range(ROUNDS):
        times = [low + (high - low) * part // PARTS for part in range(PARTS + 1)]
        found = await _offsets(ctx, topic, times)
        wrong = set(found) - set(ends)
        ctx.check(not wrong, "field:offset", f"no batch begins at {wrong}, but at {ends}")
        inner = [pair for pair in zip(times, found, strict=True) if pair[1] in ends[1:-1]]
        if inner:
            return inner[0]
        later = [time_ns for time_ns, where in zip(times, found, strict=True) if where]
        borders = not found[0] and bool(later)
        ctx.check(borders, "field:offset", f"no batch came before {low}, and all before {high}")
        high = min(later)
        low = max(time_ns for time_ns in times if time_ns < high)
    raise ctx.side.failure("field:offset", "no time lies between the first batch and the last")


@time_case("time/at-batches", "5.2/offset-for-time-batch")
async def at_batches(ctx: CaseContext) -> None:
    """Between the beginning and the end of the log lie only offsets at which a batch begins."""
    await time_between(ctx, await ctx.topic())


@case("log/restart-keeps-times", "5.2/offset-for-time-batch", dialects=("specified",),
      needs=("offset-for-time", "restart"), quick=False)  # fmt: skip
async def keeps_times(ctx: CaseContext) -> None:
    """A time has the same offset after a restart."""
    topic = await ctx.topic()
    time_ns, before = await time_between(ctx, topic)
    await ctx.restart()
    now = await _offset(ctx, topic, time_ns)
    ctx.check(now == before, "field:offset", f"{time_ns} ns was at {before}, and is at {now}")


@time_case("time/other-topic", "5.2/offset-for-time-topic")
async def other_topic(ctx: CaseContext) -> None:
    """The offset is one of the topic that was asked about."""
    topic, other = await ctx.topic(), await ctx.topic()
    await ctx.store(other, ctx.values(5))
    end = len(await ctx.store(topic, ctx.values(1)))
    where = await _offset(ctx, topic, LAST_TIME)
    ctx.check(where == end, "field:offset", f"the log ends at {end}, not at {where}")


@time_case("time/unknown-topic", "5.2/offset-for-time-not-found")
async def unknown_topic(ctx: CaseContext) -> None:
    """OffsetForTime for a topic that does not exist is refused."""
    topic = await ctx.topic()
    right = offset_for_time(topic.id, 0)
    refused = [ctx.error(ErrorCode.TOPIC_NOT_FOUND, cite="AMB-34")]
    await ctx.assert_pair(
        right,
        offset_for_time(ctx.unknown_topic, 0),
        answer=answer(Command.OFFSET_FOR_TIME_RESPONSE, "5.2/offset-for-time"),
        specified=refused,
        deployed=refused,
    )
