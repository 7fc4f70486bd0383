"""Cases about what becomes of records: keys, times, order, and nothing lost."""

from collections.abc import Sequence

from lance_conformance.fluvio.case_context import CaseContext
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.wire.calls import produce
from lance_conformance.fluvio.wire.compression import Compression
from lance_conformance.fluvio.wire.records import NOW_MS, Record


async def _round_trip(ctx: CaseContext, records: Sequence[Record]) -> None:
    topic = await ctx.topic()
    await ctx.put(topic, records)
    found = [each.record for each in await ctx.read(topic, len(records))]
    ctx.check(len(found) == len(records), "data", f"{len(records)} stored, {len(found)} read")
    for sent, came in zip(records, found, strict=True):
        for field in ("value", "key", "time"):
            right = getattr(sent, field) == getattr(came, field)
            ctx.check(right, f"data:{field}", f"{field} of {sent} came as {getattr(came, field)!r}")


@case("fl-record/values", "records/kept")
async def values(ctx: CaseContext) -> None:
    """Values of any bytes are kept, an empty one and all 256 of them included."""
    await _round_trip(ctx, [Record(value) for value in (b"", b"\0", bytes(range(256)), b"end")])


@case("fl-record/large-value", "records/kept", quick=False)
async def large_value(ctx: CaseContext) -> None:
    """A value of 100 KiB is kept."""
    await _round_trip(ctx, ctx.records(1, 100 * 1024))


@case("fl-record/keys", "records/kept")
async def keys(ctx: CaseContext) -> None:
    """Keys are kept, and no key is not an empty one."""
    keys_sent = (b"key", None, b"", b"\xff\0", b"k" * 300)
    await _round_trip(ctx, [Record(b"value", key) for key in keys_sent])


@case("fl-record/times", "records/kept")
async def times(ctx: CaseContext) -> None:
    """Times are kept to the millisecond, also those before the first of a batch."""
    deltas = (0, 1, 5000, -7, 86_400_000)
    await _round_trip(ctx, [Record(b"value", None, NOW_MS + delta) for delta in deltas])


@case("fl-record/keys-with-times", "records/kept")
async def keys_with_times(ctx: CaseContext) -> None:
    """A record keeps its key and its own time together."""
    await _round_trip(ctx, [Record(b"v%d" % n, b"k%d" % n, NOW_MS + 1000 * n) for n in range(5)])


@case("fl-record/many", "records/kept", quick=False)
async def many(ctx: CaseContext) -> None:
    """A batch of 500 records is kept whole and in order."""
    await _round_trip(ctx, ctx.records(500, 8))


@case("fl-record/partitions-isolated", "records/isolated")
async def partitions_isolated(ctx: CaseContext) -> None:
    """Each partition holds what was sent to it, and nothing of another one."""
    topic = await ctx.topic(3)
    lists = [ctx.records(number + 1) for number in range(3)]
    for number, records in enumerate(lists):
        await ctx.store(topic, records, number)
    for number, records in enumerate(lists):
        found = await ctx.stored(topic, len(records), number)
        ctx.check(found == records, "data", f"partition {number} has other records")


@case("fl-record/topics-isolated", "records/isolated")
async def topics_isolated(ctx: CaseContext) -> None:
    """Each topic holds what was sent to it, and nothing of another one."""
    names = [await ctx.topic() for _ in range(2)]
    lists = [ctx.records(2) for _ in names]
    for name, records in zip(names, lists, strict=True):
        await ctx.store(name, records)
    for name, records in zip(names, lists, strict=True):
        ctx.check(await ctx.stored(name, 2) == records, "data", f"{name} has other records")


@case("fl-record/acked-is-read", "records/kept", quick=False)
async def acked_is_read(ctx: CaseContext) -> None:
    """All that is acknowledged is read, at the acknowledged offsets, and nothing else."""
    topic = await ctx.topic()
    kinds = (Compression.NONE, Compression.GZIP, Compression.LZ4)
    wanted: dict[int, Record] = {}
    for number in range(9):
        records = ctx.records(ctx.rng.randrange(1, 6), ctx.rng.randrange(1, 60))
        base = await ctx.put(topic, records, compression=kinds[number % 3])
        wanted |= {base + place: record for place, record in enumerate(records)}
    found = {each.offset: each.record for each in await ctx.read(topic, len(wanted), max_bytes=300)}
    ctx.check(found == wanted, "data", f"{len(wanted)} records acknowledged, {len(found)} read")


@case("fl-record/two-producers", "records/kept", quick=False)
async def two_producers(ctx: CaseContext) -> None:
    """Records of two producers are all kept, those of each in its order."""
    topic = await ctx.topic()
    peers = await ctx.open("spu"), await ctx.open("spu")
    lists = ctx.records(4), ctx.records(4)
    for pair in zip(*lists, strict=True):
        tickets = [
            peer.post(produce([(topic, [(0, ctx.batch([record]))])]))
            for peer, record in zip(peers, pair, strict=True)
        ]
        for peer, ticket in zip(peers, tickets, strict=True):
            ctx.appended(await peer.answer(ticket))
    found = [each.record for each in await ctx.read(topic, 8)]
    for records in lists:
        mine = [record for record in found if record in records]
        ctx.check(mine == records, "data", "the records of one producer are not in order")
