"""TLV records (LWP section 8)."""

import struct
from collections.abc import Iterable

RECORD_HEADER = 5
RAW_DATA = 0x01

_TYPE_LENGTH = struct.Struct("<BI")


def record(value: bytes, record_type: int = RAW_DATA) -> bytes:
    """One record (section 8.1).

    Args:
        value: The record's value.
        record_type: A type of section 8.2.
    """
    return _TYPE_LENGTH.pack(record_type, len(value)) + value


def records(values: Iterable[bytes]) -> bytes:
    """Raw records packed one after the other (sections 8.4 and 8.8)."""
    return b"".join(record(value) for value in values)


def boundaries(data: bytes) -> list[int]:
    """The offsets in ``data`` at which a record starts or the last whole one ends."""
    ends = [0]
    while len(data) - ends[-1] >= RECORD_HEADER:
        _, length = _TYPE_LENGTH.unpack_from(data, ends[-1])
        end = ends[-1] + RECORD_HEADER + length
        if end > len(data):
            break
        ends.append(end)
    return ends
