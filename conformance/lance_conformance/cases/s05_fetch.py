"""Cases about Fetch (LWP sections 5.8 and 5.9; AMB-06, AMB-18, AMB-19, AMB-29)."""

from dataclasses import replace

from lance_conformance.cases.registry import case
from lance_conformance.peer.dialogue import Dialogue
from lance_conformance.peer.expect import Event, answer, catching_up
from lance_conformance.protocols.outcomes import Allowed
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import END_OFFSET, Fetched, delete_topic, fetch
from lance_conformance.wire.frame import Command, Frame
from lance_conformance.wire.tlv import RECORD_HEADER, boundaries


def _nothing(c: Dialogue, got: Fetched, next_offset: int) -> None:
    c.check(got.data == b"", "data", f"no data must come, {len(got.data)} bytes came")
    _next(c, got, next_offset)


def _next(c: Dialogue, got: Fetched, right: int) -> None:
    where = got.next_offset
    c.check(where == right, "field:next_offset", f"next_offset must be {right}, is {where}")


@case("fet/empty-topic", "5.9/empty")
async def empty_topic(c: Dialogue) -> None:
    """A Fetch from a topic without records brings no data and the same offset again."""
    got = await c.fetch(await c.topic(), 0)
    _nothing(c, got, 0)
    c.check(not got.record_count, "field:record_count", f"no records, but {got.record_count}")


@case("fet/from-start", "5.8/data")
async def from_start(c: Dialogue) -> None:
    """A Fetch from offset 0 brings the records exactly as they were sent."""
    topic, payload = await c.filled()
    got = await c.fetch(topic, 0)
    c.check(got.data == payload, "data", "the data must be the payload that was acknowledged")


@case("fet/bytes-returned", "5.9/bytes-returned")
async def bytes_returned(c: Dialogue) -> None:
    """Bytes Returned is the number of data bytes that follow."""
    topic, payload = await c.filled()
    got = await c.fetch(topic, 0)
    said = got.bytes_returned
    c.check(said == len(payload), "field:bytes_returned", f"{len(payload)} bytes, it says {said}")


@case("fet/next-offset", "5.9/next-offset")
async def next_offset(c: Dialogue) -> None:
    """Next Offset is the start plus the bytes returned."""
    topic, payload = await c.filled()
    _next(c, await c.fetch(topic, 0), len(payload))
    start = boundaries(payload)[2]
    _next(c, await c.fetch(topic, start), len(payload))


@case("fet/record-count", "5.9/record-count")
async def record_count(c: Dialogue) -> None:
    """Record Count is the number of whole records in the data.

    The published server says 1 whenever there is data.
    """
    topic, _ = await c.filled(4)
    got = await c.fetch(topic, 0)
    right = 4 if c.specified else 1
    said = got.record_count
    c.check(said in (right, None), "field:record_count", f"must be {right}, is {said}")


@case("fet/from-boundary", "5.8/start-offset")
async def from_boundary(c: Dialogue) -> None:
    """The offset counts bytes: a Fetch from a record's offset begins with that record."""
    topic, payload = await c.filled()
    for start in boundaries(payload)[1:4]:
        got = await c.fetch(topic, start)
        c.check(got.data == payload[start:], "data", f"wrong data from the offset {start}")


@case("fet/across-batches", "5.8/start-offset", quick=False)
async def across_batches(c: Dialogue) -> None:
    """Offsets go on from one batch to the next, and one Fetch may span them."""
    topic, first = await c.filled(2)
    second = await c.store(topic, c.values(2))
    start = boundaries(first)[1]
    got = await c.fetch(topic, start)
    c.check(got.data == (first + second)[start:], "data", "both batches, from the second record on")


@case("fet/inside-record", "5.8/inside-record", quick=False)
async def inside_record(c: Dialogue) -> None:
    """A Fetch from the middle of a record is served; its record count is 0.

    The published server says 1 whenever there is data.
    """
    topic, payload = await c.filled()
    got = await c.fetch(topic, 3)
    whole = got.data and payload[3:].startswith(got.data)
    c.check(whole, "data", "the data must be the bytes from offset 3 on")
    right = 0 if c.specified else 1
    said = got.record_count
    c.check(said in (right, None), "field:record_count", f"must be {right}, is {said}")


@case("fet/max-bytes", "5.8/max-bytes")
async def max_bytes(c: Dialogue) -> None:
    """A Fetch never brings more data than Max Bytes."""
    topic, payload = await c.filled(8)
    for limit in (25, 60, 199):
        got = await c.fetch(topic, 0, limit)
        c.check(0 < len(got.data) <= limit, "data-size", f"{len(got.data)} bytes for {limit}")
        c.check(payload.startswith(got.data), "data", "the data must be the topic's first bytes")


@case("fet/cut-on-boundary", "5.9/cut")
async def cut_on_boundary(c: Dialogue) -> None:
    """A Fetch that cannot bring everything ends where a record ends.

    The published server cuts at Max Bytes exactly; `deployed` allows both.
    """
    topic, _ = await c.filled(8)
    whole = (RECORD_HEADER + 20) * 2
    got = await c.fetch(topic, 0, whole + 7)
    right = (whole,) if c.specified else (whole, whole + 7)
    size = len(got.data)
    c.check(
        size in right, "data-size", f"{' or '.join(map(str, right))} bytes must come, {size} came"
    )
    _next(c, got, size)


@case("fet/record-above-max-bytes", "5.9/cut-record", quick=False)
async def record_above_max_bytes(c: Dialogue) -> None:
    """A record larger than Max Bytes is cut, so that its size can be read."""
    topic, payload = await c.filled(2, 400)
    got = await c.fetch(topic, 0, 100)
    size = len(got.data)
    c.check(RECORD_HEADER <= size <= 100, "data-size", f"5 to 100 bytes must come, {size} came")
    c.check(payload.startswith(got.data), "data", "the data must be the record's first bytes")
    _next(c, got, size)


@case("fet/walk", "5.9/walk")
async def walk(c: Dialogue) -> None:
    """Following Next Offset brings every byte once."""
    topic, first = await c.filled(5)
    payload = first + await c.store(topic, c.values(5, 33))
    data, offset = b"", 0
    for _ in range(10):
        got = await c.fetch(topic, offset, 90)
        data, offset = data + got.data, got.next_offset
    c.check(data == payload, "data", f"{len(payload)} bytes stored, {len(data)} collected")
    _nothing(c, await c.fetch(topic, offset, 90), len(payload))


@case("fet/max-bytes-zero", "5.8/max-bytes", quick=False)
async def max_bytes_zero(c: Dialogue) -> None:
    """A Fetch of at most 0 bytes brings no data and stays where it is."""
    topic, payload = await c.filled()
    start = boundaries(payload)[1]
    _nothing(c, await c.fetch(topic, start, 0), start)


@case("fet/max-bytes-4gib", "5.8/max-bytes-large", dialects=("specified",), quick=False)
async def max_bytes_4gib(c: Dialogue) -> None:
    """The largest Max Bytes is legal: what is there comes, as far as the target's limit goes."""
    topic, payload = await c.filled()
    got = await c.fetch(topic, 0, 0xFFFFFFFF)
    c.check(got.data == payload, "data", f"{len(payload)} bytes stored, {len(got.data)} came")


@case("fet/at-end", "5.9/at-end")
async def at_end(c: Dialogue) -> None:
    """A Fetch from the end brings no data and the end again."""
    topic, payload = await c.filled()
    _nothing(c, await c.fetch(topic, len(payload)), len(payload))


@case("fet/end-sentinel", "5.8/end-sentinel")
async def end_sentinel(c: Dialogue) -> None:
    """A Fetch from offset 2^64-1 brings no data and the end of the log."""
    topic, payload = await c.filled()
    _nothing(c, await c.fetch(topic, END_OFFSET), len(payload))


@case("fet/beyond-end", "5.9/beyond-end")
async def beyond_end(c: Dialogue) -> None:
    """A Fetch from beyond the end brings no data: CatchingUp, OffsetOutOfRange or the end."""
    topic, payload = await c.filled()
    end = len(payload)
    c.side.send(fetch(topic.id, end + 1000, 1024))
    behind = catching_up(end)
    empty = answer(Command.FETCH_RESPONSE, "5.9/beyond-end")
    out = c.error(ErrorCode.OFFSET_OUT_OF_RANGE, cite="AMB-18")
    event = await c.expect(c.side, specified=[behind, empty, out], deployed=[behind])
    _empty_at(c, event, (end, end + 1000))


def _empty_at(c: Dialogue, event: Event | None, offsets: tuple[int, ...]) -> None:
    if not isinstance(event, Frame) or event.batch_id != Command.FETCH_RESPONSE:
        return
    got = c.read(c.side, event)
    c.check(got.data == b"", "data", f"{len(got.data)} bytes came from beyond the end")
    where = got.next_offset
    c.check(where in offsets, "field:next_offset", f"must be one of {offsets}, is {where}")


def _no_topic(c: Dialogue, *codes: int) -> list[Allowed]:
    return [c.error(*codes, cite="5.9/not-found", text="not found")]


@case("fet/unknown-topic", "5.9/not-found")
async def unknown_topic(c: Dialogue) -> None:
    """A Fetch from a topic that does not exist is refused."""
    right = fetch((await c.topic()).id, 0, 1024)
    wrong = replace(right, payload=fetch(c.unknown_topic, 0, 1024).payload)
    refused = _no_topic(c, ErrorCode.TOPIC_NOT_FOUND)
    await c.duel(
        right,
        wrong,
        answer=answer(Command.FETCH_RESPONSE, "5.9/answer"),
        specified=refused,
        deployed=refused,
    )


@case("fet/deleted-topic", "5.6/gone", quick=False)
async def deleted_topic(c: Dialogue) -> None:
    """A Fetch from a deleted topic is refused."""
    topic = await c.doomed_topic()
    await c.store(topic, c.values(2))
    async with c.control("deleting a topic"):
        await c.side.ask(delete_topic(topic.id), answer(Command.TOPIC_RESPONSE, "5.6/delete"))
    await c.side.ask(
        fetch(topic.id, 0, 1024), *_no_topic(c, ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND)
    )


@case("fet/offset-stable", "5.8/stable", quick=False)
async def offset_stable(c: Dialogue) -> None:
    """An offset names the same byte after more was written."""
    topic, payload = await c.filled()
    start = boundaries(payload)[1]
    before = await c.fetch(topic, start, 50)
    await c.store(topic, c.values(3))
    after = await c.fetch(topic, start, 50)
    c.check(before.data == after.data != b"", "data", f"other data from the offset {start}")
