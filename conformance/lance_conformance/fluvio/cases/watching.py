"""Cases about watches of the SC."""

from collections.abc import Callable
from typing import TypeVar

from lance_conformance.fluvio.case_context import CaseContext
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.peer import Peer, Ticket
from lance_conformance.fluvio.wire.calls import (
    api_versions,
    create_topic,
    delete_topic,
    list_objects,
    watch,
)
from lance_conformance.fluvio.wire.objects import Object, ObjectKind, Partition, Spu, Topic
from lance_conformance.fluvio.wire.primitives import sized
from lance_conformance.fluvio.wire.responses import Watched

O = TypeVar("O", bound=Object)  # noqa: E741 - an object, as the protocol calls it
FLOOD = 100
"""Pieces about other topics after which a case gives up."""


async def _first(ctx: CaseContext, kind: ObjectKind, version: int = 19) -> Watched:
    peer = await ctx.open("sc")
    return await peer.ask(watch(kind, version))


def _named(objects: tuple[Object, ...], name: str, kind: type[O]) -> O | None:
    return next((each for each in objects if isinstance(each, kind) and each.name == name), None)


async def _online_spus(ctx: CaseContext) -> list[Spu]:
    found = (await _first(ctx, ObjectKind.SPU)).all
    return [each for each in found if isinstance(each, Spu) and each.online]


@case("fl-watch/spu-online", "watch/spu")
async def spu_online(ctx: CaseContext) -> None:
    """The first piece about SPUs has one that is online, with an address for clients."""
    spus = await _online_spus(ctx)
    ctx.check(spus, "spu-missing", "no SPU is online")
    ctx.check(spus[0].hosts and spus[0].port, "field:ingress", f"{spus[0]} cannot be reached")


@case("fl-watch/spu-reached", "watch/spu")
async def spu_reached(ctx: CaseContext) -> None:
    """The SPU answers at the address that the SC tells."""
    spus = await _online_spus(ctx)
    ctx.check(spus and spus[0].hosts, "spu-missing", "no SPU is online")
    peer = Peer(await ctx.connected(spus[0].port, spus[0].hosts[0]), ctx.time)
    await peer.ask(api_versions())


@case("fl-watch/topics", "watch/first")
async def topics(ctx: CaseContext) -> None:
    """The first piece about topics has a topic with its number of partitions."""
    name = await ctx.topic(2)
    topic = _named((await _first(ctx, ObjectKind.TOPIC)).all, name, Topic)
    ctx.check(topic, "topic-missing", f"{name} is not among the topics")
    assert topic is not None
    ctx.check(
        topic.partitions == 2, "field:partitions", f"2 were made, {topic.partitions} are told"
    )
    ctx.check(topic.provisioned, "field:resolution", f"{name} is not provisioned")


@case("fl-watch/replica-map", "watch/first")
async def replica_map(ctx: CaseContext) -> None:
    """A topic says for each of its partitions which SPUs keep it."""
    name = await ctx.topic(2)
    topic = _named((await _first(ctx, ObjectKind.TOPIC)).all, name, Topic)
    ids = {spu.id for spu in await _online_spus(ctx)}
    replicas = topic.replicas if topic else {}
    ctx.check(
        set(replicas) == {0, 1}, "field:replica_map", f"2 partitions, told of {set(replicas)}"
    )
    for spus in replicas.values():
        ctx.check(
            spus and set(spus) <= ids, "field:replica_map", f"{spus} are not among SPUs {ids}"
        )


@case("fl-watch/partitions", "watch/first")
async def partitions(ctx: CaseContext) -> None:
    """The first piece about partitions names each: topic, dash, number."""
    name = await ctx.topic(2)
    found = (await _first(ctx, ObjectKind.PARTITION)).all
    for number in (0, 1):
        part = _named(found, f"{name}-{number}", Partition)
        ctx.check(part, "partition-missing", f"{name}-{number} is not among the partitions")
        assert part is not None
        ctx.check(part.online, "field:resolution", f"{part.name} is not online")


@case("fl-watch/leader", "watch/first")
async def leader(ctx: CaseContext) -> None:
    """The leader of a partition is one of the SPUs."""
    name = await ctx.topic()
    part = _named((await _first(ctx, ObjectKind.PARTITION)).all, f"{name}-0", Partition)
    ids = {spu.id for spu in await _online_spus(ctx)}
    ctx.check(part and part.leader in ids, "field:leader", f"{part} is led by none of {ids}")


@case("fl-watch/never-empty", "watch/never-empty")
async def never_empty(ctx: CaseContext) -> None:
    """There is always a topic with a partition: clients wait for one before they do anything."""
    for kind in (ObjectKind.TOPIC, ObjectKind.PARTITION):
        found = (await _first(ctx, kind)).all
        ctx.check(found, "body:empty", f"the first piece about {kind} objects is empty")


@case("fl-watch/offsets-topic", "watch/offsets-topic")
async def offsets_topic(ctx: CaseContext) -> None:
    """There is a topic `consumer-offset` with a partition 0, which clients that commit look for."""
    found = (await _first(ctx, ObjectKind.PARTITION)).all
    part = _named(found, "consumer-offset-0", Partition)
    ctx.check(part, "partition-missing", "consumer-offset-0 is not among the partitions")


@case("fl-watch/version-15", "watch/versions")
async def version_15(ctx: CaseContext) -> None:
    """At version 15 partitions are told without their lowest offset."""
    name = await ctx.topic()
    found = (await _first(ctx, ObjectKind.PARTITION, 15)).all
    part = _named(found, f"{name}-0", Partition)
    ctx.check(part, "partition-missing", f"{name}-0 is not among the partitions")


async def _until(peer: Peer, ticket: Ticket[Watched], seen: Callable[[Watched], object]) -> Watched:
    """The next piece of a watch that says what is waited for; other runs may change topics, too."""
    for _ in range(FLOOD):
        piece = await peer.answer(ticket)
        if seen(piece):
            return piece
    raise peer.failure("flood", f"{FLOOD} pieces about other topics")


async def _pushed(ctx: CaseContext, kind: ObjectKind, name: str, *, gone: bool = False) -> None:
    """Watch, then let a topic come or go, and see that this is told."""
    peer = await ctx.open("sc")
    topic = await ctx.topic() if gone else ctx.own(ctx.name())
    ticket = peer.post(watch(kind))
    await peer.answer(ticket)
    async with ctx.precondition("creating or deleting a topic"):
        status = await ctx.sc.ask(delete_topic(topic) if gone else create_topic(topic))
        ctx.check(not status.outcome.code, "error", str(status.outcome))
    wanted = name.format(topic)

    def told(piece: Watched) -> bool:
        return wanted in [each.name for each in (piece.deleted if gone else piece.updated)]

    piece = await _until(peer, ticket, lambda piece: wanted in _names(piece))
    ctx.check(told(piece), "field:change", f"{wanted} is told of in the wrong place: {piece}")
    ctx.check(not piece.all, "field:all", "`all` must be empty where changes are told")


def _names(piece: Watched) -> list[str]:
    return [each.name for each in (*piece.updated, *piece.deleted, *piece.all)]


@case("fl-watch/topic-comes", "watch/push")
async def topic_comes(ctx: CaseContext) -> None:
    """A topic that is created is told to a watch that is open."""
    await _pushed(ctx, ObjectKind.TOPIC, "{}")


@case("fl-watch/partition-comes", "watch/push")
async def partition_comes(ctx: CaseContext) -> None:
    """The partition of a topic that is created is told to a watch that is open."""
    await _pushed(ctx, ObjectKind.PARTITION, "{}-0")


@case("fl-watch/topic-goes", "watch/push")
async def topic_goes(ctx: CaseContext) -> None:
    """A topic that is deleted is told to a watch that is open."""
    await _pushed(ctx, ObjectKind.TOPIC, "{}", gone=True)


@case("fl-watch/partition-goes", "watch/push")
async def partition_goes(ctx: CaseContext) -> None:
    """The partition of a topic that is deleted is told to a watch that is open."""
    await _pushed(ctx, ObjectKind.PARTITION, "{}-0", gone=True)


@case("fl-watch/twice", "watch/streams")
async def twice(ctx: CaseContext) -> None:
    """One connection holds the three watches twice, as clients do, and each is told of changes."""
    peer = await ctx.open("sc")
    tickets = [peer.post(watch(kind)) for _ in range(2) for kind in ObjectKind]
    for ticket in tickets:
        await peer.answer(ticket)
    topic = await ctx.topic()
    for ticket in (tickets[1], tickets[4]):
        await _until(peer, ticket, lambda piece: topic in _names(piece))


@case("fl-watch/epoch", "watch/epoch")
async def epoch(ctx: CaseContext) -> None:
    """The epoch of what is pushed is not below that of the first piece."""
    peer = await ctx.open("sc")
    ticket = peer.post(watch(ObjectKind.TOPIC))
    first = await peer.answer(ticket)
    topic = await ctx.topic()
    later = await _until(peer, ticket, lambda piece: topic in _names(piece))
    ctx.check(later.epoch >= first.epoch, "field:epoch", f"{first.epoch}, and then {later.epoch}")


@case("fl-watch/requests-beside", "watch/streams")
async def requests_beside(ctx: CaseContext) -> None:
    """A connection with watches answers other requests."""
    peer = await ctx.open("sc")
    await peer.answer(peer.post(watch(ObjectKind.TOPIC)))
    await peer.ask(list_objects(ObjectKind.TOPIC))


@case("fl-watch/kind-unknown", "watch/kind")
async def kind_unknown(ctx: CaseContext) -> None:
    """A watch of objects that there are not ends the connection."""
    call = watch(ObjectKind.SPU)
    wrong = call.message(1).replace(b"\0\3SPU", b"\0\3ZZZ")
    await ctx.closes("sc", list_objects(ObjectKind.SPU), sized(wrong), "object_type")
