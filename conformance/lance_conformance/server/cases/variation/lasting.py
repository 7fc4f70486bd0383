"""Restarts: what survives one survives it in any number and size, and the rules hold afterwards."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import BOTH, SPECIFIED
from lance_conformance.server.cases.variation.common import (
    NONCE,
    batches,
    holds,
    joined,
    register,
    send_all,
)
from lance_conformance.server.cases.variation.position import FAULTS
from lance_conformance.server.cases.variation.waiting import WATCHED, pause
from lance_conformance.server.consumers import commit_ack, subscribe_ack
from lance_conformance.server.expect import ack, answer, topic_response
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.consumers import commit_offset, subscribe
from lance_conformance.wire.control import (
    create_topic,
    create_topic_with_retention,
    delete_topic,
    fetch,
    get_topic,
    ingest,
    read_json,
    set_retention,
)
from lance_conformance.wire.frame import Command

KEYS = ("id", "name", "created_at")
LARGE = 1 << 20
DEFAULT = Topic(0, "default")


async def _told(ctx: CaseContext, topics: Sequence[Topic]) -> list[list[object]]:
    found = []
    for topic in topics:
        reply = await ctx.side.ask(get_topic(topic.id), topic_response("6.1/restart"))
        body = read_json(reply.payload) or {}
        found.append([body.get(key) for key in KEYS])
    return found


async def _topics(ctx: CaseContext, count: int) -> None:
    """Each is told as before, and has its own records."""
    topics = [await ctx.topic() for _ in range(count)]
    frames = [batches(ctx, topic, 1)[0] for topic in topics]
    async with ctx.precondition("storing a batch in each topic"):
        await send_all(ctx.side, frames)
    before = await _told(ctx, topics)
    await ctx.restart()
    now = await _told(ctx, topics)
    ctx.check(now == before, "field:id", f"of {count} topics some are told otherwise")
    for topic, frame in zip(topics, frames, strict=True):
        await holds(ctx, topic, frame.payload)


async def _batches(ctx: CaseContext, count: int, size: int) -> None:
    """All of them, in their order, and what is stored next follows them."""
    topic, peer = await ctx.topic(), await ctx.open()
    frames = batches(ctx, topic, count, size)
    async with ctx.precondition("storing the batches"):
        await send_all(peer, frames)
    await ctx.restart()
    await holds(ctx, topic, joined(frames))
    last = batches(ctx, topic, 1)[0]
    await ctx.side.ask(last, ack(last.batch_id, "6.1/restart-goes-on"))
    await holds(ctx, topic, joined([*frames, last]))


async def _commits(ctx: CaseContext, count: int) -> None:
    """Each consumer goes on where it committed."""
    topic = await ctx.topic()
    size = len(await ctx.store(topic, ctx.values(count, 8))) // count
    places = {ctx.consumer + number: number * size for number in range(1, count + 1)}
    async with ctx.precondition("committing"):
        for consumer, offset in places.items():
            acked = commit_ack(consumer, cite="5.14/ack")
            await ctx.side.ask(commit_offset(topic.id, consumer, offset), acked)
    await ctx.restart()
    for consumer, offset in places.items():
        peer = await ctx.open()
        acked = subscribe_ack(consumer, offset, cite="5.14/restart")
        await peer.ask(subscribe(topic.id, consumer), acked)
        peer.drop()


async def _several_restarts(ctx: CaseContext, count: int) -> None:
    """What was stored between restarts is there after the last one, in its order."""
    topic, stored = await ctx.topic(), b""
    for _ in range(count):
        frame = batches(ctx, topic, 1, 40)[0]
        async with ctx.precondition("storing a batch"):
            await ctx.side.ask(frame, ack(frame.batch_id))
        stored += frame.payload
        await ctx.restart()
        await holds(ctx, topic, stored)


async def _limited(ctx: CaseContext) -> None:
    """A topic that was created with limits is there, with its name and its records."""
    name = ctx.name()
    async with ctx.precondition("creating a topic with limits"):
        request = create_topic_with_retention(name, 86_400, 1 << 30)
        reply = await ctx.side.ask(request, topic_response("5.11/answer"))
    topic = Topic(int((read_json(reply.payload) or {}).get("id") or 0), name)
    payload = await ctx.store(topic, ctx.values(2))
    before = await _told(ctx, [topic])
    await ctx.restart()
    now = await _told(ctx, [topic])
    ctx.check(now == before, "field:id", f"the topic was {before} and is {now}")
    await holds(ctx, topic, payload)
    for again in (create_topic(name), request):
        taken = ctx.error(ErrorCode.TOPIC_ALREADY_EXISTS, cite="12.2/topic-exists", text="exists")
        await ctx.side.ask(again, taken)


async def _names(ctx: CaseContext) -> None:
    """A name that is taken stays taken; that of a deleted topic stays free."""
    topic, gone = await ctx.topic(), await ctx.disposable_topic()
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(gone.id), topic_response("5.6/delete"))
    await ctx.restart()
    taken = ctx.error(ErrorCode.TOPIC_ALREADY_EXISTS, cite="12.2/topic-exists", text="exists")
    await ctx.side.ask(create_topic(topic.name), taken)
    await ctx.side.ask(create_topic(gone.name), topic_response("5.6/gone"))


async def _deleted(ctx: CaseContext) -> None:
    """The id of a deleted topic is still known as that of one (AMB-34)."""
    gone = await ctx.disposable_topic()
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(gone.id), topic_response("5.6/delete"))
    await ctx.restart()
    deleted = ctx.error(ErrorCode.TOPIC_DELETED, cite="12.2/topic-deleted")
    for frame in (get_topic(gone.id), fetch(gone.id, 0, 64),
                  ingest(gone.id, ctx.batch(), ctx.values(1))):  # fmt: skip
        await ctx.side.ask(frame, deleted)


async def _rules(ctx: CaseContext) -> None:
    """Frames with a fault are treated as before, each on a connection of its own."""
    topic, payload = await ctx.filled(2)
    await ctx.restart()
    for fault in FAULTS:
        if ctx.dialect.name in fault.dialects:
            peer = await ctx.open()
            frame = ingest(topic.id, ctx.batch() + 1000, ctx.values(1))
            peer.send_faulty(fault.spoil(ctx, frame), fault.field)
            await peer.expect(fault.allowed(ctx))
    await holds(ctx, topic, payload)


async def _retries(ctx: CaseContext, count: int) -> None:
    """The first, one in the middle and the last of many batches are known when they come again."""
    topic, peer = await ctx.topic(), await ctx.open()
    frames = [
        ingest(topic.id, NONCE | number, [number.to_bytes(4, "big")])
        for number in range(1, count + 1)
    ]
    async with ctx.precondition("storing the batches"):
        await send_all(peer, frames)
    await ctx.restart()
    for frame in (frames[0], frames[count // 2], frames[-1]):
        await ctx.side.ask(frame, ack(frame.batch_id, "10.4/restart"))
    await holds(ctx, topic, joined(frames))


async def _default(ctx: CaseContext) -> None:
    """What topic 0 is given it has, before the restart and after it, and it cannot be deleted.

    Asked where the target may be restarted, so is one to try things on: the records stay.
    """
    end = (await ctx.fetch(DEFAULT, 2**64 - 1)).next_offset
    frames = batches(ctx, DEFAULT, 2, 40)
    async with ctx.precondition("writing to topic 0"):
        await send_all(ctx.side, frames)
    for restart in (False, True):
        if restart:
            refused = ctx.error(*ANY_ERROR, cite="6.1/default-topic")
            await ctx.side.ask(delete_topic(0), refused)
            await ctx.restart()
        reply = await ctx.side.ask(
            fetch(0, end, 1024), answer(Command.FETCH_RESPONSE, "6.1/default-topic-read")
        )
        got = ctx.read(ctx.side, reply)
        ctx.check(got.data == joined(frames), "data", "topic 0 must have what it was given")


async def _last_limits(ctx: CaseContext) -> None:
    """The limits of before the last SetRetention do not come back, and what is told is the same."""
    topic = await ctx.topic()
    async with ctx.precondition("setting limits, and taking them back"):
        for limits in ((1, 1), (0, 0)):
            request = set_retention(topic.id, *limits)
            await ctx.side.ask(request, topic_response("5.10/answer"))
    payload = await ctx.store(topic, ctx.values(20, 400))
    told = topic_response("6.1/restart")
    before = read_json((await ctx.side.ask(get_topic(topic.id), told)).payload) or {}
    await ctx.restart()
    now = read_json((await ctx.side.ask(get_topic(topic.id), told)).payload) or {}
    for name in ("max_age_secs", "max_bytes"):
        was, said = before.get(name), now.get(name)
        ctx.check(said == was, f"field:{name}", f"{name} was {was}, and is {said}")
    await pause(ctx, WATCHED)
    await holds(ctx, topic, payload)


Question = Callable[[CaseContext], Awaitable[None]]
_QUESTIONS: tuple[tuple[str, str, str, Question, tuple[str, ...]], ...] = (
    ("restart-keeps-65-topics", "6.1/restart", "65 topics are there after a restart.",
     partial(_topics, count=65), BOTH),
    ("restart-keeps-257-batches", "6.1/restart-data", "257 batches are there after a restart.",
     partial(_batches, count=257, size=8), BOTH),
    ("restart-keeps-4097-batches", "6.1/restart-data", "4,097 batches are there after a restart.",
     partial(_batches, count=4097, size=8), BOTH),
    ("restart-keeps-large-batches", "6.1/restart-data",
     "Batches of 1 MiB are there after a restart.",
     partial(_batches, count=5, size=LARGE), BOTH),
    ("restart-keeps-65-commits", "5.14/restart", "65 commits count after a restart.",
     partial(_commits, count=65), SPECIFIED),
    ("restart-three-times", "6.1/restart-data", "Three restarts lose nothing.",
     partial(_several_restarts, count=3), BOTH),
    ("restart-keeps-limited-topics", "6.1/restart",
     "A topic that was created with limits is there after a restart.", _limited, BOTH),
    ("restart-keeps-retention", "5.10/last-counts",
     "After a restart the last limits of a topic count.", _last_limits, BOTH),
    ("restart-keeps-names", "6.1/restart", "Names that are taken are taken after a restart.",
     _names, BOTH),
    ("restart-keeps-deleted-ids", "12.2/topic-deleted",
     "A deleted topic is told as TopicDeleted after a restart.", _deleted, SPECIFIED),
    ("restart-keeps-rules", "6.1/restart", "Faulty frames are refused after a restart, too.",
     _rules, BOTH),
    ("restart-knows-257-retries", "10.4/restart",
     "Of 257 batches the first is known when it comes again after a restart.",
     partial(_retries, count=257), SPECIFIED),
    ("restart-keeps-default-topic", "6.1/default-topic",
     "Topic 0 takes records and keeps them over a restart.", _default, SPECIFIED),
)  # fmt: skip
for _slug, _clause, _title, _question, _dialects in _QUESTIONS:
    register(f"log/{_slug}", _clause, _title, _question, needs=("restart",), dialects=_dialects,
             weight=12)  # fmt: skip
