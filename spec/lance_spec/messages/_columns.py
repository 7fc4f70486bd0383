"""Codecs for tables that are sent column by column; see `lance_spec.ir.shapes`.

The cursors carry how many rows a table has, and how many of them the column at hand has values
for. Null bits are counted as one number: nothing here takes time for rows that are not there.
"""

import struct
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Final, Generic, TypeVar

from lance_spec.checksum import Buffer
from lance_spec.messages._containers import Raw
from lance_spec.messages._cursor import Codec, Sink, Source
from lance_spec.qwp import gorilla

T = TypeVar("T")

_OFFSET: Final = 4


class Nulls:
    """A byte that says, by not being 0, that one bit for each row follows; written as 0 or 1."""

    def read(self, source: Source) -> bytes | None:
        """Read the null bits, or None where every row has a value."""
        (flag,) = source.carve(1)
        bits = bytes(source.carve((source.rows + 7) // 8)) if flag else None
        source.present = _present(source.rows, bits)
        return bits

    def write(self, sink: Sink, value: Buffer | None) -> None:
        """Write null bits, when there are as many as rows."""
        if value is not None and len(value) != (sink.rows + 7) // 8:
            raise sink.misfit(f"{(sink.rows + 7) // 8} bytes for {sink.rows} rows", value)
        sink.data.append(value is not None)
        sink.data += value or b""
        sink.present = _present(sink.rows, value)


NULLS: Final = Nulls()


class PerValue:
    """The same number of bytes for each row that is not null."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def read(self, source: Source) -> bytes:
        """Read the values."""
        return bytes(source.carve(source.present * self.size))

    def write(self, sink: Sink, value: Buffer) -> None:
        """Write the values, when there are as many as rows that are not null."""
        Raw(sink.present * self.size).write(sink, value)


class Timestamps:
    """Times of 8 bytes, or packed ones, for each row that is not null."""

    def of(self, encoding: int) -> Codec[bytes]:
        """Return the codec for plain values (0) or packed ones."""
        return _PACKED if encoding else _PLAIN


class _Packed:
    def read(self, source: Source) -> bytes:
        """Read the values as they are packed."""
        if source.present - gorilla.SEEDS > 8 * source.left:
            raise source.fault(f"{source.present} times", f"{source.left} bytes")
        size = gorilla.size_of(source.data[source.place :], source.present)
        if size is None:
            raise source.fault(f"{source.present} packed times", f"{source.left} bytes")
        return bytes(source.carve(size))

    def write(self, sink: Sink, value: Buffer) -> None:
        """Write packed values, when there are as many as rows that are not null."""
        if gorilla.size_of(value, sink.present) != len(value):
            raise sink.misfit(f"{sink.present} packed times", value)
        sink.data += value


_PACKED: Final = _Packed()
_PLAIN: Final = PerValue(8)
TIMES: Final = Timestamps()


class PerBits:
    """Whole bytes for each row that is not null, as many as a number of bits needs."""

    def of(self, bits: int) -> Codec[bytes]:
        """Return the codec for values of so many bits."""
        return PerValue((bits + 7) // 8)


class BitPerValue:
    """One bit for each row that is not null."""

    def read(self, source: Source) -> bytes:
        """Read the bits."""
        return bytes(source.carve((source.present + 7) // 8))

    def write(self, sink: Sink, value: Buffer) -> None:
        """Write the bits, when there are as many as rows that are not null."""
        Raw((sink.present + 7) // 8).write(sink, value)


BITS: Final = BitPerValue()


class Each(Generic[T]):
    """One value for each row that is not null.

    Attributes:
        item: how one value is written.
        least: fewest bytes that one value takes; it bounds their number.
    """

    __slots__ = ("item", "least")

    def __init__(self, item: Codec[T], least: int) -> None:
        self.item, self.least = item, least

    def read(self, source: Source) -> list[T]:
        """Read the values."""
        count, message, field = source.present, source.message, source.field
        if count * self.least > source.left:
            raise source.fault(f"{count} values", f"{source.left} bytes")
        return [source.take(message, field, self.item) for _ in range(count)]

    def write(self, sink: Sink, value: Sequence[T]) -> None:
        """Write the values, when there are as many as rows that are not null."""
        _expect(sink, value, sink.present)
        message, field = sink.message, sink.field
        for each in value:
            sink.put(message, field, self.item, each)


class Slices:
    """Bytes of any length for each row that is not null: their offsets, then all of them."""

    def read(self, source: Source) -> list[bytes]:
        """Read the values."""
        start = source.place
        raw = source.carve(_OFFSET * (source.present + 1))
        offsets = struct.unpack(f"<{source.present + 1}I", raw)
        if offsets[0] or any(after < before for before, after in pairwise(offsets)):
            raise source.fault("offsets from 0 that do not fall", "others", start)
        joined = source.carve(offsets[-1])
        return [bytes(joined[before:after]) for before, after in pairwise(offsets)]

    def write(self, sink: Sink, value: Sequence[Buffer]) -> None:
        """Write the values, when there are as many as rows that are not null."""
        _expect(sink, value, sink.present)
        if not all(isinstance(each, bytes | bytearray | memoryview) for each in value):
            raise sink.misfit("a list of bytes", value)
        offsets = list(accumulate(map(len, value), initial=0))
        if offsets[-1] >= 2**32:
            raise sink.misfit("less than 4 GiB together", f"{offsets[-1]} bytes")
        sink.data += struct.pack(f"<{len(offsets)}I", *offsets)
        for each in value:
            sink.data += each


SLICES: Final = Slices()


class Elements:
    """The elements of an array whose dimensions stand before."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def of(self, dims: Sequence[int]) -> Codec[bytes]:
        """Return the codec for an array of these dimensions."""
        return _Array(dims, self.size)


class _Array:
    __slots__ = ("dims", "size")

    def __init__(self, dims: Sequence[int], size: int) -> None:
        self.dims, self.size = dims, size

    def read(self, source: Source) -> bytes:
        """Read the elements."""
        if any(each < 0 for each in self.dims):
            raise source.fault("dimensions of 0 or more", str(list(self.dims)))
        return bytes(source.carve(prod(self.dims) * self.size))

    def write(self, sink: Sink, value: Buffer) -> None:
        """Write the elements, when there are as many as the dimensions say."""
        if any(each < 0 for each in self.dims):
            raise sink.misfit("dimensions of 0 or more", list(self.dims))
        Raw(prod(self.dims) * self.size).write(sink, value)


class Sections:
    """One section for each column that was defined before."""

    __slots__ = ("_cases",)

    def __init__(self, cases: Mapping[int, Codec[Any]]) -> None:
        self._cases = dict(cases)

    def of(self, tags: Sequence[int], rows: int) -> Codec[Any]:
        """Return the codec for columns of these types, which are known to be ones there are."""
        return _Columns([self._cases[tag] for tag in tags], rows)


class _Columns:
    __slots__ = ("codecs", "rows")

    def __init__(self, codecs: Sequence[Codec[Any]], rows: int) -> None:
        self.codecs, self.rows = codecs, rows

    def read(self, source: Source) -> list[Any]:
        """Read the sections."""
        message, field = source.message, source.field
        found = []
        for codec in self.codecs:
            source.rows = source.present = self.rows
            found.append(source.take(message, field, codec))
        return found

    def write(self, sink: Sink, value: Sequence[Any]) -> None:
        """Write the sections, when there is one for each column."""
        _expect(sink, value, len(self.codecs))
        message, field = sink.message, sink.field
        for codec, section in zip(self.codecs, value, strict=True):
            sink.rows = sink.present = self.rows
            sink.put(message, field, codec, section)


def _present(rows: int, bits: Buffer | None) -> int:
    if bits is None:
        return rows
    return rows - (int.from_bytes(bits, "little") & ((1 << rows) - 1)).bit_count()


def _expect(sink: Sink, value: Sequence[Any], count: int) -> None:
    if not isinstance(value, list | tuple) or len(value) != count:
        raise sink.misfit(f"a list of {count}", value)
