"""Cases about batches that are stored: compression, and what is in them."""

from lance_conformance.protocols.fluvio.cases.registry import case
from lance_conformance.protocols.fluvio.dialogue import Dialogue
from lance_conformance.protocols.fluvio.wire.calls import produce
from lance_conformance.protocols.fluvio.wire.compression import Compression
from lance_conformance.protocols.fluvio.wire.records import Record

TEXT = b"the same words again and again " * 40


def _compressed(kind: Compression) -> None:
    async def compressed(c: Dialogue) -> None:
        topic = await c.topic()
        records = [*c.records(3), Record(TEXT), Record(b"", b"key")]
        await c.put(topic, records, compression=kind)
        found = [each.record for each in await c.read(topic, len(records))]
        c.check(found == records, "data", "five records must be read back as they were")

    name = kind.name.lower()
    compressed.__doc__ = f"Records compressed with {name} are read back as they were."
    if kind is Compression.NONE:
        compressed.__doc__ = "Records that are not compressed are read back as they were."
    case(f"fl-batch/{name}", "records/compression")(compressed)


for _kind in Compression:
    _compressed(_kind)


@case("fl-batch/mixed", "records/compression")
async def mixed(c: Dialogue) -> None:
    """Batches of one request may be compressed differently."""
    topic = await c.topic()
    kinds = (Compression.GZIP, Compression.NONE, Compression.LZ4)
    lists = [c.records(2) for _ in kinds]
    batches = [c.batch(records, kind) for records, kind in zip(lists, kinds, strict=True)]
    c.appended(await c.spu.ask(produce([(topic, [(0, b"".join(batches))])])))
    found = [each.record for each in await c.read(topic, 6)]
    c.check(found == [r for records in lists for r in records], "data", "six records, in order")


@case("fl-batch/base-offset-ignored", "records/base-offset")
async def base_offset_ignored(c: Dialogue) -> None:
    """What a producer writes as base offset of a batch is replaced by the server."""
    topic = await c.topic()
    for _ in range(2):
        await c.store(topic, c.records(3))
    offsets = [each.offset for each in await c.read(topic, 6)]
    c.check(offsets == list(range(6)), "field:base_offset", f"expected 0 to 5; got {offsets}")
