"""LWP servers as an end of a bridge."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from types import TracebackType
from typing import Any, Final, Self

from lance_sdk._api.frame_producer import FrameProducer
from lance_sdk._protocol.handshake import find_partitioned
from lance_sdk.bridge.contract import Envelope, RecordsGoneError, Source, Target
from lance_sdk.bridge.endpoints import ReadOptions, Writing
from lance_sdk.client import Client
from lance_sdk.consumer import Consumer
from lance_sdk.errors import ConfigError, InvalidOffset, ServerError, Unsupported
from lance_sdk.topics.routing import shared_options
from lance_sdk.types import PartitionedTopic, RecordBatch
from lance_sdk.url import URL, parse_url
from lance_spec.limits import BATCH_COUNTER_BITS, RECORD_HEADER_SIZE
from lance_spec.records import encode_records

_PATIENT: Final = 86_400.0  # deliveries expire long before, and say why
_BATCH_BYTES: Final = 256 * 1024
_BATCH_RECORDS: Final = 8192
"""Bounds of a batch; a copy that is gone on with after an update needs the same ones."""
_COUNTER: Final = (1 << BATCH_COUNTER_BITS) - 1


class _LanceSource:
    def __init__(self, url: str, reading: ReadOptions, options: Mapping[str, Any]) -> None:
        own = {"start": reading.start, "stop_at_end": not reading.follow}
        self._wait = reading.wait if reading.follow else None
        place = _partition_of(url, reading.partition, options)
        self._consumer = Consumer(place, **{**options, **own})

    def __repr__(self) -> str:
        return f"<_LanceSource {self._consumer!r}>"

    def __enter__(self) -> Self:
        self._consumer.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._consumer.__exit__(kind, error, trace)

    def batches(self) -> Iterator[Sequence[Envelope]]:
        while (batch := self._poll()) is not None or self._wait is not None:
            yield [
                Envelope(each.type, each.raw, each.offset, each.next_offset) for each in batch or ()
            ]

    def _poll(self) -> RecordBatch | None:
        try:
            return self._consumer.poll(self._wait)
        except InvalidOffset as error:
            if error.earliest is None:
                raise
            raise RecordsGoneError(str(error)) from error


class _LanceTarget:
    """Sends batches whose bounds, ids and time follow from the source alone."""

    def __init__(self, url: str, writing: Writing, options: Mapping[str, Any]) -> None:
        own = {"create_topic": writing.create_topic, "block_timeout": _PATIENT}
        self._url = _partition_of(url, writing.partition, options)
        self._options = options
        self._identity = writing.identity
        self._producer = FrameProducer(
            self._url, nonce=writing.identity.nonce, batches=_COUNTER, **{**options, **own}
        )
        self._open: list[Envelope] = []
        self._size = 0
        self.stores_once = False

    def __repr__(self) -> str:
        return f"<_LanceTarget {self._producer!r}>"

    def __enter__(self) -> Self:
        self._producer.__enter__()
        try:
            self.stores_once = self._has_window()
        except BaseException:
            self._producer.close(0.0)
            raise
        return self

    def _has_window(self) -> bool:
        try:
            with Client(self._url, **shared_options(self._options)) as client:
                window = client.cluster_status().dedup_window
        except (ServerError, Unsupported):
            return False
        return window is not None and window.entries > 0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._producer.__exit__(kind, error, trace)

    def write(self, records: Sequence[Envelope]) -> None:
        for each in records:
            size = RECORD_HEADER_SIZE + len(each.value)
            if self._open and (
                self._size + size > _BATCH_BYTES or len(self._open) >= _BATCH_RECORDS
            ):
                self._send()
            self._open.append(each)
            self._size += size

    def _send(self) -> None:
        """Send the open batch."""
        payload = b"".join(
            encode_records([each.value for each in some], kind)
            for kind, some in groupby(self._open, key=lambda each: each.kind)
        )
        place = self._open[0].offset % _COUNTER + 1
        self._producer.send_batch(
            payload,
            len(self._open),
            batch_id=self._identity.nonce << BATCH_COUNTER_BITS | place,
            timestamp_ns=self._identity.began_ns,
        )
        self._open, self._size = [], 0

    def flush(self) -> None:
        if self._open:
            self._send()
        self._producer.finish()


def _described(url: URL, options: Mapping[str, Any]) -> PartitionedTopic | None:
    """Return how the server describes a topic; None for one without partitions (AMB-59)."""
    if url.topic is None:
        return None
    with Client(url, **shared_options(options)) as client:
        return find_partitioned(client.list_topics(), url.topic)


def _partition_of(url: str, partition: int | None, options: Mapping[str, Any]) -> URL:
    """Return the URL of the topic that is a partition, as ``lance-server`` names it."""
    found = parse_url(url)
    if partition is None:
        return found
    if found.topic is None:
        raise ConfigError(f"{found}: name the topic; its partitions become topics of their own")
    whole = _described(found, options)
    if whole is None:
        return replace(found, topic=f"{found.topic}.{partition}") if partition else found
    if partition >= whole.partitions:
        raise ConfigError(
            f"{found} has {whole.partitions} partitions, and partition {partition} of the source "
            f"has no place there; run `lwp topics add-partitions {whole.name} {partition + 1}`"
        )
    return replace(found, topic=whole.names[partition])


def partitions(url: str, options: Mapping[str, Any]) -> Sequence[int | None]:
    """Return the partitions of a partitioned topic, or that there are none to choose from."""
    whole = _described(parse_url(url), options)
    return [None] if whole is None else list(range(whole.partitions))


def open_source(url: str, reading: ReadOptions, options: Mapping[str, Any]) -> Source:
    """Return a topic as a source; places are byte offsets."""
    return _LanceSource(url, reading, options)


def open_target(url: str, writing: Writing, options: Mapping[str, Any]) -> Target:
    """Return a topic as a target."""
    return _LanceTarget(url, writing, options)
