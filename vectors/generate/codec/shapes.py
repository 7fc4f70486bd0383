"""Shapes of numbers, bytes and texts in messages that nest; faults come with them."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from generate.codec.cursor import Mutation, Reader, Shape, Writer

_GROUPS = 10


class Num(Shape):
    """An integer of fixed size.

    Attributes:
        size: bytes.
        signed: whether it can be negative.
        order: which byte comes first.
        low: smallest value allowed, or None for any.
        high: largest value allowed.
        names: the only values allowed, or none for any.
    """

    def __init__(
        self,
        size: int,
        *,
        signed: bool = False,
        order: Literal["little", "big"] = "big",
        limits: tuple[int, int] | None = None,
        names: Sequence[int] = (),
    ) -> None:
        self.size = self.least = size
        self.signed, self.order = signed, order
        self.limits, self.names = limits, tuple(names)

    def but(self, limits: tuple[int, int] | None = None, names: Sequence[int] = ()) -> "Num":
        """Return the same integer with fewer values."""
        return Num(self.size, signed=self.signed, order=self.order, limits=limits, names=names)

    @property
    def most(self) -> int:
        """The largest number that the bytes can hold."""
        return int(256**self.size // (2 if self.signed else 1) - 1)

    @property
    def fewest(self) -> int:
        """The smallest number that the bytes can hold."""
        return -self.most - 1 if self.signed else 0

    def raw(self, value: int) -> bytes:
        """Return any number that fits as bytes."""
        return value.to_bytes(self.size, self.order, signed=self.signed)

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the number as bytes."""
        del writer
        assert self._allowed(value), value
        return self.raw(value)

    def read(self, reader: Reader) -> int:
        """Return the number."""
        start = reader.place
        value = int.from_bytes(reader.take(self.size), self.order, signed=self.signed)
        if not self._allowed(value):
            raise reader.refused("value", start)
        return value

    def _allowed(self, value: int) -> bool:
        low, high = self.limits or (value, value)
        return low <= value <= high and (not self.names or value in self.names)

    def show(self, value: Any, version: int) -> Any:
        """Return the number; wide ones as text."""
        del version
        return str(value) if self.size == 8 else int(value)

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """Values beside the names, and beyond the limits."""
        wrong = self._unnamed() if self.names else self._beyond()
        for value in wrong:
            comment = f"The value {value}, which it must not have."
            name = f"is-{'minus-' if value < 0 else ''}{abs(value)}"
            flag = "Unnamed" if self.names else "Bounds"
            yield Mutation(name, flag, comment, 0, len(raw), self.raw(value), "value")

    def _unnamed(self) -> list[int]:
        tried = dict.fromkeys((max(self.names) + 1, self.most, self.fewest))
        return [each for each in tried if self._fits(each) and each not in self.names]

    def _beyond(self) -> list[int]:
        if self.limits is None:
            return []
        edges = (self.limits[0] - 1, self.limits[1] + 1, self.most, self.fewest)
        outside = (each for each in edges if not self._allowed(each))
        return [each for each in dict.fromkeys(outside) if self._fits(each)]

    def _fits(self, value: int) -> bool:
        return self.fewest <= value <= self.most


class Varint(Shape):
    """An integer in groups of seven bits, the lowest first."""

    least = 1

    def __init__(self, *, zigzag: bool = False, limits: tuple[int, int] | None = None) -> None:
        self.zigzag, self.limits = zigzag, limits

    def raw(self, value: int) -> bytes:
        """Return any number as bytes."""
        left = (value << 1 ^ value >> 63) if self.zigzag else value
        groups = b""
        while left >= 0x80:
            groups += bytes([left & 0x7F | 0x80])
            left >>= 7
        return groups + bytes([left])

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the number as bytes."""
        del writer
        return self.raw(value)

    def read(self, reader: Reader) -> int:
        """Return the number, which has at most 64 bits in at most ten bytes."""
        start, value = reader.place, 0
        for group in range(_GROUPS):
            (byte,) = reader.take(1)
            value |= (byte & 0x7F) << 7 * group
            if byte < 0x80:
                break
        else:
            raise reader.refused("value", start)
        if value >= 2**64:
            raise reader.refused("value", start)
        found = value >> 1 ^ -(value & 1) if self.zigzag else value
        if self.limits and not self.limits[0] <= found <= self.limits[1]:
            raise reader.refused("value", start)
        return found

    def show(self, value: Any, version: int) -> Any:
        """Return the number as text."""
        del version
        return str(value)

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """Too many groups, too many bits, and values beyond the limits."""
        size = len(raw)
        yield Mutation("eleven-groups", "WideVarint", "A number in eleven bytes.", 0, size,
                   b"\x80" * 10 + b"\x00", "value")  # fmt: skip
        yield Mutation("65-bits", "WideVarint", "A number of 65 bits.", 0, size,
                   b"\xff" * 9 + b"\x02", "value")  # fmt: skip
        for value in (self.limits[0] - 1, self.limits[1] + 1) if self.limits else ():
            comment = f"The value {value}, which it must not have."
            yield Mutation(f"is-{value}", "Bounds", comment, 0, size, self.raw(value), "value")


class Flag(Shape):
    """A byte that is 0 or 1."""

    least = 1

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the byte."""
        del writer
        return bytes([value])

    def read(self, reader: Reader) -> bool:
        """Return whether it is 1."""
        start = reader.place
        (value,) = reader.take(1)
        if value > 1:
            raise reader.refused("value", start)
        return bool(value)

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """Neither 0 nor 1."""
        for value in (2, 255):
            comment = f"A byte of {value}, neither 0 nor 1."
            yield Mutation(f"is-{value}", "NoTruth", comment, 0, len(raw), bytes([value]), "value")


class Fixed(Shape):
    """Bytes, as many as are known before."""

    def __init__(self, size: int) -> None:
        self.size = self.least = size

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the bytes."""
        del writer
        assert len(value) == self.size
        return bytes(value)

    def read(self, reader: Reader) -> bytes:
        """Return the bytes."""
        return reader.take(self.size)


class Rest(Shape):
    """All bytes up to the end."""

    open_end = True

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the bytes."""
        del writer
        return bytes(value)

    def read(self, reader: Reader) -> bytes:
        """Return the bytes."""
        return reader.take(reader.left)


class Const(Shape):
    """The one value that a field may have."""

    given = False

    def __init__(self, shape: Shape, value: Any) -> None:
        self.shape, self.value = shape, value
        self.least = shape.least

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the value's bytes."""
        del value
        return self.shape.write(self.value, writer)

    def read(self, reader: Reader) -> Any:
        """Return the value, or refuse another."""
        start = reader.place
        found = self.shape.read(reader)
        if found != self.value:
            raise reader.refused("value", start)
        return found

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """One bit of the first and of the last byte."""
        for at in sorted({0, len(raw) - 1}):
            insert = bytes([raw[at] ^ 1])
            comment = f"One bit of its byte {at} has changed."
            yield Mutation(f"bit-in-{at}", "Constant", comment, at, 1, insert)


class Blob(Shape):
    """Bytes or a text after their length."""

    def __init__(self, prefix: Num | Varint, *, text: bool = False) -> None:
        self.prefix, self.text = prefix, text
        self.least = prefix.least

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return length and bytes."""
        raw = value.encode() if self.text else bytes(value)
        return self.prefix.write(len(raw), writer) + raw

    def read(self, reader: Reader) -> Any:
        """Return the bytes or the text."""
        raw = reader.take(self.prefix.read(reader))
        if not self.text:
            return raw
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise reader.refused("value", reader.place - len(raw) + error.start) from None

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """A length that cannot be, and bytes that are not text."""
        size = len(raw) - self._size(raw)
        most = 2**31 if isinstance(self.prefix, Varint) else self.prefix.most
        yield Mutation("length-beyond", "Length", f"Its length says {most}.", 0, size,
                   self.prefix.raw(most), "short")  # fmt: skip
        if getattr(self.prefix, "signed", False) or getattr(self.prefix, "zigzag", False):
            insert = self.prefix.raw(-1)
            yield Mutation(
                "length-negative", "Length", "Its length says -1.", 0, size, insert, "value"
            )
        if self.text and len(raw) > size:
            comment = "Its last byte is none that a text has."
            yield Mutation("no-text", "NoText", comment, len(raw) - 1, 1, b"\xff", "value")

    def _size(self, raw: bytes) -> int:
        reader = Reader(raw, len(raw))
        self.prefix.read(reader)
        return reader.left


class Length(Shape):
    """The number of bytes of a later field, and perhaps some more."""

    given = False

    def __init__(self, prefix: Num | Varint, of: str, *, plus: int = 0) -> None:
        self.prefix, self.of, self.plus = prefix, of, plus
        self.least = prefix.least

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the number."""
        del value
        return self.prefix.write(len(writer.record[self.of]) + self.plus, writer)

    def read(self, reader: Reader) -> int:
        """Return how many bytes the later field has."""
        return self.prefix.read(reader) - self.plus

    def mutations(self, raw: bytes) -> Iterator[Mutation]:
        """One too few, one too many, none, and the most there can be."""
        right = self.prefix.read(Reader(raw, len(raw)))
        most = 2**31 if isinstance(self.prefix, Varint) else self.prefix.most
        edges = () if isinstance(self.prefix, Varint) else self.prefix.limits or ()
        beyond = [each for edge in edges for each in (edge - 1, edge + 1)]
        for value in dict.fromkeys((right - 1, right + 1, 0, *beyond, most)):
            if value == right or not 0 <= value <= most:
                continue
            comment = f"It says {value}, it should be {right}."
            yield Mutation(f"says-{value}", "Length", comment, 0, len(raw), self.prefix.raw(value))


class Measured(Shape):
    """Bytes whose number stands in an earlier `Length`."""

    def __init__(self, length: str) -> None:
        self.length = length

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the bytes."""
        del writer
        return bytes(value)

    def read(self, reader: Reader) -> bytes:
        """Return as many bytes as were stated."""
        return reader.take(reader.record[self.length])


U8, I8 = Num(1), Num(1, signed=True)
U16, I16 = Num(2), Num(2, signed=True)
U32, I32 = Num(4), Num(4, signed=True)
U64, I64 = Num(8), Num(8, signed=True)
U16LE, U32LE, U64LE = Num(2, order="little"), Num(4, order="little"), Num(8, order="little")
I32LE, I64LE = (Num(size, signed=True, order="little") for size in (4, 8))
LEB128, ZIGZAG = Varint(), Varint(zigzag=True)
FLAG, REST = Flag(), Rest()
