"""Codecs for numbers in composed messages; see `lance_spec.ir.shapes`."""

import struct
from enum import IntEnum
from typing import Final, Generic, TypeVar

from lance_spec.messages._cursor import Codec, Sink, Source

T = TypeVar("T")
E = TypeVar("E", bound=IntEnum)

_MAX_GROUPS: Final = 10


class Number:
    """An integer of fixed size; see `lance_spec.ir.shapes.Number`."""

    __slots__ = ("_size", "_struct", "_unpack_from", "limits")

    def __init__(self, form: str) -> None:
        self._struct = struct.Struct(form)
        self._unpack_from = self._struct.unpack_from
        self._size = self._struct.size
        bits = 8 * self._struct.size
        signed = form[-1].islower()
        self.limits = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)

    def __repr__(self) -> str:
        return f"Number({self._struct.format!r})"

    def read(self, source: Source) -> int:
        """Read an integer."""
        try:
            value: int = self._unpack_from(source.data, source.place)[0]
        except struct.error:
            raise source.short(self._size) from None
        source.place += self._size
        return value

    def write(self, sink: Sink, value: int) -> None:
        """Write an integer that fits."""
        try:
            sink.data += self._struct.pack(value)
        except struct.error:
            low, high = self.limits
            raise sink.misfit(f"an integer from {low} to {high}", value) from None


class Varint:
    """An integer in groups of seven bits; see `lance_spec.ir.shapes.Varint`."""

    __slots__ = ("limits", "zigzag")

    def __init__(self, *, zigzag: bool) -> None:
        self.zigzag = zigzag
        self.limits = (-(2**63), 2**63 - 1) if zigzag else (0, 2**64 - 1)

    def __repr__(self) -> str:
        return f"Varint(zigzag={self.zigzag})"

    def read(self, source: Source) -> int:
        """Read an integer of at most 64 bits in at most ten bytes."""
        try:
            value = source.data[source.place]
        except IndexError:
            raise source.short(1) from None
        if value < 0x80:  # most are this small
            source.place += 1
        else:
            value = _groups(source)
        return (value >> 1) ^ -(value & 1) if self.zigzag else value

    def write(self, sink: Sink, value: int) -> None:
        """Write an integer in as few bytes as it needs."""
        low, high = self.limits
        if not _fits(value, low, high):
            raise sink.misfit(f"an integer from {low} to {high}", value)
        left, data = ((value << 1) ^ (value >> 63)) if self.zigzag else value, sink.data
        while left >= 0x80:
            data.append(left & 0x7F | 0x80)
            left >>= 7
        data.append(left)


U8, I8 = Number(">B"), Number(">b")
U16, I16 = Number(">H"), Number(">h")
U32, I32 = Number(">I"), Number(">i")
U64, I64 = Number(">Q"), Number(">q")
U16LE, I16LE = Number("<H"), Number("<h")
U32LE, I32LE = Number("<I"), Number("<i")
U64LE, I64LE = Number("<Q"), Number("<q")
ZIGZAG, LEB128 = Varint(zigzag=True), Varint(zigzag=False)


class Within:
    """An integer within limits."""

    __slots__ = ("codec", "high", "low")

    def __init__(self, codec: Codec[int], low: int, high: int) -> None:
        self.codec, self.low, self.high = codec, low, high

    def read(self, source: Source) -> int:
        """Read an integer within the limits."""
        start, value = source.place, self.codec.read(source)
        if not self.low <= value <= self.high:
            raise source.fault(f"{self.low} to {self.high}", str(value), start)
        return value

    def write(self, sink: Sink, value: int) -> None:
        """Write an integer within the limits."""
        if not _fits(value, self.low, self.high):
            raise sink.misfit(f"an integer from {self.low} to {self.high}", value)
        self.codec.write(sink, value)


class Truth:
    """A byte that is 0 or 1."""

    def read(self, source: Source) -> bool:
        """Read a truth value."""
        value = source.carve(1)[0]
        if value > 1:
            raise source.fault("0 or 1", str(value), source.place - 1)
        return bool(value)

    def write(self, sink: Sink, value: bool) -> None:
        """Write a truth value."""
        if not _fits(value, 0, 1):
            raise sink.misfit("True or False", value)
        sink.data.append(value)


BOOL = Truth()


class Named(Generic[E]):
    """An integer that must be a value of an enumeration."""

    __slots__ = ("codec", "names")

    def __init__(self, codec: Codec[int], names: type[E]) -> None:
        self.codec, self.names = codec, names

    def read(self, source: Source) -> E:
        """Read a value of the enumeration."""
        start, value = source.place, self.codec.read(source)
        try:
            return self.names(value)
        except ValueError:
            raise source.fault(f"a value of {self.names.__name__}", str(value), start) from None

    def write(self, sink: Sink, value: E) -> None:
        """Write a value of the enumeration."""
        try:
            self.codec.write(sink, self.names(value))
        except ValueError:
            raise sink.misfit(f"a value of {self.names.__name__}", value) from None


class Exactly(Generic[T]):
    """The one value that a field may have."""

    __slots__ = ("codec", "value")

    def __init__(self, codec: Codec[T], value: T) -> None:
        self.codec, self.value = codec, value

    def read(self, source: Source) -> T:
        """Read the value."""
        start, value = source.place, self.codec.read(source)
        if value != self.value:
            raise source.fault(repr(self.value), repr(value), start)
        return value

    def write(self, sink: Sink, value: T) -> None:
        """Write the value, whatever is given."""
        del value
        self.codec.write(sink, self.value)


def _fits(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and low <= value <= high


def _groups(source: Source) -> int:
    """Read an integer of several groups of seven bits."""
    value, start = 0, source.place
    for group in range(_MAX_GROUPS):
        byte = source.carve(1)[0]
        value |= (byte & 0x7F) << 7 * group
        if byte < 0x80:
            break
    else:
        raise source.fault("an integer of at most 10 bytes", "an eleventh", start)
    if value >= 2**64:
        raise source.fault("an integer of at most 64 bits", hex(value), start)
    return value
