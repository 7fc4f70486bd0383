"""Cases about creating, listing and deleting topics."""

from lance_conformance.protocols.fluvio.cases.registry import case
from lance_conformance.protocols.fluvio.dialogue import Dialogue
from lance_conformance.protocols.fluvio.wire.answers import Status
from lance_conformance.protocols.fluvio.wire.calls import (
    Call,
    create_topic,
    delete_topic,
    fetch_offsets,
    list_objects,
)
from lance_conformance.protocols.fluvio.wire.errors import Code
from lance_conformance.protocols.fluvio.wire.objects import Kind, Object, Partition, Spu, Topic
from lance_conformance.protocols.fluvio.wire.words import sized


async def _listed(c: Dialogue, kind: Kind, *names: str) -> dict[str, Object]:
    return {each.name: each for each in (await c.sc.ask(list_objects(kind, names))).objects}


async def _done(c: Dialogue, call: Call[Status]) -> Status:
    status = await c.sc.ask(call)
    c.expect_code(status.outcome, Code.NONE)
    return status


@case("fl-topic/create", "topics/create")
async def create(c: Dialogue) -> None:
    """Create is answered with the name of the topic and no error."""
    name = c.own(c.name())
    status = await _done(c, create_topic(name))
    c.check(status.name == name, "field:name", f"{name} was created, {status.name!r} is told")


@case("fl-topic/created-is-listed", "topics/list")
async def created_is_listed(c: Dialogue) -> None:
    """A topic is listed with its number of partitions as soon as its creation is answered."""
    name = await c.topic(3)
    topic = (await _listed(c, Kind.TOPIC)).get(name)
    c.check(isinstance(topic, Topic), "topic-missing", f"{name} is not listed")
    assert isinstance(topic, Topic)
    c.check(topic.partitions == 3, "field:partitions", f"3 were made, {topic.partitions} listed")


@case("fl-topic/list-by-name", "topics/list")
async def list_by_name(c: Dialogue) -> None:
    """A list of names brings those topics and no others."""
    first, second = await c.topic(), await c.topic()
    found = set(await _listed(c, Kind.TOPIC, second))
    c.check(found == {second}, "objects", f"asked for {second}, got {sorted(found)}")
    found = set(await _listed(c, Kind.TOPIC, first, second))
    c.check(found == {first, second}, "objects", f"asked for both, got {sorted(found)}")


@case("fl-topic/list-partitions", "topics/list")
async def list_partitions(c: Dialogue) -> None:
    """Partitions are listed as they are watched."""
    name = await c.topic(2)
    found = await _listed(c, Kind.PARTITION)
    wanted = [f"{name}-{number}" for number in (0, 1)]
    parts = [part for each in wanted if isinstance(part := found.get(each), Partition)]
    c.check(len(parts) == 2, "partition-missing", f"{len(parts)} of {wanted} are listed")


@case("fl-topic/list-spus", "topics/list")
async def list_spus(c: Dialogue) -> None:
    """The SPUs are listed."""
    spus = [each for each in (await _listed(c, Kind.SPU)).values() if isinstance(each, Spu)]
    c.check(spus, "spu-missing", "no SPU is listed")


@case("fl-topic/create-twice", "topics/exists")
async def create_twice(c: Dialogue) -> None:
    """A topic that is there cannot be created: TopicAlreadyExists (2002)."""
    name = await c.topic()
    status = await c.sc.ask(create_topic(name))
    c.expect_code(status.outcome, Code.TOPIC_ALREADY_EXISTS)


@case("fl-topic/created-twice-stays", "topics/exists")
async def created_twice_stays(c: Dialogue) -> None:
    """A creation that is refused leaves the topic that was there as it is."""
    name = await c.topic(2)
    await c.store(name, c.records(2), 1)
    status = await c.sc.ask(create_topic(name, 1))
    c.check(status.outcome.code, "error:0", "a topic that is there was created again")
    await _stands(c, name, 1, 2)


async def _stands(c: Dialogue, name: str, partition: int, end: int) -> None:
    found = (await c.spu.ask(fetch_offsets([(name, [partition])]))).topics[0][1][0]
    c.expect_code(found.outcome, Code.NONE)
    c.check(found.end == end, "data", f"{end} records are to be there, {found.end} are")


@case("fl-topic/dry-run", "topics/dry-run")
async def dry_run(c: Dialogue) -> None:
    """A dry run is answered like a creation, and creates nothing."""
    name = c.own(c.name())
    await _done(c, create_topic(name, dry_run=True))
    c.check(name not in await _listed(c, Kind.TOPIC), "topic-there", f"{name} was created")


@case("fl-topic/no-partitions", "topics/refused")
async def no_partitions(c: Dialogue) -> None:
    """A topic without partitions is refused."""
    name = c.own(c.name())
    status = await c.sc.ask(create_topic(name, 0))
    c.check(status.outcome.code, "error:0", "a topic without partitions was created")


@case("fl-topic/bad-names", "topics/names")
async def bad_names(c: Dialogue) -> None:
    """Topics are refused that are called nothing, or after a part of a path."""
    for name in ("", "a/b", "..", "x\n"):
        status = await c.sc.ask(create_topic(name))
        if not status.outcome.code:
            c.own(name)
        c.check(status.outcome.code, "error:0", f"a topic called {name!r} was created")


@case("fl-topic/refused-with-a-word", "topics/message")
async def refused_with_a_word(c: Dialogue) -> None:
    """Who is refused a topic is told its name, and why."""
    name = await c.topic()
    status = await c.sc.ask(create_topic(name))
    c.check(status.name == name, "field:name", f"{name} was refused, {status.name!r} is told")
    c.check(status.message, "field:message", "nobody says why")


@case("fl-topic/delete", "topics/delete")
async def delete(c: Dialogue) -> None:
    """A topic that is deleted is listed no more."""
    name = await c.topic()
    status = await _done(c, delete_topic(name))
    c.check(status.name == name, "field:name", f"{name} was deleted, {status.name!r} is told")
    c.check(name not in await _listed(c, Kind.TOPIC), "topic-there", f"{name} is still listed")


@case("fl-topic/delete-one", "topics/delete")
async def delete_one(c: Dialogue) -> None:
    """With a topic no other one goes."""
    first, second = await c.topic(), await c.topic()
    await c.store(second, c.records(2))
    await _done(c, delete_topic(first))
    await _stands(c, second, 0, 2)


@case("fl-topic/delete-unknown", "topics/missing")
async def delete_unknown(c: Dialogue) -> None:
    """A topic that is not there cannot be deleted: TopicNotFound (2001)."""
    status = await c.sc.ask(delete_topic(c.name()))
    c.expect_code(status.outcome, Code.TOPIC_NOT_FOUND)


@case("fl-topic/deleted-takes-nothing", "topics/delete")
async def deleted_takes_nothing(c: Dialogue) -> None:
    """A topic that is deleted has no partitions any more."""
    name = await c.topic()
    await c.store(name, c.records(1))
    await _done(c, delete_topic(name))
    found = (await c.spu.ask(fetch_offsets([(name, [0])]))).topics[0][1][0]
    c.expect_code(found.outcome, Code.NOT_LEADER_FOR_PARTITION, Code.TOPIC_NOT_FOUND)


@case("fl-topic/created-anew", "topics/anew")
async def created_anew(c: Dialogue) -> None:
    """A topic that is deleted and created again is empty, and begins at offset 0."""
    name = await c.topic()
    await c.store(name, c.records(3))
    await _done(c, delete_topic(name))
    await _done(c, create_topic(name))
    await _stands(c, name, 0, 0)
    base = await c.store(name, c.records(1))
    c.check(base == 0, "field:base_offset", f"the first record has offset {base}")


@case("fl-topic/create-cut", "frames/body")
async def create_cut(c: Dialogue) -> None:
    """A Create request that is cut short ends the connection; nothing is created."""
    name = c.own(c.name())
    call = create_topic(name)
    await c.closes("sc", list_objects(Kind.TOPIC), sized(call.message(1)[:-6]), "body")
    c.check(name not in await _listed(c, Kind.TOPIC), "topic-there", f"{name} was created")
