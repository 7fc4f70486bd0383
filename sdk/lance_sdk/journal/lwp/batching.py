"""Records into frames."""

from collections.abc import Iterable, Iterator
from typing import Final

from lance_sdk._api.arguments.record_arguments import as_bytes, check_null, check_type
from lance_sdk.errors import RecordTooLarge
from lance_spec.checksum import Buffer
from lance_spec.enums import RecordType
from lance_spec.limits import MAX_RECORD_VALUE, RECORD_HEADER_SIZE
from lance_spec.records import encode_record, encode_records

TARGET_BYTES: Final = 64 * 1024
"""Bytes of records at which a frame of `send_many` is full."""


def one_record(value: Buffer, record_type: int, limit: int) -> bytes:
    """Return one record as TLV.

    Args:
        value: its bytes.
        record_type: its type (LWP section 8.2).
        limit: most bytes of records in a frame.

    Raises:
        RecordTooLarge: it does not fit in a frame.
        UnsafeRecordType: there is no such type.
    """
    data = value if type(value) is bytes else as_bytes(value)
    check_type(record_type, None, allow_unsafe=False)
    _check(data, record_type, _most(limit))
    return encode_record(data, record_type)


def batches(values: Iterable[Buffer], record_type: int, limit: int) -> Iterator[tuple[int, bytes]]:
    """Yield (number of records, their TLV) for frames of a good size.

    Raises:
        RecordTooLarge: a record does not fit in a frame.
        UnsafeRecordType: there is no such type.
    """
    check_type(record_type, None, allow_unsafe=False)
    target, most = min(TARGET_BYTES, limit), _most(limit)
    null = record_type == RecordType.NULL
    waiting: list[bytes] = []
    size = 0
    for value in values:
        data = value if type(value) is bytes else as_bytes(value)
        length = len(data)
        if length > most or null:
            _check(data, record_type, most)
        size += RECORD_HEADER_SIZE + length
        if size > target and waiting:
            yield len(waiting), encode_records(waiting, record_type)
            waiting, size = [], RECORD_HEADER_SIZE + length
        waiting.append(data)
    if waiting:
        yield len(waiting), encode_records(waiting, record_type)


def _most(limit: int) -> int:
    """Return the most bytes of a record's value."""
    return min(limit - RECORD_HEADER_SIZE, MAX_RECORD_VALUE)


def _check(data: bytes, record_type: int, most: int) -> None:
    check_null(data, record_type)
    if len(data) > most:
        raise RecordTooLarge(
            f"record of {len(data)} bytes: a frame of this journal takes {most}; open it with "
            "larger segment_bytes (sf_max_segment_bytes) for larger records (SF-33)"
        )
