"""History: what a connection did before changes no rule for what comes next."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from lance_conformance.engine.expectations import closed
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.variation.common import NOT_FOUND, batches, register
from lance_conformance.server.cases.variation.compressed import lz4_frame
from lance_conformance.server.cases.variation.position import FAULTS, Fault
from lance_conformance.server.consumers import commit_ack, subscribe_ack
from lance_conformance.server.expect import ack, keepalive, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ANY_ERROR
from lance_conformance.wire.consumers import commit_offset, subscribe
from lance_conformance.wire.control import KEEPALIVE, get_topic
from lance_conformance.wire.frame import HEADER_SIZE, Flag, Frame, FrameKind

LARGE = 200_000
"""Bytes of a batch that no target reads in one piece."""
Before = Callable[[CaseContext, Peer, Topic], Awaitable[None]]


def compressed(frame: Frame) -> Frame:
    """The same batch with its records in an LZ4 frame."""
    return replace(frame, flags=frame.flags | Flag.COMPRESSED, payload=lz4_frame(frame.payload))


async def _after_a_batch(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    frame = batches(ctx, topic, 1)[0]
    await peer.ask(frame, ack(frame.batch_id))


async def _after_a_large_batch(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    frame = batches(ctx, topic, 1, LARGE)[0]
    await peer.ask(frame, ack(frame.batch_id))


async def _after_a_compressed_batch(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    if "lz4" not in ctx.conditions.missing | ctx.conditions.without:
        frame = compressed(batches(ctx, topic, 1, 40)[0])
        await peer.ask(frame, ack(frame.batch_id))


async def _after_refusals(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    missing = ctx.error(*NOT_FOUND, cite="5.5/not-found", text="not found")
    await peer.ask(get_topic(ctx.unknown_topic), missing)
    lost = replace(batches(ctx, topic, 1)[0], topic_id=ctx.unknown_topic)
    await peer.ask(lost, ctx.error(*NOT_FOUND, cite="6.4/unknown-topic", text="topic"))


async def _after_keepalives(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    del ctx, topic
    for _ in range(3):
        await peer.ask(KEEPALIVE, keepalive())


async def _after_commands(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    await peer.ask(get_topic(topic.id), topic_response("5.5/get"))
    await ctx.fetch(topic, 0, peer=peer)
    if "commits" not in ctx.conditions.missing | ctx.conditions.without:
        await peer.ask(
            commit_offset(topic.id, ctx.consumer, 0), commit_ack(ctx.consumer, cite="5.14/ack")
        )


async def _beside_a_subscription(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    del topic
    if "subscribe" not in ctx.conditions.missing | ctx.conditions.without:
        other = await ctx.topic()
        acked = subscribe_ack(ctx.consumer, cite="5.12/ack")
        await peer.ask(subscribe(other.id, ctx.consumer), acked)


async def _after_a_repetition(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    frame = batches(ctx, topic, 1)[0]
    await peer.ask(frame, ack(frame.batch_id))
    if ctx.specified:
        await peer.ask(frame, ack(frame.batch_id), ctx.error(*ANY_ERROR, cite="10.4/retry"))


HISTORIES: tuple[tuple[str, Before], ...] = (
    ("a batch", _after_a_batch),
    ("a large batch", _after_a_large_batch),
    ("a compressed batch", _after_a_compressed_batch),
    ("refusals", _after_refusals),
    ("Keepalives", _after_keepalives),
    ("commands", _after_commands),
    ("a Subscribe", _beside_a_subscription),
    ("a repeated batch", _after_a_repetition),
)
"""What a connection did before, in words, and how."""


async def _after_all(ctx: CaseContext, fault: Fault) -> None:
    """After each kind of frame, after a right frame in one write, and in two pieces."""
    topic = await ctx.topic()
    for words, before in HISTORIES:
        peer = await ctx.open()
        async with ctx.precondition(words):
            await before(ctx, peer, topic)
        peer.send_faulty(fault.spoil(ctx, batches(ctx, topic, 1)[0]), fault.field)
        await peer.expect(fault.allowed(ctx))
    first, second = batches(ctx, topic, 2)
    wrong = fault.spoil(ctx, second).encode(ctx.dialect.compute)
    peer = await ctx.open()
    peer.send_bytes(peer.encode(first) + wrong)
    event = await peer.expect(ack(first.batch_id, "11.1/before-fault"), fault.allowed(ctx))
    if isinstance(event, Frame) and event.kind is FrameKind.ACK:
        await peer.expect(fault.allowed(ctx))
    for cut in (HEADER_SIZE // 2, HEADER_SIZE, len(wrong) - 1):
        peer = await ctx.open()
        await peer.ask(KEEPALIVE, keepalive())
        peer.send_bytes(wrong[:cut])
        await (await ctx.open()).ask(KEEPALIVE, keepalive())
        peer.send_bytes(wrong[cut:])
        await peer.expect(fault.allowed(ctx))


for _fault in FAULTS:
    register(
        f"pos/{_fault.name}-after-anything", _fault.clause,
        f"A frame {_fault.words}, whatever its connection did before.",
        partial(_after_all, fault=_fault), dialects=_fault.dialects, weight=4,
        twin_of=f"pos/{_fault.name}-at-2",
    )  # fmt: skip

# -- frames that are passed over -------------------------------------------------------------------

PASSED_OVER = (
    ("ack", "an Ack", Flag.ACK, "4.2/from-client"),
    ("backpressure", "a Backpressure", Flag.BACKPRESSURE, "4.4/from-client"),
)
WIDE_BITS = (0, 8, 16, 31, 32, 40, 53, 63)


async def _passed_over(ctx: CaseContext, fault: Fault, flag: Flag) -> None:
    """The same frame without its fault is passed over first."""
    peer = await ctx.open()
    frame = Frame(flags=flag, batch_id=7)
    async with ctx.precondition("the same frame without its fault"):
        peer.send(frame)
        await peer.expect_quiet("4.2/from-client")
    peer.send_faulty(fault.spoil(ctx, frame), fault.field)
    await peer.expect(closed(fault.clause))


for _fault in FAULTS:
    if _fault.name not in {"header-crc", "flag-bit-7"}:
        continue
    for _name, _words, _flag, _ in PASSED_OVER:
        register(
            f"each/{_fault.name}-{_name}", _fault.clause,
            f"{_words[0].upper()}{_words[1:]} {_fault.words}.",
            partial(_passed_over, fault=_fault, flag=_flag), dialects=_fault.dialects,
        )  # fmt: skip


async def _wide(ctx: CaseContext, flag: Flag, cite: str) -> None:
    """With ids of one bit each and of all bits, of a topic that is there, and with counts."""
    topic, peer = await ctx.topic(), await ctx.open()
    ids = [*(1 << bit for bit in WIDE_BITS), 2**64 - 1]
    frames = [Frame(flags=flag, batch_id=batch_id) for batch_id in ids]
    frames += [Frame(flags=flag, batch_id=1, topic_id=topic.id),
               Frame(flags=flag, batch_id=1, record_count=2**32 - 1),
               Frame(flags=flag, batch_id=1, timestamp_ns=2**64 - 1)]  # fmt: skip
    for frame in frames:
        peer.send(frame)
        await peer.expect_quiet(cite)
    batch = batches(ctx, topic, 1)[0]
    await peer.ask(batch, ack(batch.batch_id))


for _name, _words, _flag, _clause in PASSED_OVER:
    register(
        f"each/wide-{_name}", _clause,
        f"{_words[0].upper()}{_words[1:]} of a client is passed over, whatever its fields.",
        partial(_wide, flag=_flag, cite=_clause),
    )  # fmt: skip
