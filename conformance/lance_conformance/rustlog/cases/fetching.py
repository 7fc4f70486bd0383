"""Cases about Fetch in the binary form, for nobody in particular."""

from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.cases.registry import case
from lance_conformance.rustlog.dialect import BINARY
from lance_conformance.rustlog.peer import exactly, kind, refused
from lance_conformance.rustlog.requests import fetch

ANSWER = "broker-fetch/answer"
START = "fetch-request/offset"
BYTES = "broker-fetch/max-bytes"
AT_LEAST = "fetch-request/at-least-one"
BEHIND = "broker-fetch/behind-the-end"
MISSING = "fetch-request/exists"
NOT_FOUND = 10
SIZE = 20
"""Bytes of each record."""
WEIGHT = SIZE + 12
"""What a record counts against max_bytes."""


@case("rl-fetch/all", ANSWER, dialects=BINARY)
async def everything(ctx: CaseContext) -> None:
    """A Fetch at 0 brings all records in order; the next offset is after the last one."""
    topic, records = await ctx.filled(3)
    await ctx.side.ask(
        fetch(topic, 0, 0), exactly(ANSWER, "Fetch", records=tuple(records), next_offset=3)
    )


@case("rl-fetch/from-the-middle", START, dialects=BINARY)
async def from_the_middle(ctx: CaseContext) -> None:
    """A Fetch begins at its offset, in the middle of what was one Produce too."""
    topic, records = await ctx.filled(3)
    await ctx.store(topic, more := ctx.values(1))
    await ctx.side.ask(
        fetch(topic, 0, 1),
        exactly(START, "Fetch", records=(*records[1:], *more), next_offset=4),
    )


@case("rl-fetch/reads-do-not-consume", START, dialects=BINARY)
async def reads_do_not_consume(ctx: CaseContext) -> None:
    """The same Fetch brings the same records again."""
    topic, records = await ctx.filled(2)
    right = exactly(START, "Fetch", records=tuple(records), next_offset=2)
    await ctx.side.ask(fetch(topic, 0, 0), right)
    await ctx.side.ask(fetch(topic, 0, 0), right)


async def _limited(ctx: CaseContext, max_bytes: int, count: int, cite: str) -> None:
    topic, records = await ctx.filled(3, SIZE)
    right = exactly(cite, "Fetch", records=tuple(records[:count]), next_offset=count)
    await ctx.side.ask(fetch(topic, 0, 0, max_bytes), right)


@case("rl-fetch/exactly-two", BYTES, dialects=BINARY)
async def exactly_two(ctx: CaseContext) -> None:
    """Two records of 20 bytes come for 64: each counts 12 bytes more than it has."""
    await _limited(ctx, 2 * WEIGHT, 2, BYTES)


@case("rl-fetch/one-byte-short-of-two", BYTES, dialects=BINARY)
async def one_byte_short_of_two(ctx: CaseContext) -> None:
    """One byte less, and one record comes."""
    await _limited(ctx, 2 * WEIGHT - 1, 1, BYTES)


@case("rl-fetch/at-least-one", AT_LEAST, dialects=BINARY)
async def at_least_one(ctx: CaseContext) -> None:
    """One record comes although it is larger than max_bytes."""
    await _limited(ctx, 1, 1, AT_LEAST)


@case("rl-fetch/max-bytes-0", "broker-fetch/max-bytes-0", dialects=BINARY)
async def max_bytes_0(ctx: CaseContext) -> None:
    """With max_bytes 0 nothing comes, and the next offset is the requested one."""
    topic, _ = await ctx.filled(3)
    await ctx.side.ask(
        fetch(topic, 0, 1, 0),
        exactly("broker-fetch/max-bytes-0", "Fetch", records=(), next_offset=1),
    )


@case("rl-fetch/max-bytes-4-gib", AT_LEAST, dialects=BINARY, quick=False)
async def max_bytes_4_gib(ctx: CaseContext) -> None:
    """The largest max_bytes there is brings everything, and reserves nothing."""
    topic, records = await ctx.filled(3)
    await ctx.side.ask(
        fetch(topic, 0, 0, 2**32 - 1),
        exactly(AT_LEAST, "Fetch", records=tuple(records), next_offset=3),
    )


async def _behind(ctx: CaseContext, offset: int) -> None:
    topic, _ = await ctx.filled(3)
    right = exactly(BEHIND, "Fetch", records=(), next_offset=offset)
    await ctx.side.ask(fetch(topic, 0, offset), right)


@case("rl-fetch/at-the-end", BEHIND, dialects=BINARY)
async def at_the_end(ctx: CaseContext) -> None:
    """At the end nothing comes, and the next offset is that same one."""
    await _behind(ctx, 3)


@case("rl-fetch/behind-the-end", BEHIND, dialects=BINARY)
async def behind_the_end(ctx: CaseContext) -> None:
    """Beyond the end nothing comes, and the next offset is the requested one, not the end."""
    await _behind(ctx, 7)


@case("rl-fetch/highest-offset", BEHIND, dialects=BINARY, quick=False)
async def highest_offset(ctx: CaseContext) -> None:
    """The highest offset of 64 bits is beyond the end like any other."""
    await _behind(ctx, 2**64 - 1)


@case("rl-fetch/empty-partition", BEHIND, dialects=BINARY, quick=False)
async def empty_partition(ctx: CaseContext) -> None:
    """An empty partition brings nothing, and next offset 0; a record that comes later is seen."""
    topic = await ctx.topic()
    await ctx.side.ask(fetch(topic, 0, 0), exactly(BEHIND, "Fetch", records=(), next_offset=0))
    await ctx.store(topic, records := ctx.values(1))
    await ctx.side.ask(
        fetch(topic, 0, 0), exactly(ANSWER, "Fetch", records=tuple(records), next_offset=1)
    )


@case("rl-fetch/walk", START, dialects=BINARY)
async def walk(ctx: CaseContext) -> None:
    """Going on at each next offset brings every record once, also across requests."""
    topic, records = await ctx.filled(4, SIZE)
    await ctx.store(topic, more := ctx.values(3, SIZE))
    found: list[bytes] = []
    for _ in range(len(records) + len(more)):
        answer = await ctx.side.ask(
            fetch(topic, 0, len(found), 3 * WEIGHT - 1), kind("Fetch", START)
        )
        found += answer.fields["records"]
        told = answer.fields["next_offset"]
        ctx.check(told == len(found), "field:next_offset", f"{told} after {len(found)} records")
        if len(found) >= len(records) + len(more):
            break
    ctx.check(found == records + more, "data", "every record must come once, in order")


@case("rl-fetch/missing-topic", MISSING, dialects=BINARY)
async def missing_topic(ctx: CaseContext) -> None:
    """A Fetch from a topic that does not exist is refused with code 10."""
    await ctx.topic()
    await ctx.side.ask(fetch(ctx.name(), 0, 0), refused(NOT_FOUND, MISSING))


@case("rl-fetch/missing-partition", MISSING, dialects=BINARY)
async def missing_partition(ctx: CaseContext) -> None:
    """A Fetch from partition 2 of a topic with two is refused with code 10."""
    topic, _ = await ctx.filled(1)
    await ctx.side.ask(fetch(topic, 2, 0), refused(NOT_FOUND, MISSING))
