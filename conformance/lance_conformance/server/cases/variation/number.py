"""Number: a rule holds for many topics, consumers, connections, records and batches."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from lance_conformance.server.case_context import ALIVE, CaseContext, Topic
from lance_conformance.server.cases.variation.common import (
    IN_FLIGHT,
    NONCE,
    batches,
    created,
    holds,
    joined,
    register,
    send_all,
)
from lance_conformance.server.consumers import commit_ack, pushed, pushed_under, subscribe_ack
from lance_conformance.server.expect import ack, answer, keepalive, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.consumers import commit_offset, read_consumer_at, subscribe
from lance_conformance.wire.control import (
    KEEPALIVE,
    LIST_TOPICS,
    create_topic,
    fetch,
    get_topic,
    ingest,
    read_json,
)
from lance_conformance.wire.frame import Command

Counted = Callable[..., Awaitable[None]]

SYNCED = 6
"""Operations that a server syncs one by one, for which a case gets another budget."""
FEW = (9, 17, 65)
SOME = (*FEW, 129, 257)
MANY = (*SOME, 1025)
USUAL = frozenset({9, 65, 257, 1025})
"""What a usual run takes of these; what lies between them shows the same faults."""
NAME = 250
"""Bytes of a name, so that a list of 257 of them has more than 64 KiB."""
PUSHED = answer(Command.FETCH_RESPONSE, "5.12/push-new")
COVERED = frozenset({("topics", 65)})
"""What a larger number of a usual run shows as well, and takes long."""
BURST, PACED, ENOUGH = 256, 0.4, 3
"""Keepalives that every server answers at once; seconds after which one that comes later was held
back on purpose; how many of those show that each is still answered."""


async def _topics(ctx: CaseContext, count: int) -> None:
    """Each has its own record, sent over one connection, all are listed, and names are taken."""
    topics = await created(ctx, count, size=NAME)
    ids = {topic.id for topic in topics}
    ctx.check(
        len(ids) == count, "field:id", f"{count} topics must have {count} ids, not {len(ids)}"
    )
    frames = {topic.id: batches(ctx, topic, 1)[0] for topic in topics}
    await send_all(ctx.side, list(frames.values()), "6.1/isolation")
    right = answer(Command.FETCH_RESPONSE, "6.1/isolation")
    for start in range(0, count, IN_FLIGHT):
        some = topics[start : start + IN_FLIGHT]
        ctx.side.send(*(fetch(topic.id, 0, 1 << 16) for topic in some))
        for topic in some:
            data = ctx.read(ctx.side, await ctx.side.frame(right)).data
            own = data == frames[topic.id].payload
            ctx.check(own, "data", f"topic {topic.id} must have its record, not {len(data)} bytes")
    await _lists(ctx, topics)
    taken = ctx.error(ErrorCode.TOPIC_ALREADY_EXISTS, cite="12.2/topic-exists", text="exists")
    for topic in (topics[0], topics[count // 2], topics[-1]):
        await ctx.side.ask(create_topic(topic.name), taken)


async def _listed(ctx: CaseContext, count: int) -> None:
    """They have long names; the list of them is large."""
    await _lists(ctx, await created(ctx, count, "5.4/many", NAME))


async def _lists(ctx: CaseContext, topics: Sequence[Topic]) -> None:
    """Each of the topics is in the list, by its id and name."""
    reply = await ctx.side.ask(LIST_TOPICS, ALIVE)
    rows = (read_json(reply.payload) or {}).get("topics") or []
    listed = {(row.get("id"), row.get("name")) for row in rows if isinstance(row, dict)}
    missing = [topic for topic in topics if (topic.id, topic.name) not in listed]
    ctx.check(not missing, "field:topics", f"{len(missing)} of {len(topics)} are not listed")


async def _consumers(ctx: CaseContext, count: int) -> None:
    """Each goes on where it committed."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, [bytes(8)] * count)
    size = len(payload) // count
    ids = [ctx.consumer + number for number in range(count)]
    async with ctx.precondition("committing"):
        ctx.side.send(*(commit_offset(topic.id, c, place * size) for place, c in enumerate(ids, 1)))
        for consumer in ids:
            await ctx.side.expect(commit_ack(consumer, cite="5.14/ack"))
    peer = await ctx.open()
    for place in sorted({1, 2, 8, count // 2, count - 1, count}):
        consumer = ids[place - 1]
        frame = await peer.ask(
            subscribe(topic.id, consumer), subscribe_ack(consumer, cite="5.12/ack")
        )
        said = read_consumer_at(frame.payload)
        at = said.offset if said else -1
        ctx.check(
            at == place * size,
            "field:offset",
            f"the {place}. of {count} consumers committed {place * size} and goes on at {at}",
        )
        peer.drop()
        peer = await ctx.open()


async def _connections(ctx: CaseContext, count: int) -> None:
    """All are open at once, and each is served twice."""
    topic = await ctx.topic()
    peers = [await ctx.open() for _ in range(count)]
    frames = batches(ctx, topic, count)
    for peer, frame in zip(peers, frames, strict=True):
        await peer.ask(frame, ack(frame.batch_id, "2.1/connections"))
    for peer in peers:
        await peer.ask(KEEPALIVE, keepalive("2.1/connections"))
    await holds(ctx, topic, joined(frames))


async def _records(ctx: CaseContext, count: int) -> None:
    """All records of one batch come back, in their order."""
    topic = await ctx.topic()
    values = [number.to_bytes(4, "big") for number in range(count)]
    frame = ingest(topic.id, ctx.batch(), values)
    await ctx.side.ask(frame, ack(frame.batch_id, "8.4/packed"))
    await holds(ctx, topic, frame.payload)


async def _counted(ctx: CaseContext, count: int) -> None:
    """A batch of many records that announces one too many, or one too few, is refused."""
    topic = await ctx.topic()
    right = ingest(topic.id, ctx.batch(), [number.to_bytes(4, "big") for number in range(count)])
    for announced in (count + 1, count - 1):
        wrong = replace(right, batch_id=ctx.batch(), record_count=announced)
        ctx.side.send_faulty(wrong, "record_count")
        await ctx.side.expect(ctx.error(ErrorCode.INVALID_PAYLOAD, cite="4.1/record-count"))
    await holds(ctx, topic, b"")


async def _in_flight(ctx: CaseContext, count: int) -> None:
    """They are sent in one write, acknowledged in order and stored in order."""
    topic, peer = await ctx.topic(), await ctx.open()
    frames = batches(ctx, topic, count)
    peer.send(*frames)
    for frame in frames:
        await peer.expect(ack(frame.batch_id, "10.2/ack-order"))
    await holds(ctx, topic, joined(frames))


async def _in_topic(ctx: CaseContext, count: int) -> None:
    """Batches of several connections in turn: none is lost and each connection keeps its order."""
    topic = await ctx.topic()
    peers = [await ctx.open() for _ in range(3)]
    frames = batches(ctx, topic, count)
    for place, frame in enumerate(frames):
        await peers[place % 3].ask(frame, ack(frame.batch_id))
    await holds(ctx, topic, joined(frames))


async def _remembered(ctx: CaseContext, count: int) -> None:
    """The first of many batches is still known when it is sent again on another connection."""
    topic, peer = await ctx.topic(), await ctx.open()
    frames = [
        ingest(topic.id, NONCE | number, [number.to_bytes(4, "big")])
        for number in range(1, count + 1)
    ]
    async with ctx.precondition("storing the batches"):
        await send_all(peer, frames)
    other = await ctx.open()
    for frame in (frames[0], frames[count // 2], frames[-1]):
        await other.ask(frame, ack(frame.batch_id, "10.4/retry-elsewhere"))
    await holds(ctx, topic, joined(frames))


async def _retried(ctx: CaseContext, count: int) -> None:
    """Any of many batches of a connection that is sent there again is not stored again."""
    topic, peer = await ctx.topic(), await ctx.open()
    frames = batches(ctx, topic, count)
    async with ctx.precondition("storing the batches"):
        await send_all(peer, frames)
    refused = ctx.error(*ANY_ERROR, cite="10.4/retry")
    for frame in (frames[0], frames[count // 2], frames[-1]):
        await peer.ask(frame, ack(frame.batch_id, "10.4/retry"), refused)
    await holds(ctx, topic, joined(frames))


async def _refusals(ctx: CaseContext, count: int) -> None:
    """After many refusals the connection serves as before."""
    topic, peer = await ctx.topic(), await ctx.open()
    codes = ErrorCode.TOPIC_NOT_FOUND, ErrorCode.TOPIC_DELETED
    missing = ctx.error(*codes, cite="12.1/stays", text="not found")
    for _ in range(count):
        await peer.ask(get_topic(ctx.unknown_topic), missing)
    frame = batches(ctx, topic, 1)[0]
    await peer.ask(frame, ack(frame.batch_id, "12.1/stays"))


async def _fetches(ctx: CaseContext, count: int) -> None:
    """A connection that fetches again and again gets the same data each time."""
    topic, payload = await ctx.filled(3)
    for number in range(1, count + 1):
        got = await ctx.fetch(topic, 0)
        ctx.check(
            got.data == payload, "data", f"the {number}. Fetch of a connection brings other data"
        )


async def _keepalives(ctx: CaseContext, count: int) -> None:
    """Each is answered before the next one is sent.

    Beyond a burst a server may answer one a second (AMB-23); some of these are enough then.
    """
    clock = asyncio.get_running_loop().time
    peer, late = await ctx.open(), 0
    for number in range(count):
        asked = clock()
        await peer.ask(KEEPALIVE, keepalive())
        late = late + 1 if number >= BURST and clock() - asked > PACED else 0
        if late == ENOUGH:
            return


async def _subscribe_to(ctx: CaseContext, peer: Peer, topics: Sequence[Topic], cite: str) -> None:
    """Subscribe to all of them in one write."""
    peer.send(*(subscribe(topic.id, ctx.consumer) for topic in topics))
    for _ in topics:
        await peer.expect(subscribe_ack(ctx.consumer, 0, cite=cite))


async def _subscribed(ctx: CaseContext, count: int) -> None:
    """Each subscription is acknowledged."""
    async with ctx.precondition("creating the topics"):
        topics = await created(ctx, count)
    await _subscribe_to(ctx, await ctx.open(), topics, "5.12/each-topic")


async def _pushed_topics(ctx: CaseContext, count: int) -> None:
    """What is stored in each of the topics is pushed."""
    peer = await ctx.open()
    async with ctx.precondition("creating the topics"):
        topics = await created(ctx, count)
    await _subscribe_to(ctx, peer, topics, "5.12/each-topic")
    for topic in topics:
        payload = await ctx.store(topic, ctx.values(1))
        got = ctx.read(peer, await peer.frame(pushed_under(topic.id, "5.12/push-topic"))).data
        ctx.check(got == payload, "data", f"what is pushed of topic {topic.id} must be its record")


async def _subscribers(ctx: CaseContext, count: int) -> None:
    """What is stored is pushed to each of the connections."""
    topic = await ctx.topic()
    peers = [await ctx.open() for _ in range(count)]
    async with ctx.precondition("subscribing"):
        for number, peer in enumerate(peers):
            consumer = ctx.consumer + number
            await peer.ask(
                subscribe(topic.id, consumer), subscribe_ack(consumer, 0, cite="5.12/ack")
            )
    payload = await ctx.store(topic, ctx.values(1))
    for peer in peers:
        got = ctx.read(peer, await peer.frame(PUSHED)).data
        ctx.check(got == payload, "data", "what is pushed must be what was stored")


async def _pushes(ctx: CaseContext, count: int) -> None:
    """A subscriber that takes one record at a time gets all of them, in their order."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, [number.to_bytes(4, "big") for number in range(count)])
    size = len(payload) // count
    peer = await ctx.open()
    async with ctx.precondition("subscribing"):
        request = subscribe(topic.id, ctx.consumer, max_bytes=size)
        await peer.ask(request, subscribe_ack(ctx.consumer, cite="5.12/ack"))
    for number in range(count):
        got = ctx.read(peer, await peer.frame(pushed(topic.id, "5.12/push"))).data
        right = payload[number * size : (number + 1) * size]
        ctx.check(got == right, "data", f"the {number + 1}. push brings other data")


async def _commands(ctx: CaseContext, count: int) -> None:
    """Commands in one write are answered in their order, each about its own topic."""
    topics = [await ctx.topic() for _ in range(3)]
    peer = await ctx.open()
    peer.send(*(get_topic(topics[number % 3].id) for number in range(count)))
    for number in range(count):
        frame = await peer.frame(topic_response("5.5/pipelined"))
        said = (read_json(frame.payload) or {}).get("id")
        right = topics[number % 3].id
        ctx.check(
            said == right, "field:id", f"the {number + 1}. answer must be about {right}, not {said}"
        )


_QUESTIONS: tuple[tuple[str, str, str, Counted, int], ...] = (
    ("topics", "6.1/isolation",
     "{} topics have records of their own, and all are listed.", _topics, 257),
    ("consumers", "5.14/by-consumer",
     "{} consumers of a topic have commits of their own.", _consumers, 1025),
    ("records", "8.4/packed",
     "All {} records of a batch are stored in their order.", _records, 1025),
    ("in-flight", "10.2/ack-order",
     "{} batches in flight are acknowledged in order and stored.", _in_flight, 1025),
    ("in-topic", "4.2/all-acked",
     "{} batches from three connections are all stored.", _in_topic, 65),
    ("remembered", "10.4/retry-elsewhere",
     "Of {} batches the first is known when it comes again.", _remembered, 1025),
    ("retried", "10.4/retry",
     "Of {} batches of a connection the first is known when it comes again.", _retried, 1025),
    ("refusals", "12.1/stays", "A connection is served after {} refusals.", _refusals, 1025),
    ("fetches", "5.8/repeatable", "{} Fetches in a row bring the same data.", _fetches, 257),
    ("keepalives", "4.3/one-each", "{} Keepalives in a row are answered.", _keepalives, 1025),
    ("commands", "5.5/pipelined",
     "{} commands in one write are answered in order.", _commands, 1025),
)  # fmt: skip
"""Name, clause, title, question, and the largest number of a usual run."""

for _name, _clause, _title, _question, _most in _QUESTIONS:
    _a_weight = SYNCED if _name in ("topics", "consumers", "in-topic") else 64
    for _count in MANY:
        register(
            f"num/{_name}-{_count}", _clause, _title.format(_count),
            partial(_question, count=_count), weight=2 + _count // _a_weight,
            thorough=_count > _most or _count not in USUAL or (_name, _count) in COVERED,
            seconds=PACED * ENOUGH if _name == "keepalives" and _count > BURST else 0,
            dialects=("specified",) if _name in ("remembered", "retried") else None,
        )  # fmt: skip
for _count in (33, 129, 257, 1025):
    register(
        f"num/listed-{_count}", "5.4/many", f"{_count} topics are all listed.",
        partial(_listed, count=_count), weight=2 + _count // SYNCED, thorough=_count != 33,
    )  # fmt: skip
for _count in (4097, 10_001):
    register(
        f"num/remembered-{_count}", "10.4/retry-elsewhere",
        f"Of {_count} batches the first is known when it comes again.",
        partial(_remembered, count=_count), weight=2 + _count // 64,
        thorough=_count > 4097, dialects=("specified",), twin_of="num/remembered-1025",
    )  # fmt: skip
for _count in MANY:
    register(
        f"num/record-count-{_count}", "4.1/record-count",
        f"A wrong record count is refused where a batch has {_count} records.",
        partial(_counted, count=_count), dialects=("specified",), weight=2,
        thorough=_count not in USUAL,
    )  # fmt: skip
for _count in (*SOME, 513):
    register(
        f"num/connections-{_count}", "2.1/connections",
        f"{_count} connections are open at once, and each is served.",
        partial(_connections, count=_count), weight=2 + _count // 32,
        thorough=_count not in USUAL,
    )  # fmt: skip
for _count in (*FEW, 129):
    register(
        f"num/subscribed-{_count}", "5.12/each-topic",
        f"A connection subscribes to {_count} topics.",
        partial(_subscribed, count=_count), weight=2 + _count // SYNCED,
        thorough=_count in {17, 129},
    )  # fmt: skip
    register(
        f"num/pushed-topics-{_count}", "5.12/push",
        f"A connection that is subscribed to {_count} topics is pushed what each of them gets.",
        partial(_pushed_topics, count=_count), weight=2 + _count // SYNCED,
        thorough=_count in {17, 65},
        needs=("push",), dialects=("specified",),
    )  # fmt: skip
    register(
        f"num/subscribers-{_count}", "5.12/push-new",
        f"{_count} connections that are subscribed to a topic are pushed what it gets.",
        partial(_subscribers, count=_count), weight=2 + _count // SYNCED,
        thorough=_count in {17, 65},
        needs=("push",), dialects=("specified",),
    )  # fmt: skip
for _count in SOME:
    register(
        f"num/pushes-{_count}", "5.12/push", f"{_count} pushes bring {_count} records.",
        partial(_pushes, count=_count), weight=2 + _count // 64,
        thorough=_count in {17, 65}, needs=("push",), dialects=("specified",),
    )  # fmt: skip
