"""Cases about Produce requests that are refused, whole or in part."""

from lance_conformance.fluvio.case_context import CaseContext
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.wire.calls import Entries, fetch_offsets, produce
from lance_conformance.fluvio.wire.compression import Compression
from lance_conformance.fluvio.wire.errors import Code
from lance_conformance.fluvio.wire.primitives import i16, i32, sized
from lance_conformance.fluvio.wire.records import (
    batch_of,
    raw_records,
    with_schema,
    with_wrong_crc,
)
from lance_conformance.fluvio.wire.responses import Appended


async def _entries(ctx: CaseContext, entries: Entries) -> list[Appended]:
    found = await ctx.spu.ask(produce(entries))
    return [entry for _, listed in found.topics for entry in listed]


async def _end(ctx: CaseContext, topic: str) -> int:
    found = (await ctx.spu.ask(fetch_offsets([(topic, [0])]))).topics[0][1][0]
    return found.end


@case("fl-produce/topic-unknown", "produce/missing")
async def topic_unknown(ctx: CaseContext) -> None:
    """Records for a topic that is not there are refused: NotLeaderForPartition (6)."""
    (entry,) = await _entries(ctx, [(ctx.name(), [(0, ctx.batch(ctx.records(1)))])])
    ctx.expect_code(entry.outcome, Code.NOT_LEADER_FOR_PARTITION)


@case("fl-produce/partition-unknown", "produce/missing")
async def partition_unknown(ctx: CaseContext) -> None:
    """Records for a partition that is not there are refused: NotLeaderForPartition (6)."""
    topic = await ctx.topic(2)
    (entry,) = await _entries(ctx, [(topic, [(2, ctx.batch(ctx.records(1)))])])
    ctx.expect_code(entry.outcome, Code.NOT_LEADER_FOR_PARTITION)


@case("fl-produce/in-part", "produce/in-part")
async def in_part(ctx: CaseContext) -> None:
    """Of a request with one entry that is refused the others are stored; all are answered."""
    topic = await ctx.topic()
    good = ctx.batch(ctx.records(2))
    found = await _entries(ctx, [(topic, [(0, good), (9, good), (0, good)])])
    codes = [entry.outcome.code for entry in found]
    ctx.check(codes == [0, 6, 0], "error:order", f"expected errors 0, 6, 0; got {codes}")
    end = await _end(ctx, topic)
    ctx.check(end == 4, "data", f"4 records were acknowledged, {end} are there")


async def _refused(ctx: CaseContext, wrong: bytes, field: str) -> None:
    """A batch with one fault is refused; what stands is the batch that was its control."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(2))
    peer = await ctx.open("spu")
    ticket = peer.ticket(produce([(topic, [(0, wrong)])]))
    peer.send_faulty(ticket.call.frame(ticket.correlation), field)
    entry = ctx.entry(await peer.answer(ticket))
    ctx.check(entry.outcome.code, "error:0", f"a batch whose {field} is wrong was acknowledged")
    await ctx.still_alive()
    end = await _end(ctx, topic)
    ctx.check(end == 2, "stored-though-refused", f"2 records were acknowledged, {end} are there")


@case("fl-batch/crc", "records/crc")
async def crc(ctx: CaseContext) -> None:
    """A batch whose checksum is wrong is refused."""
    await _refused(ctx, with_wrong_crc(ctx.batch(ctx.records(2))), "crc")


@case("fl-batch/count", "records/count")
async def count(ctx: CaseContext) -> None:
    """A batch with fewer records than its header says is refused."""
    records = ctx.records(2)
    await _refused(ctx, batch_of(raw_records(records), records, last_delta=2), "last_offset_delta")


@case("fl-batch/record-cut", "records/chain")
async def record_cut(ctx: CaseContext) -> None:
    """A batch whose last record is cut short is refused."""
    records = ctx.records(2)
    await _refused(ctx, batch_of(raw_records(records)[:-3], records), "records")


@case("fl-batch/record-count-negative", "records/chain")
async def record_count_negative(ctx: CaseContext) -> None:
    """A batch with a negative number of records is refused."""
    records = ctx.records(2)
    await _refused(ctx, batch_of(i32(-1) + raw_records(records)[4:], records), "record_count")


@case("fl-batch/record-length", "records/chain")
async def record_length(ctx: CaseContext) -> None:
    """A batch whose first record claims to be longer than the batch is refused."""
    records = ctx.records(2)
    raw = raw_records(records)
    await _refused(ctx, batch_of(raw[:4] + b"\xfe\x7f" + raw[5:], records), "record_length")


@case("fl-batch/varint-endless", "records/chain")
async def varint_endless(ctx: CaseContext) -> None:
    """A batch with a length of more than ten bytes is refused."""
    records = ctx.records(1)
    raw = i32(1) + b"\xff" * 11 + b"\1" + raw_records(records)[4:]
    await _refused(ctx, batch_of(raw, records), "record_length")


@case("fl-batch/bytes-behind", "records/chain")
async def bytes_behind(ctx: CaseContext) -> None:
    """A batch with bytes after its last record is refused."""
    records = ctx.records(2)
    await _refused(ctx, batch_of(raw_records(records) + b"\0\0\0", records), "records")


@case("fl-batch/not-gzip", "records/compressed")
async def not_gzip(ctx: CaseContext) -> None:
    """A batch that claims gzip and is not compressed is refused."""
    records = ctx.records(2)
    wrong = batch_of(raw_records(records), records, attributes=Compression.GZIP)
    await _refused(ctx, wrong, "attributes")


@case("fl-batch/gzip-cut", "records/compressed")
async def gzip_cut(ctx: CaseContext) -> None:
    """A batch whose compressed records are cut short is refused."""
    records = ctx.records(2)
    whole = ctx.batch(records, Compression.GZIP)[57:]
    await _refused(ctx, batch_of(whole[:-8], records, attributes=Compression.GZIP), "records")


@case("fl-batch/compression-unknown", "records/compressed")
async def compression_unknown(ctx: CaseContext) -> None:
    """A batch of a kind of compression that there is not is refused, or ends the connection."""
    records = ctx.records(2)
    await _refused_or_closed(ctx, batch_of(raw_records(records), records, attributes=7))


@case("fl-batch/schema", "records/schema")
async def schema(ctx: CaseContext) -> None:
    """A batch that carries the id of a schema is refused, or ends the connection."""
    await _refused_or_closed(ctx, with_schema(ctx.batch(ctx.records(2))))


async def _refused_or_closed(ctx: CaseContext, wrong: bytes) -> None:
    topic = await ctx.topic()
    await ctx.store(topic, ctx.records(2))
    peer = await ctx.open("spu")
    ticket = peer.ticket(produce([(topic, [(0, wrong)])]))
    peer.send_faulty(ticket.call.frame(ticket.correlation), "attributes")
    found = await peer.answer_or_closed(ticket)
    if found is not None:
        entry = ctx.entry(found)
        ctx.check(entry.outcome.code, "error:0", "a batch that cannot be read was acknowledged")
    await ctx.still_alive()
    end = await _end(ctx, topic)
    ctx.check(end == 2, "stored-though-refused", f"2 records were acknowledged, {end} are there")


@case("fl-batch/magic", "records/magic")
async def magic(ctx: CaseContext) -> None:
    """A batch of another layout than the second is refused, or ends the connection."""
    good = ctx.batch(ctx.records(2))
    await _refused_or_closed(ctx, good[:16] + b"\1" + good[17:])


@case("fl-batch/length-beyond", "records/length")
async def length_beyond(ctx: CaseContext) -> None:
    """A batch that claims to be longer than its record set ends the connection."""
    topic = await ctx.topic()
    good = ctx.batch(ctx.records(2))
    call = produce([(topic, [(0, good)])])
    wrong = produce([(topic, [(0, good[:8] + i32(100_000) + good[12:])])])
    await ctx.closes("spu", call, wrong.frame(1), "batch_len")
    end = await _end(ctx, topic)
    ctx.check(end == 2, "stored-though-refused", f"2 records were acknowledged, {end} are there")


@case("fl-batch/length-negative", "records/length")
async def length_negative(ctx: CaseContext) -> None:
    """A batch of a negative length ends the connection."""
    topic = await ctx.topic()
    good = ctx.batch(ctx.records(2))
    call = produce([(topic, [(0, good)])])
    wrong = produce([(topic, [(0, good[:8] + i32(-100) + good[12:])])])
    await ctx.closes("spu", call, wrong.frame(1), "batch_len")


@case("fl-produce/timeout-negative", "produce/timeout")
async def timeout_negative(ctx: CaseContext) -> None:
    """A negative time to wait ends the connection; nothing is stored."""
    topic = await ctx.topic()
    call = produce([(topic, [(0, ctx.batch(ctx.records(1)))])])
    message = call.message(1)
    place = 10 + len("fluvio") + 1 + 2
    wrong = message[:place] + i32(-1) + message[place + 4 :]
    await ctx.closes("spu", call, sized(wrong), "timeout_ms")
    end = await _end(ctx, topic)
    ctx.check(end == 1, "stored-though-refused", f"1 record was acknowledged, {end} are there")


@case("fl-produce/topic-name-cut", "frames/body")
async def topic_name_cut(ctx: CaseContext) -> None:
    """A topic whose name is longer than the request ends the connection."""
    topic = await ctx.topic()
    call = produce([(topic, [(0, ctx.batch(ctx.records(1)))])])
    name = topic.encode()
    wrong = call.message(1).replace(i16(len(name)) + name, i16(0x7FFF) + name)
    await ctx.closes("spu", call, sized(wrong), "name")
