"""Servers that lose, mix up or make up records, topics and commits."""

from lance_conformance.rustlog.golden.rules import Rules
from lance_conformance.rustlog.golden.state import CommitKey, Connection
from lance_conformance.rustlog.mutants.registry import BINARY, BOTH, golden, mutant


@mutant(Rules.written, only=BINARY)
def creates_topics_on_produce(server: Rules, topic: str, partition: int, /) -> list[bytes] | None:
    """A Produce makes the topic that it lacks."""
    if partition == 0:
        server.memory.topics.setdefault(topic, [[]])
    return golden(server).written(topic, partition)


@mutant(Rules.written, only=BINARY)
def creates_topics_and_refuses(server: Rules, topic: str, partition: int, /) -> list[bytes] | None:
    """A Produce to a topic that is missing is refused, but makes it for the next one."""
    found = golden(server).written(topic, partition)
    server.memory.topics.setdefault(topic, [[]])
    return found


@mutant(Rules.written, only=BINARY)
def wraps_partitions_around(server: Rules, topic: str, partition: int, /) -> list[bytes] | None:
    """A Produce to a partition after the last one goes to an earlier one."""
    parts = server.memory.topics.get(topic)
    return parts[partition % len(parts)] if parts else None


@mutant(Rules.written, only=BINARY)
def takes_partitions_for_signed(server: Rules, topic: str, partition: int, /) -> list[bytes] | None:
    """The highest partition is the one before the first, which is the last."""
    parts = server.memory.topics.get(topic)
    if parts and partition == 2**32 - 1:
        return parts[-1]
    return golden(server).written(topic, partition)


@mutant(Rules.written, only=BINARY)
def writes_to_partition_0(server: Rules, topic: str, partition: int, /) -> list[bytes] | None:
    """Whatever partition a Produce names, its records go to the first."""
    found = golden(server).written(topic, partition)
    return None if found is None else server.memory.topics[topic][0]


@mutant(Rules.written, only=BINARY)
def writes_to_the_topic_that_begins_so(
    server: Rules, topic: str, partition: int, /
) -> list[bytes] | None:
    """Records go to the first topic whose name the given one begins with."""
    for name in sorted(server.memory.topics):
        if topic.startswith(name):
            return golden(server).written(name, partition)
    return None


@mutant(Rules.read, only=BINARY)
def reads_nothing_from_nowhere(server: Rules, topic: str, partition: int, /) -> list[bytes] | None:
    """A topic that does not exist is read as an empty one."""
    if topic not in server.memory.topics:
        return []
    return golden(server).read(topic, partition)


@mutant(Rules.read, only=BINARY)
def reads_nothing_from_missing_partitions(
    server: Rules, topic: str, partition: int, /
) -> list[bytes] | None:
    """A partition that does not exist is read as an empty one."""
    found = golden(server).read(topic, partition)
    return [] if found is None and topic in server.memory.topics else found


@mutant(Rules.read, only=BINARY)
def reads_all_partitions(server: Rules, topic: str, partition: int, /) -> list[bytes] | None:
    """A Fetch from partition 0 brings the records of all."""
    parts = server.memory.topics.get(topic, [])
    whole = [record for part in parts for record in part]
    return whole if parts and partition == 0 else golden(server).read(topic, partition)


@mutant(Rules.partition, only=BINARY)
def has_one_partition_less(server: Rules, topic: str, partition: int, /) -> list[bytes] | None:
    """The last of three or more partitions is not there."""
    parts = server.memory.topics.get(topic, [])
    return None if partition == len(parts) - 1 >= 2 else golden(server).partition(topic, partition)


@mutant(Rules.partition, only=BINARY)
def has_one_partition_more(server: Rules, topic: str, partition: int, /) -> list[bytes] | None:
    """After the last of three partitions there is another."""
    parts = server.memory.topics.get(topic, [])
    return [] if partition == len(parts) == 3 else golden(server).partition(topic, partition)


@mutant(Rules.stored, only=BINARY)
def stores_nothing(_server: Rules, log: list[bytes], _records: list[bytes], /) -> list[bytes]:
    """Records are acknowledged and not stored."""
    return log


@mutant(Rules.stored, only=BINARY)
def leaves_empty_records_out(
    _server: Rules, log: list[bytes], records: list[bytes], /
) -> list[bytes]:
    """Empty records are not stored."""
    return log + [record for record in records if record]


@mutant(Rules.stored, only=BINARY)
def cuts_long_records(_server: Rules, log: list[bytes], records: list[bytes], /) -> list[bytes]:
    """Of a record 65,536 bytes are stored."""
    return log + [record[:65_536] for record in records]


@mutant(Rules.stored, only=BINARY)
def stores_last_records_first(
    _server: Rules, log: list[bytes], records: list[bytes], /
) -> list[bytes]:
    """The records of a Produce are stored in the opposite order."""
    return log + records[::-1]


@mutant(Rules.stored, only=BINARY)
def stores_the_latest_in_front(
    _server: Rules, log: list[bytes], records: list[bytes], /
) -> list[bytes]:
    """New records stand before those that were there."""
    return records + log


@mutant(Rules.base, only=BINARY)
def counts_by_connection(_server: Rules, connection: Connection, before: int, /) -> int:
    """A Produce is told how many records its own connection had stored."""
    return min(connection.stored, before)


@mutant(Rules.base, only=BINARY)
def begins_at_1(_server: Rules, _connection: Connection, before: int, /) -> int:
    """The first record of a partition has offset 1."""
    return before + 1


@mutant(Rules.base, only=BINARY)
def tells_0_as_offset(_server: Rules, _connection: Connection, _before: int, /) -> int:
    """Every Produce is told offset 0, as the first broker did."""
    return 0


@mutant(Rules.counted, only=BINARY)
def counts_bytes(_server: Rules, records: list[bytes], /) -> int:
    """A Produce is told how many bytes it had."""
    return sum(map(len, records))


@mutant(Rules.counted, only=BINARY)
def does_not_count_empty_records(_server: Rules, records: list[bytes], /) -> int:
    """Empty records are stored, but not counted."""
    return sum(1 for record in records if record)


@mutant(Rules.nothing_stored, only=BINARY)
def tells_the_end_for_nothing(_server: Rules, before: int, /) -> tuple[int, int]:
    """A Produce without records is told where the partition ends."""
    return before, 0


@mutant(Rules.commit_key, only=BINARY)
def commits_for_a_connection(_server: Rules, connection: Connection, place: CommitKey, /) -> object:
    """A commit is known to its own connection only."""
    return id(connection), place


@mutant(Rules.commit_key, only=BINARY)
def commits_for_all_groups(_server: Rules, _connection: Connection, place: CommitKey, /) -> object:
    """Groups whose names begin alike share their commits."""
    return place[0][:1], place[1:]


@mutant(Rules.commit_key, only=BINARY)
def commits_for_all_partitions(
    _server: Rules, _connection: Connection, place: CommitKey, /
) -> object:
    """A group has one commit in a topic."""
    return place[:2]


@mutant(Rules.commit_key, only=BINARY)
def commits_for_all_topics(_server: Rules, _connection: Connection, place: CommitKey, /) -> object:
    """What stands after the last dash of a topic's name is not looked at."""
    return place[0], place[1].rpartition("-")[0], place[2]


@mutant(Rules.kept_commit, only=BINARY)
def never_commits_back(_server: Rules, before: int | None, offset: int, /) -> int:
    """A commit below the one before it is answered and not kept."""
    return max(before or 0, offset)


@mutant(Rules.kept_commit, only=BINARY)
def never_commits_again(_server: Rules, before: int | None, offset: int, /) -> int:
    """The first commit of a group stays."""
    return offset if before is None else before


@mutant(Rules.kept_commit, only=BINARY)
def keeps_63_bits(_server: Rules, _before: int | None, offset: int, /) -> int:
    """The highest bit of a commit is lost."""
    return offset % 2**63


@mutant(Rules.kept_commit, only=BINARY)
def commits_the_next_offset(_server: Rules, _before: int | None, offset: int, /) -> int:
    """A commit is taken for the last record read, as others do."""
    return offset + 1 if offset == 7 else offset


@mutant(Rules.commits_for, only=BINARY)
def commits_only_where_a_topic_is(server: Rules, topic: str, partition: int, /) -> bool:
    """A commit for a partition that does not exist is told no success."""
    return server.partition(topic, partition) is not None


@mutant(Rules.made, only=BINARY)
def forgets_commits_of_new_topics(server: Rules, topic: str, count: int, /) -> None:
    """A topic that is made begins without commits."""
    commits = server.memory.commits
    for key in [key for key in commits if isinstance(key, tuple) and topic in key]:
        del commits[key]
    golden(server).made(topic, count)


@mutant(Rules.made, only=BINARY)
def makes_one_partition_more(server: Rules, topic: str, count: int, /) -> None:
    """A topic of three partitions has four."""
    golden(server).made(topic, count + (count == 3))


@mutant(Rules.made_again, only=BINARY)
def empties_topics_that_exist(server: Rules, topic: str, _count: int, /) -> None:
    """A topic that is created again is refused, and its records are gone."""
    for part in server.memory.topics[topic]:
        part.clear()


@mutant(Rules.made_again, only=BINARY)
def grows_topics_that_exist(server: Rules, topic: str, count: int, /) -> None:
    """A topic that is created again is refused, and has the new number of partitions."""
    parts = server.memory.topics[topic]
    parts += [[] for _ in range(count - len(parts))]


@mutant(Rules.after_read, only=BINARY)
def commits_what_was_read(server: Rules, place: CommitKey, following: int, /) -> None:
    """A Fetch for a group commits what it returned."""
    if place[0]:
        server.memory.commits[place] = following


@mutant(Rules.after_read, only=BINARY)
def consumes_what_was_read(server: Rules, place: CommitKey, _following: int, /) -> None:
    """What was read once is replaced by something else."""
    log = server.partition(place[1], place[2]) or []
    log[:] = [b"" for _ in log]


@mutant(Rules.missing_matters, only=BINARY)
def takes_nothing_for_anybody(_server: Rules, records: list[bytes], /) -> bool:
    """A Produce without records is answered whether its topic exists or not."""
    return bool(records)


@mutant(Rules.stored, only=BINARY)
def cuts_records_at_255(_server: Rules, log: list[bytes], records: list[bytes], /) -> list[bytes]:
    """Of a record 255 bytes are stored."""
    return log + [record[:255] for record in records]


@mutant(Rules.json_place, only=BOTH)
def commits_for_json_alone(
    _server: Rules, group: str, topic: str, partition: int, /
) -> tuple[str, str, int]:
    """Commits in JSON are kept apart from binary ones."""
    return f"json {group}", topic, partition


@mutant(Rules.json_log, only=BOTH)
def keeps_json_records_apart(server: Rules, topic: str, partition: int, /) -> list[bytes] | None:
    """JSON requests write to logs of their own."""
    if server.partition(topic, partition) is None:
        return None
    return server.memory.topics.setdefault(f"json {topic}", [[], []])[partition]
