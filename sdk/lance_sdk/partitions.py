"""Topics in partitions, given by their names: records of one key keep their order.

A topic ``orders`` of eight partitions is the topics ``orders-0`` to ``orders-7``. A record's key
decides its partition as Kafka's default partitioner does; records without a key take turns::

    from lance_sdk import GroupConsumer
    from lance_sdk.partitions import PartitionedProducer, partition_names

    names = partition_names("orders", 8)
    with PartitionedProducer("lance://localhost:1992", names, create_topic=True) as producer:
        producer.send(b"paid", key=b"order-17")

Readers take the names: ``GroupConsumer(..., topics=names)`` shares the partitions among the
members of a group. Whoever writes must use the same names in the same order, and the same
partitioner: with another number of partitions a key moves, and its order is lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, Unpack

from lance_sdk._units import seconds
from lance_sdk.delivery import Delivery
from lance_sdk.errors import ConfigError, RecordsLost
from lance_sdk.options import ProducerOptions
from lance_sdk.producer import Producer
from lance_sdk.stats import ProducerStats
from lance_sdk.types import CloseReport
from lance_sdk.url import URL, parse_url
from lance_sdk.values.keyed import Time

__all__ = ["PartitionedProducer", "Partitioner", "murmur2", "partition_names", "partition_of"]

Partitioner: TypeAlias = Callable[[bytes, int], int]
"""Returns the partition of a key, from 0 on, for a number of partitions."""

MAX_PARTITIONS: Final = 4096
_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit MurmurHash2 of some bytes, as Kafka's clients compute it, unsigned."""
    size = len(data)
    value = _SEED ^ size
    whole = size & ~3
    for place in range(0, whole, 4):
        word = int.from_bytes(data[place : place + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> 24) * _FACTOR & _MASK
        value = value * _FACTOR & _MASK ^ word
    if size > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 13) * _FACTOR & _MASK
    return value ^ value >> 15


@lru_cache(maxsize=65536)
def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition that Kafka's default partitioner gives a key.

    Args:
        key: the key's bytes.
        partitions: how many there are.
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def partition_names(topic: str, partitions: int) -> list[str]:
    """Return the names of a topic's partitions, ``TOPIC-0`` and so on.

    Args:
        topic: the topic's name.
        partitions: how many there are.

    Raises:
        ConfigError: that is no number of partitions.
    """
    if type(partitions) is not int or not 1 <= partitions <= MAX_PARTITIONS:
        raise ConfigError(f"partitions={partitions!r}: expected 1 to {MAX_PARTITIONS}")
    return [f"{topic}-{number}" for number in range(partitions)]


class Router:
    """Decides to which partition a record goes; the same for both APIs.

    Args:
        names: of the partitions, in their order.
        partitioner: gives a key its partition.

    Raises:
        ConfigError: there are no partitions, or one is named twice.
    """

    def __init__(self, names: Sequence[str], partitioner: Partitioner) -> None:
        if isinstance(names, str) or not names or len(set(names)) < len(names):
            raise ConfigError(f"partitions={names!r}: expected the names of partitions, each once")
        self.names = tuple(names)
        self._partitioner = partitioner
        self._turns = count()

    def place(self, key: bytes | str | None, partition: int | None) -> int:
        """Return the partition of a record.

        Raises:
            ConfigError: there is no partition of this number.
        """
        size = len(self.names)
        if partition is None:
            if key is None:
                return next(self._turns) % size
            partition = self._partitioner(key.encode() if isinstance(key, str) else key, size)
        if type(partition) is not int or not 0 <= partition < size:
            raise ConfigError(f"partition={partition!r}: expected 0 to {size - 1}")
        return partition


def merged(reports: Sequence[CloseReport]) -> CloseReport:
    """Return the reports of all partitions as one."""
    return CloseReport(
        delivered=sum(each.delivered for each in reports),
        lost=sum(each.lost for each in reports),
        maybe_applied=sum(each.maybe_applied for each in reports),
        error=next((each.error for each in reports if each.error is not None), None),
        journaled=sum(each.journaled for each in reports),
    )


class PartitionedProducer:
    """Sends records to partitions: those of one key to one, in their order.

    It has a producer, and a connection, for each partition. Any number of threads may send.

    Args:
        url: where the partitions are; a topic in it is left aside.
        partitions: their names, see `partition_names`; every program that writes names the same
            ones in the same order.
        partitioner: gives a key its partition; by default as Kafka's clients do.
        **options: the fields of `lance_sdk.config.ProducerConfig`, for each partition;
            ``create_topic=True`` creates partitions that are missing.

    Raises:
        ConfigError: for a URL, names or an option that cannot be used.
    """

    def __init__(
        self,
        url: str | URL,
        partitions: Sequence[str],
        *,
        partitioner: Partitioner = partition_of,
        **options: Unpack[ProducerOptions],
    ) -> None:
        server = parse_url(url)
        self._router = Router(partitions, partitioner)
        self._producers = [
            Producer(replace(server, topic=name, topic_id=None), **options)
            for name in self._router.names
        ]
        self._close_timeout = seconds("close_timeout", self._producers[0]._config.close_timeout)  # noqa: SLF001 - the same for all

    def __repr__(self) -> str:
        return f"<PartitionedProducer {len(self._producers)} of {self._router.names[0]!r}>"

    @property
    def partitions(self) -> tuple[str, ...]:
        """The names of the partitions."""
        return self._router.names

    def open(self) -> Self:
        """Connect to all partitions; a ``with`` block does it by itself.

        Raises:
            LanceError: one cannot be opened; none stays open then.
        """
        for number, producer in enumerate(self._producers):
            try:
                producer.open()
            except BaseException:
                for each in self._producers[:number]:
                    each.close(0.0)
                raise
        return self

    def send(
        self,
        value: Any,
        *,
        key: bytes | str | None = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        record_type: int | None = None,
    ) -> Delivery:
        """Hand one record over.

        Args:
            value: as for `lance_sdk.Producer.send`.
            key: decides the partition; without one, partitions take turns.
            partition: sends to this one, whatever the key.
            timestamp: as for `lance_sdk.Producer.send`.
            record_type: likewise.

        Returns:
            A handle to wait on, or to ignore.

        Raises:
            ConfigError: there is no partition of this number.
            LanceError: as for `lance_sdk.Producer.send`.
        """
        producer = self._producers[self._router.place(key, partition)]
        return producer.send(value, key=key, timestamp=timestamp, record_type=record_type)

    def flush(self, timeout: float | None = None) -> None:
        """Send what waits, and wait until everything handed over so far is acknowledged.

        Args:
            timeout: seconds to wait; by default as long as ``delivery_timeout`` allows.

        Raises:
            DeliveryError: the first failure among the records waited for.
            DeadlineExceeded: not all are settled yet; their delivery goes on.
        """
        until = None if timeout is None else monotonic() + timeout
        for producer in self._producers:
            producer.flush(None if until is None else max(0.0, until - monotonic()))

    def stats(self) -> tuple[ProducerStats, ...]:
        """Return the counters of each partition as they stand now."""
        return tuple(producer.stats() for producer in self._producers)

    def close(self, timeout: float | None = None) -> CloseReport:
        """Finish and disconnect; always returns.

        Args:
            timeout: seconds for what is not acknowledged yet; by default ``close_timeout``.

        Returns:
            What was delivered and what was not, of all partitions.
        """
        until = monotonic() + (self._close_timeout if timeout is None else timeout)
        return merged([each.close(max(0.0, until - monotonic())) for each in self._producers])

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        report = self.close()
        if kind is None and report.lost:
            raise RecordsLost(report)
