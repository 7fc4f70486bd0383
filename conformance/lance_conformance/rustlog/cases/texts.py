"""Cases about what errors say: people read it, and programs compare codes."""

from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.cases.registry import case
from lance_conformance.rustlog.dialect import BINARY
from lance_conformance.rustlog.peer import refused_saying
from lance_conformance.rustlog.requests import (
    create,
    describe,
    describe_partition,
    fetch,
    produce,
)
from lance_conformance.rustlog.wire import binary
from lance_conformance.rustlog.wire.frame import LENGTH, MAX_FRAME
from lance_conformance.rustlog.wire.message import Message

FRAME = "broker-texts/frame"
DECODE = "broker-texts/decode"
NAMED = "broker-texts/names"


async def _says(ctx: CaseContext, request: Message, text: str) -> None:
    await ctx.side.ask(request, refused_saying(text, NAMED))


async def _frame_says(ctx: CaseContext, length: int, text: str) -> None:
    said = refused_saying(text, FRAME)
    await ctx.hurt(length.to_bytes(LENGTH, "big"), "length", said, stays=False)


@case("rl-text/empty-frame", FRAME, dialects=BINARY)
async def empty_frame(ctx: CaseContext) -> None:
    """An empty frame is called so."""
    await _frame_says(ctx, 0, "Frame error: invalid protocol: zero-length frame")


@case("rl-text/too-large", FRAME, dialects=BINARY)
async def too_large(ctx: CaseContext) -> None:
    """A frame that is too large is told its size and the limit."""
    size = MAX_FRAME + 1
    await _frame_says(ctx, size, f"Frame error: frame too large: {size} bytes (max: {MAX_FRAME})")


@case("rl-text/unknown-type", DECODE, dialects=BINARY)
async def unknown_type(ctx: CaseContext) -> None:
    """An unknown type is named in decimal."""
    ctx.side.send_payload(b"\x0b\0", "type")
    await ctx.side.expect(refused_saying("Decode error: unknown request type: 11", DECODE))


CUTS = {
    2: "missing topic length",
    4: "truncated topic",
    8: "missing partition",
    12: "missing record count",
    16: "truncated record length",
    21: "truncated record",
}
"""What is said of a Produce to the topic ``abc`` of which so many bytes came."""


@case("rl-text/cut-short", DECODE, dialects=BINARY)
async def cut_short(ctx: CaseContext) -> None:
    """A request that is cut short is told the first field that is not there, or not all of it."""
    whole = binary.write(produce("abc", 0, [b"record"]))
    for size, words in CUTS.items():
        ctx.side.send_payload(whole[:size], "payload")
        said = f"Decode error: decode error: {words}"
        await ctx.side.expect(refused_saying(said, DECODE))


FETCH_CUTS = {
    2: "missing group_id length",
    3: "missing topic length",
    8: "missing partition",
    12: "missing offset",
    20: "missing max_bytes",
}


@case("rl-text/fetch-cut-short", DECODE, dialects=BINARY, quick=False)
async def fetch_cut_short(ctx: CaseContext) -> None:
    """So is a Fetch, whose fields have names of their own."""
    whole = binary.write(fetch("abc", 0, 0))
    for size, words in FETCH_CUTS.items():
        ctx.side.send_payload(whole[:size], "payload")
        said = f"Decode error: decode error: {words}"
        await ctx.side.expect(refused_saying(said, DECODE))


@case("rl-text/not-utf8", DECODE, dialects=BINARY)
async def not_utf8(ctx: CaseContext) -> None:
    """A name that is not UTF-8 is told which one it is."""
    ctx.side.send(create(b"\xff\xfe", 1))
    said = "Decode error: decode error: invalid utf8 topic: "
    await ctx.side.expect(refused_saying(said, DECODE, begins=True))


@case("rl-text/missing", NAMED, dialects=BINARY)
async def missing(ctx: CaseContext) -> None:
    """A partition that is not there is named with its topic, by Produce and by Fetch."""
    topic = await ctx.topic()
    text = f"Topic or partition does not exist: topic={topic}, partition=2"
    await _says(ctx, produce(topic, 2, [b"record"]), text)
    await _says(ctx, fetch(topic, 2, 0), text)


@case("rl-text/exists", NAMED, dialects=BINARY)
async def exists(ctx: CaseContext) -> None:
    """A topic that exists is named."""
    topic = await ctx.topic()
    await _says(ctx, create(topic, 1), f"Topic '{topic}' already exists")


@case("rl-text/no-partitions", NAMED, dialects=BINARY)
async def no_partitions(ctx: CaseContext) -> None:
    """A count of partitions that no topic can have is told."""
    await _says(ctx, create(ctx.name(), 0), "Invalid partition count: 0")


@case("rl-text/describe-missing", NAMED, dialects=BINARY)
async def describe_missing(ctx: CaseContext) -> None:
    """A topic that cannot be described is named."""
    name = ctx.name()
    await _says(ctx, describe(name), f"DescribeTopic failed: Topic '{name}' not found")


@case("rl-text/partition-missing", NAMED, dialects=BINARY)
async def partition_missing(ctx: CaseContext) -> None:
    """A partition that cannot be described is named with its topic."""
    topic = await ctx.topic()
    text = f"DescribePartition failed: Partition 2 not found in topic '{topic}'"
    await _says(ctx, describe_partition(topic, 2), text)
