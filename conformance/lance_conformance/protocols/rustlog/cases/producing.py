"""Cases about Produce in the binary form."""

from lance_conformance.protocols.rustlog.cases.registry import case
from lance_conformance.protocols.rustlog.dialect import BINARY
from lance_conformance.protocols.rustlog.dialogue import Dialogue
from lance_conformance.protocols.rustlog.peer import exactly, refused
from lance_conformance.protocols.rustlog.requests import LIST, produce

ANSWER = "broker-produce/answer"
EMPTY = "broker-produce/empty"
KEPT = "produce-request/records"
MISSING = "produce-request/exists"
NOT_FOUND = 10


@case("rl-produce/first-offset", ANSWER, dialects=BINARY)
async def first_offset(c: Dialogue) -> None:
    """The first record of a partition has offset 0; the answer counts the records."""
    topic = await c.topic()
    await c.side.ask(
        produce(topic, 0, c.values(3)), exactly(ANSWER, "Produce", base_offset=0, record_count=3)
    )


@case("rl-produce/next-offset", "produce-request/offsets", dialects=BINARY)
async def next_offset(c: Dialogue) -> None:
    """The next Produce goes on where the last one ended."""
    topic, _ = await c.filled(3)
    await c.side.ask(
        produce(topic, 0, c.values(2)),
        exactly("produce-request/offsets", "Produce", base_offset=3, record_count=2),
    )


@case("rl-produce/no-records", EMPTY, dialects=BINARY)
async def no_records(c: Dialogue) -> None:
    """A Produce without records is answered with 0 and 0, and stores nothing."""
    topic, records = await c.filled(2)
    await c.side.ask(
        produce(topic, 0, []), exactly(EMPTY, "Produce", base_offset=0, record_count=0)
    )
    c.check(await c.stored(topic) == tuple(records), "data", "nothing is to be stored")


@case("rl-produce/empty-record", KEPT, dialects=BINARY)
async def empty_record(c: Dialogue) -> None:
    """A record may be empty, and has an offset as any other."""
    topic = await c.topic()
    await c.side.ask(
        produce(topic, 0, [b"", b"a", b""]),
        exactly(KEPT, "Produce", base_offset=0, record_count=3),
    )
    c.check(await c.stored(topic) == (b"", b"a", b""), "data", "two empty records and one other")


@case("rl-produce/any-byte", KEPT, dialects=BINARY)
async def any_byte(c: Dialogue) -> None:
    """Records come back byte for byte, whatever bytes they are."""
    topic, record = await c.topic(), bytes(range(256))
    records = [record, record[::-1], b"\r\n\0", b'{"Produce":{}}', b"\xff\xfe"]
    await c.store(topic, records)
    c.check(await c.stored(topic) == tuple(records), "data", "what was sent must be stored")


@case("rl-produce/long-record", KEPT, dialects=BINARY, quick=False)
async def long_record(c: Dialogue) -> None:
    """A record of 64 KiB and one byte comes back whole."""
    topic = await c.topic()
    record = c.rng.randbytes(65_537)
    await c.store(topic, [record])
    c.check(await c.stored(topic) == (record,), "data", "what was sent must be stored")


@case("rl-produce/partitions-apart", "produce-request/partition", dialects=BINARY)
async def partitions_apart(c: Dialogue) -> None:
    """Each partition counts from 0 and holds its own records."""
    topic, records = await c.filled(2)
    other = c.values(1)
    await c.side.ask(
        produce(topic, 1, other),
        exactly("produce-request/partition", "Produce", base_offset=0, record_count=1),
    )
    c.check(await c.stored(topic) == tuple(records), "data", "partition 0 is not to change")
    c.check(await c.stored(topic, 1) == tuple(other), "data", "partition 1 has one record")


@case("rl-produce/topics-apart", "produce-request/topic", dialects=BINARY)
async def topics_apart(c: Dialogue) -> None:
    """A record belongs to its topic alone, also where names begin alike."""
    topic, records = await c.filled(2)
    longer = f"{topic}-more"
    async with c.control("creating a topic with a longer name"):
        await c.create(longer, 1)
    await c.side.ask(
        produce(longer, 0, c.values(1)),
        exactly("produce-request/topic", "Produce", base_offset=0, record_count=1),
    )
    c.check(await c.stored(topic) == tuple(records), "data", "the other topic is not to change")


@case("rl-produce/missing-topic", MISSING, dialects=BINARY)
async def missing_topic(c: Dialogue) -> None:
    """A Produce to a topic that does not exist is refused with code 10, and the topic not made."""
    topic, name = await c.topic(), c.name()
    async with c.control("a Produce to a topic that exists"):
        await c.store(topic, c.values(1))
    await c.side.ask(produce(name, 0, c.values(1)), refused(NOT_FOUND, MISSING))
    listed = await c.side.ask(*c.question())
    names = [each for each, _ in listed.fields["topics"]]
    c.check(name not in names, "data", f"{LIST.name} must not tell of the topic {name}")


@case("rl-produce/missing-partition", MISSING, dialects=BINARY)
async def missing_partition(c: Dialogue) -> None:
    """A Produce to partition 2 of a topic with two is refused with code 10."""
    topic, _ = await c.filled(1)
    await c.side.ask(produce(topic, 2, c.values(1)), refused(NOT_FOUND, MISSING))


@case("rl-produce/far-partition", MISSING, dialects=BINARY, quick=False)
async def far_partition(c: Dialogue) -> None:
    """The highest number that a partition could have is refused as any other that is missing."""
    topic, _ = await c.filled(1)
    await c.side.ask(produce(topic, 2**32 - 1, c.values(1)), refused(NOT_FOUND, MISSING))
    await c.still_alive()


@case("rl-produce/missing-topic-no-records", MISSING, dialects=BINARY, quick=False)
async def missing_topic_no_records(c: Dialogue) -> None:
    """A Produce without records to a topic that does not exist is refused, too."""
    await c.topic()
    await c.side.ask(produce(c.name(), 0, []), refused(NOT_FOUND, MISSING))
