"""Beside a subscription: what its connection asks meanwhile changes nothing of what is pushed."""

from collections.abc import Awaitable, Callable
from functools import partial

from lance_conformance.server.case_context import ALIVE, CaseContext, Topic
from lance_conformance.server.cases.registry import SPECIFIED
from lance_conformance.server.cases.variation.common import NOT_FOUND, register
from lance_conformance.server.consumers import commit_ack, pushed, subscribe_ack, unsubscribe_ack
from lance_conformance.server.expect import ack, keepalive, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.consumers import commit_offset, subscribe, unsubscribe
from lance_conformance.wire.control import (
    KEEPALIVE,
    LIST_TOPICS,
    control,
    create_topic,
    delete_topic,
    fetch,
    get_topic,
    ingest,
    set_retention,
)
from lance_conformance.wire.frame import Flag, Frame

Action = Callable[[CaseContext, Peer, Topic], Awaitable[None]]


async def _keepalive(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    del ctx, topic
    await peer.ask(KEEPALIVE, keepalive())


async def _questions(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    del ctx
    await peer.ask(LIST_TOPICS, ALIVE)
    await peer.ask(get_topic(topic.id), topic_response("5.5/get"))


async def _refusals(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    missing = ctx.error(*NOT_FOUND, cite="5.5/not-found", text="not found")
    await peer.ask(get_topic(ctx.unknown_topic), missing)
    await peer.ask(control(0x7E), ctx.error(*ANY_ERROR, cite="5.2/unknown"))
    await peer.ask(create_topic(topic.name), ctx.error(*ANY_ERROR, cite="12.2/topic-exists"))
    lost = ingest(ctx.unknown_topic, ctx.batch(), ctx.values(1))
    await peer.ask(lost, ctx.error(*NOT_FOUND, cite="6.4/unknown-topic", text="topic"))


async def _refused_fetch(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    refused = ctx.error(ErrorCode.INVALID_PAYLOAD, cite="5.12/no-fetch-beside")
    await peer.ask(fetch(topic.id, 0, 100), refused)
    again = ctx.error(ErrorCode.INVALID_PAYLOAD, cite="5.12/once-a-topic")
    await peer.ask(subscribe(topic.id, ctx.consumer), again)


async def _commits(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    acked = commit_ack(ctx.consumer, cite="5.14/ack")
    await peer.ask(commit_offset(topic.id, ctx.consumer, 0), acked)


async def _limits(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    del ctx
    await peer.ask(set_retention(topic.id, 1 << 30, 1 << 40), topic_response("5.10/answer"))


async def _deletion(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    del topic
    gone = await ctx.disposable_topic()
    await peer.ask(delete_topic(gone.id), topic_response("5.6/delete"))


async def _deletion_of_another(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    """A topic that is pushed over the same connection."""
    del topic
    gone = await ctx.disposable_topic()
    await peer.ask(subscribe(gone.id, ctx.consumer), subscribe_ack(ctx.consumer, cite="5.12/ack"))
    await ctx.side.ask(delete_topic(gone.id), topic_response("5.6/delete"))
    await peer.expect(ctx.error(*NOT_FOUND, cite="5.12/push-ends", text="topic"))


async def _other_subscription(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    """One that comes and goes."""
    del topic
    other = await ctx.topic()
    await peer.ask(subscribe(other.id, ctx.consumer), subscribe_ack(ctx.consumer, cite="5.12/ack"))
    await peer.ask(unsubscribe(other.id, ctx.consumer), unsubscribe_ack("5.13/ack"))


async def _batch(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    """For another topic."""
    del topic
    frame = ingest((await ctx.topic()).id, ctx.batch(), ctx.values(1))
    await peer.ask(frame, ack(frame.batch_id))


async def _passed_over(ctx: CaseContext, peer: Peer, topic: Topic) -> None:
    del ctx, topic
    peer.send(Frame(flags=Flag.ACK, batch_id=3), Frame(flags=Flag.BACKPRESSURE), KEEPALIVE)
    await peer.expect(keepalive())


async def _pushed_after(ctx: CaseContext, action: Action) -> None:
    """It is pushed what was there, and what is stored after each of three times."""
    topic, payload = await ctx.filled(2)
    peer = await ctx.open()
    async with ctx.precondition("subscribing"):
        acked = subscribe_ack(ctx.consumer, 0, cite="5.12/ack")
        await peer.ask(subscribe(topic.id, ctx.consumer), acked)
    for number in range(4):
        got = ctx.read(peer, await peer.frame(pushed(topic.id, "5.12/push-new"))).data
        ctx.check(got == payload, "data", f"the {number + 1}. push must bring what was stored")
        if number < 3:
            await action(ctx, peer, topic)
            payload = await ctx.store(topic, ctx.values(number + 1))


NEW = "5.12/push-new"
for _slug, _clause, _words, _action in (
    ("keepalives", NEW, "Keepalives", _keepalive), ("questions", NEW, "questions", _questions),
    ("refusals", NEW, "refusals", _refusals),
    ("refused-fetches", "5.12/no-fetch-beside", "refused Fetches", _refused_fetch),
    ("commits", NEW, "commits", _commits), ("limits", NEW, "limits", _limits),
    ("deletions", NEW, "deletions of other topics", _deletion),
    ("ended", "5.12/push-ends", "another topic has gone", _deletion_of_another),
    ("others", NEW, "subscriptions that come and go", _other_subscription),
    ("batches", NEW, "batches for other topics", _batch),
    ("acks", "4.2/from-client", "an Ack and a Backpressure", _passed_over),
):  # fmt: skip
    register(f"mix/pushed-beside-{_slug}", _clause,
             f"What is stored after {_words} is pushed over the same connection.",
             partial(_pushed_after, action=_action), needs=("push",), dialects=SPECIFIED,
             weight=2)  # fmt: skip

# -- consumers -------------------------------------------------------------------------------------


async def _at_the_end(ctx: CaseContext) -> None:
    """A commit has no say in where the end is."""
    topic, payload = await ctx.filled(4)
    async with ctx.precondition("committing"):
        acked = commit_ack(ctx.consumer, cite="5.14/ack")
        await ctx.side.ask(commit_offset(topic.id, ctx.consumer, len(payload) // 2), acked)
    peer = await ctx.open()
    right = subscribe_ack(ctx.consumer, len(payload), cite="5.12/sentinel")
    await peer.ask(subscribe(topic.id, ctx.consumer, 2**64 - 1), right)


register("sub/sentinel-after-a-commit", "5.12/sentinel",
         "A Subscribe at the end begins there, although its consumer committed.", _at_the_end,
         dialects=SPECIFIED)  # fmt: skip


ONES = 2**64 - 1
IDS = (0, ONES, *(1 << bit for bit in range(64)), *(ONES ^ 1 << bit for bit in range(64)))
"""None of the bits, all of them, one, and all but one."""


async def _bits(ctx: CaseContext, *, subscribed: bool) -> None:
    """Ids of no bit, of one bit each, and each inverted, in one connection's answers."""
    topic, payload = await ctx.filled(2)
    ids = IDS
    if not subscribed:
        ctx.side.send(*(commit_offset(topic.id, consumer, 0) for consumer in ids))
        for consumer in ids:
            await ctx.side.expect(commit_ack(consumer, cite="5.14/consumer-id"))
        return
    peer = await ctx.open()
    for consumer in ids:
        right = subscribe_ack(consumer, cite="5.12/consumer-id")
        await peer.ask(subscribe(topic.id, consumer, len(payload)), right)
        await peer.ask(unsubscribe(topic.id, consumer), unsubscribe_ack("5.13/ack"))


async def _resumed(ctx: CaseContext) -> None:
    """Each of them committed another offset, and goes on there."""
    topic = await ctx.topic()
    ids = [0, ONES, 1, 1 << 31, 1 << 32, 1 << 63]
    payload = await ctx.store(topic, ctx.values(len(ids), 8))
    places = {each: number * len(payload) // len(ids) for number, each in enumerate(ids, 1)}
    async with ctx.precondition("committing"):
        ctx.side.send(*(commit_offset(topic.id, each, at) for each, at in places.items()))
        for each in ids:
            await ctx.side.expect(commit_ack(each, cite="5.14/ack"))
    for each, at in places.items():
        right = subscribe_ack(each, at, cite="5.14/consumer-id")
        await (await ctx.open()).ask(subscribe(topic.id, each), right)


register("width/resuming-consumers", "5.14/consumer-id",
         "Consumers whose ids are 0, one bit or all bits go on where they committed.",
         _resumed, weight=2)  # fmt: skip
register("width/subscribed-consumers", "5.12/consumer-id",
         "A SubscribeAck has all 64 bits of the id of its consumer.",
         partial(_bits, subscribed=True), weight=3)  # fmt: skip
register("width/committing-consumers", "5.14/consumer-id",
         "A CommitAck has all 64 bits of the id of its consumer.",
         partial(_bits, subscribed=False), weight=3)  # fmt: skip


# -- pushes ----------------------------------------------------------------------------------------


async def _from_zero(ctx: CaseContext) -> None:
    """Neither an earlier push nor the end of a connection counts as a commit."""
    topic, payload = await ctx.filled(3)
    for number in range(1, 8):
        peer = await ctx.open()
        acked = subscribe_ack(ctx.consumer, 0, cite="5.12/from-zero")
        await peer.ask(subscribe(topic.id, ctx.consumer), acked)
        got = ctx.read(peer, await peer.frame(pushed(topic.id, "5.12/push"))).data
        ctx.check(got == payload, "data", f"the {number}. Subscribe must bring all that is there")
        if number % 2:
            await peer.ask(unsubscribe(topic.id, ctx.consumer), unsubscribe_ack("5.13/ack"))
        peer.drop()


register("rep/subscribed-from-zero", "5.12/from-zero",
         "A consumer without a commit begins at 0 as often as it subscribes.",
         _from_zero, needs=("push",), dialects=SPECIFIED, weight=2)  # fmt: skip


async def _much(ctx: CaseContext, count: int, size: int) -> None:
    """What is there when it subscribes, and as much that is stored afterwards."""
    topic = await ctx.topic()
    right = await ctx.store(topic, ctx.values(count, size))
    peer = await ctx.open()
    acked = subscribe_ack(ctx.consumer, 0, cite="5.12/ack")
    await peer.ask(subscribe(topic.id, ctx.consumer, 0, 8 << 20), acked)
    at = 0
    for _ in range(2):
        while at < len(right):
            got = ctx.read(peer, await peer.frame(pushed(topic.id, "5.12/push-new")))
            told = f"other bytes are pushed at {at} of {len(right)}"
            ctx.check(got.data and right.startswith(got.data, at), "data", told)
            at += len(got.data)
        if len(right) < 2 * count * size:
            right += await ctx.store(topic, ctx.values(count, size))
    ctx.check(at == len(right), "data", f"{at} of {len(right)} bytes were pushed")


for _count, _size in ((1, 70_000), (300, 300), (30, 100_000)):
    register(f"size/pushed-{_count * _size}", "5.12/push-new",
             f"A subscriber is pushed a batch of {_count * _size} bytes.",
             partial(_much, count=_count, size=_size), needs=("push",), dialects=SPECIFIED,
             weight=3)  # fmt: skip
