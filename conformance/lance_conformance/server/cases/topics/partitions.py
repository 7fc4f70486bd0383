"""Cases about partitioned topics, an extension; asked where the target knows them (AMB-59)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_conformance.engine.registry import CaseFunction
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import (
    LIST_TOPICS,
    create_topic,
    delete_topic,
    get_topic,
    read_json,
)
from lance_conformance.wire.frame import Frame
from lance_conformance.wire.partitions import (
    MURMUR2,
    add_partitions,
    create_partitioned,
    delete_partitioned,
)

ANSWER = topic_response("5.2/partitioned")


def part_case(
    case_id: str, clause: str, needs: tuple[str, ...] = ("partitions",), *, quick: bool = False
) -> Callable[[CaseFunction], CaseFunction]:
    """Register a case for servers that have partitioned topics."""
    return case(case_id, clause, dialects=("specified",), needs=needs, quick=quick)


async def _json(ctx: CaseContext, frame: Frame) -> Mapping[str, Any]:
    return read_json((await ctx.side.ask(frame, ANSWER)).payload) or {}


async def _asked(ctx: CaseContext, request: Frame, name: str, count: int) -> list[Topic]:
    """Ask for a partitioned topic, and read which topics it has."""
    body = await _json(ctx, request)
    ctx.check(body.get("name") == name, "field:name", f"the answer must name {name!r}: {body}")
    topics = body.get("topics")
    told = [each for each in topics if isinstance(each, dict)] if isinstance(topics, list) else []
    names, wanted = [each.get("name") for each in told], [f"{name}-{n}" for n in range(count)]
    ctx.check(names == wanted, "field:topics", f"the topics must be {wanted}, are {names}")
    return [Topic(int(each.get("id") or 0), str(each["name"])) for each in told]


async def _whole(ctx: CaseContext, count: int = 2) -> tuple[str, list[Topic]]:
    """A partitioned topic of this case's own."""
    name = ctx.name()
    async with ctx.precondition("creating a partitioned topic"):
        return name, await _asked(ctx, create_partitioned(name, count), name, count)


async def _listed(ctx: CaseContext) -> Mapping[object, Mapping[str, Any]]:
    topics = (await _json(ctx, LIST_TOPICS)).get("topics")
    return {each.get("name"): each for each in topics or () if isinstance(each, dict)}


async def _refused(ctx: CaseContext, frame: Frame, cite: str, *codes: int) -> None:
    await ctx.side.ask(frame, ctx.error(*codes, cite=cite))


@part_case("part/create", "5.2/partitioned", quick=True)
async def created(ctx: CaseContext) -> None:
    """CreatePartitionedTopic is answered with the name and the topics NAME-0 and on, in order."""
    name = ctx.name()
    topics = await _asked(ctx, create_partitioned(name, 3), name, 3)
    ctx.check(len({each.id for each in topics}) == 3, "field:id", f"ids must differ: {topics}")


def _partition(ctx: CaseContext, body: Mapping[str, Any], name: str, index: int) -> None:
    wanted = {"topic": name, "index": index, "count": 2, "partitioner": "murmur2"}
    said = body.get("partition")
    ctx.check(said == wanted, "field:partition", f"partition must be {wanted}, is {said}")


@part_case("part/told", "5.2/partition-told")
async def told_by_get(ctx: CaseContext) -> None:
    """GetTopic says which partition of which topic a topic is."""
    name, topics = await _whole(ctx)
    for index, topic in enumerate(topics):
        _partition(ctx, await _json(ctx, get_topic(topic.id)), name, index)


@part_case("part/listed", "5.2/partition-told")
async def told_by_list(ctx: CaseContext) -> None:
    """ListTopics has every partition, and says which one it is."""
    name, topics = await _whole(ctx)
    listed = await _listed(ctx)
    for index, topic in enumerate(topics):
        _partition(ctx, listed.get(topic.name, {}), name, index)


@part_case("part/own-records", "5.2/partition-topic")
async def own_records(ctx: CaseContext) -> None:
    """A partition is a topic: records stored in one are in that one alone."""
    _, topics = await _whole(ctx)
    payloads = [await ctx.store(topic, ctx.values(2)) for topic in topics]
    for topic, payload in zip(topics, payloads, strict=True):
        data = (await ctx.fetch(topic, 0)).data
        ctx.check(data == payload, "data", f"{topic.name} must have its own records, no others")


async def _beside(ctx: CaseContext, tail: str) -> str:
    """A name, of which one that it would need is taken by a topic."""
    name = ctx.name()
    async with ctx.precondition("creating a topic"):
        await _json(ctx, create_topic(name + tail))
    return name


@part_case("part/name-taken", "5.2/partitioned-exists")
async def name_taken(ctx: CaseContext) -> None:
    """CreatePartitionedTopic is refused where a topic has its name."""
    await _whole(ctx)
    frame = create_partitioned(await _beside(ctx, ""), 2)
    await _refused(ctx, frame, "5.2/partitioned-exists", ErrorCode.TOPIC_ALREADY_EXISTS)


@part_case("part/partition-name-taken", "5.2/partitioned-exists")
async def partition_name_taken(ctx: CaseContext) -> None:
    """CreatePartitionedTopic is refused where a topic has the name of a partition."""
    await _whole(ctx)
    frame = create_partitioned(await _beside(ctx, "-1"), 2)
    await _refused(ctx, frame, "5.2/partitioned-exists", ErrorCode.TOPIC_ALREADY_EXISTS)


@part_case("part/later-name-taken", "5.2/partitioned-exists")
async def later_name_taken(ctx: CaseContext) -> None:
    """So it is where a topic has the name of a partition that AddPartitions could make."""
    await _whole(ctx)
    frame = create_partitioned(await _beside(ctx, "-7"), 2)
    await _refused(ctx, frame, "5.2/partitioned-exists", ErrorCode.TOPIC_ALREADY_EXISTS)


@part_case("part/all-or-none", "5.2/partitioned-atomic")
async def all_or_none(ctx: CaseContext) -> None:
    """A CreatePartitionedTopic that is refused leaves no partition."""
    await _whole(ctx)
    name = await _beside(ctx, "-1")
    await _refused(
        ctx, create_partitioned(name, 3), "5.2/partitioned-exists", ErrorCode.TOPIC_ALREADY_EXISTS
    )
    listed = await _listed(ctx)
    left = sorted(str(each) for each in (name, f"{name}-0", f"{name}-2") if each in listed)
    ctx.check(not left, "field:topics", f"nothing must have been created, there are {left}")


@part_case("part/name-reserved", "5.2/partitioned-reserved")
async def name_reserved(ctx: CaseContext) -> None:
    """No other topic gets the name of a partitioned one."""
    name, _ = await _whole(ctx)
    cite = "5.2/partitioned-reserved"
    await _refused(ctx, create_topic(name), cite, ErrorCode.TOPIC_ALREADY_EXISTS)


@part_case("part/partition-name-reserved", "5.2/partitioned-reserved")
async def partition_name_reserved(ctx: CaseContext) -> None:
    """No other topic gets the name of a partition that is not there yet."""
    name, _ = await _whole(ctx)
    cite = "5.2/partitioned-reserved"
    await _refused(ctx, create_topic(f"{name}-7"), cite, ErrorCode.TOPIC_ALREADY_EXISTS)


@part_case("part/add", "5.2/partitions-added")
async def added(ctx: CaseContext) -> None:
    """AddPartitions creates partitions after those that are there, which keep their ids."""
    name, before = await _whole(ctx)
    after = await _asked(ctx, add_partitions(name, 4), name, 4)
    ctx.check(after[:2] == before, "field:id", f"the first two were {before}, are {after[:2]}")


@part_case("part/add-keeps-records", "5.2/partitions-added")
async def add_keeps_records(ctx: CaseContext) -> None:
    """AddPartitions moves no records."""
    name, topics = await _whole(ctx)
    payload = await ctx.store(topics[1], ctx.values(3))
    await _asked(ctx, add_partitions(name, 3), name, 3)
    data = (await ctx.fetch(topics[1], 0)).data
    ctx.check(data == payload, "data", f"{topics[1].name} must have the records it had")


@part_case("part/add-tells-count", "5.2/partition-told")
async def add_tells_count(ctx: CaseContext) -> None:
    """After AddPartitions a partition that was there before tells the new count."""
    name, topics = await _whole(ctx, 1)
    await _asked(ctx, add_partitions(name, 2), name, 2)
    _partition(ctx, await _json(ctx, get_topic(topics[0].id)), name, 0)


@part_case("part/add-same", "5.2/partitions-added")
async def add_same(ctx: CaseContext) -> None:
    """AddPartitions with the number that there is changes nothing."""
    name, before = await _whole(ctx)
    for _ in range(2):
        after = await _asked(ctx, add_partitions(name, 2), name, 2)
        ctx.check(after == before, "field:id", f"the topics were {before}, are {after}")


@part_case("part/add-fewer", "5.2/partitions-fewer")
async def add_fewer(ctx: CaseContext) -> None:
    """AddPartitions with a smaller number is refused."""
    name, _ = await _whole(ctx)
    cite = "5.2/partitions-fewer"
    await _refused(ctx, add_partitions(name, 1), cite, ErrorCode.INVALID_PAYLOAD)


async def _unknown(ctx: CaseContext, right: Frame, wrong: Frame) -> None:
    async with ctx.precondition("the same for a topic that is there"):
        await ctx.side.ask(right, ANSWER)
    await _refused(ctx, wrong, "5.2/partitioned-not-found", ErrorCode.TOPIC_NOT_FOUND)


@part_case("part/add-unknown", "5.2/partitioned-not-found")
async def add_unknown(ctx: CaseContext) -> None:
    """AddPartitions to a topic that does not exist is refused."""
    name, _ = await _whole(ctx)
    await _unknown(ctx, add_partitions(name, 3), add_partitions(ctx.name(), 3))


@part_case("part/delete", "5.2/partitioned-deleted", quick=True)
async def deleted(ctx: CaseContext) -> None:
    """DeletePartitionedTopic deletes all partitions."""
    name, topics = await _whole(ctx, 3)
    body = await _json(ctx, delete_partitioned(name))
    ctx.check(body.get("name") == name, "field:name", f"the answer must name {name!r}: {body}")
    for topic in topics:
        await _refused(
            ctx, get_topic(topic.id), "5.2/partitioned-deleted",
            ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND,
        )  # fmt: skip


@part_case("part/name-free-again", "5.2/partitioned-deleted")
async def name_free_again(ctx: CaseContext) -> None:
    """DeletePartitionedTopic frees the name of the whole and those of its partitions."""
    name, _ = await _whole(ctx)
    async with ctx.precondition("deleting the partitioned topic"):
        await _json(ctx, delete_partitioned(name))
    for each in (name, f"{name}-1"):
        await _json(ctx, create_topic(each))


@part_case("part/delete-unknown", "5.2/partitioned-not-found")
async def delete_unknown(ctx: CaseContext) -> None:
    """DeletePartitionedTopic of a topic that does not exist is refused."""
    name, _ = await _whole(ctx)
    await _unknown(ctx, delete_partitioned(name), delete_partitioned(ctx.name()))


@part_case("part/delete-one", "5.2/partition-alone")
async def delete_one(ctx: CaseContext) -> None:
    """DeleteTopic of a single partition is refused, and the partition stays."""
    _, topics = await _whole(ctx)
    cite = "5.2/partition-alone"
    await _refused(ctx, delete_topic(topics[1].id), cite, ErrorCode.ACCESS_DENIED)
    body = await _json(ctx, get_topic(topics[1].id))
    ctx.check(body.get("id") == topics[1].id, "field:id", f"{topics[1].name} must be there: {body}")


async def _invalid(ctx: CaseContext, right: Frame, wrong: Frame) -> None:
    refused: Sequence[Any] = [
        ctx.error(ErrorCode.INVALID_PAYLOAD, cite="5.2/partitioned-payload"),
    ]
    await ctx.assert_pair(right, wrong, answer=ANSWER, specified=refused, deployed=refused)


@part_case("part/no-partitions", "5.2/partitioned-payload")
async def no_partitions(ctx: CaseContext) -> None:
    """A topic of 0 partitions is refused."""
    name = ctx.name()
    await _invalid(ctx, create_partitioned(name, 1), create_partitioned(f"{name[:-1]}0", 0))


@part_case("part/unknown-partitioner", "5.2/partitioned-payload")
async def unknown_partitioner(ctx: CaseContext) -> None:
    """A partitioner that nobody defined is refused."""
    name = ctx.name()
    wrong = create_partitioned(f"{name[:-1]}0", 1, MURMUR2 + 0x70)
    await _invalid(ctx, create_partitioned(name, 1), wrong)


def _sized(right: Frame, change: int) -> Frame:
    """The same request with a byte less, or one more, at its end."""
    payload = right.payload[:-1] if change < 0 else right.payload + b"\0"
    return replace(right, payload=payload)


async def _create_sized(ctx: CaseContext, change: int) -> None:
    name = ctx.name()
    wrong = _sized(create_partitioned(f"{name[:-1]}0", 1), change)
    await _invalid(ctx, create_partitioned(name, 1), wrong)


async def _add_sized(ctx: CaseContext, change: int) -> None:
    name, _ = await _whole(ctx)
    right = add_partitions(name, 2)
    await _invalid(ctx, right, _sized(right, change))


@part_case("part/create-short", "5.2/partitioned-payload")
async def create_short(ctx: CaseContext) -> None:
    """CreatePartitionedTopic that lacks its last byte is refused."""
    await _create_sized(ctx, -1)


@part_case("part/create-long", "5.2/partitioned-payload")
async def create_long(ctx: CaseContext) -> None:
    """CreatePartitionedTopic with a byte too many is refused."""
    await _create_sized(ctx, 1)


@part_case("part/add-short", "5.2/partitioned-payload")
async def add_short(ctx: CaseContext) -> None:
    """AddPartitions that lacks its last byte is refused."""
    await _add_sized(ctx, -1)


@part_case("part/add-long", "5.2/partitioned-payload")
async def add_long(ctx: CaseContext) -> None:
    """AddPartitions with a byte too many is refused."""
    await _add_sized(ctx, 1)


@part_case("log/restart-keeps-partitions", "5.2/partitioned-restart", ("partitions", "restart"))
async def restart_keeps_partitions(ctx: CaseContext) -> None:
    """After a restart a partitioned topic is one still: it gets more partitions."""
    name, before = await _whole(ctx)
    await ctx.restart()
    after = await _asked(ctx, add_partitions(name, 3), name, 3)
    ctx.check(after[:2] == before, "field:id", f"the first two were {before}, are {after[:2]}")
