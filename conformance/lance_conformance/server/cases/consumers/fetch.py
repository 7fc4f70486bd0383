"""Cases about Fetch (LWP sections 5.8 and 5.9; AMB-06, AMB-18, AMB-19, AMB-29)."""

from dataclasses import replace

from lance_conformance.engine.expectations import Allowed
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import Event, answer, catching_up
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import END_OFFSET, Fetched, delete_topic, fetch
from lance_conformance.wire.frame import Command, Frame
from lance_conformance.wire.tlv import RECORD_HEADER, boundaries


def _nothing(ctx: CaseContext, got: Fetched, next_offset: int) -> None:
    ctx.check(got.data == b"", "data", f"no data must come, {len(got.data)} bytes came")
    _next(ctx, got, next_offset)


def _next(ctx: CaseContext, got: Fetched, right: int) -> None:
    where = got.next_offset
    ctx.check(where == right, "field:next_offset", f"next_offset must be {right}, is {where}")


@case("fet/empty-topic", "5.9/empty")
async def empty_topic(ctx: CaseContext) -> None:
    """A Fetch from a topic without records brings no data and the same offset again."""
    got = await ctx.fetch(await ctx.topic(), 0)
    _nothing(ctx, got, 0)
    ctx.check(not got.record_count, "field:record_count", f"no records, but {got.record_count}")


@case("fet/from-start", "5.8/data")
async def from_start(ctx: CaseContext) -> None:
    """A Fetch from offset 0 brings the records exactly as they were sent."""
    topic, payload = await ctx.filled()
    got = await ctx.fetch(topic, 0)
    ctx.check(got.data == payload, "data", "the data must be the payload that was acknowledged")


@case("fet/bytes-returned", "5.9/bytes-returned")
async def bytes_returned(ctx: CaseContext) -> None:
    """Bytes Returned is the number of data bytes that follow."""
    topic, payload = await ctx.filled()
    got = await ctx.fetch(topic, 0)
    said = got.bytes_returned
    ctx.check(said == len(payload), "field:bytes_returned", f"{len(payload)} bytes, it says {said}")


@case("fet/next-offset", "5.9/next-offset")
async def next_offset(ctx: CaseContext) -> None:
    """Next Offset is the start plus the bytes returned."""
    topic, payload = await ctx.filled()
    _next(ctx, await ctx.fetch(topic, 0), len(payload))
    start = boundaries(payload)[2]
    _next(ctx, await ctx.fetch(topic, start), len(payload))


@case("fet/record-count", "5.9/record-count")
async def record_count(ctx: CaseContext) -> None:
    """Record Count is the number of whole records in the data.

    The published server says 1 whenever there is data.
    """
    topic, _ = await ctx.filled(4)
    got = await ctx.fetch(topic, 0)
    right = 4 if ctx.specified else 1
    said = got.record_count
    ctx.check(said in (right, None), "field:record_count", f"must be {right}, is {said}")


@case("fet/from-boundary", "5.8/start-offset")
async def from_boundary(ctx: CaseContext) -> None:
    """The offset counts bytes: a Fetch from a record's offset begins with that record."""
    topic, payload = await ctx.filled()
    for start in boundaries(payload)[1:4]:
        got = await ctx.fetch(topic, start)
        ctx.check(got.data == payload[start:], "data", f"wrong data from the offset {start}")


@case("fet/across-batches", "5.8/start-offset", quick=False)
async def across_batches(ctx: CaseContext) -> None:
    """Offsets go on from one batch to the next, and one Fetch may span them."""
    topic, first = await ctx.filled(2)
    second = await ctx.store(topic, ctx.values(2))
    start = boundaries(first)[1]
    got = await ctx.fetch(topic, start)
    ctx.check(
        got.data == (first + second)[start:], "data", "both batches, from the second record on"
    )


@case("fet/inside-record", "5.8/inside-record", quick=False)
async def inside_record(ctx: CaseContext) -> None:
    """A Fetch from the middle of a record is served; its record count is 0.

    The published server says 1 whenever there is data.
    """
    topic, payload = await ctx.filled()
    got = await ctx.fetch(topic, 3)
    whole = got.data and payload[3:].startswith(got.data)
    ctx.check(whole, "data", "the data must be the bytes from offset 3 on")
    right = 0 if ctx.specified else 1
    said = got.record_count
    ctx.check(said in (right, None), "field:record_count", f"must be {right}, is {said}")


@case("fet/max-bytes", "5.8/max-bytes")
async def max_bytes(ctx: CaseContext) -> None:
    """A Fetch never brings more data than Max Bytes."""
    topic, payload = await ctx.filled(8)
    for limit in (25, 60, 199):
        got = await ctx.fetch(topic, 0, limit)
        ctx.check(0 < len(got.data) <= limit, "data-size", f"{len(got.data)} bytes for {limit}")
        ctx.check(payload.startswith(got.data), "data", "the data must be the topic's first bytes")


@case("fet/cut-on-boundary", "5.9/cut")
async def cut_on_boundary(ctx: CaseContext) -> None:
    """A Fetch that cannot bring everything ends where a record ends.

    The published server cuts at Max Bytes exactly; `deployed` allows both.
    """
    topic, _ = await ctx.filled(8)
    whole = (RECORD_HEADER + 20) * 2
    got = await ctx.fetch(topic, 0, whole + 7)
    right = (whole,) if ctx.specified else (whole, whole + 7)
    size = len(got.data)
    ctx.check(
        size in right, "data-size", f"{' or '.join(map(str, right))} bytes must come, {size} came"
    )
    _next(ctx, got, size)


@case("fet/record-above-max-bytes", "5.9/cut-record", quick=False)
async def record_above_max_bytes(ctx: CaseContext) -> None:
    """A record larger than Max Bytes is cut, so that its size can be read."""
    topic, payload = await ctx.filled(2, 400)
    got = await ctx.fetch(topic, 0, 100)
    size = len(got.data)
    ctx.check(RECORD_HEADER <= size <= 100, "data-size", f"5 to 100 bytes must come, {size} came")
    ctx.check(payload.startswith(got.data), "data", "the data must be the record's first bytes")
    _next(ctx, got, size)


@case("fet/walk", "5.9/walk")
async def walk(ctx: CaseContext) -> None:
    """Following Next Offset brings every byte once."""
    topic, first = await ctx.filled(5)
    payload = first + await ctx.store(topic, ctx.values(5, 33))
    data, offset = b"", 0
    for _ in range(10):
        got = await ctx.fetch(topic, offset, 90)
        data, offset = data + got.data, got.next_offset
    ctx.check(data == payload, "data", f"{len(payload)} bytes stored, {len(data)} collected")
    _nothing(ctx, await ctx.fetch(topic, offset, 90), len(payload))


@case("fet/max-bytes-zero", "5.8/max-bytes", quick=False)
async def max_bytes_zero(ctx: CaseContext) -> None:
    """A Fetch of at most 0 bytes brings no data and stays where it is."""
    topic, payload = await ctx.filled()
    start = boundaries(payload)[1]
    _nothing(ctx, await ctx.fetch(topic, start, 0), start)


@case("fet/max-bytes-4gib", "5.8/max-bytes-large", dialects=("specified",), quick=False)
async def max_bytes_4gib(ctx: CaseContext) -> None:
    """The largest Max Bytes is legal: what is there comes, as far as the target's limit goes."""
    topic, payload = await ctx.filled()
    got = await ctx.fetch(topic, 0, 0xFFFFFFFF)
    ctx.check(got.data == payload, "data", f"{len(payload)} bytes stored, {len(got.data)} came")


@case("fet/at-end", "5.9/at-end")
async def at_end(ctx: CaseContext) -> None:
    """A Fetch from the end brings no data and the end again."""
    topic, payload = await ctx.filled()
    _nothing(ctx, await ctx.fetch(topic, len(payload)), len(payload))


@case("fet/end-sentinel", "5.8/end-sentinel")
async def end_sentinel(ctx: CaseContext) -> None:
    """A Fetch from offset 2^64-1 brings no data and the end of the log."""
    topic, payload = await ctx.filled()
    _nothing(ctx, await ctx.fetch(topic, END_OFFSET), len(payload))


@case("fet/beyond-end", "5.9/beyond-end")
async def beyond_end(ctx: CaseContext) -> None:
    """A Fetch from beyond the end brings no data: CatchingUp, OffsetOutOfRange or the end."""
    topic, payload = await ctx.filled()
    end = len(payload)
    ctx.side.send(fetch(topic.id, end + 1000, 1024))
    behind = catching_up(end)
    empty = answer(Command.FETCH_RESPONSE, "5.9/beyond-end")
    out = ctx.error(ErrorCode.OFFSET_OUT_OF_RANGE, cite="AMB-18")
    event = await ctx.expect(ctx.side, specified=[behind, empty, out], deployed=[behind])
    _empty_at(ctx, event, (end, end + 1000))


def _empty_at(ctx: CaseContext, event: Event | None, offsets: tuple[int, ...]) -> None:
    if not isinstance(event, Frame) or event.batch_id != Command.FETCH_RESPONSE:
        return
    got = ctx.read(ctx.side, event)
    ctx.check(got.data == b"", "data", f"{len(got.data)} bytes came from beyond the end")
    where = got.next_offset
    ctx.check(where in offsets, "field:next_offset", f"must be one of {offsets}, is {where}")


def _no_topic(ctx: CaseContext, *codes: int) -> list[Allowed]:
    return [ctx.error(*codes, cite="5.9/not-found", text="not found")]


@case("fet/unknown-topic", "5.9/not-found")
async def unknown_topic(ctx: CaseContext) -> None:
    """A Fetch from a topic that does not exist is refused."""
    right = fetch((await ctx.topic()).id, 0, 1024)
    wrong = replace(right, payload=fetch(ctx.unknown_topic, 0, 1024).payload)
    refused = _no_topic(ctx, ErrorCode.TOPIC_NOT_FOUND)
    await ctx.assert_pair(
        right,
        wrong,
        answer=answer(Command.FETCH_RESPONSE, "5.9/answer"),
        specified=refused,
        deployed=refused,
    )


@case("fet/deleted-topic", "5.6/gone", quick=False)
async def deleted_topic(ctx: CaseContext) -> None:
    """A Fetch from a deleted topic is refused."""
    topic = await ctx.disposable_topic()
    await ctx.store(topic, ctx.values(2))
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(topic.id), answer(Command.TOPIC_RESPONSE, "5.6/delete"))
    await ctx.side.ask(
        fetch(topic.id, 0, 1024),
        *_no_topic(ctx, ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND),
    )


@case("fet/offset-stable", "5.8/stable", quick=False)
async def offset_stable(ctx: CaseContext) -> None:
    """An offset names the same byte after more was written."""
    topic, payload = await ctx.filled()
    start = boundaries(payload)[1]
    before = await ctx.fetch(topic, start, 50)
    await ctx.store(topic, ctx.values(3))
    after = await ctx.fetch(topic, start, 50)
    ctx.check(before.data == after.data != b"", "data", f"other data from the offset {start}")
