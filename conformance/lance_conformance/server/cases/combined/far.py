"""Far: a rule holds for the largest frames, and for the 5,000th frame of a connection."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from lance_conformance.engine.expectations import Allowed, closed
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import BOTH, SPECIFIED
from lance_conformance.server.cases.variation.common import (
    batches,
    holds,
    joined,
    register,
    send_all,
)
from lance_conformance.server.cases.variation.position import FAULTS, Fault
from lance_conformance.server.consumers import commit_ack, pushed, subscribe_ack
from lance_conformance.server.expect import ack, answer, catching_up, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import commit_offset, offset_for_time, subscribe
from lance_conformance.wire.control import fetch, get_topic, ingest, read_json, read_offset
from lance_conformance.wire.frame import Command, Frame

LARGE = (150_000, 600_000, 2_500_000, 5_000_000, 12_000_000)
"""Bytes of the value of a record."""
LATE = 5000
"""Frames of a connection."""


class LargeFault(NamedTuple):
    """What is wrong with a large batch.

    Attributes:
        name: In the id.
        clause: The rule.
        field: The field that is wrong.
        words: In a sentence about a large batch.
        spoil: Makes a right batch wrong.
        closes: It ends its connection.
        dialects: Where the rule is so.
    """

    name: str
    clause: str
    field: str
    words: str
    spoil: Callable[[CaseContext, Frame], Frame]
    closes: bool = False
    dialects: tuple[str, ...] = SPECIFIED


def _another_byte(ctx: CaseContext, frame: Frame) -> Frame:
    """One bit of the middle of a payload is another one than its checksum was made of."""
    middle = len(frame.payload) // 2
    changed = bytes([frame.payload[middle] ^ 1])
    payload = frame.payload[:middle] + changed + frame.payload[middle + 1 :]
    return replace(frame, payload=payload, payload_crc=ctx.dialect.compute(frame.payload))


LARGE_FAULTS = (
    LargeFault("payload-crc", "11.3/payload-crc", "payload", "of which a bit has changed",
               _another_byte, closes=True, dialects=BOTH),
    LargeFault("chain", "8.4/chain", "payload", "that misses its last byte",
               lambda _, frame: replace(frame, payload=frame.payload[:-1])),
    LargeFault("trailing", "8.4/chain", "payload", "with three bytes after its record",
               lambda _, frame: replace(frame, payload=frame.payload + bytes(3))),
    LargeFault("record-count", "4.1/record-count", "record_count", "with a wrong record count",
               lambda _, frame: replace(frame, record_count=2)),
)  # fmt: skip


async def _large(ctx: CaseContext, fault: LargeFault) -> None:
    """A right batch of half the bytes, and of each larger one nothing is stored."""
    topic, payload = await ctx.filled(1, LARGE[0] // 2)
    for size in LARGE:
        right = ingest(topic.id, ctx.batch(), [bytes(size)])
        peer = await ctx.open() if fault.closes else ctx.side
        peer.send_faulty(fault.spoil(ctx, right), fault.field)
        await peer.expect(_allowed(ctx, fault))
    await holds(ctx, topic, payload)


def _allowed(ctx: CaseContext, fault: LargeFault) -> Allowed:
    if fault.closes:
        return closed(fault.clause)
    return ctx.error(ErrorCode.INVALID_PAYLOAD, cite=fault.clause)


for _large_fault in LARGE_FAULTS:
    register(
        f"size/{_large_fault.name}-of-much", _large_fault.clause,
        f"A batch of {LARGE[0]} to {LARGE[-1]} bytes {_large_fault.words} is told.",
        partial(_large, fault=_large_fault), dialects=_large_fault.dialects, weight=8,
    )  # fmt: skip

# -- the 5,000th frame -----------------------------------------------------------------------------


async def _late(ctx: CaseContext, fault: Fault) -> None:
    """What ends a connection is asked at the end, what is refused every 1,000 frames."""
    topic, peer = await ctx.topic(), await ctx.open()
    stored: list[Frame] = []
    while len(stored) < LATE:
        some = batches(ctx, topic, LATE // 5)
        async with ctx.precondition("storing batches"):
            await send_all(peer, some)
        stored += some
        if fault.clause in CLOSING and len(stored) < LATE:
            continue
        wrong = fault.spoil(ctx, batches(ctx, topic, 1)[0])
        peer.send_faulty(wrong, fault.field)
        await peer.expect(fault.allowed(ctx))
    await holds(ctx, topic, joined(stored))


CLOSING = frozenset({
    "11.1/magic", "11.2/version", "11.3/header-crc", "11.3/payload-crc", "3.2/reserved",
    "3.3/bit-7",
})  # fmt: skip
for _fault in FAULTS:
    register(
        f"pos/{_fault.name}-at-{LATE}", _fault.clause,
        f"The {LATE}th frame of a connection, {_fault.words}.".replace(", whose", " whose"),
        partial(_late, fault=_fault), dialects=_fault.dialects, weight=1 + LATE // 250,
        thorough=_fault.name not in {"header-crc", "payload-crc", "record-count", "unknown-topic"},
        twin_of=f"pos/{_fault.name}-at-2",
    )  # fmt: skip


# -- offsets beyond 16 MiB -------------------------------------------------------------------------

PART, PARTS = 6_000_000, 3
"""Bytes of a record, and how many: the last small batch begins after byte 2^24."""
Asked = Callable[[CaseContext, Topic, int, int], Awaitable[None]]


async def _beyond_16_mib(ctx: CaseContext, asked: Asked) -> None:
    """Three large batches, and a small one after them."""
    topic = await ctx.topic()
    last = ingest(topic.id, ctx.batch(), ctx.values(3))
    large = [ingest(topic.id, ctx.batch(), [bytes(PART)]) for _ in range(PARTS)]
    async with ctx.precondition("storing the batches"):
        for frame in (*large, last):
            await ctx.side.ask(frame, ack(frame.batch_id))
    start = sum(len(frame.payload) for frame in large)
    await asked(ctx, topic, start, start + len(last.payload))


async def _committed(ctx: CaseContext, topic: Topic, start: int, end: int) -> None:
    peer = await ctx.open()
    for offset in (start, end):
        right = commit_ack(ctx.consumer, offset, cite="5.14/committed-offset")
        await ctx.side.ask(commit_offset(topic.id, ctx.consumer, offset), right)
        resumed = subscribe_ack(ctx.consumer, offset, cite="5.12/resume")
        await peer.ask(subscribe(topic.id, ctx.consumer), resumed)
        peer.drop()
        peer = await ctx.open()


async def _subscribed(ctx: CaseContext, topic: Topic, start: int, end: int) -> None:
    peer = await ctx.open()
    begun = subscribe_ack(ctx.consumer, start, cite="5.12/actual-offset")
    await peer.ask(subscribe(topic.id, ctx.consumer, start), begun)
    got = ctx.read(peer, await peer.frame(pushed(topic.id, "5.12/push")))
    right = (end - start, end)
    said = (len(got.data), got.next_offset)
    ctx.check(said == right, "field:next_offset", f"bytes and next offset are {right}, not {said}")


async def _timed(ctx: CaseContext, topic: Topic, start: int, end: int) -> None:
    del start
    right = answer(Command.OFFSET_FOR_TIME_RESPONSE, "5.2/offset-for-time-end")
    reply = await ctx.side.ask(offset_for_time(topic.id, 2**64 - 1), right)
    said = read_offset(reply.payload)
    ctx.check(said == end, "field:offset", f"the log ends at {end}, not at {said}")


async def _told(ctx: CaseContext, topic: Topic, start: int, end: int) -> None:
    del start
    reply = await ctx.side.ask(get_topic(topic.id), topic_response("5.5/get"))
    said = (read_json(reply.payload) or {}).get("end_offset")
    ctx.check(said == end, "field:end_offset", f"the log ends at {end}, not at {said}")


async def _beyond(ctx: CaseContext, topic: Topic, start: int, end: int) -> None:
    """A target that answers with the end tells all of it."""
    del start
    codes = ErrorCode.INVALID_OFFSET, ErrorCode.OFFSET_OUT_OF_RANGE
    refused = ctx.error(*codes, cite="5.9/beyond-end")
    allowed = catching_up(end), answer(Command.FETCH_RESPONSE, "5.9/beyond-end"), refused
    await ctx.side.ask(fetch(topic.id, end + 1, 100), *allowed)


for _name, _clause, _title, _asked, _needs in (
    ("commits", "5.14/committed-offset", "A commit beyond byte 2^24 counts as it is.",
     _committed, ()),
    ("subscriptions", "5.12/actual-offset", "A subscription beyond byte 2^24 begins there.",
     _subscribed, ("push",)),
    ("times", "5.2/offset-for-time-end", "OffsetForTime tells an end beyond byte 2^24.",
     _timed, ("offset-for-time",)),
    ("end-offset", "6.2/end-offset", "GetTopic tells an end beyond byte 2^24.", _told, ()),
    ("beyond-end", "5.9/beyond-end", "A CatchingUp tells an end beyond byte 2^24.", _beyond, ()),
):  # fmt: skip
    register(
        f"vol/far-{_name}", _clause, _title, partial(_beyond_16_mib, asked=_asked),
        needs=_needs, dialects=SPECIFIED, weight=6,
    )  # fmt: skip
