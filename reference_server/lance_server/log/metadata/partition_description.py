"""Descriptions of partitioned topics: which topics belong together, and in which order (AMB-59)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from lance_server.log.metadata.topic_file import Retention
from lance_spec.bodies import PartitionInfo, take_int, take_str
from lance_spec.enums import PartitionerId
from lance_spec.errors import DecodeError

_KIND: Final = "partitioned topic"
PARTITIONERS: Final = {int(each): each.name.lower() for each in PartitionerId}
"""The names that answers and files give partitioners."""
MAX_PARTITIONS: Final = 4096


@dataclass(frozen=True, slots=True)
class PartitionedTopic:
    """A partitioned topic as the catalog has it.

    Attributes:
        name: its name, in Unicode NFC; partition *n* is the topic ``NAME-n``.
        topic_ids: the topic of each partition.
        partitioner: how producers find the partition of a key.
        retention: of each partition.
    """

    name: str
    topic_ids: tuple[int, ...]
    partitioner: str
    retention: Retention

    def partition(self, index: int) -> PartitionInfo:
        """Return what is told of one of its partitions."""
        return PartitionInfo(self.name, index, len(self.topic_ids), self.partitioner)

    def to_body(self) -> dict[str, Any]:
        """Return what `from_body` takes."""
        return {
            "topic_ids": list(self.topic_ids),
            "partitioner": self.partitioner,
            "max_age_secs": self.retention.max_age_secs,
            "max_bytes": self.retention.max_bytes,
        }

    @classmethod
    def from_body(cls, name: str, body: object) -> Self:
        """Return the description that a file holds.

        Raises:
            DecodeError: a field is missing or has another type.
        """
        if not isinstance(body, Mapping):
            raise DecodeError(_KIND, name, 0, "an object", repr(body)[:80])
        topic_ids = body.get("topic_ids")
        if not isinstance(topic_ids, list) or not all(type(each) is int for each in topic_ids):
            raise DecodeError(_KIND, "topic_ids", 0, "a list of numbers", repr(topic_ids)[:80])
        limits = [take_int(body, field, _KIND) for field in ("max_age_secs", "max_bytes")]
        partitioner = take_str(body, "partitioner", _KIND)
        return cls(name, tuple(topic_ids), partitioner, Retention(*limits))


def partition_name(topic: str, index: int) -> str:
    """Return the name of the topic that a partition is."""
    return f"{topic}-{index}"


def base_name(name: str) -> str | None:
    """Return the name of the topic that a topic of this name could be a partition of."""
    base, dash, index = name.rpartition("-")
    return base if base and dash and index.isascii() and index.isdecimal() else None
