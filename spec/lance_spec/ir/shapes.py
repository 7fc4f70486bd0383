"""Shapes of the fields of composed messages, without `construct`.

LANCE's own messages are flat: numbers and runs of bytes. The protocols of other systems nest:
lists of messages, options, unions, variable-length numbers, tables that are sent column by
column. A shape says how one such field is read; shapes contain shapes.
"""

import struct
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Number:
    """An integer of fixed size.

    Attributes:
        code: its `struct` code, upper case when unsigned.
        little: whether its low byte comes first.
    """

    code: str
    little: bool = False

    @property
    def minimum(self) -> int:
        """Bytes it takes."""
        return struct.calcsize(f">{self.code}")

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value."""
        bits = 8 * self.minimum
        return (
            (0, 2**bits - 1) if self.code.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        sign = "u" if self.code.isupper() else "i"
        return f"{sign}{8 * self.minimum}{'le' if self.little and self.minimum > 1 else ''}"


@dataclass(frozen=True, slots=True)
class Varint:
    """An integer in groups of seven bits, the lowest first, at most ten groups.

    Attributes:
        zigzag: signed, with the sign in the lowest bit.
    """

    zigzag: bool
    minimum = 1

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value that can be read."""
        return (-(2**63), 2**63 - 1) if self.zigzag else (0, 2**64 - 1)

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return "zigzag" if self.zigzag else "varint"


Prefix: TypeAlias = Number | Varint


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes of a fixed size."""

    size: int

    @property
    def minimum(self) -> int:
        """Bytes it takes."""
        return self.size

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return f"bytes[{self.size}]"


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes after their length.

    Attributes:
        prefix: how the length is written.
        text: the bytes are UTF-8.
        nullable: a length of -1 says that there is no value.
    """

    prefix: Prefix
    text: bool
    nullable: bool

    @property
    def minimum(self) -> int:
        """Fewest bytes it takes."""
        return self.prefix.minimum

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        name = f"{'string' if self.text else 'bytes'}<{self.prefix.type_name}>"
        return f"nullable {name}" if self.nullable else name


@dataclass(frozen=True, slots=True)
class Measured:
    """Bytes whose length an earlier field states.

    Attributes:
        field: the earlier field.
        minus: what the stated length counts beside these bytes.
    """

    field: str
    minus: int
    minimum = 0
    type_name = "bytes"


@dataclass(frozen=True, slots=True)
class Remainder:
    """All bytes to the end."""

    minimum = 0
    type_name = "bytes"


@dataclass(frozen=True, slots=True)
class Maybe:
    """A byte that says whether a value follows, and the value if so."""

    item: "Shape"
    minimum = 1

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return f"option<{self.item.type_name}>"


@dataclass(frozen=True, slots=True)
class Many:
    """A count and as many values."""

    count: Prefix
    item: "Shape"

    @property
    def minimum(self) -> int:
        """Fewest bytes it takes."""
        return self.count.minimum

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return f"list<{self.count.type_name}, {self.item.type_name}>"


@dataclass(frozen=True, slots=True)
class Filled:
    """Values up to the end, without a count."""

    item: "Shape"
    minimum = 0

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return f"list<{self.item.type_name}>"


@dataclass(frozen=True, slots=True)
class Sized:
    """A length in bytes and one value that takes exactly those."""

    prefix: Prefix
    item: "Shape"

    @property
    def minimum(self) -> int:
        """Fewest bytes it takes."""
        return self.prefix.minimum + self.item.minimum

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return f"sized<{self.prefix.type_name}, {self.item.type_name}>"


@dataclass(frozen=True, slots=True)
class Nested:
    """Another message of the family.

    Attributes:
        name: its name.
        minimum: fewest bytes it takes.
    """

    name: str
    minimum: int

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return self.name


@dataclass(frozen=True, slots=True)
class Choice:
    """A message that depends on a tag which stands earlier; other tags carry nothing.

    Attributes:
        tag: the earlier field; its values are a closed set.
        cases: values of the tag, each with its message.
    """

    tag: str
    cases: tuple[tuple[int, Nested], ...]
    minimum = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The messages there are, each once."""
        return tuple(dict.fromkeys(each.name for _, each in self.cases))

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return f"by {self.tag}"


# Tables that are sent column by column.


@dataclass(frozen=True, slots=True)
class Nulls:
    """A byte, 0 or another number, and unless it is 0 one bit for each row."""

    minimum = 1
    type_name = "nulls"


@dataclass(frozen=True, slots=True)
class PerValue:
    """The same number of bytes for each row that is not null.

    Attributes:
        size: the number, or 0 where it follows from ``bits``.
        bits: an earlier field that states the number of bits, or ``""``.
    """

    size: int
    bits: str
    minimum = 0

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return f"bytes[{self.size}] a value" if self.size else f"{self.bits} bits a value"


@dataclass(frozen=True, slots=True)
class Timestamps:
    """Times of 8 bytes for each row that is not null, or as `lance_spec.qwp.gorilla` packs them.

    Attributes:
        encoding: an earlier field: 0 for plain values, 1 for packed ones.
    """

    encoding: str
    minimum = 0
    type_name = "times"


@dataclass(frozen=True, slots=True)
class BitPerValue:
    """One bit for each row that is not null."""

    minimum = 0
    type_name = "1 bit a value"


@dataclass(frozen=True, slots=True)
class Each:
    """One value for each row that is not null."""

    item: "Shape"
    minimum = 0

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return f"{self.item.type_name} a value"


@dataclass(frozen=True, slots=True)
class Slices:
    """Bytes of any length for each row that is not null: offsets (u32), then all of them."""

    minimum = 0
    type_name = "bytes a value"


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of an array.

    Attributes:
        dims: an earlier list with the size of each dimension.
        size: bytes of an element.
    """

    dims: str
    size: int
    minimum = 0

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return f"bytes[{self.size}] an element"


@dataclass(frozen=True, slots=True)
class Sections:
    """One section for each column that was defined before.

    Attributes:
        of: the earlier list of definitions.
        tag: the field of a definition that says its type.
        rows: the earlier field that states how many rows there are.
        cases: types, each with the message that is its section.
    """

    of: str
    tag: str
    rows: str
    cases: tuple[tuple[int, "Nested"], ...]
    minimum = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The messages there are, each once."""
        return tuple(dict.fromkeys(each.name for _, each in self.cases))

    @property
    def type_name(self) -> str:
        """The type as documents write it."""
        return f"section of each of {self.of}"


ColumnShape: TypeAlias = (
    Nulls | PerValue | Timestamps | BitPerValue | Each | Slices | Elements | Sections
)


Shape: TypeAlias = (
    Number
    | Varint
    | Raw
    | Blob
    | Measured
    | Remainder
    | Maybe
    | Many
    | Filled
    | Sized
    | Nested
    | Choice
    | ColumnShape
)


def nested_in(shape: Shape) -> tuple[str, ...]:
    """Return the names of the messages that a shape contains."""
    match shape:
        case Nested():
            return (shape.name,)
        case Choice() | Sections():
            return shape.names
        case Maybe() | Many() | Filled() | Sized() | Each():
            return nested_in(shape.item)
    return ()
