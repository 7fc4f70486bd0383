"""Cases about FetchOffsets."""

from lance_conformance.protocols.fluvio.cases.registry import case
from lance_conformance.protocols.fluvio.dialogue import Dialogue
from lance_conformance.protocols.fluvio.wire.answers import PartitionOffsets
from lance_conformance.protocols.fluvio.wire.calls import SPU_VERSION, fetch_offsets
from lance_conformance.protocols.fluvio.wire.errors import Code


async def _of(
    c: Dialogue, topic: str, partition: int = 0, version: int = SPU_VERSION
) -> PartitionOffsets:
    found = (await c.spu.ask(fetch_offsets([(topic, [partition])], version))).topics
    shape = [(name, [each.partition for each in listed]) for name, listed in found]
    wanted = [(topic, [partition])]
    c.check(shape == wanted, "body:entries", f"{wanted} was asked about, {shape} is answered")
    return found[0][1][0]


async def _ends(
    c: Dialogue, topic: str, end: int, partition: int = 0, version: int = SPU_VERSION
) -> None:
    found = await _of(c, topic, partition, version)
    c.expect_code(found.outcome, Code.NONE)
    c.check(found.start == 0, "field:start_offset", f"expected 0; got {found.start}")
    c.check(found.end == end, "field:last_stable_offset", f"expected {end}; got {found.end}")


@case("fl-offset/empty", "offsets/ends")
async def empty(c: Dialogue) -> None:
    """A partition without records begins and ends at 0."""
    await _ends(c, await c.topic(), 0)


@case("fl-offset/counts-records", "offsets/ends")
async def counts_records(c: Dialogue) -> None:
    """A partition ends behind its last record, counted in records, whatever their sizes."""
    topic = await c.topic()
    await c.store(topic, c.records(3))
    await _ends(c, topic, 3)
    await c.store(topic, c.records(2, 3000))
    await _ends(c, topic, 5)


@case("fl-offset/by-partition", "offsets/ends")
async def by_partition(c: Dialogue) -> None:
    """Each partition has offsets of its own."""
    topic = await c.topic(2)
    await c.store(topic, c.records(3), 1)
    await _ends(c, topic, 0, 0)
    await _ends(c, topic, 3, 1)


def _at_version(version: int, what: str) -> None:
    async def at_version(c: Dialogue) -> None:
        topic = await c.topic()
        await c.store(topic, c.records(1))
        await _ends(c, topic, 1, version=version)

    at_version.__doc__ = f"Version {version} is served: {what}."
    case(f"fl-offset/version-{version}", "offsets/versions")(at_version)


_at_version(22, "the request names no consumer")
_at_version(23, "the only one whose request may name a consumer")
_at_version(25, "the request names no consumer any more")


@case("fl-offset/several", "offsets/positions")
async def several(c: Dialogue) -> None:
    """Several topics and partitions are answered one by one, in order."""
    first, second = await c.topic(2), await c.topic()
    asked = [(second, [0]), (first, [1, 0])]
    found = (await c.spu.ask(fetch_offsets(asked))).topics
    came = [(name, [each.partition for each in listed]) for name, listed in found]
    c.check(came == asked, "body:entries", f"{asked} was asked about, {came} is answered")


@case("fl-offset/topic-unknown", "offsets/missing")
async def topic_unknown(c: Dialogue) -> None:
    """A topic that is not there is answered with NotLeaderForPartition (6)."""
    found = await _of(c, c.name())
    c.expect_code(found.outcome, Code.NOT_LEADER_FOR_PARTITION)


@case("fl-offset/partition-unknown", "offsets/missing")
async def partition_unknown(c: Dialogue) -> None:
    """A partition that is not there is answered with NotLeaderForPartition (6)."""
    found = await _of(c, await c.topic(), 1)
    c.expect_code(found.outcome, Code.NOT_LEADER_FOR_PARTITION)


@case("fl-offset/known-beside-unknown", "offsets/missing")
async def known_beside_unknown(c: Dialogue) -> None:
    """A partition that is not there does not spoil the answer for one that is."""
    topic = await c.topic()
    found = (await c.spu.ask(fetch_offsets([(topic, [7, 0])]))).topics[0][1]
    codes = [each.outcome.code for each in found]
    c.check(codes == [6, 0], "error:order", f"expected errors 6 and 0; got {codes}")
