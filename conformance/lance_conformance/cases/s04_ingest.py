"""Cases about Ingest that is accepted, and its Ack (LWP sections 4.1, 4.2, 8 and 10)."""

from dataclasses import replace

from lance_conformance.cases.registry import case
from lance_conformance.peer.conn import Peer
from lance_conformance.peer.dialogue import Dialogue, Topic
from lance_conformance.peer.expect import ack
from lance_conformance.protocols.outcomes import ANOTHER_KIND, Allowed
from lance_conformance.wire.codes import ANY_ERROR
from lance_conformance.wire.control import ingest
from lance_conformance.wire.frame import Frame, Kind
from lance_conformance.wire.tlv import RAW_DATA, record

PRODUCER_ID = 0x1122_3344_5566_7788
"""A batch id with eight different bytes, in the range of producer nonces (AMB-25)."""


async def _acked(c: Dialogue, frame: Frame) -> Frame:
    return await c.side.ask(frame, ack(frame.batch_id))


@case("ing/ack-echoes-batch-id", "4.2/batch-id")
async def ack_echoes_batch_id(c: Dialogue) -> None:
    """An Ack carries all eight bytes of the Batch ID of its Ingest."""
    topic = await c.topic()
    await _acked(c, ingest(topic.id, PRODUCER_ID, c.values(1)))


@case("ing/ack-other-fields-zero", "4.2/other-fields")
async def ack_other_fields_zero(c: Dialogue) -> None:
    """Behind the header checksum, every field of an Ack but the Batch ID is zero."""
    topic = await c.topic()
    frame = await _acked(c, ingest(topic.id, c.batch(), c.values(2)))
    for name in ("timestamp_ns", "record_count", "payload_length", "topic_id"):
        value = getattr(frame, name)
        c.check(value == 0, f"field:{name}", f"{name} of an Ack must be 0, is {value}")


@case("ing/one-ack", "4.2/one-ack")
async def one_ack(c: Dialogue) -> None:
    """An Ingest is acknowledged once."""
    topic = await c.topic()
    await _acked(c, ingest(topic.id, c.batch(), c.values(1)))
    await c.side.expect_quiet("4.2/one-ack")


async def _pipeline(c: Dialogue, count: int) -> tuple[Topic, Peer, list[Frame]]:
    topic = await c.topic()
    peer = await c.open()
    frames = [ingest(topic.id, c.batch(), c.values(1)) for _ in range(count)]
    peer.send(*frames)
    return topic, peer, frames


def _any_ack() -> Allowed:
    return Allowed(
        "Ack of a batch of the pipeline",
        "10.2/pipelined",
        lambda event: None if isinstance(event, Frame) and event.kind is Kind.ACK else ANOTHER_KIND,
    )


@case("ing/pipelined", "10.2/pipelined")
async def pipelined(c: Dialogue) -> None:
    """Sixteen Ingests sent without waiting are all acknowledged."""
    _, peer, frames = await _pipeline(c, 16)
    seen = {(await peer.frame(_any_ack())).batch_id for _ in frames}
    missing = {frame.batch_id for frame in frames} - seen
    c.check(not missing, "ack-missing", f"no Ack for the batches {sorted(missing)}")


@case("ing/acks-in-order", "10.2/ack-order")
async def acks_in_order(c: Dialogue) -> None:
    """Ingests sent without waiting are acknowledged in the order in which they were sent."""
    _, peer, frames = await _pipeline(c, 8)
    for frame in frames:
        await peer.expect(ack(frame.batch_id, "10.2/ack-order"))


@case("ing/ack-then-read", "4.2/receipt")
async def ack_then_read(c: Dialogue) -> None:
    """What was acknowledged on one connection is there for a Fetch on another one."""
    topic = await c.topic()
    frame = ingest(topic.id, c.batch(), c.values(3))
    writer = await c.open()
    await writer.ask(frame, ack(frame.batch_id))
    data = await c.stored(topic)
    c.check(data == frame.payload, "data", f"{len(frame.payload)} bytes acked, {len(data)} read")


@case("ing/multi-record", "8.4/packed")
async def multi_record(c: Dialogue) -> None:
    """Records of different sizes in one Ingest are stored whole and in order."""
    topic = await c.topic()
    values = [c.rng.randbytes(size) for size in (1, 300, 5, 64)]
    payload = await c.store(topic, values)
    c.check(await c.stored(topic) == payload, "data", "all four records must be read back")


@case("ing/order-kept", "10.2/log-order")
async def order_kept(c: Dialogue) -> None:
    """Batches of one connection are read back in the order in which they were sent."""
    topic, peer, frames = await _pipeline(c, 6)
    async with c.control("acknowledging a pipeline"):
        for _ in frames:
            await peer.frame(_any_ack())
    data = await c.stored(topic)
    c.check(data == b"".join(f.payload for f in frames), "data", "six batches, out of order")


@case("ing/empty-value", "8.1/empty-value", quick=False)
async def empty_value(c: Dialogue) -> None:
    """A record with an empty value is a record."""
    topic = await c.topic()
    frame = await _store_payload(c, topic, record(b""), 1)
    c.check(await c.stored(topic) == frame.payload, "data", "the empty record must be read back")


@case("ing/record-types", "8.2/types", quick=False)
async def record_types(c: Dialogue) -> None:
    """Records of the standard and of application types are stored as they are."""
    topic = await c.topic()
    payload = b"".join(record(b"{}", kind) for kind in (RAW_DATA, 0x02, 0x03, 0x80, 0xFE))
    await _store_payload(c, topic, payload, 5)
    c.check(await c.stored(topic) == payload, "data", "all five records must be read back")


async def _store_payload(c: Dialogue, topic: Topic, payload: bytes, count: int) -> Frame:
    frame = replace(ingest(topic.id, c.batch(), [b""]), payload=payload, record_count=count)
    await _acked(c, frame)
    return frame


@case("ing/any-timestamp", "4.1/timestamp", quick=False)
async def any_timestamp(c: Dialogue) -> None:
    """The client's timestamp decides nothing: zero and the far future are stored."""
    topic = await c.topic()
    for timestamp in (0, 2**64 - 1):
        frame = ingest(topic.id, c.batch(), c.values(1))
        await _acked(c, replace(frame, timestamp_ns=timestamp))


@case("ing/topics-isolated", "6.1/isolation")
async def topics_isolated(c: Dialogue) -> None:
    """Each of two topics holds what was sent to it and nothing of the other."""
    first, second = await c.topic(), await c.topic()
    for topic in (first, second, first):
        payload = await c.store(topic, c.values(1, 30))
        whole = await c.stored(topic)
        c.check(whole.endswith(payload), "data", f"topic {topic.id} does not end in its batch")
    sizes = [len(await c.stored(topic)) for topic in (first, second)]
    c.check(sizes == [70, 35], "data", f"topics of 70 and 35 bytes hold {sizes}")


@case("ing/retry-stored-once", "10.4/retry", dialects=("specified",))
async def retry_stored_once(c: Dialogue) -> None:
    """A batch sent again, unchanged, is stored once: acked again, or refused."""
    topic = await c.topic()
    frame = ingest(topic.id, PRODUCER_ID, c.values(1))
    await _acked(c, frame)
    await c.side.ask(frame, ack(frame.batch_id, "AMB-25"), c.error(*ANY_ERROR, cite="10.4/retry"))
    data = await c.stored(topic)
    c.check(data == frame.payload, "data", f"{len(frame.payload)} bytes sent, {len(data)} stored")


@case("ing/same-id-other-content", "10.4/unique", dialects=("specified",))
async def same_id_other_content(c: Dialogue) -> None:
    """A batch id used again for other content on one connection is refused."""
    topic = await c.topic()
    await _acked(c, ingest(topic.id, PRODUCER_ID, c.values(1)))
    again = ingest(topic.id, PRODUCER_ID, c.values(1))
    await c.side.ask(again, c.error(*ANY_ERROR, cite="AMB-25"))
