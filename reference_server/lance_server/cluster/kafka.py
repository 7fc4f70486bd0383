"""The replicated log in Apache Kafka, or in what speaks its protocol: a topic, a partition a shard.

A record is appended with ``acks=all`` by an idempotent producer that keeps the order and never
gives up by itself; the node decides how long it waits. Readers begin at explicit positions, see
what brokers see, and never skip: whatever is missing is an error.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from lance_server.cluster.kafka_settings import (
    LARGEST_MESSAGE,
    NEW_TOPIC,
    TopicFacts,
    durability,
    problems,
)
from lance_server.cluster.log_address import KafkaAddress
from lance_server.cluster.replicated_log import (
    MAX_RECORD,
    NO_EPOCH,
    AppendError,
    Delivered,
    Entry,
    LogGapError,
    LogReplacedError,
    LogTrimmedError,
    LogTruncatedError,
    LogUnavailableError,
    RecordTooLargeError,
    ReplicatedLogError,
    StopNodeError,
    UnsafeSettingsError,
)
from lance_server.errors import ConfigError
from lance_spec.checksum import Buffer

try:
    from confluent_kafka import (
        Consumer,
        KafkaError,
        KafkaException,
        Message,
        Producer,
        TopicCollection,
        TopicPartition,
    )
    from confluent_kafka.admin import (
        AdminClient,
        ConfigResource,
        NewTopic,
        OffsetSpec,
        ResourceType,
    )
except ModuleNotFoundError as error:
    raise ConfigError(
        "a cluster over Kafka needs confluent-kafka: pip install 'lance-sdk[cluster]'"
    ) from error

T = TypeVar("T")
_log = logging.getLogger(__name__)
_MS: Final = 1_000_000
_ASK_SECONDS: Final = 5.0
_OPEN_SECONDS: Final = 30.0
_STALE_SECONDS: Final = 3.0
"""Age beyond which what was heard of the log's ends counts for nothing."""
_WATCH_SECONDS: Final = 0.5
_POLL_SECONDS: Final = 0.25
_PURGE_SECONDS: Final = 5.0
_AT_ONCE: Final = 256
_QUEUE_KIB: Final = 128 * 1024
"""KiB of records that may wait for brokers; a node stops earlier as a rule."""
_READ_AHEAD_KIB: Final = 16 * 1024

_CLIENT: Final[Mapping[str, Any]] = {
    "client.id": "lance-server",
    "log_level": 2,  # what matters is told by calls that fail
    "socket.keepalive.enable": True,
    "socket.timeout.ms": 6000,
    "socket.connection.setup.timeout.ms": 3000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    "topic.metadata.refresh.interval.ms": 10_000,
    "topic.metadata.refresh.fast.interval.ms": 100,
}
_PRODUCER: Final[Mapping[str, Any]] = {
    "acks": "all",
    "enable.idempotence": True,
    "enable.gapless.guarantee": True,
    "message.timeout.ms": 0,
    "request.timeout.ms": 5000,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 500,
    "linger.ms": 0,
    "message.max.bytes": LARGEST_MESSAGE,
    "queue.buffering.max.messages": 10_000_000,
    "queue.buffering.max.kbytes": _QUEUE_KIB,
}
_CONSUMER: Final[Mapping[str, Any]] = {
    "group.id": "lance-server",  # the library wants one; nothing is committed
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
    "check.crcs": True,
    "message.max.bytes": LARGEST_MESSAGE,
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    "fetch.wait.max.ms": 500,
    "fetch.error.backoff.ms": 50,
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": _READ_AHEAD_KIB,
}


class LogMissingError(LogUnavailableError):
    """The brokers have no topic of this name."""


def create_topic(address: KafkaAddress, shards: int, replicas: int = 3) -> bool:
    """Create the topic of a cluster; return False where there is one of its name.

    Args:
        address: where it is to be.
        shards: how many partitions it gets.
        replicas: how many brokers keep each.

    Raises:
        ReplicatedLogError: the brokers refuse, or cannot be reached.
    """
    admin = _make(AdminClient, {**_CLIENT, **address.settings}, address)
    settings = dict(NEW_TOPIC) | {"min.insync.replicas": str(min(2, replicas))}
    topic = NewTopic(address.topic, shards, replicas, config=settings)
    made = admin.create_topics([topic], request_timeout=_OPEN_SECONDS)[address.topic]
    try:
        made.result(_OPEN_SECONDS)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise ReplicatedLogError(
            f"topic '{address.topic}' cannot be created at {address.brokers}: {_told(error)}"
        ) from error
    return True


class KafkaLog:
    """A connection to a topic of Kafka.

    Args:
        address: where it is.
        facts: what the brokers said of it.
        identity: its id.
    """

    def __init__(self, address: KafkaAddress, facts: TopicFacts, identity: str) -> None:
        self._address = address
        self._topic = address.topic
        self._facts = facts
        self._identity = identity
        self._client = {**_CLIENT, **address.settings}
        self._admin = _make(AdminClient, self._client, address)
        self._watch = _Watch(self)
        self._sending = threading.Lock()
        self._producer = self._new_producer()
        self._is_fatal = threading.Event()
        self._closed = threading.Event()
        self._polling = threading.Thread(target=self._poll, name="kafka-reports", daemon=True)
        self._polling.start()

    def __repr__(self) -> str:
        return f"<KafkaLog {self._address}, {self.shards} shards>"

    @classmethod
    def open(cls, address: KafkaAddress, *, unsafe: bool = False) -> "KafkaLog":
        """Connect to a topic and judge its settings.

        Args:
            address: where it is.
            unsafe: whether settings are taken that break what an acknowledgement promises.

        Raises:
            LogMissingError: there is no such topic.
            LogUnavailableError: the brokers cannot be reached.
            UnsafeSettingsError: settings break the promise, or cannot be read.
        """
        facts, identity = read_facts(address)
        found = problems(facts)
        if found and not unsafe:
            listed = "; ".join(found)
            raise UnsafeSettingsError(
                f"{address}: acknowledged records could be lost: {listed}. For a trial only, "
                "--engine-unsafe takes them as they are"
            )
        for each in found:
            _log.warning("%s: acknowledged records can be lost: %s", address, each)
        return cls(address, facts, identity)

    @property
    def shards(self) -> int:
        """How many partitions the topic has."""
        return len(self._facts.replicas)

    def identity(self) -> str:
        """Return the ids of the brokers' cluster and of the topic."""
        return self._identity

    def durability(self) -> str:
        """Return which losses the topic's settings survive."""
        return durability(self._facts)

    # Appending -----------------------------------------------------------------------------------

    def _new_producer(self) -> Producer:
        settings = {**self._client, **_PRODUCER, "error_cb": self._note_error}
        return _make(Producer, settings, self._address)

    def _note_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._is_fatal.set()
        _log.debug("%s: %s", self._address, error)

    def append(self, shard: int, record: Buffer, delivered: Delivered) -> None:
        """Append a record; see `ReplicatedLog.append`.

        Raises:
            LogUnavailableError: the connection is closed, or too much waits for the brokers.
        """
        if len(record) > MAX_RECORD:
            delivered(RecordTooLargeError(len(record), MAX_RECORD))
            return
        with self._sending:
            if self._closed.is_set():
                raise LogUnavailableError(f"{self._address}: the connection is closed")
            if self._watch.is_missing or self._watch.replaced is not None:
                raise LogUnavailableError(f"{self._address} is gone, or was made again")
            try:
                self._producer.produce(
                    self._topic,
                    bytes(record),
                    partition=shard,
                    on_delivery=partial(_report, delivered),
                )
            except (BufferError, KafkaException) as error:
                raise LogUnavailableError(
                    f"{self._address} takes nothing more at present ({error}); send it again later"
                ) from error

    def _poll(self) -> None:
        """Take reports to whoever waits for them (thread)."""
        while not self._closed.is_set():
            self._producer.poll(_POLL_SECONDS)
            if self._watch.is_missing or self._watch.replaced is not None:
                self._producer.purge()  # nothing of it belongs into a topic that is made again
            if self._is_fatal.is_set():
                self._renew()
        self._purge()

    def _renew(self) -> None:
        """Answer everything that is outstanding, and go on with another producer."""
        with self._sending:
            _log.warning("%s: the producer failed for good; another one goes on", self._address)
            self._purge()
            self._is_fatal.clear()
            self._producer = self._new_producer()

    def _purge(self) -> None:
        """Fail what is outstanding as maybe applied."""
        self._producer.purge()
        deadline = time.monotonic() + _PURGE_SECONDS
        while len(self._producer) and time.monotonic() < deadline:
            self._producer.poll(_POLL_SECONDS)

    # Reading -------------------------------------------------------------------------------------

    def read(self, shard: int, position: int, epoch: int = NO_EPOCH) -> "KafkaReader":
        """Return a reader that begins at a position.

        Raises:
            LogUnavailableError: the brokers cannot be reached.
            StopNodeError: the position is trimmed, or lies after the end.
        """
        self._check_range(shard, position)
        self._watch.start()
        consumer = _make(Consumer, {**self._client, **_CONSUMER}, self._address)
        return KafkaReader(self, consumer, shard, position, epoch)

    def check_range(self, shard: int, position: int) -> None:
        """Say why a position cannot be read, by what the brokers say now.

        Raises:
            LogUnavailableError: the brokers cannot be reached.
            StopNodeError: the position is trimmed, or lies after the end.
        """
        self._check_range(shard, position)

    def _check_range(self, shard: int, position: int) -> None:
        first, end = self._offset(shard, earliest=True), self._offset(shard, earliest=False)
        if position < first:
            raise LogTrimmedError(shard, position, first)
        if position > end:
            raise truncated(self._address, shard, position, end)

    def _offset(self, shard: int, *, earliest: bool) -> int:
        spec = OffsetSpec.earliest() if earliest else OffsetSpec.latest()
        asked = {TopicPartition(self._topic, shard): spec}
        (told,) = self._admin.list_offsets(asked, request_timeout=_ASK_SECONDS).values()
        offset: int = self._answer(told).offset
        return offset

    def _answer(self, future: Any) -> Any:
        return _result(future, self._address)

    def earliest(self, shard: int) -> int:
        """Return the first position that is still there.

        Raises:
            LogUnavailableError: the brokers cannot be reached.
        """
        return self._offset(shard, earliest=True)

    def end(self, shard: int) -> int:
        """Return the position after the last record, as of the last half second while it is read.

        Raises:
            LogUnavailableError: the brokers cannot be reached.
        """
        told = self._watch.end(shard)
        return self._offset(shard, earliest=False) if told is None else told

    def ends(self) -> list[int]:
        """Return the position after the last record of each shard, as the brokers say now.

        Raises:
            LogUnavailableError: they cannot be reached.
        """
        return [self._offset(shard, earliest=False) for shard in range(self.shards)]

    def check(self) -> None:
        """Find out whether the topic is still the one that was opened.

        Raises:
            LogUnavailableError: the brokers cannot be reached, or do not know the topic, which
                may pass.
            LogReplacedError: it was made again, or has more partitions.
        """
        topic_id, replicas = _describe(self._admin, self._address)
        if topic_id != self._facts.topic_id:
            raise LogReplacedError(
                f"{self._address} was deleted and made again: its id was {self._facts.topic_id} "
                f"and is {topic_id} now. Nothing of this node is lost; restore the cluster into a "
                "new log"
            )
        if len(replicas) > self.shards:
            raise LogReplacedError(
                f"{self._address} had {self.shards} partitions and has {len(replicas)} now: the "
                "number of shards is fixed. Restore the cluster into a new log"
            )

    @property
    def replaced(self) -> StopNodeError | None:
        """Why the topic is not the one that was opened, as far as that is known."""
        return self._watch.replaced

    def trim(self, shard: int, before: int) -> None:
        """Let the brokers delete the records before a position.

        Raises:
            LogUnavailableError: they cannot be reached.
        """
        asked = [TopicPartition(self._topic, shard, before)]
        (told,) = self._admin.delete_records(asked, request_timeout=_ASK_SECONDS).values()
        self._answer(told)

    def close(self) -> None:
        """Stop: appends that are not reported yet fail as maybe applied."""
        with self._sending:
            self._closed.set()
        self._watch.stop()
        self._polling.join()


class KafkaReader:
    """Reads one partition of a topic.

    Args:
        log: the topic.
        consumer: a new one.
        shard: the partition.
        position: of the first record to read.
        epoch: leader epoch of the record before it, or `NO_EPOCH`.
    """

    def __init__(
        self, log: KafkaLog, consumer: Consumer, shard: int, position: int, epoch: int
    ) -> None:
        self._log = log
        self._consumer = consumer
        self._shard = shard
        self._position = position
        self._epoch = epoch
        known = {} if epoch == NO_EPOCH else {"leader_epoch": epoch}
        consumer.assign([TopicPartition(log._topic, shard, position, **known)])  # noqa: SLF001

    def __repr__(self) -> str:
        return f"<KafkaReader of shard {self._shard} at {self._position}>"

    def read(self, most: int, wait: float) -> Sequence[Entry]:
        """Return the next entries; see `LogReader.read`.

        Raises:
            LogUnavailableError: the brokers cannot be reached.
            StopNodeError: the topic has not got what comes next, or is another one.
        """
        if self._log.replaced is not None:
            raise self._log.replaced
        first = self._consumer.poll(wait)
        if first is None:
            return []
        found = [self._entry(first)]
        size = len(found[0].record)
        while size < most and (more := self._consumer.consume(_AT_ONCE, 0)):
            for message in more:
                found.append(self._entry(message))
                size += len(found[-1].record)
        return found

    def _entry(self, message: Message) -> Entry:
        error = message.error()
        if error is not None:
            raise self._judge(error)
        position, epoch = message.offset(), message.leader_epoch()
        assert position is not None, "it is a record"
        if position != self._position:
            raise LogGapError(
                f"shard {self._shard}: position {self._position} was expected, the log gave "
                f"{position}; restart the node, and bootstrap it again if this repeats"
            )
        epoch = NO_EPOCH if epoch is None else epoch
        if epoch < self._epoch:
            raise LogTruncatedError(
                f"shard {self._shard}: the leader epoch fell from {self._epoch} to {epoch} at "
                f"position {position}: the log lost records that this node has, or is another "
                "one. Compare the nodes with `lance-server verify`"
            )
        self._position, self._epoch = position + 1, epoch
        _, time_ms = message.timestamp()
        value = message.value()
        record = value if isinstance(value, bytes) else b""
        return Entry(position, epoch, time_ms * _MS, record)

    def _judge(self, error: KafkaError) -> Exception:
        """Return what an error of the consumer means."""
        if error.code() in _GONE:
            try:
                self._log.check()
                self._log.check_range(self._shard, self._position)
            except ReplicatedLogError as reason:
                return reason
        if error.code() in _TRUNCATED:
            return LogTruncatedError(
                f"shard {self._shard}: the log lost records before position {self._position} that "
                f"this node has applied ({error.str()}); compare the nodes with `lance-server "
                "verify`"
            )
        return LogUnavailableError(f"{self._log!r}: {error.str()}")

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()


_TRUNCATED: Final = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - public constants with such names
        KafkaError._LOG_TRUNCATION,  # noqa: SLF001
        KafkaError.OFFSET_OUT_OF_RANGE,
    }
)
"""Errors that say that a position is not in the log."""
_GONE: Final = _TRUNCATED | frozenset(
    {
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""Errors that may mean that the log is not what the node applied so far."""


class _Watch:
    """Asks, twice a second, where the shards end, and whether the topic is still the same."""

    def __init__(self, log: KafkaLog) -> None:
        self._log = log
        self._ends: list[int] = []
        self._heard = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem = "it did not end"
        self.is_missing = False
        self.replaced: StopNodeError | None = None

    def start(self) -> None:
        """Begin, if it has not begun."""
        if self._thread is None:
            self._heard = time.monotonic()
            self._thread = threading.Thread(target=self._run, name="kafka-watch", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._log.check()
                self._ends = self._log.ends()
                self._heard = time.monotonic()
                self.is_missing = False
            except StopNodeError as error:
                self.replaced = error
                return
            except LogMissingError as error:
                self.problem, self.is_missing = str(error), True
            except ReplicatedLogError as error:
                self.problem = str(error)
            self._stop.wait(_WATCH_SECONDS)

    def end(self, shard: int) -> int | None:
        """Return where a shard ended when that was asked last; None before the first answer.

        Raises:
            LogUnavailableError: nothing was heard for a while.
        """
        if self._thread is None:
            return None
        silent = time.monotonic() - self._heard
        if silent > _STALE_SECONDS:
            raise LogUnavailableError(
                f"no broker has answered for {silent:.0f} s; the last try: {self.problem}"
            )
        return self._ends[shard] if self._ends else None

    def stop(self) -> None:
        """End."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()


def read_facts(address: KafkaAddress) -> tuple[TopicFacts, str]:
    """Ask the brokers about a topic; return what they say, and its identity.

    Raises:
        LogMissingError: there is no such topic.
        LogUnavailableError: they cannot be reached.
        UnsafeSettingsError: they do not tell the topic's settings.
    """
    admin = _make(AdminClient, {**_CLIENT, **address.settings}, address)
    topic_id, replicas = _describe(admin, address)
    settings = _settings_of(admin, ConfigResource(ResourceType.TOPIC, address.topic), address)
    cluster = _result(admin.describe_cluster(request_timeout=_OPEN_SECONDS), address)
    brokers = {}
    for node in cluster.nodes:
        resource = ConfigResource(ResourceType.BROKER, str(node.id))
        try:
            brokers[node.id] = _settings_of(admin, resource, address)
        except ReplicatedLogError as error:  # that broker may be down
            _log.info("broker %d does not tell its settings: %s", node.id, error)
    facts = TopicFacts(address.topic, topic_id, replicas, settings, brokers)
    return facts, f"{cluster.cluster_id}/{address.topic}/{topic_id}"


def _describe(admin: AdminClient, address: KafkaAddress) -> tuple[str, list[int]]:
    """Return a topic's id, and how many brokers keep each partition."""
    asked = admin.describe_topics(TopicCollection([address.topic]), request_timeout=_ASK_SECONDS)[
        address.topic
    ]
    told = _result(asked, address)
    partitions = sorted(told.partitions, key=lambda each: each.id)
    return str(told.topic_id), [len(each.replicas) for each in partitions]


def _settings_of(
    admin: AdminClient, resource: ConfigResource, address: KafkaAddress
) -> dict[str, str]:
    (asked,) = admin.describe_configs([resource], request_timeout=_ASK_SECONDS).values()
    try:
        told = _result(asked, address)
    except LogUnavailableError:
        raise
    except ReplicatedLogError as error:
        raise UnsafeSettingsError(
            f"{error}: its settings cannot be read, and so not be judged; allow the server's "
            "user to describe them"
        ) from error
    return {name: entry.value for name, entry in told.items() if entry.value is not None}


def _result(future: Any, address: KafkaAddress) -> Any:
    """Return what brokers answered.

    Raises:
        LogMissingError: there is no such topic.
        LogUnavailableError: they did not answer.
        ReplicatedLogError: they refused.
    """
    try:
        return future.result(_OPEN_SECONDS)
    except KafkaException as error:
        told: KafkaError = error.args[0]
        if told.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}:  # noqa: SLF001
            raise LogMissingError(
                f"{address.brokers} has no topic '{address.topic}'; create the cluster with "
                f"`lwp cluster init {address}`, or correct the address"
            ) from error
        if told.retriable() or told.code() < 0:
            raise LogUnavailableError(f"{address} cannot be reached: {told.str()}") from error
        raise ReplicatedLogError(f"{address}: {told.str()}") from error
    except TimeoutError as error:
        raise LogUnavailableError(f"{address} cannot be reached: no answer in time") from error


def truncated(address: KafkaAddress, shard: int, position: int, end: int) -> LogTruncatedError:
    """Return the error of a position that lies after the end."""
    return LogTruncatedError(
        f"{address}, shard {shard}: the log ends at {end}, before position {position} that this "
        "node has applied: it lost records, or is not the log that this node followed. Compare "
        "the nodes with `lance-server verify`"
    )


def _make(
    kind: Callable[[dict[str, Any]], T], settings: Mapping[str, Any], address: KafkaAddress
) -> T:
    """Make a client.

    Raises:
        ConfigError: it does not take a setting.
    """
    try:
        return kind({**settings, "bootstrap.servers": address.brokers})
    except (KafkaException, ValueError, TypeError) as error:
        raise ConfigError(
            f"{address}: a setting of the log's client is wrong: {_told(error)}"
        ) from error


def _told(error: Exception) -> str:
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)


def _report(delivered: Delivered, error: KafkaError | None, message: Message) -> None:
    if error is None:
        offset = message.offset()
        delivered(-1 if offset is None else offset)
    else:
        delivered(AppendError(f"the log answered: {error.str()}", maybe_applied=True))
