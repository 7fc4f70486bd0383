"""The replicated log in Apache Kafka, or in what speaks its protocol: a topic, a partition a shard.

A record is appended with ``acks=all`` by an idempotent producer that keeps the order and never
gives up by itself; the node decides how long it waits. Readers begin at explicit positions, see
what brokers see, and never skip: whatever is missing is an error.
"""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from lance_server.cluster.kafka_log.client import (
    ASK_SECONDS,
    CLIENT,
    OPEN_SECONDS,
    LogMissingError,
    describe,
    make,
    read_facts,
    result,
    told_by,
    topic_settings,
)
from lance_server.cluster.kafka_log.producer import KafkaAppender
from lance_server.cluster.kafka_log.reader import CONSUMER, KafkaReader
from lance_server.cluster.kafka_log.settings import (
    NEW_TOPIC,
    KafkaAddress,
    TopicFacts,
    durability,
    problems,
)
from lance_server.cluster.replicated_log import (
    NO_EPOCH,
    Delivered,
    LogReplacedError,
    LogTrimmedError,
    LogTruncatedError,
    LogUnavailableError,
    ReplicatedLogError,
    StopNodeError,
    UnsafeSettingsError,
)
from lance_spec.checksum import Buffer

_log = logging.getLogger(__name__)
_STALE_SECONDS: Final = 3.0
"""Age beyond which what was heard of the log's ends counts for nothing."""
_WATCH_SECONDS: Final = 0.5
_NEW_LOG: Final = (
    "this node serves what it has and takes nothing more: stop all nodes, let the cluster go on in "
    "a new topic with `lwp cluster init URL --from-data-dir DIR` and the directory of the node "
    "that has applied most, and clone the others"
)
_CHECK_SECONDS: Final = 10.0
"""Between two looks at the topic's settings."""


def create_topic(address: KafkaAddress, shards: int, replicas: int = 3) -> bool:
    """Create the topic of a cluster; return False where there is one of its name.

    Args:
        address: where it is to be.
        shards: how many partitions it gets.
        replicas: how many brokers keep each.

    Raises:
        ReplicatedLogError: the brokers refuse, or cannot be reached.
    """
    admin = make(AdminClient, {**CLIENT, **address.settings}, address)
    settings = dict(NEW_TOPIC) | {"min.insync.replicas": str(min(2, replicas))}
    topic = NewTopic(address.topic, shards, replicas, config=settings)
    made = admin.create_topics([topic], request_timeout=OPEN_SECONDS)[address.topic]
    try:
        made.result(OPEN_SECONDS)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise ReplicatedLogError(
            f"topic '{address.topic}' cannot be created at {address.brokers}: {told_by(error)}"
        ) from error
    return True


class KafkaLog:
    """A connection to a topic of Kafka.

    Args:
        address: where it is.
        facts: what the brokers said of it.
        identity: its id.

    Attributes:
        topic: its name.
    """

    def __init__(self, address: KafkaAddress, facts: TopicFacts, identity: str) -> None:
        self._address = address
        self.topic = address.topic
        self._facts = facts
        self._warned: tuple[str, ...] = ()
        self._identity = identity
        self._client = {**CLIENT, **address.settings}
        self._admin = make(AdminClient, self._client, address)
        self._watch = _Watch(self)
        self._appender = KafkaAppender(address, self._client, self._is_gone)

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
                "--engine-unsafe accepts them"
            )
        log = cls(address, facts, identity)
        log.tell(found)
        return log

    def tell(self, found: Sequence[str]) -> None:
        """Say, once each, which settings can lose acknowledged records, and when none can."""
        for each in found:
            if each not in self._warned:
                _log.warning("%s: acknowledged records can be lost: %s", self._address, each)
        if self._warned and not found:
            _log.warning("%s: its settings lose no acknowledged record any more", self._address)
        self._warned = tuple(found)

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

    def _is_gone(self) -> bool:
        return self._watch.is_missing or self._watch.replaced is not None

    def append(self, shard: int, record: Buffer, delivered: Delivered) -> None:
        """Append a record; see `ReplicatedLog.append`.

        Raises:
            LogUnavailableError: the connection is closed, or too much waits for the brokers.
        """
        self._appender.append(shard, record, delivered)

    # Reading -------------------------------------------------------------------------------------

    def read(self, shard: int, position: int, epoch: int = NO_EPOCH) -> "KafkaReader":
        """Return a reader that begins at a position.

        Raises:
            LogUnavailableError: the brokers cannot be reached.
            StopNodeError: the position is trimmed, or lies after the end.
        """
        consumer = make(Consumer, {**self._client, **CONSUMER}, self._address)
        reader = KafkaReader(self, consumer, self.topic)
        try:
            reader.add(shard, position, epoch)
        except ReplicatedLogError:
            reader.close()
            raise
        self._watch.start()
        return reader

    def check_range(self, shard: int, position: int) -> None:
        """Say why a position cannot be read, by what the brokers say now.

        Raises:
            LogUnavailableError: the brokers cannot be reached.
            StopNodeError: the position is trimmed, or lies after the end.
        """
        first, end = self._offset(shard, earliest=True), self._offset(shard, earliest=False)
        if position < first:
            raise LogTrimmedError(shard, position, first)
        if position > end:
            raise truncated(self._address, shard, position, end)

    def _offset(self, shard: int, *, earliest: bool) -> int:
        spec = OffsetSpec.earliest() if earliest else OffsetSpec.latest()
        asked = {TopicPartition(self.topic, shard): spec}
        (told,) = self._admin.list_offsets(asked, request_timeout=ASK_SECONDS).values()
        offset: int = self._answer(told).offset
        return offset

    def _answer(self, future: Any) -> Any:
        return result(future, self._address)

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
        topic_id, replicas = describe(self._admin, self._address)
        if topic_id != self._facts.topic_id:
            raise LogReplacedError(
                f"{self._address} was deleted and made again: its id was {self._facts.topic_id} "
                f"and is {topic_id} now; {_NEW_LOG}"
            )
        if len(replicas) > self.shards:
            raise LogReplacedError(
                f"{self._address} had {self.shards} partitions and has {len(replicas)} now: the "
                f"number of shards is fixed; {_NEW_LOG}"
            )

    def check_settings(self) -> None:
        """Look at the topic's settings again: somebody may have changed them.

        Raises:
            LogUnavailableError: the brokers cannot be reached.
            UnsafeSettingsError: they do not tell the settings any more.
        """
        settings = topic_settings(self._admin, self._address)
        self._facts = replace(self._facts, settings=settings)
        self.tell(problems(self._facts))

    @property
    def replaced(self) -> StopNodeError | None:
        """Why the topic is not the one that was opened, as far as that is known."""
        return self._watch.replaced

    def trim(self, shard: int, before: int) -> None:
        """Let the brokers delete the records before a position.

        Raises:
            LogUnavailableError: they cannot be reached.
        """
        asked = [TopicPartition(self.topic, shard, before)]
        (told,) = self._admin.delete_records(asked, request_timeout=ASK_SECONDS).values()
        self._answer(told)

    def close(self) -> None:
        """Stop: appends that are not reported yet fail as maybe applied."""
        self._appender.close()
        self._watch.stop()


class _Watch:
    """Asks, twice a second, where the shards end, and whether the topic is still the same.

    Its settings are looked at less often.
    """

    def __init__(self, log: KafkaLog) -> None:
        self._log = log
        self._ends: list[int] = []
        self._heard = self._checked = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem = "it did not end"
        self.is_missing = False
        self.replaced: StopNodeError | None = None

    def start(self) -> None:
        """Begin, if it has not begun."""
        if self._thread is None:
            self._heard = self._checked = time.monotonic()
            self._thread = threading.Thread(target=self._run, name="kafka-watch", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._log.check()
                self._ends = self._log.ends()
                self._heard = time.monotonic()
                self.is_missing = False
                if self._heard - self._checked >= _CHECK_SECONDS:
                    self._checked = self._heard
                    self._log.check_settings()
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
        if silent > _STALE_SECONDS and self.is_missing:
            raise LogUnavailableError(
                f"the brokers have had no topic '{self._log.topic}' for {silent:.0f} s; if it was "
                f"deleted, {_NEW_LOG}"
            )
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


def truncated(address: KafkaAddress, shard: int, position: int, end: int) -> LogTruncatedError:
    """Return the error of a position that lies after the end."""
    return LogTruncatedError(
        f"{address}, shard {shard}: the log ends at {end}, before position {position} that this "
        "node has applied: it lost records, or is not the log that this node followed. Compare "
        "the nodes with `lance-server verify`"
    )
