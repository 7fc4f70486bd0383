"""What is told of topics that are large or came again, and of commits that are refused."""

from collections.abc import Sequence
from functools import partial

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import SPECIFIED
from lance_conformance.server.cases.variation.common import created, register, send_all
from lance_conformance.server.expect import ack, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import commit_offset
from lance_conformance.wire.control import (
    LIST_TOPICS,
    create_topic,
    create_topic_with_retention,
    delete_topic,
    get_topic,
    ingest,
    read_json,
)

GROWTH = (1, 40, 300, 5000, 100_000)
"""Bytes by which a log grows between two questions."""
AGAIN = 3
"""How often a topic of the same name is created."""
BEYOND = (1, 1 << 20, 1 << 33)

# -- refused commits -------------------------------------------------------------------------------


async def _end_told(ctx: CaseContext) -> None:
    """Asked again whenever the log has grown, on two connections."""
    topic, other, end = await ctx.topic(), await ctx.open(), 0
    refused = ctx.error(ErrorCode.OFFSET_OUT_OF_RANGE, cite="5.14/beyond-end")
    for size in GROWTH:
        end += len(await ctx.store(topic, ctx.values(1, size)))
        for peer in (ctx.side, other):
            for more in BEYOND:
                frame = commit_offset(topic.id, ctx.consumer, end + more)
                reply = await peer.ask(frame, refused)
                details = (read_json(reply.payload) or {}).get("details")
                said = details.get("end_offset") if isinstance(details, dict) else None
                told = f"details.end_offset must be {end}, not {said}"
                ctx.check(said == end, "field:details", told)


register("size/refused-commits", "5.14/beyond-end",
         "A commit beyond the end is refused with the end of now, however large the log is.",
         _end_told, dialects=SPECIFIED, weight=2)  # fmt: skip

# -- large topics ----------------------------------------------------------------------------------


async def _counted(ctx: CaseContext, counts: Sequence[int], size: int, field: str) -> None:
    """Asked after each of several batches."""
    topic, right = await ctx.topic(), {"end_offset": 0, "record_count": 0}
    for count in counts:
        frame = ingest(topic.id, ctx.batch(), ctx.values(count, size))
        async with ctx.precondition("storing a batch"):
            await ctx.side.ask(frame, ack(frame.batch_id))
        right["end_offset"] += len(frame.payload)
        right["record_count"] += count
        reply = await ctx.side.ask(get_topic(topic.id), topic_response("5.5/get"))
        said = (read_json(reply.payload) or {}).get(field)
        ctx.check(said == right[field], f"field:{field}", f"{field} is {right[field]}, not {said}")


for _name, _counts, _size, _words in (
    ("300-records", (250, 7, 43), 4, "300 records"),
    ("70000-records", (1, 1100, 68_899), 1, "70,000 records"),
    ("3-mb", (1, 300, 2700), 1000, "3 MB"),
):
    for _field in ("record_count", "end_offset"):
        _slug = _field.replace("_", "-")
        register(f"size/{_slug}-of-{_name}", f"6.2/{_slug}",
                 f"GetTopic tells the {_field} of a topic with {_words}.",
                 partial(_counted, counts=_counts, size=_size, field=_field),
                 dialects=SPECIFIED, weight=3)  # fmt: skip


async def _fetched(ctx: CaseContext, count: int, size: int) -> None:
    """All of it in as few answers as the target likes; each announces what it brings."""
    topic, at = await ctx.topic(), 0
    payload = await ctx.store(topic, ctx.values(count, size))
    while at < len(payload):
        got = await ctx.fetch(topic, at, 8 << 20)
        told = f"{got.bytes_returned} bytes are announced from {at} on, {len(got.data)} come"
        ctx.check(got.bytes_returned == len(got.data), "field:bytes_returned", told)
        ctx.check(got.data and payload.startswith(got.data, at), "data", "other data come back")
        at += len(got.data)


for _count, _size in ((70, 1000), (30, 100_000)):
    register(f"size/announced-of-{_count * _size}", "5.9/bytes-returned",
             f"An answer with up to {_count * _size} bytes announces as many.",
             partial(_fetched, count=_count, size=_size), weight=3)  # fmt: skip

# -- topics that came again ------------------------------------------------------------------------


async def _listed(ctx: CaseContext, field: str) -> None:
    """Created again and again, with limits and without, among others."""
    async with ctx.precondition("creating topics"):
        topics = [topic.id for topic in await created(ctx, 5)]
        name, last = ctx.name(), 0
        for number in range(AGAIN):
            limited = create_topic_with_retention(name, 1 << 20, 1 << 30)
            request = limited if number % 2 else create_topic(name)
            reply = await ctx.side.ask(request, topic_response("5.3/answer"))
            last = int((read_json(reply.payload) or {}).get("id") or 0)
            if number < AGAIN - 1:
                await ctx.confirm(Topic(last, name))
                await ctx.side.ask(delete_topic(last), topic_response("5.6/delete"))
        await send_all(ctx.side, [ingest(last, ctx.batch(), ctx.values(2))])
    reply = await ctx.side.ask(LIST_TOPICS, topic_response("5.4/list"))
    rows = (read_json(reply.payload) or {}).get("topics") or []
    listed = {row.get("id"): row for row in rows if isinstance(row, dict)}
    for topic_id in (*topics, last):
        reply = await ctx.side.ask(get_topic(topic_id), topic_response("5.5/get"))
        told, row = read_json(reply.payload) or {}, listed.get(topic_id) or {}
        same = field not in row or row[field] == told.get(field)
        ctx.check(same, f"field:{field}", f"{field} of {topic_id} is listed as {row.get(field)}, "
                  f"and GetTopic says {told.get(field)}")  # fmt: skip


for _field, _clause in (("created_at", "6.2/created-at"), ("topic_epoch", "6.1/epoch")):
    register(f"each/listed-{_field.replace('_', '-')}", _clause,
             f"The list tells the {_field} of a topic that GetTopic tells.",
             partial(_listed, field=_field), weight=3, dialects=SPECIFIED)  # fmt: skip


async def _epochs(ctx: CaseContext, count: int) -> None:
    """The number of topics of this name that there were."""
    name, said = ctx.name(), []
    for number in range(1, count + 1):
        reply = await ctx.side.ask(create_topic(name), topic_response("5.3/answer"))
        body = read_json(reply.payload) or {}
        said.append(body.get("topic_epoch"))
        topic_id = int(body.get("id") or 0)
        if number < count:
            await ctx.confirm(Topic(topic_id, name))
            await ctx.side.ask(delete_topic(topic_id), topic_response("5.6/delete"))
    whole = [each for each in said if isinstance(each, int)]
    rising = whole == sorted(set(whole))
    ctx.check(rising and len(whole) == count, "field:topic_epoch", f"the epochs were {said}")


register("num/epochs-5", "6.1/epoch", "Each of 5 topics of one name has an epoch of its own.",
         partial(_epochs, count=5), dialects=SPECIFIED, weight=3)  # fmt: skip
