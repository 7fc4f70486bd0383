"""Batches and the records in them (FLV-01; Fluvio reference, RecordBatch Structure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from lance_conformance.fluvio.wire.compression import Compression, close, open_
from lance_conformance.fluvio.wire.primitives import (
    Reader,
    UnreadableError,
    i16,
    i32,
    option,
    varint,
)
from lance_conformance.wire.crc import crc32c

NOW_MS = 1_706_918_400_123
"""The time of records that no case cares about."""
_HEAD = Struct(">qiib")
_LENGTH = Struct(">qi")
_LENGTH_END = 12
"""Base offset, length of the rest, leader epoch, magic; the checksum follows."""
_REST = Struct(">hiqqqhi")
"""What the checksum covers, up to the records."""
_BEHIND_LENGTH = 45


class Record(NamedTuple):
    """One record.

    Attributes:
        value: Its value.
        key: Its key, if it has one.
        time: Milliseconds since the Unix epoch.
    """

    value: bytes
    key: bytes | None = None
    time: int = NOW_MS


class StoredRecord(NamedTuple):
    """A record as a stream brought it."""

    offset: int
    record: Record


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as a server sent it, with its records.

    Attributes:
        base_offset: Offset of its first record.
        crc_right: Whether the checksum fits.
        last_offset_delta: Number of its records less 1.
        max_time: The highest time it claims.
        size: Bytes on the wire.
        records: Its records.
    """

    base_offset: int
    crc_right: bool
    last_offset_delta: int
    max_time: int
    size: int
    records: tuple[StoredRecord, ...]


def record_bytes(record: Record, number: int, first_time: int) -> bytes:
    """One record after its length.

    Args:
        record: The record.
        number: Its place in the batch.
        first_time: Time of the first record of the batch.
    """
    key = None if record.key is None else varint(len(record.key)) + record.key
    body = b"\0" + varint(record.time - first_time) + varint(number) + option(key)
    body += varint(len(record.value)) + record.value + varint(0)
    return varint(len(body)) + body


def raw_records(records: Sequence[Record]) -> bytes:
    """Uncompressed records after their count."""
    first = records[0].time
    return i32(len(records)) + b"".join(record_bytes(r, n, first) for n, r in enumerate(records))


def batch(records: Sequence[Record], compression: Compression = Compression.NONE) -> bytes:
    """A batch as published producers write it: no epochs, no sequence, a base offset to ignore."""
    raw = close(compression, raw_records(records))
    return batch_of(raw, records, attributes=compression)


def batch_of(
    raw: bytes, records: Sequence[Record], *, attributes: int = 0, last_delta: int | None = None
) -> bytes:
    """A batch around bytes that need not be right records; its checksum fits."""
    last = len(records) - 1 if last_delta is None else last_delta
    times = [record.time for record in records]
    rest = _REST.pack(attributes, last, times[0], max(times), -1, -1, -1) + raw
    head = _HEAD.pack(len(records) - 1, _BEHIND_LENGTH - _REST.size + len(rest), -1, 2)
    return head + crc32c(rest).to_bytes(4, "big") + rest


def with_wrong_crc(data: bytes) -> bytes:
    """A batch with one bit of its checksum turned."""
    return data[:17] + bytes([data[17] ^ 1]) + data[18:]


def read_batches(reader: Reader) -> tuple[list[Batch], int]:
    """The whole batches of a record set, and how many bytes the one takes that is cut, if any."""
    found: list[Batch] = []
    while reader.left:
        if reader.left < _LENGTH_END:
            return found, _LENGTH_END
        _, length = _LENGTH.unpack(reader.peek(_LENGTH_END))
        if length > reader.left - _LENGTH_END:
            return found, _LENGTH_END + length
        found.append(_read_batch(reader))
    return found, 0


def _read_batch(reader: Reader) -> Batch:
    base, length, _, magic = _HEAD.unpack(reader.take(_HEAD.size, "batch"))
    if magic != 2:
        reader.fault("magic", f"expected 2, got {magic}")
    crc = reader.natural(4, "crc")
    rest = reader.take(length - (_BEHIND_LENGTH - _REST.size), "batch_len")
    if len(rest) < _REST.size:
        reader.fault("batch_len", f"{length} is too short for a header")
    attributes, last, first_time, max_time, *_ = _REST.unpack_from(rest)
    raw = open_(attributes & 7, rest[_REST.size :])
    records = tuple(_read_records(Reader(raw), base, first_time))
    size = _HEAD.size + 4 + len(rest)
    return Batch(base, crc == crc32c(rest), last, max_time, size, records)


def _read_records(reader: Reader, base: int, first_time: int) -> list[StoredRecord]:
    found = reader.many(lambda: _read_record(reader, base, first_time), "record_count")
    reader.end()
    return found


def _read_record(reader: Reader, base: int, first_time: int) -> StoredRecord:
    body = Reader(reader.take(reader.varint("record_length"), "record_length"))
    body.number(1, "attributes")
    time = first_time + body.varint("timestamp_delta")
    offset = base + body.varint("offset_delta")
    key = body.option(lambda: body.take(body.varint("key"), "key"), "key")
    value = body.take(body.varint("value"), "value")
    if body.varint("headers") != 0 or body.left:
        raise UnreadableError("field:headers", "a record does not end in a header count of 0")
    return StoredRecord(offset, Record(value, key, time))


def with_schema(data: bytes) -> bytes:
    """A batch that carries the id of a schema, which producers leave out; its checksum fits."""
    rest = i16(0x10) + data[23:57] + i32(1) + data[57:]
    head = data[:8] + i32(9 + len(rest)) + data[12:17]
    return head + crc32c(rest).to_bytes(4, "big") + rest
