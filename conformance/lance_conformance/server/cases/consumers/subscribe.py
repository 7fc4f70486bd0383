"""Cases about Subscribe and Unsubscribe (LWP sections 5.12 and 5.13; AMB-21, AMB-22, AMB-36)."""

from dataclasses import replace

from lance_conformance.engine.expectations import Allowed
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.consumers import commit_ack, subscribe_ack, unsubscribe_ack
from lance_conformance.server.expect import ack, answer, keepalive
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import (
    commit_offset,
    subscribe,
    unsubscribe,
)
from lance_conformance.wire.control import END_OFFSET, KEEPALIVE, delete_topic, fetch
from lance_conformance.wire.frame import Command
from lance_conformance.wire.tlv import boundaries


def _no_topic(ctx: CaseContext, cite: str) -> list[Allowed]:
    codes = ErrorCode.TOPIC_NOT_FOUND, ErrorCode.TOPIC_DELETED
    return [ctx.error(*codes, cite=cite, text="not found")]


@case("sub/ack", "5.12/ack")
async def acknowledged(ctx: CaseContext) -> None:
    """Subscribe is answered with a SubscribeAck that names the consumer."""
    topic = await ctx.topic()
    await (await ctx.open()).ask(
        subscribe(topic.id, ctx.consumer), subscribe_ack(ctx.consumer, cite="5.12/ack")
    )


@case("sub/ack-16-bytes", "5.12/ack-layout")
async def ack_16_bytes(ctx: CaseContext) -> None:
    """A SubscribeAck has 16 bytes: the consumer's id and an offset, and nothing after them."""
    topic = await ctx.topic()
    frame = await (await ctx.open()).ask(
        subscribe(topic.id, ctx.consumer), answer(Command.SUBSCRIBE_ACK, "5.12/ack-layout")
    )
    size = len(frame.payload)
    ctx.check(size == 16, "body:size", f"a SubscribeAck must have 16 bytes, it has {size}")


@case("sub/actual-offset", "5.12/actual-offset")
async def actual_offset(ctx: CaseContext) -> None:
    """The SubscribeAck names the offset at which the consumer begins: the one it asked for."""
    topic, payload = await ctx.filled()
    start = boundaries(payload)[2]
    right = subscribe_ack(ctx.consumer, start, cite="5.12/actual-offset")
    await (await ctx.open()).ask(subscribe(topic.id, ctx.consumer, start), right)


@case("sub/from-zero", "5.12/from-zero")
async def from_zero(ctx: CaseContext) -> None:
    """A consumer that never committed and subscribes at 0 begins at 0."""
    topic, _ = await ctx.filled()
    await (await ctx.open()).ask(
        subscribe(topic.id, ctx.consumer), subscribe_ack(ctx.consumer, 0, cite="AMB-36")
    )


@case("sub/at-end", "5.12/actual-offset", quick=False)
async def at_end(ctx: CaseContext) -> None:
    """A consumer may begin at the end of the log."""
    topic, payload = await ctx.filled()
    end = len(payload)
    right = subscribe_ack(ctx.consumer, end, cite="5.12/actual-offset")
    await (await ctx.open()).ask(subscribe(topic.id, ctx.consumer, end), right)


@case("sub/at-sentinel", "5.12/sentinel", quick=False)
async def at_sentinel(ctx: CaseContext) -> None:
    """Subscribing at 2^64-1 means at the end.

    The published server takes the number for an offset and repeats it.
    """
    topic, payload = await ctx.filled()
    where = len(payload) if ctx.specified else END_OFFSET
    right = subscribe_ack(ctx.consumer, where, cite="5.12/sentinel")
    await (await ctx.open()).ask(subscribe(topic.id, ctx.consumer, END_OFFSET), right)


@case("sub/beyond-end", "5.12/beyond-end", quick=False)
async def beyond_end(ctx: CaseContext) -> None:
    """Subscribing beyond the end is refused as OffsetOutOfRange, or taken as it is.

    The published server takes it.
    """
    topic, payload = await ctx.filled()
    where = len(payload) + 1000
    codes = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.INVALID_OFFSET
    refused = ctx.error(*codes, cite="AMB-18")
    taken = subscribe_ack(ctx.consumer, where, cite="AMB-21")
    peer = await ctx.open()
    peer.send(subscribe(topic.id, ctx.consumer, where))
    await ctx.expect(peer, specified=[refused, taken], deployed=[taken])


@case("sub/resumes-at-commit", "5.12/resume")
async def resumes_at_commit(ctx: CaseContext) -> None:
    """A consumer that committed and subscribes at 0 goes on at its commit."""
    topic, payload = await ctx.filled()
    where = boundaries(payload)[3]
    async with ctx.precondition("committing"):
        await ctx.side.ask(
            commit_offset(topic.id, ctx.consumer, where), commit_ack(ctx.consumer, cite="5.14/ack")
        )
    await (await ctx.open()).ask(
        subscribe(topic.id, ctx.consumer), subscribe_ack(ctx.consumer, where, cite="AMB-36")
    )


@case("sub/explicit-offset-wins", "5.12/actual-offset", quick=False)
async def explicit_offset_wins(ctx: CaseContext) -> None:
    """An offset that is asked for counts, even where the consumer committed another one."""
    topic, payload = await ctx.filled()
    _, first, _, third, *_ = boundaries(payload)
    async with ctx.precondition("committing"):
        await ctx.side.ask(
            commit_offset(topic.id, ctx.consumer, third), commit_ack(ctx.consumer, cite="5.14/ack")
        )
    right = subscribe_ack(ctx.consumer, first, cite="5.12/actual-offset")
    await (await ctx.open()).ask(subscribe(topic.id, ctx.consumer, first), right)


@case("sub/largest-consumer-id", "5.12/consumer-id", quick=False)
async def largest_consumer_id(ctx: CaseContext) -> None:
    """A consumer id has 64 bits, all of which come back."""
    largest = 2**64 - 1
    topic = await ctx.topic()
    right = subscribe_ack(largest, cite="5.12/consumer-id")
    await (await ctx.open()).ask(subscribe(topic.id, largest), right)


@case("sub/unknown-topic", "5.12/not-found")
async def unknown_topic(ctx: CaseContext) -> None:
    """Subscribing to a topic that does not exist is refused."""
    right = subscribe((await ctx.topic()).id, ctx.consumer)
    refused = _no_topic(ctx, "5.12/not-found")
    await ctx.assert_pair(
        right,
        replace(right, payload=subscribe(ctx.unknown_topic, ctx.consumer).payload),
        answer=answer(Command.SUBSCRIBE_ACK, "5.12/ack"),
        specified=refused,
        deployed=refused,
    )


@case("sub/deleted-topic", "5.6/gone", quick=False)
async def deleted_topic(ctx: CaseContext) -> None:
    """Subscribing to a topic that was deleted is refused."""
    topic = await ctx.disposable_topic()
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(topic.id), answer(Command.TOPIC_RESPONSE, "5.6/delete"))
    await (await ctx.open()).ask(subscribe(topic.id, ctx.consumer), *_no_topic(ctx, "5.6/gone"))


@case("sub/two-connections", "5.12/each-connection", quick=False)
async def two_connections(ctx: CaseContext) -> None:
    """Two connections may subscribe to one topic."""
    topic = await ctx.topic()
    right = subscribe_ack(ctx.consumer, cite="AMB-21")
    async with ctx.precondition("the first subscription"):
        await (await ctx.open()).ask(subscribe(topic.id, ctx.consumer), right)
    other = subscribe_ack(ctx.consumer + 1, cite="5.12/each-connection")
    await (await ctx.open()).ask(subscribe(topic.id, ctx.consumer + 1), other)


@case("sub/two-topics", "5.12/each-topic", quick=False)
async def two_topics(ctx: CaseContext) -> None:
    """One connection may subscribe to several topics."""
    topics, peer = [await ctx.topic(), await ctx.topic()], await ctx.open()
    for topic in topics:
        right = subscribe_ack(ctx.consumer, cite="5.12/each-topic")
        await peer.ask(subscribe(topic.id, ctx.consumer), right)


@case("sub/ends-with-connection", "5.12/ends-with-connection", quick=False)
async def ends_with_connection(ctx: CaseContext) -> None:
    """When a connection is gone, its consumer may subscribe again on another one."""
    topic = await ctx.topic()
    right = subscribe_ack(ctx.consumer, cite="AMB-21")
    first = await ctx.open()
    async with ctx.precondition("the first subscription"):
        await first.ask(subscribe(topic.id, ctx.consumer), right)
    first.drop()
    again = subscribe_ack(ctx.consumer, cite="5.12/ends-with-connection")
    await (await ctx.open()).ask(subscribe(topic.id, ctx.consumer), again)


@case("sub/keepalive-beside", "4.3/answer", quick=False)
async def keepalive_beside(ctx: CaseContext) -> None:
    """A connection that is subscribed has its Keepalives answered like any other."""
    peer, _ = await _subscribed(ctx)
    await peer.ask(KEEPALIVE, keepalive("4.3/answer"))


@case("sub/unsubscribe-ack", "5.13/ack")
async def unsubscribe_acknowledged(ctx: CaseContext) -> None:
    """Unsubscribe is answered with an Ack frame."""
    peer, topic = await _subscribed(ctx)
    await peer.ask(unsubscribe(topic.id, ctx.consumer), unsubscribe_ack("5.13/ack"))


@case("sub/unsubscribe-ack-id", "5.13/ack-id")
async def unsubscribe_ack_id(ctx: CaseContext) -> None:
    """The Ack of an Unsubscribe carries the consumer's id as its Batch ID."""
    peer, topic = await _subscribed(ctx)
    await peer.ask(unsubscribe(topic.id, ctx.consumer), ack(ctx.consumer, "AMB-22"))


async def _subscribed(ctx: CaseContext) -> tuple[Peer, Topic]:
    """A connection of its own that is subscribed to an empty topic.

    Not the first one: what is pushed there would stand in the way of the teardown.
    """
    topic = await ctx.topic()
    peer = await ctx.open()
    async with ctx.precondition("subscribing"):
        await peer.ask(
            subscribe(topic.id, ctx.consumer), subscribe_ack(ctx.consumer, cite="AMB-21")
        )
    return peer, topic


@case("sub/unsubscribe-without", "5.13/without", quick=False)
async def unsubscribe_without(ctx: CaseContext) -> None:
    """Unsubscribe without a subscription is acknowledged, or refused as ConsumerNotFound."""
    topic = await ctx.topic()
    ctx.side.send(unsubscribe(topic.id, ctx.consumer))
    acked = ack(ctx.consumer, "AMB-22")
    refused = ctx.error(ErrorCode.CONSUMER_NOT_FOUND, cite="12.2/consumer-not-found")
    await ctx.expect(ctx.side, specified=[acked, refused], deployed=[acked])


@case("sub/anew-after-unsubscribe", "5.13/ends", quick=False)
async def anew_after_unsubscribe(ctx: CaseContext) -> None:
    """After an Unsubscribe the same connection may subscribe to the topic again."""
    peer, topic = await _subscribed(ctx)
    async with ctx.precondition("unsubscribing"):
        await peer.ask(unsubscribe(topic.id, ctx.consumer), unsubscribe_ack("5.13/ack"))
    right = subscribe_ack(ctx.consumer, cite="5.13/ends")
    await peer.ask(subscribe(topic.id, ctx.consumer), right)


@case("sub/fetch-after-unsubscribe", "5.13/fetch-again", quick=False)
async def fetch_after_unsubscribe(ctx: CaseContext) -> None:
    """After an Unsubscribe the same connection may fetch."""
    peer, topic = await _subscribed(ctx)
    async with ctx.precondition("unsubscribing"):
        await peer.ask(unsubscribe(topic.id, ctx.consumer), unsubscribe_ack("5.13/ack"))
    payload = await ctx.store(topic, ctx.values(2))
    fetched = answer(Command.FETCH_RESPONSE, "5.13/fetch-again")
    got = ctx.read(peer, await peer.ask(fetch(topic.id, 0, 1024), fetched))
    ctx.check(got.data == payload, "data", "the Fetch must bring what was stored")


@case("sub/pipelined", "5.12/pipelined", quick=False)
async def pipelined(ctx: CaseContext) -> None:
    """Subscribe and Unsubscribe in one write are answered one after the other."""
    topic, peer = await ctx.topic(), await ctx.open()
    peer.send(subscribe(topic.id, ctx.consumer), unsubscribe(topic.id, ctx.consumer))
    await peer.expect(subscribe_ack(ctx.consumer, cite="5.12/pipelined"))
    await peer.expect(unsubscribe_ack("5.12/pipelined"))


@case("sub/poll-beside", "5.12/poll", dialects=("deployed",))
async def poll_beside(ctx: CaseContext) -> None:
    """A server that does not push serves Fetch on a connection that is subscribed."""
    peer, topic = await _subscribed(ctx)
    payload = await ctx.store(topic, ctx.values(2))
    got = await ctx.fetch(topic, 0, peer=peer)
    ctx.check(got.data == payload, "data", "the Fetch must bring what was stored")


@case("sub/no-push", "5.12/no-push", dialects=("deployed",), quick=False)
async def no_push(ctx: CaseContext) -> None:
    """A server whose clients poll pushes nothing: they would take it for an answer."""
    peer, topic = await _subscribed(ctx)
    await ctx.store(topic, ctx.values(2))
    await peer.expect_quiet("5.12/no-push")


@case("sub/ack-fields", "5.1/answer-fields", quick=False)
async def ack_fields(ctx: CaseContext) -> None:
    """In the header of a SubscribeAck the fields that have no use are 0."""
    topic = await ctx.topic()
    frame = await (await ctx.open()).ask(
        subscribe(topic.id, ctx.consumer), answer(Command.SUBSCRIBE_ACK, "5.12/ack")
    )
    said = frame.timestamp_ns, frame.record_count, frame.topic_id
    ctx.check(said == (0, 0, 0), "field:other", f"timestamp, count and topic must be 0: {said}")
