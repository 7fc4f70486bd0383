"""Each command: what holds for frames, topics and ids holds for every kind of frame."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from lance_conformance.engine.expectations import Allowed, closed
from lance_conformance.server.case_context import ALIVE, CaseContext
from lance_conformance.server.cases.registry import BOTH, SPECIFIED
from lance_conformance.server.cases.variation.common import NOT_FOUND, holds, register
from lance_conformance.server.consumers import commit_ack, subscribe_ack, unsubscribe_ack
from lance_conformance.server.expect import ack, answer, keepalive, topic_response
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.consumers import commit_offset, offset_for_time, subscribe, unsubscribe
from lance_conformance.wire.control import (
    KEEPALIVE,
    LIST_TOPICS,
    create_topic,
    delete_topic,
    fetch,
    get_topic,
    ingest,
    read_json,
    set_retention,
)
from lance_conformance.wire.frame import Command, Flag, Frame

BITS = (8, 16, 24, 31)


@dataclass(frozen=True, slots=True)
class Question:
    """One kind of frame.

    Attributes:
        name: In ids.
        words: In sentences.
        frame: Makes one about a topic.
        right: What answers it.
        missing: The clause about a topic that is not there; empty where none is named.
        needs: Capabilities without which it is not asked.
        dialects: Where a topic that is not there is refused.
    """

    name: str
    words: str
    frame: Callable[[CaseContext, int], Frame]
    right: Callable[[CaseContext, Frame], Allowed]
    missing: str = ""
    needs: tuple[str, ...] = ()
    dialects: tuple[str, ...] = BOTH


def _response(clause: str) -> Callable[[CaseContext, Frame], Allowed]:
    return lambda _, __: topic_response(clause)


QUESTIONS = (
    Question("keepalive", "a Keepalive", lambda _, __: KEEPALIVE, lambda _, __: keepalive()),
    Question("ingest", "an Ingest", lambda ctx, topic: ingest(topic, ctx.batch(), ctx.values(1)),
             lambda _, frame: ack(frame.batch_id), "6.4/unknown-topic"),
    Question("list", "a ListTopics", lambda _, __: LIST_TOPICS, lambda _, __: ALIVE),
    Question("create", "a CreateTopic", lambda ctx, _: create_topic(ctx.name()),
             _response("5.3/answer")),
    Question("get", "a GetTopic", lambda _, topic: get_topic(topic), _response("5.5/get"),
             "5.5/not-found"),
    Question("retention", "a SetRetention", lambda _, topic: set_retention(topic, 7200, 1 << 30),
             _response("5.10/answer"), "5.10/not-found"),
    Question("fetch", "a Fetch", lambda _, topic: fetch(topic, 0, 1024),
             lambda _, __: answer(Command.FETCH_RESPONSE, "5.9/answer"), "5.9/not-found"),
    Question("commit", "a CommitOffset", lambda ctx, topic: commit_offset(topic, ctx.consumer, 0),
             lambda ctx, _: commit_ack(ctx.consumer, cite="5.14/ack"), "5.14/not-found",
             dialects=SPECIFIED),
    Question("time", "an OffsetForTime", lambda _, topic: offset_for_time(topic, 0),
             lambda _, __: answer(Command.OFFSET_FOR_TIME_RESPONSE, "5.2/offset-for-time"),
             "5.2/offset-for-time-not-found", ("offset-for-time",)),
    Question("subscribe", "a Subscribe", lambda ctx, topic: subscribe(topic, ctx.consumer),
             lambda ctx, _: subscribe_ack(ctx.consumer, cite="5.12/ack"), "5.12/not-found"),
)  # fmt: skip
"""Subscribe comes last: nothing is asked beside it."""


def _of(ctx: CaseContext, frame: Frame, **changes: int | bytes) -> Frame:
    """The frame with other fields, each of them wrong alone."""
    if "header_crc" in changes:
        return replace(frame, header_crc=ctx.dialect.compute(frame.prefix) ^ 1 << 7)
    if "payload_crc" in changes:
        return replace(frame, payload_crc=ctx.dialect.compute(frame.payload) ^ 1 << 7)
    if "flags" in changes:
        return replace(frame, flags=frame.flags | int(changes["flags"]))
    return replace(frame, **changes)  # type: ignore[arg-type]  # a field and its value


async def _closes(ctx: CaseContext, question: Question, clause: str, field: str,
                  value: int | bytes) -> None:  # fmt: skip
    """The right frame first, then the wrong one on a connection of its own."""
    topic = await ctx.topic()
    async with ctx.precondition("the same frame without its fault"):
        right = question.frame(ctx, topic.id)
        await (await ctx.open()).ask(right, question.right(ctx, right))
    peer = await ctx.open()
    wrong = question.frame(ctx, topic.id)
    peer.send_faulty(_of(ctx, wrong, **{field: value}), field)
    await peer.expect(closed(clause))


async def _refused(ctx: CaseContext, question: Question) -> None:
    """Encrypted is of no meaning here: the frame is refused and does nothing (AMB-33)."""
    topic = await ctx.topic()
    async with ctx.precondition("the same frame without its fault"):
        right = question.frame(ctx, topic.id)
        await (await ctx.open()).ask(right, question.right(ctx, right))
    peer = await ctx.open()
    peer.send_faulty(_of(ctx, question.frame(ctx, topic.id), flags=Flag.ENCRYPTED), "flags")
    await peer.expect(ctx.error(ErrorCode.INVALID_PAYLOAD, cite="3.3/encrypted"))
    await peer.ask(KEEPALIVE, keepalive("12.1/stays"))


async def _gone(ctx: CaseContext, question: Question) -> None:
    """The topic was there: its id is known as that of a deleted one (AMB-34)."""
    topic = await ctx.disposable_topic()
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
    deleted = ctx.error(ErrorCode.TOPIC_DELETED, cite="12.2/topic-deleted")
    peer = await ctx.open()
    for _ in range(2):
        await peer.ask(question.frame(ctx, topic.id), deleted)


async def _another(ctx: CaseContext, question: Question) -> None:
    """Ids that differ from a topic's in one high bit are no topics, and nothing is done to it."""
    topic, payload = await ctx.filled(2)
    peer = await ctx.open()
    for bit in BITS:
        other = topic.id | 1 << bit
        if other == topic.id:
            continue
        missing = ctx.error(*NOT_FOUND, cite=question.missing, text="not found")
        async with ctx.precondition("making sure that there is no such topic"):
            await ctx.side.ask(get_topic(other), missing)
        refused = ctx.error(*NOT_FOUND, cite=question.missing, text="topic")
        await peer.ask(question.frame(ctx, other), refused)
    await holds(ctx, topic, payload)


async def _header(ctx: CaseContext, question: Question) -> None:
    """The payload says what is asked; a header that says more may be refused, or passed over."""
    topic, other = await ctx.topic(), await ctx.topic()
    for field, value in (("topic_id", other.id), ("record_count", 3), ("timestamp_ns", 1 << 60)):
        peer = await ctx.open()
        frame = question.frame(ctx, topic.id)
        peer.send_faulty(_of(ctx, frame, **{field: value}), field)
        refused = ctx.error(*ANY_ERROR, cite="AMB-26")
        event = await peer.expect(question.right(ctx, frame), refused)
        if isinstance(event, Frame) and event.batch_id == Command.TOPIC_RESPONSE:
            body = read_json(event.payload) or {}
            told = body.get("id", body.get("topic_id", topic.id))
            ctx.check(told == topic.id, "field:id", f"asked about {topic.id}, told about {told}")


FAULTS: tuple[tuple[str, str, str, int | bytes, str, tuple[str, ...]], ...] = (
    ("magic", "11.1/magic", "magic", b"LANX", "wrong magic bytes", BOTH),
    ("version", "11.2/version", "version", 2, "another version", BOTH),
    ("header-crc", "11.3/header-crc", "header_crc", 0, "a wrong header checksum",
     BOTH),
    ("payload-crc", "11.3/payload-crc", "payload_crc", 0, "a wrong payload checksum",
     BOTH),
    ("reserved", "3.2/reserved", "reserved", 0x0001, "the first reserved byte set", SPECIFIED),
    ("reserved-high", "3.2/reserved", "reserved", 0x8000, "the last reserved bit set", SPECIFIED),
    ("bit-7", "3.3/bit-7", "flags", int(Flag.RESERVED), "flag bit 7", SPECIFIED),
)  # fmt: skip
"""Name, clause, field, value, words and dialects."""
WITHOUT_PAYLOAD = ("keepalive", "list")
UNTOLD = ("ingest", "time", "commit", "subscribe")
"""The header of an Ingest names its topic, and the answers to the others name none."""


for _question in QUESTIONS:
    _words = _question.words
    _beginning = _words[0].upper() + _words[1:]
    for _name, _clause, _field, _value, _fault, _dialects in FAULTS:
        if _name == "payload-crc" and _question.name in WITHOUT_PAYLOAD:
            continue
        register(
            f"each/{_name}-{_question.name}", _clause,
            f"{_beginning} with {_fault} closes the connection.",
            partial(_closes, question=_question, clause=_clause, field=_field, value=_value),
            dialects=_dialects, needs=_question.needs, weight=2,
            **({"twin_of": "hdr/version-2-closes"} if _name == "version" else {}),
        )  # fmt: skip
    register(
        f"each/encrypted-{_question.name}", "3.3/encrypted",
        f"{_beginning} that is marked as encrypted is refused.",
        partial(_refused, question=_question), dialects=SPECIFIED, needs=_question.needs, weight=2,
    )  # fmt: skip
    if not _question.missing:
        continue
    for _name, _clause, _title, _asked, _dialects in (
        (
            "deleted",
            "12.2/topic-deleted",
            f"{_beginning} for a deleted topic is refused as TopicDeleted.",
            _gone,
            SPECIFIED,
        ),
        (
            "another-id",
            "6.1/unique-id",
            f"All bits of the topic id of {_words} count.",
            _another,
            _question.dialects,
        ),
        (
            "header-of",
            "5.9/own-topic",
            f"The payload of {_words} says which topic is meant, not its header.",
            _header,
            BOTH,
        ),
    ):
        if _name != "header-of" or _question.name not in UNTOLD:
            register(
                f"each/{_name}-{_question.name}", _clause, _title,
                partial(_asked, question=_question),
                dialects=_dialects, needs=_question.needs, weight=2,
            )  # fmt: skip


async def _unsubscribed(ctx: CaseContext) -> None:
    """An Unsubscribe from a topic whose id differs in one high bit ends nothing."""
    topic = await ctx.topic()
    peer = await ctx.open()
    async with ctx.precondition("subscribing"):
        await peer.ask(
            subscribe(topic.id, ctx.consumer), subscribe_ack(ctx.consumer, cite="5.12/ack")
        )
    refused = ctx.error(*ANY_ERROR, cite="5.13/only-that")
    for bit in BITS:
        other = topic.id | 1 << bit
        if other != topic.id:
            acked = unsubscribe_ack("5.13/without")
            await peer.ask(unsubscribe(other, ctx.consumer), acked, refused)
    payload = await ctx.store(topic, ctx.values(1))
    got = ctx.read(peer, await peer.frame(answer(Command.FETCH_RESPONSE, "5.13/only-that")))
    ctx.check(got.data == payload, "data", "what is pushed must be what was stored")


register("each/another-id-unsubscribe", "5.13/only-that",
         "All bits of the topic id of an Unsubscribe count.", _unsubscribed,
         needs=("push",), dialects=SPECIFIED)  # fmt: skip
