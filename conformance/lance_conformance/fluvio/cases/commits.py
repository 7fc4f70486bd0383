"""Cases about the offsets that consumers have a server keep."""

from lance_conformance.fluvio.case_context import CaseContext, OpenStream
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.wire.calls import (
    commit,
    committed,
    forget,
    stream_fetch,
)
from lance_conformance.fluvio.wire.errors import Code
from lance_conformance.fluvio.wire.responses import ConsumerOffset

UNKNOWN_STREAM = 0xFFFF_FF00


async def _stream(
    ctx: CaseContext, topic: str, consumer: str | None, partition: int = 0
) -> OpenStream:
    """A stream of a consumer, which has one piece of it."""
    stream = await ctx.reading(stream_fetch(topic, partition, consumer=consumer))
    await stream.piece()
    return stream


async def _filled(ctx: CaseContext, partitions: int = 1) -> str:
    topic = await ctx.topic(partitions)
    for number in range(partitions):
        await ctx.store(topic, ctx.records(4), number)
    return topic


async def _commit(ctx: CaseContext, stream: OpenStream, offset: int) -> None:
    told = await stream.peer.ask(commit(offset, stream.stream))
    ctx.expect_code(told.outcome, Code.NONE)
    ctx.check(told.offset == offset, "field:offset", f"{offset} was stored, {told.offset} is told")


async def _kept(
    ctx: CaseContext, topic: str | None, consumer: str | None = None, partition: int = 0
) -> list[ConsumerOffset]:
    found = await ctx.spu.ask(committed(topic, consumer, partition))
    ctx.expect_code(found.outcome, Code.NONE)
    return list(found.consumers)


@case("fl-commit/kept", "commits/kept")
async def kept(ctx: CaseContext) -> None:
    """A stored offset is told on another connection, with consumer, topic and partition."""
    topic = await _filled(ctx)
    consumer = ctx.name()
    await _commit(ctx, await _stream(ctx, topic, consumer), 2)
    found = await _kept(ctx, topic, consumer)
    wanted = [ConsumerOffset(consumer, topic, 0, 2)]
    ctx.check(found == wanted, "data", f"expected {wanted}; got {found}")


@case("fl-commit/last-counts", "commits/kept")
async def last_counts(ctx: CaseContext) -> None:
    """Of several stored offsets the last one counts, even if it is lower."""
    topic = await _filled(ctx)
    stream = await _stream(ctx, topic, "reader")
    for offset in (1, 3, 0):
        await _commit(ctx, stream, offset)
    offsets = [each.offset for each in await _kept(ctx, topic, "reader")]
    ctx.check(offsets == [0], "data", f"expected 0 alone; got {offsets}")


@case("fl-commit/outlives-connection", "commits/kept")
async def outlives_connection(ctx: CaseContext) -> None:
    """A stored offset stays when the consumer's connection ends."""
    topic = await _filled(ctx)
    stream = await _stream(ctx, topic, "reader")
    await _commit(ctx, stream, 1)
    stream.peer.drop()
    await ctx.still_alive()
    offsets = [each.offset for each in await _kept(ctx, topic, "reader")]
    ctx.check(offsets == [1], "data", f"expected 1 alone; got {offsets}")


@case("fl-commit/by-consumer", "commits/filter")
async def by_consumer(ctx: CaseContext) -> None:
    """Consumers have offsets of their own, and one can be asked about alone."""
    topic = await _filled(ctx)
    for consumer, offset in (("one", 1), ("two", 2)):
        await _commit(ctx, await _stream(ctx, topic, consumer), offset)
    for consumer, offset in (("one", 1), ("two", 2)):
        found = {each.consumer: each.offset for each in await _kept(ctx, topic, consumer)}
        ctx.check(found == {consumer: offset}, "data", f"expected {consumer} alone; got {found}")


@case("fl-commit/by-partition", "commits/filter")
async def by_partition(ctx: CaseContext) -> None:
    """Partitions have offsets of their own, and one can be asked about alone."""
    topic = await _filled(ctx, 2)
    for number in (0, 1):
        await _commit(ctx, await _stream(ctx, topic, "reader", number), number + 1)
    for number in (0, 1):
        found = [(e.partition, e.offset) for e in await _kept(ctx, topic, "reader", number)]
        ctx.check(found == [(number, number + 1)], "data", f"partition {number} has {found}")


@case("fl-commit/all-of-partition", "commits/filter")
async def all_of_partition(ctx: CaseContext) -> None:
    """Asked about a partition without a consumer, the server tells all of its consumers."""
    topic = await _filled(ctx)
    for consumer in ("one", "two"):
        await _commit(ctx, await _stream(ctx, topic, consumer), 0)
    found = sorted(each.consumer for each in await _kept(ctx, topic))
    ctx.check(found == ["one", "two"], "data", f"expected one and two; got {found}")


@case("fl-commit/without-filter", "commits/versions")
async def without_filter(ctx: CaseContext) -> None:
    """At version 23 a request has no filter, and all stored offsets are told."""
    topic = await _filled(ctx)
    await _commit(ctx, await _stream(ctx, topic, "reader"), 3)
    found = await ctx.spu.ask(committed(version=23))
    mine = [each for each in found.consumers if each.topic == topic]
    ctx.check(len(mine) == 1, "data", f"1 offset of {topic} is stored, {len(mine)} are told")


@case("fl-commit/forgotten", "commits/forget")
async def forgotten(ctx: CaseContext) -> None:
    """An offset that is forgotten is told no more; those of others stay."""
    topic = await _filled(ctx)
    for consumer in ("one", "two"):
        await _commit(ctx, await _stream(ctx, topic, consumer), 2)
    ctx.expect_code(await ctx.spu.ask(forget(topic, "one")), Code.NONE)
    found = [each.consumer for each in await _kept(ctx, topic)]
    ctx.check(found == ["two"], "data", f"expected two alone; got {found}")


@case("fl-commit/nobody", "commits/kept")
async def nobody(ctx: CaseContext) -> None:
    """Where nothing was stored nothing is told, and that is not an error."""
    topic = await _filled(ctx)
    found = await _kept(ctx, topic, "nobody")
    ctx.check(not found, "data", f"nothing was stored, {found} is told")


@case("fl-commit/stream-unknown", "commits/no-stream")
async def stream_unknown(ctx: CaseContext) -> None:
    """An offset for a stream that is not there: FetchSessionNotFound (3002)."""
    told = await ctx.spu.ask(commit(0, UNKNOWN_STREAM))
    ctx.expect_code(told.outcome, Code.FETCH_SESSION_NOT_FOUND)


@case("fl-commit/consumer-nameless", "commits/nameless")
async def consumer_nameless(ctx: CaseContext) -> None:
    """An offset for a stream that named no consumer: OffsetManagementDisabled, or a text (2)."""
    topic = await _filled(ctx)
    stream = await _stream(ctx, topic, None)
    told = await stream.peer.ask(commit(0, stream.stream))
    ctx.expect_code(told.outcome, Code.OFFSET_MANAGEMENT_DISABLED, Code.OTHER)
