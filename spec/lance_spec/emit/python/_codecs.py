"""Which codec a composed field has, and how its value is typed, in generated Python."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from lance_spec.emit._layout import WIDTH
from lance_spec.emit._names import quoted
from lance_spec.emit._words import snake
from lance_spec.ir.nodes import Field, Message
from lance_spec.ir.shapes import (
    BitPerValue,
    Blob,
    Choice,
    Each,
    Elements,
    Filled,
    Many,
    Maybe,
    Measured,
    Nested,
    Nulls,
    Number,
    PerValue,
    Raw,
    Remainder,
    Sections,
    Shape,
    Sized,
    Slices,
    Timestamps,
    Varint,
)

_PLAIN: Final[dict[type, str]] = {
    BitPerValue: "BITS",
    Measured: "REST",
    Nulls: "NULLS",
    Remainder: "REST",
    Slices: "SLICES",
    Timestamps: "TIMES",
}
"""Codecs without parameters; unions are written by their fields."""


@dataclass(slots=True)
class Constants:
    """The codecs that a module needs, each written once, before the class that needs it first.

    Attributes:
        written: source of each constant by its name.
    """

    written: dict[str, str] = field(default_factory=dict)

    def of(self, message: Message, subject: Field) -> Iterator[str]:
        """Return the definitions that a field needs and that do not stand yet."""
        before = set(self.written)
        codec(message, subject, self.written)
        for name in self.written:
            if name not in before:
                yield f"{name} = {self.written[name]}"


def codec(message: Message, subject: Field, written: dict[str, str]) -> str:
    """Return the expression for a field's codec; what it consists of goes to ``written``."""
    assert subject.shape is not None
    facts = subject.facts
    own = f"_{snake(message.name)}_{subject.name}".upper()
    if isinstance(subject.shape, Choice):
        return _keep(written, own, _choice(subject.shape, message))
    if isinstance(subject.shape, Sections):
        return _keep(written, own, _sections(subject.shape))
    plain = _expression(subject.shape, written)
    if facts.boolean:
        return "BOOL"
    narrowed = _narrowed(subject, plain)
    return _keep(written, own, narrowed) if narrowed else plain


def _narrowed(subject: Field, plain: str) -> str:
    """Return a codec that enforces what the facts say, or nothing when they say nothing."""
    facts = subject.facts
    if subject.const is not None:
        return f"Exactly({plain}, {quoted(subject.const)})"
    if facts.closed and facts.enum:
        return f"Named({plain}, {facts.enum.__name__})"
    if facts.bounds:
        return f"Within({plain}, {facts.bounds[0]}, {facts.bounds[1]})"
    return ""


def value_type(subject: Field) -> str:
    """Return the annotation of a field's value."""
    assert subject.shape is not None
    if subject.facts.boolean:
        return "bool"
    if subject.facts.closed and subject.facts.enum:
        return subject.facts.enum.__name__
    return _type(subject.shape)


def _keep(written: dict[str, str], name: str, source: str) -> str:
    written.setdefault(name, source)
    return name


def _expression(shape: Shape, written: dict[str, str]) -> str:
    match shape:
        case Number() | Varint():
            return _number(shape)
        case Raw():
            return _keep(written, f"_BYTES_{shape.size}", f"Raw({shape.size})")
        case Nested():
            return _keep(written, f"_{snake(shape.name).upper()}", f"Part({shape.name})")
        case Blob():
            return _blob(shape, written)
        case Maybe() | Many() | Filled() | Sized():
            return _container(shape, written)
    return _per_value(shape, written)


def _per_value(shape: Shape, written: dict[str, str]) -> str:
    match shape:
        case PerValue():
            size = shape.size or "BITS"
            source = f"PerValue({shape.size})" if shape.size else "PerBits()"
            return _keep(written, f"_PER_VALUE_{size}", source)
        case Each():
            item = _expression(shape.item, written)
            source = f"Each({item}, {shape.item.minimum})"
            return _keep(written, f"_EACH_{item.lstrip('_')}", source)
        case Elements():
            return _keep(written, f"_ELEMENTS_{shape.size}", f"Elements({shape.size})")
    return _PLAIN[type(shape)]


def _sections(shape: Sections) -> str:
    rows = [f"        0x{tag:02X}: Part({each.name})," for tag, each in shape.cases]
    return "\n".join(["Sections(", "    {", *rows, "    }", ")"])


def _number(shape: Number | Varint) -> str:
    if isinstance(shape, Varint):
        return "ZIGZAG" if shape.zigzag else "LEB128"
    little = "LE" if shape.little and shape.minimum > 1 else ""
    return f"{'U' if shape.code.isupper() else 'I'}{8 * shape.minimum}{little}"


def _container(shape: Maybe | Many | Filled | Sized, written: dict[str, str]) -> str:
    item = _expression(shape.item, written)
    words = item.lstrip("_")
    if isinstance(shape, Maybe):
        return _keep(written, f"_MAYBE_{words}", f"Maybe({item})")
    if isinstance(shape, Filled):
        return _keep(written, f"_ALL_{words}", f"Filled({item})")
    if isinstance(shape, Sized):
        prefix = _expression(shape.prefix, written)
        return _keep(written, f"_{prefix}_SIZED_{words}", f"Sized({prefix}, {item})")
    count = _expression(shape.count, written)
    source = f"Many({count}, {item}, {shape.item.minimum})"
    return _keep(written, f"_{count}_LIST_{words}", source)


def _blob(shape: Blob, written: dict[str, str]) -> str:
    prefix = _expression(shape.prefix, written)
    kind = "Text" if shape.text else "Octets"
    plain = _keep(written, f"_{kind.upper()}_{prefix}", f"{kind}({prefix})")
    if not shape.nullable:
        return plain
    return _keep(written, f"_NULLABLE{plain}", f"Nullable({prefix}, {plain})")


def _choice(shape: Choice, message: Message) -> str:
    names = message.field(shape.tag).facts.enum
    assert names is not None
    rows = [
        f"    {names.__name__}.{names(tag).name}: Part({each.name})," for tag, each in shape.cases
    ]
    return "\n".join(["Choice(", "    {", *(f"    {row}" for row in rows), "    }", ")"])


def _type(shape: Shape) -> str:
    match shape:
        case Number() | Varint():
            return "int"
        case Nested():
            return shape.name
        case Choice():
            return " | ".join([*shape.names, "None"])
        case Maybe() | Many() | Filled() | Sized():
            return _container_type(shape)
        case Nulls() | Each() | Slices() | Sections():
            return _column_type(shape)
    plain = "str" if isinstance(shape, Blob) and shape.text else "bytes"
    return f"{plain} | None" if isinstance(shape, Blob) and shape.nullable else plain


def _column_type(shape: Nulls | Each | Slices | Sections) -> str:
    if isinstance(shape, Nulls):
        return "bytes | None"
    if isinstance(shape, Slices):
        return "list[bytes]"
    item = " | ".join(shape.names) if isinstance(shape, Sections) else _type(shape.item)
    return f"list[{item}]"


def _container_type(shape: Maybe | Many | Filled | Sized) -> str:
    item = _type(shape.item)
    if isinstance(shape, Maybe):
        return f"{item} | None"
    return item if isinstance(shape, Sized) else f"list[{item}]"


def alias(message: Message, subject: Field) -> list[str]:
    """Return the definition of a name for a type that is too long for one line, if it is."""
    name, union = f"{message.name}{subject.name.title()}", value_type(subject)
    if len(union) <= WIDTH - 40:
        return []
    opening, closing = ("list[", "]") if union.startswith("list[") else ("(", ")")
    first, *others = union.removeprefix("list[").removesuffix("]").split(" | ")
    lines = [f"    {first}", *(f"    | {each}" for each in others)]
    return [f"{name}: TypeAlias = {opening}", *lines, closing]


def annotation(message: Message, subject: Field) -> str:
    """Return the annotation of a field, by its name where the type is too long."""
    if alias(message, subject):
        return f"{message.name}{subject.name.title()}"
    return value_type(subject)
