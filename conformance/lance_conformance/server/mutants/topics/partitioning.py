"""Servers that are wrong about partitioned topics."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from lance_conformance.server.golden.rules.partitions import base_of
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Connection, PartitionedTopic, Topic
from lance_conformance.server.mutants.registry import golden, mutant

P = ParamSpec("P")
R = TypeVar("R")
Hook = Callable[Concatenate[Specified, P], R]
CREATE, ADD = 0x72, 0x73


def _wrong(hook: Hook[P, R]) -> Callable[[Hook[P, R]], Hook[P, R]]:
    """Register a mutant that only cases about partitions can tell from the golden server."""
    asked = ("part/*", "log/restart-keeps-partitions")
    return mutant(hook, only="specified", asked=asked)


@_wrong(Specified.partition_name)
def numbers_partitions_from_one(_server: Specified, name: str, index: int, /) -> str:
    """The first partition is called NAME-1."""
    return f"{name}-{index + 1}"


@_wrong(Specified.whole_body)
def tells_only_the_first_partition(server: Specified, whole: PartitionedTopic, /) -> Body:
    """The answer has the first partition and no other."""
    body = golden(server).whole_body(whole)
    return {**body, "topics": body["topics"][:1]}


@_wrong(Specified.whole_body)
def answers_without_the_name_of_the_whole(server: Specified, whole: PartitionedTopic, /) -> Body:
    """The answer does not say which topic it is about."""
    return {**golden(server).whole_body(whole), "name": ""}


@_wrong(Specified.told)
def keeps_partitions_secret(_server: Specified, _whole: PartitionedTopic, /) -> None:
    """No topic says that it is a partition."""


@_wrong(Specified.told)
def tells_the_count_once(server: Specified, whole: PartitionedTopic, /) -> None:
    """A partition tells the count that there was when it was created."""
    before = {each: server.memory.topics[each].partition for each in whole.ids}
    golden(server).told(whole)
    for topic_id, partition in before.items():
        if partition is not None:
            server.memory.topics[topic_id].partition = partition


@_wrong(Specified.listed)
def lists_partitions_as_plain_topics(server: Specified, /) -> list[Body]:
    """ListTopics does not say which topics are partitions."""
    return [
        {name: value for name, value in body.items() if name != "partition"}
        for body in golden(server).listed()
    ]


@_wrong(Specified.log_body)
def gets_partitions_as_plain_topics(server: Specified, topic: Topic, /) -> Body:
    """GetTopic does not say that a topic is a partition."""
    return {**golden(server).log_body(topic), "partition": None}


@_wrong(Specified.ingest_topic)
def keeps_all_records_in_the_first_partition(
    server: Specified, connection: Connection, topic_id: int, /
) -> Topic:
    """Whatever is sent to a partition is stored in the first one."""
    topic = golden(server).ingest_topic(connection, topic_id)
    first = topic_id - (topic.partition or {}).get("index", 0)
    return golden(server).ingest_topic(connection, first)


@_wrong(Specified.in_the_way)
def creates_partitions_beside_a_topic_of_the_name(server: Specified, name: str, /) -> Topic | None:
    """A topic called NAME is not in the way."""
    found = golden(server).in_the_way(name)
    return None if found is not None and found.name == name else found


@_wrong(Specified.in_the_way)
def creates_partitions_beside_one_of_the_name(server: Specified, name: str, /) -> Topic | None:
    """A topic called NAME-1 is not in the way."""
    return next((each for each in server.memory.topics.values() if each.name == name), None)


@_wrong(Specified.whole_taken)
def creates_some_partitions_before_it_refuses(server: Specified, topic: Topic | None, /) -> None:
    """The first partition is created before the names of the others are looked at."""
    if topic is not None and topic.name.endswith("-1"):
        whole = PartitionedTopic(topic.name.removesuffix("-1"), "murmur2")
        golden(server).extended(whole, 1)
    golden(server).whole_taken(topic)


@_wrong(Specified.reserved)
def gives_away_the_name_of_the_whole(server: Specified, name: str, /) -> bool:
    """A topic may be called like a partitioned one."""
    return base_of(name) in server.memory.partitioned


@_wrong(Specified.reserved)
def gives_away_the_names_of_partitions(server: Specified, name: str, /) -> bool:
    """A topic may be called like a partition that is not there yet."""
    return name in server.memory.partitioned


@_wrong(Specified.extended)
def makes_all_partitions_anew(server: Specified, whole: PartitionedTopic, count: int, /) -> None:
    """Partitions that were there get other ids, and lose their records."""
    for topic_id in whole.ids:
        server.memory.topics.pop(topic_id)
    whole.ids.clear()
    golden(server).extended(whole, count)


@_wrong(Specified.extended)
def empties_partitions_that_were_there(
    server: Specified, whole: PartitionedTopic, count: int, /
) -> None:
    """Partitions that were there lose their records."""
    for topic_id in whole.ids:
        server.memory.topics[topic_id].log = b""
    golden(server).extended(whole, count)


@_wrong(Specified.extended)
def always_adds_a_partition(server: Specified, whole: PartitionedTopic, count: int, /) -> None:
    """A number that is there already adds one more."""
    golden(server).extended(whole, max(count, len(whole.ids) + bool(whole.ids)))


@_wrong(Specified.fewer_ok)
def takes_fewer_partitions_for_as_many(
    _server: Specified, _whole: PartitionedTopic, _count: int, /
) -> bool:
    """A smaller number changes nothing, and is not refused."""
    return True


@_wrong(Specified.find_whole)
def takes_missing_partitioned_topics_for_empty_ones(
    server: Specified, name: str, /
) -> PartitionedTopic:
    """A partitioned topic that is not there has no partitions."""
    return server.memory.partitioned.get(name) or PartitionedTopic(name, "murmur2")


@_wrong(Specified.find_whole_to_delete)
def deletes_partitioned_topics_that_are_not_there(
    server: Specified, name: str, /
) -> PartitionedTopic:
    """DeletePartitionedTopic of a topic that is not there succeeds."""
    return server.memory.partitioned.get(name) or PartitionedTopic(name, "murmur2")


@_wrong(Specified.whole_forgotten)
def deletes_only_the_first_partition(server: Specified, whole: PartitionedTopic, /) -> None:
    """The other partitions stay."""
    server.forget(server.memory.topics[whole.ids[0]])
    server.memory.partitioned.pop(whole.name)


@_wrong(Specified.whole_forgotten)
def keeps_the_names_of_deleted_partitions(server: Specified, whole: PartitionedTopic, /) -> None:
    """The topics are gone, and their names belong to nobody."""
    golden(server).whole_forgotten(whole)
    server.memory.partitioned[whole.name] = PartitionedTopic(whole.name, whole.partitioner)


@_wrong(Specified.alone_ok)
def deletes_single_partitions(_server: Specified, _topic: Topic, /) -> None:
    """A partition is deleted like any topic."""


@_wrong(Specified.partitions_ok)
def creates_topics_of_no_partition(_server: Specified, _count: int, /) -> bool:
    """Any number of partitions will do."""
    return True


@_wrong(Specified.partitioner_of)
def takes_any_partitioner(server: Specified, number: int, /) -> str | None:
    """A partitioner that nobody defined is taken for the first one."""
    return golden(server).partitioner_of(number) or "murmur2"


@_wrong(Specified.partition_size_ok)
def fills_up_short_partitioned_creations(
    _server: Specified, command: int, size: int, wanted: int, /
) -> bool:
    """What a CreatePartitionedTopic lacks at its end counts as zeros."""
    return size == wanted or (command == CREATE and size < wanted)


@_wrong(Specified.partition_size_ok)
def fills_up_short_partition_additions(
    _server: Specified, command: int, size: int, wanted: int, /
) -> bool:
    """What an AddPartitions lacks at its end counts as zeros."""
    return size == wanted or (command == ADD and size < wanted)


@_wrong(Specified.partition_size_ok)
def ignores_what_follows_partitioned_creations(
    _server: Specified, command: int, size: int, wanted: int, /
) -> bool:
    """Bytes after the last field of a CreatePartitionedTopic are ignored."""
    return size == wanted or (command == CREATE and size > wanted)


@_wrong(Specified.partition_size_ok)
def ignores_what_follows_partition_additions(
    _server: Specified, command: int, size: int, wanted: int, /
) -> bool:
    """Bytes after the last field of an AddPartitions are ignored."""
    return size == wanted or (command == ADD and size > wanted)


@_wrong(Specified.restarted)
def forgets_partitioned_topics_in_a_restart(server: Specified, /) -> None:
    """After a restart partitions are topics of their own."""
    golden(server).restarted()
    server.memory.partitioned.clear()


@_wrong(Specified.in_the_way)
def looks_at_the_first_four_partition_names(server: Specified, name: str, /) -> Topic | None:
    """Only topics called NAME, or NAME-0 to NAME-3, are in the way."""
    found = golden(server).in_the_way(name)
    ours = {name, *(f"{name}-{index}" for index in range(4))}
    return found if found is not None and found.name in ours else None
