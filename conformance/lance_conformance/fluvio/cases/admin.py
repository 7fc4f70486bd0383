"""Cases about creating, listing and deleting topics."""

import asyncio

from lance_conformance.fluvio.case_context import CaseContext
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.wire.calls import (
    Call,
    create_topic,
    delete_topic,
    fetch_offsets,
    list_objects,
)
from lance_conformance.fluvio.wire.errors import Code
from lance_conformance.fluvio.wire.objects import Object, ObjectKind, Partition, Spu, Topic
from lance_conformance.fluvio.wire.primitives import sized
from lance_conformance.fluvio.wire.responses import Status

OFFSETS = "consumer-offset"
"""The cluster's own topic."""


async def _listed(ctx: CaseContext, kind: ObjectKind, *names: str) -> dict[str, Object]:
    return {each.name: each for each in (await ctx.sc.ask(list_objects(kind, names))).objects}


async def _done(ctx: CaseContext, call: Call[Status]) -> Status:
    status = await ctx.sc.ask(call)
    ctx.expect_code(status.outcome, Code.NONE)
    return status


@case("fl-topic/create", "topics/create")
async def create(ctx: CaseContext) -> None:
    """Create is answered with the name of the topic and no error."""
    name = ctx.own(ctx.name())
    status = await _done(ctx, create_topic(name))
    ctx.check(status.name == name, "field:name", f"{name} was created, {status.name!r} is told")


@case("fl-topic/created-is-listed", "topics/list")
async def created_is_listed(ctx: CaseContext) -> None:
    """A topic is listed with its number of partitions as soon as its creation is answered."""
    name = await ctx.topic(3)
    topic = (await _listed(ctx, ObjectKind.TOPIC)).get(name)
    ctx.check(isinstance(topic, Topic), "topic-missing", f"{name} is not listed")
    assert isinstance(topic, Topic)
    ctx.check(topic.partitions == 3, "field:partitions", f"3 were made, {topic.partitions} listed")


@case("fl-topic/list-by-name", "topics/list")
async def list_by_name(ctx: CaseContext) -> None:
    """A list of names brings those topics and no others."""
    first, second = await ctx.topic(), await ctx.topic()
    found = set(await _listed(ctx, ObjectKind.TOPIC, second))
    ctx.check(found == {second}, "objects", f"asked for {second}, got {sorted(found)}")
    found = set(await _listed(ctx, ObjectKind.TOPIC, first, second))
    ctx.check(found == {first, second}, "objects", f"asked for both, got {sorted(found)}")


@case("fl-topic/list-partitions", "topics/list")
async def list_partitions(ctx: CaseContext) -> None:
    """Partitions are listed as they are watched."""
    name = await ctx.topic(2)
    found = await _listed(ctx, ObjectKind.PARTITION)
    wanted = [f"{name}-{number}" for number in (0, 1)]
    parts = [part for each in wanted if isinstance(part := found.get(each), Partition)]
    ctx.check(len(parts) == 2, "partition-missing", f"{len(parts)} of {wanted} are listed")


@case("fl-topic/list-own", "topics/system")
async def list_own(ctx: CaseContext) -> None:
    """The cluster's own topics are listed to who asks for them, and among no others."""
    name = await ctx.topic()
    users = {each.name for each in (await ctx.sc.ask(list_objects(ObjectKind.TOPIC))).objects}
    own = {
        each.name
        for each in (await ctx.sc.ask(list_objects(ObjectKind.TOPIC, system=True))).objects
    }
    ctx.check(name in users and name not in own, "objects", f"{name} is listed among {sorted(own)}")
    ctx.check(OFFSETS in own and OFFSETS not in users, "objects", f"{OFFSETS} is among {users}")


@case("fl-topic/list-spus", "topics/list")
async def list_spus(ctx: CaseContext) -> None:
    """The SPUs are listed."""
    spus = [each for each in (await _listed(ctx, ObjectKind.SPU)).values() if isinstance(each, Spu)]
    ctx.check(spus, "spu-missing", "no SPU is listed")


@case("fl-topic/create-twice", "topics/exists")
async def create_twice(ctx: CaseContext) -> None:
    """A topic that is there cannot be created: TopicAlreadyExists (2002)."""
    name = await ctx.topic()
    status = await ctx.sc.ask(create_topic(name))
    ctx.expect_code(status.outcome, Code.TOPIC_ALREADY_EXISTS)


@case("fl-topic/created-twice-stays", "topics/exists")
async def created_twice_stays(ctx: CaseContext) -> None:
    """A creation that is refused leaves the topic that was there as it is."""
    name = await ctx.topic(2)
    await ctx.store(name, ctx.records(2), 1)
    status = await ctx.sc.ask(create_topic(name, 1))
    ctx.check(status.outcome.code, "error:0", "a topic that is there was created again")
    await _stands(ctx, name, 1, 2)


async def _stands(ctx: CaseContext, name: str, partition: int, end: int) -> None:
    found = (await ctx.spu.ask(fetch_offsets([(name, [partition])]))).topics[0][1][0]
    ctx.expect_code(found.outcome, Code.NONE)
    ctx.check(found.end == end, "data", f"{end} records are to be there, {found.end} are")


@case("fl-topic/dry-run", "topics/dry-run")
async def dry_run(ctx: CaseContext) -> None:
    """A dry run is answered like a creation, and creates nothing."""
    name = ctx.own(ctx.name())
    await _done(ctx, create_topic(name, dry_run=True))
    ctx.check(
        name not in await _listed(ctx, ObjectKind.TOPIC), "topic-there", f"{name} was created"
    )


@case("fl-topic/no-partitions", "topics/refused")
async def no_partitions(ctx: CaseContext) -> None:
    """A topic without partitions is refused."""
    name = ctx.own(ctx.name())
    status = await ctx.sc.ask(create_topic(name, 0))
    ctx.check(status.outcome.code, "error:0", "a topic without partitions was created")


@case("fl-topic/bad-names", "topics/names")
async def bad_names(ctx: CaseContext) -> None:
    """Topics are refused that are called nothing, or after a part of a path."""
    for name in ("", "a/b", "..", "x\n"):
        status = await ctx.sc.ask(create_topic(name))
        if not status.outcome.code:
            ctx.own(name)
        ctx.check(status.outcome.code, "error:0", f"a topic called {name!r} was created")


@case("fl-topic/refused-with-a-word", "topics/message")
async def refused_with_a_word(ctx: CaseContext) -> None:
    """Who is refused a topic is told its name, and why."""
    name = await ctx.topic()
    status = await ctx.sc.ask(create_topic(name))
    ctx.check(status.name == name, "field:name", f"{name} was refused, {status.name!r} is told")
    ctx.check(status.message, "field:message", "nobody says why")


@case("fl-topic/delete", "topics/delete")
async def delete(ctx: CaseContext) -> None:
    """A topic that is deleted is listed no more."""
    name = await ctx.topic()
    await ctx.before_deletion(name, 0)
    status = await _done(ctx, delete_topic(name))
    ctx.check(status.name == name, "field:name", f"{name} was deleted, {status.name!r} is told")
    ctx.check(
        name not in await _listed(ctx, ObjectKind.TOPIC), "topic-there", f"{name} is still listed"
    )


@case("fl-topic/delete-one", "topics/delete")
async def delete_one(ctx: CaseContext) -> None:
    """With a topic no other one goes."""
    first, second = await ctx.topic(), await ctx.topic()
    await ctx.store(second, ctx.records(2))
    await ctx.before_deletion(first, 0)
    await _done(ctx, delete_topic(first))
    await _stands(ctx, second, 0, 2)


@case("fl-topic/delete-unknown", "topics/missing")
async def delete_unknown(ctx: CaseContext) -> None:
    """A topic that is not there cannot be deleted: TopicNotFound (2001)."""
    status = await ctx.sc.ask(delete_topic(ctx.name()))
    ctx.expect_code(status.outcome, Code.TOPIC_NOT_FOUND)


@case("fl-topic/deleted-takes-nothing", "topics/delete")
async def deleted_takes_nothing(ctx: CaseContext) -> None:
    """A topic that is deleted has no partitions any more."""
    name = await ctx.topic()
    await ctx.store(name, ctx.records(1))
    await ctx.before_deletion(name, 1)
    await _done(ctx, delete_topic(name))
    await _gone(ctx, name)


async def _gone(ctx: CaseContext, name: str) -> None:
    """Wait until the SPU has heard that a topic is deleted; it has the time of the case."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + (ctx.deadline - loop.time()) / 2
    while True:
        found = (await ctx.spu.ask(fetch_offsets([(name, [0])]))).topics[0][1][0]
        if found.outcome.code or loop.time() > deadline:
            break
        await asyncio.sleep(0.01)
    codes = Code.NOT_LEADER_FOR_PARTITION, Code.TOPIC_NOT_FOUND, Code.PARTITION_NOT_LEADER
    ctx.expect_code(found.outcome, *codes)


@case("fl-topic/created-anew", "topics/anew")
async def created_anew(ctx: CaseContext) -> None:
    """A topic that is deleted and created again is empty, and begins at offset 0."""
    name = await ctx.topic()
    await ctx.store(name, ctx.records(3))
    await ctx.before_deletion(name, 3)
    await _done(ctx, delete_topic(name))
    await _gone(ctx, name)
    await _done(ctx, create_topic(name))
    await _stands(ctx, name, 0, 0)
    base = await ctx.store(name, ctx.records(1))
    ctx.check(base == 0, "field:base_offset", f"the first record has offset {base}")


@case("fl-topic/create-cut", "frames/body")
async def create_cut(ctx: CaseContext) -> None:
    """A Create request that is cut short ends the connection; nothing is created."""
    name = ctx.own(ctx.name())
    call = create_topic(name)
    await ctx.closes("sc", list_objects(ObjectKind.TOPIC), sized(call.message(1)[:-6]), "body")
    ctx.check(
        name not in await _listed(ctx, ObjectKind.TOPIC), "topic-there", f"{name} was created"
    )
