"""Shapes of tables that are sent column by column, written down a second time."""

import struct
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from math import prod
from typing import Any

from generate.codec.cursor import Mutation, Reader, Shape, Writer
from generate.codec.nested import Location, Nested, Struct
from generate.codec.shapes import Varint


class Sections(Shape):
    """One section for each column that was defined before."""

    def __init__(self, cases: Mapping[int, Struct]) -> None:
        self.cases = dict(cases)

    def locations(self, value: Any, writer: Writer) -> list[Location]:
        """Return the fields of each section."""
        found, place = [], 0
        for column, section in zip(writer.record["columns"], value, strict=True):
            inner = Writer(writer.version, writer.record["row_count"])
            for each, raw in self.cases[column["type"]].parts(section, inner):
                found.append(Location(each.name, place, raw, each.shape))
                place += len(raw)
        return found

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the bytes of all sections."""
        return b"".join(location.raw for location in self.locations(value, writer))

    def read(self, reader: Reader) -> list[Any]:
        """Return the sections."""
        columns, rows = reader.record["columns"], reader.record["row_count"]
        found = []
        for column in columns:
            reader.rows = reader.present = rows
            found.append(self.cases[column["type"]].read(reader))
        return found

    def show(self, value: Any, version: int) -> Any:
        """Return the sections as JSON."""
        del version
        return [{name: _plain(name, each) for name, each in section.items()} for section in value]


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {inner: _plain(inner, each) for inner, each in value.items()}
    if isinstance(value, list):
        return [_plain(name, each) for each in value]
    return str(value) if name in {"ids", "precision"} else value


class Nulls(Shape):
    """A byte, and where it is not 0 one bit for each row, the lowest first; 1 is null."""

    least = 1

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the byte and the bits."""
        assert value is None or len(value) == (writer.rows + 7) // 8
        return b"\0" if value is None else b"\1" + value

    def read(self, reader: Reader) -> bytes | None:
        """Return the bits, or None where no row is null."""
        flag = reader.take(1)
        bits = reader.take((reader.rows + 7) // 8) if flag != b"\0" else None
        null = sum(bits[row // 8] >> row % 8 & 1 for row in range(reader.rows)) if bits else 0
        reader.present = reader.rows - null
        return bits


class PerValue(Shape):
    """The same number of bytes for each value; it may follow from a number of bits before."""

    def __init__(self, size: int = 0, *, bits: str = "") -> None:
        self.size, self.bits = size, bits

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the bytes."""
        del writer
        return bytes(value)

    def read(self, reader: Reader) -> bytes:
        """Return the bytes."""
        size = (reader.record[self.bits] + 7) // 8 if self.bits else self.size
        return reader.take(reader.present * size)


class BitPerValue(PerValue):
    """One bit for each value."""

    def read(self, reader: Reader) -> bytes:
        """Return the bytes."""
        return reader.take((reader.present + 7) // 8)


class Each(Shape):
    """One value of another shape for each row that is not null."""

    def __init__(self, item: Shape) -> None:
        self.item = item

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the bytes of each."""
        return b"".join(self.item.write(one, writer) for one in value)

    def read(self, reader: Reader) -> list[Any]:
        """Return the values."""
        name, count = reader.name, reader.present
        if count * self.item.least > reader.left:
            raise reader.refused("short")
        found = []
        for _ in range(count):
            reader.name = name
            found.append(self.item.read(reader))
        return found

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """What can be wrong with the last value, which is a number or an array."""
        if isinstance(self.item, Varint):
            yield from self.item.mutations(raw)
        elif isinstance(self.item, Nested):
            negative = struct.pack("<i", -1)
            comment = "The first dimension of the first array is -1."
            yield Mutation("negative-dimension", "Bounds", comment, 1, 4, negative, "value")


class Slices(Shape):
    """Bytes of any length for each value: their offsets, then all of them."""

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return offsets and bytes."""
        del writer
        offsets = list(accumulate(map(len, value), initial=0))
        return struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(value)

    def read(self, reader: Reader) -> list[bytes]:
        """Return the values."""
        start = reader.place
        offsets = struct.unpack(f"<{reader.present + 1}I", reader.take(4 * (reader.present + 1)))
        if offsets[0] or any(after < before for before, after in pairwise(offsets)):
            raise reader.refused("value", start)
        joined = reader.take(offsets[-1])
        return [joined[before:after] for before, after in pairwise(offsets)]

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """Offsets that do not begin at 0, that fall, or that lead past the end."""
        if len(raw) < 8:
            return
        one = struct.pack("<I", 1)
        yield Mutation("not-from-0", "Offsets", "The first offset is 1.", 0, 4, one, "value")
        far = struct.pack("<I", 2**32 - 1)
        comment = "The second offset lies far behind the bytes."
        yield Mutation("far-offset", "Offsets", comment, 4, 4, far)


class Elements(Shape):
    """The elements of an array whose dimensions stand before."""

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the elements."""
        del writer
        return bytes(value)

    def read(self, reader: Reader) -> bytes:
        """Return the elements."""
        if any(each < 0 for each in reader.record["dims"]):
            raise reader.refused("value")
        return reader.take(prod(reader.record["dims"]) * 8)
