"""Cases about the edges of Fetch: large numbers, small limits, other topics (sections 5.8, 5.9)."""

from lance_conformance.cases.registry import case
from lance_conformance.peer.dialogue import Dialogue, Topic
from lance_conformance.peer.expect import Event, answer, catching_up
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import END_OFFSET, fetch
from lance_conformance.wire.frame import Command, Frame
from lance_conformance.wire.tlv import RECORD_HEADER, boundaries

RECORD = RECORD_HEADER + 20


async def _beyond(c: Dialogue, topic: Topic, end: int, start: int) -> None:
    """A Fetch from far beyond the end: no data, in one of the allowed forms."""
    c.side.send(fetch(topic.id, start, 1024))
    behind = catching_up(end)
    codes = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.INVALID_OFFSET
    out = c.error(*codes, cite="AMB-18")
    empty = answer(Command.FETCH_RESPONSE, "5.9/beyond-end")
    event = await c.expect(c.side, specified=[behind, empty, out], deployed=[behind])
    _has_no_data(c, event)


def _has_no_data(c: Dialogue, event: Event | None) -> None:
    if isinstance(event, Frame) and event.batch_id == Command.FETCH_RESPONSE:
        size = len(c.read(c.side, event).data)
        c.check(not size, "data", f"{size} bytes came from beyond the end")


@case("fet/beyond-end-signed", "5.8/offset-64-bits", quick=False)
async def beyond_end_signed(c: Dialogue) -> None:
    """Offset 2^63 is a large one, not a negative one."""
    topic, payload = await c.filled()
    await _beyond(c, topic, len(payload), 2**63)


@case("fet/beyond-end-largest", "5.8/offset-64-bits", quick=False)
async def beyond_end_largest(c: Dialogue) -> None:
    """Offset 2^64-2 is beyond the end, and no sum with it wraps around."""
    topic, payload = await c.filled()
    await _beyond(c, topic, len(payload), END_OFFSET - 1)


@case("fet/beyond-end-low-word", "5.8/offset-64-bits", quick=False)
async def beyond_end_low_word(c: Dialogue) -> None:
    """Offset 2^32 is not offset 0."""
    topic, payload = await c.filled()
    await _beyond(c, topic, len(payload), 2**32)


@case("fet/beyond-empty", "5.9/beyond-end", quick=False)
async def beyond_empty(c: Dialogue) -> None:
    """A Fetch from offset 1 of an empty topic is one from beyond the end."""
    await _beyond(c, await c.topic(), 0, 1)


@case("fet/sentinel-of-empty", "5.8/end-sentinel", quick=False)
async def sentinel_of_empty(c: Dialogue) -> None:
    """The end of an empty topic is 0."""
    got = await c.fetch(await c.topic(), END_OFFSET)
    where = got.next_offset
    c.check(where == 0 and not got.data, "field:next_offset", f"the end must be 0, is {where}")


@case("fet/one-record-exactly", "5.8/max-bytes", quick=False)
async def one_record_exactly(c: Dialogue) -> None:
    """A limit of one record's size brings that record."""
    topic, payload = await c.filled()
    got = await c.fetch(topic, RECORD, RECORD)
    c.check(got.data == payload[RECORD : 2 * RECORD], "data", "the second record must come, alone")


@case("fet/one-byte", "5.8/max-bytes-small", quick=False)
async def one_byte(c: Dialogue) -> None:
    """A limit of one byte brings the record's first byte."""
    topic, payload = await c.filled()
    got = await c.fetch(topic, 0, 1)
    c.check(got.data == payload[:1], "data", f"one byte must come, {len(got.data)} came")


@case("fet/last-record", "5.8/start-offset", quick=False)
async def last_record(c: Dialogue) -> None:
    """A Fetch from the last record brings it and ends at the end of the log."""
    topic, payload = await c.filled()
    start = boundaries(payload)[-2]
    got = await c.fetch(topic, start)
    c.check(got.data == payload[start:], "data", "the last record must come")
    where = got.next_offset
    c.check(where == len(payload), "field:next_offset", f"must be {len(payload)}, is {where}")


@case("fet/start-of-batch", "5.8/start-of-batch", quick=False)
async def start_of_batch(c: Dialogue) -> None:
    """Where one batch ends the next one begins."""
    topic, first = await c.filled(2)
    second = await c.store(topic, c.values(2))
    got = await c.fetch(topic, len(first))
    c.check(got.data == second, "data", "exactly the second batch must come")


@case("fet/count-of-limited", "5.9/record-count", quick=False)
async def count_of_limited(c: Dialogue) -> None:
    """Record Count counts what comes, not what there is.

    The published server says 1 whenever there is data.
    """
    topic, _ = await c.filled(6)
    said = (await c.fetch(topic, 0, 2 * RECORD)).record_count
    right = 2 if c.specified else 1
    c.check(said in (right, None), "field:record_count", f"must be {right}, is {said}")


@case("fet/count-across-batches", "5.9/record-count", quick=False)
async def count_across_batches(c: Dialogue) -> None:
    """Record Count counts records, not batches.

    The published server says 1 whenever there is data.
    """
    topic, _ = await c.filled(3)
    await c.store(topic, c.values(2))
    said = (await c.fetch(topic, 0)).record_count
    right = 5 if c.specified else 1
    c.check(said in (right, None), "field:record_count", f"must be {right}, is {said}")


@case("fet/count-of-cut", "5.9/count-of-cut", dialects=("specified",), quick=False)
async def count_of_cut(c: Dialogue) -> None:
    """A record that is cut off does not count."""
    topic, _ = await c.filled(2)
    said = (await c.fetch(topic, 0, RECORD - 1)).record_count
    c.check(said in (0, None), "field:record_count", f"must be 0, is {said}")


@case("fet/pipelined", "5.9/pipelined", quick=False)
async def pipelined(c: Dialogue) -> None:
    """Fetches in one write are answered in their order, each with its own data."""
    topic, payload = await c.filled()
    starts = boundaries(payload)[:4]
    c.side.send(*(fetch(topic.id, start, RECORD) for start in starts))
    for start in starts:
        frame = await c.side.frame(answer(Command.FETCH_RESPONSE, "5.9/pipelined"))
        got = c.read(c.side, frame)
        right = payload[start : start + RECORD]
        c.check(got.data == right, "data", f"other data than from {start}")


@case("fet/two-topics-pipelined", "5.9/own-topic", quick=False)
async def two_topics_pipelined(c: Dialogue) -> None:
    """Fetches from several topics in one write bring each topic's own data."""
    filled = [await c.filled(2) for _ in range(2)]
    c.side.send(*(fetch(topic.id, 0, 1024) for topic, _ in filled))
    for topic, payload in filled:
        frame = await c.side.frame(answer(Command.FETCH_RESPONSE, "5.9/own-topic"))
        got = c.read(c.side, frame)
        c.check(got.data == payload, "data", f"this is not the data of topic {topic.id}")


@case("fet/repeatable", "5.8/repeatable", quick=False)
async def repeatable(c: Dialogue) -> None:
    """Reading takes nothing away: the same Fetch brings the same again."""
    topic, _ = await c.filled()
    first = await c.fetch(topic, 0)
    for _ in range(3):
        again = await c.fetch(topic, 0)
        c.check(again == first, "data", "the same Fetch must bring the same")


@case("fet/answer-fields", "5.1/answer-fields", quick=False)
async def answer_fields(c: Dialogue) -> None:
    """In the header of an answered Fetch the fields that have no use are 0."""
    topic, _ = await c.filled()
    frame = await c.side.ask(fetch(topic.id, 0, 1024), answer(Command.FETCH_RESPONSE, "5.9/answer"))
    said = frame.timestamp_ns, frame.record_count, frame.topic_id
    c.check(said == (0, 0, 0), "field:other", f"timestamp, count and topic must be 0: {said}")


@case("fet/default-topic", "6.1/default-topic-read", quick=False)
async def default_topic(c: Dialogue) -> None:
    """Topic 0 can be fetched from.

    The published server has no such topic for readers and says so.
    """
    fetched = answer(Command.FETCH_RESPONSE, "AMB-34")
    missing = c.error(ErrorCode.TOPIC_NOT_FOUND, cite="AMB-34", text="not found")
    c.side.send(fetch(0, 0, 1))
    await c.expect(c.side, specified=[fetched], deployed=[fetched, missing])
