"""Arguments and results of the client."""

from dataclasses import dataclass
from datetime import UTC, datetime
from math import isnan
from typing import Final, NamedTuple

from lance_sdk.errors import ConfigError
from lance_sdk.fluvio._partitioner import Partitioner, partitioner_of
from lance_spec.fluvio.batches import NO_TIMESTAMP, Compression

__all__ = ["FluvioTopic", "Offsets", "ReceivedRecord", "StoredRecords"]

_ABOVE_ZERO: Final = ("timeout", "batch_bytes", "buffer_bytes", "max_bytes", "max_frame")
DELIVERIES: Final = ("at_least_once", "at_most_once")


class ReceivedRecord(NamedTuple):
    """One record of a partition.

    Attributes:
        offset: its number in the partition, from 0.
        value: its value.
        key: its key, or None.
        timestamp_ms: milliseconds since the Unix epoch, or None.
        topic: name of the topic.
        partition: number of the partition.
    """

    offset: int
    value: bytes
    key: bytes | None
    timestamp_ms: int | None
    topic: str
    partition: int

    @property
    def timestamp(self) -> datetime | None:
        """Its time in UTC, or None."""
        if self.timestamp_ms is None:
            return None
        return datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """Records that a server has stored.

    Attributes:
        partition: number of the partition.
        base_offset: offset of the first.
        count: how many.
    """

    partition: int
    base_offset: int
    count: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """What a partition holds.

    Attributes:
        start: the earliest offset.
        end: the offset of the next record.
    """

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FluvioTopic:
    """A topic.

    Attributes:
        name: its name.
        partitions: how many partitions it has.
        system: whether the cluster keeps it for itself.
    """

    name: str
    partitions: int
    system: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FluvioSettings:
    """Settings of a client.

    Attributes:
        timeout: seconds for a connection, and for an answer.
        retry_for: seconds for which producers and consumers go on after a connection was lost
            or a partition's leader changed; 0 for not at all.
        delivery: ``at_least_once`` sends records again when it is not known whether they were
            stored, so they may be stored twice; ``at_most_once`` does not, so they may be lost.
        compression: ``none``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``.
        batch_bytes: bytes of keys and values after which a batch is closed.
        buffer_bytes: bytes of keys and values after which what waits is sent.
        read_committed: whether a server may answer only when all its copies have a batch.
        max_bytes: most bytes of records that one response to a consumer should carry; where one
            batch is larger, a consumer asks for as much as that takes.
        max_frame: largest response to accept, in bytes, and so the largest batch to consume.
        partitioner: where records with a key go: ``siphash`` as Fluvio's own producers,
            ``crc32`` as the first release of this package, or a function that takes the key and
            the number of partitions.
        check_crc: whether batches whose checksum is wrong are an error; Fluvio's own clients do
            not look.

    Raises:
        ConfigError: a value is not allowed.
    """

    timeout: float = 30.0
    retry_for: float = 30.0
    delivery: str = "at_least_once"
    compression: str = "none"
    batch_bytes: int = 16 * 1024
    buffer_bytes: int = 512 * 1024
    read_committed: bool = False
    max_bytes: int = 1024 * 1024
    max_frame: int = 64 * 1024 * 1024
    partitioner: str | Partitioner = "siphash"
    check_crc: bool = True

    def __post_init__(self) -> None:
        compressions = [each.name.lower() for each in Compression]
        for name, known in (("compression", compressions), ("delivery", DELIVERIES)):
            if getattr(self, name) not in known:
                expected = ", ".join(known)
                raise ConfigError(f"{name}={getattr(self, name)!r}: expected one of {expected}")
        partitioner_of(self.partitioner)
        for name in ("retry_for", *_ABOVE_ZERO):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or isnan(value):
                raise ConfigError(f"{name}={value!r}: expected a number")
        if self.retry_for < 0:
            raise ConfigError(f"retry_for={self.retry_for!r}: expected 0 or more")
        for name in _ABOVE_ZERO:
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name}={getattr(self, name)!r}: expected more than 0")

    @property
    def packing(self) -> Compression:
        """The compression as batches number it."""
        return Compression[self.compression.upper()]


def time_or_none(timestamp_ms: int) -> int | None:
    """Return a record's time as callers see it."""
    return None if timestamp_ms == NO_TIMESTAMP else timestamp_ms
