"""Cases about Ingest that is accepted, and its Ack (LWP sections 4.1, 4.2, 8 and 10)."""

from dataclasses import replace

from lance_conformance.engine.expectations import ANOTHER_KIND, Allowed
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import ack, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ANY_ERROR
from lance_conformance.wire.control import create_topic, delete_topic, ingest, read_json
from lance_conformance.wire.frame import Frame, FrameKind
from lance_conformance.wire.tlv import RAW_DATA, record

PRODUCER_ID = 0x1122_3344_5566_7788
"""A batch id with eight different bytes, in the range of producer nonces (AMB-25)."""


async def _acked(ctx: CaseContext, frame: Frame) -> Frame:
    return await ctx.side.ask(frame, ack(frame.batch_id))


@case("ing/ack-echoes-batch-id", "4.2/batch-id")
async def ack_echoes_batch_id(ctx: CaseContext) -> None:
    """An Ack carries all eight bytes of the Batch ID of its Ingest."""
    topic = await ctx.topic()
    await _acked(ctx, ingest(topic.id, PRODUCER_ID, ctx.values(1)))


@case("ing/ack-other-fields-zero", "4.2/other-fields")
async def ack_other_fields_zero(ctx: CaseContext) -> None:
    """After the header checksum, every field of an Ack but the Batch ID is zero."""
    topic = await ctx.topic()
    frame = await _acked(ctx, ingest(topic.id, ctx.batch(), ctx.values(2)))
    for name in ("timestamp_ns", "record_count", "payload_length", "topic_id"):
        value = getattr(frame, name)
        ctx.check(value == 0, f"field:{name}", f"{name} of an Ack must be 0, is {value}")


@case("ing/one-ack", "4.2/one-ack")
async def one_ack(ctx: CaseContext) -> None:
    """An Ingest is acknowledged once."""
    topic = await ctx.topic()
    await _acked(ctx, ingest(topic.id, ctx.batch(), ctx.values(1)))
    await ctx.side.expect_quiet("4.2/one-ack")


async def _pipeline(ctx: CaseContext, count: int) -> tuple[Topic, Peer, list[Frame]]:
    topic = await ctx.topic()
    peer = await ctx.open()
    frames = [ingest(topic.id, ctx.batch(), ctx.values(1)) for _ in range(count)]
    peer.send(*frames)
    return topic, peer, frames


def _any_ack() -> Allowed:
    return Allowed(
        "Ack of a batch of the pipeline",
        "10.2/pipelined",
        lambda event: (
            None if isinstance(event, Frame) and event.kind is FrameKind.ACK else ANOTHER_KIND
        ),
    )


@case("ing/pipelined", "10.2/pipelined")
async def pipelined(ctx: CaseContext) -> None:
    """Sixteen Ingests sent without waiting are all acknowledged."""
    _, peer, frames = await _pipeline(ctx, 16)
    seen = {(await peer.frame(_any_ack())).batch_id for _ in frames}
    missing = {frame.batch_id for frame in frames} - seen
    ctx.check(not missing, "ack-missing", f"no Ack for the batches {sorted(missing)}")


@case("ing/acks-in-order", "10.2/ack-order")
async def acks_in_order(ctx: CaseContext) -> None:
    """Ingests sent without waiting are acknowledged in the order in which they were sent."""
    _, peer, frames = await _pipeline(ctx, 8)
    for frame in frames:
        await peer.expect(ack(frame.batch_id, "10.2/ack-order"))


@case("ing/ack-then-read", "4.2/receipt")
async def ack_then_read(ctx: CaseContext) -> None:
    """What was acknowledged on one connection is there for a Fetch on another one."""
    topic = await ctx.topic()
    frame = ingest(topic.id, ctx.batch(), ctx.values(3))
    writer = await ctx.open()
    await writer.ask(frame, ack(frame.batch_id))
    data = await ctx.stored(topic)
    ctx.check(data == frame.payload, "data", f"{len(frame.payload)} bytes acked, {len(data)} read")


@case("ing/multi-record", "8.4/packed")
async def multi_record(ctx: CaseContext) -> None:
    """Records of different sizes in one Ingest are stored whole and in order."""
    topic = await ctx.topic()
    values = [ctx.rng.randbytes(size) for size in (1, 300, 5, 64)]
    payload = await ctx.store(topic, values)
    ctx.check(await ctx.stored(topic) == payload, "data", "all four records must be read back")


@case("ing/order-kept", "10.2/log-order")
async def order_kept(ctx: CaseContext) -> None:
    """Batches of one connection are read back in the order in which they were sent."""
    topic, peer, frames = await _pipeline(ctx, 6)
    async with ctx.precondition("acknowledging a pipeline"):
        for _ in frames:
            await peer.frame(_any_ack())
    data = await ctx.stored(topic)
    ctx.check(data == b"".join(f.payload for f in frames), "data", "six batches, out of order")


@case("ing/empty-value", "8.1/empty-value", quick=False)
async def empty_value(ctx: CaseContext) -> None:
    """A record with an empty value is a record."""
    topic = await ctx.topic()
    frame = await _store_payload(ctx, topic, record(b""), 1)
    ctx.check(
        await ctx.stored(topic) == frame.payload, "data", "the empty record must be read back"
    )


@case("ing/record-types", "8.2/types", quick=False)
async def record_types(ctx: CaseContext) -> None:
    """Records of the standard and of application types are stored as they are."""
    topic = await ctx.topic()
    payload = b"".join(record(b"{}", kind) for kind in (RAW_DATA, 0x02, 0x03, 0x80, 0xFE))
    await _store_payload(ctx, topic, payload, 5)
    ctx.check(await ctx.stored(topic) == payload, "data", "all five records must be read back")


async def _store_payload(ctx: CaseContext, topic: Topic, payload: bytes, count: int) -> Frame:
    frame = replace(ingest(topic.id, ctx.batch(), [b""]), payload=payload, record_count=count)
    await _acked(ctx, frame)
    return frame


@case("ing/any-timestamp", "4.1/timestamp", quick=False)
async def any_timestamp(ctx: CaseContext) -> None:
    """The client's timestamp decides nothing: zero and the far future are stored."""
    topic = await ctx.topic()
    for timestamp in (0, 2**64 - 1):
        frame = ingest(topic.id, ctx.batch(), ctx.values(1))
        await _acked(ctx, replace(frame, timestamp_ns=timestamp))


@case("ing/topics-isolated", "6.1/isolation")
async def topics_isolated(ctx: CaseContext) -> None:
    """Each of two topics holds what was sent to it and nothing of the other."""
    first, second = await ctx.topic(), await ctx.topic()
    for topic in (first, second, first):
        payload = await ctx.store(topic, ctx.values(1, 30))
        whole = await ctx.stored(topic)
        ctx.check(whole.endswith(payload), "data", f"topic {topic.id} does not end in its batch")
    sizes = [len(await ctx.stored(topic)) for topic in (first, second)]
    ctx.check(sizes == [70, 35], "data", f"topics of 70 and 35 bytes hold {sizes}")


@case("ing/retry-stored-once", "10.4/retry", dialects=("specified",))
async def retry_stored_once(ctx: CaseContext) -> None:
    """A batch sent again, unchanged, is stored once: acked again, or refused."""
    topic = await ctx.topic()
    frame = ingest(topic.id, PRODUCER_ID, ctx.values(1))
    await _acked(ctx, frame)
    await ctx.side.ask(
        frame, ack(frame.batch_id, "AMB-25"), ctx.error(*ANY_ERROR, cite="10.4/retry")
    )
    data = await ctx.stored(topic)
    ctx.check(data == frame.payload, "data", f"{len(frame.payload)} bytes sent, {len(data)} stored")


@case("ing/no-time-is-no-retry", "10.4/without-time", dialects=("specified",), quick=False)
async def no_time_is_no_retry(ctx: CaseContext) -> None:
    """A batch without a timestamp that comes again on another connection is stored again."""
    topic = await ctx.topic()
    frame = replace(ingest(topic.id, PRODUCER_ID, ctx.values(1)), timestamp_ns=0)
    for _ in range(2):
        await (await ctx.open()).ask(frame, ack(frame.batch_id, "AMB-25"))
    data = await ctx.stored(topic)
    ctx.check(data == frame.payload * 2, "data", f"two batches were acked, {len(data)} bytes read")


@case("ing/corrected-after-refusal", "4.2/receipt", dialects=("specified",), quick=False)
async def corrected_after_refusal(ctx: CaseContext) -> None:
    """A batch that was refused for its record count, and is sent again right, is stored."""
    topic = await ctx.topic()
    frame = ingest(topic.id, PRODUCER_ID, ctx.values(2))
    async with ctx.precondition("refusing a wrong record count"):
        refused = ctx.error(*ANY_ERROR, cite="4.1/record-count")
        await ctx.side.ask(replace(frame, record_count=3), refused)
    await _acked(ctx, frame)
    data = await ctx.stored(topic)
    ctx.check(data == frame.payload, "data", f"{len(frame.payload)} bytes acked, {len(data)} read")


@case("ing/old-batch-in-new-topic", "4.2/receipt", quick=False)
async def old_batch_in_new_topic(ctx: CaseContext) -> None:
    """A batch that a deleted topic had is stored in one that is created again under its name."""
    topic = await ctx.disposable_topic()
    frame = ingest(topic.id, PRODUCER_ID, ctx.values(2))
    async with ctx.precondition("storing records, deleting their topic and creating it again"):
        await ctx.side.ask(frame, ack(frame.batch_id))
        await ctx.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
        created = await ctx.side.ask(create_topic(topic.name), topic_response("5.3/answer"))
        created_again = Topic(int((read_json(created.payload) or {}).get("id") or 0), topic.name)
    peer = await ctx.open()  # on the first one its id is taken
    await peer.ask(replace(frame, topic_id=created_again.id), ack(frame.batch_id))
    data = await ctx.stored(created_again)
    ctx.check(data == frame.payload, "data", f"{len(frame.payload)} bytes acked, {len(data)} read")


@case("ing/same-id-other-content", "10.4/unique", dialects=("specified",))
async def same_id_other_content(ctx: CaseContext) -> None:
    """A batch id used again for other content on one connection is refused."""
    topic = await ctx.topic()
    await _acked(ctx, ingest(topic.id, PRODUCER_ID, ctx.values(1)))
    again = ingest(topic.id, PRODUCER_ID, ctx.values(1))
    await ctx.side.ask(again, ctx.error(*ANY_ERROR, cite="AMB-25"))


@case(
    "ing/no-time-is-no-retry-here", "10.4/without-time", dialects=("specified",), quick=False,
    twin_of="ing/no-time-is-no-retry",
)  # fmt: skip
async def no_time_is_no_retry_here(ctx: CaseContext) -> None:
    """A batch without a timestamp that comes again on its connection is stored again."""
    topic, peer = await ctx.topic(), await ctx.open()
    for number in (ctx.batch(), PRODUCER_ID):
        frame = replace(ingest(topic.id, number, ctx.values(1)), timestamp_ns=0)
        before = await ctx.stored(topic)
        for _ in range(2):
            await peer.ask(frame, ack(frame.batch_id, "AMB-25"))
        data = await ctx.stored(topic)
        right = before + frame.payload * 2
        ctx.check(data == right, "data", f"two batches were acked, {len(data)} bytes read")
