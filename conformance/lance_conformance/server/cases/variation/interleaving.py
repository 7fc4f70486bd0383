"""Interleaving: several connections, topics and producers at the same time."""

from dataclasses import replace
from functools import partial

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.variation.common import (
    NONCE,
    batches,
    holds,
    joined,
    register,
)
from lance_conformance.server.expect import ack, answer, topic_response
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.control import fetch, get_topic, ingest, read_json
from lance_conformance.wire.frame import Command, Flag

STEPS = 40


async def _topics_and_connections(ctx: CaseContext, connections: int, topics: int) -> None:
    """Connections write in turn to topics in turn; each topic holds its batches in order."""
    logs = [await ctx.topic() for _ in range(topics)]
    peers = [await ctx.open() for _ in range(connections)]
    sent: list[list[bytes]] = [[] for _ in logs]
    for step in range(STEPS):
        peer, place = peers[step % connections], (step // connections + step) % topics
        frame = batches(ctx, logs[place], 1)[0]
        await peer.ask(frame, ack(frame.batch_id, "10.2/producer-order"))
        sent[place].append(frame.payload)
    for topic, payloads in zip(logs, sent, strict=True):
        await holds(ctx, topic, b"".join(payloads))


async def _equal_ids(ctx: CaseContext) -> None:
    """Two producers that count from the same id write different batches: all are stored."""
    topic = await ctx.topic()
    peers = [await ctx.open() for _ in range(2)]
    payloads = []
    for number in range(1, STEPS // 2):
        for peer in peers:
            frame = ingest(topic.id, number, ctx.values(1))
            await peer.ask(frame, ack(frame.batch_id, "10.4/other-producer"))
            payloads.append(frame.payload)
    await holds(ctx, topic, b"".join(payloads))


async def _equal_length(ctx: CaseContext) -> None:
    """A batch under a known id that has as many other bytes is not a repetition (AMB-25)."""
    topic = await ctx.topic()
    first = ingest(topic.id, NONCE | 9, ctx.values(1))
    async with ctx.precondition("storing the first batch"):
        await ctx.side.ask(first, ack(first.batch_id))
    second = ingest(topic.id, NONCE | 9, ctx.values(1))
    peer = await ctx.open()
    refused = ctx.error(ErrorCode.INVALID_PAYLOAD, cite="4.2/all-acked")
    said = await peer.ask(second, ack(second.batch_id, "4.2/all-acked"), refused)
    more = second.payload if said.batch_id == second.batch_id else b""
    await holds(ctx, topic, first.payload + more)


async def _same_to_two_topics(ctx: CaseContext, *, elsewhere: bool) -> None:
    """One id, time and content sent to two topics is stored in both."""
    one, two = await ctx.topic(), await ctx.topic()
    first = ingest(one.id, NONCE | 11, ctx.values(1))
    second = replace(first, topic_id=two.id)
    await ctx.side.ask(first, ack(first.batch_id, "4.2/all-acked"))
    acked = ack(second.batch_id, "4.2/all-acked")
    if elsewhere:
        await (await ctx.open()).ask(second, acked)
    else:  # an id of the connection, which a target may refuse (LWP section 10.4)
        reply = await ctx.side.ask(second, acked, ctx.error(*ANY_ERROR, cite="10.4/retry"))
        second = second if reply.flags & Flag.ACK else replace(second, payload=b"")
    await holds(ctx, one, first.payload)
    await holds(ctx, two, second.payload)


async def _reader_beside_writer(ctx: CaseContext) -> None:
    """Whatever a reader sees between two batches stays as it was."""
    topic, reader = await ctx.topic(), await ctx.open()
    seen = b""
    for frame in batches(ctx, topic, STEPS):
        async with ctx.precondition("storing a batch"):
            await ctx.side.ask(frame, ack(frame.batch_id))
        got = (await ctx.fetch(topic, 0, peer=reader)).data
        ctx.check(got == seen + frame.payload, "data", "a reader must see all that is acknowledged")
        seen = got


async def _refused_beside_served(ctx: CaseContext) -> None:
    """While one connection is refused again and again, the other one gets its own answers."""
    topic = await ctx.topic()
    refused, served = await ctx.open(), await ctx.open()
    codes = ErrorCode.TOPIC_NOT_FOUND, ErrorCode.TOPIC_DELETED
    missing = ctx.error(*codes, cite="11/others", text="not found")
    frames = batches(ctx, topic, STEPS)
    for frame in frames:
        refused.send(get_topic(ctx.unknown_topic))
        served.send(frame)
        await served.expect(ack(frame.batch_id, "11/others"))
        await refused.expect(missing)
    await holds(ctx, topic, joined(frames))


async def _each_its_own(ctx: CaseContext, connections: int) -> None:
    """Connections ask about topics of their own at the same moment, again and again."""
    topics = [await ctx.filled(1, 8 + number) for number in range(connections)]
    peers = [await ctx.open() for _ in topics]
    for _ in range(5):
        for peer, (topic, _payload) in zip(peers, topics, strict=True):
            peer.send(get_topic(topic.id), fetch(topic.id, 0, 65536))
        for peer, (topic, payload) in zip(peers, topics, strict=True):
            frame = await peer.frame(topic_response("2.1/connections"))
            said = (read_json(frame.payload) or {}).get("id")
            ctx.check(
                said == topic.id, "field:id", f"the answer must be about {topic.id}, not {said}"
            )
            reply = await peer.frame(answer(Command.FETCH_RESPONSE, "2.1/connections"))
            ctx.check(
                ctx.read(peer, reply).data == payload, "data", f"topic {topic.id} has other data"
            )


for _connections, _topics in ((2, 2), (2, 3), (3, 2), (8, 5)):
    register(
        f"mix/{_connections}-connections-{_topics}-topics", "10.2/producer-order",
        f"{_connections} connections that write to {_topics} topics in turn keep their order.",
        partial(_topics_and_connections, connections=_connections, topics=_topics), weight=2,
    )  # fmt: skip
register("mix/equal-ids", "10.4/other-producer",
         "Two producers with equal batch ids lose nothing.", _equal_ids, weight=2)  # fmt: skip
register("mix/equal-length", "4.2/all-acked",
         "A batch with a known id and other bytes of the same length is not a repetition.",
         _equal_length)  # fmt: skip
register("mix/same-to-two-topics", "4.2/all-acked",
         "A batch that is sent to two topics is stored in both.",
         partial(_same_to_two_topics, elsewhere=True))  # fmt: skip
register("mix/same-to-two-topics-here", "4.2/all-acked",
         "A batch that one connection sends to two topics is stored in both, or refused.",
         partial(_same_to_two_topics, elsewhere=False))  # fmt: skip
register("mix/reader-beside-writer", "4.2/receipt-everywhere",
         "A reader on another connection sees each batch once it is acknowledged.",
         _reader_beside_writer, weight=2)  # fmt: skip
register("mix/refused-beside-served", "11/others",
         "Refusals on one connection leave the answers of another one alone.",
         _refused_beside_served, weight=2)  # fmt: skip
for _count in (2, 9, 33):
    register(f"mix/each-its-own-{_count}", "2.1/connections",
             f"{_count} connections that ask at the same moment get their own answers.",
             partial(_each_its_own, connections=_count), weight=2 + _count // 8)  # fmt: skip
