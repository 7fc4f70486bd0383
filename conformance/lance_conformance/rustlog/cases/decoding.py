"""Cases about requests that cannot be read: refused with code 2, and the connection goes on."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from lance_conformance.engine.expectations import Allowed
from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.cases.registry import case
from lance_conformance.rustlog.dialect import BINARY
from lance_conformance.rustlog.peer import exactly, kind, refused
from lance_conformance.rustlog.requests import (
    PING,
    commit,
    committed,
    create,
    describe,
    describe_partition,
    fetch,
    produce,
)
from lance_conformance.rustlog.wire import binary
from lance_conformance.rustlog.wire.frame import framed
from lance_conformance.rustlog.wire.message import Message

DECODE_ERROR = 2
CUT = "broker-decoding/cut-short"
TYPE = "broker-decoding/type"
Make = Callable[[str], Message]


async def _cut_everywhere(ctx: CaseContext, make: Make, topic: str) -> None:
    """Every beginning of a request is refused, and the connection serves the next one."""
    whole = binary.write(make(topic))
    peer = await ctx.open()
    for size in range(1, len(whole)):
        peer.send_payload(whole[:size], "payload")
    peer.send(PING)
    for size in range(1, len(whole)):
        await peer.expect(_refused_at(size, len(whole)))
    await peer.expect(kind("Ping", CUT))
    await ctx.still_alive()


def _refused_at(size: int, whole: int) -> Allowed:
    right = refused(DECODE_ERROR, CUT)
    return replace(right, what=f"{right.what} to the first {size} of {whole} bytes")


def _cut(slug: str, make: Make) -> Callable[[CaseContext], Awaitable[None]]:
    name = make("").name

    async def exchange(ctx: CaseContext) -> None:
        topic = await ctx.topic()
        async with ctx.precondition("the whole request"):
            await ctx.side.ask(make(topic), kind(name, CUT))
        await _cut_everywhere(ctx, make, topic)

    exchange.__doc__ = f"{name} that is cut short, at any byte, is refused with code 2."
    quick = slug == "fetch"
    return case(f"rl-decode/{slug}-cut-short", CUT, dialects=BINARY, quick=quick)(exchange)


CUTS = [
    _cut("fetch", lambda topic: fetch(topic, 0, 0)),
    _cut("commit", lambda topic: commit("g", topic, 0, 1)),
    _cut("offset", lambda topic: committed("g", topic, 0)),
    _cut("describe", describe),
    _cut("partition", lambda topic: describe_partition(topic, 0)),
]


@case("rl-decode/produce-cut-short", CUT, dialects=BINARY)
async def produce_cut_short(ctx: CaseContext) -> None:
    """Produce that is cut short, at any byte, is refused with code 2 and stores nothing."""
    topic, records = await ctx.topic(), [b"one", b"", b"three"]
    await _cut_everywhere(ctx, lambda name: produce(name, 0, records), topic)
    ctx.check(await ctx.stored(topic) == (), "data", "nothing of a refused request is stored")


@case("rl-decode/create-cut-short", CUT, dialects=BINARY)
async def create_cut_short(ctx: CaseContext) -> None:
    """CreateTopic that is cut short, at any byte, is refused with code 2 and creates nothing."""
    name = ctx.name()
    await _cut_everywhere(ctx, lambda topic: create(topic, 1), name)
    listed = await ctx.side.ask(*ctx.exchange())
    names = [each for each, _ in listed.fields["topics"]]
    ctx.check(
        not any(name.startswith(each) for each in names), "data", f"a topic was made: {names}"
    )


async def _refused(ctx: CaseContext, right: Message, wrong: bytes, fault: str, cite: str) -> None:
    await ctx.spoil((right, kind(right.name, cite)), wrong, fault, refused(DECODE_ERROR, cite))


@case("rl-decode/type-0", TYPE, dialects=BINARY)
async def type_0(ctx: CaseContext) -> None:
    """A request of type 0 is refused with code 2, and the connection goes on."""
    await _refused(ctx, PING, b"\0", "type", TYPE)


@case("rl-decode/type-not-assigned", TYPE, dialects=BINARY)
async def type_not_assigned(ctx: CaseContext) -> None:
    """A request of type 11, which nobody uses, is refused with code 2."""
    await _refused(ctx, PING, b"\x0b", "type", TYPE)


@case("rl-decode/type-of-errors", TYPE, dialects=BINARY, quick=False)
async def type_of_errors(ctx: CaseContext) -> None:
    """An error that a client sends is not a request, and is refused with code 2."""
    await _refused(ctx, PING, b"\xfe\0\1\0\0", "type", TYPE)


async def _bad_produce(
    ctx: CaseContext, wrong: Callable[[bytes], bytes], fault: str, cite: str
) -> None:
    """A Produce with one fault is refused, promptly, and stores nothing."""
    topic = await ctx.topic()
    right = binary.write(produce(topic, 1, [b"record"]))
    await ctx.store(topic, [b"record"])
    await ctx.hurt(framed(wrong(right)), fault, refused(DECODE_ERROR, cite))
    ctx.check(await ctx.stored(topic, 1) == (), "data", "nothing of a refused request is stored")


@case("rl-decode/count-beyond-frame", "broker-decoding/bounds", dialects=BINARY)
async def count_beyond_frame(ctx: CaseContext) -> None:
    """Four billion records in a short frame are refused, before anything is made for them."""
    await _bad_produce(
        ctx, lambda data: data[:-14] + b"\xff" * 4, "records", "broker-decoding/bounds"
    )


@case("rl-decode/count-one-too-many", "broker-decoding/bounds", dialects=BINARY)
async def count_one_too_many(ctx: CaseContext) -> None:
    """A count of one record more than there are is refused, with those that are there."""
    await _bad_produce(
        ctx, lambda data: data[:-14] + b"\0\0\0\2" + data[-10:], "records", "broker-decoding/bounds"
    )


@case("rl-decode/record-beyond-frame", "broker-decoding/bounds", dialects=BINARY)
async def record_beyond_frame(ctx: CaseContext) -> None:
    """A record that is longer than the rest of its frame is refused."""
    await _bad_produce(
        ctx, lambda data: data[:-10] + b"\0\0\0\7" + data[-6:], "records", "broker-decoding/bounds"
    )


@case("rl-decode/topic-beyond-frame", "broker-decoding/bounds", dialects=BINARY, quick=False)
async def topic_beyond_frame(ctx: CaseContext) -> None:
    """A topic name that is longer than its frame is refused."""
    await _bad_produce(
        ctx, lambda data: data[:1] + b"\xff\xff" + data[3:], "topic", "broker-decoding/bounds"
    )


@case("rl-decode/topic-not-utf8", "broker-decoding/utf-8", dialects=BINARY)
async def topic_not_utf8(ctx: CaseContext) -> None:
    """A topic name that is not UTF-8 is refused with code 2, not made readable."""
    wrong = binary.write(create(b"\xff\xfe", 1))
    name = ctx.name()
    right = create(name, 1)
    await _refused(ctx, right, wrong, "topic", "broker-decoding/utf-8")


@case("rl-decode/group-not-utf8", "broker-decoding/utf-8", dialects=BINARY, quick=False)
async def group_not_utf8(ctx: CaseContext) -> None:
    """A group's name that is not UTF-8 is refused with code 2."""
    topic = await ctx.topic()
    right = binary.write(committed("gg", topic, 0))
    wrong = right[:3] + b"\xc3\x28" + right[5:]
    await _refused(ctx, committed("gg", topic, 0), wrong, "group", "broker-decoding/utf-8")


@case("rl-decode/bytes-behind-are-ignored", "broker-decoding/behind", dialects=BINARY)
async def bytes_behind_are_ignored(ctx: CaseContext) -> None:
    """Bytes after the last field of a request change nothing."""
    topic = await ctx.topic()
    peer = await ctx.open()
    peer.send_payload(binary.write(produce(topic, 0, [b"one"])) + b"more", "behind")
    cite = "broker-decoding/behind"
    await peer.expect(exactly(cite, "Produce", base_offset=0, record_count=1))
    ctx.check(await ctx.stored(topic) == (b"one",), "data", "only what was counted is stored")


@case("rl-decode/bytes-behind-ping", "broker-decoding/behind", dialects=BINARY, quick=False)
async def bytes_behind_ping(ctx: CaseContext) -> None:
    """A Ping with bytes after it is answered by one without."""
    peer = await ctx.open()
    peer.send_payload(b"\xff\0\1", "behind")
    await peer.expect(kind("Ping", "broker-decoding/behind"))
