"""More cases about retention (LWP sections 5.10 and 5.11, AMB-08)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lance_conformance.cases.registry import case
from lance_conformance.peer.dialogue import Dialogue, Topic
from lance_conformance.peer.expect import ack, topic_response
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
"""Bytes of the two limits behind a name."""


async def _json(c: Dialogue, frame: Frame, cite: str) -> Mapping[str, Any]:
    return read_json((await c.side.ask(frame, topic_response(cite))).payload) or {}


async def _created(c: Dialogue) -> Topic:
    """A topic made by CreateTopicWithRetention."""
    name = c.name()
    async with c.control("creating a topic with retention"):
        body = await _json(c, create_topic_with_retention(name, A_WEEK, ONE_GIB), "5.11/answer")
    topic_id = body.get("id")
    return Topic(topic_id or 0, name)


def _create_named(name: bytes) -> Frame:
    """CreateTopicWithRetention with any bytes for a name."""
    plain = create_topic_with_retention("", A_WEEK, ONE_GIB)
    head = len(name).to_bytes(2, "little") + name
    return replace(plain, payload=head + plain.payload[-LIMITS:])


async def _refused(c: Dialogue, name: bytes, cite: str, code: int, text: str) -> None:
    refused = [c.error(code, cite=cite, text=text)]
    await c.duel(
        _create_named(c.name().encode()),
        _create_named(name),
        answer=topic_response("5.11/answer"),
        specified=refused,
        deployed=refused,
    )


@case("ret/create-empty-name", "5.11/name", quick=False)
async def create_empty_name(c: Dialogue) -> None:
    """CreateTopicWithRetention without a name is refused."""
    code = ErrorCode.INVALID_TOPIC_NAME
    right = _create_named(c.name().encode())
    refused = [c.error(code, ErrorCode.INVALID_PAYLOAD, cite="5.11/name")]
    await c.duel(
        right,
        _create_named(b""),
        answer=topic_response("5.11/answer"),
        specified=refused,
        deployed=refused,
    )


@case("ret/create-slash", "5.11/name", quick=False)
async def create_slash(c: Dialogue) -> None:
    """CreateTopicWithRetention judges names as CreateTopic does: no slash."""
    await _refused(c, c.name("/x").encode(), "AMB-24", ErrorCode.INVALID_TOPIC_NAME, "invalid")


@case("ret/create-too-long", "5.11/name-length", quick=False)
async def create_too_long(c: Dialogue) -> None:
    """CreateTopicWithRetention refuses a name of 256 bytes, whose length no longer fits a byte."""
    name = c.name("-")
    wrong = (name + "x" * (256 - len(name))).encode()
    code = ErrorCode.INVALID_TOPIC_NAME
    refused = [c.error(code, cite="5.11/name-length")]
    await c.duel(
        _create_named(wrong[:255]),
        _create_named(wrong),
        answer=topic_response("5.11/answer"),
        specified=refused,
        deployed=refused,
    )


@case("ret/create-not-utf8", "5.11/name-utf8", quick=False)
async def create_not_utf8(c: Dialogue) -> None:
    """CreateTopicWithRetention refuses a name that is not UTF-8."""
    wrong = c.name("-").encode() + b"\xc3\x28"
    await _refused(c, wrong, "AMB-34", ErrorCode.INVALID_TOPIC_NAME, "invalid")


@case("ret/create-duplicate", "5.11/topic-exists")
async def create_duplicate(c: Dialogue) -> None:
    """CreateTopicWithRetention with a name that is taken is refused."""
    taken = (await c.topic()).name.encode()
    code = ErrorCode.TOPIC_ALREADY_EXISTS
    await _refused(c, taken, "5.11/topic-exists", code, "already exists")


@case("ret/create-long", "5.11/trailing", quick=False)
async def create_long(c: Dialogue) -> None:
    """CreateTopicWithRetention with a byte behind its limits is refused.

    The published server ignores what is too much.
    """
    right = create_topic_with_retention(c.name(), A_WEEK, ONE_GIB)
    # Another name, else the second one would be refused because it is taken.
    other = create_topic_with_retention(c.name(), A_WEEK, ONE_GIB)
    await c.duel(
        right,
        replace(other, payload=other.payload + b"\0"),
        answer=topic_response("5.11/answer"),
        specified=[c.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-26")],
        deployed=[topic_response("AMB-26")],
    )


@case("ret/created-is-a-topic", "5.11/same-topic")
async def created_is_a_topic(c: Dialogue) -> None:
    """A topic created with retention is found under its id."""
    topic = await _created(c)
    body = await _json(c, get_topic(topic.id), "5.5/get")
    said = body.get("id"), body.get("name")
    right = topic.id, topic.name
    c.check(said == right, "field:id", f"the topic must be {right}, is {said}")


@case("ret/created-stores", "5.11/stores", quick=False)
async def created_stores(c: Dialogue) -> None:
    """A topic created with retention takes records and gives them back."""
    await _stores(c, await _created(c), "5.11/stores")


async def _stores(c: Dialogue, topic: Topic, cite: str) -> None:
    frame = ingest(topic.id, c.batch(), c.values(2))
    await c.side.ask(frame, ack(frame.batch_id, cite))
    got = await c.fetch(topic, 0)
    c.check(got.data == frame.payload, "data", "the records must come back as they were")


@case("ret/create-no-limits", "5.11/no-limit", quick=False)
async def create_no_limits(c: Dialogue) -> None:
    """A topic created with limits of 0 has none, and keeps what is stored."""
    frame = create_topic_with_retention(c.name(), 0, 0)
    body = await _json(c, frame, "5.11/answer")
    said = body.get("max_age_secs"), body.get("max_bytes")
    c.check(said == (0, 0), "field:max_bytes", f"both limits must be 0, are {said}")
    await _stores(c, Topic(int(body.get("id") or 0), ""), "5.11/no-limit")


@case("ret/set-no-limits", "5.10/no-limit", quick=False)
async def set_no_limits(c: Dialogue) -> None:
    """Setting both limits to 0 says that there are none, and takes nothing away."""
    topic = await c.topic()
    payload = await c.store(topic, c.values(2))
    body = await _json(c, set_retention(topic.id, 0, 0), "5.10/answer")
    said = body.get("max_age_secs"), body.get("max_bytes")
    c.check(said == (0, 0), "field:max_bytes", f"both limits must be 0, are {said}")
    got = await c.fetch(topic, 0)
    c.check(got.data == payload, "data", "the records must still be there")


@case("ret/set-keeps-records", "5.10/keeps", quick=False)
async def set_keeps_records(c: Dialogue) -> None:
    """Limits that are not reached change nothing about the log."""
    topic = await c.topic()
    payload = await c.store(topic, c.values(4))
    async with c.control("setting retention"):
        await _json(c, set_retention(topic.id, A_WEEK, ONE_GIB), "5.10/answer")
    payload += await c.store(topic, c.values(2))
    got = await c.fetch(topic, 0)
    c.check(got.data == payload, "data", "all records must be there, at their offsets")


@case("ret/set-large-numbers", "5.10/exact", quick=False)
async def set_large_numbers(c: Dialogue) -> None:
    """Limits have 64 bits: one beyond 2^53 comes back to the last digit."""
    topic = await c.topic()
    frame = set_retention(topic.id, BEYOND_DOUBLES, BEYOND_DOUBLES + 2)
    body = await _json(c, frame, "5.10/answer")
    said = body.get("max_age_secs"), body.get("max_bytes")
    right = BEYOND_DOUBLES, BEYOND_DOUBLES + 2
    c.check(said == right, "field:max_bytes", f"the limits must be {right}, are {said}")


@case("ret/set-again", "5.10/last-counts", quick=False)
async def set_again(c: Dialogue) -> None:
    """Limits can be set again; the answer has the new ones."""
    topic = await c.topic()
    for right in ((A_WEEK, ONE_GIB), (2 * A_WEEK, 2 * ONE_GIB)):
        body = await _json(c, set_retention(topic.id, *right), "5.10/answer")
        said = body.get("max_age_secs"), body.get("max_bytes")
        c.check(said == right, "field:max_bytes", f"the limits must be {right}, are {said}")


@case("ret/set-deleted", "5.6/gone", quick=False)
async def set_deleted(c: Dialogue) -> None:
    """SetRetention refuses a topic that was deleted."""
    topic = await c.doomed_topic()
    async with c.control("deleting a topic"):
        await c.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
    codes = ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND
    await c.side.ask(
        set_retention(topic.id, A_WEEK, ONE_GIB),
        c.error(*codes, cite="5.6/gone", text="not found"),
    )
