"""Cases about CommitOffset (LWP section 5.14, AMB-36)."""

from dataclasses import replace
from functools import partial

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.cases.variation.common import register
from lance_conformance.server.consumers import commit_ack, subscribe_ack, unsubscribe_ack
from lance_conformance.server.expect import answer, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import (
    commit_offset,
    read_consumer_at,
    subscribe,
    unsubscribe,
)
from lance_conformance.wire.control import create_topic, delete_topic, read_json
from lance_conformance.wire.frame import Command

LARGEST = 2**64 - 1


async def _commit(
    ctx: CaseContext,
    topic: Topic,
    offset: int,
    consumer: int | None = None,
    peer: Peer | None = None,
) -> None:
    consumer = ctx.consumer if consumer is None else consumer
    async with ctx.precondition("committing"):
        asked = peer or ctx.side
        right = commit_ack(consumer, cite="5.14/ack")
        await asked.ask(commit_offset(topic.id, consumer, offset), right)


async def _resumed(ctx: CaseContext, topic: Topic, consumer: int | None = None) -> int:
    """Where a consumer begins that subscribes at 0, on a connection of its own."""
    consumer = ctx.consumer if consumer is None else consumer
    peer = await ctx.open()
    right = subscribe_ack(consumer, cite="5.12/ack")
    frame = await peer.ask(subscribe(topic.id, consumer), right)
    said = read_consumer_at(frame.payload)
    peer.drop()
    return said.offset if said else -1


async def _must_resume(
    ctx: CaseContext, topic: Topic, right: int, consumer: int | None = None
) -> None:
    where = await _resumed(ctx, topic, consumer)
    ctx.check(where == right, "field:offset", f"the consumer must go on at {right}, not at {where}")


async def _filled(ctx: CaseContext) -> tuple[Topic, int]:
    """A topic, and its end."""
    topic = await ctx.topic()
    return topic, len(await ctx.store(topic, ctx.values(4)))


@case("com/ack", "5.14/ack")
async def acknowledged(ctx: CaseContext) -> None:
    """CommitOffset is answered with a CommitAck that names the consumer."""
    topic, end = await _filled(ctx)
    await ctx.side.ask(
        commit_offset(topic.id, ctx.consumer, end), commit_ack(ctx.consumer, cite="5.14/ack")
    )


@case("com/committed-offset", "5.14/committed-offset")
async def committed_offset(ctx: CaseContext) -> None:
    """A CommitAck names the offset that was committed."""
    topic, end = await _filled(ctx)
    right = commit_ack(ctx.consumer, end, cite="5.14/committed-offset")
    await ctx.side.ask(commit_offset(topic.id, ctx.consumer, end), right)


@case("com/ack-16-bytes", "5.14/ack-layout")
async def ack_16_bytes(ctx: CaseContext) -> None:
    """A CommitAck has 16 bytes: the consumer's id and an offset, and nothing after them."""
    topic, end = await _filled(ctx)
    frame = await ctx.side.ask(
        commit_offset(topic.id, ctx.consumer, end), answer(Command.COMMIT_ACK, "5.14/ack-layout")
    )
    size = len(frame.payload)
    ctx.check(size == 16, "body:size", f"a CommitAck must have 16 bytes, it has {size}")


@case("com/ack-fields", "5.1/answer-fields", quick=False)
async def ack_fields(ctx: CaseContext) -> None:
    """In the header of a CommitAck the fields that have no use are 0."""
    topic, end = await _filled(ctx)
    frame = await ctx.side.ask(
        commit_offset(topic.id, ctx.consumer, end), answer(Command.COMMIT_ACK, "5.14/ack")
    )
    said = frame.timestamp_ns, frame.record_count, frame.topic_id
    ctx.check(said == (0, 0, 0), "field:other", f"timestamp, count and topic must be 0: {said}")


@case("com/kept-for-others", "5.14/kept")
async def kept_for_others(ctx: CaseContext) -> None:
    """What was committed on one connection counts on every other one."""
    topic, end = await _filled(ctx)
    peer = await ctx.open()
    await _commit(ctx, topic, end, peer=peer)
    peer.drop()
    await _must_resume(ctx, topic, end)


@case("com/last-counts", "5.14/last")
async def last_counts(ctx: CaseContext) -> None:
    """Of several commits the last one counts."""
    topic, end = await _filled(ctx)
    await _commit(ctx, topic, 25)
    await _commit(ctx, topic, end)
    await _must_resume(ctx, topic, end)


@case("com/ack-is-true-going-back", "5.14/committed-offset", quick=False)
async def ack_is_true_going_back(ctx: CaseContext) -> None:
    """A commit at an earlier offset than the last one is taken or not; the CommitAck says which."""
    topic, end = await _filled(ctx)
    await _commit(ctx, topic, end)
    frame = await ctx.side.ask(
        commit_offset(topic.id, ctx.consumer, 25),
        commit_ack(ctx.consumer, 25, end, cite="5.14/ack"),
    )
    said = read_consumer_at(frame.payload)
    await _must_resume(ctx, topic, said.offset if said else 25)


@case("com/consumers-apart", "5.14/by-consumer")
async def consumers_apart(ctx: CaseContext) -> None:
    """Each consumer has an offset of its own."""
    topic, end = await _filled(ctx)
    await _commit(ctx, topic, end)
    await _commit(ctx, topic, 25, ctx.consumer + 1)
    await _must_resume(ctx, topic, end)
    await _must_resume(ctx, topic, 25, ctx.consumer + 1)


@case("com/topics-apart", "5.14/by-topic")
async def topics_apart(ctx: CaseContext) -> None:
    """A consumer has an offset in each topic."""
    first, end = await _filled(ctx)
    second, _ = await _filled(ctx)
    await _commit(ctx, first, end)
    await _commit(ctx, second, 25)
    await _must_resume(ctx, first, end)
    await _must_resume(ctx, second, 25)


@case("com/zero", "5.14/zero", quick=False)
async def zero(ctx: CaseContext) -> None:
    """Committing 0 is committing: the consumer begins at the beginning again."""
    topic, end = await _filled(ctx)
    await _commit(ctx, topic, end)
    right = commit_ack(ctx.consumer, 0, cite="5.14/committed-offset")
    async with ctx.precondition("committing 0"):
        await ctx.side.ask(commit_offset(topic.id, ctx.consumer, 0), right)
    await _must_resume(ctx, topic, 0)


@case("com/largest-consumer-id", "5.14/consumer-id", quick=False)
async def largest_consumer_id(ctx: CaseContext) -> None:
    """A consumer id has 64 bits, all of which tell it from others."""
    topic, end = await _filled(ctx)
    await _commit(ctx, topic, end, LARGEST)
    await _must_resume(ctx, topic, 0, LARGEST - 2**63)
    await _must_resume(ctx, topic, end, LARGEST)


@case("com/large-offset", "5.14/offset", quick=False)
async def large_offset(ctx: CaseContext) -> None:
    """An offset has 64 bits: one beyond 2^53 comes back as it is, or the commit is refused."""
    topic, _ = await _filled(ctx)
    where = 2**53 + 1
    codes = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.INVALID_OFFSET
    right = commit_ack(ctx.consumer, where, cite="5.14/offset")
    ctx.side.send(commit_offset(topic.id, ctx.consumer, where))
    refused = ctx.error(*codes, cite="12.2/offset-out-of-range")
    await ctx.expect(ctx.side, specified=[right, refused], deployed=[right])


@case("com/data-stays", "5.14/data-stays", quick=False)
async def data_stays(ctx: CaseContext) -> None:
    """A commit takes nothing away: what lies before it can be fetched again."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(4))
    await _commit(ctx, topic, len(payload))
    got = await ctx.fetch(topic, 0)
    ctx.check(got.data == payload, "data", "all records must still be there")


@case("com/pipelined", "5.14/pipelined", quick=False)
async def pipelined(ctx: CaseContext) -> None:
    """Commits in one write are acknowledged one by one, in their order."""
    topic, end = await _filled(ctx)
    offsets = 25, 50, end
    ctx.side.send(*(commit_offset(topic.id, ctx.consumer, offset) for offset in offsets))
    for offset in offsets:
        await ctx.side.expect(commit_ack(ctx.consumer, offset, cite="5.14/pipelined"))


@case("com/while-subscribed", "5.14/while-subscribed", quick=False)
async def while_subscribed(ctx: CaseContext) -> None:
    """A consumer commits on the connection on which it is subscribed."""
    topic, peer = await ctx.topic(), await ctx.open()
    async with ctx.precondition("subscribing"):
        await peer.ask(
            subscribe(topic.id, ctx.consumer), subscribe_ack(ctx.consumer, cite="5.12/ack")
        )
    right = commit_ack(ctx.consumer, 0, cite="5.14/while-subscribed")
    await peer.ask(commit_offset(topic.id, ctx.consumer, 0), right)


@case("com/outlives-subscription", "5.14/outlives-subscription", quick=False)
async def outlives_subscription(ctx: CaseContext) -> None:
    """Unsubscribe does not undo a commit."""
    topic, end = await _filled(ctx)
    peer = await ctx.open()
    async with ctx.precondition("subscribing at the end"):
        at_end = subscribe(topic.id, ctx.consumer, end)
        await peer.ask(at_end, subscribe_ack(ctx.consumer, cite="5.12/ack"))
    await _commit(ctx, topic, end, peer=peer)
    async with ctx.precondition("unsubscribing"):
        await peer.ask(unsubscribe(topic.id, ctx.consumer), unsubscribe_ack("5.13/ack"))
    await _must_resume(ctx, topic, end)


@case("com/gone-with-topic", "5.14/gone-with-topic", quick=False)
async def gone_with_topic(ctx: CaseContext) -> None:
    """A new topic has no commits, whatever an earlier one of its name had."""
    first = await ctx.disposable_topic()
    await ctx.store(first, ctx.values(2))
    await _commit(ctx, first, 50)
    async with ctx.precondition("deleting the topic, and creating it again"):
        await ctx.side.ask(delete_topic(first.id), topic_response("5.6/delete"))
        frame = await ctx.side.ask(create_topic(first.name), topic_response("5.3/answer"))
    topic_id = (read_json(frame.payload) or {}).get("id")
    ctx.check(
        isinstance(topic_id, int),
        "field:id",
        f"the id of a topic is not a number: {topic_id!r}",
    )
    await _must_resume(ctx, Topic(topic_id or 0, first.name), 0)


@case("com/unknown-topic", "5.14/not-found", quick=False)
async def unknown_topic(ctx: CaseContext) -> None:
    """A commit for a topic that does not exist is refused.

    The published server does not look.
    """
    topic, end = await _filled(ctx)
    right = commit_offset(topic.id, ctx.consumer, end)
    await ctx.assert_pair(
        right,
        replace(right, payload=commit_offset(ctx.unknown_topic, ctx.consumer, end).payload),
        answer=commit_ack(ctx.consumer, cite="5.14/ack"),
        specified=[ctx.error(ErrorCode.TOPIC_NOT_FOUND, cite="5.14/not-found")],
        deployed=[
            commit_ack(ctx.consumer, end, cite="AMB-36"),
            ctx.error(ErrorCode.TOPIC_NOT_FOUND, cite="5.14/not-found", text="not found"),
        ],
    )


@case("com/deleted-topic", "5.6/gone", dialects=("specified",), quick=False)
async def deleted_topic(ctx: CaseContext) -> None:
    """A commit for a topic that was deleted is refused."""
    topic = await ctx.disposable_topic()
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
    codes = ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND
    await ctx.side.ask(
        commit_offset(topic.id, ctx.consumer, 25),
        ctx.error(*codes, cite="5.6/gone", text="not found"),
    )


async def _beyond(ctx: CaseContext, by: int) -> None:
    """The error says where the end is, and the consumer goes on where it committed before."""
    topic, end = await _filled(ctx)
    await _commit(ctx, topic, 25)
    ctx.side.send(commit_offset(topic.id, ctx.consumer, end + by))
    refused = ctx.error(ErrorCode.OFFSET_OUT_OF_RANGE, cite="5.14/beyond-end")
    reply = await ctx.side.frame(refused)
    details = (read_json(reply.payload) or {}).get("details") or {}
    said = details.get("end_offset") if isinstance(details, dict) else None
    ctx.check(said == end, "field:details", f"details.end_offset must be {end}, not {said}")
    peer = await ctx.open()
    await peer.ask(
        subscribe(topic.id, ctx.consumer),
        subscribe_ack(ctx.consumer, 25, cite="5.14/beyond-end"),
    )


for _by in (1, 5, 1 << 31, 1 << 32, 1 << 53, 1 << 63):
    register(
        f"com/beyond-end-by-{_by}", "5.14/beyond-end",
        f"A commit {_by} bytes beyond the end is refused and changes nothing.",
        partial(_beyond, by=_by), dialects=("specified",),
    )  # fmt: skip
