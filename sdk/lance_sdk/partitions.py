"""Topics of several partitions: records of one key keep their order (AMB-59).

A topic ``orders`` of eight partitions is the topics ``orders-0`` to ``orders-7``, which the server
creates and deletes as one. A record's key decides its partition as Kafka's default partitioner
does, or as the topic's description says; records without a key take turns::

    from lance_sdk import Client
    from lance_sdk.partitions import PartitionedProducer

    with Client("lance://localhost:1992") as client:
        client.create_topic("orders", partitions=8)
    with PartitionedProducer("lance://localhost:1992/orders") as producer:
        producer.send(b"paid", key=b"order-17")

Readers take the name: ``GroupConsumer(..., topics=["orders"])`` shares the partitions among the
members of a group, `lance_sdk.TopicsConsumer` reads all of them. `lance_sdk.TopicsProducer` writes
to several topics.

On a server that keeps no descriptions the names are given: ``partition_names("orders", 8)`` to a
producer and to the members of a group. Whoever writes must use the same names in the same order,
and the same partitioner: with another number of partitions a key moves, and its order is lost.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, Unpack
from urllib.parse import quote

from lance_sdk._api.admin_steps import check_partitions
from lance_sdk._api.unit_parsing import seconds
from lance_sdk._protocol.handshake import find_partitioned
from lance_sdk.client import Client
from lance_sdk.config import ClientConfig, ProducerConfig
from lance_sdk.delivery import Deliveries, Delivery
from lance_sdk.errors import ConfigError, NotOpenError, RecordsLost
from lance_sdk.options import ProducerOptions
from lance_sdk.producer import Producer
from lance_sdk.stats import ProducerStats
from lance_sdk.types import KEYED, Buffer, CloseReport, Record
from lance_sdk.url import URL, parse_url
from lance_sdk.values.keyed import Time
from lance_spec.bodies import TopicInfo
from lance_spec.codec.siphash import fluvio_partition

__all__ = ["PartitionedProducer", "Partitioner", "murmur2", "partition_names", "partition_of"]

Partitioner: TypeAlias = Callable[[bytes, int], int]
"""Returns the partition of a key, from 0 on, for a number of partitions."""

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
        ConfigError: that is not a number of partitions.
    """
    return [f"{topic}-{number}" for number in range(check_partitions(partitions))]


_DESCRIBED: Final[Mapping[str, Partitioner]] = {
    "murmur2": partition_of,
    "siphash": fluvio_partition,
}
"""The partitioners that a server's descriptions name."""


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

    def shares(self, raws: Iterable[Buffer], record_type: int) -> dict[int, list[Buffer]]:
        """Return which stored records of one type go to which partition, in their order."""
        found: dict[int, list[Buffer]] = {}
        keyed = record_type in KEYED
        for raw in raws:
            key = Record(0, record_type, bytes(raw), "").key if keyed else None
            found.setdefault(self.place(key, None), []).append(raw)
        return found


def route(topics: Sequence[TopicInfo], topic: str, partitioner: Partitioner | None) -> Router:
    """Return where records of a topic go; a topic without partitions is one.

    Args:
        topics: the topics of the server.
        topic: the topic's name.
        partitioner: what the program asks for; None leaves it to the topic's description.

    Raises:
        ConfigError: the program asks for another partitioner than the description names.
    """
    whole = find_partitioned(topics, topic)
    if whole is None:
        return Router([topic], partitioner or partition_of)
    described = _DESCRIBED.get(whole.partitioner)
    if described is None or partitioner not in {None, described}:
        raise ConfigError(
            f"topic {topic!r} is written with the partitioner {whole.partitioner!r}, which its "
            "description names; leave partitioner= out, so that keys keep their partitions"
        )
    return Router(whole.names, described)


def shared_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options that every client has."""
    names = {field.name for field in fields(ClientConfig)}
    return {name: value for name, value in options.items() if name in names}


def options_of(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the producer of one topic: each has a journal of its own."""
    if (journal := options.get("journal")) is None:
        return dict(options)
    return {**options, "journal": Path(journal) / quote(name, safe="")}


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
        url: the partitioned topic; where ``partitions`` are given, a topic in it is left aside.
        partitions: by default those that the server describes (AMB-59). On a server that keeps
            no descriptions their names, see `partition_names`: every program that writes gives
            the same ones in the same order.
        partitioner: gives a key its partition; by default the one that the server describes, and
            without a description that of Kafka's clients.
        **options: the fields of `lance_sdk.config.ProducerConfig`, for each partition;
            ``create_topic=True`` creates partitions that are missing. With ``journal`` each
            partition has a folder of its own in that folder.

    Raises:
        ConfigError: for a URL, names or an option that cannot be used.
    """

    def __init__(
        self,
        url: str | URL,
        partitions: Sequence[str] | None = None,
        *,
        partitioner: Partitioner | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        self._server = parse_url(url)
        self._options: Any = options
        self._partitioner = partitioner
        self._producers: list[Producer[Any]] = []
        self._router: Router | None = None
        config = self._server.configure(ProducerConfig, options)
        self._close_timeout = seconds("close_timeout", config.close_timeout)
        if partitions is None:
            self._server.require_name()
        else:
            self._take(Router(partitions, partitioner or partition_of))

    def __repr__(self) -> str:
        return f"<PartitionedProducer {len(self._producers)} of {self._server.topic!r}>"

    def _take(self, router: Router) -> None:
        self._router = router
        self._producers = [
            Producer(
                replace(self._server, topic=name, topic_id=None),
                **options_of(name, self._options),
            )
            for name in router.names
        ]

    @property
    def partitions(self) -> tuple[str, ...]:
        """The names of the partitions; none before they are known."""
        return () if self._router is None else self._router.names

    def open(self) -> Self:
        """Connect to all partitions; a ``with`` block does it by itself.

        Raises:
            ConfigError: the topic's description names another partitioner.
            LanceError: one cannot be opened; none stays open then.
        """
        if self._router is None:
            server = replace(self._server, topic=None)
            with Client(server, **shared_options(self._options)) as client:
                topics = client.list_topics()
            self._take(route(topics, self._server.topic or "", self._partitioner))
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
            UsageError: the producer is not open.
            LanceError: as for `lance_sdk.Producer.send`.
        """
        if self._router is None:
            raise NotOpenError(f"{self!r} is not open")
        producer = self._producers[self._router.place(key, partition)]
        return producer.send(value, key=key, timestamp=timestamp, record_type=record_type)

    def send_many_raw(self, raws: Iterable[Buffer], record_type: int) -> list[Deliveries]:
        """Hand many records of one type over as they are stored; this is how records are copied.

        Args:
            raws: the stored bytes of each, as for `lance_sdk.Producer.send_many_raw`; the key
                that the type calls for decides the partition.
            record_type: the TLV type of all of them.

        Returns:
            A handle for each partition that got some.

        Raises:
            UsageError: the producer is not open.
            LanceError: as for `lance_sdk.Producer.send_many_raw`.
        """
        if self._router is None:
            raise NotOpenError(f"{self!r} is not open")
        shares = self._router.shares(raws, record_type)
        return [
            self._producers[index].send_many_raw(share, record_type)
            for index, share in shares.items()
        ]

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
