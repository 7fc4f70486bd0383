"""Cases about both forms on one port, told apart by the first byte of a payload (RL-01)."""

from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.cases.registry import case
from lance_conformance.rustlog.dialect import BOTH
from lance_conformance.rustlog.peer import exactly, kind, refused, refused_in_json
from lance_conformance.rustlog.requests import (
    METRICS,
    PING,
    committed,
    fetch,
    json_commit,
    json_committed,
    json_fetch,
    json_produce,
    produce,
)
from lance_conformance.rustlog.wire.frame import framed, write

KIND = "forms/first-byte"
SHARED = "forms/one-log"


@case("rl-tell/taking-turns", KIND, dialects=BOTH)
async def taking_turns(ctx: CaseContext) -> None:
    """On one connection each request is answered in its own form, in order."""
    name = ctx.name()
    ctx.side.send(PING, json_committed(name, 0, "g"), PING, json_fetch(name, 0, 0), PING)
    for right in (
        kind("Ping", KIND),
        exactly(KIND, "OffsetFetch", "json", offset=None),
        kind("Ping", KIND),
        refused_in_json(KIND),
        kind("Ping", KIND),
    ):
        await ctx.side.expect(right)


async def _opens(ctx: CaseContext, space: bytes) -> None:
    body = write(json_committed(ctx.name(), 0, "g"))[4:]
    ctx.side.send_payload(space + body)
    await ctx.side.expect(exactly(KIND, "OffsetFetch", "json", offset=None))


@case("rl-tell/space-opens-json", KIND, dialects=BOTH)
async def space_opens_json(ctx: CaseContext) -> None:
    """A space or the end of a line in front of the brace is JSON, too."""
    for space in (b" ", b"\r\n", b"\n"):
        await _opens(ctx, space)


@case("rl-tell/tab", "forms/tab", dialects=BOTH)
async def tab(ctx: CaseContext) -> None:
    """A tab opens JSON where something follows; alone it is the binary request for metrics."""
    await _opens(ctx, b"\t")
    await ctx.side.ask(METRICS, kind("MetricsFetch", "forms/tab"))


@case("rl-tell/errors-in-kind", KIND, dialects=BOTH)
async def errors_in_kind(ctx: CaseContext) -> None:
    """A broken request is refused in the form that its first byte opens."""
    ctx.side.send_bytes(framed(b"{nonsense") + framed(b"\x0b") + framed(b"{}"), "payload")
    await ctx.side.expect(refused_in_json(KIND))
    await ctx.side.expect(refused(2, KIND))
    await ctx.side.expect(refused_in_json(KIND))


@case("rl-tell/records-are-shared", SHARED, dialects=BOTH)
async def records_are_shared(ctx: CaseContext) -> None:
    """What one form stores the other one reads, and both count the same offsets."""
    topic, records = await ctx.topic(), ctx.values(2)
    await ctx.side.ask(produce(topic, 0, records[:1]), exactly(SHARED, "Produce", base_offset=0))
    await ctx.side.ask(
        json_produce(topic, 0, records[1:]), exactly(SHARED, "Produce", "json", offsets=(1,))
    )
    await ctx.side.ask(
        fetch(topic, 0, 0), exactly(SHARED, "Fetch", records=tuple(records), next_offset=2)
    )
    await ctx.side.ask(
        json_fetch(topic, 0, 0),
        exactly(SHARED, "Fetch", "json", records=tuple(enumerate(records)), next_offset=2),
    )


@case("rl-tell/commits-are-shared", SHARED, dialects=BOTH)
async def commits_are_shared(ctx: CaseContext) -> None:
    """What a group commits in one form counts in the other."""
    topic = await ctx.topic()
    await ctx.side.ask(json_commit(topic, 0, "g", 3), kind("OffsetCommit", SHARED, "json"))
    await ctx.side.ask(committed("g", topic, 0), exactly(SHARED, "OffsetFetch", offset=3))
    await ctx.commit("g", topic, 1)
    await ctx.side.ask(
        json_committed(topic, 0, "g"), exactly(SHARED, "OffsetFetch", "json", offset=1)
    )


@case("rl-tell/strict-binary", "forms/strict-binary", dialects=("binary",))
async def strict_binary(ctx: CaseContext) -> None:
    """A target of the binary form alone takes a brace for a type, and refuses it with code 2."""
    ctx.side.send_payload(write(json_committed(ctx.name(), 0, "g"))[4:], "type")
    await ctx.side.expect(refused(2, "forms/strict-binary"))
    await ctx.side.ask(*ctx.exchange())


@case("rl-tell/strict-json", "forms/strict-json", dialects=("json",))
async def strict_json(ctx: CaseContext) -> None:
    """A target of JSON alone refuses a binary request, in JSON, and goes on."""
    ctx.side.send_payload(b"\xff", "type")
    await ctx.side.expect(refused_in_json("forms/strict-json"))
    await ctx.side.ask(*ctx.exchange())
