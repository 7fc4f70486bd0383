"""Cases about the edges of Fetch: large numbers, small limits, other topics (sections 5.8, 5.9)."""

from dataclasses import replace

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import Event, answer, catching_up
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.control import END_OFFSET, fetch
from lance_conformance.wire.frame import Command, Frame
from lance_conformance.wire.tlv import RECORD_HEADER, boundaries

RECORD = RECORD_HEADER + 20


async def _beyond(ctx: CaseContext, topic: Topic, end: int, start: int) -> None:
    """A Fetch from far beyond the end: no data, in one of the allowed forms."""
    ctx.side.send(fetch(topic.id, start, 1024))
    behind = catching_up(end)
    codes = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.INVALID_OFFSET
    out = ctx.error(*codes, cite="AMB-18")
    empty = answer(Command.FETCH_RESPONSE, "5.9/beyond-end")
    event = await ctx.expect(ctx.side, specified=[behind, empty, out], deployed=[behind])
    _has_no_data(ctx, event)


def _has_no_data(ctx: CaseContext, event: Event | None) -> None:
    if isinstance(event, Frame) and event.batch_id == Command.FETCH_RESPONSE:
        size = len(ctx.read(ctx.side, event).data)
        ctx.check(not size, "data", f"{size} bytes came from beyond the end")


@case("fet/beyond-end-signed", "5.8/offset-64-bits", quick=False)
async def beyond_end_signed(ctx: CaseContext) -> None:
    """Offset 2^63 is a large one, not a negative one."""
    topic, payload = await ctx.filled()
    await _beyond(ctx, topic, len(payload), 2**63)


@case("fet/beyond-end-largest", "5.8/offset-64-bits", quick=False)
async def beyond_end_largest(ctx: CaseContext) -> None:
    """Offset 2^64-2 is beyond the end, and no sum with it wraps around."""
    topic, payload = await ctx.filled()
    await _beyond(ctx, topic, len(payload), END_OFFSET - 1)


@case("fet/beyond-end-low-word", "5.8/offset-64-bits", quick=False)
async def beyond_end_low_word(ctx: CaseContext) -> None:
    """Offset 2^32 is not offset 0."""
    topic, payload = await ctx.filled()
    await _beyond(ctx, topic, len(payload), 2**32)


@case("fet/beyond-empty", "5.9/beyond-end", quick=False)
async def beyond_empty(ctx: CaseContext) -> None:
    """A Fetch from offset 1 of an empty topic is one from beyond the end."""
    await _beyond(ctx, await ctx.topic(), 0, 1)


@case("fet/sentinel-of-empty", "5.8/end-sentinel", quick=False)
async def sentinel_of_empty(ctx: CaseContext) -> None:
    """The end of an empty topic is 0."""
    got = await ctx.fetch(await ctx.topic(), END_OFFSET)
    where = got.next_offset
    ctx.check(where == 0 and not got.data, "field:next_offset", f"the end must be 0, is {where}")


@case("fet/one-record-exactly", "5.8/max-bytes", quick=False)
async def one_record_exactly(ctx: CaseContext) -> None:
    """A limit of one record's size brings that record."""
    topic, payload = await ctx.filled()
    got = await ctx.fetch(topic, RECORD, RECORD)
    ctx.check(
        got.data == payload[RECORD : 2 * RECORD], "data", "the second record must come, alone"
    )


@case("fet/one-byte", "5.8/max-bytes-small", quick=False)
async def one_byte(ctx: CaseContext) -> None:
    """A limit of one byte brings the record's first byte."""
    topic, payload = await ctx.filled()
    got = await ctx.fetch(topic, 0, 1)
    ctx.check(got.data == payload[:1], "data", f"one byte must come, {len(got.data)} came")


@case("fet/last-record", "5.8/start-offset", quick=False)
async def last_record(ctx: CaseContext) -> None:
    """A Fetch from the last record brings it and ends at the end of the log."""
    topic, payload = await ctx.filled()
    start = boundaries(payload)[-2]
    got = await ctx.fetch(topic, start)
    ctx.check(got.data == payload[start:], "data", "the last record must come")
    where = got.next_offset
    ctx.check(where == len(payload), "field:next_offset", f"must be {len(payload)}, is {where}")


@case("fet/start-of-batch", "5.8/start-of-batch", quick=False)
async def start_of_batch(ctx: CaseContext) -> None:
    """Where one batch ends the next one begins."""
    topic, first = await ctx.filled(2)
    second = await ctx.store(topic, ctx.values(2))
    got = await ctx.fetch(topic, len(first))
    ctx.check(got.data == second, "data", "exactly the second batch must come")


@case("fet/count-of-limited", "5.9/record-count", quick=False)
async def count_of_limited(ctx: CaseContext) -> None:
    """Record Count counts what comes, not what there is.

    The published server says 1 whenever there is data.
    """
    topic, _ = await ctx.filled(6)
    said = (await ctx.fetch(topic, 0, 2 * RECORD)).record_count
    right = 2 if ctx.specified else 1
    ctx.check(said in (right, None), "field:record_count", f"must be {right}, is {said}")


@case("fet/count-across-batches", "5.9/record-count", quick=False)
async def count_across_batches(ctx: CaseContext) -> None:
    """Record Count counts records, not batches.

    The published server says 1 whenever there is data.
    """
    topic, _ = await ctx.filled(3)
    await ctx.store(topic, ctx.values(2))
    said = (await ctx.fetch(topic, 0)).record_count
    right = 5 if ctx.specified else 1
    ctx.check(said in (right, None), "field:record_count", f"must be {right}, is {said}")


@case("fet/count-of-cut", "5.9/count-of-cut", dialects=("specified",), quick=False)
async def count_of_cut(ctx: CaseContext) -> None:
    """A record that is cut off does not count."""
    topic, _ = await ctx.filled(2)
    said = (await ctx.fetch(topic, 0, RECORD - 1)).record_count
    ctx.check(said in (0, None), "field:record_count", f"must be 0, is {said}")


@case("fet/pipelined", "5.9/pipelined", quick=False)
async def pipelined(ctx: CaseContext) -> None:
    """Fetches in one write are answered in their order, each with its own data."""
    topic, payload = await ctx.filled()
    starts = boundaries(payload)[:4]
    ctx.side.send(*(fetch(topic.id, start, RECORD) for start in starts))
    for start in starts:
        frame = await ctx.side.frame(answer(Command.FETCH_RESPONSE, "5.9/pipelined"))
        got = ctx.read(ctx.side, frame)
        right = payload[start : start + RECORD]
        ctx.check(got.data == right, "data", f"other data than from {start}")


@case("fet/two-topics-pipelined", "5.9/own-topic", quick=False)
async def two_topics_pipelined(ctx: CaseContext) -> None:
    """Fetches from several topics in one write bring each topic's own data."""
    filled = [await ctx.filled(2) for _ in range(2)]
    ctx.side.send(*(fetch(topic.id, 0, 1024) for topic, _ in filled))
    for topic, payload in filled:
        frame = await ctx.side.frame(answer(Command.FETCH_RESPONSE, "5.9/own-topic"))
        got = ctx.read(ctx.side, frame)
        ctx.check(got.data == payload, "data", f"this is not the data of topic {topic.id}")


@case("fet/topic-of-header", "5.9/own-topic", quick=False, twin_of="fet/two-topics-pipelined")
async def topic_of_header(ctx: CaseContext) -> None:
    """The payload of a Fetch says what is read; a header with another topic may be refused."""
    topic, payload = await ctx.filled(2)
    other = await ctx.topic()
    ctx.side.send_faulty(replace(fetch(topic.id, 0, 1024), topic_id=other.id), "topic_id")
    event = await ctx.side.expect(
        answer(Command.FETCH_RESPONSE, "5.9/own-topic"), ctx.error(*ANY_ERROR, cite="AMB-26")
    )
    if isinstance(event, Frame) and event.batch_id == Command.FETCH_RESPONSE:
        got = ctx.read(ctx.side, event)
        ctx.check(got.data == payload, "data", f"this is not the data of topic {topic.id}")


@case("fet/repeatable", "5.8/repeatable", quick=False)
async def repeatable(ctx: CaseContext) -> None:
    """Reading takes nothing away: the same Fetch brings the same again."""
    topic, _ = await ctx.filled()
    first = await ctx.fetch(topic, 0)
    for _ in range(3):
        again = await ctx.fetch(topic, 0)
        ctx.check(again == first, "data", "the same Fetch must bring the same")


@case("fet/answer-fields", "5.1/answer-fields", quick=False)
async def answer_fields(ctx: CaseContext) -> None:
    """In the header of an answered Fetch the fields that have no use are 0."""
    topic, _ = await ctx.filled()
    frame = await ctx.side.ask(
        fetch(topic.id, 0, 1024), answer(Command.FETCH_RESPONSE, "5.9/answer")
    )
    said = frame.timestamp_ns, frame.record_count, frame.topic_id
    ctx.check(said == (0, 0, 0), "field:other", f"timestamp, count and topic must be 0: {said}")


@case("fet/default-topic", "6.1/default-topic-read", quick=False)
async def default_topic(ctx: CaseContext) -> None:
    """Topic 0 can be fetched from.

    The published server has no such topic for readers and says so.
    """
    fetched = answer(Command.FETCH_RESPONSE, "AMB-34")
    missing = ctx.error(ErrorCode.TOPIC_NOT_FOUND, cite="AMB-34", text="not found")
    ctx.side.send(fetch(0, 0, 1))
    await ctx.expect(ctx.side, specified=[fetched], deployed=[fetched, missing])
