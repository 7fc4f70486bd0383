"""TLV records: the fast path of encoding, decoding and checking a chain (LWP section 8)."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from struct import Struct
from typing import Final

from lance_spec._native import accelerator
from lance_spec.checksum import Buffer
from lance_spec.enums import RecordType
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.limits import MAX_RECORD_VALUE, RECORD_HEADER_SIZE

_RECORD_HEADER: Final = Struct("<BL")
_MOST_PARTED: Final = 2**31 - 1


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
        end: offset just after the last whole record, in bytes.
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
        EncodeError: when the value is too large or the type is not a byte.
    """
    return b"".join((_header(record_type, len(value)), value))


def encode_records(values: Sequence[Buffer], record_type: int = RecordType.RAW_DATA) -> bytes:
    """Return the concatenated records of one type (LWP section 8.4).

    Args:
        values: the values, each up to 16 MiB.
        record_type: the type of all of them.

    Raises:
        EncodeError: when a value is too large or the type is not a byte.
    """
    joined: bytes | None = _join(values, record_type) if _join is not None else None
    if joined is not None:
        return joined
    lengths = list(map(len, values))
    headers = {length: _header(record_type, length) for length in set(lengths)}
    if len(headers) == 1:  # one length for all, as in many a topic: four times faster
        header = headers[lengths[0]]
        return header + header.join(values)
    parts: list[Buffer] = [b""] * (2 * len(values))
    parts[::2] = map(headers.__getitem__, lengths)
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
    found, end = _take(data)
    if end != len(data):
        raise _cut_short(data, len(found), end)
    return found


def scan_records(data: Buffer) -> RecordScan:
    """Walk a chain without taking the values out; never raises.

    Args:
        data: records back to back, perhaps cut short.
    """
    count, end = _walk(data)
    fault = None if end == len(data) else _explain(data, count, end)
    return RecordScan(count, end, fault)


def record_bounds(data: Buffer) -> bytes:
    """Return where each record of a chain begins, and where the last one ends.

    Args:
        data: whole records, back to back.

    Returns:
        An array of signed 64-bit numbers, as this machine has them; the first is 0.

    Raises:
        DecodeError: as for `decode_records`.
    """
    bounds, end = _bounds(data)
    if end != len(data):
        raise _cut_short(data, len(bounds) // 8 - 1, end)
    return bounds


def part_records(data: Buffer, target: bytearray | memoryview | None = None) -> tuple[bytes, bytes]:
    """Move the values of all records to the front of a buffer, back to back.

    Args:
        data: whole records, back to back.
        target: where the values go; at least as large. None writes to the data themselves.

    Returns:
        The type of each record, a byte each; and an array of signed 32-bit numbers, as this
        machine has them, which tell where each value begins now and where the last one ends.

    Raises:
        DecodeError: as for `decode_records`, or there are 2 GiB or more; nothing was moved.
        BufferError: what is to be written to cannot be.
        ValueError: the target is smaller than the data.
    """
    size = len(data)
    if size > _MOST_PARTED:
        raise DecodeError("Record", "", 0, f"at most {_MOST_PARTED} bytes at once", f"{size} bytes")
    parted: tuple[bytes, bytes] | None = _part(data, data if target is None else target)
    if parted is None:
        raise _cut_short(data, *_walk(data))
    return parted


def _part_in_python(data: Buffer, target: Buffer) -> tuple[bytes, bytes] | None:
    """Move the values, and return types and places; None where a record is not whole."""
    with memoryview(target) as view:
        if view.readonly:
            raise BufferError("the values of records can only be moved where they can be written")
        if len(view) < len(data):
            raise ValueError("the target is smaller than the data")
        found, end = _take_in_python(data)
        if end != len(data):
            return None
        values = [value for _, value in found]
        offsets = array("i", accumulate(map(len, values), initial=0))
        view[: offsets[-1]] = b"".join(values)
    return bytes([kind for kind, _ in found]), offsets.tobytes()


def _bounds_in_python(data: Buffer) -> tuple[bytes, int]:
    """Return the bounds of the whole records from the start on, and where they end."""
    unpack_from = _RECORD_HEADER.unpack_from
    found, position, end = array("q", [0]), 0, len(data)
    append, last = found.append, end - RECORD_HEADER_SIZE
    while position <= last:
        length = unpack_from(data, position)[1]
        following = position + RECORD_HEADER_SIZE + length
        if following > end or length > MAX_RECORD_VALUE:
            break
        position = following
        append(position)
    return found.tobytes(), position


def _take_in_python(data: Buffer) -> tuple[list[tuple[int, bytes]], int]:
    """Return the whole records from the start on, and where they end."""
    found: list[tuple[int, bytes]] = []
    append, unpack_from = found.append, _RECORD_HEADER.unpack_from
    raw = data if isinstance(data, bytes) else bytes(data)
    position, end, last = 0, len(raw), len(raw) - RECORD_HEADER_SIZE
    while position <= last:
        record_type, length = unpack_from(raw, position)
        start = position + RECORD_HEADER_SIZE
        following = start + length
        if following > end or length > MAX_RECORD_VALUE:
            break
        append((record_type, raw[start:following]))
        position = following
    return found, position


def _walk_in_python(data: Buffer) -> tuple[int, int]:
    """Return how many whole records there are from the start on, and where they end."""
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
    return count, position


_join: Final = accelerator.join_records if accelerator else None
_take: Final = accelerator.decode_records if accelerator else _take_in_python
_part: Final = accelerator.part_records if accelerator else _part_in_python
_bounds: Final = accelerator.record_bounds if accelerator else _bounds_in_python
_walk: Final = accelerator.scan_records if accelerator else _walk_in_python


def _cut_short(data: Buffer, index: int, offset: int) -> DecodeError:
    fault = _explain(data, index, offset)
    return DecodeError("Record", f"[{index}]", offset, "a whole record", fault.reason)


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
