"""Cases about the offsets that consumers have a server keep."""

from lance_conformance.protocols.fluvio.cases.registry import case
from lance_conformance.protocols.fluvio.dialogue import Dialogue, Reading
from lance_conformance.protocols.fluvio.wire.answers import ConsumerOffset
from lance_conformance.protocols.fluvio.wire.calls import (
    commit,
    committed,
    forget,
    stream_fetch,
)
from lance_conformance.protocols.fluvio.wire.errors import Code

UNKNOWN_STREAM = 0xFFFF_FF00


async def _stream(c: Dialogue, topic: str, consumer: str | None, partition: int = 0) -> Reading:
    """A stream of a consumer, which has one piece of it."""
    stream = await c.reading(stream_fetch(topic, partition, consumer=consumer))
    await stream.piece()
    return stream


async def _filled(c: Dialogue, partitions: int = 1) -> str:
    topic = await c.topic(partitions)
    for number in range(partitions):
        await c.store(topic, c.records(4), number)
    return topic


async def _commit(c: Dialogue, stream: Reading, offset: int) -> None:
    told = await stream.peer.ask(commit(offset, stream.stream))
    c.expect_code(told.outcome, Code.NONE)
    c.check(told.offset == offset, "field:offset", f"{offset} was stored, {told.offset} is told")


async def _kept(
    c: Dialogue, topic: str | None, consumer: str | None = None, partition: int = 0
) -> list[ConsumerOffset]:
    found = await c.spu.ask(committed(topic, consumer, partition))
    c.expect_code(found.outcome, Code.NONE)
    return list(found.consumers)


@case("fl-commit/kept", "commits/kept")
async def kept(c: Dialogue) -> None:
    """A stored offset is told on another connection, with consumer, topic and partition."""
    topic = await _filled(c)
    consumer = c.name()
    await _commit(c, await _stream(c, topic, consumer), 2)
    found = await _kept(c, topic, consumer)
    wanted = [ConsumerOffset(consumer, topic, 0, 2)]
    c.check(found == wanted, "data", f"expected {wanted}; got {found}")


@case("fl-commit/last-counts", "commits/kept")
async def last_counts(c: Dialogue) -> None:
    """Of several stored offsets the last one counts, even if it is lower."""
    topic = await _filled(c)
    stream = await _stream(c, topic, "reader")
    for offset in (1, 3, 0):
        await _commit(c, stream, offset)
    offsets = [each.offset for each in await _kept(c, topic, "reader")]
    c.check(offsets == [0], "data", f"expected 0 alone; got {offsets}")


@case("fl-commit/outlives-connection", "commits/kept")
async def outlives_connection(c: Dialogue) -> None:
    """A stored offset stays when the consumer's connection ends."""
    topic = await _filled(c)
    stream = await _stream(c, topic, "reader")
    await _commit(c, stream, 1)
    stream.peer.drop()
    await c.still_alive()
    offsets = [each.offset for each in await _kept(c, topic, "reader")]
    c.check(offsets == [1], "data", f"expected 1 alone; got {offsets}")


@case("fl-commit/by-consumer", "commits/filter")
async def by_consumer(c: Dialogue) -> None:
    """Consumers have offsets of their own, and one can be asked about alone."""
    topic = await _filled(c)
    for consumer, offset in (("one", 1), ("two", 2)):
        await _commit(c, await _stream(c, topic, consumer), offset)
    for consumer, offset in (("one", 1), ("two", 2)):
        found = {each.consumer: each.offset for each in await _kept(c, topic, consumer)}
        c.check(found == {consumer: offset}, "data", f"expected {consumer} alone; got {found}")


@case("fl-commit/by-partition", "commits/filter")
async def by_partition(c: Dialogue) -> None:
    """Partitions have offsets of their own, and one can be asked about alone."""
    topic = await _filled(c, 2)
    for number in (0, 1):
        await _commit(c, await _stream(c, topic, "reader", number), number + 1)
    for number in (0, 1):
        found = [(e.partition, e.offset) for e in await _kept(c, topic, "reader", number)]
        c.check(found == [(number, number + 1)], "data", f"partition {number} has {found}")


@case("fl-commit/all-of-partition", "commits/filter")
async def all_of_partition(c: Dialogue) -> None:
    """Asked about a partition without a consumer, the server tells all of its consumers."""
    topic = await _filled(c)
    for consumer in ("one", "two"):
        await _commit(c, await _stream(c, topic, consumer), 0)
    found = sorted(each.consumer for each in await _kept(c, topic))
    c.check(found == ["one", "two"], "data", f"expected one and two; got {found}")


@case("fl-commit/without-filter", "commits/versions")
async def without_filter(c: Dialogue) -> None:
    """At version 23 a request has no filter, and all stored offsets are told."""
    topic = await _filled(c)
    await _commit(c, await _stream(c, topic, "reader"), 3)
    found = await c.spu.ask(committed(version=23))
    mine = [each for each in found.consumers if each.topic == topic]
    c.check(len(mine) == 1, "data", f"1 offset of {topic} is stored, {len(mine)} are told")


@case("fl-commit/forgotten", "commits/forget")
async def forgotten(c: Dialogue) -> None:
    """An offset that is forgotten is told no more; those of others stay."""
    topic = await _filled(c)
    for consumer in ("one", "two"):
        await _commit(c, await _stream(c, topic, consumer), 2)
    c.expect_code(await c.spu.ask(forget(topic, "one")), Code.NONE)
    found = [each.consumer for each in await _kept(c, topic)]
    c.check(found == ["two"], "data", f"expected two alone; got {found}")


@case("fl-commit/nobody", "commits/kept")
async def nobody(c: Dialogue) -> None:
    """Where nothing was stored nothing is told, and that is no error."""
    topic = await _filled(c)
    found = await _kept(c, topic, "nobody")
    c.check(not found, "data", f"nothing was stored, {found} is told")


@case("fl-commit/stream-unknown", "commits/no-stream")
async def stream_unknown(c: Dialogue) -> None:
    """An offset for a stream that is not there: FetchSessionNotFound (3002)."""
    told = await c.spu.ask(commit(0, UNKNOWN_STREAM))
    c.expect_code(told.outcome, Code.FETCH_SESSION_NOT_FOUND)


@case("fl-commit/consumer-nameless", "commits/nameless")
async def consumer_nameless(c: Dialogue) -> None:
    """An offset for a stream that named no consumer: OffsetManagementDisabled (3004)."""
    topic = await _filled(c)
    stream = await _stream(c, topic, None)
    told = await stream.peer.ask(commit(0, stream.stream))
    c.expect_code(told.outcome, Code.OFFSET_MANAGEMENT_DISABLED)
