"""Fluvio clusters as an end of a bridge."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lance_sdk.bridge.contract import Envelope, RecordsGoneError, Source, Target
from lance_sdk.bridge.endpoints import ReadOptions, Writing
from lance_sdk.bridge.other_systems import End, UrlParts, chosen, picked, split
from lance_sdk.errors import ConfigError, DeadlineExceeded, DeliveryError
from lance_sdk.fluvio import (
    FluvioClient,
    FluvioConsumer,
    FluvioProducer,
    FluvioRefused,
    ReceivedRecord,
    StoredRecords,
)
from lance_spec.errors import EncodeError
from lance_spec.fluvio.batches import NO_TIMESTAMP, FluvioRecord
from lance_spec.fluvio.record_mapping import from_tlv, to_tlv
from lance_spec.messages.fluvio import ErrorCode

_COMPRESSION: Final = "compression"
_ONE_BATCH: Final = {
    "batch_bytes": 64 * 1024,
    "buffer_bytes": 64 * 1024,
    "delivery": "at_most_once",
}
"""What a target sends at once is one batch. After a lost answer the copy begins anew at its last
note, and looks what is there."""


def _client(parts: UrlParts, options: Mapping[str, Any], **defaults: Any) -> FluvioClient:
    return FluvioClient(parts.address, **{**defaults, "tls": parts.tls, **parts.query, **options})


class _FluvioSource(End):
    def __init__(self, url: str, reading: ReadOptions, options: Mapping[str, Any]) -> None:
        parts = split(url, _COMPRESSION)
        self._client = _client(parts, options)
        super().__init__(self._client)
        self._place = parts.topic, picked(parts, reading.partition) or 0
        self._reading = reading

    def __repr__(self) -> str:
        return f"<_FluvioSource {self._place} {self._reading}>"

    def batches(self) -> Iterator[Sequence[Envelope]]:
        follow = self._reading.follow
        end = None if follow else self._client.offsets(*self._place).end
        with self._client.consumer(
            *self._place, start=self._reading.start, stop_at_end=not follow
        ) as consumer:
            while end is None or consumer.offset < end:
                yield [_carried(each) for each in self._poll(consumer)]

    def _poll(self, consumer: FluvioConsumer) -> Sequence[ReceivedRecord]:
        follow, timeout = self._reading.follow, self._client.settings.timeout
        try:
            found = consumer.poll(self._reading.wait if follow else timeout)
        except FluvioRefused as refused:
            if refused.code is ErrorCode.OFFSET_EVICTED:
                raise RecordsGoneError(str(refused)) from refused
            raise
        if not (found or follow):
            raise DeadlineExceeded(
                f"consume {self._place}: nothing came from offset {consumer.offset} on in "
                f"{timeout:g} s, though there is more"
            )
        return found


def _carried(found: ReceivedRecord) -> Envelope:
    record = FluvioRecord(*_content(found))
    try:
        kind, head = to_tlv(record)
    except EncodeError as error:
        raise DeliveryError(
            f"the record at offset {found.offset} of {found.topic!r} partition "
            f"{found.partition} cannot be carried: {error}"
        ) from None
    return Envelope(kind, head + record.value, found.offset, found.offset + 1)


class _FluvioTarget(End):
    stores_once = False

    def __init__(self, url: str, writing: Writing, options: Mapping[str, Any]) -> None:
        parts = split(url, _COMPRESSION)
        self._client = _client(parts, options, **_ONE_BATCH)
        super().__init__(self._client)
        self._topic, self._partition = parts.topic, picked(parts, writing.partition)
        self._writing = writing
        self._producer: FluvioProducer | None = None
        self.end: int | None = None

    def __repr__(self) -> str:
        return f"<_FluvioTarget {self._topic!r}, ends at {self.end}>"

    def _begin(self) -> None:
        if self._writing.create_topic:
            self._create_topic()
        self._producer = self._client.producer(self._topic)
        count = _count(self._client, self._topic)
        if self._partition is None and count == 1:
            self._partition = 0
        if self._partition is not None:
            if self._partition >= count:
                raise ConfigError(f"partition={self._partition}: the topic has {count}")
            self.end = self._found_end(self._partition)

    def _found_end(self, partition: int) -> int | None:
        try:
            return self._client.offsets(self._topic, partition).end
        except FluvioRefused as refused:
            if refused.code is not ErrorCode.PERMISSION_DENIED:
                raise
            return None  # a client that may only write cannot compare

    def _create_topic(self) -> None:
        try:
            count = max(self._writing.partitions, 1 + (self._partition or 0))
            self._client.create_topic(self._topic, partitions=count)
        except FluvioRefused as refused:
            if refused.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    def write(self, records: Sequence[Envelope]) -> None:
        assert self._producer is not None, "it was entered"
        for each in records:
            value, key, time, _ = from_tlv(each.kind, each.value)
            self._note(
                self._producer.send(value, key=key, timestamp_ms=time, partition=self._partition)
            )

    def flush(self) -> None:
        assert self._producer is not None, "it was entered"
        self._note(self._producer.flush())

    def _note(self, stored: Sequence[StoredRecords]) -> None:
        if stored and self._partition is not None:
            self.end = stored[-1].base_offset + stored[-1].count

    def stored(self, records: Sequence[Envelope], since: int) -> int:
        assert self._partition is not None, "it has an end"
        place = self._topic, self._partition
        there, count = self._client.offsets(*place), 0
        if there.start <= since < there.end:
            with self._client.consumer(*place, start=since, stop_at_end=True) as consumer:
                for record, found in zip(records, consumer, strict=False):
                    if _content(found) != from_tlv(record.kind, record.value)[:3]:
                        break
                    count += 1
        self.end = since + count
        return count


def _content(found: ReceivedRecord) -> tuple[bytes, bytes | None, int]:
    time = NO_TIMESTAMP if found.timestamp_ms is None else found.timestamp_ms
    return found.value, found.key, time


def _count(client: FluvioClient, topic: str) -> int:
    """Return how many partitions a topic has, of which the cluster was just asked.

    Raises:
        FluvioRefused: its SC was started meanwhile, and has not read its topics yet.
    """
    found = {each.name: each.partitions for each in client.topics()}.get(topic)
    if found is None:
        raise FluvioRefused(f"topic {topic!r}", ErrorCode.TOPIC_NOT_FOUND, retryable=True)
    return found


def partitions(url: str, options: Mapping[str, Any]) -> Sequence[int | None]:
    """Return which partitions of a topic are to be read."""
    parts = split(url, _COMPRESSION)
    with _client(parts, options) as client:
        client.offsets(parts.topic, parts.partition or 0)  # raises if there is no such topic
        return chosen(parts, lambda: _count(client, parts.topic))


def open_source(url: str, reading: ReadOptions, options: Mapping[str, Any]) -> Source:
    """Return a partition as a source; places are offsets in records."""
    return _FluvioSource(url, reading, options)


def open_target(url: str, writing: Writing, options: Mapping[str, Any]) -> Target:
    """Return a topic as a target."""
    return _FluvioTarget(url, writing, options)
