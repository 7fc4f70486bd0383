"""Fluvio clusters as an end of a bridge."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lance_sdk.bridge.contract import Envelope, RecordsGoneError, Source, Target
from lance_sdk.bridge.endpoints import ReadOptions, Writing
from lance_sdk.bridge.other_systems import End, UrlParts, chosen, picked, split
from lance_sdk.errors import DeadlineExceeded, DeliveryError
from lance_sdk.fluvio import (
    FluvioClient,
    FluvioConsumer,
    FluvioProducer,
    FluvioRefused,
    ReceivedRecord,
)
from lance_spec.errors import EncodeError
from lance_spec.fluvio.batches import NO_TIMESTAMP, FluvioRecord
from lance_spec.fluvio.record_mapping import from_tlv, to_tlv
from lance_spec.messages.fluvio import ErrorCode

_COMPRESSION: Final = "compression"
_ONE_BATCH: Final = {"batch_bytes": 64 * 1024, "buffer_bytes": 64 * 1024}
"""What a target sends at once is one batch, so a lost answer doubles no more than that."""


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
        follow, patience = self._reading.follow, self._client.settings.timeout
        try:
            found = consumer.poll(self._reading.wait if follow else patience)
        except FluvioRefused as refused:
            if refused.code is ErrorCode.OFFSET_EVICTED:
                raise RecordsGoneError(str(refused)) from refused
            raise
        if not (found or follow):
            raise DeadlineExceeded(
                f"consume {self._place}: nothing came from offset {consumer.offset} on in "
                f"{patience:g} s, though there is more"
            )
        return found


def _carried(found: ReceivedRecord) -> Envelope:
    time = NO_TIMESTAMP if found.timestamp_ms is None else found.timestamp_ms
    record = FluvioRecord(found.value, found.key, time)
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

    def __repr__(self) -> str:
        return f"<_FluvioTarget {self._topic!r}>"

    def _begin(self) -> None:
        if self._writing.create_topic:
            self._create_topic()
        self._producer = self._client.producer(self._topic)

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
            self._producer.send(value, key=key, timestamp_ms=time, partition=self._partition)

    def flush(self) -> None:
        assert self._producer is not None, "it was entered"
        self._producer.flush()


def partitions(url: str, options: Mapping[str, Any]) -> Sequence[int | None]:
    """Return which partitions of a topic are to be read."""
    parts = split(url, _COMPRESSION)
    with _client(parts, options) as client:

        def count() -> int:
            return {each.name: each.partitions for each in client.topics()}.get(parts.topic, 1)

        return chosen(parts, count)


def open_source(url: str, reading: ReadOptions, options: Mapping[str, Any]) -> Source:
    """Return a partition as a source; places are offsets in records."""
    return _FluvioSource(url, reading, options)


def open_target(url: str, writing: Writing, options: Mapping[str, Any]) -> Target:
    """Return a topic as a target."""
    return _FluvioTarget(url, writing, options)
