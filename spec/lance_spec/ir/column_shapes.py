"""Shapes of tables that are sent column by column; see `lance_spec.ir.shapes`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from lance_spec.ir.shapes import Nested, Shape


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
