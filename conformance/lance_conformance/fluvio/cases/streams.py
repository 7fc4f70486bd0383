"""Cases about StreamFetch and UpdateOffsets."""

from lance_conformance.fluvio.case_context import CaseContext
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.wire.calls import (
    Call,
    stream_fetch,
    update_offsets,
)
from lance_conformance.fluvio.wire.errors import Code
from lance_conformance.fluvio.wire.responses import StreamPiece

PIECE = 4000
"""Bytes of a piece in cases about many pieces."""


async def _piece(ctx: CaseContext, call: Call[StreamPiece]) -> StreamPiece:
    """The first piece of a stream on a connection of its own."""
    return await (await ctx.reading(call)).piece()


async def _error(ctx: CaseContext, call: Call[StreamPiece], *codes: int) -> None:
    peer = await ctx.open("spu")
    piece = await peer.answer(peer.post(call))
    ctx.expect_code(piece.outcome, *codes)
    ctx.check(not piece.batches, "body:records", "an error comes with records")


@case("fl-stream/from-the-start", "streams/records")
async def from_the_start(ctx: CaseContext) -> None:
    """A stream from offset 0 brings all records with their offsets."""
    topic = await ctx.topic()
    records = ctx.records(4)
    await ctx.store(topic, records[:3])
    await ctx.store(topic, records[3:])
    found = await ctx.read(topic, 4)
    ctx.check([each.record for each in found] == records, "data", "four records must be read")
    offsets = [each.offset for each in found]
    ctx.check(offsets == [0, 1, 2, 3], "field:offset_delta", f"expected 0 to 3; got {offsets}")


@case("fl-stream/names-partition", "streams/piece")
async def names_partition(ctx: CaseContext) -> None:
    """A piece names topic and partition."""
    topic = await ctx.topic(2)
    await ctx.store(topic, ctx.records(1), 1)
    piece = await _piece(ctx, stream_fetch(topic, 1))
    ctx.check(piece.topic == topic, "field:topic", f"expected {topic}; got {piece.topic!r}")
    ctx.check(piece.partition == 1, "field:partition", f"expected 1; got {piece.partition}")


@case("fl-stream/ends", "streams/piece")
async def ends(ctx: CaseContext) -> None:
    """A piece tells where the partition begins, and what can be read of it."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(3))
    piece = await _piece(ctx, stream_fetch(topic))
    told = piece.log_start, piece.high_watermark
    ctx.check(told == (0, 3), "field:high_watermark", f"expected 0 and 3; got {told}")


@case("fl-stream/batch-crc", "streams/batches")
async def batch_crc(ctx: CaseContext) -> None:
    """The checksum of every batch that comes is right."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(3))
    piece = await _piece(ctx, stream_fetch(topic))
    ctx.check(all(b.crc_right for b in piece.batches), "bad-crc", "a checksum does not fit")


@case("fl-stream/batch-header", "streams/batches")
async def batch_header(ctx: CaseContext) -> None:
    """The header of every batch that comes counts its records and knows the highest time."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(3))
    for batch in (await _piece(ctx, stream_fetch(topic))).batches:
        count = batch.last_offset_delta + 1
        ctx.check(
            count == len(batch.records), "field:last_offset_delta", f"{count} records claimed"
        )
        highest = max(each.record.time for each in batch.records)
        ctx.check(batch.max_time == highest, "field:max_time_stamp", f"{batch.max_time} is claimed")


@case("fl-stream/from-the-middle", "streams/records")
async def from_the_middle(ctx: CaseContext) -> None:
    """A stream from the middle of a batch brings that record and all after it."""
    topic = await ctx.topic()
    records = ctx.records(6)
    for at in (0, 3):
        await ctx.store(topic, records[at : at + 3])
    found = await ctx.read(topic, 2, offset=4)
    offsets = [each.offset for each in found]
    ctx.check(offsets == [4, 5], "field:offset_delta", f"expected 4 and 5; got {offsets}")
    ctx.check([each.record for each in found] == records[4:], "data", "other records came")


@case("fl-stream/no-detour", "streams/records")
async def no_detour(ctx: CaseContext) -> None:
    """A stream does not bring batches that end before its offset."""
    topic = await ctx.topic()
    for _ in range(3):
        await ctx.store(topic, ctx.records(2))
    piece = await _piece(ctx, stream_fetch(topic, 0, 4))
    first = piece.records[0].offset if piece.records else -1
    ctx.check(first == 4, "field:base_offset", f"expected records from 4 on; got {first} first")


async def _isolated(ctx: CaseContext, isolation: int) -> None:
    topic = await ctx.topic()
    records = ctx.records(2)
    await ctx.store(topic, records)
    found = (await _piece(ctx, stream_fetch(topic, isolation=isolation))).records
    ctx.check([each.record for each in found] == records, "data", "two records must be read")


@case("fl-stream/read-uncommitted", "streams/isolation")
async def read_uncommitted(ctx: CaseContext) -> None:
    """Isolation 0, what the leader has, brings what was acknowledged."""
    await _isolated(ctx, 0)


@case("fl-stream/read-committed", "streams/isolation")
async def read_committed(ctx: CaseContext) -> None:
    """Isolation 1, what is committed, brings what was acknowledged."""
    await _isolated(ctx, 1)


def _at_version(version: int, what: str) -> None:
    async def at_version(ctx: CaseContext) -> None:
        topic = await ctx.topic()
        await ctx.store(topic, ctx.records(2))
        piece = await _piece(ctx, stream_fetch(topic, version=version))
        ctx.check(len(piece.records) == 2, "data", f"2 records stored, {len(piece.records)} came")

    at_version.__doc__ = f"Version {version} is served: {what}."
    case(f"fl-stream/version-{version}", "streams/versions")(at_version)


_at_version(22, "the request names no consumer")
_at_version(23, "the request may name a consumer")
_at_version(25, "the newest there is")


# What comes later -------------------------------------------------------------------------------


@case("fl-stream/waits-at-the-end", "streams/live")
async def waits_at_the_end(ctx: CaseContext) -> None:
    """A stream at the end of a partition brings what is stored later."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(2))
    stream = await ctx.reading(stream_fetch(topic, 0, 2))
    records = ctx.records(1)
    await ctx.store(topic, records)
    found = (await stream.piece()).records
    ctx.check([each.record for each in found] == records, "data", "one new record must come")


@case("fl-stream/silent-at-the-end", "streams/live")
async def silent_at_the_end(ctx: CaseContext) -> None:
    """A stream brings no records while there are none."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(2))
    stream = await ctx.reading(stream_fetch(topic, 0, 2))
    piece = await stream.peer.early(stream.ticket)
    ctx.check(piece is None or not piece.batches, "body:records", "records came from nowhere")


@case("fl-stream/live-after-read", "streams/live")
async def live_after_read(ctx: CaseContext) -> None:
    """A stream that was read and acknowledged to the end brings what is stored later."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(2))
    stream = await ctx.reading(stream_fetch(topic))
    await stream.piece()
    await stream.acknowledge(2)
    records = ctx.records(3)
    await ctx.store(topic, records)
    piece = await stream.piece()
    found = [each.record for each in piece.records if each.offset >= 2]
    ctx.check(found == records, "data", "three new records must come")
    ctx.check(piece.high_watermark == 5, "field:high_watermark", f"{piece.high_watermark}, not 5")


@case("fl-stream/one-at-a-time", "streams/flow")
async def one_at_a_time(ctx: CaseContext) -> None:
    """After a piece nothing comes on the stream until it is acknowledged."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(2))
    stream = await ctx.reading(stream_fetch(topic))
    await stream.piece()
    await ctx.store(topic, ctx.records(2))
    await stream.peer.expect_quiet("piece that was not asked for")


@case("fl-stream/goes-on", "streams/flow")
async def goes_on(ctx: CaseContext) -> None:
    """What was stored meanwhile comes as soon as the piece before is acknowledged."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(2))
    stream = await ctx.reading(stream_fetch(topic))
    await stream.piece()
    records = ctx.records(2)
    await ctx.store(topic, records)
    await stream.acknowledge(2)
    found = [each.record for each in (await stream.piece()).records if each.offset >= 2]
    ctx.check(found == records, "data", "two new records must come")


@case("fl-stream/acknowledged-in-part", "streams/flow")
async def acknowledged_in_part(ctx: CaseContext) -> None:
    """A stream goes on at the offset that is acknowledged, even in the middle of what came."""
    topic = await ctx.topic()
    records = ctx.records(4)
    for record in records:
        await ctx.store(topic, [record])
    stream = await ctx.reading(stream_fetch(topic))
    await stream.piece()
    await stream.acknowledge(1)
    found = [each for each in (await stream.piece()).records if each.offset >= 1]
    first = found[0] if found else None
    ctx.check(first and first.offset == 1, "field:base_offset", f"expected offset 1; got {first}")


@case("fl-stream/many-pieces", "streams/flow")
async def many_pieces(ctx: CaseContext) -> None:
    """What does not fit into one piece comes in several, each record once and in order."""
    topic = await ctx.topic()
    records = ctx.records(12, 1000)
    for at in range(0, 12, 2):
        await ctx.store(topic, records[at : at + 2])
    found = await ctx.read(topic, 12, max_bytes=PIECE)
    offsets = [each.offset for each in found]
    ctx.check(offsets == list(range(12)), "field:offset_delta", f"expected 0 to 11; got {offsets}")
    ctx.check([each.record for each in found] == records, "data", "twelve records, in order")


@case("fl-stream/max-bytes", "streams/max-bytes")
async def max_bytes(ctx: CaseContext) -> None:
    """Several batches in one piece do not take more than max_bytes."""
    topic = await ctx.topic()
    for _ in range(6):
        await ctx.store(topic, ctx.records(2, 1000))
    piece = await _piece(ctx, stream_fetch(topic, max_bytes=PIECE))
    size = sum(batch.size for batch in piece.batches)
    few = len(piece.batches) == 1
    ctx.check(few or size <= PIECE, "field:max_bytes", f"{size} bytes came, {PIECE} were wanted")


@case("fl-stream/large-record", "streams/progress")
async def large_record(ctx: CaseContext) -> None:
    """A record that is larger than max_bytes comes at once, or cut, and whole to who asks again."""
    topic = await ctx.topic()
    records = ctx.records(1, 3 * PIECE)
    await ctx.store(topic, records)
    found = await ctx.read(topic, 1, max_bytes=PIECE)
    ctx.check([each.record for each in found] == records, "data", "the large record must come")


# What is not there -------------------------------------------------------------------------------


@case("fl-stream/topic-unknown", "streams/missing")
async def topic_unknown(ctx: CaseContext) -> None:
    """A stream of a topic that is not there: NotLeaderForPartition (6), without records."""
    await _error(ctx, stream_fetch(ctx.name()), Code.NOT_LEADER_FOR_PARTITION)


@case("fl-stream/partition-unknown", "streams/missing")
async def partition_unknown(ctx: CaseContext) -> None:
    """A stream of a partition that is not there: NotLeaderForPartition (6), without records."""
    await _error(ctx, stream_fetch(await ctx.topic(), 5), Code.NOT_LEADER_FOR_PARTITION)


@case("fl-stream/beyond-the-end", "streams/range")
async def beyond_the_end(ctx: CaseContext) -> None:
    """A stream from after the end of a partition: OffsetOutOfRange (1), or a text (2)."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(2))
    await _error(ctx, stream_fetch(topic, 0, 1000), Code.OFFSET_OUT_OF_RANGE, Code.OTHER)


@case("fl-stream/offset-negative", "streams/range")
async def offset_negative(ctx: CaseContext) -> None:
    """A stream from a negative offset: OffsetOutOfRange (1), or OffsetEvicted (71)."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(2))
    await _error(ctx, stream_fetch(topic, 0, -1), Code.OFFSET_OUT_OF_RANGE, Code.OFFSET_EVICTED)


@case("fl-stream/isolation-unknown", "streams/isolation-unknown")
async def isolation_unknown(ctx: CaseContext) -> None:
    """A stream of an isolation that there is not ends the connection."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(1))
    right = update_offsets()
    await ctx.closes("spu", right, stream_fetch(topic, isolation=9).frame(1), "isolation")
