"""Each answer: its header, the types in its JSON, names in it, and wide and many values."""

from collections.abc import Callable
from functools import partial

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import BOTH, SPECIFIED
from lance_conformance.server.cases.variation.common import (
    created,
    holds,
    joined,
    register,
    send_all,
)
from lance_conformance.server.cases.variation.number import FEW, SYNCED, USUAL
from lance_conformance.server.consumers import pushed, subscribe_ack
from lance_conformance.server.expect import ack, answer, topic_response
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.consumers import CLUSTER_STATUS, commit_offset, subscribe
from lance_conformance.wire.control import (
    LIST_TOPICS,
    create_topic,
    create_topic_with_retention,
    delete_topic,
    get_topic,
    ingest,
    read_json,
    set_retention,
)
from lance_conformance.wire.frame import Command, Frame
from lance_conformance.wire.partitions import create_partitioned

Body = dict[str, object]


def _bodies(value: object) -> list[Body]:
    """All objects in a JSON value."""
    if isinstance(value, dict):
        inner = [body for each in value.values() for body in _bodies(each)]
        return [value, *inner]
    return [body for each in value for body in _bodies(each)] if isinstance(value, list) else []


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


NUMBERS = frozenset({
    "id", "created_at", "topic_epoch", "max_age_secs", "max_bytes", "deleted", "topic_id",
    "start_offset", "end_offset", "record_count", "node_id", "leader_id", "current_term",
    "node_count", "healthy_nodes", "code",
})  # fmt: skip
WORDS = frozenset({"name", "mode", "message"})
YES_NO = frozenset({"is_leader", "quorum_available"})
NOTHING = frozenset({"leader_id", "max_age_secs", "max_bytes"})
"""Fields that may be null: there is no leader, or no limit."""
Made = Callable[[CaseContext, int], Frame]
ANSWERS: tuple[tuple[str, str, str, int, Made, tuple[str, ...], tuple[str, ...]], ...] = (
    ("create", "CreateTopic", "5.3/answer", Command.TOPIC_RESPONSE,
     lambda ctx, _: create_topic(ctx.name()), (), BOTH),
    ("create-limited", "CreateTopicWithRetention", "5.11/answer", Command.TOPIC_RESPONSE,
     lambda ctx, _: create_topic_with_retention(ctx.name(), 3600, 1 << 30), (), BOTH),
    ("get", "GetTopic", "5.5/get", Command.TOPIC_RESPONSE,
     lambda _, topic: get_topic(topic), (), BOTH),
    ("list", "ListTopics", "5.4/list", Command.TOPIC_RESPONSE, lambda _, __: LIST_TOPICS, (), BOTH),
    ("retention", "SetRetention", "5.10/answer", Command.TOPIC_RESPONSE,
     lambda _, topic: set_retention(topic, 3600, 1 << 30), (), BOTH),
    ("delete", "DeleteTopic", "5.6/delete", Command.TOPIC_RESPONSE,
     lambda _, topic: delete_topic(topic), (), BOTH),
    ("status", "GetClusterStatus", "16.5/status-fields", Command.CLUSTER_STATUS_RESPONSE,
     lambda _, __: CLUSTER_STATUS, ("cluster-status",), BOTH),
    ("error", "a GetTopic that is refused", "12.1/json", Command.ERROR_RESPONSE,
     lambda ctx, _: get_topic(ctx.unknown_topic), (), SPECIFIED),
)  # fmt: skip
"""Name, request in words, clause, command, request, capabilities and dialects."""


async def _types(ctx: CaseContext, command: int, made: Made, clause: str) -> None:
    """Numbers are numbers, not texts; what a field means stands in its own clause."""
    topic = await ctx.disposable_topic()
    reply = await ctx.side.ask(made(ctx, topic.id), answer(command, clause))
    bodies = _bodies(read_json(reply.payload))
    ctx.check(bodies, "body:not-json", "the answer must be a JSON object")
    for body in bodies:
        for name, value in body.items():
            if value is None and name in NOTHING:
                continue
            right = (
                _whole(value) if name in NUMBERS
                else isinstance(value, str) if name in WORDS
                else isinstance(value, bool) if name in YES_NO
                else True
            )  # fmt: skip
            ctx.check(right, f"field:{name}", f"{name} must not be {value!r:.60}")


async def _header(ctx: CaseContext, command: int, made: Made, clause: str) -> None:
    """Timestamp, record count and topic of its header are 0."""
    topic = await ctx.disposable_topic()
    reply = await ctx.side.ask(made(ctx, topic.id), answer(command, clause))
    said = reply.timestamp_ns, reply.record_count, reply.topic_id
    ctx.check(said == (0, 0, 0), "field:other", f"timestamp, count and topic must be 0: {said}")


for _name, _words, _clause, _command, _made, _needs, _dialects in ANSWERS:
    register(
        f"each/types-of-{_name}", _clause, f"Each field in the answer to {_words} has its type.",
        partial(_types, command=_command, made=_made, clause=_clause),
        needs=_needs, dialects=_dialects,
    )  # fmt: skip
    register(
        f"each/header-of-answer-{_name}", "5.1/answer-fields",
        f"In the header of the answer to {_words} the fields that have no use are 0.",
        partial(_header, command=_command, made=_made, clause=_clause),
        needs=_needs, dialects=_dialects,
    )  # fmt: skip

# -- names in answers ------------------------------------------------------------------------------

ODD = ('"\\"', "\\u0041", "é<&>'", "\N{GRINNING FACE}\N{LATIN SMALL LETTER SHARP S}", "\\\\x\\n")


async def _quoted(ctx: CaseContext) -> None:
    """Names that are taken come back whole out of each answer."""
    strange = ctx.error(ErrorCode.INVALID_TOPIC_NAME, cite="5.3/name-utf8-kept", text="name")
    for tail in ODD:
        names = [ctx.name(tail), ctx.name(tail)]
        ids: list[int] = []
        for request in (create_topic(names[0]), create_topic_with_retention(names[1], 60, 1 << 30)):
            reply = await ctx.side.ask(request, topic_response("5.3/name-utf8-kept"), strange)
            if reply.batch_id == Command.ERROR_RESPONSE:
                break
            body = read_json(reply.payload) or {}
            name = names[len(ids)]
            said = body.get("name")
            ctx.check(said == name, "field:name", f"{name!r} was created, {said!r} is told")
            ids.append(int(body.get("id") or 0))
        for name, topic_id in zip(names, ids, strict=False):
            reply = await ctx.side.ask(get_topic(topic_id), topic_response("5.3/name-utf8-kept"))
            said = (read_json(reply.payload) or {}).get("name")
            ctx.check(said == name, "field:name", f"{name!r} was created, {said!r} is told")
            await ctx.side.ask(create_topic(name), ctx.error(*ANY_ERROR, cite="12.2/topic-exists"))
        reply = await ctx.side.ask(LIST_TOPICS, topic_response("5.3/name-utf8-kept"))
        rows = (read_json(reply.payload) or {}).get("topics") or []
        listed = {row.get("id"): row.get("name") for row in rows if isinstance(row, dict)}
        told = [listed.get(topic_id) for topic_id in ids]
        ctx.check(told == names[: len(ids)], "field:topics", f"{names} are listed as {told}")


async def _limited_names(ctx: CaseContext, size: int) -> None:
    """Two names that differ in their last byte only are two names, told whole."""
    start = ctx.name("-")
    start += "x" * (size - 1 - len(start))
    for last in "ab":
        request = create_topic_with_retention(start + last, 3600, 1 << 30)
        reply = await ctx.side.ask(request, topic_response("5.11/name-length"))
        said = (read_json(reply.payload) or {}).get("name")
        ctx.check(said == start + last, "field:name", f"{size} bytes were sent: {said!r:.80}")


async def _long_list(ctx: CaseContext, count: int) -> None:
    """Many topics with long names, in an answer that is large."""
    async with ctx.precondition("creating the topics"):
        topics = await created(ctx, count, size=250)
    reply = await ctx.side.ask(LIST_TOPICS, topic_response("5.4/list"))
    rows = (read_json(reply.payload) or {}).get("topics") or []
    listed = {row.get("id"): row.get("name") for row in rows if isinstance(row, dict)}
    missing = [topic for topic in topics if listed.get(topic.id) != topic.name]
    ctx.check(not missing, "field:topics", f"{len(missing)} of {count} topics are not listed whole")


register("each/odd-names", "5.3/name-utf8-kept",
         "Names with quotes, backslashes and signs come back whole out of each answer.",
         _quoted, weight=4, dialects=SPECIFIED)  # fmt: skip
for _size in (65, 129, 250):
    register(f"size/limited-name-of-{_size}", "5.11/name-length",
             f"All {_size} bytes of the name of a topic with limits count.",
             partial(_limited_names, size=_size))  # fmt: skip
for _count in (9, 65):
    register(f"size/list-of-{_count}", "5.4/list",
             f"A list has {_count} names of 250 bytes.", partial(_long_list, count=_count),
             weight=2 + _count // SYNCED)  # fmt: skip

# -- wide and many values --------------------------------------------------------------------------


async def _subscribed_far(ctx: CaseContext, bit: int) -> None:
    """It is refused as beyond the end, or taken as it is: it is not the low bits of it."""
    topic, payload = await ctx.filled(2, 12)
    where = len(payload) // 2 + (1 << bit)
    codes = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.INVALID_OFFSET
    refused = ctx.error(*codes, cite="AMB-18")
    taken = subscribe_ack(ctx.consumer, where, cite="AMB-21")
    peer = await ctx.open()
    peer.send(subscribe(topic.id, ctx.consumer, where))
    await ctx.expect(peer, specified=[refused, taken], deployed=[taken])


async def _push_limits(ctx: CaseContext, bit: int) -> None:
    """A Max Batch Bytes that is a power of two is not taken for nothing."""
    topic, payload = await ctx.filled(4, 20)
    peer = await ctx.open()
    request = subscribe(topic.id, ctx.consumer, 0, 1 << bit)
    await peer.ask(request, subscribe_ack(ctx.consumer, 0, cite="5.12/ack"))
    got = ctx.read(peer, await peer.frame(pushed(topic.id, "5.12/push"))).data
    ctx.check(got == payload, "data", f"Max Batch Bytes {1 << bit} must bring {len(payload)} bytes")


async def _acked_ids(ctx: CaseContext) -> None:
    """Ids of one bit each, and each inverted, in one connection's batches."""
    topic, peer = await ctx.topic(), await ctx.open()
    ids = [*(1 << bit for bit in range(64)), *(2**64 - 1 ^ 1 << bit for bit in range(64))]
    frames = [ingest(topic.id, number, ctx.values(1, 4)) for number in ids]
    for frame in frames:
        await peer.ask(frame, ack(frame.batch_id, "4.2/batch-id"))
    await holds(ctx, topic, joined(frames))


async def _partitions(ctx: CaseContext, count: int) -> None:
    """All of them are told, each has an id of its own, and the last takes records."""
    name = ctx.name()
    reply = await ctx.side.ask(create_partitioned(name, count), topic_response("5.2/partitioned"))
    topics = (read_json(reply.payload) or {}).get("topics")
    rows = [each for each in topics if isinstance(each, dict)] if isinstance(topics, list) else []
    names = [row.get("name") for row in rows]
    wanted = [f"{name}-{number}" for number in range(count)]
    ctx.check(names == wanted, "field:topics", f"{count} partitions must be told: {names!r:.120}")
    ids = [int(row.get("id") or 0) for row in rows]
    ctx.check(len(set(ids)) == count, "field:id", f"{count} partitions need as many ids")
    frame = ingest(ids[-1], ctx.batch(), ctx.values(1))
    await ctx.side.ask(frame, ack(frame.batch_id, "5.2/partition-topic"))


async def _committing_consumers(ctx: CaseContext, count: int) -> None:
    """One consumer commits for many topics; each commit is of its topic."""
    async with ctx.precondition("creating, storing and committing"):
        topics = await created(ctx, count)
        frames = [
            ingest(topic.id, ctx.batch(), ctx.values(2, 4 + number % 5))
            for number, topic in enumerate(topics)
        ]
        await send_all(ctx.side, frames)
        ends = {frame.topic_id: len(frame.payload) for frame in frames}
        ctx.side.send(*(commit_offset(topic, ctx.consumer, end) for topic, end in ends.items()))
        for _ in ends:
            await ctx.side.frame(answer(Command.COMMIT_ACK, "5.14/ack"))
    peer = await ctx.open()
    for topic, end in ends.items():
        acked = subscribe_ack(ctx.consumer, end, cite="5.14/by-topic")
        await peer.ask(subscribe(topic, ctx.consumer), acked)
        peer.drop()
        peer = await ctx.open()


for _bit in (8, 16, 31, 32, 48, 53, 63):
    register(f"width/subscribe-offset-bit-{_bit}", "5.12/beyond-end",
             f"Bit {_bit} of the Start Offset of a Subscribe counts.",
             partial(_subscribed_far, bit=_bit))  # fmt: skip
for _bit in (8, 16, 24, 31):
    register(f"width/push-max-bit-{_bit}", "5.12/max-batch-bytes",
             f"Max Batch Bytes {1 << _bit} is not nothing.", partial(_push_limits, bit=_bit),
             needs=("push",), dialects=SPECIFIED)  # fmt: skip
register("width/acked-ids", "4.2/batch-id", "An Ack has all 64 bits of the id of its batch.",
         _acked_ids, weight=3)  # fmt: skip
for _count in FEW:
    register(f"num/partitions-{_count}", "5.2/partitioned",
             f"A topic has {_count} partitions.", partial(_partitions, count=_count),
             needs=("partitions",), dialects=SPECIFIED, weight=2 + _count // SYNCED,
             thorough=_count not in USUAL)  # fmt: skip
    register(f"num/committed-topics-{_count}", "5.14/by-topic",
             f"A consumer has commits of its own in {_count} topics.",
             partial(_committing_consumers, count=_count), dialects=SPECIFIED,
             weight=2 + _count // SYNCED, thorough=_count not in USUAL)  # fmt: skip
