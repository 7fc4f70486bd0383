"""Width: ids, offsets, counts and times keep all their bits."""

import struct
from dataclasses import replace
from functools import partial

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.variation.common import NONCE, NOT_FOUND, holds, register
from lance_conformance.server.consumers import commit_ack, subscribe_ack
from lance_conformance.server.expect import ack, answer, fetched, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import (
    commit_offset,
    offset_for_time,
    read_consumer_at,
    subscribe,
)
from lance_conformance.wire.control import (
    create_topic_with_retention,
    fetch,
    get_topic,
    ingest,
    read_json,
    set_retention,
)
from lance_conformance.wire.frame import Command, Frame
from lance_conformance.wire.tlv import RAW_DATA


async def _topic_id(ctx: CaseContext, bit: int) -> None:
    """An id that differs from that of a topic in one high bit is not a topic."""
    topic, payload = await ctx.filled(2)
    other = topic.id | 1 << bit
    if other == topic.id:
        return
    missing = ctx.error(*NOT_FOUND, cite="5.5/not-found", text="not found")
    await ctx.side.ask(get_topic(other), missing)
    await ctx.side.ask(fetch(other, 0, 65536), ctx.error(*NOT_FOUND, cite="5.9/not-found"))
    frame = ingest(other, ctx.batch(), ctx.values(1))
    await ctx.side.ask(frame, ctx.error(*NOT_FOUND, cite="6.4/unknown-topic"))
    await holds(ctx, topic, payload)


async def _resumed(ctx: CaseContext, topic: Topic, consumer: int) -> int:
    peer = await ctx.open()
    frame = await peer.ask(subscribe(topic.id, consumer), subscribe_ack(consumer, cite="5.12/ack"))
    said = read_consumer_at(frame.payload)
    peer.drop()
    return said.offset if said else -1


async def _consumers(ctx: CaseContext, bit: int) -> None:
    """Two consumers whose ids differ in one high bit have commits of their own."""
    topic, payload = await ctx.filled(4)
    size = len(payload) // 4
    ids = (ctx.consumer & 0xFFFF) | 1, ((ctx.consumer & 0xFFFF) | 1) ^ 1 << bit
    for place, consumer in enumerate(ids, 1):
        async with ctx.precondition("committing"):
            right = commit_ack(consumer, cite="5.14/ack")
            await ctx.side.ask(commit_offset(topic.id, consumer, place * size), right)
    for place, consumer in enumerate(ids, 1):
        at = await _resumed(ctx, topic, consumer)
        ctx.check(
            at == place * size, "field:offset",
            f"consumer {consumer:#x} committed {place * size} and goes on at {at}",
        )  # fmt: skip


async def _stored_or_refused(
    ctx: CaseContext, peer: Peer, topic: Topic, frame: Frame, before: bytes
) -> None:
    """A batch that is acknowledged as another one must be in the log as another one."""
    cite = "4.2/all-acked"
    refused = ctx.error(ErrorCode.INVALID_PAYLOAD, cite=cite)
    event = await peer.ask(frame, ack(frame.batch_id, cite), refused)
    acked = event.batch_id == frame.batch_id
    await holds(ctx, topic, before + (frame.payload if acked else b""))


async def _batch_ids(ctx: CaseContext, bit: int, *, elsewhere: bool) -> None:
    """Two batches that differ only in one bit of their ids are two batches."""
    topic = await ctx.topic()
    first = ingest(topic.id, NONCE | 1 << 39 | 3, ctx.values(1))
    async with ctx.precondition("storing the first batch"):
        await ctx.side.ask(first, ack(first.batch_id))
    second = replace(first, batch_id=first.batch_id ^ 1 << bit)
    peer = await ctx.open() if elsewhere else ctx.side
    await peer.ask(second, ack(second.batch_id, "4.2/all-acked"))
    await holds(ctx, topic, first.payload * 2)


async def _commands(ctx: CaseContext, bit: int) -> None:
    """A command with one high bit more is another one, which nobody knows."""
    right = get_topic((await ctx.topic()).id)
    async with ctx.precondition("asking with the right command"):
        await ctx.side.ask(right, topic_response("5.5/get"))
    ctx.side.send_faulty(replace(right, batch_id=right.batch_id | 1 << bit), "batch_id")
    await ctx.side.expect(ctx.error(ErrorCode.INVALID_PAYLOAD, cite="5.2/unknown"))


async def _times(ctx: CaseContext, bit: int, *, elsewhere: bool) -> None:
    """A batch with a known id and another timestamp is not a repetition (AMB-25)."""
    topic = await ctx.topic()
    first = ingest(topic.id, NONCE | 5, ctx.values(1))
    async with ctx.precondition("storing the first batch"):
        await ctx.side.ask(first, ack(first.batch_id))
    second = replace(first, timestamp_ns=first.timestamp_ns ^ 1 << bit)
    peer = await ctx.open() if elsewhere else ctx.side
    await _stored_or_refused(ctx, peer, topic, second, first.payload)


async def _fetch_offset(ctx: CaseContext, bit: int) -> None:
    """An offset beyond the end by a power of two brings no data."""
    topic, payload = await ctx.filled(2, 12)
    size = len(payload) // 2
    allowed = [
        answer(Command.CATCHING_UP, "AMB-18"),
        ctx.error(
            ErrorCode.INVALID_OFFSET, ErrorCode.OFFSET_OUT_OF_RANGE, cite="5.8/offset-64-bits"
        ),
        fetched(b"", ctx.dialect.fetch_header, "5.8/offset-64-bits"),
    ]
    await ctx.side.ask(fetch(topic.id, size + (1 << bit), 65536), *allowed)


async def _max_bytes(ctx: CaseContext, bit: int) -> None:
    """A Max Bytes that is a power of two is not taken for nothing."""
    topic, payload = await ctx.filled(4, 20)
    got = await ctx.fetch(topic, 0, 1 << bit)
    ctx.check(got.data == payload, "data", f"Max Bytes {1 << bit} must bring {len(payload)} bytes")


async def _limits(ctx: CaseContext, bit: int) -> None:
    """Both limits come back with all their bits, from both commands."""
    age, size = (1 << bit) + 1, (1 << bit) + 3
    created = create_topic_with_retention(ctx.name(), age, size)
    frame = await ctx.side.ask(created, topic_response("5.11/answer"))
    body = read_json(frame.payload) or {}
    said = body.get("max_age_secs"), body.get("max_bytes")
    ctx.check(said == (age, size), "field:limits", f"{(age, size)} were sent, {said} came back")
    frame = await ctx.side.ask(
        set_retention(int(body.get("id") or 0), size, age), topic_response("5.10/answer")
    )
    body = read_json(frame.payload) or {}
    said = body.get("max_age_secs"), body.get("max_bytes")
    ctx.check(said == (size, age), "field:limits", f"{(size, age)} were sent, {said} came back")


async def _counts(ctx: CaseContext, count: int) -> None:
    """The answer to a Fetch counts all its records."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, [number.to_bytes(4, "big") for number in range(count)])
    got = await ctx.fetch(topic, 0, len(payload))
    ctx.check(
        got.record_count == count, "field:record_count",
        f"{count} records came, {got.record_count} are announced",
    )  # fmt: skip


async def _time_asked(ctx: CaseContext, time: int) -> None:
    """A time after all records is after them, however large it is."""
    topic, payload = await ctx.filled(2)
    request = offset_for_time(topic.id, time)
    frame = await ctx.side.ask(
        request, answer(Command.OFFSET_FOR_TIME_RESPONSE, "5.2/offset-for-time")
    )
    said = struct.unpack("<Q", frame.payload[:8].ljust(8, b"\0"))[0]
    ctx.check(said == len(payload), "field:offset", f"the end is {len(payload)}, not {said}")


async def _announced(ctx: CaseContext, bit: int) -> None:
    """A batch whose announced count differs from its records in one bit only is refused."""
    topic, payload = await ctx.filled(1, 8)
    right = ingest(topic.id, ctx.batch(), ctx.values(3))
    ctx.side.send_faulty(replace(right, record_count=3 ^ 1 << bit), "record_count")
    await ctx.side.expect(ctx.error(ErrorCode.INVALID_PAYLOAD, cite="4.1/record-count"))
    await holds(ctx, topic, payload)


async def _record_length(ctx: CaseContext, length: int) -> None:
    """The records before it are whole, and it is no length from its own beginning backwards."""
    topic, payload = await ctx.filled(1, 8)
    right = ingest(topic.id, ctx.batch(), ctx.values(2))
    head = bytes([RAW_DATA]) + length.to_bytes(4, "little")
    wrong = replace(right, payload=right.payload + head, record_count=3)
    ctx.side.send_faulty(wrong, "payload")
    codes = ErrorCode.INVALID_PAYLOAD, ErrorCode.PAYLOAD_TOO_LARGE
    await ctx.side.expect(ctx.error(*codes, cite="8.4/chain"))
    await holds(ctx, topic, payload)


async def _refused_id(ctx: CaseContext, batch_id: int) -> None:
    """The error for a batch names its id exactly."""
    frame = ingest(ctx.unknown_topic, batch_id, ctx.values(1))
    said = await ctx.side.ask(
        frame, ctx.error(ErrorCode.TOPIC_NOT_FOUND, cite="12.1/batch", text="topic")
    )
    details = (read_json(said.payload) or {}).get("details") or {}
    found = details.get("batch_id")
    ctx.check(found == batch_id, "field:details", f"details.batch_id is {found}, not {batch_id}")


async def _own_batches(ctx: CaseContext, number: int) -> None:
    """Two connections send the same batch under the same id: both are stored."""
    topic = await ctx.topic()
    frame = ingest(topic.id, number, ctx.values(1))
    for _ in range(2):
        await (await ctx.open()).ask(frame, ack(number, "10.4/other-producer"))
    await holds(ctx, topic, frame.payload * 2)


async def _known_batches(ctx: CaseContext, number: int) -> None:
    """Two connections send the same batch under the same id: it is stored once."""
    topic = await ctx.topic()
    frame = ingest(topic.id, number, ctx.values(1))
    for _ in range(2):
        await (await ctx.open()).ask(frame, ack(number, "10.4/retry-elsewhere"))
    await holds(ctx, topic, frame.payload)


for _number in (1 << 16, 1 << 31, (1 << 32) + 1, 1 << 36, (1 << 40) - 1):
    register(f"width/own-batch-{_number:x}", "10.4/other-producer",
             f"The batch {_number:#x} of another connection is another one.",
             partial(_own_batches, number=_number))  # fmt: skip
for _number in (1 << 40, 1 << 48, 1 << 63, 2**64 - 1):
    register(f"width/known-batch-{_number:x}", "10.4/retry-elsewhere",
             f"The batch {_number:#x} that comes again on another connection is known.",
             partial(_known_batches, number=_number), dialects=("specified",))  # fmt: skip
for _bit in (8, 16, 24, 31):
    register(f"width/topic-id-bit-{_bit}", "6.1/unique-id",
             f"Bit {_bit} of a topic id is part of the id.",
             partial(_topic_id, bit=_bit))  # fmt: skip
for _bit in (8, 16, 31, 32, 48, 53, 63):
    register(f"width/consumer-id-bit-{_bit}", "5.14/consumer-id",
             f"Bit {_bit} of a consumer id tells consumers apart.",
             partial(_consumers, bit=_bit))  # fmt: skip
    register(f"width/fetch-offset-bit-{_bit}", "5.8/offset-64-bits",
             f"Bit {_bit} of a Start Offset counts.",
             partial(_fetch_offset, bit=_bit))  # fmt: skip
for _bit in (8, 16, 31, 32, 48, 63):
    register(f"width/batch-id-bit-{_bit}", "4.2/all-acked",
             f"Bit {_bit} of a batch id tells batches apart.",
             partial(_batch_ids, bit=_bit, elsewhere=True))  # fmt: skip
    register(f"width/own-batch-id-bit-{_bit}", "4.2/all-acked",
             f"Bit {_bit} of a batch id tells the batches of one connection apart.",
             partial(_batch_ids, bit=_bit, elsewhere=False))  # fmt: skip
    register(f"width/command-bit-{_bit}", "5.2/unknown",
             f"Bit {_bit} of a command is part of the command.",
             partial(_commands, bit=_bit), dialects=("specified",))  # fmt: skip
for _bit in (0, 8, 16, 31, 32, 48, 53, 63):
    register(f"width/timestamp-bit-{_bit}", "4.2/all-acked",
             f"A batch whose timestamp differs in bit {_bit} is not a repetition.",
             partial(_times, bit=_bit, elsewhere=True))  # fmt: skip
    register(f"width/own-timestamp-bit-{_bit}", "4.2/all-acked",
             f"A batch of one connection whose timestamp differs in bit {_bit} is another one.",
             partial(_times, bit=_bit, elsewhere=False))  # fmt: skip
for _bit in (8, 16, 24, 31):
    register(f"width/announced-bit-{_bit}", "4.1/record-count",
             f"Bit {_bit} of a record count is part of the count.",
             partial(_announced, bit=_bit), dialects=("specified",))  # fmt: skip
    register(f"width/max-bytes-bit-{_bit}", "5.8/max-bytes",
             f"Max Bytes {1 << _bit} is not nothing.", partial(_max_bytes, bit=_bit))  # fmt: skip
for _bit in (31, 32, 48, 53, 62, 63):
    register(f"width/limits-bit-{_bit}", "5.10/exact",
             f"Bit {_bit} of both retention limits is kept.", partial(_limits, bit=_bit),
             dialects=("specified",))  # fmt: skip
for _count in (255, 256, 257, 65_535, 65_536, 65_537):
    register(f"width/record-count-{_count}", "5.9/record-count",
             f"A FetchResponse with {_count} records counts all of them.",
             partial(_counts, count=_count), weight=1 + _count // 16_384,
             thorough=_count in (65_535, 65_537),
             dialects=("specified",))  # fmt: skip
for _length in (1 << 31, 2**32 - 1, 2**32 - 5, 2**32 - 30, 2**32 - 55):
    register(f"width/record-length-{_length}", "8.4/chain",
             f"A record that announces {_length} bytes is cut, and its batch is refused.",
             partial(_record_length, length=_length), dialects=("specified",))  # fmt: skip
for _name, _time in (("2-62", 1 << 62), ("2-63", 1 << 63), ("highest", 2**64 - 1)):
    register(f"width/time-{_name}", "5.2/offset-for-time-end",
             f"OffsetForTime for {_time} ns is the end of the log.",
             partial(_time_asked, time=_time), needs={"offset-for-time"})  # fmt: skip
for _name, _id in (("2-53", (1 << 53) + 1), ("2-63", (1 << 63) + 1), ("highest", 2**64 - 1)):
    register(f"width/error-names-{_name}", "12.1/batch",
             f"The error for a batch names the id {_id:#x} exactly.",
             partial(_refused_id, batch_id=_id), dialects=("specified",))  # fmt: skip
