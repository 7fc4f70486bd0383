"""Cases about frames, and about TCP segments, which have nothing to do with each other."""

import asyncio
from collections.abc import Sequence

from lance_conformance.engine.expectations import Allowed, closed
from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.cases.registry import case
from lance_conformance.rustlog.dialect import BINARY
from lance_conformance.rustlog.peer import exactly, refused, refused_in_json
from lance_conformance.rustlog.requests import produce
from lance_conformance.rustlog.wire.frame import LENGTH, MAX_FRAME, write

STREAM = "frame-structure/stream"
FRAME_ERROR = 1


def _error(ctx: CaseContext, cite: str) -> Allowed:
    return refused(FRAME_ERROR, cite) if ctx.speech.binary else refused_in_json(cite)


async def _closes(ctx: CaseContext, length: int, cite: str) -> None:
    """A frame of this length is answered with an error and ends the connection."""
    stimulus = length.to_bytes(LENGTH, "big")
    peer = await ctx.hurt(stimulus, "length", _error(ctx, cite), stays=False)
    await peer.expect(closed(cite))


@case("rl-frame/empty-closes", "broker-frames/empty")
async def empty_closes(ctx: CaseContext) -> None:
    """A frame without a payload is answered with error 1, and the connection is closed."""
    await _closes(ctx, 0, "broker-frames/empty")


@case("rl-frame/too-large-closes", "broker-frames/too-large")
async def too_large_closes(ctx: CaseContext) -> None:
    """A length one above the limit is refused, not awaited, and the connection is closed."""
    await _closes(ctx, MAX_FRAME + 1, "broker-frames/too-large")


@case("rl-frame/4-gib-closes", "broker-frames/too-large", quick=False)
async def announced_4_gib_closes(ctx: CaseContext) -> None:
    """A length of 4 GiB is refused: nobody reserves memory for it."""
    await _closes(ctx, 2**32 - 1, "broker-frames/too-large")


@case("rl-frame/largest", "frame-structure/limit", dialects=BINARY, quick=False)
async def largest(ctx: CaseContext) -> None:
    """A frame of exactly 10,485,760 bytes is taken."""
    topic = await ctx.topic()
    empty = write(produce(topic, 0, [b""]))
    record = bytes(MAX_FRAME + LENGTH - len(empty))
    await ctx.side.ask(
        produce(topic, 0, [record]),
        exactly("frame-structure/limit", "Produce", base_offset=0, record_count=1),
    )


async def _in_pieces(ctx: CaseContext, cuts: Sequence[int]) -> None:
    """Send a question in pieces; between them the target answers another connection."""
    peer = await ctx.open()
    request, answer = ctx.exchange()
    data, start = write(request), 0
    for cut in cuts:
        peer.send_bytes(data[start:cut])
        start = cut
        await ctx.side.ask(*ctx.exchange())
    peer.send_bytes(data[start:])
    await peer.expect(answer)


@case("rl-frame/byte-by-byte", STREAM)
async def byte_by_byte(ctx: CaseContext) -> None:
    """A request that arrives one byte at a time is answered."""
    peer = await ctx.open()
    request, answer = ctx.exchange()
    for byte in write(request):
        peer.send_bytes(bytes([byte]))
        await asyncio.sleep(0)  # one turn of the loop, so that each byte is a write of its own
    await peer.expect(answer)


@case("rl-frame/cut-in-length", STREAM)
async def cut_in_length(ctx: CaseContext) -> None:
    """A length that arrives in pieces is put together again."""
    await _in_pieces(ctx, [1, 3])


@case("rl-frame/cut-behind-length", STREAM)
async def cut_behind_length(ctx: CaseContext) -> None:
    """A payload that arrives after its length belongs to it."""
    await _in_pieces(ctx, [LENGTH])


@case("rl-frame/coalesced", STREAM)
async def coalesced(ctx: CaseContext) -> None:
    """Three frames in one segment are three requests."""
    peer = await ctx.open()
    exchanges = [ctx.exchange() for _ in range(3)]
    peer.send(*(request for request, _ in exchanges))
    for _, answer in exchanges:
        await peer.expect(answer)


@case("rl-frame/one-and-a-half", STREAM)
async def one_and_a_half(ctx: CaseContext) -> None:
    """The beginning of a frame after a whole one is kept until the rest arrives."""
    peer = await ctx.open()
    (first, one), (second, other) = ctx.exchange(), ctx.exchange()
    rest = write(second)
    peer.send_bytes(write(first) + rest[:2])
    await peer.expect(one)
    peer.send_bytes(rest[2:])
    await peer.expect(other)


@case("rl-frame/cut-off-is-nothing", "frame-structure/whole", dialects=BINARY)
async def cut_off_is_nothing(ctx: CaseContext) -> None:
    """A Produce that its connection ends in the middle of is not answered and stores nothing."""
    topic = await ctx.topic()
    peer = await ctx.open()
    peer.send_bytes(write(produce(topic, 0, ctx.values(2)))[:-1], "payload")
    peer.finish()
    await peer.expect(closed("frame-structure/whole"))
    ctx.check(await ctx.stored(topic) == (), "data", "nothing of a frame without its end is stored")
