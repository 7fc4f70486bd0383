"""Time: peers that are idle or slow within what the document allows are served."""

import asyncio
from functools import partial

from lance_conformance.engine.expectations import closed
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.variation.common import batches, holds, read_all, register
from lance_conformance.server.consumers import subscribe_ack
from lance_conformance.server.expect import ack, answer, keepalive, topic_response
from lance_conformance.wire.consumers import subscribe
from lance_conformance.wire.control import KEEPALIVE, set_retention
from lance_conformance.wire.frame import HEADER_SIZE, Command, Frame

MUCH, SLOW = 1 << 19, 16 << 20
"""Bytes of a batch, and of all that a slow subscriber misses."""
SHORT, LONG = 6, 25
"""Seconds: within the 30 s after which a Keepalive is due (LWP section 4.3)."""
WATCHED = 3
"""Seconds in which a target has looked at the limits of its topics."""
AGE, SIZE = 60, 1 << 20
"""Limits of a topic that it does not reach, in seconds and bytes."""
EARLY = ("idle", "silent", "in-header", "quiet-subscriber")
"""Long waits of a usual run, one of each kind: they begin first, and it takes as long."""
SILENCES = 2
"""Times of an answer in which a target that has more to push does so."""
LONGER, BEATS = 40, 8
"""Seconds beyond these, and Keepalives that come within them."""


async def pause(ctx: CaseContext, seconds: float) -> None:
    """Wait on purpose; the self-test waits for a part of it."""
    await asyncio.sleep(seconds * ctx.conditions.pace)


async def _idle(ctx: CaseContext, seconds: float) -> None:
    topic, peer = await ctx.topic(), await ctx.open()
    await peer.ask(KEEPALIVE, keepalive())
    await pause(ctx, seconds)
    frame = batches(ctx, topic, 1)[0]
    await peer.ask(frame, ack(frame.batch_id))
    await holds(ctx, topic, frame.payload)


async def _beats(ctx: CaseContext, seconds: float) -> None:
    topic, peer = await ctx.topic(), await ctx.open()
    for _ in range(BEATS):
        await pause(ctx, seconds / BEATS)
        await peer.ask(KEEPALIVE, keepalive())
    frame = batches(ctx, topic, 1)[0]
    await peer.ask(frame, ack(frame.batch_id))


async def _silent(ctx: CaseContext, seconds: float) -> None:
    peer = await ctx.open()
    await pause(ctx, seconds)
    await peer.ask(KEEPALIVE, keepalive())


async def _stalled(ctx: CaseContext, seconds: float, size: int) -> None:
    topic, peer = await ctx.topic(), await ctx.open()
    frame = batches(ctx, topic, 1, 64)[0]
    data = peer.encode(frame)
    peer.send_bytes(data[:size])
    await pause(ctx, seconds)
    peer.send_bytes(data[size:])
    await peer.expect(ack(frame.batch_id, "3.4/whole"))
    await holds(ctx, topic, frame.payload)


async def _slow_writer(ctx: CaseContext, seconds: float) -> None:
    topic, peer = await ctx.topic(), await ctx.open()
    frame = batches(ctx, topic, 1, 8)[0]
    data = peer.encode(frame)
    clock = asyncio.get_running_loop().time
    began, each = clock(), seconds * ctx.conditions.pace / len(data)
    for place in range(len(data)):
        peer.send_bytes(data[place : place + 1])
        left = began + (place + 1) * each - clock()
        await asyncio.sleep(left)
    await peer.expect(ack(frame.batch_id, "3.4/whole"))


async def _quiet_subscriber(ctx: CaseContext, seconds: float) -> None:
    topic, peer = await ctx.topic(), await ctx.open()
    await peer.ask(subscribe(topic.id, ctx.consumer), subscribe_ack(ctx.consumer, cite="5.12/ack"))
    await pause(ctx, seconds)
    frame = batches(ctx, topic, 1)[0]
    async with ctx.precondition("storing a batch"):
        await (await ctx.open()).ask(frame, ack(frame.batch_id))
    pushed = await peer.frame(answer(Command.FETCH_RESPONSE, "5.12/push-new"))
    ctx.check(ctx.read(peer, pushed).data == frame.payload, "data", "the new batch must be pushed")


async def _slow_subscriber(ctx: CaseContext, size: int) -> None:
    """It stops to read, and reads on when more was stored than both sockets hold.

    A target may end the connection of a reader that is too slow. What it has sent until then are
    the first bytes of the topic, each once. A reader that reads on and has nothing left to read
    is not slow: the target that leaves it waiting and ends it later has forgotten it.
    """
    topic, peer = await ctx.topic(), await ctx.open()
    await peer.ask(subscribe(topic.id, ctx.consumer), subscribe_ack(ctx.consumer, cite="5.12/ack"))
    peer.read_slowly()
    sent = b""
    right: list[bytes] = []
    writer = await ctx.open()
    async with ctx.precondition("storing the batches"):
        while len(right) * MUCH < size:
            frame = batches(ctx, topic, 1, MUCH)[0]
            await writer.ask(frame, ack(frame.batch_id))
            right.append(frame.payload)
    whole = b"".join(right)
    peer.read_on()
    clock = asyncio.get_running_loop().time
    while len(sent) < len(whole):
        heard = clock()
        event = await peer.expect(
            answer(Command.FETCH_RESPONSE, "5.12/push-once"), closed("5.12/push-once")
        )
        if not isinstance(event, Frame):
            left = len(whole) - len(sent)
            words = f"of {len(whole)} bytes {left} were not pushed: silence, and then the end"
            ctx.check(clock() - heard < SILENCES * ctx.conditions.budget, "silence", words)
            return
        got = ctx.read(peer, event)
        right_here = whole[len(sent) : len(sent) + len(got.data)]
        ctx.check(
            got.data == right_here, "data", f"a push after {len(sent)} bytes brings other data"
        )
        sent += got.data


async def _within_limits(ctx: CaseContext) -> None:
    """Its records are neither as old as its limit nor as many bytes, and stay."""
    topic = await ctx.topic()
    async with ctx.precondition("setting limits"):
        await ctx.side.ask(set_retention(topic.id, AGE, SIZE), topic_response("5.10/answer"))
    payload = b""
    for _ in range(2):
        for frame in batches(ctx, topic, 20, SIZE // 200):
            async with ctx.precondition("storing a batch"):
                await ctx.side.ask(frame, ack(frame.batch_id))
            payload += frame.payload
        await pause(ctx, WATCHED)
        data = await read_all(ctx, topic, len(payload), SIZE)
        told = f"{len(payload)} bytes within the limits must be there, not {len(data)}"
        ctx.check(data == payload, "data", told)


register("wait/within-limits", "5.10/keeps",
         f"What is within the limits of a topic is there {WATCHED} s later.", _within_limits,
         seconds=2 * WATCHED, weight=4)  # fmt: skip
register("wait/slow-subscriber", "5.12/push-once",
         "A subscriber that does not read for a while misses nothing.",
         partial(_slow_subscriber, size=SLOW), needs=("push",), dialects=("specified",),
         weight=16)  # fmt: skip
register(f"wait/beats-{LONGER}", "4.3/answer",
         f"Keepalives alone keep a connection for {LONGER} s.",
         partial(_beats, seconds=LONGER), seconds=LONGER, thorough=True,
         twin_of=f"wait/idle-{SHORT}")  # fmt: skip
for _seconds in (SHORT, LONG):
    _late = _seconds == LONG
    for _name, _clause, _title, _question, _needs in (
        ("idle", "4.3/answer", "A connection that was idle for {} s is served.", _idle, ()),
        ("silent", "2.1/connections",
         "A connection may say nothing for {} s before its first frame.", _silent, ()),
        ("in-header", "3.4/whole", "A frame may stall for {} s within its header.",
         partial(_stalled, size=HEADER_SIZE // 2), ()),
        ("before-payload", "3.4/whole", "A frame may stall for {} s before its payload.",
         partial(_stalled, size=HEADER_SIZE), ()),
        ("in-payload", "3.4/whole", "A frame may stall for {} s within its payload.",
         partial(_stalled, size=HEADER_SIZE + 30), ()),
        ("slow-writer", "3.4/whole", "A frame may take {} s, byte by byte.", _slow_writer, ()),
        ("quiet-subscriber", "5.12/push-new",
         "A subscriber of a topic that was quiet for {} s is pushed to.",
         _quiet_subscriber, ("push",)),
    ):  # fmt: skip
        register(f"wait/{_name}-{_seconds}", _clause, _title.format(_seconds),
                 partial(_question, seconds=_seconds), needs=_needs, seconds=_seconds,
                 dialects=("specified",) if _needs else None,
                 thorough=_late and _name not in EARLY)  # fmt: skip
