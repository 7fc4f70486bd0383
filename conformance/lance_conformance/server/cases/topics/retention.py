"""More cases about retention (LWP sections 5.10 and 5.11, AMB-08)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import ack, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import (
    create_topic_with_retention,
    delete_topic,
    get_topic,
    ingest,
    read_json,
    set_retention,
)
from lance_conformance.wire.frame import Frame

A_WEEK = 604_800
ONE_GIB = 2**30
BEYOND_DOUBLES = 2**53 + 1
LIMITS = 16
"""Bytes of the two limits after a name."""


async def _json(ctx: CaseContext, frame: Frame, cite: str) -> Mapping[str, Any]:
    return read_json((await ctx.side.ask(frame, topic_response(cite))).payload) or {}


async def _created(ctx: CaseContext) -> Topic:
    """A topic made by CreateTopicWithRetention."""
    name = ctx.name()
    async with ctx.precondition("creating a topic with retention"):
        body = await _json(ctx, create_topic_with_retention(name, A_WEEK, ONE_GIB), "5.11/answer")
    topic_id = body.get("id")
    return Topic(topic_id or 0, name)


def _create_named(name: bytes) -> Frame:
    """CreateTopicWithRetention with any bytes for a name."""
    plain = create_topic_with_retention("", A_WEEK, ONE_GIB)
    head = len(name).to_bytes(2, "little") + name
    return replace(plain, payload=head + plain.payload[-LIMITS:])


async def _refused(ctx: CaseContext, name: bytes, cite: str, code: int, text: str) -> None:
    refused = [ctx.error(code, cite=cite, text=text)]
    await ctx.assert_pair(
        _create_named(ctx.name().encode()),
        _create_named(name),
        answer=topic_response("5.11/answer"),
        specified=refused,
        deployed=refused,
    )


@case("ret/create-empty-name", "5.11/name", quick=False)
async def create_empty_name(ctx: CaseContext) -> None:
    """CreateTopicWithRetention without a name is refused."""
    code = ErrorCode.INVALID_TOPIC_NAME
    right = _create_named(ctx.name().encode())
    refused = [ctx.error(code, ErrorCode.INVALID_PAYLOAD, cite="5.11/name")]
    await ctx.assert_pair(
        right,
        _create_named(b""),
        answer=topic_response("5.11/answer"),
        specified=refused,
        deployed=refused,
    )


@case("ret/create-slash", "5.11/name", quick=False)
async def create_slash(ctx: CaseContext) -> None:
    """CreateTopicWithRetention judges names as CreateTopic does: no slash."""
    await _refused(ctx, ctx.name("/x").encode(), "AMB-24", ErrorCode.INVALID_TOPIC_NAME, "invalid")


@case("ret/create-too-long", "5.11/name-length", quick=False)
async def create_too_long(ctx: CaseContext) -> None:
    """CreateTopicWithRetention refuses a name of 256 bytes, whose length no longer fits a byte."""
    name = ctx.name("-")
    wrong = (name + "x" * (256 - len(name))).encode()
    code = ErrorCode.INVALID_TOPIC_NAME
    refused = [ctx.error(code, cite="5.11/name-length")]
    await ctx.assert_pair(
        _create_named(wrong[:255]),
        _create_named(wrong),
        answer=topic_response("5.11/answer"),
        specified=refused,
        deployed=refused,
    )


@case("ret/create-not-utf8", "5.11/name-utf8", quick=False)
async def create_not_utf8(ctx: CaseContext) -> None:
    """CreateTopicWithRetention refuses a name that is not UTF-8."""
    wrong = ctx.name("-").encode() + b"\xc3\x28"
    await _refused(ctx, wrong, "AMB-34", ErrorCode.INVALID_TOPIC_NAME, "invalid")


@case("ret/create-duplicate", "5.11/topic-exists")
async def create_duplicate(ctx: CaseContext) -> None:
    """CreateTopicWithRetention with a name that is taken is refused."""
    taken = (await ctx.topic()).name.encode()
    code = ErrorCode.TOPIC_ALREADY_EXISTS
    await _refused(ctx, taken, "5.11/topic-exists", code, "already exists")


@case("ret/create-long", "5.11/trailing", quick=False)
async def create_long(ctx: CaseContext) -> None:
    """CreateTopicWithRetention with a byte after its limits is refused.

    The published server ignores what is too much.
    """
    right = create_topic_with_retention(ctx.name(), A_WEEK, ONE_GIB)
    # Another name, else the second one would be refused because it is taken.
    other = create_topic_with_retention(ctx.name(), A_WEEK, ONE_GIB)
    await ctx.assert_pair(
        right,
        replace(other, payload=other.payload + b"\0"),
        answer=topic_response("5.11/answer"),
        specified=[ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-26")],
        deployed=[topic_response("AMB-26")],
    )


@case("ret/created-is-a-topic", "5.11/same-topic")
async def created_is_a_topic(ctx: CaseContext) -> None:
    """A topic created with retention is found under its id."""
    topic = await _created(ctx)
    body = await _json(ctx, get_topic(topic.id), "5.5/get")
    said = body.get("id"), body.get("name")
    right = topic.id, topic.name
    ctx.check(said == right, "field:id", f"the topic must be {right}, is {said}")


@case("ret/created-stores", "5.11/stores", quick=False)
async def created_stores(ctx: CaseContext) -> None:
    """A topic created with retention takes records and gives them back."""
    await _stores(ctx, await _created(ctx), "5.11/stores")


async def _stores(ctx: CaseContext, topic: Topic, cite: str) -> None:
    frame = ingest(topic.id, ctx.batch(), ctx.values(2))
    await ctx.side.ask(frame, ack(frame.batch_id, cite))
    got = await ctx.fetch(topic, 0)
    ctx.check(got.data == frame.payload, "data", "the records must come back as they were")


@case("ret/create-no-limits", "5.11/no-limit", quick=False)
async def create_no_limits(ctx: CaseContext) -> None:
    """A topic created with limits of 0 has none, and keeps what is stored."""
    frame = create_topic_with_retention(ctx.name(), 0, 0)
    body = await _json(ctx, frame, "5.11/answer")
    said = body.get("max_age_secs"), body.get("max_bytes")
    ctx.check(said == (0, 0), "field:max_bytes", f"both limits must be 0, are {said}")
    await _stores(ctx, Topic(int(body.get("id") or 0), ""), "5.11/no-limit")


@case("ret/set-no-limits", "5.10/no-limit", quick=False)
async def set_no_limits(ctx: CaseContext) -> None:
    """Setting both limits to 0 says that there are none, and takes nothing away."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(2))
    body = await _json(ctx, set_retention(topic.id, 0, 0), "5.10/answer")
    said = body.get("max_age_secs"), body.get("max_bytes")
    ctx.check(said == (0, 0), "field:max_bytes", f"both limits must be 0, are {said}")
    got = await ctx.fetch(topic, 0)
    ctx.check(got.data == payload, "data", "the records must still be there")


@case("ret/set-keeps-records", "5.10/keeps", quick=False)
async def set_keeps_records(ctx: CaseContext) -> None:
    """Limits that are not reached change nothing about the log."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(4))
    async with ctx.precondition("setting retention"):
        await _json(ctx, set_retention(topic.id, A_WEEK, ONE_GIB), "5.10/answer")
    payload += await ctx.store(topic, ctx.values(2))
    got = await ctx.fetch(topic, 0)
    ctx.check(got.data == payload, "data", "all records must be there, at their offsets")


@case("ret/set-large-numbers", "5.10/exact", quick=False)
async def set_large_numbers(ctx: CaseContext) -> None:
    """Limits have 64 bits: one beyond 2^53 comes back to the last digit."""
    topic = await ctx.topic()
    frame = set_retention(topic.id, BEYOND_DOUBLES, BEYOND_DOUBLES + 2)
    body = await _json(ctx, frame, "5.10/answer")
    said = body.get("max_age_secs"), body.get("max_bytes")
    right = BEYOND_DOUBLES, BEYOND_DOUBLES + 2
    ctx.check(said == right, "field:max_bytes", f"the limits must be {right}, are {said}")


@case("ret/set-again", "5.10/last-counts", quick=False)
async def set_again(ctx: CaseContext) -> None:
    """Limits can be set again; the answer has the new ones."""
    topic = await ctx.topic()
    for right in ((A_WEEK, ONE_GIB), (2 * A_WEEK, 2 * ONE_GIB)):
        body = await _json(ctx, set_retention(topic.id, *right), "5.10/answer")
        said = body.get("max_age_secs"), body.get("max_bytes")
        ctx.check(said == right, "field:max_bytes", f"the limits must be {right}, are {said}")


@case("ret/set-deleted", "5.6/gone", quick=False)
async def set_deleted(ctx: CaseContext) -> None:
    """SetRetention refuses a topic that was deleted."""
    topic = await ctx.disposable_topic()
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
    codes = ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND
    await ctx.side.ask(
        set_retention(topic.id, A_WEEK, ONE_GIB),
        ctx.error(*codes, cite="5.6/gone", text="not found"),
    )
