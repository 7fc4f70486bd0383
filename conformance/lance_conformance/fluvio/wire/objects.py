"""Objects of the SC as clients read them: SPUs, topics and partitions (FLV-01)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from lance_conformance.fluvio.wire.primitives import Reader


class ObjectKind(StrEnum):
    """The kinds that a client asks for by name."""

    SPU = "SPU"
    TOPIC = "Topic"
    PARTITION = "Partition"


@dataclass(frozen=True, slots=True)
class Spu:
    """A server that keeps records.

    Attributes:
        name: Its name.
        id: Its number.
        hosts: Names and addresses under which clients reach it.
        port: The port there.
        encrypted: Whether it speaks TLS.
        online: Whether it can be reached.
    """

    name: str
    id: int
    hosts: tuple[str, ...]
    port: int
    encrypted: bool
    online: bool


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic.

    Attributes:
        name: Its name.
        partitions: How many partitions it has.
        provisioned: Whether it can be used.
        replicas: Which SPUs keep each partition.
    """

    name: str
    partitions: int
    provisioned: bool
    replicas: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition.

    Attributes:
        name: Name of the topic, a dash, number of the partition.
        leader: Number of the SPU that takes and serves its records.
        online: Whether it can be used.
        end: Offset after its last record, as the SC last heard.
        start: Its lowest offset; 0 below version 16.
    """

    name: str
    leader: int
    online: bool
    end: int
    start: int


Object: TypeAlias = Spu | Topic | Partition


def _choice(reader: Reader, field: str, highest: int) -> int:
    found = reader.natural(1, field)
    if found > highest:
        reader.fault(field, f"expected 0 to {highest}, got {found}")
    return found


def _duration(reader: Reader) -> None:
    reader.take(12, "duration")


def _cleanup(reader: Reader) -> None:
    _choice(reader, "cleanup_policy", 0)
    reader.natural(4, "seconds")


def _storage(reader: Reader) -> None:
    reader.option(lambda: reader.natural(4, "segment_size"), "segment_size")
    reader.option(lambda: reader.natural(8, "max_partition_size"), "max_partition_size")


def _deduplication(reader: Reader) -> None:
    reader.natural(8, "count")
    reader.option(lambda: _duration(reader), "age")
    reader.text("uses")
    reader.many(lambda: (reader.text("name"), reader.text("value")), "parameters", 2)


def _keeping(reader: Reader) -> None:
    """What topics and partitions have in common."""
    reader.option(lambda: _cleanup(reader), "cleanup_policy")
    reader.option(lambda: _storage(reader), "storage")
    _choice(reader, "compression", 5)
    reader.option(lambda: _deduplication(reader), "deduplication")
    reader.flag("system")


def _ids(reader: Reader) -> tuple[int, ...]:
    return tuple(reader.many(lambda: reader.number(4, "spu"), "replicas"))


def _endpoint(reader: Reader) -> None:
    reader.natural(2, "port")
    reader.text("host")
    _choice(reader, "encryption", 1)


def read_spu(reader: Reader, _version: int) -> Spu:
    """An SPU."""
    name, number = reader.text("name"), reader.number(4, "id")
    _choice(reader, "spu_type", 1)
    port = reader.natural(2, "port")
    hosts: list[str] = []
    for pair in reader.many(lambda: _ingress(reader), "ingress"):
        hosts += [host for host in pair if host]
    encrypted = bool(_choice(reader, "encryption", 1))
    _endpoint(reader)
    reader.option(lambda: reader.text("rack"), "rack")
    reader.option(lambda: _endpoint(reader), "local_endpoint")
    online = _choice(reader, "resolution", 2) == 0
    return Spu(name, number, tuple(hosts), port, encrypted, online)


def _ingress(reader: Reader) -> tuple[str | None, str | None]:
    hostname = reader.option(lambda: reader.text("hostname"), "hostname")
    return hostname, reader.option(lambda: reader.text("ip"), "ip")


def read_topic(reader: Reader, _version: int) -> Topic:
    """A topic."""
    name = reader.text("name")
    count = _computed(reader) if _choice(reader, "form", 1) else _assigned(reader)
    _keeping(reader)
    provisioned = _choice(reader, "resolution", 5) == 4
    replicas = dict(
        reader.many(lambda: (reader.natural(4, "partition"), _ids(reader)), "replica_map", 2)
    )
    if reader.natural(2, "mirror_count"):
        reader.fault("mirror_count", "no topic of the kit has a mirror")
    reader.text("reason")
    return Topic(name, count, provisioned, replicas)


def _computed(reader: Reader) -> int:
    count = reader.natural(4, "partitions")
    reader.natural(4, "replication")
    reader.flag("ignore_rack")
    return count


def _assigned(reader: Reader) -> int:
    return len(reader.many(lambda: (reader.natural(4, "partition"), _ids(reader)), "partitions"))


def read_partition(reader: Reader, version: int) -> Partition:
    """A partition; it tells its lowest offset from version 16 on."""
    name, leader = reader.text("name"), reader.number(4, "leader")
    _ids(reader)
    _keeping(reader)
    if reader.flag("mirror"):
        reader.fault("mirror", "no partition of the kit has a mirror")
    online = _choice(reader, "resolution", 3) == 1
    end = _replica(reader)
    reader.natural(4, "in_sync")
    reader.many(lambda: _replica(reader), "replica_statuses")
    reader.number(8, "size")
    reader.flag("deleting")
    start = reader.number(8, "base_offset") if version >= 16 else 0
    return Partition(name, leader, online, end, start)


def _replica(reader: Reader) -> int:
    reader.number(4, "spu")
    reader.number(8, "high_watermark")
    return reader.number(8, "end_offset")


READERS: Mapping[ObjectKind, Callable[[Reader, int], Object]] = {
    ObjectKind.SPU: read_spu,
    ObjectKind.TOPIC: read_topic,
    ObjectKind.PARTITION: read_partition,
}
