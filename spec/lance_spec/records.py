"""TLV records: the fast path of encoding, decoding and checking a chain (LWP section 8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import Final

from lance_spec.checksum import Buffer
from lance_spec.enums import RecordType
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.limits import MAX_RECORD_VALUE, RECORD_HEADER_SIZE

_RECORD_HEADER: Final = Struct("<BL")


@dataclass(frozen=True, slots=True)
class RecordFault:
    """Where a chain of records stops being one.

    Attributes:
        index: how many whole records stand before it.
        offset: where the faulty record begins, in bytes from the start of the data.
        needed: total size in bytes of the record that is cut short; at least the five bytes
            of a record header when not even that is there. 0 when the record can never be
            whole because its length is over the limit.
        reason: what is wrong, in words.
    """

    index: int
    offset: int
    needed: int
    reason: str

    @property
    def truncated(self) -> bool:
        """Whether more bytes could complete the record."""
        return self.needed > 0


@dataclass(slots=True)
class RecordScan:
    """What a chain of records holds.

    Attributes:
        count: number of whole records.
        end: offset just behind the last whole record, in bytes.
        fault: why the chain does not go on to the end of the data, or None when it does.
    """

    count: int
    end: int
    fault: RecordFault | None


@lru_cache(maxsize=4096)
def _header(record_type: int, length: int) -> bytes:
    if length > MAX_RECORD_VALUE:
        raise EncodeError("Record", "value", f"at most {MAX_RECORD_VALUE} bytes", f"{length} bytes")
    if not 0 <= record_type <= 0xFF:
        raise EncodeError("Record", "type", "0x00 to 0xff", hex(record_type))
    return _RECORD_HEADER.pack(record_type, length)


def encode_record(value: Buffer, record_type: int = RecordType.RAW_DATA) -> bytes:
    """Return one record (LWP section 8.1).

    Args:
        value: up to 16 MiB.
        record_type: a `RecordType` or an application's type from 0x80 to 0xFE.

    Raises:
        EncodeError: when the value is too large or the type is no byte.
    """
    return b"".join((_header(record_type, len(value)), value))


def encode_records(values: Sequence[Buffer], record_type: int = RecordType.RAW_DATA) -> bytes:
    """Return the concatenated records of one type (LWP section 8.4).

    Args:
        values: the values, each up to 16 MiB.
        record_type: the type of all of them.

    Raises:
        EncodeError: when a value is too large or the type is no byte.
    """
    parts: list[Buffer] = [b""] * (2 * len(values))
    parts[::2] = [_header(record_type, len(value)) for value in values]
    parts[1::2] = values
    return b"".join(parts)


def decode_records(data: Buffer) -> list[tuple[int, bytes]]:
    """Return every record of a chain as (type, value).

    Args:
        data: whole records, back to back.

    Raises:
        DecodeError: when the chain does not end exactly where the data does; it names the
            index and the offset of the record at fault.
    """
    found: list[tuple[int, bytes]] = []
    append, unpack_from = found.append, _RECORD_HEADER.unpack_from
    raw = data if isinstance(data, bytes) else bytes(data)
    position, end, last = 0, len(raw), len(raw) - RECORD_HEADER_SIZE
    while position <= last:
        record_type, length = unpack_from(raw, position)
        start = position + RECORD_HEADER_SIZE
        position = start + length
        if position > end or length > MAX_RECORD_VALUE:
            position = start - RECORD_HEADER_SIZE
            break
        append((record_type, raw[start:position]))
    if position != end:
        fault = _explain(raw, len(found), position)
        raise DecodeError(
            "Record", f"[{fault.index}]", fault.offset, "a whole record", fault.reason
        )
    return found


def scan_records(data: Buffer) -> RecordScan:
    """Walk a chain without taking the values out; never raises.

    Args:
        data: records back to back, perhaps cut short.
    """
    unpack_from = _RECORD_HEADER.unpack_from
    count, position, end = 0, 0, len(data)
    last = end - RECORD_HEADER_SIZE
    while position <= last:
        length = unpack_from(data, position)[1]
        following = position + RECORD_HEADER_SIZE + length
        if following > end or length > MAX_RECORD_VALUE:
            break
        position = following
        count += 1
    fault = None if position == end else _explain(data, count, position)
    return RecordScan(count, position, fault)


def _explain(data: Buffer, index: int, offset: int) -> RecordFault:
    have = len(data) - offset
    if have < RECORD_HEADER_SIZE:
        reason = f"{have} of the {RECORD_HEADER_SIZE} bytes of a record header"
        return RecordFault(index, offset, RECORD_HEADER_SIZE, reason)
    length = _RECORD_HEADER.unpack_from(data, offset)[1]
    if length > MAX_RECORD_VALUE:
        reason = f"a value of {length} bytes, over the limit of {MAX_RECORD_VALUE}"
        return RecordFault(index, offset, 0, reason)
    needed = RECORD_HEADER_SIZE + length
    return RecordFault(index, offset, needed, f"{have} of the {needed} bytes of a record")
