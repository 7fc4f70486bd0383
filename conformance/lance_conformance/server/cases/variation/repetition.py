"""Repetition: one question has one answer, and another one once the facts have changed."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from lance_conformance.server.case_context import ALIVE, CaseContext, Topic
from lance_conformance.server.cases.variation.common import (
    NONCE,
    NOT_FOUND,
    batches,
    holds,
    joined,
    register,
)
from lance_conformance.server.consumers import commit_ack, subscribe_ack
from lance_conformance.server.expect import ack, answer, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import (
    CLUSTER_STATUS,
    commit_offset,
    offset_for_time,
    read_consumer_at,
    subscribe,
)
from lance_conformance.wire.control import (
    LIST_TOPICS,
    create_topic,
    delete_topic,
    fetch,
    get_topic,
    ingest,
    read_json,
)
from lance_conformance.wire.frame import Command, Frame

TIMES = 5

Ask = Callable[[CaseContext, Peer, Topic], Awaitable[bytes]]


async def _get(ctx: CaseContext, peer: Peer, topic: Topic) -> bytes:
    del ctx
    return (await peer.ask(get_topic(topic.id), topic_response("5.5/get"))).payload


async def _list(ctx: CaseContext, peer: Peer, topic: Topic) -> bytes:
    """What is listed of this topic; other cases have topics of theirs."""
    rows = (read_json((await peer.ask(LIST_TOPICS, ALIVE)).payload) or {}).get("topics") or []
    mine = [row for row in rows if isinstance(row, dict) and row.get("id") == topic.id]
    ctx.check(len(mine) == 1, "field:topics", f"topic {topic.id} is listed {len(mine)} times")
    return repr(mine).encode()


async def _fetch(ctx: CaseContext, peer: Peer, topic: Topic) -> bytes:
    del ctx
    right = answer(Command.FETCH_RESPONSE, "5.8/repeatable")
    return (await peer.ask(fetch(topic.id, 0, 65536), right)).payload


async def _fetch_some(ctx: CaseContext, peer: Peer, topic: Topic) -> bytes:
    del ctx
    right = answer(Command.FETCH_RESPONSE, "5.8/repeatable")
    return (await peer.ask(fetch(topic.id, 25, 30), right)).payload


async def _beyond(ctx: CaseContext, peer: Peer, topic: Topic) -> bytes:
    any_error = ctx.error(
        ErrorCode.INVALID_OFFSET, ErrorCode.OFFSET_OUT_OF_RANGE, cite="5.9/beyond-end"
    )
    allowed = [answer(Command.CATCHING_UP, "AMB-18"), answer(Command.FETCH_RESPONSE, "AMB-18")]
    frame = await peer.ask(fetch(topic.id, 5_000_000, 65536), *allowed, any_error)
    return frame.batch_id.to_bytes(8, "big") + frame.payload


async def _missing(ctx: CaseContext, peer: Peer, topic: Topic) -> bytes:
    del topic
    missing = ctx.error(*NOT_FOUND, cite="5.5/not-found", text="not found")
    return (await peer.ask(get_topic(ctx.unknown_topic), missing)).payload


async def _taken(ctx: CaseContext, peer: Peer, topic: Topic) -> bytes:
    taken = ctx.error(ErrorCode.TOPIC_ALREADY_EXISTS, cite="12.2/topic-exists", text="exists")
    return (await peer.ask(create_topic(topic.name), taken)).payload


async def _time(ctx: CaseContext, peer: Peer, topic: Topic) -> bytes:
    del ctx
    right = answer(Command.OFFSET_FOR_TIME_RESPONSE, "5.2/offset-for-time")
    return (await peer.ask(offset_for_time(topic.id, 0), right)).payload


async def _node(ctx: CaseContext, peer: Peer, topic: Topic) -> bytes:
    """What does not change of the status: who the node is."""
    del ctx, topic
    right = answer(Command.CLUSTER_STATUS_RESPONSE, "16.5/status")
    body: Mapping[str, Any] = read_json((await peer.ask(CLUSTER_STATUS, right)).payload) or {}
    return repr([body.get(name) for name in ("node_id", "mode", "leader_id")]).encode()


async def _same(ctx: CaseContext, ask: Ask) -> None:
    """Asked five times on one connection, then on another one."""
    topic, _ = await ctx.filled()
    first = await ask(ctx, ctx.side, topic)
    for number in range(2, TIMES + 1):
        again = await ask(ctx, ctx.side, topic)
        ctx.check(
            again == first,
            "unlike",
            f"the {number}. answer differs: {again[:80]!r}, not {first[:80]!r}",
        )
    elsewhere = await ask(ctx, await ctx.open(), topic)
    ctx.check(elsewhere == first, "unlike", "another connection is answered differently")


async def _resumes(ctx: CaseContext) -> None:
    """A commit is not used up by resuming."""
    topic, _ = await ctx.filled(4)
    async with ctx.precondition("committing"):
        right = commit_ack(ctx.consumer, cite="5.14/ack")
        await ctx.side.ask(commit_offset(topic.id, ctx.consumer, 25), right)
    for number in range(1, TIMES + 1):
        peer = await ctx.open()
        frame = await peer.ask(
            subscribe(topic.id, ctx.consumer), subscribe_ack(ctx.consumer, cite="5.12/ack")
        )
        said = read_consumer_at(frame.payload)
        ctx.check(said and said.offset == 25, "field:offset", f"resumed {number} times, at {said}")
        peer.drop()


async def _grows(ctx: CaseContext) -> None:
    """A Fetch that found the end finds what was stored since, on each connection that asked."""
    topic = await ctx.topic()
    peers = [ctx.side, await ctx.open()]
    frames: list[Frame] = []
    for frame in batches(ctx, topic, TIMES):
        for peer in peers:
            await ctx.fetch(topic, len(joined(frames)), peer=peer)
            await ctx.fetch(topic, 0, peer=peer)
        async with ctx.precondition("storing a batch"):
            await ctx.side.ask(frame, ack(frame.batch_id))
        frames.append(frame)
        for peer in peers:
            got = await ctx.fetch(topic, 0, peer=peer)
            ctx.check(got.data == joined(frames), "data", f"{len(frames)} batches must be there")
            new = await ctx.fetch(topic, len(joined(frames[:-1])), peer=peer)
            ctx.check(
                new.data == frame.payload, "data", "the new batch must be found from its start"
            )


async def _end_told(ctx: CaseContext) -> None:
    """The sentinel brings the end of now, each time."""
    topic = await ctx.topic()
    size = 0
    for frame in batches(ctx, topic, TIMES):
        async with ctx.precondition("storing a batch"):
            await ctx.side.ask(frame, ack(frame.batch_id))
        size += len(frame.payload)
        for _ in range(2):
            got = await ctx.fetch(topic, 2**64 - 1)
            ctx.check(
                got.next_offset == size,
                "field:next_offset",
                f"the end is {size}, not {got.next_offset}",
            )


async def _listed_now(ctx: CaseContext) -> None:
    """The list follows each creation and each deletion."""
    topics: list[Topic] = []
    for _ in range(3):
        topics.append(await ctx.disposable_topic())
        ctx.check(
            {topic.id for topic in topics} <= await _ids(ctx), "field:topics",
            f"a topic that was just created is not listed as the {len(topics)}.",
        )  # fmt: skip
    for topic in topics:
        async with ctx.precondition("deleting a topic"):
            await ctx.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
        ctx.check(
            topic.id not in await _ids(ctx), "field:topics", "a topic that was deleted is listed"
        )


async def _ids(ctx: CaseContext) -> set[object]:
    rows = (read_json((await ctx.side.ask(LIST_TOPICS, ALIVE)).payload) or {}).get("topics") or []
    return {row.get("id") for row in rows if isinstance(row, dict)}


async def _committed_now(ctx: CaseContext) -> None:
    """Resuming follows each commit, forwards and back."""
    topic, _ = await ctx.filled(4)
    for offset in (25, 50, 75, 25, 100):
        async with ctx.precondition("committing"):
            right = commit_ack(ctx.consumer, cite="5.14/ack")
            await ctx.side.ask(commit_offset(topic.id, ctx.consumer, offset), right)
        peer = await ctx.open()
        frame = await peer.ask(
            subscribe(topic.id, ctx.consumer), subscribe_ack(ctx.consumer, cite="5.12/ack")
        )
        said = read_consumer_at(frame.payload)
        ctx.check(
            said and said.offset == offset, "field:offset", f"committed {offset}, resumed at {said}"
        )
        peer.drop()


async def _again(ctx: CaseContext) -> None:
    """A batch that is sent five times, on several connections, is stored once."""
    topic = await ctx.topic()
    frame = ingest(topic.id, NONCE | 77, ctx.values(2))
    async with ctx.precondition("storing the batch"):
        await ctx.side.ask(frame, ack(frame.batch_id))
    for _ in range(TIMES):
        peer = await ctx.open()
        for _ in range(2):
            await peer.ask(frame, ack(frame.batch_id, "10.4/retry-elsewhere"))
    await holds(ctx, topic, frame.payload)


for _name, _clause, _title, _ask, _needs in (
    ("get", "6.2/created-at", "GetTopic says the same of a topic each time.", _get, ()),
    ("list", "5.4/list", "ListTopics says the same of a topic each time.", _list, ()),
    ("fetch", "5.8/repeatable", "A Fetch brings the same each time.", _fetch, ()),
    ("fetch-some", "5.8/repeatable", "A Fetch of some records brings the same each time.",
     _fetch_some, ()),
    ("fetch-beyond", "5.9/beyond-end", "A Fetch beyond the end is answered alike each time.",
     _beyond, ()),
    ("missing", "12.2/same-code", "A topic that is not there is missed alike each time.",
     _missing, ()),
    ("taken", "12.2/topic-exists", "A name that is taken is refused each time.", _taken, ()),
    ("time", "5.2/offset-for-time", "OffsetForTime has the same answer each time.",
     _time, ("offset-for-time",)),
    ("status", "16.5/status", "The status names the same node each time.",
     _node, ("cluster-status",)),
):  # fmt: skip
    register(f"rep/{_name}", _clause, _title, partial(_same, ask=_ask), needs=_needs)
for _name, _clause, _title, _question in (
    ("resume", "5.12/resume", "A commit is resumed from as often as it is asked for.", _resumes),
    ("grows", "4.2/receipt", "A Fetch that is repeated finds what was stored meanwhile.", _grows),
    ("end", "5.8/end-sentinel", "The end that is told follows what is stored.", _end_told),
    ("listed-now", "5.4/list", "The list follows what is created and deleted.", _listed_now),
    ("committed-now", "5.14/last", "Resuming follows the last commit.", _committed_now),
):
    register(f"rep/{_name}", _clause, _title, _question)
register("rep/retried", "10.4/retry-elsewhere", "A batch that comes ten times more is stored once.",
         _again, dialects=("specified",))  # fmt: skip
