"""Cases about Produce in the binary form."""

from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.cases.registry import case
from lance_conformance.rustlog.dialect import BINARY
from lance_conformance.rustlog.peer import exactly, refused
from lance_conformance.rustlog.requests import LIST, produce

ANSWER = "broker-produce/answer"
EMPTY = "broker-produce/empty"
KEPT = "produce-request/records"
MISSING = "produce-request/exists"
NOT_FOUND = 10


@case("rl-produce/first-offset", ANSWER, dialects=BINARY)
async def first_offset(ctx: CaseContext) -> None:
    """The first record of a partition has offset 0; the answer counts the records."""
    topic = await ctx.topic()
    await ctx.side.ask(
        produce(topic, 0, ctx.values(3)), exactly(ANSWER, "Produce", base_offset=0, record_count=3)
    )


@case("rl-produce/next-offset", "produce-request/offsets", dialects=BINARY)
async def next_offset(ctx: CaseContext) -> None:
    """The next Produce goes on where the last one ended."""
    topic, _ = await ctx.filled(3)
    await ctx.side.ask(
        produce(topic, 0, ctx.values(2)),
        exactly("produce-request/offsets", "Produce", base_offset=3, record_count=2),
    )


@case("rl-produce/no-records", EMPTY, dialects=BINARY)
async def no_records(ctx: CaseContext) -> None:
    """A Produce without records is answered with 0 and 0, and stores nothing."""
    topic, records = await ctx.filled(2)
    await ctx.side.ask(
        produce(topic, 0, []), exactly(EMPTY, "Produce", base_offset=0, record_count=0)
    )
    ctx.check(await ctx.stored(topic) == tuple(records), "data", "nothing is to be stored")


@case("rl-produce/empty-record", KEPT, dialects=BINARY)
async def empty_record(ctx: CaseContext) -> None:
    """A record may be empty, and has an offset as any other."""
    topic = await ctx.topic()
    await ctx.side.ask(
        produce(topic, 0, [b"", b"a", b""]),
        exactly(KEPT, "Produce", base_offset=0, record_count=3),
    )
    ctx.check(
        await ctx.stored(topic) == (b"", b"a", b""), "data", "two empty records and one other"
    )


@case("rl-produce/any-byte", KEPT, dialects=BINARY)
async def any_byte(ctx: CaseContext) -> None:
    """Records come back byte for byte, whatever bytes they are."""
    topic, record = await ctx.topic(), bytes(range(256))
    records = [record, record[::-1], b"\r\n\0", b'{"Produce":{}}', b"\xff\xfe"]
    await ctx.store(topic, records)
    ctx.check(await ctx.stored(topic) == tuple(records), "data", "what was sent must be stored")


@case("rl-produce/long-record", KEPT, dialects=BINARY, quick=False)
async def long_record(ctx: CaseContext) -> None:
    """A record of 64 KiB and one byte comes back whole."""
    topic = await ctx.topic()
    record = ctx.rng.randbytes(65_537)
    await ctx.store(topic, [record])
    ctx.check(await ctx.stored(topic) == (record,), "data", "what was sent must be stored")


@case("rl-produce/partitions-apart", "produce-request/partition", dialects=BINARY)
async def partitions_apart(ctx: CaseContext) -> None:
    """Each partition counts from 0 and holds its own records."""
    topic, records = await ctx.filled(2)
    other = ctx.values(1)
    await ctx.side.ask(
        produce(topic, 1, other),
        exactly("produce-request/partition", "Produce", base_offset=0, record_count=1),
    )
    ctx.check(await ctx.stored(topic) == tuple(records), "data", "partition 0 is not to change")
    ctx.check(await ctx.stored(topic, 1) == tuple(other), "data", "partition 1 has one record")


@case("rl-produce/topics-apart", "produce-request/topic", dialects=BINARY)
async def topics_apart(ctx: CaseContext) -> None:
    """A record belongs to its topic alone, also where names begin alike."""
    topic, records = await ctx.filled(2)
    longer = f"{topic}-more"
    async with ctx.precondition("creating a topic with a longer name"):
        await ctx.create(longer, 1)
    await ctx.side.ask(
        produce(longer, 0, ctx.values(1)),
        exactly("produce-request/topic", "Produce", base_offset=0, record_count=1),
    )
    ctx.check(await ctx.stored(topic) == tuple(records), "data", "the other topic is not to change")


@case("rl-produce/missing-topic", MISSING, dialects=BINARY)
async def missing_topic(ctx: CaseContext) -> None:
    """A Produce to a topic that does not exist is refused with code 10, and the topic not made."""
    topic, name = await ctx.topic(), ctx.name()
    async with ctx.precondition("a Produce to a topic that exists"):
        await ctx.store(topic, ctx.values(1))
    await ctx.side.ask(produce(name, 0, ctx.values(1)), refused(NOT_FOUND, MISSING))
    listed = await ctx.side.ask(*ctx.exchange())
    names = [each for each, _ in listed.fields["topics"]]
    ctx.check(name not in names, "data", f"{LIST.name} must not tell of the topic {name}")


@case("rl-produce/missing-partition", MISSING, dialects=BINARY)
async def missing_partition(ctx: CaseContext) -> None:
    """A Produce to partition 2 of a topic with two is refused with code 10."""
    topic, _ = await ctx.filled(1)
    await ctx.side.ask(produce(topic, 2, ctx.values(1)), refused(NOT_FOUND, MISSING))


@case("rl-produce/far-partition", MISSING, dialects=BINARY, quick=False)
async def far_partition(ctx: CaseContext) -> None:
    """The highest number that a partition could have is refused as any other that is missing."""
    topic, _ = await ctx.filled(1)
    await ctx.side.ask(produce(topic, 2**32 - 1, ctx.values(1)), refused(NOT_FOUND, MISSING))
    await ctx.still_alive()


@case("rl-produce/missing-topic-no-records", MISSING, dialects=BINARY, quick=False)
async def missing_topic_no_records(ctx: CaseContext) -> None:
    """A Produce without records to a topic that does not exist is refused, too."""
    await ctx.topic()
    await ctx.side.ask(produce(ctx.name(), 0, []), refused(NOT_FOUND, MISSING))
