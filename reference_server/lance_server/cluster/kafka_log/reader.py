"""Reads partitions of a topic of Kafka, each in its order, and never skips."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from lance_server.cluster.kafka_log.settings import LARGEST_MESSAGE
from lance_server.cluster.replicated_log import (
    NO_EPOCH,
    Entry,
    LogGapError,
    LogTruncatedError,
    LogUnavailableError,
    ReplicatedLogError,
    StopNodeError,
)

_MS: Final = 1_000_000
_AT_ONCE: Final = 256
_READ_AHEAD_KIB: Final = 16 * 1024
CONSUMER: Final[Mapping[str, Any]] = {
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


class WatchedTopic(Protocol):
    """What a reader asks of the log that it reads from."""

    @property
    def replaced(self) -> StopNodeError | None:
        """Why the topic is not the one that was opened, as far as that is known."""

    def check(self) -> None:
        """Find out whether the topic is still the one that was opened; raise if it is not."""

    def check_range(self, shard: int, position: int) -> None:
        """Say why a position cannot be read, by what the brokers say now; raise if it cannot."""


class _ReadPosition(NamedTuple):
    """How far a shard is read.

    Attributes:
        position: of the next record.
        epoch: leader epoch of the one before it.
    """

    position: int
    epoch: int


class KafkaReader:
    """Reads partitions of a topic.

    Args:
        log: the topic.
        consumer: a new one, of nothing yet.
        topic: its name.
    """

    def __init__(self, log: WatchedTopic, consumer: Consumer, topic: str) -> None:
        self._log = log
        self._consumer = consumer
        self._topic = topic
        self._positions: dict[int, _ReadPosition] = {}

    def __repr__(self) -> str:
        return f"<KafkaReader at {self._positions}>"

    def add(self, shard: int, position: int, epoch: int = NO_EPOCH) -> None:
        """Read one more shard; see `ShardReader.add`.

        Raises:
            LogUnavailableError: the brokers cannot be reached.
            StopNodeError: the position is trimmed, or lies after the end.
        """
        self._log.check_range(shard, position)
        self._positions[shard] = _ReadPosition(position, epoch)
        start = TopicPartition(self._topic, shard, position)
        if epoch != NO_EPOCH:
            start = TopicPartition(self._topic, shard, position, leader_epoch=epoch)
        self._consumer.incremental_assign([start])

    def read(self, most: int, wait: float) -> Sequence[Entry]:
        """Return the next entries; see `ShardReader.read`.

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
        error, shard = message.error(), message.partition()
        if error is not None:
            raise self._error_of(error, shard)
        position, epoch = message.offset(), message.leader_epoch()
        assert position is not None, "it is a record"
        assert shard is not None, "it is a record"
        expected = self._positions[shard]
        if position != expected.position:
            raise LogGapError(
                f"shard {shard}: position {expected.position} was expected, the log gave "
                f"{position}; restart the node, and bootstrap it again if this repeats"
            )
        epoch = NO_EPOCH if epoch is None else epoch
        if epoch < expected.epoch:
            raise LogTruncatedError(
                f"shard {shard}: the leader epoch fell from {expected.epoch} to {epoch} at "
                f"position {position}: the log lost records that this node has, or is another "
                "one. Compare the nodes with `lance-server verify`"
            )
        self._positions[shard] = _ReadPosition(position + 1, epoch)
        _, time_ms = message.timestamp()
        value = message.value()
        record = value if isinstance(value, bytes) else b""
        return Entry(position, epoch, time_ms * _MS, record, shard)

    def _error_of(self, error: KafkaError, shard: int | None) -> Exception:
        """Return what an error of the consumer means."""
        concerned = [shard] if shard in self._positions else list(self._positions)
        if error.code() in _GONE:
            try:
                self._log.check()
                for each in concerned:
                    self._log.check_range(each, self._positions[each].position)
            except ReplicatedLogError as reason:
                return reason
        if error.code() in _TRUNCATED:
            at = ", ".join(f"shard {each}: {self._positions[each].position}" for each in concerned)
            return LogTruncatedError(
                f"the log lost records before a position that this node has applied ({at}; "
                f"{error.str()}); compare the nodes with `lance-server verify`"
            )
        return LogUnavailableError(f"{self._log!r}: {error.str()}")

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()
