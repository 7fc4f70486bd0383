"""Requests, and the meaning of their answers. No socket here."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lance_sdk.errors import LocalProtocolError, RemoteProtocolError
from lance_sdk.rustlog.errors import RustlogError
from lance_sdk.rustlog.types import RustlogBatch, RustlogRecord, StoredRecords
from lance_spec.messages import rustlog

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """A request.

    Attributes:
        request: the message.
        answer: the type of its answer.
        read: makes the result of the answer.
        changes: whether the broker may have changed something when no answer comes.
    """

    request: Any
    answer: type
    read: Callable[[Any], T]
    changes: bool = False


def ping() -> Ask[None]:
    """Ask whether the broker is there."""
    return Ask(rustlog.Ping(), rustlog.Ping, lambda _: None)


def produce(topic: str, records: Iterable[bytes], partition: int) -> Ask[StoredRecords]:
    """Append records.

    Raises:
        LocalProtocolError: a record is given where a list is wanted.
    """
    if isinstance(records, bytes | bytearray | memoryview | str):
        raise LocalProtocolError("records must be a list of bytes; for a single one: [record]")
    values = list(records)
    request = rustlog.ProduceRequest(topic=topic, partition=partition, records=values)

    def read(answer: rustlog.ProduceResponse) -> StoredRecords:
        if answer.record_count != len(values):
            raise RemoteProtocolError(
                f"the broker stored {answer.record_count} of {len(values)} records; those before "
                "the one that failed stay stored"
            )
        return StoredRecords(answer.base_offset, answer.record_count)

    return Ask(request, rustlog.ProduceResponse, read, changes=True)


def fetch(
    topic: str, offset: int, partition: int, max_bytes: int, group: str | None
) -> Ask[RustlogBatch]:
    """Read records."""
    request = rustlog.FetchRequest(
        group=group or "", topic=topic, partition=partition, offset=offset, max_bytes=max_bytes
    )
    return Ask(request, rustlog.FetchResponse, _batch)


def _batch(answer: rustlog.FetchResponse) -> RustlogBatch:
    first = answer.next_offset - len(answer.records)
    if first < 0:
        raise RemoteProtocolError(
            f"the broker sent {len(answer.records)} records that end at offset "
            f"{answer.next_offset}: they cannot be numbered"
        )
    records = tuple(RustlogRecord(first + index, each) for index, each in enumerate(answer.records))
    return RustlogBatch(records, answer.next_offset)


def commit(group: str, topic: str, offset: int, partition: int) -> Ask[None]:
    """Commit an offset."""
    request = rustlog.OffsetCommitRequest(
        group=group, topic=topic, partition=partition, offset=offset
    )
    return Ask(request, rustlog.OffsetCommitResponse, _done("the offset is not kept"), changes=True)


def _done(otherwise: str) -> Callable[[Any], None]:
    def read(answer: Any) -> None:
        if not answer.success:
            raise RustlogError(0, f"{otherwise}: is there such a topic and partition?")

    return read


def committed(group: str, topic: str, partition: int) -> Ask[int | None]:
    """Ask what a group committed."""
    request = rustlog.OffsetFetchRequest(group=group, topic=topic, partition=partition)
    return Ask(request, rustlog.OffsetFetchResponse, lambda answer: answer.offset)


def create_topic(topic: str, partitions: int) -> Ask[None]:
    """Create a topic."""
    request = rustlog.CreateTopicRequest(topic=topic, partitions=partitions)
    return Ask(request, rustlog.CreateTopicResponse, _done("it was not created"), changes=True)


def topics() -> Ask[dict[str, int]]:
    """Ask for all topics."""
    return Ask(
        rustlog.ListTopicsRequest(),
        rustlog.ListTopicsResponse,
        lambda answer: {each.topic: each.partitions for each in answer.topics},
    )


def describe_topic(topic: str) -> Ask[dict[int, int]]:
    """Ask for the partitions of a topic."""
    return Ask(
        rustlog.DescribeTopicRequest(topic=topic),
        rustlog.DescribeTopicResponse,
        lambda answer: {each.partition: each.high_watermark for each in answer.partitions},
    )


def describe_partition(topic: str, partition: int) -> Ask[int]:
    """Ask for one partition."""
    return Ask(
        rustlog.DescribePartitionRequest(topic=topic, partition=partition),
        rustlog.DescribePartitionResponse,
        lambda answer: answer.high_watermark,
    )


def metrics() -> Ask[str]:
    """Ask what the broker counts."""
    return Ask(rustlog.MetricsRequest(), rustlog.MetricsResponse, lambda answer: answer.text)
