"""More cases about topics: what stays the same, and what belongs to one (LWP section 6)."""

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import (
    LIST_TOPICS,
    create_topic,
    delete_topic,
    get_topic,
    read_json,
)
from lance_conformance.wire.frame import Command, Frame

YEAR_5138 = 100_000_000_000
"""In seconds; as milliseconds it was in 1973."""


async def _json(
    ctx: CaseContext, frame: Frame, cite: str, peer: Peer | None = None
) -> Mapping[str, Any]:
    reply = await (peer or ctx.side).ask(frame, topic_response(cite))
    return read_json(reply.payload) or {}


async def _delete(ctx: CaseContext, topic: Topic) -> None:
    async with ctx.precondition("deleting a topic"):
        await _json(ctx, delete_topic(topic.id), "5.6/delete")


async def _listed(ctx: CaseContext) -> Mapping[object, Mapping[str, Any]]:
    topics = (await _json(ctx, LIST_TOPICS, "5.4/list")).get("topics")
    ctx.check(isinstance(topics, list), "field:topics", "ListTopics must bring a list 'topics'")
    return {topic.get("id"): topic for topic in topics or [] if isinstance(topic, dict)}


@case("top/created-at-stays", "6.2/created-at", quick=False)
async def created_at_stays(ctx: CaseContext) -> None:
    """CreateTopic, GetTopic and ListTopics name the same creation time."""
    created = await _json(ctx, create_topic(ctx.name()), "5.3/answer")
    found = await _json(ctx, get_topic(int(created.get("id") or 0)), "5.5/get")
    listed = (await _listed(ctx)).get(created.get("id"), {})
    times = [body.get("created_at") for body in (created, found, listed)]
    ctx.check(len(set(times)) == 1, "field:created_at", f"one time must come three times: {times}")


@case("top/created-at-seconds", "6.2/created-at-seconds", quick=False)
async def created_at_seconds(ctx: CaseContext) -> None:
    """The creation time counts seconds, as its examples do, not smaller units."""
    created = (await _json(ctx, create_topic(ctx.name()), "5.3/answer")).get("created_at")
    right = isinstance(created, int) and created < YEAR_5138
    ctx.check(right, "field:created_at", f"created_at must be seconds, is {created!r}")


@case("top/ids-differ", "6.1/unique-id")
async def ids_differ(ctx: CaseContext) -> None:
    """Every topic has an id of its own."""
    ids = [(await ctx.topic()).id for _ in range(3)]
    ctx.check(len(set(ids)) == len(ids), "field:id", f"three topics must have three ids: {ids}")


@case("top/known-everywhere", "5.3/everywhere")
async def known_everywhere(ctx: CaseContext) -> None:
    """A topic created on one connection is there for every other one at once."""
    peer = await ctx.open()
    topic = await ctx.topic()
    body = await _json(ctx, get_topic(topic.id), "5.3/everywhere", peer)
    said = body.get("name")
    ctx.check(said == topic.name, "field:name", f"the topic must be {topic.name!r}, is {said!r}")


@case("top/delete-only-that", "5.6/only-that")
async def delete_only_that(ctx: CaseContext) -> None:
    """DeleteTopic deletes one topic and leaves another one and its records alone."""
    neighbour, payload = await ctx.filled(2)
    await _delete(ctx, await ctx.disposable_topic())
    got = await ctx.fetch(neighbour, 0)
    ctx.check(got.data == payload, "data", f"topic {neighbour.id} has lost its records")


@case("top/deleted-everywhere", "5.6/everywhere", quick=False)
async def deleted_everywhere(ctx: CaseContext) -> None:
    """A topic deleted on one connection is gone for every other one at once."""
    topic, peer = await ctx.disposable_topic(), await ctx.open()
    async with ctx.precondition("finding the topic"):
        await _json(ctx, get_topic(topic.id), "5.5/get", peer)
    await _delete(ctx, topic)
    codes = ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND
    await peer.ask(get_topic(topic.id), ctx.error(*codes, cite="5.6/everywhere", text="not found"))


@case("top/create-race", "12.2/topic-exists", quick=False)
async def create_race(ctx: CaseContext) -> None:
    """Of several connections that create one name at the same moment, one succeeds."""
    name = ctx.name()
    peers = [await ctx.open() for _ in range(4)]
    taken = ctx.error(
        ErrorCode.TOPIC_ALREADY_EXISTS, cite="12.2/topic-exists", text="already exists"
    )
    created = topic_response("5.3/answer")
    for peer in peers:
        peer.send(create_topic(name))
    frames = await asyncio.gather(*(peer.frame(created, taken) for peer in peers))
    won = sum(frame.batch_id == Command.TOPIC_RESPONSE for frame in frames)
    ctx.check(won == 1, "count", f"one of four must succeed, {won} did")


@case("top/many", "5.4/many", quick=False)
async def many(ctx: CaseContext) -> None:
    """ListTopics shows all topics, also when there are several."""
    topics = [await ctx.topic() for _ in range(4)]
    listed = await _listed(ctx)
    missing = [topic.id for topic in topics if topic.id not in listed]
    ctx.check(not missing, "list", f"{len(missing)} of {len(topics)} topics are not listed")


@case("top/epoch-rises", "6.1/epoch", dialects=("specified",), quick=False)
async def epoch_rises(ctx: CaseContext) -> None:
    """A topic that is created again has a higher topic_epoch than the one before it."""
    name = ctx.name()
    first = await _json(ctx, create_topic(name), "5.3/answer")
    await _delete(ctx, Topic(int(first.get("id") or 0), name))
    second = await _json(ctx, create_topic(name), "5.3/answer")
    before, now = first.get("topic_epoch"), second.get("topic_epoch")
    rises = isinstance(before, int) and isinstance(now, int) and now > before
    ctx.check(rises, "field:topic_epoch", f"topic_epoch must rise, from {before!r} to {now!r}")


@case("top/epoch-rises-on", "6.1/epoch", dialects=("specified",), quick=False)
async def epoch_rises_on(ctx: CaseContext) -> None:
    """topic_epoch rises with the second, third and fourth creation of a name as well."""
    name, epochs = ctx.name(), []
    for _ in range(4):
        body = await _json(ctx, create_topic(name), "5.3/answer")
        epochs.append(int(body.get("topic_epoch") or 0))
        await _delete(ctx, Topic(int(body.get("id") or 0), name))
    rises = all(now > before for before, now in pairwise(epochs))
    ctx.check(rises, "field:topic_epoch", f"topic_epoch must rise each time: {epochs}")


async def _log_fact(ctx: CaseContext, key: str, right: int) -> None:
    topic = await ctx.topic()
    await ctx.store(topic, ctx.values(3))
    await ctx.store(topic, ctx.values(2))
    said = (await _json(ctx, get_topic(topic.id), "AMB-29")).get(key)
    ctx.check(said == right, f"field:{key}", f"{key} must be {right}, is {said!r}")


@case("top/start-offset", "6.2/start-offset", dialects=("specified",), quick=False)
async def start_offset(ctx: CaseContext) -> None:
    """GetTopic says at which offset the log begins."""
    await _log_fact(ctx, "start_offset", 0)


@case("top/end-offset", "6.2/end-offset", dialects=("specified",), quick=False)
async def end_offset(ctx: CaseContext) -> None:
    """GetTopic says at which offset the log ends."""
    await _log_fact(ctx, "end_offset", 125)


@case("top/record-count", "6.2/record-count", dialects=("specified",), quick=False)
async def record_count(ctx: CaseContext) -> None:
    """GetTopic says how many records the log has."""
    await _log_fact(ctx, "record_count", 5)


@case("top/answer-fields", "5.1/answer-fields", quick=False)
async def answer_fields(ctx: CaseContext) -> None:
    """In the header of a TopicResponse the fields that have no use are 0."""
    topic = await ctx.topic()
    frame = await ctx.side.ask(get_topic(topic.id), topic_response("5.5/get"))
    said = frame.timestamp_ns, frame.record_count, frame.topic_id
    ctx.check(said == (0, 0, 0), "field:other", f"timestamp, count and topic must be 0: {said}")


@case("top/pipelined", "5.5/pipelined", quick=False)
async def pipelined(ctx: CaseContext) -> None:
    """Commands in one write are each answered about their own topic, in order."""
    first, second = await ctx.topic(), await ctx.topic()
    topics = first, first, second
    ctx.side.send(*(get_topic(topic.id) for topic in topics))
    for topic in topics:
        frame = await ctx.side.frame(topic_response("5.5/pipelined"))
        said = (read_json(frame.payload) or {}).get("id")
        ctx.check(
            said == topic.id, "field:id", f"the answer must be about {topic.id}, not {said!r}"
        )
