"""What another connection deleted is gone for a connection that has used it, too."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from lance_conformance.engine.expectations import Allowed
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import BOTH, SPECIFIED
from lance_conformance.server.cases.variation.common import NOT_FOUND, batches, register
from lance_conformance.server.consumers import commit_ack, subscribe_ack, unsubscribe_ack
from lance_conformance.server.expect import ack, answer, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.consumers import commit_offset, offset_for_time, subscribe, unsubscribe
from lance_conformance.wire.control import delete_topic, fetch, get_topic, set_retention
from lance_conformance.wire.frame import Command, Frame

LIMITS = (1 << 30, 1 << 40)


class Use(NamedTuple):
    """What a connection asks about a topic, before and after it was deleted.

    Attributes:
        name: In the id.
        words: The request in a sentence.
        made: The request, given the topic and the end of its log.
        right: Its answer while the topic is there.
        needs: Capabilities.
        dialects: Where it is refused for a topic that is gone.
    """

    name: str
    words: str
    made: Callable[[CaseContext, Topic, int], Frame]
    right: Callable[[CaseContext, Frame], Allowed]
    needs: tuple[str, ...] = ()
    dialects: tuple[str, ...] = BOTH


INGEST = Use(
    "ingest", "a batch", lambda ctx, topic, _: batches(ctx, topic, 1)[0],
    lambda _, frame: ack(frame.batch_id),
)  # fmt: skip
FETCH = Use(
    "fetch", "a Fetch", lambda _, topic, __: fetch(topic.id, 0, 1000),
    lambda _, __: answer(Command.FETCH_RESPONSE, "5.9/answer"),
)  # fmt: skip
USES = (
    INGEST,
    FETCH,
    Use("commit", "a CommitOffset", lambda ctx, topic, _: commit_offset(topic.id, ctx.consumer, 0),
        lambda ctx, _: commit_ack(ctx.consumer, cite="5.14/ack"), dialects=SPECIFIED),
    Use("get", "a GetTopic", lambda _, topic, __: get_topic(topic.id),
        lambda _, __: topic_response("5.5/get")),
    Use("retention", "a SetRetention", lambda _, topic, __: set_retention(topic.id, *LIMITS),
        lambda _, __: topic_response("5.10/answer")),
    Use("time", "an OffsetForTime", lambda _, topic, __: offset_for_time(topic.id, 0),
        lambda _, __: answer(Command.OFFSET_FOR_TIME_RESPONSE, "5.2/offset-for-time"),
        ("offset-for-time",), SPECIFIED),
    Use("subscribe", "a Subscribe",
        lambda ctx, topic, end: subscribe(topic.id, ctx.consumer, end),
        lambda ctx, _: subscribe_ack(ctx.consumer, cite="5.12/ack")),
)  # fmt: skip


async def _used(ctx: CaseContext, peer: Peer, topic: Topic, use: Use) -> int:
    """Store, fetch and ask on one connection; the end of the log comes back."""
    end = 0
    async with ctx.precondition("using the topic"):
        for each in (INGEST, FETCH, use):
            frame = each.made(ctx, topic, end)
            await peer.ask(frame, each.right(ctx, frame))
            end += len(frame.payload) if each is INGEST else 0
        if use.name == "subscribe":
            await peer.ask(unsubscribe(topic.id, ctx.consumer), unsubscribe_ack("5.13/ack"))
    return end


async def _deleted(ctx: CaseContext, use: Use) -> None:
    """The connection has stored, fetched and asked the same before another one deletes it."""
    topic, peer = await ctx.disposable_topic(), await ctx.open()
    end = await _used(ctx, peer, topic, use)
    async with ctx.precondition("deleting the topic on another connection"):
        other = await ctx.open()
        await other.ask(delete_topic(topic.id), topic_response("5.6/delete"))
    await peer.ask(use.made(ctx, topic, end), ctx.error(*NOT_FOUND, cite="5.6/everywhere"))


for _use in USES:
    register(f"mix/deleted-elsewhere-{_use.name}", "5.6/everywhere",
             f"{_use.words[0].upper()}{_use.words[1:]} is refused on a connection that has used "
             "a topic which another one has deleted.", partial(_deleted, use=_use),
             needs=_use.needs, dialects=_use.dialects)  # fmt: skip
