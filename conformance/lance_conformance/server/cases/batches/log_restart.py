"""Cases about what survives a restart; asked where the kit is told how to restart the target."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from lance_conformance.engine.registry import CaseFunction
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import BOTH, SPECIFIED, case
from lance_conformance.server.consumers import commit_ack, subscribe_ack
from lance_conformance.server.expect import ack, topic_response
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.consumers import commit_offset, read_consumer_at, subscribe
from lance_conformance.wire.control import create_topic, delete_topic, get_topic, ingest, read_json
from lance_conformance.wire.tlv import boundaries, record

NONCE: Final = 7 << 40
"""From here on a batch id is known on every connection (AMB-25)."""
STEPS: Final = 100
TYPES: Final = (0x00, 0x02, 0x05, 0x0F, 0x10, 0x12, 0x7F, 0x80, 0xFE, 0xFF)
NULL: Final = 0xFF


def restart_case(
    case_id: str, clause: str, dialects: tuple[str, ...] = BOTH
) -> Callable[[CaseFunction], CaseFunction]:
    """Register a case that restarts the target."""
    return case(case_id, clause, dialects=dialects, needs=("restart",), quick=False)


async def _walked(ctx: CaseContext, topic: Topic) -> bytes:
    """All data of a topic; where a log goes on after a gap, the gap is passed over."""
    data, offset = b"", 0
    for _ in range(STEPS):
        got = await ctx.fetch(topic, offset)
        if not got.data and got.next_offset <= offset:
            return data
        data, offset = data + got.data, got.next_offset
    raise ctx.side.failure("flood", f"the log does not end within {STEPS} fetches")


@restart_case("log/restart-keeps-batches", "6.1/restart-data")
async def keeps_batches(ctx: CaseContext) -> None:
    """Everything that was acknowledged is there after a restart."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(3)) + await ctx.store(topic, ctx.values(2))
    await ctx.restart()
    data = await _walked(ctx, topic)
    ctx.check(data == payload, "data", f"{len(payload)} bytes were acknowledged, {len(data)} left")


@restart_case("log/restart-keeps-types", "6.1/restart-data")
async def keeps_types(ctx: CaseContext) -> None:
    """Records of every type that was acknowledged are there after a restart.

    The published server cuts a log at a record of type 0xFF, as it reads the file again.
    """
    topic, payload = await ctx.topic(), b""
    refused = ctx.error(*ANY_ERROR, cite="8.2/types")
    for record_type in (*TYPES, 0x01):
        right = ingest(topic.id, ctx.batch(), ctx.values(1))
        value = record(b"" if record_type == NULL else ctx.values(1)[0], record_type)
        frame = replace(right, payload=value)
        reply = await ctx.side.ask(frame, ack(frame.batch_id), refused)
        payload += value if reply.batch_id == frame.batch_id else b""
    await ctx.restart()
    data = await _walked(ctx, topic)
    ctx.check(data == payload, "data", f"{len(payload)} bytes were acknowledged, {len(data)} left")


@restart_case("log/restart-keeps-topics", "6.1/restart")
async def keeps_topics(ctx: CaseContext) -> None:
    """A topic has the same id, name and creation time after a restart."""
    topic = await ctx.topic()
    keys = "id", "name", "created_at"
    told = []
    for restart in (False, True):
        if restart:
            await ctx.restart()
        frame = await ctx.side.ask(get_topic(topic.id), topic_response("6.1/restart"))
        body = read_json(frame.payload) or {}
        told.append([body.get(key) for key in keys])
    ctx.check(told[0] == told[1], "field:id", f"the topic was {told[0]} and is {told[1]}")


@restart_case("log/restart-keeps-offsets", "5.8/restart")
async def keeps_offsets(ctx: CaseContext) -> None:
    """An offset names the same byte after a restart."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(4))
    start = boundaries(payload)[2]
    await ctx.restart()
    got = await ctx.fetch(topic, start)
    ctx.check(got.data == payload[start:], "data", f"other data from offset {start}")


@restart_case("log/restart-goes-on", "6.1/restart-goes-on")
async def goes_on(ctx: CaseContext) -> None:
    """A topic takes records after a restart, and keeps them after the old ones."""
    topic = await ctx.topic()
    first = await ctx.store(topic, ctx.values(2))
    await ctx.restart()
    frame = ingest(topic.id, ctx.batch(), ctx.values(2))
    await ctx.side.ask(frame, ack(frame.batch_id, "6.1/restart-goes-on"))
    data = await _walked(ctx, topic)
    ctx.check(data == first + frame.payload, "data", "the new records must follow the old ones")


@restart_case("log/restart-keeps-deletions", "5.6/restart")
async def keeps_deletions(ctx: CaseContext) -> None:
    """A topic that was deleted does not come back with a restart."""
    topic = await ctx.disposable_topic()
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
    await ctx.restart()
    codes = ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND
    await ctx.side.ask(get_topic(topic.id), ctx.error(*codes, cite="5.6/restart", text="not found"))


@restart_case("log/restart-keeps-commits", "5.14/restart", SPECIFIED)
async def keeps_commits(ctx: CaseContext) -> None:
    """What a consumer committed counts after a restart."""
    topic = await ctx.topic()
    end = len(await ctx.store(topic, ctx.values(2)))
    async with ctx.precondition("committing"):
        right = commit_ack(ctx.consumer, cite="5.14/ack")
        await ctx.side.ask(commit_offset(topic.id, ctx.consumer, end), right)
    await ctx.restart()
    peer = await ctx.open()
    acked = subscribe_ack(ctx.consumer, cite="5.12/ack")
    said = read_consumer_at((await peer.ask(subscribe(topic.id, ctx.consumer), acked)).payload)
    where = said.offset if said else None
    ctx.check(where == end, "field:offset", f"the consumer must go on at {end}, not at {where}")


@case(
    "log/restart-keeps-latest-commit", "5.14/restart", dialects=SPECIFIED, needs=("restart",),
    quick=False, twin_of="log/restart-keeps-commits",
)  # fmt: skip
async def keeps_latest_commit(ctx: CaseContext) -> None:
    """After a restart the latest of several commits counts, be it the largest or not."""
    topic = await ctx.topic()
    size = len(await ctx.store(topic, ctx.values(3))) // 3
    async with ctx.precondition("committing"):
        for place in (1, 3, 2):
            right = commit_ack(ctx.consumer, cite="5.14/ack")
            await ctx.side.ask(commit_offset(topic.id, ctx.consumer, place * size), right)
    await ctx.restart()
    peer = await ctx.open()
    right = subscribe_ack(ctx.consumer, 2 * size, cite="5.14/restart")
    await peer.ask(subscribe(topic.id, ctx.consumer), right)


@restart_case("log/restart-keeps-ids", "6.1/restart-ids", SPECIFIED)
async def keeps_ids(ctx: CaseContext) -> None:
    """Ids of deleted topics are not given away again, not even after a restart."""
    topics = [await ctx.disposable_topic() for _ in range(3)]
    for topic in topics:
        async with ctx.precondition("deleting a topic"):
            await ctx.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
    await ctx.restart()
    again = {topic.id for topic in topics} & {(await ctx.topic()).id for _ in range(4)}
    ctx.check(not again, "field:id", f"ids were given away twice: {sorted(again)}")


@restart_case("log/restart-keeps-epochs", "6.1/epoch", SPECIFIED)
async def keeps_epochs(ctx: CaseContext) -> None:
    """A name that is created again after a restart has a higher topic_epoch than before."""
    name, epochs = ctx.name(), []
    for _ in range(2):
        frame = await ctx.side.ask(create_topic(name), topic_response("6.1/epoch"))
        body = read_json(frame.payload) or {}
        epochs.append(body.get("topic_epoch"))
        async with ctx.precondition("deleting the topic"):
            await ctx.side.ask(delete_topic(int(body.get("id") or 0)), topic_response("5.6/delete"))
        await ctx.restart()
    before, now = epochs
    rises = isinstance(before, int) and isinstance(now, int) and now > before
    ctx.check(rises, "field:topic_epoch", f"topic_epoch must rise, from {before!r} to {now!r}")


@restart_case("log/restart-knows-retries", "10.4/restart", SPECIFIED)
async def knows_retries(ctx: CaseContext) -> None:
    """A batch that comes again after a restart, unchanged, is not stored again."""
    topic = await ctx.topic()
    frame = ingest(topic.id, NONCE + ctx.batch(), ctx.values(2))
    async with ctx.precondition("storing records"):
        await ctx.side.ask(frame, ack(frame.batch_id))
    await ctx.restart()
    await ctx.side.ask(frame, ack(frame.batch_id, "10.4/restart"))
    data = await _walked(ctx, topic)
    ctx.check(data == frame.payload, "data", f"{len(frame.payload)} bytes, {len(data)} are stored")
