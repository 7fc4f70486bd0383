"""Servers that are wrong about Produce requests and their answers."""

from lance_conformance.fluvio.golden.codec import Entry, Malformed
from lance_conformance.fluvio.golden.objects import code
from lance_conformance.fluvio.golden.produce import Asked, EntryResult, Item, Lists
from lance_conformance.fluvio.golden.server import Rules
from lance_conformance.fluvio.golden.state import Partition, Refused, Topic
from lance_conformance.fluvio.mutants.registry import golden, mutant

Topics = list[tuple[str, list[EntryResult]]]
TENTH = 10


@mutant(Rules.speaks_of_modules)
def reads_modules_at_version_7(_server: Rules, version: int, /) -> bool:
    """SmartModules are looked for one version too early."""
    return version >= 7


@mutant(Rules.speaks_of_modules)
def reads_modules_at_version_9(_server: Rules, version: int, /) -> bool:
    """SmartModules are looked for one version too late."""
    return version >= 9


@mutant(Rules.tells_throttle)
def tells_throttling_always(_server: Rules, _version: int, /) -> bool:
    """The time of throttling is told at version 0, too."""
    return True


@mutant(Rules.tells_throttle)
def tells_throttling_from_version_2(_server: Rules, version: int, /) -> bool:
    """The time of throttling is told one version too late."""
    return version >= 2


@mutant(Rules.tells_time)
def tells_times_from_version_1(_server: Rules, version: int, /) -> bool:
    """The time of appending is told one version too early."""
    return version >= 1


@mutant(Rules.tells_time)
def tells_times_from_version_3(_server: Rules, version: int, /) -> bool:
    """The time of appending is told one version too late."""
    return version >= 3


@mutant(Rules.tells_start)
def tells_starts_from_version_2(_server: Rules, version: int, /) -> bool:
    """The lowest offset is told too early."""
    return version >= 2


@mutant(Rules.tells_start)
def tells_starts_from_version_6(_server: Rules, version: int, /) -> bool:
    """The lowest offset is told one version too late."""
    return version >= 6


@mutant(Rules.timeout_ok)
def takes_negative_timeouts(_server: Rules, _timeout: int, /) -> bool:
    """A time to wait may be negative."""
    return True


@mutant(Rules.timeout_ok)
def wants_long_timeouts(_server: Rules, timeout: int, /) -> bool:
    """A time to wait must be that of an old example."""
    return timeout >= 30_000


@mutant(Rules.produce_request)
def closes_on_nothing(server: Rules, body: bytes, version: int, /) -> Asked:
    """A request without topics ends the connection."""
    asked = golden(server).produce_request(body, version)
    if not asked.topics:
        raise Malformed("no topics")
    return asked


@mutant(Rules.produce_request)
def closes_on_a_flush(server: Rules, body: bytes, version: int, /) -> Asked:
    """A topic without partitions ends the connection."""
    asked = golden(server).produce_request(body, version)
    if any(not items for _, items in asked.topics):
        raise Malformed("no partitions")
    return asked


def _unless(server: Rules, body: bytes, version: int, sign: str) -> Asked:
    """The request, or one without topics where what is wrong with it bears a sign."""
    try:
        return golden(server).produce_request(body, version)
    except Malformed as problem:
        if sign not in str(problem):
            raise
        return Asked(1, 0, [])


@mutant(Rules.produce_request)
def answers_impossible_counts(server: Rules, body: bytes, version: int, /) -> Asked:
    """A request that counts more than it can hold is answered as one without topics."""
    return _unless(server, body, version, " items")


@mutant(Rules.produce_request)
def answers_negative_lengths(server: Rules, body: bytes, version: int, /) -> Asked:
    """A request with a negative length in it is answered as one without topics."""
    return _unless(server, body, version, "negative")


@mutant(Rules.produce_request)
def takes_one_entry(server: Rules, body: bytes, version: int, /) -> Asked:
    """Of several entries of a topic only the first is served."""
    asked = golden(server).produce_request(body, version)
    return asked._replace(topics=[(name, items[:1]) for name, items in asked.topics])


@mutant(Rules.missing_code)
def takes_6_for_something_else(_server: Rules, /) -> bytes:
    """A partition that is not there is answered with TopicNotFound."""
    return code(2001)


@mutant(Rules.missing_code)
def denies_nothing(_server: Rules, /) -> bytes:
    """A partition that is not there is answered without an error."""
    return code(0)


@mutant(Rules.partition_of)
def creates_partitions_on_the_fly(server: Rules, topic: str, number: int, /) -> Partition:
    """A partition that is not there is created, up to the tenth."""
    if number >= TENTH:
        return golden(server).partition_of(topic, number)
    found = server.memory.topics.setdefault(topic, Topic(topic, []))
    found.partitions += [Partition() for _ in range(number + 1 - len(found.partitions))]
    return found.partitions[number]


@mutant(Rules.partition_of)
def uses_partition_0_only(server: Rules, topic: str, _number: int, /) -> Partition:
    """Whatever the partition, its topic's first one is used."""
    return golden(server).partition_of(topic, 0)


@mutant(Rules.partition_of)
def counts_one_partition_too_many(server: Rules, topic: str, number: int, /) -> Partition:
    """The number after that of the last partition is the last partition, too."""
    found = server.memory.topics.get(topic)
    behind = found is not None and number == len(found.partitions)
    return golden(server).partition_of(topic, number - 1 if behind else number)


@mutant(Rules.partition_of)
def keeps_all_topics_in_one(server: Rules, topic: str, number: int, /) -> Partition:
    """All topics share their records."""
    golden(server).partition_of(topic, number)
    return server.memory.topics["consumer-offset"].partitions[0]


@mutant(Rules.waits)
def never_answers_committed(_server: Rules, isolation: int, /) -> bool:
    """Who waits for committed records waits for ever."""
    return isolation < 0


@mutant(Rules.waits)
def answers_committed_only(_server: Rules, isolation: int, /) -> bool:
    """Who does not wait for committed records gets no answer."""
    return isolation >= 0


@mutant(Rules.stored)
def acknowledges_and_forgets(
    _server: Rules, _partition: Partition, _entries: list[Entry], /
) -> None:
    """Records are acknowledged, and not stored."""


@mutant(Rules.stored)
def stores_twice(server: Rules, partition: Partition, entries: list[Entry], /) -> None:
    """Every batch is stored twice."""
    for _ in range(2):
        golden(server).stored(partition, entries)


@mutant(Rules.stored)
def stores_the_newest_first(_server: Rules, part: Partition, entries: list[Entry], /) -> None:
    """New records are put in front of those there are."""
    before = [entry for _, batch in part.batches for entry in batch]
    part.batches[:] = [(0, [*entries, *before])]


@mutant(Rules.stored)
def believes_base_offsets(_server: Rules, partition: Partition, entries: list[Entry], /) -> None:
    """What producers write as base offset of a batch, its last place, is added to the offset."""
    partition.batches.append((partition.end + len(entries) - 1, entries))


@mutant(Rules.stored)
def keeps_100_records_of_a_batch(
    server: Rules, partition: Partition, entries: list[Entry], /
) -> None:
    """Of a large batch only 100 records are stored."""
    golden(server).stored(partition, entries[:100])


@mutant(Rules.stored)
def drops_what_it_has(server: Rules, partition: Partition, entries: list[Entry], /) -> None:
    """A batch as large as the one before it is taken for the same, and not stored."""
    sizes = [len(entry.value) for entry in entries]
    last = [len(e.value) for e in partition.batches[-1][1]] if partition.batches else []
    if sizes != last:
        golden(server).stored(partition, entries)


@mutant(Rules.stored_though_refused)
def stores_what_it_refuses(server: Rules, partition: Partition, lists: Lists, /) -> None:
    """Something of an entry that is refused is stored."""
    del lists
    server.stored(partition, [Entry(None, b"?", 0)])


@mutant(Rules.kept_batches)
def keeps_the_first_batch(_server: Rules, lists: Lists, /) -> Lists:
    """Of several batches of an entry the first is stored."""
    return lists[:1]


@mutant(Rules.kept_batches)
def keeps_batches_backwards(_server: Rules, lists: Lists, /) -> Lists:
    """Batches of one entry are stored from the last to the first."""
    return lists[::-1]


@mutant(Rules.kept_batches)
def refuses_entries_without_batches(_server: Rules, lists: Lists, /) -> Lists:
    """An entry without batches is refused."""
    if not lists:
        raise Refused(code(56))
    return lists


@mutant(Rules.told_base_offset)
def tells_offset_0(_server: Rules, _base: int, _entries: int, /) -> int:
    """Every batch is told to begin at offset 0."""
    return 0


@mutant(Rules.told_base_offset)
def tells_the_last_offset(_server: Rules, base: int, entries: int, /) -> int:
    """The offset of the last record is told instead of the first."""
    return base + entries - 1


@mutant(Rules.told_base_offset)
def tells_the_next_offset(_server: Rules, base: int, entries: int, /) -> int:
    """The offset after the last record is told instead of the first."""
    return base + entries


@mutant(Rules.append)
def stores_nothing_behind_a_refusal(server: Rules, topic: str, item: Item, /) -> EntryResult:
    """After an entry that was refused its topic takes no more."""
    answer = golden(server).append(topic, item)
    if topic in server.memory.scars:
        return answer._replace(outcome=code(56))
    if answer.outcome != code(0):
        server.memory.scars.add(topic)
    return answer


@mutant(Rules.answered)
def answers_entries_backwards(_server: Rules, answers: list[EntryResult], /) -> list[EntryResult]:
    """Entries are answered from the last to the first."""
    return answers[::-1]


@mutant(Rules.answered)
def answers_by_partition(_server: Rules, answers: list[EntryResult], /) -> list[EntryResult]:
    """Entries are answered in the order of their partitions."""
    return sorted(answers, key=lambda answer: answer.partition)


@mutant(Rules.answered)
def answers_once_a_partition(_server: Rules, answers: list[EntryResult], /) -> list[EntryResult]:
    """Several entries for one partition are answered by the last one's answer."""
    return list({answer.partition: answer for answer in answers}.values())


@mutant(Rules.answered)
def fails_the_whole_request(_server: Rules, answers: list[EntryResult], /) -> list[EntryResult]:
    """When one entry is refused all of them are told to be."""
    bad = [answer.outcome for answer in answers if answer.outcome != code(0)]
    return [answer._replace(outcome=bad[0]) if bad else answer for answer in answers]


@mutant(Rules.answered)
def praises_the_whole_request(_server: Rules, answers: list[EntryResult], /) -> list[EntryResult]:
    """When one entry is stored all of them are told to be."""
    good = any(answer.outcome == code(0) for answer in answers)
    return [answer._replace(outcome=code(0)) if good else answer for answer in answers]


@mutant(Rules.answered)
def answers_for_partition_0(_server: Rules, answers: list[EntryResult], /) -> list[EntryResult]:
    """Every answer names partition 0."""
    return [answer._replace(partition=0) for answer in answers]


@mutant(Rules.appended_topics)
def leaves_out_empty_topics(_server: Rules, topics: Topics, /) -> Topics:
    """A topic without partitions is left out of the answer."""
    return [(name, answers) for name, answers in topics if answers]


@mutant(Rules.appended_topics)
def sorts_topics(_server: Rules, topics: Topics, /) -> Topics:
    """Topics are answered in the order of their names."""
    return sorted(topics, key=lambda topic: topic[0])


@mutant(Rules.appended_topics)
def answers_without_names(_server: Rules, topics: Topics, /) -> Topics:
    """Topics are answered without their names."""
    return [("", answers) for _, answers in topics]


@mutant(Rules.produced)
def counts_entries_in_two_bytes(server: Rules, answers: Topics, version: int, /) -> bytes:
    """The topics of an answer are counted like a map."""
    return golden(server).produced(answers, version)[2:]


@mutant(Rules.produce)
def closes_on_several_topics(server: Rules, body: bytes, version: int, /) -> bytes | None:
    """A request to several topics ends the connection."""
    if len(server.produce_request(body, version).topics) > 1:
        raise Malformed("several topics")
    return golden(server).produce(body, version)
