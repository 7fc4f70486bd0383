"""Requests as cases put them."""

from collections.abc import Sequence
from typing import Any

from lance_conformance.rustlog.wire.message import Message

MANY = 65_536
"""Bytes that any Fetch of these cases fits into."""


def produce(topic: str | bytes, partition: int, records: Sequence[bytes]) -> Message:
    """Append records."""
    return Message("Produce", {"topic": topic, "partition": partition, "records": records})


def fetch(
    topic: str, partition: int, offset: int, max_bytes: int = MANY, group: str = ""
) -> Message:
    """Read records, for a group or for nobody."""
    return Message(
        "Fetch",
        {
            "group": group,
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "max_bytes": max_bytes,
        },
    )


def commit(group: str, topic: str, partition: int, offset: int) -> Message:
    """Note how far a group has read."""
    place = {"group": group, "topic": topic, "partition": partition}
    return Message("OffsetCommit", {**place, "offset": offset})


def committed(group: str, topic: str, partition: int) -> Message:
    """Ask for what a group has noted."""
    return Message("OffsetFetch", {"group": group, "topic": topic, "partition": partition})


def create(topic: str | bytes, partitions: int) -> Message:
    """Make a topic."""
    return Message("CreateTopic", {"topic": topic, "partitions": partitions})


def describe(topic: str) -> Message:
    """Ask for the partitions of a topic."""
    return Message("DescribeTopic", {"topic": topic})


def describe_partition(topic: str, partition: int) -> Message:
    """Ask for one of them."""
    return Message("DescribePartition", {"topic": topic, "partition": partition})


LIST = Message("ListTopics")
METRICS = Message("MetricsFetch")
PING = Message("Ping")


def json_produce(topic: str, partition: int, records: Sequence[bytes]) -> Message:
    """Append records, in JSON."""
    values = [list(each) for each in records]
    return Message("Produce", {"topic": topic, "partition": partition, "records": values}, "json")


def json_fetch(
    topic: str, partition: int, offset: int, max_bytes: int = MANY, group: str | None = None
) -> Message:
    """Read records, in JSON; the group is null for nobody."""
    members: dict[str, Any] = {"topic": topic, "partition": partition, "offset": offset}
    return Message("Fetch", {**members, "max_bytes": max_bytes, "group_id": group}, "json")


def json_commit(topic: str, partition: int, group: str, offset: int) -> Message:
    """Note how far a group has read, in JSON."""
    members: dict[str, Any] = {"topic": topic, "partition": partition, "group_id": group}
    return Message("OffsetCommit", {**members, "offset": offset}, "json")


def json_committed(topic: str, partition: int, group: str) -> Message:
    """Ask for what a group has noted, in JSON."""
    return Message(
        "OffsetFetch", {"topic": topic, "partition": partition, "group_id": group}, "json"
    )
