"""Servers that are wrong about offsets: of partitions, and those that consumers have stored."""

import struct

from lance_conformance.fluvio.golden.codec import each, words
from lance_conformance.fluvio.golden.objects import code
from lance_conformance.fluvio.golden.reading import Commit
from lance_conformance.fluvio.golden.server import Rules
from lance_conformance.fluvio.golden.state import (
    Connection,
    Partition,
    Refused,
    Stream,
)
from lance_conformance.fluvio.mutants.registry import golden, mutant


@mutant(Rules.speaks_of_consumer)
def reads_a_consumer_always(_server: Rules, _version: int, /) -> bool:
    """FetchOffsets is read as if it always named a consumer."""
    return True


@mutant(Rules.speaks_of_consumer)
def reads_no_consumer(_server: Rules, _version: int, /) -> bool:
    """FetchOffsets is read as if it never named a consumer."""
    return False


@mutant(Rules.told_end)
def tells_the_last_record_as_end(_server: Rules, partition: Partition, /) -> int:
    """The offset of the last record is told instead of the one after it."""
    return max(partition.end - 1, 0)


@mutant(Rules.told_end)
def counts_batches(_server: Rules, partition: Partition, /) -> int:
    """Offsets count batches."""
    return len(partition.batches)


@mutant(Rules.told_start)
def begins_at_1(_server: Rules, _partition: Partition, /) -> int:
    """The lowest offset is told to be 1."""
    return 1


@mutant(Rules.offsets_missing)
def says_of_offsets_what_produce_does(_server: Rules, /) -> bytes:
    """FetchOffsets has the error of Produce for a partition that is not there."""
    return code(6)


@mutant(Rules.offsets_of)
def finds_every_partition(server: Rules, topic: str, number: int, /) -> bytes:
    """A partition that is not there is told to be empty."""
    try:
        server.partition_of(topic, number)
    except Refused:
        return code(0) + struct.pack(">Iqq", number, 0, 0)
    return golden(server).offsets_of(topic, number)


@mutant(Rules.offsets_of)
def puts_errors_behind_partitions(server: Rules, topic: str, number: int, /) -> bytes:
    """The error stands after the number of the partition, as in Produce."""
    found = golden(server).offsets_of(topic, number)
    return found[2:6] + found[:2] + found[6:]


@mutant(Rules.asked_offsets)
def sorts_partitions(_server: Rules, numbers: list[int], /) -> list[int]:
    """Partitions are answered in the order of their numbers."""
    return sorted(numbers)


@mutant(Rules.asked_offsets)
def answers_for_one_partition(_server: Rules, numbers: list[int], /) -> list[int]:
    """Of several partitions only the first is answered."""
    return numbers[:1]


@mutant(Rules.fetch_offsets)
def counts_one_topic(server: Rules, body: bytes, version: int, /) -> bytes:
    """FetchOffsets claims one topic, and goes on after it."""
    found = golden(server).fetch_offsets(body, version)
    return found[:3] + b"\1" + found[4:] if found[3] > 1 else found


# Consumer offsets ---------------------------------------------------------------------------------


@mutant(Rules.nameless)
def stores_for_nobody(_server: Rules, /) -> bytes:
    """A consumer without a name is told that its offset is stored."""
    return code(0)


@mutant(Rules.committed)
def forgets_commits(_server: Rules, _part: Partition, _consumer: str, _offset: int, /) -> None:
    """Offsets are acknowledged, and not stored."""


@mutant(Rules.committed)
def keeps_the_highest_commit(
    _server: Rules, partition: Partition, consumer: str, offset: int, /
) -> None:
    """A lower offset does not replace a higher one."""
    partition.commits[consumer] = max(offset, partition.commits.get(consumer, -1))


@mutant(Rules.committed)
def keeps_the_next_offset(
    server: Rules, partition: Partition, consumer: str, offset: int, /
) -> None:
    """The offset after the last record that was read is stored."""
    golden(server).committed(partition, consumer, offset + 1)


@mutant(Rules.committed)
def keeps_one_consumer(server: Rules, partition: Partition, consumer: str, offset: int, /) -> None:
    """A partition has room for one consumer."""
    partition.commits.clear()
    golden(server).committed(partition, consumer, offset)


@mutant(Rules.left)
def forgets_who_leaves(server: Rules, connection: Connection, /) -> None:
    """The offsets of a consumer go when its connection ends."""
    for stream in connection.streams.values():
        topic = server.memory.topics.get(stream.topic)
        if topic is not None and stream.consumer is not None:
            topic.partitions[stream.partition].commits.pop(stream.consumer, None)


@mutant(Rules.commit_outcome)
def refuses_commits(server: Rules, stream: Stream | None, offset: int, /) -> bytes:
    """Offsets of known consumers are refused."""
    outcome = golden(server).commit_outcome(stream, offset)
    return code(3004) if outcome == code(0) else outcome


@mutant(Rules.update_consumer)
def answers_commits_with_0(server: Rules, connection: Connection, body: bytes, /) -> bytes:
    """The answer to a stored offset names offset 0."""
    return bytes(8) + golden(server).update_consumer(connection, body)[8:]


@mutant(Rules.forgotten)
def never_forgets(_server: Rules, _partition: Partition, _consumer: str, /) -> None:
    """Offsets are told to be forgotten, and stay."""


@mutant(Rules.forgotten)
def forgets_everybody(_server: Rules, partition: Partition, _consumer: str, /) -> None:
    """With the offset of a consumer those of all others go, too."""
    partition.commits.clear()


@mutant(Rules.delete_consumer)
def answers_forgetting_with_a_name(server: Rules, body: bytes, /) -> bytes:
    """The answer to a forgotten offset goes on after its error."""
    return golden(server).delete_consumer(body) + words("")


@mutant(Rules.speaks_of_filter)
def reads_filters_at_version_23(_server: Rules, version: int, /) -> bool:
    """Filters are looked for one version too early."""
    return version >= 23


@mutant(Rules.speaks_of_filter)
def reads_no_filters(_server: Rules, _version: int, /) -> bool:
    """Filters are never looked for."""
    return False


@mutant(Rules.wanted_replica)
def tells_all_partitions(_server: Rules, _commit: Commit, _wanted: tuple[str, int] | None, /) -> (
    bool
):  # fmt: skip
    """The offsets of all partitions are told, whichever is asked about."""
    return True


@mutant(Rules.wanted_replica)
def tells_all_partitions_of_a_topic(
    _server: Rules, commit: Commit, replica: tuple[str, int] | None, /
) -> bool:
    """The offsets of all partitions of a topic are told."""
    return replica is None or replica[0] == commit[1]


@mutant(Rules.wanted_consumer)
def tells_all_consumers(_server: Rules, _commit: Commit, _consumer: str | None, /) -> bool:
    """The offsets of all consumers are told, whoever is asked about."""
    return True


@mutant(Rules.wanted_consumer)
def tells_nobody_without_a_name(_server: Rules, commit: Commit, consumer: str | None, /) -> bool:
    """Without a consumer in the request no offset is told."""
    return consumer == commit[0]


@mutant(Rules.told_commit)
def tells_commits_without_time(server: Rules, commit: Commit, /) -> bytes:
    """Stored offsets are told without their time."""
    return golden(server).told_commit(commit)[:-8]


@mutant(Rules.fetch_consumers)
def invents_commits(server: Rules, body: bytes, version: int, /) -> bytes:
    """Where nothing is stored something is told."""
    found = golden(server).fetch_consumers(body, version)
    if found[2:] != each([]):
        return found
    return code(0) + each([server.told_commit(("nobody", "nothing", 0, 0))])
