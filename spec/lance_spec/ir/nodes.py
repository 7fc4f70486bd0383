"""The intermediate representation: what a declared message is, without `construct`.

`lance_spec.ir.lowering` makes it from the grammar; the back ends in `lance_spec.emit` walk it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from lance_spec.grammar._vocab import Facts, FrameForm
from lance_spec.ir.shapes import Number, Shape, Varint

INTEGER_SIZES: Final = {"B": 1, "H": 2, "I": 4, "Q": 8}
"""Bytes of an unsigned integer by its `struct` code; composed messages have signed ones too."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The length of a field that takes all bytes to the end of its message."""


@dataclass(frozen=True, slots=True)
class LengthField:
    """The length of a field that another field states."""

    name: str


@dataclass(frozen=True, slots=True)
class Difference:
    """The length of a field that lies between two offsets."""

    end: str
    start: str


Length: TypeAlias = Rest | LengthField | Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field.

    Attributes:
        name: its name in the grammar and in generated code.
        code: its `struct` code, or ``""`` for bytes of variable length.
        size: its bytes, or None where they vary.
        offset: its place in the message, or None after a variable field.
        facts: what is known about it beside its bytes.
        const: the only value allowed, or None.
        length_of: the variable field whose length it is and which it is computed from.
        length: how long a variable field is.
        shape: what it looks like, in composed messages only.
        plus: what its value counts beside the bytes of ``length_of``.
    """

    name: str
    code: str
    size: int | None
    offset: int | None
    facts: Facts
    const: int | bytes | None = None
    length_of: str = ""
    length: Length | None = None
    shape: Shape | None = None
    plus: int = 0

    @property
    def type_name(self) -> str:
        """The type as documents write it: ``u32``, ``bytes[8]``, ``bytes``."""
        if self.shape is not None:
            return self.shape.type_name
        if self.size is None:
            return "bytes"
        return f"u{self.size * 8}" if self.code in INTEGER_SIZES else f"bytes[{self.size}]"

    @property
    def is_integer(self) -> bool:
        """Whether the value is a number."""
        if self.shape is not None:
            return isinstance(self.shape, Number | Varint)
        return self.code in INTEGER_SIZES

    @property
    def is_given(self) -> bool:
        """Whether a caller supplies the value, because nothing else determines it."""
        return self.const is None and not self.length_of


@dataclass(frozen=True, slots=True)
class Fixed:
    """Neighbouring fields of fixed size, read and written as one."""

    fields: tuple[Field, ...]

    @property
    def format(self) -> str:
        """The `struct` format of all fields together, in flat messages."""
        return "<" + "".join(each.code for each in self.fields)

    @property
    def size(self) -> int:
        """Bytes of all fields together."""
        return sum(each.size or 0 for each in self.fields)


@dataclass(frozen=True, slots=True)
class Var:
    """One field of variable length."""

    field: Field

    @property
    def length(self) -> Length:
        """How long the field is."""
        assert self.field.length is not None
        return self.field.length


@dataclass(frozen=True, slots=True)
class Item:
    """One field of a composed message that is not of fixed size."""

    field: Field

    @property
    def minimum(self) -> int:
        """Fewest bytes it takes."""
        assert self.field.shape is not None
        return 0 if self.field.facts.gated else self.field.shape.minimum


Segment: TypeAlias = Fixed | Var | Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message, lowered.

    Attributes:
        name: class name in generated code.
        doc: what it is for.
        section: where its source defines it.
        segments: its parts in wire order; two `Fixed` are never neighbours.
        command: the control command that carries it, or None.
        record_type: the record type that carries it, or None.
        sender: who sends it, or ``""``.
        ambiguities: ids in the ambiguity register.
        since: first version of the protocol whose layout this is, or None.
        versioned: its bytes depend on the version of the protocol.
    """

    name: str
    doc: str
    section: str
    segments: tuple[Segment, ...]
    command: IntEnum | None
    record_type: IntEnum | None
    sender: str
    ambiguities: tuple[str, ...]
    since: int | None = None
    versioned: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields in wire order."""
        found: list[Field] = []
        for segment in self.segments:
            found.extend(segment.fields if isinstance(segment, Fixed) else (segment.field,))
        return tuple(found)

    @property
    def given(self) -> tuple[Field, ...]:
        """The fields a caller supplies."""
        return tuple(each for each in self.fields if each.is_given)

    @property
    def minimum_size(self) -> int:
        """Fewest bytes of the message."""
        fixed = sum(each.size for each in self.segments if isinstance(each, Fixed))
        return fixed + sum(each.minimum for each in self.segments if isinstance(each, Item))

    @property
    def size(self) -> int | None:
        """Bytes of the message, or None where they vary."""
        fixed = all(isinstance(each, Fixed) for each in self.segments)
        return self.minimum_size if fixed else None

    def field(self, name: str) -> Field:
        """Return the field called ``name``.

        Raises:
            KeyError: the message has no such field.
        """
        for each in self.fields:
            if each.name == name:
                return each
        raise KeyError(f"{self.name} has no field {name!r}")


@dataclass(frozen=True, slots=True)
class Family:
    """A grammar, lowered: messages and, where there is a header, the kinds of frames."""

    name: str
    doc: str
    sources: tuple[str, ...]
    messages: tuple[Message, ...]
    frames: tuple[FrameForm, ...]
    composed: bool = False
    versions: tuple[int, int] | None = None

    def message(self, name: str) -> Message:
        """Return the message called ``name``.

        Raises:
            KeyError: the family has no such message.
        """
        for each in self.messages:
            if each.name == name:
                return each
        raise KeyError(f"{self.name} has no message {name!r}")
