"""The replicated log in Kafka keeps every record once, in order, and says when it cannot."""

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from lance_server.cluster.kafka_log import log as log_module
from lance_server.cluster.kafka_log.client import LogMissingError, result
from lance_server.cluster.kafka_log.log import KafkaLog, create_topic
from lance_server.cluster.kafka_log.settings import NEW_TOPIC, KafkaAddress
from lance_server.cluster.log_address import parse_address
from lance_server.cluster.replicated_log import (
    MAX_RECORD,
    AppendError,
    Entry,
    LogReplacedError,
    LogTrimmedError,
    LogTruncatedError,
    LogUnavailableError,
    RecordTooLargeError,
    ReplicatedLogError,
    ShardReader,
    UnsafeSettingsError,
)
from lance_server.testing.kafka_brokers import KafkaCluster
from lance_server.testing.process import eventually


class Reports:
    """Collects what the log reports of appends."""

    def __init__(self) -> None:
        self.got: list[int | AppendError] = []
        self._changed = threading.Condition()

    def __call__(self, result: int | AppendError) -> None:
        """Note a report (any thread)."""
        with self._changed:
            self.got.append(result)
            self._changed.notify_all()

    def wait(self, count: int) -> list[int | AppendError]:
        """Return the reports once there are so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.got) >= count, 60)
            return self.got


@pytest.fixture
def address(url: str) -> KafkaAddress:
    """A topic of two partitions."""
    found = parse_address(url)
    assert isinstance(found, KafkaAddress)
    assert create_topic(found, 2, 1)
    return found


@pytest.fixture
def log(address: KafkaAddress) -> Iterator[KafkaLog]:
    """A connection to it."""
    found = opened(address)
    yield found
    found.close()


def opened(address: KafkaAddress) -> KafkaLog:
    """Connect to a topic as soon as the broker knows it and leads all of it."""
    found: list[KafkaLog] = []

    def attempt() -> bool:
        try:
            log = KafkaLog.open(address, unsafe=True)
        except LogUnavailableError:
            return False
        try:
            log.ends()
        except LogUnavailableError:  # a partition has no leader yet
            log.close()
            return False
        found.append(log)
        return True

    eventually(attempt)
    return found[0]


def admin(address: KafkaAddress) -> AdminClient:
    """Return what changes topics."""
    return AdminClient({"bootstrap.servers": address.brokers, "log_level": 2})


def change(address: KafkaAddress, settings: Mapping[str, str]) -> None:
    """Change settings of a topic."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, address.topic, incremental_configs=entries)
    client = admin(address)  # what it is asked ends with it
    (changed,) = client.incremental_alter_configs([resource]).values()
    changed.result(30)


def read(reader: ShardReader, count: int) -> list[Entry]:
    """Return so many entries."""
    found: list[Entry] = []

    def more() -> bool:
        found.extend(reader.read(1 << 20, 0.2))
        return len(found) >= count

    eventually(more)
    return found


def store(log: KafkaLog, *records: bytes, shard: int = 0) -> None:
    """Append records and wait until the log has them."""
    reports = Reports()
    for record in records:
        log.append(shard, record, reports)
    assert all(isinstance(each, int) for each in reports.wait(len(records)))


def test_every_record_is_read_once_in_order(log: KafkaLog) -> None:
    """At the position that its append was told."""
    reports, records = Reports(), [b"record %d" % number for number in range(2000)]
    for record in records:
        log.append(0, record, reports)
    reader = log.read(0, 0)
    entries = read(reader, len(records))
    assert [each.record for each in entries] == records
    assert [each.position for each in entries] == reports.wait(len(records)) == list(range(2000))
    reader.close()


def test_shards_are_apart(log: KafkaLog) -> None:
    """Each begins at 0 and ends where its own records do."""
    store(log, b"one", b"two")
    store(log, b"three", shard=1)
    assert [log.end(shard) for shard in range(log.shards)] == [2, 1]


def test_one_reader_reads_several_shards(log: KafkaLog) -> None:
    """Each from a position of its own, and on; what is appended later, too."""
    store(log, b"one", b"two")
    store(log, b"three", shard=1)
    reader = log.read(0, 1)
    reader.add(1, 0)
    entries = read(reader, 2)
    store(log, b"four", shard=1)
    entries += read(reader, 1)
    assert sorted((each.shard, each.position, each.record) for each in entries) == [
        (0, 1, b"two"),
        (1, 0, b"three"),
        (1, 1, b"four"),
    ]
    reader.close()


def test_a_shard_that_does_not_go_so_far_is_refused(log: KafkaLog) -> None:
    """Beside one that does."""
    store(log, b"one")
    reader = log.read(0, 1)
    with pytest.raises(LogTruncatedError, match="shard 1: the log ends at 0"):
        reader.add(1, 1)
    reader.close()


def test_all_readers_see_the_same(log: KafkaLog, address: KafkaAddress) -> None:
    """The times of entries belong to the log, not to who reads."""
    store(log, b"one", b"two")
    other = opened(address)
    readers = [log.read(0, 0), other.read(0, 0)]
    first, second = (read(reader, 2) for reader in readers)
    assert first == second
    for reader in readers:
        reader.close()
    other.close()


def test_the_largest_record_fits(log: KafkaLog) -> None:
    """As long as a log must take one."""
    store(log, bytes(MAX_RECORD), b"after it")
    reader = log.read(0, 0)
    assert [len(each.record) for each in read(reader, 2)] == [MAX_RECORD, 8]
    reader.close()


def test_a_record_that_is_too_large_is_not_appended(log: KafkaLog) -> None:
    """It is reported at once, and the next one is stored."""
    reports = Reports()
    log.append(0, bytes(MAX_RECORD + 1), reports)
    (error,) = reports.got
    assert isinstance(error, RecordTooLargeError)
    store(log, b"after it")
    assert log.end(0) == 1


def test_a_trimmed_position_is_an_error(log: KafkaLog) -> None:
    """It is never skipped; what is left can be read."""
    store(log, *[b"record"] * 10)
    log.trim(0, 4)
    assert log.earliest(0) == 4
    with pytest.raises(LogTrimmedError, match="position 3 is trimmed, the log begins at 4"):
        log.read(0, 3)
    reader = log.read(0, 4)
    assert read(reader, 6)[0].position == 4
    reader.close()


def test_a_position_that_is_trimmed_while_it_is_read_is_an_error(log: KafkaLog) -> None:
    """The reader finds out and says where the log begins."""
    store(log, *[b"record"] * 10)
    reader = log.read(0, 0)
    log.trim(0, 4)
    with pytest.raises(LogTrimmedError):
        read(reader, 11)
    reader.close()


def test_a_position_after_the_end_is_an_error(log: KafkaLog) -> None:
    """The log is not the one that was followed, or lost records."""
    store(log, b"one")
    with pytest.raises(LogTruncatedError, match="the log ends at 1, before position 2"):
        log.read(0, 2)


def test_a_leader_epoch_that_falls_is_an_error(log: KafkaLog) -> None:
    """Records of an older epoch than that of the mark come from another log."""
    store(log, b"one", b"two")
    reader = log.read(0, 1, epoch=7)
    with pytest.raises(LogTruncatedError, match=r"leader epoch (7|fell from 7)"):
        read(reader, 1)
    reader.close()


def test_a_topic_that_is_made_again_is_another_log(log: KafkaLog, address: KafkaAddress) -> None:
    """A reader of the old one stops, also where the new one has records at its position."""
    store(log, b"one")
    reader = log.read(0, 1)
    made_again(address, records=3)
    eventually(lambda: log.replaced is not None)
    with pytest.raises(LogReplacedError, match="was deleted and made again"):
        reader.read(1, 0)
    reader.close()


def test_a_topic_that_was_deleted_is_told(log: KafkaLog, address: KafkaAddress) -> None:
    """With what to do: the nodes have all of it."""
    reader = log.read(0, 0)
    client = admin(address)
    client.delete_topics([address.topic])[address.topic].result(30)

    def told() -> str:
        try:
            log.end(0)
        except LogUnavailableError as error:
            return str(error)
        return ""

    eventually(lambda: f"had no topic '{address.topic}'" in told())
    assert "lwp cluster init URL --from-data-dir DIR" in told()
    reader.close()


def made_again(address: KafkaAddress, records: int) -> None:
    """Delete a topic and make one of the same name, with records of another program."""
    client = admin(address)
    client.delete_topics([address.topic])[address.topic].result(30)
    eventually(lambda: create_topic(address, 2, 1))
    producer = Producer({"bootstrap.servers": address.brokers, "log_level": 2})
    for _ in range(records):
        producer.produce(address.topic, b"foreign", partition=0)
    producer.flush(30)


def test_another_topic_has_another_identity(log: KafkaLog, address: KafkaAddress) -> None:
    """Also under the same name."""
    before = log.identity()
    made_again(address, records=0)
    other = opened(address)
    assert other.identity() != before
    other.close()


def test_partitions_that_are_added_are_an_error(log: KafkaLog, address: KafkaAddress) -> None:
    """The number of shards is fixed."""
    reader = log.read(0, 0)
    client = admin(address)
    client.create_partitions([NewPartitions(address.topic, 3)])[address.topic].result(30)
    eventually(lambda: log.replaced is not None)
    with pytest.raises(LogReplacedError, match="had 2 partitions and has 3 now"):
        reader.read(1, 0)
    reader.close()


def test_a_missing_topic_is_named(url: str) -> None:
    """With the command that creates the cluster."""
    address = parse_address(url)
    assert isinstance(address, KafkaAddress)
    with pytest.raises(LogMissingError, match=f"has no topic '{address.topic}'.*lwp cluster init"):
        KafkaLog.open(address)


def test_brokers_that_are_not_there_are_unavailable(address: KafkaAddress) -> None:
    """The same call may succeed later."""
    with pytest.raises(LogUnavailableError, match="cannot be reached"):
        KafkaLog.open(replace(address, brokers="127.0.0.1:1"))


def test_unsafe_settings_are_refused(address: KafkaAddress) -> None:
    """Each is named, with what to set instead."""
    change(address, {"cleanup.policy": "compact", "retention.ms": "1000"})
    with pytest.raises(UnsafeSettingsError) as caught:
        KafkaLog.open(address)
    for words in ("has 1 replicas", "cleanup.policy is compact; set it to delete", "retention.ms"):
        assert words in str(caught.value)
    assert "flush.messages" not in str(caught.value), NEW_TOPIC


def test_a_closed_log_answers_what_is_outstanding(address: KafkaAddress) -> None:
    """As maybe applied; and it takes nothing more."""
    log = opened(address)
    reports = Reports()
    for _ in range(200):
        log.append(0, bytes(100_000), reports)
    log.close()
    assert len(reports.got) == 200
    assert all(isinstance(each, int) or each.maybe_applied for each in reports.got)
    with pytest.raises(LogUnavailableError, match="is closed"):
        log.append(0, b"late", reports)


def test_a_producer_that_failed_for_good_is_replaced(log: KafkaLog, broker: KafkaCluster) -> None:
    """What was outstanding is maybe applied; records that follow are stored."""
    store(log, b"before")
    reports, failed = Reports(), log._appender._producer

    def lost_in_flight() -> bool:
        failed.purge(in_queue=False)  # a hole in the order, as the library sees it
        return bool(reports.got)

    broker.pause(1)
    try:
        for _ in range(3):
            log.append(0, b"outstanding", reports)
        eventually(lost_in_flight)
        assert all(isinstance(each, AppendError) and each.maybe_applied for each in reports.wait(3))
    finally:
        broker.resume(1)
    eventually(lambda: log._appender._producer is not failed)
    store(log, b"after")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError.FENCED_LEADER_EPOCH, LogUnavailableError),
        (KafkaError.NOT_LEADER_FOR_PARTITION, LogUnavailableError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ReplicatedLogError),
    ],
)
def test_what_brokers_answer_during_an_election_passes(
    address: KafkaAddress, code: int, expected: type[Exception]
) -> None:
    """What they refuse for good does not."""
    answer: Future[None] = Future()
    answer.set_exception(KafkaException(KafkaError(code)))
    with pytest.raises(ReplicatedLogError) as caught:
        result(answer, address)
    assert type(caught.value) is expected


def test_settings_that_are_changed_later_are_told(
    address: KafkaAddress, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In the server's log, once, and in the status; and when they are mended."""
    monkeypatch.setattr(log_module, "_CHECK_SECONDS", 0.0)
    log = opened(address)
    reader = log.read(0, 0)
    change(address, {"retention.ms": "3600000"})
    eventually(lambda: "retention.ms is 3600000; set it to -1" in log.durability())
    change(address, {"retention.ms": "-1"})
    eventually(lambda: "retention.ms" not in log.durability())
    reader.close()
    log.close()
    told = [each.getMessage() for each in caplog.records if "retention.ms" in each.getMessage()]
    assert told == [
        f"{address}: acknowledged records can be lost: retention.ms is 3600000; set it to -1"
    ]
