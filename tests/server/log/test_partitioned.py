"""Partitioned topics at the log: all or nothing, whatever happens (AMB-59)."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from signal import SIGKILL

import pytest

from lance_server.log.metadata.topic_file import Retention
from lance_server.lwp.refusals import Refusal
from lance_server.testing import (
    CrashError,
    FaultyStorage,
    LogDriver,
    MemoryStorage,
    RawClient,
    ServerProcess,
)
from lance_spec.bodies import TopicInfo, decode_topics
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import encode_control
from lance_spec.messages.lwp import CreatePartitionedTopic
from lance_spec.records import encode_records

NONE = Retention()


def create(log: LogDriver, name: str = "orders", count: int = 3) -> list[int]:
    """Create a partitioned topic and return the numbers of its partitions."""
    made = log.engine.partitioned.create(name, count, "murmur2", NONE)
    log.scheduler.run_all()
    return [topic.id for topic in made.result()]


def add(log: LogDriver, count: int) -> list[int]:
    """Give it partitions; return the numbers of all."""
    made = log.engine.partitioned.add("orders", count)
    log.scheduler.run_all()
    return [topic.id for topic in made.result()]


def delete(log: LogDriver) -> list[int]:
    """Delete it, and return what it was made of."""
    gone = log.engine.partitioned.delete("orders")
    log.scheduler.run_all()
    return gone.result()


def retain(log: LogDriver, retention: Retention) -> None:
    """Change the retention of all through its second partition."""
    topic = log.engine.topic_named("orders-1")
    assert topic is not None
    changed = log.engine.set_retention(topic, retention)
    log.scheduler.run_all()
    changed.result()


def names(log: LogDriver) -> list[str]:
    """Return the names of all topics, sorted."""
    return sorted(topic.file.identity.name for topic in log.engine.topics())


def refused(work: Callable[[], object]) -> Refusal:
    """Return the refusal of some work."""
    with pytest.raises(Refusal) as found:
        work()
    return found.value


ALL = ["orders-0", "orders-1", "orders-2"]


def test_its_partitions_are_topics_with_its_name_and_a_number() -> None:
    """Partition n of orders is the topic orders-n."""
    log = LogDriver(MemoryStorage())
    create(log)
    assert names(log) == ALL


def test_each_partition_tells_which_it_is() -> None:
    """Which topic, which of how many, and how keys find it."""
    log = LogDriver(MemoryStorage())
    third = log.engine.topic(create(log)[2]).info().partition
    assert third is not None
    assert (third.topic, third.index, third.count, third.partitioner) == ("orders", 2, 3, "murmur2")


def test_a_topic_is_no_partition_by_its_name_alone() -> None:
    """Only a description makes one."""
    log = LogDriver(MemoryStorage())
    assert log.create_topic("orders-0").info().partition is None


@pytest.mark.parametrize("taken", ["orders", "orders-0", "orders-7", "orders-123456"])
def test_creation_is_refused_where_a_name_of_it_is_taken(taken: str) -> None:
    """Also where a partition that it does not have yet would be called so."""
    log = LogDriver(MemoryStorage())
    log.create_topic(taken)
    refusal = refused(lambda: create(log))
    assert (refusal.code, names(log)) == (ErrorCode.TOPIC_ALREADY_EXISTS, [taken])


@pytest.mark.parametrize("name", ["orders", "orders-1", "orders-99"])
def test_its_names_are_not_given_to_other_topics(name: str) -> None:
    """Nor those that later partitions would have."""
    log = LogDriver(MemoryStorage())
    create(log)
    refusal = refused(lambda: log.create_topic(name))
    assert refusal.code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("name", ["orders", "orders-99"])
def test_a_name_is_not_given_while_it_is_being_created(name: str) -> None:
    """Whoever comes second waits and is told."""
    log = LogDriver(MemoryStorage())
    first = log.engine.partitioned.create("orders", 3, "murmur2", NONE)
    second = log.engine.create_topic(name, NONE)
    log.scheduler.run_all()
    assert len(first.result()) == 3
    assert refused(second.result).code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_the_second_of_two_creations_is_refused() -> None:
    """And finds the first one whole."""
    log = LogDriver(MemoryStorage())
    first = log.engine.partitioned.create("orders", 3, "murmur2", NONE)
    second = log.engine.partitioned.create("orders", 5, "murmur2", NONE)
    log.scheduler.run_all()
    assert len(first.result()) == 3
    assert refused(second.result).code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("count", [0, 4097])
def test_the_number_of_partitions_is_bounded(count: int) -> None:
    """At least one, at most 4096."""
    log = LogDriver(MemoryStorage())
    assert refused(lambda: create(log, count=count)).code == ErrorCode.INVALID_PAYLOAD


def test_a_partition_is_not_deleted_alone() -> None:
    """The refusal names the whole."""
    log = LogDriver(MemoryStorage())
    topic_id = create(log)[1]
    refusal = refused(lambda: log.engine.delete_topic(topic_id, text=""))
    assert refusal.code == ErrorCode.ACCESS_DENIED
    assert "partition 1 of the partitioned topic 'orders'" in refusal.message


def test_deletion_takes_all_partitions() -> None:
    """And frees their names, whose numbers and epochs stay spent."""
    log = LogDriver(MemoryStorage())
    before = create(log)
    assert delete(log) == before
    after = create(log)
    assert names(log) == ALL
    assert not set(before) & set(after)
    assert log.engine.topic(after[0]).info().topic_epoch == 2


def test_a_deletion_waits_for_batches_that_were_accepted() -> None:
    """Whoever sent one is told how it went."""
    log = LogDriver(MemoryStorage())
    batch = log.append([b"one"], topic_id=create(log)[0])
    delete(log)
    assert batch.done


def test_retention_of_one_partition_is_for_all() -> None:
    """Whichever is named."""
    log = LogDriver(MemoryStorage())
    ids = create(log)
    retain(log, Retention(60, 2**30))
    assert {log.engine.topic(each).file.retention for each in ids} == {Retention(60, 2**30)}


def test_partitions_are_added_behind_those_there_are() -> None:
    """Records stay where they are; every partition tells the new number."""
    log = LogDriver(MemoryStorage())
    before = create(log)
    log.store([b"one"], topic_id=before[0])
    after = add(log, 5)
    assert (after[:3], len(after)) == (before, 5)
    assert log.read_all(before[0]).data == encode_records([b"one"])
    assert {log.engine.topic(each).part.count for each in after} == {5}  # type: ignore[union-attr]


def test_added_partitions_have_the_retention_of_the_others() -> None:
    """As it is now."""
    log = LogDriver(MemoryStorage())
    create(log)
    retain(log, Retention(60, 0))
    assert log.engine.topic(add(log, 4)[3]).file.retention == Retention(60, 0)


def test_as_many_partitions_as_there_are_change_nothing() -> None:
    """So a request whose answer was lost may be sent again."""
    log = LogDriver(MemoryStorage())
    assert create(log) == add(log, 3)


def test_partitions_are_not_taken_away() -> None:
    """Their records would be lost."""
    log = LogDriver(MemoryStorage())
    create(log)
    assert refused(lambda: add(log, 2)).code == ErrorCode.INVALID_PAYLOAD


def test_all_of_it_survives_a_restart() -> None:
    """Numbers, order, partitioner, retention and records."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    ids = create(log)
    retain(log, Retention(60, 0))
    log.store([b"two"], topic_id=ids[2])
    before = [log.engine.topic(each).info() for each in ids]
    again = LogDriver(disk.crash(Random(1)))
    assert [again.engine.topic(each).info() for each in ids] == before
    assert again.read_all(ids[2]).data == encode_records([b"two"])


def crashed(
    prepare: Callable[[LogDriver], object], work: Callable[[LogDriver], object], step: int
) -> tuple[LogDriver, bool]:
    """Crash after so many steps of some work; return the next start, and whether it was done."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    log.store([b"kept"])
    prepare(log)
    disk.crash_after = disk.operations + step
    try:
        work(log)
    except CrashError:
        done = False
    else:
        done = True
    disk.crash_after = None
    return LogDriver(disk.crash(Random(step))), done


def outcomes(
    prepare: Callable[[LogDriver], object],
    work: Callable[[LogDriver], object],
    seen: Callable[[LogDriver], object],
) -> list[object]:
    """Return what is seen after a crash at each step, until the work is done."""
    found: list[object] = []
    for step in range(400):
        again, done = crashed(prepare, work, step)
        assert again.read_all().data == encode_records([b"kept"])
        found.append(seen(again))
        if done:
            return found
    raise AssertionError("it never ended")


def whole(log: LogDriver) -> tuple[int, ...]:
    """Return how many topics there are, and what each partition says of their number."""
    parts = [topic.part for topic in log.engine.topics()]
    return (len(parts), *sorted({0 if part is None else part.count for part in parts}))


def nothing(log: LogDriver) -> None:
    """Prepare nothing."""
    del log


def test_a_crash_during_creation_leaves_all_or_nothing() -> None:
    """At whichever step."""
    found = outcomes(nothing, create, whole)
    assert set(found) == {(0,), (3, 3)}
    assert found[-1] == (3, 3)


def test_a_crash_while_adding_leaves_the_old_number_or_the_new() -> None:
    """At whichever step."""
    found = outcomes(create, lambda log: add(log, 5), whole)
    assert set(found) == {(3, 3), (5, 5)}
    assert found[-1] == (5, 5)


def test_a_crash_during_deletion_leaves_all_or_nothing() -> None:
    """At whichever step."""
    found = outcomes(create, delete, whole)
    assert set(found) == {(0,), (3, 3)}
    assert found[-1] == (0,)


def test_a_crash_while_retention_changes_leaves_one_for_all() -> None:
    """The next start finishes what was begun."""

    def kept(log: LogDriver) -> list[Retention]:
        return sorted(
            {topic.file.retention for topic in log.engine.topics()}, key=lambda each: each.max_bytes
        )

    found = outcomes(create, lambda log: retain(log, Retention(0, 2**30)), kept)
    assert all(len(each) == 1 for each in found if isinstance(each, list))
    assert found[-1] == [Retention(0, 2**30)]


def test_a_crash_leaves_no_folder_of_what_is_gone() -> None:
    """Neither after a creation nor after a deletion that was cut short."""

    def folders(log: LogDriver) -> bool:
        storage = log.engine.storage
        found = {name for name in storage.list_dir(Path("/data/segments")) if name.isdecimal()}
        return found == {"0", *(str(topic.id) for topic in log.engine.topics())}

    assert all(outcomes(nothing, create, folders))
    assert all(outcomes(create, delete, folders))


@pytest.mark.parametrize("operation", ["make_dir", "rename", "sync_dir", "sync", "write"])
def test_a_creation_that_the_disk_refuses_leaves_nothing(operation: str) -> None:
    """Once the disk takes it, the same creation succeeds."""
    disk = FaultyStorage(MemoryStorage())
    log = LogDriver(disk)
    disk.fail = {operation: 28}
    made = log.engine.partitioned.create("orders", 3, "murmur2", NONE)
    log.scheduler.run_all()
    assert isinstance(made.error, Refusal)
    disk.fail = {}
    assert len(create(log)) == 3
    assert names(log) == ALL


@pytest.mark.parametrize("operation", ["rename", "sync_dir", "sync", "write"])
def test_a_deletion_that_the_disk_refuses_leaves_all_or_nothing(operation: str) -> None:
    """Now and after the next start."""
    memory = MemoryStorage()
    disk = FaultyStorage(memory)
    log = LogDriver(disk)
    create(log)
    disk.fail = {operation: 28}
    gone = log.engine.partitioned.delete("orders")
    log.scheduler.run_all()
    assert isinstance(gone.error, Refusal)
    disk.fail = {}
    assert names(log) in ([], ALL)
    assert names(LogDriver(memory.crash(Random(1)))) in ([], ALL)


def halves(topics: list[TopicInfo]) -> dict[str, tuple[int, int]]:
    """Return how many partitions are there, and are to be there, of topics that are not whole."""
    parts = [topic.partition for topic in topics if topic.partition is not None]
    assert len(parts) == len(topics), "all were created with partitions"
    there = Counter(part.topic for part in parts)
    wanted = {part.topic: part.count for part in parts}
    return {name: (there[name], wanted[name]) for name in wanted if there[name] != wanted[name]}


@pytest.mark.parametrize("answers", [1, 4, 7])
def test_a_server_that_is_killed_has_whole_topics_only(tmp_path: Path, answers: int) -> None:
    """Creations and deletions are on their way when it dies; what was answered holds."""
    data = tmp_path / "data"
    server = ServerProcess(data)
    with RawClient(server.address) as client:
        for number in range(12):
            name = b"t%d" % number
            request = CreatePartitionedTopic(name, 4, 1, 0, 0).encode()
            client.send(encode_control(SPECIFIED, Command.CREATE_PARTITIONED_TOPIC, request))
            if number % 2:
                client.send(encode_control(SPECIFIED, Command.DELETE_PARTITIONED_TOPIC, name))
        for _ in range(answers):
            assert client.receive().command == Command.TOPIC_RESPONSE
        server.end(SIGKILL)
    with ServerProcess.running(data) as again, RawClient(again.address) as client:
        topics = decode_topics(client.ask(Command.LIST_TOPICS).payload)
        assert halves(topics) == {}
        assert {f"t0-{index}" for index in range(4)} <= {topic.name for topic in topics}
