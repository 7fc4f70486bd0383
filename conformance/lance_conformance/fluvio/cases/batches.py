"""Cases about batches that are stored: compression, and what is in them."""

from lance_conformance.fluvio.case_context import CaseContext
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.wire.calls import produce
from lance_conformance.fluvio.wire.compression import Compression
from lance_conformance.fluvio.wire.records import Record

TEXT = b"the same words again and again " * 40


def _compressed(kind: Compression) -> None:
    async def compressed(ctx: CaseContext) -> None:
        topic = await ctx.topic()
        records = [*ctx.records(3), Record(TEXT), Record(b"", b"key")]
        await ctx.put(topic, records, compression=kind)
        found = [each.record for each in await ctx.read(topic, len(records))]
        ctx.check(found == records, "data", "five records must be read back as they were")

    name = kind.name.lower()
    compressed.__doc__ = f"Records compressed with {name} are read back as they were."
    if kind is Compression.NONE:
        compressed.__doc__ = "Records that are not compressed are read back as they were."
    case(f"fl-batch/{name}", "records/compression")(compressed)


for _kind in Compression:
    _compressed(_kind)


@case("fl-batch/mixed", "records/compression")
async def mixed(ctx: CaseContext) -> None:
    """Batches of one request may be compressed differently."""
    topic = await ctx.topic()
    kinds = (Compression.GZIP, Compression.NONE, Compression.LZ4)
    lists = [ctx.records(2) for _ in kinds]
    batches = [ctx.batch(records, kind) for records, kind in zip(lists, kinds, strict=True)]
    ctx.appended(await ctx.spu.ask(produce([(topic, [(0, b"".join(batches))])])))
    found = [each.record for each in await ctx.read(topic, 6)]
    ctx.check(found == [r for records in lists for r in records], "data", "six records, in order")


@case("fl-batch/base-offset-ignored", "records/base-offset")
async def base_offset_ignored(ctx: CaseContext) -> None:
    """What a producer writes as base offset of a batch is replaced by the server."""
    topic = await ctx.topic()
    for _ in range(2):
        await ctx.store(topic, ctx.records(3))
    offsets = [each.offset for each in await ctx.read(topic, 6)]
    ctx.check(offsets == list(range(6)), "field:base_offset", f"expected 0 to 5; got {offsets}")
