"""The words for tables that are sent column by column, as QWP sends them.

A section of a column depends on the number of rows, which stands in its table, and on how many
of them are null, which it says itself. Both travel in the context that `construct` hands down.
"""

import io
from collections.abc import Mapping
from itertools import pairwise
from math import prod
from typing import Any

from construct import Construct, Int32ul, RangeError, stream_read, stream_write

from lance_spec.grammar._composed import Nested, bytes_left, least, read_exactly
from lance_spec.grammar._vocab import Declaration


class Sections(Construct):  # type: ignore[misc]  # construct ships no types
    """One section for each column that was defined before, chosen by the column's type."""

    def __init__(self, of: str, tag: str, rows: str, cases: Mapping[int, Declaration]) -> None:
        super().__init__()
        self.of, self.tag, self.rows, self.cases = of, tag, rows, dict(cases)

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any]:
        found = []
        for column in context[self.of]:
            self._enter(context)
            section = Nested(self.cases[int(column[self.tag])])
            found.append(section._parsereport(stream, context, path))  # noqa: SLF001
        return found

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for column, value in zip(context[self.of], obj, strict=True):
            self._enter(context)
            Nested(self.cases[int(column[self.tag])])._build(value, stream, context, path)  # noqa: SLF001
        return obj

    def _enter(self, context: Any) -> None:
        context._params.rows = context[self.rows]  # noqa: SLF001  # how construct passes down
        context._params.present = context[self.rows]  # noqa: SLF001


class Nulls(Construct):  # type: ignore[misc]
    """A byte, and where it is not 0 one bit for each row, the lowest first; 1 is null.

    The byte is written as 0 or 1.
    """

    fewest = 1

    def _parse(self, stream: Any, context: Any, path: str) -> bytes | None:
        (flag,) = stream_read(stream, 1, path)
        bits = read_exactly(stream, (_rows(context) + 7) // 8, path) if flag else None
        self._enter(context, bits)
        return bits

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        stream_write(stream, bytes([obj is not None]), 1, path)
        if obj is not None:
            stream_write(stream, obj, len(obj), path)
        self._enter(context, obj)
        return obj

    def _enter(self, context: Any, bits: bytes | None) -> None:
        rows = _rows(context)
        nulls = sum(bits[row // 8] >> row % 8 & 1 for row in range(rows)) if bits else 0
        context._params.present = rows - nulls  # noqa: SLF001


class PerValue(Construct):  # type: ignore[misc]
    """The same number of bytes for each row that is not null.

    The number is fixed, or follows from a number of bits that stands before.
    """

    def __init__(self, size: int = 0, *, bits: str = "") -> None:
        super().__init__()
        self.size, self.bits = size, bits

    def _parse(self, stream: Any, context: Any, path: str) -> bytes:
        size = (context[self.bits] + 7) // 8 if self.bits else self.size
        return read_exactly(stream, _present(context) * size, path)

    def _build(self, obj: Any, stream: Any, _context: Any, path: str) -> Any:
        stream_write(stream, obj, len(obj), path)
        return obj


class Timestamps(Construct):  # type: ignore[misc]
    """Times for the rows that are not null: 8 bytes each, or, after encoding 1, compressed."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self.encoding = encoding

    def _parse(self, stream: Any, context: Any, path: str) -> bytes:
        present = _present(context)
        if not context[self.encoding]:
            return read_exactly(stream, 8 * present, path)
        seeds = read_exactly(stream, 8 * min(present, 2), path)
        bits = _Bits(stream, path)
        for _ in range(present - 2):
            bits.skip((0, 7, 9, 12, 32)[bits.ones(most=4)])
        return seeds + bytes(bits.taken)

    def _build(self, obj: Any, stream: Any, _context: Any, path: str) -> Any:
        stream_write(stream, obj, len(obj), path)
        return obj


class _Bits:
    """The bits of a stream, the lowest of each byte first."""

    def __init__(self, stream: Any, path: str) -> None:
        self.stream, self.path = stream, path
        self.taken = bytearray()
        self.left = 0

    def skip(self, count: int) -> int:
        """Go on by some bits; return the last one."""
        for _ in range(count):
            if not self.left:
                self.taken += read_exactly(self.stream, 1, self.path)
                self.left = 8
            self.left -= 1
        return self.taken[-1] >> (7 - self.left) & 1

    def ones(self, most: int) -> int:
        """Return how many ones stand before a zero, which is taken too."""
        for count in range(most):
            if not self.skip(1):
                return count
        return most


class BitPerValue(Construct):  # type: ignore[misc]
    """One bit for each row that is not null, the lowest first."""

    def _parse(self, stream: Any, context: Any, path: str) -> bytes:
        return read_exactly(stream, (_present(context) + 7) // 8, path)

    def _build(self, obj: Any, stream: Any, _context: Any, path: str) -> Any:
        stream_write(stream, obj, len(obj), path)
        return obj


class Each(Construct):  # type: ignore[misc]
    """One value for each row that is not null."""

    def __init__(self, item: Construct) -> None:
        super().__init__()
        self.item = item

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any]:
        present = _present(context)
        if present * least(self.item) > bytes_left(stream):
            raise RangeError(f"{present} values do not fit into the bytes left", path=path)
        return [self.item._parsereport(stream, context, path) for _ in range(present)]  # noqa: SLF001

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for each in obj:
            self.item._build(each, stream, context, path)  # noqa: SLF001
        return obj


class Slices(Construct):  # type: ignore[misc]
    """Bytes of any length for each row that is not null: their offsets, then all of them."""

    def _parse(self, stream: Any, context: Any, path: str) -> list[bytes]:
        raw = io.BytesIO(read_exactly(stream, 4 * (_present(context) + 1), path))
        offsets = [Int32ul.parse_stream(raw) for _ in range(_present(context) + 1)]
        if offsets[0] or offsets != sorted(offsets):
            raise RangeError("expected offsets from 0 that do not fall", path=path)
        joined = read_exactly(stream, offsets[-1], path)
        return [joined[a:b] for a, b in pairwise(offsets)]

    def _build(self, obj: Any, stream: Any, _context: Any, path: str) -> Any:
        ends = [sum(len(each) for each in obj[:count]) for count in range(len(obj) + 1)]
        raw = b"".join([*(Int32ul.build(end) for end in ends), *obj])
        stream_write(stream, raw, len(raw), path)
        return obj


class Elements(Construct):  # type: ignore[misc]
    """The elements of an array whose dimensions stand before."""

    def __init__(self, dims: str, size: int) -> None:
        super().__init__()
        self.dims, self.size = dims, size

    def _parse(self, stream: Any, context: Any, path: str) -> bytes:
        if any(each < 0 for each in context[self.dims]):
            raise RangeError("expected dimensions of 0 or more", path=path)
        return read_exactly(stream, prod(context[self.dims]) * self.size, path)

    def _build(self, obj: Any, stream: Any, _context: Any, path: str) -> Any:
        stream_write(stream, obj, len(obj), path)
        return obj


def _rows(context: Any) -> int:
    return int(context._params.get("rows", 0))  # noqa: SLF001


def _present(context: Any) -> int:
    return int(context._params.get("present", 0))  # noqa: SLF001
