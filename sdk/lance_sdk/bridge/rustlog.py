"""RustLog brokers as an end of a bridge."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from lance_sdk._api.interruptible import pause
from lance_sdk.bridge.contract import Envelope, RecordsGoneError, Source, SourceChangedError, Target
from lance_sdk.bridge.endpoints import ReadOptions, Writing
from lance_sdk.bridge.other_systems import End, UrlParts, chosen, picked, split
from lance_sdk.errors import RecordTooLarge
from lance_sdk.rustlog import RustlogBatch, RustlogClient, TopicExists
from lance_spec.enums import RecordType
from lance_spec.fluvio.record_mapping import from_tlv

_REQUEST: Final = 512 * 1024
"""Bytes of records after which they are sent; in JSON they take up to four times as many."""
_PER_RECORD: Final = 4
_DIALECT: Final = "dialect"


def _client(parts: UrlParts, options: Mapping[str, Any]) -> RustlogClient:
    return RustlogClient(parts.address, **{"tls": parts.tls, **parts.query, **options})


def _is_binary(parts: UrlParts) -> bool:
    return parts.query.get(_DIALECT, "binary") == "binary"


class _RustlogSource(End):
    def __init__(self, url: str, reading: ReadOptions, options: Mapping[str, Any]) -> None:
        parts = split(url, _DIALECT)
        self._client = _client(parts, options)
        super().__init__(self._client)
        self._topic, self._partition = parts.topic, picked(parts, reading.partition) or 0
        self._binary = _is_binary(parts)
        self._reading = reading

    def __repr__(self) -> str:
        return f"<_RustlogSource {self._topic!r}-{self._partition} {self._reading}>"

    def batches(self) -> Iterator[Sequence[Envelope]]:
        start = self._reading.start
        offset = self._beginning() if start == "beginning" else start
        while (batch := self._kept(offset)) or self._reading.follow:
            yield [
                Envelope(RecordType.RAW_DATA, each.value, each.offset, each.offset + 1)
                for each in batch.records
            ]
            if batch:
                offset = batch.next_offset
            else:
                pause(self._reading.wait)  # the protocol has no other way to wait

    def _kept(self, offset: int) -> RustlogBatch:
        """Return records; none only where the partition ends.

        Raises:
            RecordsGoneError: there are some after the offset, and none at it.
            SourceChangedError: not even the record before it is there.
        """
        batch = self._fetch(offset)
        if batch or (end := self._end()) == offset:
            return batch
        what = f"topic {self._topic!r} partition {self._partition}"
        if end > offset:
            if batch := self._fetch(offset):  # records came in the meantime
                return batch
            raise RecordsGoneError(f"{what} does not keep the record at offset {offset} any more")
        if offset and not self._fetch(offset - 1, max_bytes=1):
            raise SourceChangedError(
                f"{what} does not reach to offset {offset} any more: it was made again, or its "
                "broker keeps records in memory and was restarted"
            )
        return batch

    def _beginning(self) -> int:
        """Return the offset of the first record that is kept: below it a broker sends nothing."""
        if self._fetch(0, max_bytes=1):
            return 0
        places = range(self._end())
        return bisect_left(places, True, key=lambda each: bool(self._fetch(each, max_bytes=1)))

    def _fetch(self, offset: int, max_bytes: int = 1024 * 1024) -> RustlogBatch:
        partition = self._partition
        return self._client.fetch(self._topic, offset, partition=partition, max_bytes=max_bytes)

    def _end(self) -> int:
        """Return where the partition ends; 0 where the broker does not say."""
        if not self._binary:
            return 0
        return self._client.describe_partition(self._topic, self._partition)


class _RustlogTarget(End):
    stores_once = False

    def __init__(self, url: str, writing: Writing, options: Mapping[str, Any]) -> None:
        parts = split(url, _DIALECT)
        self._client = _client(parts, options)
        super().__init__(self._client)
        self._topic, self._partition = parts.topic, picked(parts, writing.partition) or 0
        self._writing = writing
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._first = 0

    def __repr__(self) -> str:
        return f"<_RustlogTarget {self._topic!r}, {len(self._waiting)} records wait>"

    def _begin(self) -> None:
        if self._writing.create_topic:
            count = max(self._writing.partitions, 1 + self._partition)
            with suppress(TopicExists):
                self._client.create_topic(self._topic, partitions=count)

    def write(self, records: Sequence[Envelope]) -> None:
        for each in records:
            value = from_tlv(each.kind, each.value).value
            size = _PER_RECORD + len(value)
            if self._bytes + size > _REQUEST:
                self.flush()
            if not self._waiting:
                self._first = each.offset
            self._waiting.append(value)
            self._bytes += size

    def flush(self) -> None:
        if not self._waiting:
            return
        try:
            self._client.produce(self._topic, self._waiting, partition=self._partition)
        except RecordTooLarge as error:  # a record that is too large is sent alone
            text = f"the record at offset {self._first} of the source: {error}"
            raise RecordTooLarge(text) from error
        self._waiting.clear()
        self._bytes = 0


def partitions(url: str, options: Mapping[str, Any]) -> Sequence[int | None]:
    """Return which partitions of a topic are to be read; JSON does not tell how many there are."""
    parts = split(url, _DIALECT)
    with _client(parts, options) as client:
        if not _is_binary(parts):
            return [parts.partition]
        return chosen(parts, lambda: client.topics().get(parts.topic, 1))


def open_source(url: str, reading: ReadOptions, options: Mapping[str, Any]) -> Source:
    """Return a partition as a source; places are offsets in records."""
    return _RustlogSource(url, reading, options)


def open_target(url: str, writing: Writing, options: Mapping[str, Any]) -> Target:
    """Return a partition as a target; it takes neither keys nor times."""
    return _RustlogTarget(url, writing, options)
