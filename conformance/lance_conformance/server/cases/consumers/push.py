"""Cases about what a server pushes to subscribers (LWP section 5.12, AMB-21)."""

from collections.abc import Callable

from lance_conformance.engine.expectations import Allowed
from lance_conformance.engine.registry import CaseFunction
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.consumers import (
    commit_ack,
    pushed,
    pushed_under,
    subscribe_ack,
    unsubscribe_ack,
)
from lance_conformance.server.expect import ack, answer, keepalive
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.consumers import commit_offset, subscribe, unsubscribe
from lance_conformance.wire.control import (
    END_OFFSET,
    KEEPALIVE,
    delete_topic,
    fetch,
    ingest,
    read_json,
)
from lance_conformance.wire.frame import Command, FrameKind
from lance_conformance.wire.tlv import RECORD_HEADER, boundaries

RECORD = RECORD_HEADER + 20
"""Bytes of one record as these cases write them."""
PUSHED = answer(Command.FETCH_RESPONSE, "5.12/push")


def push_case(case_id: str, clause: str) -> Callable[[CaseFunction], CaseFunction]:
    """Register a case for servers that push."""
    return case(case_id, clause, dialects=("specified",), needs=("push",), quick=False)


async def _subscribe(
    ctx: CaseContext, topic: Topic, start: int = 0, max_bytes: int = 65536, peer: Peer | None = None
) -> Peer:
    """Subscribe, on a connection of its own unless one is given."""
    peer = peer or await ctx.open()
    async with ctx.precondition("subscribing"):
        await peer.ask(
            subscribe(topic.id, ctx.consumer, start, max_bytes),
            subscribe_ack(ctx.consumer, cite="AMB-21"),
        )
    return peer


async def _pushed(ctx: CaseContext, peer: Peer, size: int, *allowed: Allowed) -> bytes:
    """Collect pushes until there are so many bytes; their form is other cases' concern."""
    data = b""
    while len(data) < size:
        frame = await peer.frame(*(allowed or (PUSHED,)))
        if frame.batch_id == Command.ERROR_RESPONSE:
            continue
        more = ctx.read(peer, frame).data
        ctx.check(more, "data", "a push without data must not come")
        data += more
    return data


@push_case("sub/push-existing", "5.12/push")
async def existing(ctx: CaseContext) -> None:
    """Records that are there already are pushed to a new subscriber."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(3))
    data = await _pushed(ctx, await _subscribe(ctx, topic), len(payload))
    ctx.check(data == payload, "data", "what is pushed must be what was stored")


@push_case("sub/push-new", "5.12/push-new")
async def new(ctx: CaseContext) -> None:
    """Records that are stored later are pushed as they come."""
    topic = await ctx.topic()
    peer = await _subscribe(ctx, topic)
    for _ in range(2):
        payload = await ctx.store(topic, ctx.values(2))
        data = await _pushed(ctx, peer, len(payload))
        ctx.check(data == payload, "data", "what is pushed must be what was stored")


@push_case("sub/push-after-keepalive", "5.12/push-new")
async def after_keepalive(ctx: CaseContext) -> None:
    """Records that are stored after the subscriber's Keepalive was answered are pushed."""
    topic = await ctx.topic()
    peer = await _subscribe(ctx, topic)
    for _ in range(2):
        async with ctx.precondition("a Keepalive"):
            await peer.ask(KEEPALIVE, keepalive())
        payload = await ctx.store(topic, ctx.values(2))
        data = await _pushed(ctx, peer, len(payload))
        ctx.check(data == payload, "data", "what is pushed must be what was stored")


@push_case("sub/push-topic-in-header", "5.12/push-topic")
async def topic_in_header(ctx: CaseContext) -> None:
    """The header of a push names its topic, by which it is told from an answer."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.values(1))
    peer = await _subscribe(ctx, topic)
    frame = await peer.frame(PUSHED)
    said = frame.topic_id
    ctx.check(said == topic.id, "field:topic_id", f"the header must name {topic.id}, not {said}")


@push_case("sub/push-from-offset", "5.12/push-start")
async def from_offset(ctx: CaseContext) -> None:
    """Pushing begins at the offset that was asked for."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(4))
    start = boundaries(payload)[2]
    peer = await _subscribe(ctx, topic, start)
    data = await _pushed(ctx, peer, len(payload) - start)
    ctx.check(data == payload[start:], "data", f"pushing must begin at {start}")


@push_case("sub/push-from-commit", "5.12/resume")
async def from_commit(ctx: CaseContext) -> None:
    """A consumer that subscribes at 0 is pushed what lies after its commit."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(4))
    start = boundaries(payload)[3]
    async with ctx.precondition("committing"):
        right = commit_ack(ctx.consumer, cite="5.14/ack")
        await ctx.side.ask(commit_offset(topic.id, ctx.consumer, start), right)
    data = await _pushed(ctx, await _subscribe(ctx, topic), len(payload) - start)
    ctx.check(data == payload[start:], "data", f"pushing must begin at the commit, {start}")


@push_case("sub/push-from-end", "5.12/sentinel")
async def from_end(ctx: CaseContext) -> None:
    """A subscriber at 2^64-1 is pushed only what is stored from then on."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.values(3))
    peer = await _subscribe(ctx, topic, END_OFFSET)
    payload = await ctx.store(topic, ctx.values(1))
    data = await _pushed(ctx, peer, len(payload))
    ctx.check(data == payload, "data", "only the last record must come")


@push_case("sub/push-max-bytes", "5.12/max-batch-bytes")
async def max_bytes(ctx: CaseContext) -> None:
    """No push brings more than Max Batch Bytes."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(6))
    limit = 2 * RECORD + 7
    peer = await _subscribe(ctx, topic, max_bytes=limit)
    seen = 0
    while seen < len(payload):
        size = len(ctx.read(peer, await peer.frame(PUSHED)).data)
        ctx.check(0 < size <= limit, "data-size", f"{size} bytes in a push of at most {limit}")
        seen += size


@push_case("sub/push-limits-apart", "5.12/max-batch-bytes")
async def limits_apart(ctx: CaseContext) -> None:
    """Of two subscriptions on a connection each has its own Max Batch Bytes."""
    peer = await ctx.open()
    for limit in (6 * RECORD, 2 * RECORD):
        topic = await ctx.topic()
        await ctx.store(topic, ctx.values(6))
        await _subscribe(ctx, topic, max_bytes=limit, peer=peer)
        seen = 0
        while seen < 6 * RECORD:
            size = len(ctx.read(peer, await peer.frame(PUSHED)).data)
            ctx.check(0 < size <= limit, "data-size", f"{size} bytes in a push of at most {limit}")
            seen += size


@push_case("sub/push-whole-records", "5.9/cut")
async def whole_records(ctx: CaseContext) -> None:
    """A push ends where a record ends whenever one fits."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.values(6))
    peer = await _subscribe(ctx, topic, max_bytes=2 * RECORD + 7)
    size = len(ctx.read(peer, await peer.frame(PUSHED)).data)
    ctx.check(size == 2 * RECORD, "data-size", f"two records must come, {size} bytes came")


@push_case("sub/push-large-record", "5.9/cut-record")
async def large_record(ctx: CaseContext) -> None:
    """A record larger than Max Batch Bytes comes in pieces, and nothing of it is lost."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(2, 150))
    peer = await _subscribe(ctx, topic, max_bytes=100)
    data = await _pushed(ctx, peer, len(payload))
    ctx.check(data == payload, "data", "the pieces must make up what was stored")


@push_case("sub/push-all-once", "5.12/push-once")
async def all_once(ctx: CaseContext) -> None:
    """Pushes bring every byte once, and each says where the next one begins."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(5)) + await ctx.store(topic, ctx.values(5))
    peer = await _subscribe(ctx, topic, max_bytes=3 * RECORD)
    data = b""
    while len(data) < len(payload):
        got = ctx.read(peer, await peer.frame(PUSHED))
        data += got.data
        where = got.next_offset
        ctx.check(where == len(data), "field:next_offset", f"must be {len(data)}, is {where}")
    ctx.check(data == payload, "data", "the pushes must make up what was stored")
    await peer.expect_quiet("5.12/push-once")


@push_case("sub/push-record-count", "5.9/record-count")
async def record_count(ctx: CaseContext) -> None:
    """The Record Count of a push is the number of whole records in it."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.values(6))
    peer = await _subscribe(ctx, topic, max_bytes=4 * RECORD)
    said = ctx.read(peer, await peer.frame(PUSHED)).record_count
    ctx.check(said in (4, None), "field:record_count", f"must be 4, is {said}")


@push_case("sub/push-behind-ack", "5.12/ack-first")
async def behind_ack(ctx: CaseContext) -> None:
    """The SubscribeAck comes before the first push."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.values(2))
    peer = await ctx.open()
    peer.send(subscribe(topic.id, ctx.consumer))
    await peer.expect(subscribe_ack(ctx.consumer, cite="5.12/ack-first"))
    await peer.expect(PUSHED)


@push_case("sub/push-stops", "5.13/stops")
async def stops(ctx: CaseContext) -> None:
    """After the Ack of an Unsubscribe nothing more is pushed."""
    topic = await ctx.topic()
    peer = await _subscribe(ctx, topic)
    async with ctx.precondition("a push, and unsubscribing"):
        payload = await ctx.store(topic, ctx.values(1))
        await _pushed(ctx, peer, len(payload))
        await peer.ask(unsubscribe(topic.id, ctx.consumer), unsubscribe_ack("5.13/ack"))
    await ctx.store(topic, ctx.values(1))
    await peer.expect_quiet("5.13/stops")


@push_case("sub/push-twice-stops-once", "5.13/ends")
async def twice_stops_once(ctx: CaseContext) -> None:
    """A consumer that subscribed twice and unsubscribes is pushed nothing more.

    A target may refuse the second Subscribe.
    """
    topic = await ctx.topic()
    peer = await _subscribe(ctx, topic)
    taken = subscribe_ack(ctx.consumer, cite="5.12/ack")
    refused = ctx.error(*ANY_ERROR, cite="5.12/once-a-topic")
    again = await peer.ask(subscribe(topic.id, ctx.consumer), taken, refused)
    if again.batch_id == Command.ERROR_RESPONSE:
        return
    async with ctx.precondition("unsubscribing"):
        await peer.ask(unsubscribe(topic.id, ctx.consumer), unsubscribe_ack("5.13/ack"))
    await ctx.store(topic, ctx.values(1))
    await peer.expect_quiet("5.13/ends")


@push_case("sub/push-other-goes-on", "5.13/only-that")
async def other_goes_on(ctx: CaseContext) -> None:
    """Unsubscribe ends one subscription, not the other ones of the connection."""
    first, second = await ctx.topic(), await ctx.topic()
    peer = await _subscribe(ctx, first)
    await _subscribe(ctx, second, peer=peer)
    async with ctx.precondition("unsubscribing"):
        await peer.ask(unsubscribe(first.id, ctx.consumer), unsubscribe_ack("5.13/ack"))
    payload = await ctx.store(second, ctx.values(2))
    data = await _pushed(ctx, peer, len(payload))
    ctx.check(data == payload, "data", "the other topic must still be pushed")


@push_case("sub/push-two-topics", "5.12/each-topic")
async def two_topics(ctx: CaseContext) -> None:
    """What is stored in a topic is pushed under that topic only."""
    topics = [await ctx.topic(), await ctx.topic()]
    peer = await ctx.open()
    for topic in topics:
        await _subscribe(ctx, topic, peer=peer)
    for topic in reversed(topics):
        payload = await ctx.store(topic, ctx.values(2))
        data = await _pushed(ctx, peer, len(payload), pushed_under(topic.id, "5.12/push-topic"))
        ctx.check(data == payload, "data", f"another record was pushed for topic {topic.id}")


@push_case("sub/push-to-everybody", "5.12/each-connection")
async def to_everybody(ctx: CaseContext) -> None:
    """Every subscriber of a topic is pushed every record."""
    topic = await ctx.topic()
    peers = [await _subscribe(ctx, topic) for _ in range(3)]
    payload = await ctx.store(topic, ctx.values(2))
    for peer in peers:
        data = await _pushed(ctx, peer, len(payload))
        ctx.check(data == payload, "data", "each subscriber must get the same records")


@push_case("sub/push-only-subscribers", "5.12/asked-only")
async def only_subscribers(ctx: CaseContext) -> None:
    """A connection that did not subscribe is pushed nothing."""
    topic = await ctx.topic()
    peer = await _subscribe(ctx, topic)
    payload = await ctx.store(topic, ctx.values(2))
    async with ctx.precondition("a push to the subscriber"):
        await _pushed(ctx, peer, len(payload))
    await ctx.side.expect_quiet("5.12/asked-only")


@push_case("sub/push-own-writes", "5.12/push-own")
async def own_writes(ctx: CaseContext) -> None:
    """A subscriber that stores records is sent the Ack and the push."""
    topic = await ctx.topic()
    peer = await _subscribe(ctx, topic)
    frame = ingest(topic.id, ctx.batch(), ctx.values(2))
    peer.send(frame)
    acked, push = ack(frame.batch_id, "5.12/push-own"), pushed(topic.id, "5.12/push-own")
    kinds = {(await peer.frame(acked, push)).kind for _ in range(2)}
    ctx.check(
        kinds == {FrameKind.ACK, FrameKind.CONTROL}, "count", f"one of each must come, not {kinds}"
    )


@push_case("sub/push-twice-refused", "5.12/once-a-topic")
async def twice_refused(ctx: CaseContext) -> None:
    """A second subscription to the same topic on one connection is refused."""
    topic = await ctx.topic()
    peer = await _subscribe(ctx, topic)
    again = subscribe(topic.id, ctx.consumer + 1)
    await peer.ask(again, ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-21"))


@push_case("sub/push-fetch-refused", "5.12/no-fetch-beside")
async def fetch_refused(ctx: CaseContext) -> None:
    """A Fetch on a connection that is pushed to is refused: its answer could not be told."""
    topic = await ctx.topic()
    peer = await _subscribe(ctx, topic)
    refused = ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-21")
    await peer.ask(fetch(topic.id, 0, 1024), refused)


@push_case("sub/push-zero-limit-refused", "5.12/no-bytes")
async def zero_limit_refused(ctx: CaseContext) -> None:
    """A subscription whose batches may bring no byte is refused."""
    topic, peer = await ctx.topic(), await ctx.open()
    refused = ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-21")
    await peer.ask(subscribe(topic.id, ctx.consumer, max_bytes=0), refused)


@push_case("sub/push-topic-deleted", "5.12/push-ends")
async def topic_deleted(ctx: CaseContext) -> None:
    """When its topic is deleted a subscription ends with an error that names the topic."""
    topic = await ctx.disposable_topic()
    peer = await _subscribe(ctx, topic)
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(topic.id), answer(Command.TOPIC_RESPONSE, "5.6/delete"))
    codes = ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND
    frame = await peer.frame(ctx.error(*codes, cite="5.12/push-ends"))
    details = (read_json(frame.payload) or {}).get("details", {})
    said = details.get("topic_id")
    ctx.check(said == topic.id, "field:topic_id", f"details.topic_id must be {topic.id}: {said!r}")


@push_case("sub/push-after-other-deleted", "5.13/only-that")
async def after_other_deleted(ctx: CaseContext) -> None:
    """When a topic is deleted, the other subscriptions of a connection go on."""
    gone, kept = await ctx.disposable_topic(), await ctx.topic()
    peer = await _subscribe(ctx, gone)
    await _subscribe(ctx, kept, peer=peer)
    async with ctx.precondition("deleting a topic"):
        await ctx.side.ask(delete_topic(gone.id), answer(Command.TOPIC_RESPONSE, "5.6/delete"))
    payload = await ctx.store(kept, ctx.values(2))
    told = answer(Command.ERROR_RESPONSE, "5.12/push-ends")  # a target may say nothing
    data = await _pushed(ctx, peer, len(payload), PUSHED, told)
    ctx.check(data == payload, "data", "the other topic must still be pushed")


@push_case("sub/push-anew-from-offset", "5.12/push-start")
async def anew_from_offset(ctx: CaseContext) -> None:
    """After an Unsubscribe, pushing begins at the offset that the next Subscribe asks for."""
    topic = await ctx.topic()
    payload = await ctx.store(topic, ctx.values(4))
    start = boundaries(payload)[1]
    peer = await _subscribe(ctx, topic)
    async with ctx.precondition("a push, and unsubscribing"):
        await _pushed(ctx, peer, len(payload))
        await peer.ask(unsubscribe(topic.id, ctx.consumer), unsubscribe_ack("5.13/ack"))
    await _subscribe(ctx, topic, start, peer=peer)
    data = await _pushed(ctx, peer, len(payload) - start)
    ctx.check(data == payload[start:], "data", f"pushing must begin at {start}")
