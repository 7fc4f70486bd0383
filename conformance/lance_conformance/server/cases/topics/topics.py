"""Cases about the life of a topic (LWP sections 5.3 to 5.6 and 6)."""

from collections.abc import Collection, Mapping
from typing import Any

from lance_conformance.engine.expectations import Allowed
from lance_conformance.server.anchor import drop_anchor, weigh_anchor
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import (
    LIST_TOPICS,
    create_topic,
    delete_topic,
    get_topic,
    read_json,
)
from lance_conformance.wire.frame import Command, Frame

MOST_TOPICS = 3000
"""Topics that the case about ids creates at most."""


async def _json(ctx: CaseContext, frame: Frame, cite: str) -> Mapping[str, Any]:
    reply = await ctx.side.ask(frame, topic_response(cite))
    return read_json(reply.payload) or {}


def _is_topic(ctx: CaseContext, body: Mapping[str, Any], topic: Topic) -> None:
    for key, right in (("id", topic.id), ("name", topic.name)):
        ctx.check(body.get(key) == right, f"field:{key}", f"{key} must be {right!r}: {dict(body)}")
    created = body.get("created_at")
    whole = isinstance(created, int) and not isinstance(created, bool)
    ctx.check(whole, "field:created_at", f"created_at must be a whole number, is {created!r}")


def _user_id(ctx: CaseContext, body: Mapping[str, Any]) -> int:
    topic_id = body.get("id")
    if isinstance(topic_id, int) and not isinstance(topic_id, bool) and 0 < topic_id < 2**32:
        return topic_id
    raise ctx.side.failure("field:id", f"the id of a topic must be 1 or more, is {topic_id!r}")


async def _listed(ctx: CaseContext) -> list[Mapping[str, Any]]:
    body = await _json(ctx, LIST_TOPICS, "5.4/list")
    topics = body.get("topics")
    ctx.check(isinstance(topics, list), "field:topics", "ListTopics must bring a list 'topics'")
    return [topic for topic in topics or [] if isinstance(topic, dict)]


async def _delete(ctx: CaseContext, topic: Topic) -> None:
    async with ctx.precondition("deleting a topic"):
        await _json(ctx, delete_topic(topic.id), "5.6/delete")


@case("top/create", "5.3/answer")
async def create(ctx: CaseContext) -> None:
    """CreateTopic answers with the new topic's id, its name and when it was created."""
    name = ctx.name()
    body = await _json(ctx, create_topic(name), "5.3/answer")
    _is_topic(ctx, body, Topic(_user_id(ctx, body), name))


@case("top/create-duplicate", "12.2/topic-exists")
async def create_duplicate(ctx: CaseContext) -> None:
    """CreateTopic with a name that is taken is refused."""
    taken = await ctx.topic()
    refused = [
        ctx.error(ErrorCode.TOPIC_ALREADY_EXISTS, cite="12.2/topic-exists", text="already exists")
    ]
    await ctx.assert_pair(
        create_topic(ctx.name()),
        create_topic(taken.name),
        answer=topic_response("5.3/answer"),
        specified=refused,
        deployed=refused,
    )


@case("top/list", "5.4/list")
async def list_topics(ctx: CaseContext) -> None:
    """ListTopics shows every topic once, with its id, name and creation time."""
    for topic in (await ctx.topic(), await ctx.topic()):
        found = [body for body in await _listed(ctx) if body.get("name") == topic.name]
        ctx.check(len(found) == 1, "list", f"{topic.name} is listed {len(found)} times, not once")
        _is_topic(ctx, found[0], topic)


@case("top/get", "5.5/get")
async def get(ctx: CaseContext) -> None:
    """GetTopic answers with the topic that was asked for."""
    await ctx.topic()
    topic = await ctx.topic()
    await ctx.topic()
    _is_topic(ctx, await _json(ctx, get_topic(topic.id), "5.5/get"), topic)


def _not_found(ctx: CaseContext, *codes: int, cite: str) -> list[Allowed]:
    return [ctx.error(*codes, cite=cite, text="not found")]


@case("top/get-unknown", "5.5/not-found")
async def get_unknown(ctx: CaseContext) -> None:
    """GetTopic for an id that never existed answers TopicNotFound."""
    refused = _not_found(ctx, ErrorCode.TOPIC_NOT_FOUND, cite="5.5/not-found")
    await ctx.assert_pair(
        get_topic((await ctx.topic()).id),
        get_topic(ctx.unknown_topic),
        answer=topic_response("5.5/get"),
        specified=refused,
        deployed=refused,
    )


@case("top/delete", "5.6/delete")
async def delete(ctx: CaseContext) -> None:
    """DeleteTopic answers with the id that was deleted."""
    topic = await ctx.disposable_topic()
    body = await _json(ctx, delete_topic(topic.id), "5.6/delete")
    deleted = body.get("deleted")
    right = deleted == topic.id and not isinstance(deleted, bool)
    ctx.check(right, "field:deleted", f"deleted must be {topic.id}, is {deleted!r}")


@case("top/delete-unknown", "12.2/topic-not-found")
async def delete_unknown(ctx: CaseContext) -> None:
    """DeleteTopic for an id that never existed answers TopicNotFound."""
    refused = _not_found(ctx, ErrorCode.TOPIC_NOT_FOUND, cite="12.2/topic-not-found")
    await ctx.assert_pair(
        delete_topic((await ctx.disposable_topic()).id),
        delete_topic(ctx.unknown_topic),
        answer=topic_response("5.6/delete"),
        specified=refused,
        deployed=refused,
    )


@case("top/delete-twice", "12.2/topic-not-found", quick=False)
async def delete_twice(ctx: CaseContext) -> None:
    """A topic is deleted once; the second time it is not there."""
    topic = await ctx.disposable_topic()
    await _delete(ctx, topic)
    refused = _not_found(
        ctx, ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND, cite="12.2/topic-not-found"
    )
    await ctx.side.ask(delete_topic(topic.id), *refused)


@case("top/deleted-is-gone", "5.6/gone")
async def deleted_is_gone(ctx: CaseContext) -> None:
    """GetTopic refuses a topic that was deleted."""
    topic = await ctx.disposable_topic()
    await _delete(ctx, topic)
    refused = _not_found(ctx, ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND, cite="5.6/gone")
    await ctx.side.ask(get_topic(topic.id), *refused)


@case("top/deleted-code", "12.2/topic-deleted", dialects=("specified",))
async def deleted_code(ctx: CaseContext) -> None:
    """A deleted topic is told from one that never existed: TopicDeleted, not TopicNotFound."""
    topic = await ctx.disposable_topic()
    await _delete(ctx, topic)
    await ctx.side.ask(get_topic(topic.id), ctx.error(ErrorCode.TOPIC_DELETED, cite="AMB-34"))


@case("top/deleted-not-listed", "5.6/gone")
async def deleted_not_listed(ctx: CaseContext) -> None:
    """ListTopics does not show a topic that was deleted."""
    topic = await ctx.disposable_topic()
    await _delete(ctx, topic)
    names = [body.get("name") for body in await _listed(ctx)]
    ctx.check(topic.name not in names, "list", f"{topic.name} was deleted and is still listed")


@case("top/id-not-reused", "6.1/identity", alone=True)
async def id_not_reused(ctx: CaseContext) -> None:
    """The id of a deleted topic is not given to another one, not even when no topic is left.

    The kit's own anchor goes as well, so that a target without other topics has none. A published
    server then begins again with 1 once ListTopics was asked. New topics are created until there is
    one beyond every id that was known: where ids come back, the target is past them afterwards.
    """
    first = await ctx.disposable_topic()
    await ctx.store(first, ctx.values(1))
    await _delete(ctx, first)
    anchor = await weigh_anchor(ctx)
    try:
        async with ctx.precondition("listing the topics"):
            await _listed(ctx)
        again = await _created_again(ctx, {first.id, anchor}, first.id)
    finally:
        if anchor is not None:
            await drop_anchor(ctx)
    if again is None:
        return
    payload = await ctx.store(again, ctx.values(2))
    kept = "are there" if await ctx.stored(again) == payload else "are lost"
    told = f"the id {again.id} was given away twice; records acknowledged under it {kept}"
    ctx.check(False, "field:id", told)


async def _created_again(ctx: CaseContext, gone: Collection[int | None], last: int) -> Topic | None:
    """Create topics until an id is new for certain; return one whose id had another topic."""
    again = None
    for _ in range(MOST_TOPICS):
        topic = await ctx.topic()
        again = topic if topic.id in gone else again
        if topic.id > last:
            return again
    raise ctx.side.failure("field:id", f"{MOST_TOPICS} new topics all have ids up to {last}")


@case("top/name-free-again", "5.6/gone", quick=False)
async def name_free_again(ctx: CaseContext) -> None:
    """The name of a deleted topic can be taken again, and its old records are gone."""
    first = await ctx.disposable_topic()
    await ctx.store(first, ctx.values(2))
    await _delete(ctx, first)
    body = await _json(ctx, create_topic(first.name), "5.6/gone")
    data = await ctx.stored(Topic(_user_id(ctx, body), first.name))
    ctx.check(data == b"", "data", f"the new topic begins with {len(data)} bytes of the old one")


@case("top/default-topic", "6.1/default-topic", quick=False)
async def default_topic(ctx: CaseContext) -> None:
    """GetTopic 0 names the default topic.

    The published server has no metadata of it and says so.
    """
    named = topic_response("AMB-34")
    ctx.side.send(get_topic(0))
    missing = _not_found(ctx, ErrorCode.TOPIC_NOT_FOUND, cite="AMB-34")
    event = await ctx.expect(ctx.side, specified=[named], deployed=[named, *missing])
    if isinstance(event, Frame) and event.batch_id == Command.TOPIC_RESPONSE:
        name = (read_json(event.payload) or {}).get("name")
        ctx.check(name == "default", "field:name", f"topic 0 must be 'default', is {name!r}")


@case("top/default-not-listed", "6.1/default-not-listed", quick=False)
async def default_not_listed(ctx: CaseContext) -> None:
    """ListTopics shows the topics that users created, not topic 0."""
    await ctx.topic()
    ids = [body.get("id") for body in await _listed(ctx)]
    ctx.check(0 not in ids, "list", "topic 0 is listed")
