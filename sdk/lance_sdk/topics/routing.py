"""Which partition of a topic a record goes to: the same for both APIs (AMB-59)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from lance_sdk._api.admin_steps import check_partitions
from lance_sdk._protocol.handshake import find_partitioned
from lance_sdk.config import ClientConfig
from lance_sdk.errors import ConfigError
from lance_sdk.types import KEYED, Buffer, CloseReport, Record
from lance_spec.bodies import TopicInfo
from lance_spec.codec.siphash import fluvio_partition

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
