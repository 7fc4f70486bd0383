"""Fluvio's batches and the records in them: checksum, compression, and the records' fast path.

`lance_spec.messages.fluvio` describes the same bytes; the loops here read and write many records
a hundred times faster, and a test holds the two together.
"""

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

import lz4.frame

from lance_spec.errors import DecodeError, EncodeError
from lance_spec.messages.fluvio import Batch

NO_TIMESTAMP: Final = -1
"""The time of a record that has none."""
MAX_DELTA: Final = (1 << 31) - 1
"""Most milliseconds between the first record of a batch and another: published programs write
longer ones wrong (FLV-01)."""
_COMPRESSION: Final = 0x07
_COUNT: Final = Struct(">i")
_LENGTH_END: Final = 12
"""Bytes of a batch up to the end of its length."""
_MIN_RECORD: Final = 7
"""Bytes of the smallest record with its length."""
_FIRST_GUESS: Final = 64 * 1024


class Compression(IntEnum):
    """How the records of a batch are compressed: the lowest bits of its attributes."""

    NONE = 0
    """Not at all."""
    GZIP = 1
    """As one gzip member."""
    SNAPPY = 2
    """In Snappy's framing format."""
    LZ4 = 3
    """In LZ4's frame format."""
    ZSTD = 4
    """As one Zstandard frame."""


class FluvioRecord(NamedTuple):
    """One record of a batch.

    Attributes:
        value: its value.
        key: its key, or None.
        timestamp_ms: milliseconds since the Unix epoch, or `NO_TIMESTAMP`.
        offset_delta: its place in the batch, from 0; set when a batch is read.
    """

    value: bytes
    key: bytes | None = None
    timestamp_ms: int = NO_TIMESTAMP
    offset_delta: int = 0


class DecompressionLimitError(ValueError):
    """The records of a batch take more room than they may."""


# Reading ---------------------------------------------------------------------------------------


def whole_batches(data: bytes) -> tuple[list[Batch], int]:
    """Return the whole batches that bytes begin with: published servers may cut the last one.

    Args:
        data: batches, one after another.

    Returns:
        The batches, and how many bytes the first of those that are not whole takes, or how many
        tell that; 0 when all are whole.

    Raises:
        DecodeError: a batch is not valid, or says that it is shorter than its header.
    """
    found: list[Batch] = []
    place = 0
    while place < len(data):
        if len(data) - place < _LENGTH_END:
            return found, _LENGTH_END
        size = _LENGTH_END + int(_COUNT.unpack_from(data, place + _LENGTH_END - _COUNT.size)[0])
        if size < Batch.MIN_SIZE:
            expected = f"{Batch.MIN_SIZE - _LENGTH_END} or more"
            raise DecodeError("Batch", "batch_len", place + 8, expected, f"{size - _LENGTH_END}")
        if place + size > len(data):
            return found, size
        found.append(Batch.decode(data[place : place + size]))
        place += size
    return found, 0


def open_batch(
    batch: Batch, *, limit: int, check_crc: bool = True, exact: bool = True
) -> list[FluvioRecord]:
    """Return the records of a batch; see `records_of`."""
    return list(records_of(batch, limit=limit, check_crc=check_crc, exact=exact))


def records_of(
    batch: Batch, *, limit: int, check_crc: bool = True, exact: bool = True
) -> Iterator[FluvioRecord]:
    """Yield the records of a batch, one at a time: very many small ones take much memory.

    Args:
        batch: the batch.
        limit: most bytes that its records may take, decompressed.
        check_crc: whether to compare the checksum; Fluvio's own programs do not.
        exact: whether there must be as many records as the header says; servers may have
            filtered some.

    Raises:
        DecodeError: the checksum is wrong, or the records are not what the header says.
        DecompressionLimitError: they take more than ``limit`` bytes.
    """
    raw, count = counted(batch, limit=limit, check_crc=check_crc, exact=exact)
    yield from each_record(raw, count, batch.first_timestamp)


def counted(
    batch: Batch, *, limit: int, check_crc: bool = True, exact: bool = True
) -> tuple[bytes, int]:
    """Return the records of a batch as they stand after their count, and how many they are.

    Raises:
        DecodeError: as `records_of`, apart from the records themselves.
        DecompressionLimitError: they take more than ``limit`` bytes.
    """
    if check_crc and not batch.crc_ok():
        right = f"{batch.with_crc().crc:#010x}, the CRC32C of what follows"
        raise DecodeError("Batch", "crc", 17, right, f"{batch.crc:#010x}")
    raw = decompressed(batch, limit)
    count = _count(raw)
    if exact and count != batch.last_offset_delta + 1:
        expected = f"{batch.last_offset_delta + 1}, as last_offset_delta says"
        raise DecodeError("Records", "records", 0, expected, f"{count}")
    return raw, count


def decompressed(batch: Batch, limit: int) -> bytes:
    """Return the records of a batch after their count, as `records_of` reads them.

    Raises:
        DecodeError: they are not compressed as the header says.
        DecompressionLimitError: they take more than ``limit`` bytes.
        ModuleNotFoundError: the package for this compression is missing.
    """
    kind = batch.attributes & _COMPRESSION
    if kind not in _OPENERS:
        raise DecodeError("Batch", "attributes", 21, "compression 0 to 4", f"{kind}")
    if kind == Compression.NONE and len(batch.records) > limit:
        raise DecompressionLimitError(f"the records take more than {limit} bytes")
    return _OPENERS[kind](batch.records, limit)


def _count(raw: bytes) -> int:
    if len(raw) < _COUNT.size:
        raise DecodeError("Records", "records", 0, "a count of 4 bytes", f"{len(raw)} bytes")
    count: int = _COUNT.unpack_from(raw)[0]
    most = (len(raw) - _COUNT.size) // _MIN_RECORD
    if not 0 <= count <= most:
        raise DecodeError("Records", "records", 0, f"a count of at most {most}", f"{count}")
    return count


def read_records(raw: bytes, count: int, first_timestamp: int) -> list[FluvioRecord]:
    """Return uncompressed records, which stand after their count.

    Raises:
        DecodeError: they are not such records; it names the offset of the one at fault.
    """
    return list(each_record(raw, count, first_timestamp))


def each_record(raw: bytes, count: int, first_timestamp: int) -> Iterator[FluvioRecord]:
    """Yield uncompressed records, as `read_records` returns them."""
    place = _COUNT.size
    for index in range(count):
        try:
            record, following = _read_record(raw, place, first_timestamp)
        except IndexError:
            raise _fault(index, place, "its bytes end before it does") from None
        except ValueError as error:
            raise _fault(index, place, str(error)) from None
        yield record
        place = following
    if place != len(raw):
        raise _fault(count, place, f"{len(raw) - place} bytes follow the last record")


def _read_record(raw: bytes, place: int, first_timestamp: int) -> tuple[FluvioRecord, int]:
    """Return the record at a place, and where the next one begins."""
    size, place = _varint(raw, place)
    end = place + size
    delta, place = _varint(raw, place + 1)
    offset_delta, place = _varint(raw, place)
    key: bytes | None = None
    if (has_key := raw[place]) == 1:
        key, place = _octets(raw, place + 1)
    elif has_key == 0:
        place += 1
    else:
        raise ValueError(f"whether it has a key: expected 0 or 1, got {has_key}")
    value, place = _octets(raw, place)
    if raw[place] != 0:
        raise ValueError(f"headers: expected 0, got {raw[place]}")
    if place + 1 != end:
        raise ValueError(f"it says it ends at byte {end}, and ends at {place + 1}")
    time = NO_TIMESTAMP if first_timestamp == NO_TIMESTAMP else first_timestamp + delta
    return FluvioRecord(value, key, time, offset_delta), end


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    byte = raw[place]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), place + 1
    number, shift = byte & 0x7F, 7
    while shift < 70:
        place += 1
        byte = raw[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), place + 1
        shift += 7
    raise ValueError("a number of more than 10 bytes")


def _octets(raw: bytes, place: int) -> tuple[bytes, int]:
    size, place = _varint(raw, place)
    end = place + size
    if size < 0 or end > len(raw):
        raise ValueError(f"a length of {size} with {len(raw) - place} bytes left")
    return raw[place:end], end


def _fault(index: int, offset: int, problem: str) -> DecodeError:
    return DecodeError("Records", f"records[{index}]", offset, "a whole record", problem)


# Writing ---------------------------------------------------------------------------------------


def pack_batches(
    records: Sequence[FluvioRecord], base_offset: int = 0, compression: int = Compression.NONE
) -> Iterator[Batch]:
    """Yield records as batches: as few as their times allow.

    Args:
        records: the records; their `offset_delta` does not matter.
        base_offset: offset of the first.
        compression: how to compress each batch.

    Raises:
        EncodeError: a record does not fit.
        ModuleNotFoundError: the package for this compression is missing.
    """
    first = 0
    for behind in _cuts(records):
        yield _pack_batch(records[first:behind], base_offset + first, compression)
        first = behind


def _cuts(records: Sequence[FluvioRecord]) -> Iterator[int]:
    """Yield where a batch must end: its times are all there or all missing, and near each other."""
    if not records:
        return
    begun = records[0].timestamp_ms
    for place, record in enumerate(records):
        time = record.timestamp_ms
        if time != begun and (
            NO_TIMESTAMP in {time, begun} or not -MAX_DELTA <= time - begun <= MAX_DELTA
        ):
            yield place
            begun = time
    yield len(records)


def _pack_batch(records: Sequence[FluvioRecord], base_offset: int, compression: int) -> Batch:
    first = records[0].timestamp_ms
    raw = _COUNT.pack(len(records)) + b"".join(_written(records, first))
    if compression not in _CLOSERS:
        raise EncodeError("Batch", "attributes", "compression 0 to 4", str(compression))
    return Batch(
        base_offset=base_offset,
        partition_leader_epoch=-1,
        attributes=compression,
        last_offset_delta=len(records) - 1,
        first_timestamp=first,
        max_time_stamp=max(record.timestamp_ms for record in records),
        producer_id=-1,
        producer_epoch=-1,
        first_sequence=-1,
        records=_CLOSERS[compression](raw),
    ).with_crc()


def _written(records: Iterable[FluvioRecord], first: int) -> Iterator[bytes]:
    for place, (value, key, time, _) in enumerate(records):
        head = b"\0" + _zigzag(time - first) + _zigzag(place)
        head += b"\0" if key is None else b"\1" + _zigzag(len(key)) + key
        size = _zigzag(len(value))
        yield _zigzag(len(head) + len(size) + len(value) + 1)
        yield head
        yield size
        yield value
        yield b"\0"


@lru_cache(maxsize=65536)
def _zigzag(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


# Compression -----------------------------------------------------------------------------------


def _open_gzip(data: bytes, limit: int) -> bytes:
    opener = zlib.decompressobj(wbits=31)
    try:
        raw = opener.decompress(data, limit + 1)
    except zlib.error as error:
        raise _unreadable("gzip", str(error)) from None
    return _whole("gzip", raw, limit, ended=opener.eof, rest=opener.unused_data)


def _open_lz4(data: bytes, limit: int) -> bytes:
    opener = lz4.frame.LZ4FrameDecompressor()
    try:
        raw = opener.decompress(data, max_length=limit + 1)
    except RuntimeError as error:
        raise _unreadable("LZ4", str(error)) from None
    return _whole("LZ4", raw, limit, ended=opener.eof, rest=opener.unused_data or b"")


def _whole(kind: str, raw: bytes, limit: int, *, ended: bool, rest: bytes) -> bytes:
    if len(raw) > limit:
        raise DecompressionLimitError(f"the records take more than {limit} bytes")
    if not ended:
        raise _unreadable(kind, "it is cut short")
    if rest:
        raise _unreadable(kind, f"{len(rest)} bytes follow it")
    return raw


def _open_with_cramjam(name: str, data: bytes, limit: int) -> bytes:
    """Decompress into a room of a fixed size: what does not fit was not an honest batch."""
    import cramjam  # noqa: PLC0415 - optional

    module = getattr(cramjam, name)
    room = min(limit, max(_FIRST_GUESS, 16 * len(data)))
    while True:
        found = bytearray(room)
        try:
            size: int = module.decompress_into(data, found)
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error) or str(error).startswith("failed to fill"):
                raise _unreadable(name, str(error)) from None
            if room >= limit:
                raise DecompressionLimitError(f"the records take more than {limit} bytes") from None
            room = limit
            continue
        return bytes(memoryview(found)[:size])


def _close_with_cramjam(name: str, data: bytes) -> bytes:
    import cramjam  # noqa: PLC0415 - optional

    return bytes(getattr(cramjam, name).compress(data))


def _unreadable(kind: str, problem: str) -> DecodeError:
    return DecodeError("Batch", "records", 57, f"records compressed with {kind}", problem)


_OPENERS: Final[dict[int, Callable[[bytes, int], bytes]]] = {
    Compression.NONE: lambda data, _: data,
    Compression.GZIP: _open_gzip,
    Compression.SNAPPY: lambda data, limit: _open_with_cramjam("snappy", data, limit),
    Compression.LZ4: _open_lz4,
    Compression.ZSTD: lambda data, limit: _open_with_cramjam("zstd", data, limit),
}
_CLOSERS: Final[dict[int, Callable[[bytes], bytes]]] = {
    Compression.NONE: lambda data: data,
    Compression.GZIP: lambda data: gzip.compress(data, 6, mtime=0),
    Compression.SNAPPY: lambda data: _close_with_cramjam("snappy", data),
    Compression.LZ4: lz4.frame.compress,
    Compression.ZSTD: lambda data: _close_with_cramjam("zstd", data),
}
