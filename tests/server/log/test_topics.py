"""Topics: who they are, and what is never given away twice (AMB-24, AMB-30, AMB-34)."""

import json
from pathlib import Path

import pytest

from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.catalog import TopicIdAllocator
from lance_server.log.metadata.topic_file import Retention
from lance_server.lwp.refusals import Refusal
from lance_server.testing import CrashError, FaultyStorage, LogDriver, MemoryStorage
from lance_spec.enums import ErrorCode
from lance_spec.records import encode_records


def delete(log: LogDriver, topic_id: int) -> None:
    """Delete a topic and wait until it is gone."""
    outcome = log.engine.delete_topic(topic_id, text="gone")
    log.scheduler.run_all()
    outcome.result()


def refusal(log: LogDriver, topic_id: int) -> ErrorCode:
    """Return why a topic cannot be had."""
    with pytest.raises(Refusal) as refused:
        log.engine.topic(topic_id)
    return refused.value.code


def test_the_default_topic_exists_and_is_not_listed() -> None:
    """Topic 0 is there from the start, under the name default."""
    log = LogDriver(MemoryStorage())
    assert log.engine.topic(0).info().name == "default"
    assert list(log.engine.topics()) == []


def test_the_default_topic_cannot_be_deleted() -> None:
    """Clients that know no topics rely on it."""
    log = LogDriver(MemoryStorage())
    with pytest.raises(Refusal):
        log.engine.delete_topic(0, text="no")


def test_ids_rise_from_one() -> None:
    """The first topic is 1, the next 2."""
    log = LogDriver(MemoryStorage())
    assert [log.create_topic(name).id for name in ("a", "b")] == [1, 2]


def test_a_taken_name_is_refused() -> None:
    """Whoever comes second is told."""
    log = LogDriver(MemoryStorage())
    log.create_topic("taken")
    with pytest.raises(Refusal, match="'taken' already exists"):
        log.engine.create_topic("taken", Retention())


def test_who_loses_the_race_for_a_name_finds_the_topic_listed() -> None:
    """The refusal waits until the first creation is durable."""
    log = LogDriver(MemoryStorage())
    first, *others = (log.engine.create_topic("taken", Retention()) for _ in range(3))
    assert not any(outcome.done for outcome in (first, *others))
    log.scheduler.run_all()
    assert [topic.file.identity.name for topic in log.engine.topics()] == ["taken"]
    assert first.result().id == 1
    for outcome in others:
        with pytest.raises(Refusal, match="'taken' already exists"):
            outcome.result()


def test_who_loses_the_race_to_a_creation_that_fails_wins() -> None:
    """The next in line tries by itself."""
    disk = FaultyStorage(MemoryStorage())
    log = LogDriver(disk)
    disk.fail = {"make_dir": 28}
    first = log.engine.create_topic("name", Retention())
    first.wake(disk.fail.clear)
    second = log.engine.create_topic("name", Retention())
    log.scheduler.run_all()
    assert first.error is not None
    assert second.result().file.identity.name == "name"


def test_an_id_is_never_used_again() -> None:
    """Not after a deletion, not after a restart, clean or not."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    log.create_topic("first")
    delete(log, 1)
    again = LogDriver(disk.copy())
    assert again.create_topic("second").id == 2


def test_a_claimed_id_is_spent_even_if_nothing_comes_of_it() -> None:
    """It is durable before the topic is begun."""
    disk = MemoryStorage()
    folder = Path("/segments")
    disk.make_dir(folder)
    assert TopicIdAllocator(disk, folder).claim("name") == (1, 1)
    again = TopicIdAllocator(disk, folder)
    again.load()
    assert again.claim("name") == (2, 1)


def test_a_deleted_topic_is_told_apart_from_one_that_never_was() -> None:
    """0x13 for an id that existed, 0x10 otherwise (AMB-34)."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    log.create_topic("first")
    delete(log, 1)
    for each in (log, LogDriver(disk.copy())):
        assert refusal(each, 1) is ErrorCode.TOPIC_DELETED
        assert refusal(each, 2) is ErrorCode.TOPIC_NOT_FOUND


def test_the_epoch_rises_with_each_creation_of_a_name() -> None:
    """Only of that name, and across restarts (AMB-30)."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    assert log.create_topic("name").info().topic_epoch == 1
    delete(log, 1)
    log = LogDriver(disk.copy())
    assert log.create_topic("name").info().topic_epoch == 2
    assert log.create_topic("other").info().topic_epoch == 1


def test_forgotten_names_never_get_a_lower_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of deleted names is bounded; a floor stands in for the rest."""
    monkeypatch.setattr("lance_server.log.metadata.catalog._MAX_RETIRED_NAMES", 2)
    disk = MemoryStorage()
    folder = Path("/segments")
    disk.make_dir(folder)
    catalog = TopicIdAllocator(disk, folder)
    catalog.retire("busy", 9)
    for name in ("x", "y", "z"):
        catalog.retire(name, 1)
    assert catalog.claim("busy")[1] > 9


def test_a_deleted_topic_leaves_no_files() -> None:
    """Its folder is gone, and the segments cache holds no file of it."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    topic_id = log.create_topic("gone").id
    log.store([b"one"], topic_id=topic_id)
    log.fetch(0, topic_id=topic_id)
    delete(log, topic_id)
    assert [path for path in disk.files() if path.parent.name not in {"segments", "0"}] == []
    assert disk._open == {}


def test_a_deletion_waits_for_batches_that_were_accepted() -> None:
    """They are acknowledged first; a later batch finds no topic."""
    log = LogDriver(MemoryStorage())
    topic_id = log.create_topic("busy").id
    log.store([b"zero"], topic_id=topic_id, batch_id=9)
    first = log.append([b"one"], topic_id=topic_id)
    log.scheduler.run_soon()
    second = log.append([b"two"], topic_id=topic_id, batch_id=2)
    deleted = log.engine.delete_topic(topic_id, text="gone")
    assert refusal(log, topic_id) is ErrorCode.TOPIC_DELETED
    assert len(log.scheduler.work) == 1, "the folder is touched while batches go to it"
    log.scheduler.run_all()
    assert (first.error, second.error, deleted.error) == (None, None, None)


def test_a_deletion_that_fails_leaves_the_topic_as_it_was() -> None:
    """The disk refuses the first step: nothing is lost."""
    disk = FaultyStorage(MemoryStorage())
    log = LogDriver(disk)
    topic_id = log.create_topic("kept").id
    log.store([b"one"], topic_id=topic_id)
    disk.fail = {"rename": 5}
    outcome = log.engine.delete_topic(topic_id, text="gone")
    log.scheduler.run_all()
    assert isinstance(outcome.error, Refusal)
    disk.fail = {}
    log.store([b"two"], topic_id=topic_id, batch_id=2)
    assert log.read_all(topic_id).data == encode_records([b"one", b"two"])


def test_a_creation_that_fails_leaves_nothing() -> None:
    """The name is free again, and the id is spent."""
    disk = FaultyStorage(MemoryStorage())
    log = LogDriver(disk)
    disk.fail = {"sync": 5}
    outcome = log.engine.create_topic("name", Retention())
    log.scheduler.run_all()
    assert isinstance(outcome.error, Refusal)
    disk.fail = {}
    assert log.create_topic("name").id == 2


@pytest.mark.parametrize("refused", ["write", "sync", "sync_dir"])
def test_a_clean_stop_undoes_a_creation_that_could_not_be_undone_before(refused: str) -> None:
    """Where it cannot either, the stop is not a clean one."""
    memory = MemoryStorage()
    disk = FaultyStorage(memory)
    log = LogDriver(disk)
    folder = Path("/data/segments/1")
    disk.within, disk.fail = folder, {refused: 5, "rename": 5}
    assert isinstance(failed_creation(log), Refusal)
    with pytest.raises(OSError, match="Input/output error"):
        log.close()
    disk.fail = {}
    log.close()
    assert folder.name not in memory.list_dir(folder.parent)


def failed_creation(log: LogDriver) -> Exception | None:
    """Return what kept a topic from being created."""
    outcome = log.engine.create_topic("name", Retention())
    log.scheduler.run_all()
    return outcome.error


@pytest.mark.parametrize("step", range(40))
def test_a_crash_during_creation_or_deletion_leaves_a_whole_state(step: int) -> None:
    """At the next start a topic is there with its data, or gone; its id stays spent."""
    from random import Random  # noqa: PLC0415 - a seeded one, for this test only

    disk = MemoryStorage()
    log = LogDriver(disk)
    kept = log.create_topic("kept").id
    log.store([b"one"], topic_id=kept)
    disk.crash_after = disk.operations + step
    created: list[int] = []
    try:
        created.append(log.create_topic("new").id)
        delete(log, created[0])
    except CrashError:
        pass
    disk.crash_after = None
    again = LogDriver(disk.crash(Random(step)))
    assert again.read_all(kept).data == encode_records([b"one"])
    assert again.create_topic("later").id not in created


def test_retention_is_kept_and_told() -> None:
    """The policy survives a restart (AMB-08: 0 is no limit)."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    topic = log.create_topic("events", Retention(60, 1000))
    outcome = log.engine.set_retention(topic, Retention(0, 2000))
    log.scheduler.run_all()
    outcome.result()
    info = LogDriver(disk.copy()).engine.topic(topic.id).info()
    assert (info.max_age_secs, info.max_bytes) == (0, 2000)


def test_the_metadata_file_has_the_documented_fields() -> None:
    """`segments/{id}/metadata.json` is readable for people and tools (LWP section 6.2)."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    topic_id = log.create_topic("my-events", Retention(60, 1000)).id
    body = json.loads(disk.peek(Path(f"/data/segments/{topic_id}/metadata.json")))
    assert (body["id"], body["name"]) == (topic_id, "my-events")
    assert body["retention"] == {"max_age_secs": 60, "max_bytes": 1000}


def test_the_number_of_topics_is_bounded() -> None:
    """One more is refused with a sentence that says what to do."""
    log = LogDriver(MemoryStorage(), options=LogOptions(max_topics=2))
    log.create_topic("one")
    log.create_topic("two")
    with pytest.raises(Refusal, match="delete some"):
        log.engine.create_topic("three", Retention())


def test_topics_do_not_see_each_others_records() -> None:
    """Each has its own offsets from 0."""
    log = LogDriver(MemoryStorage())
    one, two = log.create_topic("one").id, log.create_topic("two").id
    log.store([b"1"], topic_id=one)
    assert log.store([b"2"], topic_id=two, batch_id=2) == 0
    assert log.read_all(one).data == encode_records([b"1"])


def test_what_was_told_of_a_topic_survives_a_restart() -> None:
    """Identity, offsets and counts are the same."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=LogOptions(segment_size=20))
    topic = log.create_topic("orders")
    for number in range(1, 6):
        log.store([b"one", b"two"], batch_id=number, topic_id=topic.id)
    before = topic.info()
    assert (before.end_offset, before.record_count) == (80, 10)
    assert LogDriver(disk.copy()).engine.topic(topic.id).info() == before
    log.close()
    assert LogDriver(disk.copy()).engine.topic(topic.id).info() == before
