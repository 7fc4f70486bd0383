"""Cases about the order of answers, and about connections that must not feel each other."""

from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.cases.registry import case
from lance_conformance.rustlog.dialect import BINARY
from lance_conformance.rustlog.peer import exactly, kind, refused
from lance_conformance.rustlog.requests import (
    LIST,
    METRICS,
    PING,
    committed,
    describe,
    fetch,
    produce,
)
from lance_conformance.rustlog.wire.frame import framed, write

ORDER = "message-flow/sequential"
APART = "message-flow/independent"
UNKNOWN = b"\x0b"


@case("rl-flow/answers-in-order", ORDER, dialects=BINARY)
async def answers_in_order(ctx: CaseContext) -> None:
    """Requests of one write are answered in their order, quick ones after slow ones too."""
    topic = await ctx.topic()
    asked = (LIST, PING, describe(topic), produce(topic, 0, ctx.values(1)), METRICS, PING)
    ctx.side.send(*asked)
    for request in asked:
        await ctx.side.expect(kind(request.name, ORDER))


@case("rl-flow/sees-what-came-before", ORDER, dialects=BINARY)
async def sees_what_came_before(ctx: CaseContext) -> None:
    """A Fetch after a Produce of the same write brings its records."""
    topic, records = await ctx.topic(), ctx.values(3)
    ctx.side.send(produce(topic, 0, records), fetch(topic, 0, 0))
    await ctx.side.expect(kind("Produce", ORDER))
    await ctx.side.expect(exactly(ORDER, "Fetch", records=tuple(records), next_offset=3))


@case("rl-flow/goes-on-after-an-error", ORDER, dialects=BINARY)
async def goes_on_after_an_error(ctx: CaseContext) -> None:
    """A request that is refused in the middle of others takes none of them with it."""
    peer = await ctx.open()
    peer.send_bytes(write(PING) + framed(UNKNOWN) + write(LIST), "type")
    await peer.expect(kind("Ping", ORDER))
    await peer.expect(refused(2, ORDER))
    await peer.expect(kind("ListTopics", ORDER))


@case("rl-flow/half-a-frame-holds-up-nobody", APART)
async def half_a_frame_holds_up_nobody(ctx: CaseContext) -> None:
    """While one client is in the middle of a frame, others are served."""
    stalled = await ctx.open()
    request, answer = ctx.exchange()
    stalled.send_bytes(write(request)[:-1])
    for _ in range(3):
        await ctx.side.ask(*ctx.exchange())
    await ctx.probe()
    stalled.send_bytes(write(request)[-1:])
    await stalled.expect(answer)


@case("rl-flow/unread-answers-hold-up-nobody", APART, dialects=BINARY)
async def unread_answers_hold_up_nobody(ctx: CaseContext) -> None:
    """A client that asks much and reads late gets everything, and others are served meanwhile."""
    topic, records = await ctx.filled(8, 4096)
    late = await ctx.open()
    late.read_late()
    late.send(*[fetch(topic, 0, 0, 2**20)] * 20)
    await ctx.probe()
    late.read_on()
    for _ in range(20):
        await late.expect(exactly(APART, "Fetch", records=tuple(records), next_offset=8))


@case("rl-flow/frame-errors-stay-where-they-are", APART)
async def frame_errors_stay_where_they_are(ctx: CaseContext) -> None:
    """A connection that is closed for a bad length takes no other with it."""
    bystander = await ctx.probe()
    peer = await ctx.open()
    peer.send_bytes(bytes(4), "length")
    await peer.expect(kind("Error", APART, "binary" if ctx.speech.binary else "json"))
    await bystander.ask(*ctx.exchange())


@case("rl-flow/producers-side-by-side", "produce-request/offsets", dialects=BINARY)
async def producers_side_by_side(ctx: CaseContext) -> None:
    """Two producers at once: each offset is given once, and each finds its records in order."""
    topic = await ctx.topic()
    peers = [await ctx.open() for _ in range(2)]
    batches = [[ctx.values(2) for _ in range(5)] for _ in peers]
    for peer, own in zip(peers, batches, strict=True):
        peer.send(*(produce(topic, 0, batch) for batch in own))
    bases = [
        [
            (await peer.told(kind("Produce", "broker-produce/answer"))).fields["base_offset"]
            for _ in own
        ]
        for peer, own in zip(peers, batches, strict=True)
    ]
    stored = await ctx.stored(topic)
    ctx.check(len(stored) == 20, "data", f"20 records were taken, {len(stored)} are there")
    for own, told in zip(batches, bases, strict=True):
        ctx.check(told == sorted(told), "order", f"offsets of one producer go back: {told}")
        for batch, base in zip(own, told, strict=True):
            found = list(stored[base : base + 2])
            ctx.check(found == batch, "data", f"at offset {base} another batch stands")


@case("rl-flow/a-commit-is-seen-by-all", APART, dialects=BINARY)
async def a_commit_is_seen_by_all(ctx: CaseContext) -> None:
    """What one connection commits is what every other one is told."""
    topic = await ctx.topic()
    await ctx.commit("g", topic, 5)
    peer = await ctx.open()
    await peer.ask(committed("g", topic, 0), exactly(APART, "OffsetFetch", offset=5))
