"""Cases about topics, descriptions, metrics and Ping in the binary form."""

from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.cases.registry import case
from lance_conformance.rustlog.dialect import BINARY
from lance_conformance.rustlog.peer import exactly, kind, refused
from lance_conformance.rustlog.requests import (
    LIST,
    METRICS,
    PING,
    create,
    describe,
    describe_partition,
    produce,
)

CREATE = "broker-topics/create"
LISTED = "broker-topics/list"
TOPIC = "broker-topics/describe"
PARTITION = "broker-topics/describe-partition"


async def _listed(ctx: CaseContext) -> list[tuple[str, int]]:
    answer = await ctx.side.ask(LIST, kind("ListTopics", LISTED))
    return list(answer.fields["topics"])


@case("rl-topic/create", CREATE, dialects=BINARY)
async def made(ctx: CaseContext) -> None:
    """A new topic is answered with success 1 and listed with its partitions."""
    name = ctx.name()
    await ctx.side.ask(create(name, 3), exactly(CREATE, "CreateTopic", success=1))
    found = [count for each, count in await _listed(ctx) if each == name]
    ctx.check(
        found == [3], "field:topics", f"{name} must be listed once, with 3 partitions: {found}"
    )


@case("rl-topic/create-again", "broker-topics/exists", dialects=BINARY)
async def again(ctx: CaseContext) -> None:
    """A topic that exists is refused with code 11, and keeps its records and partitions."""
    topic, records = await ctx.filled(2)
    await ctx.side.ask(create(topic, 5), refused(11, "broker-topics/exists"))
    ctx.check(await ctx.stored(topic) == tuple(records), "data", "its records must still be there")
    await ctx.side.ask(
        describe(topic), exactly("broker-topics/exists", "DescribeTopic", partition_count=2)
    )


@case("rl-topic/no-partitions", "broker-topics/partitions", dialects=BINARY)
async def no_partitions(ctx: CaseContext) -> None:
    """A topic without partitions is refused with code 12, and not made."""
    name = ctx.name()
    await ctx.side.ask(create(name, 0), refused(12, "broker-topics/partitions"))
    names = [each for each, _ in await _listed(ctx)]
    ctx.check(name not in names, "field:topics", f"{name} must not be listed")


@case("rl-topic/sorted", LISTED, dialects=BINARY)
async def in_order(ctx: CaseContext) -> None:
    """Topics are listed by name, whenever they were made."""
    names = [ctx.name() for _ in range(3)]
    for name in reversed(names):
        async with ctx.precondition("creating a topic"):
            await ctx.create(name, 1)
    found = [each for each, _ in await _listed(ctx)]
    ctx.check(set(names) <= set(found), "field:topics", "every topic must be listed")
    ctx.check(found == sorted(found), "order", "topics must be listed by name")


@case("rl-topic/last-partition", CREATE, dialects=BINARY)
async def last_partition(ctx: CaseContext) -> None:
    """A topic with three partitions takes records in the third one, and has no fourth."""
    topic = await ctx.topic(3)
    await ctx.side.ask(
        produce(topic, 2, ctx.values(1)), exactly(CREATE, "Produce", base_offset=0, record_count=1)
    )
    await ctx.side.ask(produce(topic, 3, ctx.values(1)), refused(10, CREATE))


@case("rl-topic/describe", TOPIC, dialects=BINARY)
async def described(ctx: CaseContext) -> None:
    """A description has the name, and the partitions from 0 on.

    What it says of where they end is not judged here.
    """
    topic = await ctx.topic(3)
    answer = await ctx.side.ask(
        describe(topic), exactly(TOPIC, "DescribeTopic", topic=topic, partition_count=3)
    )
    numbers = [number for number, _ in answer.fields["partitions"]]
    ctx.check(numbers == [0, 1, 2], "field:partitions", f"partitions are numbered {numbers}")


@case("rl-topic/describe-missing", "broker-topics/describe-missing", dialects=BINARY)
async def describe_missing(ctx: CaseContext) -> None:
    """The description of a topic that does not exist is refused with code 13."""
    await ctx.topic()
    await ctx.side.ask(describe(ctx.name()), refused(13, "broker-topics/describe-missing"))


@case("rl-topic/describe-partition", PARTITION, dialects=BINARY)
async def partition(ctx: CaseContext) -> None:
    """The description of a partition has the name of the topic and the partition's number."""
    topic = await ctx.topic()
    await ctx.side.ask(
        describe_partition(topic, 1),
        exactly(PARTITION, "DescribePartition", topic=topic, partition=1),
    )


@case("rl-topic/describe-partition-missing", "broker-topics/partition-missing", dialects=BINARY)
async def partition_missing(ctx: CaseContext) -> None:
    """The description of a partition that does not exist is refused with code 14."""
    topic = await ctx.topic()
    cite = "broker-topics/partition-missing"
    await ctx.side.ask(describe_partition(topic, 2), refused(14, cite))


@case("rl-topic/describe-partition-no-topic", "broker-topics/partition-missing", dialects=BINARY)
async def partition_no_topic(ctx: CaseContext) -> None:
    """So is that of a partition whose topic does not exist."""
    await ctx.topic()
    cite = "broker-topics/partition-missing"
    await ctx.side.ask(describe_partition(ctx.name(), 0), refused(14, cite))


@case("rl-topic/high-watermark", "broker-topics/high-watermark", dialects=BINARY)
async def high_watermark(ctx: CaseContext) -> None:
    """A high watermark is the end of the partition, or 0 as the published broker always says.

    It is the same in both descriptions.
    """
    topic, _ = await ctx.filled(3)
    cite = "broker-topics/high-watermark"
    right = [exactly(cite, "DescribePartition", high_watermark=end) for end in (3, 0)]
    told = (await ctx.side.ask(describe_partition(topic, 0), *right)).fields["high_watermark"]
    answer = await ctx.side.ask(describe(topic), kind("DescribeTopic", cite))
    found = dict(answer.fields["partitions"])
    ctx.check(found == {0: told, 1: 0}, "field:partitions", f"ends are {told}, 0 and here {found}")


@case("rl-topic/metrics", "broker-metrics/text", dialects=BINARY)
async def metrics(ctx: CaseContext) -> None:
    """Metrics are text of Prometheus: comments, and lines of a name and a number."""
    answer = await ctx.side.ask(METRICS, kind("MetricsFetch", "broker-metrics/text"))
    text = str(answer.fields["text"])
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    ctx.check(lines, "body:text", "there must be at least one metric")
    for line in lines:
        name, _, value = line.rpartition(" ")
        ctx.check(name and _is_number(value), "body:text", f"{line!r} is not a name and a number")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@case("rl-topic/ping", "broker-ping/answer", dialects=BINARY)
async def ping(ctx: CaseContext) -> None:
    """A Ping is answered with a Ping of one byte."""
    await ctx.side.ask(PING, kind("Ping", "broker-ping/answer"))
