"""Cases about control commands whose payload or code is wrong, and retention (AMB-26)."""

from collections.abc import Sequence
from dataclasses import replace

from lance_conformance.engine.expectations import Allowed
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import answer, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import (
    create_topic_with_retention,
    fetch,
    get_topic,
    read_json,
    set_retention,
)
from lance_conformance.wire.frame import Command, Frame

NO_SUCH_COMMAND = 0x5A
A_WEEK = 604_800
ONE_GIB = 1_073_741_824


async def _invalid(
    ctx: CaseContext, right: Frame, wrong: Frame, good: Allowed, deployed: Sequence[Allowed]
) -> None:
    """`specified` answers InvalidPayload; `deployed` does what the published server does."""
    await ctx.assert_pair(
        right,
        wrong,
        answer=good,
        specified=[ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-26")],
        deployed=deployed,
    )


def _said(ctx: CaseContext, text: str) -> list[Allowed]:
    return [ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-26", text=text)]


@case("ctl/unknown-command", "5.2/unknown")
async def unknown_command(ctx: CaseContext) -> None:
    """A command that nobody defines is answered with an ErrorResponse."""
    right = get_topic((await ctx.topic()).id)
    await _invalid(
        ctx,
        right,
        replace(right, batch_id=NO_SUCH_COMMAND),
        topic_response("5.5/get"),
        _said(ctx, "invalid client command"),
    )


@case("ctl/server-command", "5.2/server-only", quick=False)
async def server_command(ctx: CaseContext) -> None:
    """A command that only servers send is refused when it comes from a client."""
    right = get_topic((await ctx.topic()).id)
    await _invalid(
        ctx,
        right,
        replace(right, batch_id=Command.TOPIC_RESPONSE),
        topic_response("5.5/get"),
        _said(ctx, "invalid client command"),
    )


@case("ctl/command-above-255", "5.2/unknown", quick=False)
async def command_above_255(ctx: CaseContext) -> None:
    """The command is the whole Batch ID: 0x104 is not GetTopic.

    The published server looks at the lowest byte only.
    """
    right = get_topic((await ctx.topic()).id)
    good = topic_response("5.5/get")
    await _invalid(
        ctx,
        right,
        replace(right, batch_id=0x100 + right.batch_id),
        good,
        [topic_response("AMB-26")],
    )


@case("ctl/get-short", "5.5/payload")
async def get_short(ctx: CaseContext) -> None:
    """GetTopic with three bytes is refused, not read as some topic."""
    right = get_topic((await ctx.topic()).id)
    wrong = replace(right, payload=right.payload[:3])
    await _invalid(ctx, right, wrong, topic_response("5.5/get"), _said(ctx, "not found"))


@case("ctl/get-long", "5.5/payload", quick=False)
async def get_long(ctx: CaseContext) -> None:
    """GetTopic with five bytes is refused.

    The published server ignores what is too much.
    """
    right = get_topic((await ctx.topic()).id)
    wrong = replace(right, payload=right.payload + b"\0")
    good = topic_response("5.5/get")
    await _invalid(ctx, right, wrong, good, [topic_response("AMB-26")])


async def _fetch(ctx: CaseContext, payload: bytes, deployed: Sequence[Allowed]) -> None:
    right = fetch((await ctx.topic()).id, 0, 1024)
    good = answer(Command.FETCH_RESPONSE, "5.9/answer")
    wrong = replace(right, payload=(right.payload + payload) if payload else b"")
    await _invalid(ctx, right, wrong, good, deployed)


@case("ctl/fetch-short", "5.8/payload")
async def fetch_short(ctx: CaseContext) -> None:
    """Fetch with fifteen bytes is refused."""
    right = fetch((await ctx.topic()).id, 0, 1024)
    good = answer(Command.FETCH_RESPONSE, "5.9/answer")
    wrong = replace(right, payload=right.payload[:15])
    await _invalid(ctx, right, wrong, good, _said(ctx, "too small"))


@case("ctl/fetch-empty", "5.8/payload", quick=False)
async def fetch_empty(ctx: CaseContext) -> None:
    """Fetch without a payload is refused."""
    await _fetch(ctx, b"", _said(ctx, "required"))


@case("ctl/fetch-long", "5.8/payload", quick=False)
async def fetch_long(ctx: CaseContext) -> None:
    """Fetch with seventeen bytes is refused.

    The published server ignores what is too much.
    """
    await _fetch(ctx, b"\0", [answer(Command.FETCH_RESPONSE, "AMB-26")])


@case("ret/create", "5.11/answer")
async def retention_create(ctx: CaseContext) -> None:
    """CreateTopicWithRetention answers with the topic and its limits, name length in 16 bits."""
    name = ctx.name()
    frame = await ctx.side.ask(
        create_topic_with_retention(name, A_WEEK, ONE_GIB), topic_response("5.11/answer")
    )
    _has(ctx, frame, name=name, max_age_secs=A_WEEK, max_bytes=ONE_GIB)


def _has(ctx: CaseContext, frame: Frame, **right: object) -> None:
    body = read_json(frame.payload) or {}
    for key, value in right.items():
        ctx.check(body.get(key) == value, f"field:{key}", f"{key} must be {value!r}: {dict(body)}")


@case("ret/create-name-cut", "5.11/payload", quick=False)
async def retention_create_name_cut(ctx: CaseContext) -> None:
    """CreateTopicWithRetention whose name length runs past the payload is refused."""
    right = create_topic_with_retention(ctx.name(), A_WEEK, ONE_GIB)
    wrong = replace(right, payload=b"\xff\xff" + right.payload[2:])
    await _invalid(ctx, right, wrong, topic_response("5.11/answer"), _said(ctx, "invalid payload"))


@case("ret/set", "5.10/answer")
async def retention_set(ctx: CaseContext) -> None:
    """SetRetention answers with the topic and the limits that are in force now."""
    topic = await ctx.topic()
    frame = await ctx.side.ask(
        set_retention(topic.id, A_WEEK, ONE_GIB), topic_response("5.10/answer")
    )
    _has(ctx, frame, topic_id=topic.id, max_age_secs=A_WEEK, max_bytes=ONE_GIB)


@case("ret/set-unknown", "5.10/not-found")
async def retention_set_unknown(ctx: CaseContext) -> None:
    """SetRetention for a topic that does not exist is refused."""
    refused = [ctx.error(ErrorCode.TOPIC_NOT_FOUND, cite="5.10/not-found", text="not found")]
    await ctx.assert_pair(
        set_retention((await ctx.topic()).id, A_WEEK, ONE_GIB),
        set_retention(ctx.unknown_topic, A_WEEK, ONE_GIB),
        answer=topic_response("5.10/answer"),
        specified=refused,
        deployed=refused,
    )


@case("ret/set-short", "5.10/payload", quick=False)
async def retention_set_short(ctx: CaseContext) -> None:
    """SetRetention with nineteen bytes is refused."""
    right = set_retention((await ctx.topic()).id, A_WEEK, ONE_GIB)
    wrong = replace(right, payload=right.payload[:19])
    text = "invalid set retention payload"
    await _invalid(ctx, right, wrong, topic_response("5.10/answer"), _said(ctx, text))
