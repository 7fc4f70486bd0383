"""The golden servers' own idea of Fluvio's bytes, written without a look at the kit's."""

import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from lance_conformance.server.golden.codec import castagnoli

T = TypeVar("T")


class Malformed(Exception):  # noqa: N818 - a way out of a handler, not an error of the server
    """A request that cannot be read."""


class Cursor:
    """Takes one value after the other from a message.

    Args:
        data: The message.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def __repr__(self) -> str:
        return f"<Cursor {self.at}/{len(self.data)}>"

    @property
    def spent(self) -> bool:
        """Whether everything was taken."""
        return self.at == len(self.data)

    def take(self, layout: str) -> Any:
        """One value in the notation of `struct`."""
        size = struct.calcsize(">" + layout)
        (value,) = struct.unpack(">" + layout, self.octets(size))
        return value

    def octets(self, size: int) -> bytes:
        """Some bytes."""
        end = self.at + size
        if size < 0:
            raise Malformed(f"a negative length: {size}")
        if end > len(self.data):
            raise Malformed(f"{size} bytes at {self.at} of {len(self.data)}")
        self.at, begin = end, self.at
        return self.data[begin:end]

    def words(self) -> str:
        """A text."""
        try:
            return self.octets(self.take("h")).decode()
        except UnicodeDecodeError as problem:
            raise Malformed(str(problem)) from problem

    def maybe(self, take: Callable[[], T]) -> T | None:
        """What may be missing."""
        there = self.take("B")
        if there > 1:
            raise Malformed(f"{there} is neither 0 nor 1")
        return take() if there else None

    def each(self, take: Callable[[], T]) -> list[T]:
        """What there are several of."""
        count = self.take("i")
        if not 0 <= count <= len(self.data):
            raise Malformed(f"{count} items")
        return [take() for _ in range(count)]

    def zigzag(self) -> int:
        """A number of the kind that records have."""
        number, shift = 0, 0
        while shift < 70:
            byte: int = self.take("B")
            number += (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return -(number // 2) - 1 if number % 2 else number // 2
        raise Malformed("a number without an end")


def words(value: str) -> bytes:
    """A text."""
    return struct.pack(">h", len(value.encode())) + value.encode()


def maybe(value: bytes | None) -> bytes:
    """What may be missing."""
    return b"\0" if value is None else b"\1" + value


def each(values: Iterable[bytes]) -> bytes:
    """What there are several of."""
    listed = list(values)
    return struct.pack(">i", len(listed)) + b"".join(listed)


def behind_length(data: bytes) -> bytes:
    """Bytes after their length."""
    return struct.pack(">i", len(data)) + data


def zigzag(number: int) -> bytes:
    """A number of the kind that records have."""
    rest = number * 2 if number >= 0 else -number * 2 - 1
    octets = []
    while rest >= 0x80:
        octets.append(rest % 0x80 + 0x80)
        rest //= 0x80
    return bytes([*octets, rest])


class Entry(NamedTuple):
    """One record of a partition."""

    key: bytes | None
    value: bytes
    time: int


class Packed(NamedTuple):
    """A batch as it came."""

    crc: int
    covered: bytes
    attributes: int
    last: int
    first_time: int
    records: bytes


HEAD = struct.Struct(">hiqqqhi")


def unpack_batch(cursor: Cursor) -> Packed:
    """The next batch."""
    cursor.octets(8)
    body = Cursor(cursor.octets(cursor.take("i")))
    body.octets(4)
    if body.take("b") != 2:
        raise Malformed("not the second layout of batches")
    crc = body.take("I")
    covered = body.data[body.at :]
    if len(covered) < HEAD.size:
        raise Malformed("a batch shorter than its header")
    attributes, last, first_time, *_ = HEAD.unpack_from(covered)
    return Packed(crc, covered, attributes, last, first_time, covered[HEAD.size :])


def unpack_entries(raw: bytes, first_time: int) -> list[Entry]:
    """The records of a batch, decompressed."""
    cursor = Cursor(raw)
    found = cursor.each(lambda: _unpack_entry(cursor, first_time))
    if not cursor.spent:
        raise Malformed("bytes after the last record")
    return found


def _unpack_entry(cursor: Cursor, first_time: int) -> Entry:
    body = Cursor(cursor.octets(cursor.zigzag()))
    body.octets(1)
    time = first_time + body.zigzag()
    body.zigzag()
    key = body.maybe(lambda: body.octets(body.zigzag()))
    value = body.octets(body.zigzag())
    if body.zigzag() or not body.spent:
        raise Malformed("a record with headers")
    return Entry(key, value, time)


def pack_entry(entry: Entry, number: int, first_time: int) -> bytes:
    """A record after its length."""
    key = None if entry.key is None else zigzag(len(entry.key)) + entry.key
    body = b"\0" + zigzag(entry.time - first_time) + zigzag(number) + maybe(key)
    body += zigzag(len(entry.value)) + entry.value + b"\0"
    return zigzag(len(body)) + body


def pack_batch(base: int, last: int, times: tuple[int, int], records: bytes, crc: int = 0) -> bytes:
    """A batch around its records.

    Args:
        base: Offset of the first record.
        last: Number of records less 1.
        times: The first time and the highest.
        records: The records after their count.
        crc: Bits of the checksum to turn.
    """
    covered = HEAD.pack(0, last, *times, -1, -1, -1) + records
    head = struct.pack(">qiibI", base, 9 + len(covered), -1, 2, castagnoli(covered) ^ crc)
    return head + covered
