"""Cases about several streams, on one connection and on several, and their acknowledgements."""

from lance_conformance.fluvio.case_context import CaseContext
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.wire.calls import (
    fetch_offsets,
    stream_fetch,
    update_offsets,
)
from lance_conformance.fluvio.wire.errors import Code

UNKNOWN_STREAM = 0xFFFF_FF00


@case("fl-stream/two-on-one", "streams/several")
async def two_on_one(ctx: CaseContext) -> None:
    """Two streams on one connection have ids of their own, and each brings its records."""
    topic = await ctx.topic(2)
    lists = ctx.records(2), ctx.records(3)
    for number, records in enumerate(lists):
        await ctx.store(topic, records, number)
    peer = await ctx.open("spu")
    streams = [await ctx.reading(stream_fetch(topic, number), peer) for number in (0, 1)]
    for stream, records in zip(streams, lists, strict=True):
        found = [each.record for each in (await stream.piece()).records]
        ctx.check(found == records, "data", "a stream must bring the records of its partition")
    first, second = (stream.stream for stream in streams)
    ctx.check(first != second, "field:stream_id", f"both streams have the id {first}")


@case("fl-stream/acks-apart", "streams/several")
async def acks_apart(ctx: CaseContext) -> None:
    """Acknowledging one stream does not let another one go on."""
    topic = await ctx.topic(2)
    for number in (0, 1):
        await ctx.store(topic, ctx.records(1), number)
    peer = await ctx.open("spu")
    streams = [await ctx.reading(stream_fetch(topic, number), peer) for number in (0, 1)]
    for stream in streams:
        await stream.piece()
    for number in (0, 1):
        await ctx.store(topic, ctx.records(1), number)
    await streams[1].acknowledge(1)
    await streams[1].piece()
    await peer.expect_quiet("piece of the other stream")


@case("fl-stream/ids-apart", "streams/several")
async def ids_apart(ctx: CaseContext) -> None:
    """A stream can be acknowledged only on its own connection."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(1))
    stream = await ctx.reading(stream_fetch(topic))
    await stream.piece()
    other = await ctx.open("spu")
    (told,) = await other.ask(update_offsets((1, stream.stream)))
    ctx.expect_code(told.outcome, Code.FETCH_SESSION_NOT_FOUND)


@case("fl-stream/update-answered", "streams/update")
async def update_answered(ctx: CaseContext) -> None:
    """An acknowledgement is answered with its stream and no error."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(1))
    stream = await ctx.reading(stream_fetch(topic))
    await stream.piece()
    told = await stream.peer.ask(update_offsets((1, stream.stream)))
    streams = [each.stream for each in told]
    ctx.check(
        streams == [stream.stream], "field:stream_id", f"{stream.stream} asked, {streams} told"
    )
    ctx.expect_code(told[0].outcome, Code.NONE)


@case("fl-stream/update-unknown", "streams/no-stream")
async def update_unknown(ctx: CaseContext) -> None:
    """An acknowledgement of a stream that is not there: FetchSessionNotFound (3002)."""
    told = await ctx.spu.ask(update_offsets((1, UNKNOWN_STREAM)))
    ctx.check(len(told) == 1, "body:entries", f"1 stream was named, {len(told)} are answered")
    ctx.expect_code(told[0].outcome, Code.FETCH_SESSION_NOT_FOUND)


@case("fl-stream/requests-beside", "streams/beside")
async def requests_beside(ctx: CaseContext) -> None:
    """A connection with an open stream answers other requests."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(1))
    stream = await ctx.reading(stream_fetch(topic))
    await stream.piece()
    await stream.peer.ask(fetch_offsets([(topic, [0])]))


@case("fl-stream/several-readers", "streams/beside")
async def several_readers(ctx: CaseContext) -> None:
    """Readers on connections of their own are all told of what is stored later."""
    topic = await ctx.topic()
    streams = [await ctx.reading(stream_fetch(topic)) for _ in range(3)]
    records = ctx.records(2)
    await ctx.store(topic, records)
    for stream in streams:
        found = [each.record for each in (await stream.piece()).records]
        ctx.check(found == records, "data", "two records must come to every reader")


@case("fl-stream/other-readers", "streams/beside")
async def other_readers(ctx: CaseContext) -> None:
    """A reader that acknowledges nothing, and one that left, do not hold up another one."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(2))
    slow, gone = [await ctx.reading(stream_fetch(topic)) for _ in range(2)]
    for stream in (slow, gone):
        await stream.piece()
    gone.peer.drop()
    await ctx.store(topic, ctx.records(2))
    ctx.check(len(await ctx.read(topic, 4)) == 4, "data", "four records must be read")
