"""Retries: every kind of batch is known when it comes again, also after other requests."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.combined.history import compressed
from lance_conformance.server.cases.registry import SPECIFIED
from lance_conformance.server.cases.variation.common import (
    NONCE,
    batches,
    holds,
    joined,
    register,
    send_all,
)
from lance_conformance.server.consumers import commit_ack
from lance_conformance.server.expect import ack, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import commit_offset
from lance_conformance.wire.control import delete_topic, ingest, set_retention
from lance_conformance.wire.frame import Frame
from lance_conformance.wire.tlv import records

ELSEWHERE = "10.4/retry-elsewhere"
NULL = 0xFF
NUMBERS = (9, 65, 257)
"""Producers."""


def _batch(ctx: CaseContext, topic: Topic, number: int = 1, size: int = 20) -> Frame:
    """A batch of one record under an id that is known on every connection."""
    return ingest(topic.id, NONCE | number, ctx.values(1, size))


# -- what comes again ------------------------------------------------------------------------------

Made = Callable[[CaseContext, Topic], Frame]
SHAPES: tuple[tuple[str, str, Made, str], ...] = (
    ("of-100000", "of 100,000 bytes", lambda ctx, topic: _batch(ctx, topic, 1, 100_000), ""),
    ("of-2000000", "of 2 MB", lambda ctx, topic: _batch(ctx, topic, 1, 2_000_000), ""),
    ("of-300-records", "of 300 records",
     lambda ctx, topic: ingest(topic.id, NONCE | 1, ctx.values(300, 8)), ""),
    ("of-empty-values", "of empty values",
     lambda _, topic: ingest(topic.id, NONCE | 1, [b""] * 9), ""),
    ("compressed", "that is compressed",
     lambda ctx, topic: compressed(_batch(ctx, topic, 1, 3000)), "lz4"),
)  # fmt: skip
"""Name, words, and how it is made; the feature that it needs."""


async def _again(ctx: CaseContext, made: Made) -> None:
    """On its own connection, on another one, and once its own connection is gone."""
    topic, peer = await ctx.topic(), await ctx.open()
    frame = made(ctx, topic)
    async with ctx.precondition("storing the batch"):
        await peer.ask(frame, ack(frame.batch_id))
    end = (await ctx.fetch(topic, 2**64 - 1)).next_offset
    await peer.ask(frame, ack(frame.batch_id, ELSEWHERE))
    await (await ctx.open()).ask(frame, ack(frame.batch_id, ELSEWHERE))
    peer.drop()
    await (await ctx.open()).ask(frame, ack(frame.batch_id, ELSEWHERE))
    now = (await ctx.fetch(topic, 2**64 - 1)).next_offset
    ctx.check(now == end, "data", f"a batch that came four times is stored again: {end} to {now}")


for _name, _words, _made, _needs in SHAPES:
    register(f"rep/retried-{_name}", ELSEWHERE,
             f"A batch {_words} that comes three times more is stored once.",
             partial(_again, made=_made), dialects=SPECIFIED, weight=4,
             twin_of="rep/retried")  # fmt: skip

# -- what was done meanwhile -----------------------------------------------------------------------

Done = Callable[[CaseContext, Topic, Frame], Awaitable[None]]


async def _refused(ctx: CaseContext, topic: Topic, frame: Frame) -> None:
    """The same id with other content, and batches that are wrong."""
    refused = ctx.error(ErrorCode.INVALID_PAYLOAD, cite="10.4/unique")
    other = replace(frame, payload=records(ctx.values(2)), record_count=2)
    await ctx.side.ask(other, refused)
    wrong = replace(_batch(ctx, topic, 5), record_count=4)
    ctx.side.send_faulty(wrong, "record_count")
    await ctx.side.expect(ctx.error(ErrorCode.INVALID_PAYLOAD, cite="4.1/record-count"))


async def _limited(ctx: CaseContext, topic: Topic, frame: Frame) -> None:
    del frame
    request = set_retention(topic.id, 1 << 30, 1 << 40)
    await ctx.side.ask(request, topic_response("5.10/answer"))


async def _committed(ctx: CaseContext, topic: Topic, frame: Frame) -> None:
    acked = commit_ack(ctx.consumer, cite="5.14/ack")
    await ctx.side.ask(commit_offset(topic.id, ctx.consumer, len(frame.payload)), acked)


async def _deleted(ctx: CaseContext, topic: Topic, frame: Frame) -> None:
    """Another topic, that has a batch under the same id."""
    del topic
    gone = await ctx.disposable_topic()
    await ctx.side.ask(replace(frame, topic_id=gone.id), ack(frame.batch_id))
    await ctx.side.ask(delete_topic(gone.id), topic_response("5.6/delete"))


async def _grown(ctx: CaseContext, topic: Topic, frame: Frame) -> None:
    """Ids above it and below it, from its producer and others, small and large."""
    del frame
    ids = [NONCE | 9, NONCE | 2, NONCE | 300, NONCE + (1 << 40), NONCE + (1 << 41) + 1]
    some = [ingest(topic.id, batch_id, ctx.values(1)) for batch_id in ids]
    await send_all(ctx.side, [*some, *batches(ctx, topic, 3), _batch(ctx, topic, 7, 100_000)])


EVENTS: tuple[tuple[str, str, Done], ...] = (
    ("refusals", "batches were refused", _refused), ("limits", "limits were set", _limited),
    ("a-commit", "a consumer committed", _committed),
    ("a-deletion", "a topic was deleted", _deleted), ("others", "others were stored", _grown),
)  # fmt: skip


async def _meanwhile(ctx: CaseContext, done: Done) -> None:
    """It comes again on its own connection and on another one."""
    topic = await ctx.topic()
    frame = _batch(ctx, topic)
    async with ctx.precondition("storing the batch, and what comes between"):
        await ctx.side.ask(frame, ack(frame.batch_id))
        await done(ctx, topic, frame)
    end = (await ctx.fetch(topic, 2**64 - 1)).next_offset
    for peer in (ctx.side, await ctx.open()):
        await peer.ask(frame, ack(frame.batch_id, ELSEWHERE))
    now = (await ctx.fetch(topic, 2**64 - 1)).next_offset
    ctx.check(now == end, "data", f"a batch that came again is stored again: {end} to {now}")


for _slug, _words, _done in EVENTS:
    register(f"rep/retried-after-{_slug}", ELSEWHERE,
             f"A batch that comes again after {_words} is stored once.",
             partial(_meanwhile, done=_done), dialects=SPECIFIED, weight=2,
             twin_of="rep/retried")  # fmt: skip


async def _same_write(ctx: CaseContext) -> None:
    """The first of them is stored, and nobody waits for its Ack."""
    topic, peer = await ctx.topic(), await ctx.open()
    frames = [_batch(ctx, topic, number) for number in (1, 2)]
    peer.send(frames[0], frames[0], frames[1], frames[0], frames[1])
    for frame in (frames[0], frames[0], frames[1], frames[0], frames[1]):
        await peer.expect(ack(frame.batch_id, ELSEWHERE))
    await holds(ctx, topic, joined(frames))


register("rep/retried-in-one-write", ELSEWHERE,
         "A batch that stands several times in one write is stored once.", _same_write,
         dialects=SPECIFIED, twin_of="rep/retried")  # fmt: skip


async def _producers(ctx: CaseContext, count: int) -> None:
    """The first, the middle and the last of them send their batch again, elsewhere."""
    topic = await ctx.topic()
    frames = [
        ingest(topic.id, NONCE + (number << 40) | 1, [number.to_bytes(4, "big")])
        for number in range(count)
    ]
    async with ctx.precondition("storing the batches"):
        await send_all(ctx.side, frames)
    peer = await ctx.open()
    for frame in (frames[0], frames[count // 2], frames[-1]):
        await peer.ask(frame, ack(frame.batch_id, ELSEWHERE))
    await holds(ctx, topic, joined(frames))


for _count in NUMBERS:
    register(f"num/producers-{_count}", ELSEWHERE,
             f"Of {_count} producers the first is known when its batch comes again.",
             partial(_producers, count=_count), dialects=SPECIFIED, weight=2 + _count // 64,
             thorough=_count == 65, twin_of="num/remembered-9")  # fmt: skip

# -- what seems to come again ----------------------------------------------------------------------

Changed = Callable[[CaseContext, bytes], bytes]


def _byte(place: int) -> Changed:
    def changed(_: CaseContext, payload: bytes) -> bytes:
        found = bytearray(payload)
        found[place] ^= 1
        return bytes(found)

    return changed


CHANGES: tuple[tuple[str, str, int, Changed], ...] = (
    ("first-byte", "in the first byte of a value", 20, _byte(5)),
    ("last-byte", "in its last byte", 20, _byte(-1)),
    ("byte-5000", "in one byte after 5,000", 9000, _byte(5000)),
    ("byte-70000", "in one byte after 70,000", 100_000, _byte(70_000)),
    ("last-of-100000", "in the last of 100,000 bytes", 100_000, _byte(-1)),
    ("type", "in the type of its record", 20, _byte(0)),
    ("longer", "in a record more", 20, lambda _, payload: payload + records([b"more"])),
)  # fmt: skip
"""Name, words, size of the record, and the change."""


async def _other_content(ctx: CaseContext, size: int, changed: Changed) -> None:
    """On the connection of the first one; the log has the first one only."""
    topic, peer = await ctx.topic(), await ctx.open()
    frame = batches(ctx, topic, 1, size)[0]
    async with ctx.precondition("storing the batch"):
        await peer.ask(frame, ack(frame.batch_id))
    payload = changed(ctx, frame.payload)
    more = len(payload) > len(frame.payload)
    other = replace(frame, payload=payload, record_count=frame.record_count + more)
    await peer.ask(other, ctx.error(ErrorCode.INVALID_PAYLOAD, cite="10.4/unique"))
    await holds(ctx, topic, frame.payload)


for _name, _words, _size, _changed in CHANGES:
    register(f"rep/reused-id-{_name}", "10.4/unique",
             f"A batch under a known id that differs {_words} is another one, and refused.",
             partial(_other_content, size=_size, changed=_changed), dialects=SPECIFIED,
             weight=2)  # fmt: skip


async def _other_topics(ctx: CaseContext) -> None:
    """Ids are of a topic: the same batch under the same id is another one in the next topic."""
    topics, peer = [await ctx.topic() for _ in range(3)], await ctx.open()
    frame = batches(ctx, topics[0], 1)[0]
    for topic in topics:
        await peer.ask(replace(frame, topic_id=topic.id), ack(frame.batch_id, "4.2/all-acked"))
    for topic in topics:
        await holds(ctx, topic, frame.payload)


register(
    "rep/same-batch-in-topics",
    "4.2/all-acked",
    "A batch that is sent to three topics under one id is stored in each.",
    _other_topics,
)
