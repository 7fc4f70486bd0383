"""Cases about Produce requests that are carried out."""

from lance_conformance.fluvio.case_context import CaseContext
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.wire.calls import Entries, fetch_offsets, produce
from lance_conformance.fluvio.wire.errors import Code
from lance_conformance.fluvio.wire.responses import Appended, Produced

EDGES = {
    0: "the answer has errors and offsets only",
    1: "the answer ends in a time of throttling",
    2: "each entry of the answer has a time of appending",
    5: "each entry of the answer has the lowest offset",
    7: "the last one whose request has no SmartModules",
    8: "the first one whose request has SmartModules",
    24: "what the published Python package sends",
    25: "the newest there is",
}
"""Versions in which request or response change, and in what."""


async def _sent(
    ctx: CaseContext, entries: Entries, version: int = 24
) -> list[tuple[str, Appended]]:
    """The entries of an answer, each with its topic, after they were found to be as many."""
    found = await ctx.spu.ask(produce(entries, version=version))
    _same_shape(ctx, entries, found)
    return [(name, entry) for name, listed in found.topics for entry in listed]


def _same_shape(ctx: CaseContext, entries: Entries, found: Produced) -> None:
    sent = [(name, [number for number, _ in parts]) for name, parts in entries]
    came = [(name, [entry.partition for entry in listed]) for name, listed in found.topics]
    ctx.check(came == sent, "body:entries", f"entries {sent} were sent, {came} are answered")


def _at_version(version: int, what: str) -> None:
    async def at_version(ctx: CaseContext) -> None:
        topic = await ctx.topic()
        records = ctx.records(2)
        ((_, entry),) = await _sent(ctx, [(topic, [(0, ctx.batch(records))])], version)
        ctx.expect_code(entry.outcome, Code.NONE)
        ctx.check(await ctx.stored(topic, 2) == records, "data", "two records must be read back")

    at_version.__doc__ = f"Version {version} is served: {what}."
    clause = "produce/versions" if version >= 8 else "produce/old-versions"
    case(f"fl-produce/version-{version}", clause)(at_version)


for _version, _what in EDGES.items():
    _at_version(_version, _what)


@case("fl-produce/base-offset", "produce/base-offset")
async def base_offset(ctx: CaseContext) -> None:
    """The answer has the offset of the first record, counted in records from 0."""
    topic = await ctx.topic()
    for count, wanted in ((3, 0), (1, 3), (2, 4)):
        base = await ctx.put(topic, ctx.records(count))
        ctx.check(base == wanted, "field:base_offset", f"expected {wanted}; got {base}")


@case("fl-produce/answer-names-entry", "produce/shape")
async def answer_names_entry(ctx: CaseContext) -> None:
    """The answer names topic and partition of every entry."""
    topic = await ctx.topic(2)
    await _sent(ctx, [(topic, [(1, ctx.batch(ctx.records(1)))])])


@case("fl-produce/flush", "produce/flush")
async def flush(ctx: CaseContext) -> None:
    """A topic without partitions, as clients send it to flush, is answered as one."""
    topic = await ctx.topic()
    found = await ctx.spu.ask(produce([(topic, [])]))
    ctx.check(
        found.topics == ((topic, ()),), "body:entries", f"expected {topic} alone; got {found}"
    )


@case("fl-produce/nothing-at-all", "produce/flush")
async def nothing_at_all(ctx: CaseContext) -> None:
    """A request without topics is answered without topics."""
    found = await ctx.spu.ask(produce([]))
    ctx.check(not found.topics, "body:entries", f"expected no topics; got {found}")


@case("fl-produce/several-entries", "produce/positions")
async def several_entries(ctx: CaseContext) -> None:
    """Entries for one partition are answered one by one, in order: clients pair them by place."""
    topic = await ctx.topic()
    sizes = (1, 3, 2, 1)
    entries = [(0, ctx.batch(ctx.records(size))) for size in sizes]
    found = [entry.base_offset for _, entry in await _sent(ctx, [(topic, entries)])]
    ctx.check(found == [0, 1, 4, 6], "field:base_offset", f"expected 0, 1, 4, 6; got {found}")


@case("fl-produce/two-partitions", "produce/positions")
async def two_partitions(ctx: CaseContext) -> None:
    """A request to two partitions stores in both, each counted from 0."""
    topic = await ctx.topic(2)
    lists = ctx.records(2), ctx.records(3)
    entries = [(number, ctx.batch(lists[number])) for number in (1, 0)]
    found = [entry.base_offset for _, entry in await _sent(ctx, [(topic, entries)])]
    ctx.check(found == [0, 0], "field:base_offset", f"expected 0 and 0; got {found}")
    for number, records in enumerate(lists):
        stored = await ctx.stored(topic, len(records), number)
        ctx.check(stored == records, "data", f"partition {number} has other records")


@case("fl-produce/two-topics", "produce/positions")
async def two_topics(ctx: CaseContext) -> None:
    """A request to two topics stores in both and is answered in its order."""
    names = await ctx.topic(), await ctx.topic()
    lists = ctx.records(1), ctx.records(2)
    await _sent(ctx, [(n, [(0, ctx.batch(r))]) for n, r in zip(names[::-1], lists, strict=True)])
    for name, records in zip(names[::-1], lists, strict=True):
        stored = await ctx.stored(name, len(records))
        ctx.check(stored == records, "data", f"{name} has other records")


@case("fl-produce/several-batches", "produce/batches")
async def several_batches(ctx: CaseContext) -> None:
    """All batches of one entry are stored, in order; the answer has the offset of the first."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(2))
    lists = [ctx.records(size) for size in (2, 1, 3)]
    entries = [(topic, [(0, b"".join(map(ctx.batch, lists)))])]
    ((_, entry),) = await _sent(ctx, entries)
    ctx.expect_code(entry.outcome, Code.NONE)
    ctx.check(entry.base_offset == 2, "field:base_offset", f"expected 2; got {entry.base_offset}")
    found = [each.record for each in await ctx.read(topic, 6, offset=2)]
    ctx.check(found == [r for records in lists for r in records], "data", "six records, in order")


@case("fl-produce/no-batches", "produce/batches")
async def no_batches(ctx: CaseContext) -> None:
    """An entry without batches is answered without an error."""
    topic = await ctx.topic()
    ((_, entry),) = await _sent(ctx, [(topic, [(0, b"")])])
    ctx.expect_code(entry.outcome, Code.NONE)


async def _isolated(ctx: CaseContext, isolation: int) -> None:
    topic = await ctx.topic()
    records = ctx.records(2)
    found = await ctx.spu.ask(produce([(topic, [(0, ctx.batch(records))])], isolation=isolation))
    entry = ctx.appended(found)
    ctx.check(entry.base_offset == 0, "field:base_offset", f"expected 0; got {entry.base_offset}")
    ctx.check(await ctx.stored(topic, 2) == records, "data", "two records must be read back")


@case("fl-produce/read-uncommitted", "produce/isolation")
async def read_uncommitted(ctx: CaseContext) -> None:
    """Isolation 1, an answer when the leader has written, is served."""
    await _isolated(ctx, 1)


@case("fl-produce/read-committed", "produce/isolation")
async def read_committed(ctx: CaseContext) -> None:
    """Isolation -1, an answer when the records are committed, is served."""
    await _isolated(ctx, -1)


@case("fl-produce/pipelined", "produce/pipelined")
async def pipelined(ctx: CaseContext) -> None:
    """Requests that were sent without waiting are all answered, each under its own id."""
    topic = await ctx.topic()
    calls = [produce([(topic, [(0, ctx.batch(ctx.records(2)))])]) for _ in range(8)]
    bases = [ctx.appended(await ctx.spu.answer(t)).base_offset for t in ctx.spu.send(*calls)]
    wanted = list(range(0, 16, 2))
    ctx.check(sorted(bases) == wanted, "field:base_offset", f"expected {wanted}; got {bases}")


@case("fl-produce/pipelined-order", "produce/pipelined")
async def pipelined_order(ctx: CaseContext) -> None:
    """Requests of one connection are stored in the order in which they were sent."""
    topic = await ctx.topic()
    records = ctx.records(6)
    calls = [produce([(topic, [(0, ctx.batch([record]))])]) for record in records]
    for ticket in ctx.spu.send(*calls):
        ctx.appended(await ctx.spu.answer(ticket))
    ctx.check(await ctx.stored(topic, 6) == records, "data", "six records, out of order")


@case("fl-produce/once", "produce/once")
async def once(ctx: CaseContext) -> None:
    """What was sent once is stored once."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(3))
    found = (await ctx.spu.ask(fetch_offsets([(topic, [0])]))).topics[0][1][0]
    ctx.check(found.end == 3, "data", f"3 records were sent, {found.end} are there")


@case("fl-produce/seen-elsewhere", "produce/receipt")
async def seen_elsewhere(ctx: CaseContext) -> None:
    """What was acknowledged on one connection can be read on another one."""
    topic = await ctx.topic()
    records = ctx.records(3)
    await ctx.store(topic, records)
    found = await ctx.read(topic, 3)
    ctx.check([each.record for each in found] == records, "data", "three records must be read")
