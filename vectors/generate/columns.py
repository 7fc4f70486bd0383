"""Shapes of tables that are sent column by column, written down a second time."""

import struct
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from math import prod
from typing import Any

from generate.cursor import Eye, Pen, Shape, Slip
from generate.nested import Nested, Spot, Struct
from generate.shapes import Varint


class Sections(Shape):
    """One section for each column that was defined before."""

    def __init__(self, cases: Mapping[int, Struct]) -> None:
        self.cases = dict(cases)

    def spots(self, value: Any, pen: Pen) -> list[Spot]:
        """Return the fields of each section."""
        found, place = [], 0
        for column, section in zip(pen.record["columns"], value, strict=True):
            inner = Pen(pen.version, pen.record["row_count"])
            for each, raw in self.cases[column["type"]].parts(section, inner):
                found.append(Spot(each.name, place, raw, each.shape))
                place += len(raw)
        return found

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return the bytes of all sections."""
        return b"".join(spot.raw for spot in self.spots(value, pen))

    def read(self, eye: Eye) -> list[Any]:
        """Return the sections."""
        columns, rows = eye.record["columns"], eye.record["row_count"]
        found = []
        for column in columns:
            eye.rows = eye.present = rows
            found.append(self.cases[column["type"]].read(eye))
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

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return the byte and the bits."""
        assert value is None or len(value) == (pen.rows + 7) // 8
        return b"\0" if value is None else b"\1" + value

    def read(self, eye: Eye) -> bytes | None:
        """Return the bits, or None where no row is null."""
        flag = eye.take(1)
        bits = eye.take((eye.rows + 7) // 8) if flag != b"\0" else None
        null = sum(bits[row // 8] >> row % 8 & 1 for row in range(eye.rows)) if bits else 0
        eye.present = eye.rows - null
        return bits


class PerValue(Shape):
    """The same number of bytes for each value; it may follow from a number of bits before."""

    def __init__(self, size: int = 0, *, bits: str = "") -> None:
        self.size, self.bits = size, bits

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return the bytes."""
        del pen
        return bytes(value)

    def read(self, eye: Eye) -> bytes:
        """Return the bytes."""
        size = (eye.record[self.bits] + 7) // 8 if self.bits else self.size
        return eye.take(eye.present * size)


class BitPerValue(PerValue):
    """One bit for each value."""

    def read(self, eye: Eye) -> bytes:
        """Return the bytes."""
        return eye.take((eye.present + 7) // 8)


class Each(Shape):
    """One value of another shape for each row that is not null."""

    def __init__(self, item: Shape) -> None:
        self.item = item

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return the bytes of each."""
        return b"".join(self.item.write(one, pen) for one in value)

    def read(self, eye: Eye) -> list[Any]:
        """Return the values."""
        name, count = eye.name, eye.present
        if count * self.item.least > eye.left:
            raise eye.refused("short")
        found = []
        for _ in range(count):
            eye.name = name
            found.append(self.item.read(eye))
        return found

    def slips(self, raw: bytes) -> Iterator[Slip]:
        """What can be wrong with the last value, which is a number or an array."""
        if isinstance(self.item, Varint):
            yield from self.item.slips(raw)
        elif isinstance(self.item, Nested):
            negative = struct.pack("<i", -1)
            comment = "The first dimension of the first array is -1."
            yield Slip("negative-dimension", "Bounds", comment, 1, 4, negative, "value")


class Slices(Shape):
    """Bytes of any length for each value: their offsets, then all of them."""

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return offsets and bytes."""
        del pen
        offsets = list(accumulate(map(len, value), initial=0))
        return struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(value)

    def read(self, eye: Eye) -> list[bytes]:
        """Return the values."""
        start = eye.place
        offsets = struct.unpack(f"<{eye.present + 1}I", eye.take(4 * (eye.present + 1)))
        if offsets[0] or any(after < before for before, after in pairwise(offsets)):
            raise eye.refused("value", start)
        joined = eye.take(offsets[-1])
        return [joined[before:after] for before, after in pairwise(offsets)]

    def slips(self, raw: bytes) -> Iterator[Slip]:
        """Offsets that do not begin at 0, that fall, or that lead past the end."""
        if len(raw) < 8:
            return
        one = struct.pack("<I", 1)
        yield Slip("not-from-0", "Offsets", "The first offset is 1.", 0, 4, one, "value")
        far = struct.pack("<I", 2**32 - 1)
        comment = "The second offset lies far behind the bytes."
        yield Slip("far-offset", "Offsets", comment, 4, 4, far)


class Elements(Shape):
    """The elements of an array whose dimensions stand before."""

    def write(self, value: Any, pen: Pen) -> bytes:
        """Return the elements."""
        del pen
        return bytes(value)

    def read(self, eye: Eye) -> bytes:
        """Return the elements."""
        if any(each < 0 for each in eye.record["dims"]):
            raise eye.refused("value")
        return eye.take(prod(eye.record["dims"]) * 8)
