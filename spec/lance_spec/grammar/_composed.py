"""The words for messages that nest: lists, options, unions, variable-length numbers.

They are `construct` parsers of our own, because those that come with `construct` are either
unbounded or forgive what is wrong. Every one refuses negative lengths, counts that cannot fit
into the bytes that are left, and bytes left over where a length was stated.
"""

import io
from collections.abc import Mapping
from typing import Any, Final

from construct import (
    Bytes,
    Const,
    Construct,
    FormatField,
    RangeError,
    Rebuild,
    Renamed,
    StreamError,
    StringError,
    Struct,
    TerminatedError,
    stream_read,
    stream_write,
)

from lance_spec.grammar._vocab import Declaration, Meta

MAX_VARINT_BYTES: Final = 10
"""64 bits in groups of seven."""


class Varint(Construct):  # type: ignore[misc]  # construct ships no types
    """A 64-bit integer in groups of seven bits, the lowest first, at most ten groups.

    Groups that add nothing are tolerated: published decoders accept them.
    """

    def __init__(self, *, zigzag: bool) -> None:
        super().__init__()
        self.zigzag = zigzag

    def _parse(self, stream: Any, _context: Any, path: str) -> int:
        value = 0
        for group in range(MAX_VARINT_BYTES):
            (byte,) = stream_read(stream, 1, path)
            value |= (byte & 0x7F) << 7 * group
            if byte < 0x80:
                break
        else:
            raise RangeError("expected at most 10 bytes", path=path)
        if value >= 2**64:
            raise RangeError("expected at most 64 bits", path=path)
        return _unzigzag(value) if self.zigzag else value

    def _build(self, obj: Any, stream: Any, _context: Any, path: str) -> int:
        limits = (-(2**63), 2**63 - 1) if self.zigzag else (0, 2**64 - 1)
        if not limits[0] <= obj <= limits[1]:
            raise RangeError(f"expected {limits[0]} to {limits[1]}", path=path)
        left = ((obj << 1) ^ (obj >> 63)) if self.zigzag else obj
        groups = bytearray()
        while left >= 0x80:
            groups.append(left & 0x7F | 0x80)
            left >>= 7
        groups.append(left)
        stream_write(stream, bytes(groups), len(groups), path)
        return int(obj)


ZIGZAG: Final = Varint(zigzag=True)
"""A signed variable-length integer, the sign in its lowest bit."""
LEB128: Final = Varint(zigzag=False)
"""An unsigned variable-length integer."""


class Blob(Construct):  # type: ignore[misc]
    """Bytes or UTF-8 after their length; see `lance_spec.ir.shapes.Blob`."""

    def __init__(self, prefix: Construct, *, text: bool = False, nullable: bool = False) -> None:
        super().__init__()
        self.prefix, self.text, self.nullable = prefix, text, nullable

    def _parse(self, stream: Any, context: Any, path: str) -> bytes | str | None:
        size = self.prefix._parsereport(stream, context, path)  # noqa: SLF001  # construct's way
        if self.nullable and size == -1:
            return None
        raw = read_exactly(stream, size, path)
        if not self.text:
            return raw
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise StringError(str(error), path=path) from None

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if self.nullable and obj is None:
            self.prefix._build(-1, stream, context, path)  # noqa: SLF001
            return obj
        raw = obj.encode() if self.text else obj
        self.prefix._build(len(raw), stream, context, path)  # noqa: SLF001
        stream_write(stream, raw, len(raw), path)
        return obj


class Maybe(Construct):  # type: ignore[misc]
    """A presence byte, 0 or 1, and the value where it is 1."""

    def __init__(self, item: Construct) -> None:
        super().__init__()
        self.item = item

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        (present,) = stream_read(stream, 1, path)
        if present > 1:
            raise RangeError(f"expected 0 or 1, got {present}", path=path)
        return self.item._parsereport(stream, context, path) if present else None  # noqa: SLF001

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        stream_write(stream, b"\x00" if obj is None else b"\x01", 1, path)
        if obj is not None:
            self.item._build(obj, stream, context, path)  # noqa: SLF001
        return obj


class Many(Construct):  # type: ignore[misc]
    """A count and as many values; the count is held against the bytes that are left."""

    def __init__(self, count: Construct, item: Construct) -> None:
        super().__init__()
        self.prefix, self.item = count, item

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any]:
        count = self.prefix._parsereport(stream, context, path)  # noqa: SLF001
        if not 0 <= count * least(self.item) <= bytes_left(stream):
            raise RangeError(f"{count} values do not fit into the bytes left", path=path)
        return [self.item._parsereport(stream, context, path) for _ in range(count)]  # noqa: SLF001

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.prefix._build(len(obj), stream, context, path)  # noqa: SLF001
        for each in obj:
            self.item._build(each, stream, context, path)  # noqa: SLF001
        return obj


class Filled(Construct):  # type: ignore[misc]
    """Values up to the end of the bytes; unlike `GreedyRange` it hides no error."""

    def __init__(self, item: Construct) -> None:
        super().__init__()
        self.item = item

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any]:
        found = []
        while bytes_left(stream):
            found.append(self.item._parsereport(stream, context, path))  # noqa: SLF001
        return found

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for each in obj:
            self.item._build(each, stream, context, path)  # noqa: SLF001
        return obj


class Sized(Construct):  # type: ignore[misc]
    """A length in bytes and one value that takes exactly those."""

    def __init__(self, prefix: Construct, item: Construct) -> None:
        super().__init__()
        self.prefix, self.item = prefix, item

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        size = self.prefix._parsereport(stream, context, path)  # noqa: SLF001
        inner = io.BytesIO(read_exactly(stream, size, path))
        value = self.item._parsereport(inner, context, path)  # noqa: SLF001
        if bytes_left(inner):
            raise TerminatedError(f"expected the end, {bytes_left(inner)} bytes left", path=path)
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        inner = io.BytesIO()
        self.item._build(obj, inner, context, path)  # noqa: SLF001
        raw = inner.getvalue()
        self.prefix._build(len(raw), stream, context, path)  # noqa: SLF001
        stream_write(stream, raw, len(raw), path)
        return obj


class Nested(Construct):  # type: ignore[misc]
    """Another declared message."""

    def __init__(self, declaration: Declaration) -> None:
        super().__init__()
        self.declaration = declaration
        self._struct = Struct(*declaration.parsers())

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return self._struct._parsereport(stream, context, path)  # noqa: SLF001

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        return self._struct._build(obj, stream, context, path)  # noqa: SLF001


class Choice(Construct):  # type: ignore[misc]
    """A message that depends on an earlier field; values without a message carry nothing.

    The earlier field must be of a closed enumeration, so that no value is without a rule.
    """

    def __init__(self, tag: str, cases: Mapping[int, Declaration]) -> None:
        super().__init__()
        self.tag, self.cases = tag, dict(cases)

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        chosen = self.cases.get(context[self.tag])
        return Nested(chosen)._parse(stream, context, path) if chosen else None  # noqa: SLF001

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        chosen = self.cases.get(context[self.tag])
        return Nested(chosen)._build(obj, stream, context, path) if chosen else None  # noqa: SLF001


def _unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def least(parser: Construct) -> int:
    """Return the fewest bytes that a parser takes, in any version."""
    if isinstance(parser, Meta) and parser.facts.gated:
        return 0
    if isinstance(parser, Meta | Renamed | Rebuild | Const):
        return least(parser.subcon)
    if isinstance(parser, Varint | Maybe):
        return 1
    if isinstance(parser, Blob | Many):
        return least(parser.prefix)
    if isinstance(parser, Sized):
        return least(parser.prefix) + least(parser.item)
    return _least_whole(parser)


def _least_whole(parser: Construct) -> int:
    if isinstance(parser, Nested):
        return sum(least(each) for each in parser.declaration.fields)
    if isinstance(parser, FormatField) or (
        isinstance(parser, Bytes) and isinstance(parser.length, int)
    ):
        return int(parser.sizeof())
    return int(getattr(parser, "fewest", 0))


def bytes_left(stream: Any) -> int:
    """Return how many bytes a stream still holds."""
    here = stream.tell()
    end = stream.seek(0, io.SEEK_END)
    stream.seek(here)
    return int(end - here)


def read_exactly(stream: Any, size: int, path: str) -> bytes:
    """Return the next bytes of a stream; refuse a size that is negative or not there."""
    if not 0 <= size <= bytes_left(stream):
        raise StreamError(f"expected {size} bytes, {bytes_left(stream)} left", path=path)
    return bytes(stream_read(stream, size, path))
