"""Cases about FetchOffsets."""

from lance_conformance.fluvio.case_context import CaseContext
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.wire.calls import SPU_VERSION, fetch_offsets
from lance_conformance.fluvio.wire.errors import Code
from lance_conformance.fluvio.wire.responses import PartitionOffsets


async def _of(
    ctx: CaseContext, topic: str, partition: int = 0, version: int = SPU_VERSION
) -> PartitionOffsets:
    found = (await ctx.spu.ask(fetch_offsets([(topic, [partition])], version))).topics
    shape = [(name, [each.partition for each in listed]) for name, listed in found]
    wanted = [(topic, [partition])]
    ctx.check(shape == wanted, "body:entries", f"{wanted} was asked about, {shape} is answered")
    return found[0][1][0]


async def _ends(
    ctx: CaseContext, topic: str, end: int, partition: int = 0, version: int = SPU_VERSION
) -> None:
    found = await _of(ctx, topic, partition, version)
    ctx.expect_code(found.outcome, Code.NONE)
    ctx.check(found.start == 0, "field:start_offset", f"expected 0; got {found.start}")
    ctx.check(found.end == end, "field:last_stable_offset", f"expected {end}; got {found.end}")


@case("fl-offset/empty", "offsets/ends")
async def empty(ctx: CaseContext) -> None:
    """A partition without records begins and ends at 0."""
    await _ends(ctx, await ctx.topic(), 0)


@case("fl-offset/counts-records", "offsets/ends")
async def counts_records(ctx: CaseContext) -> None:
    """A partition ends after its last record, counted in records, whatever their sizes."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(3))
    await _ends(ctx, topic, 3)
    await ctx.store(topic, ctx.records(2, 3000))
    await _ends(ctx, topic, 5)


@case("fl-offset/by-partition", "offsets/ends")
async def by_partition(ctx: CaseContext) -> None:
    """Each partition has offsets of its own."""
    topic = await ctx.topic(2)
    await ctx.store(topic, ctx.records(3), 1)
    await _ends(ctx, topic, 0, 0)
    await _ends(ctx, topic, 3, 1)


def _at_version(version: int, what: str) -> None:
    async def at_version(ctx: CaseContext) -> None:
        topic = await ctx.topic()
        await ctx.store(topic, ctx.records(1))
        await _ends(ctx, topic, 1, version=version)

    at_version.__doc__ = f"Version {version} is served: {what}."
    case(f"fl-offset/version-{version}", "offsets/versions")(at_version)


_at_version(22, "the request names no consumer")
_at_version(23, "the only one whose request may name a consumer")
_at_version(25, "the request names no consumer any more")


@case("fl-offset/several", "offsets/positions")
async def several(ctx: CaseContext) -> None:
    """Several topics and partitions are answered one by one, in order."""
    first, second = await ctx.topic(2), await ctx.topic()
    asked = [(second, [0]), (first, [1, 0])]
    found = (await ctx.spu.ask(fetch_offsets(asked))).topics
    came = [(name, [each.partition for each in listed]) for name, listed in found]
    ctx.check(came == asked, "body:entries", f"{asked} was asked about, {came} is answered")


@case("fl-offset/topic-unknown", "offsets/missing")
async def topic_unknown(ctx: CaseContext) -> None:
    """A topic that is not there is answered with PartitionNotLeader (3001)."""
    found = await _of(ctx, ctx.name())
    ctx.expect_code(found.outcome, Code.PARTITION_NOT_LEADER)


@case("fl-offset/partition-unknown", "offsets/missing")
async def partition_unknown(ctx: CaseContext) -> None:
    """A partition that is not there is answered with PartitionNotLeader (3001)."""
    found = await _of(ctx, await ctx.topic(), 1)
    ctx.expect_code(found.outcome, Code.PARTITION_NOT_LEADER)


@case("fl-offset/known-beside-unknown", "offsets/missing")
async def known_beside_unknown(ctx: CaseContext) -> None:
    """A partition that is not there does not spoil the answer for one that is."""
    topic = await ctx.topic()
    found = (await ctx.spu.ask(fetch_offsets([(topic, [7, 0])]))).topics[0][1]
    codes = [each.outcome.code for each in found]
    ctx.check(codes == [3001, 0], "error:order", f"expected errors 3001 and 0; got {codes}")
