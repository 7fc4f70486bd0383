"""The usual Produce request, read and answered at once: one uncompressed batch.

`lance_spec.messages.fluvio` describes the same bytes; here they are read ten times faster, and a
test holds the two together. Producers send such a request for each record that does not wait for
others.
"""

import struct
from functools import lru_cache
from typing import Final, NamedTuple

from lance_spec.checksum import CRC32C
from lance_spec.fluvio.apis import api
from lance_spec.messages.fluvio import (
    ErrorCode,
    Outcome,
    PartitionAppended,
    ProduceResponse,
    TopicAppended,
)

_PRODUCE: Final = 0
_FIRST: Final = 8
"""The version that ends with a list of SmartModules."""
_LAST: Final = api("spu", _PRODUCE).versions[1]
_MAGIC: Final = 2
_HEAD: Final = struct.Struct(">Hhih")  # key, version, correlation id, length of the client's id
_BODY: Final = struct.Struct(">Bhiih")  # no transaction, isolation, timeout, topics, name's length
_BATCH: Final = struct.Struct(">iIi8xi4xbIhiq22xi")
"""From the number of partitions to the number of records; what nobody reads is left out."""
_BEFORE: Final = 12
"""Bytes before the batch: the number of partitions, the partition, the length of its batches."""
_LENGTH: Final = 12
_CHECKED: Final = 21
_RECORDS: Final = 57
"""Bytes of a batch up to the end of its length, of its checksum, and of its header."""
_COUNT: Final = 4
"""Bytes of the number of records."""
_END: Final = bytes(4)
"""No SmartModules."""
_OFFSET: Final = struct.Struct(">q")
_BEFORE_OFFSET: Final = 16
"""Bytes of the response before the offset, without the topic's name."""


class SingleBatch(NamedTuple):
    """A Produce request with one batch for one partition.

    Attributes:
        correlation_id: number of the request.
        version: version of the request and its response.
        isolation: negative when it is to be answered after all replicas have the batch.
        timeout_ms: how long the server may wait, in milliseconds.
        topic: name of the topic.
        partition: number of the partition.
        first_timestamp: time of the first record, in milliseconds.
        record_count: how many records there are, one or more.
        records: the records after their count, uncompressed.
    """

    correlation_id: int
    version: int
    isolation: int
    timeout_ms: int
    topic: str
    partition: int
    first_timestamp: int
    record_count: int
    records: bytes


def single_batch(frame: bytes, *, check_crc: bool = True) -> SingleBatch | None:
    """Return a Produce request that has one uncompressed batch, or None if it is any other.

    Args:
        frame: a request without its length.
        check_crc: whether the batch's checksum must be right.
    """
    try:
        return _read(frame, check_crc)
    except (struct.error, UnicodeDecodeError):
        return None


def _read(frame: bytes, check_crc: bool) -> SingleBatch | None:
    key, version, number, size = _HEAD.unpack_from(frame)
    if key != _PRODUCE or not _FIRST <= version <= _LAST or size < 0:
        return None
    place = _HEAD.size + size
    frame[_HEAD.size : place].decode()
    transaction, isolation, timeout_ms, topics, size = _BODY.unpack_from(frame, place)
    if (transaction, topics) != (0, 1) or timeout_ms < 0 or size < 0:
        return None
    name = place + _BODY.size
    place = name + size
    partitions, partition, size, length, magic, crc, attributes, last, time, count = (
        _BATCH.unpack_from(frame, place)
    )
    if (partitions, magic, attributes, count) != (1, _MAGIC, 0, last + 1) or count < 1:
        return None
    begin = place + _BEFORE
    end = begin + size
    if size != _LENGTH + length or size < _RECORDS + _COUNT or frame[end:] != _END:
        return None
    if check_crc and crc != CRC32C(memoryview(frame)[begin + _CHECKED : end]):
        return None
    topic, records = frame[name:place].decode(), frame[begin + _RECORDS : end]
    return SingleBatch(
        number, version, isolation, timeout_ms, topic, partition, time, count, records
    )


def appended(asked: SingleBatch, base_offset: int) -> bytes:
    """Return the body of the response that says that a batch was stored.

    Args:
        asked: the request.
        base_offset: offset of the batch's first record.
    """
    head, tail = _around_offset(asked.topic, asked.partition, asked.version)
    return head + _OFFSET.pack(base_offset) + tail


@lru_cache(maxsize=256)
def _around_offset(topic: str, partition: int, version: int) -> tuple[bytes, bytes]:
    stored = PartitionAppended(
        partition=partition,
        outcome=Outcome(code=ErrorCode.NONE, detail=None),
        base_offset=0,
        log_append_time_ms=-1,
    )
    response = ProduceResponse(topics=[TopicAppended(name=topic, partitions=[stored])])
    body = response.encode(version)
    place = _BEFORE_OFFSET + len(topic.encode())
    return body[:place], body[place + _OFFSET.size :]
