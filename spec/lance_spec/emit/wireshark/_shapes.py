"""How the shapes of nested messages are written as Lua tables."""

import json
from collections.abc import Iterator, Mapping
from enum import IntEnum, IntFlag
from typing import Final

from lance_spec.emit._words import snake
from lance_spec.ir.nodes import Field
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

_BARE: Final[Mapping[type, str]] = {
    BitPerValue: 'kind = "bits"',
    Nulls: 'kind = "nulls"',
    Remainder: 'kind = "rest"',
    Slices: 'kind = "slices"',
}
_ITEMS: Final[Mapping[type, str]] = {
    Each: "each",
    Filled: "filled",
    Many: "many",
    Maybe: "maybe",
    Sized: "sized",
}


def table(shape: Shape) -> str:
    """Return a shape as a Lua table."""
    return f"{{{', '.join(_parts(shape))}}}"


def leaf(shape: Shape) -> str:
    """Return how the display shows single values: ``uint``, ``int``, ``text``, ``bytes``, or none.

    Lists and options show the values inside them.
    """
    match shape:
        case Number():
            return f"{'uint' if shape.code.isupper() else 'int'}{8 * shape.minimum}"
        case Varint():
            return "int64" if shape.zigzag else "uint64"
        case Blob(text=True):
            return "text"
        case Maybe() | Many() | Filled() | Sized() | Each():
            return leaf(shape.item)
        case Nested() | Choice() | Sections():
            return ""
    return "bytes"


def names(kind: type[IntEnum | IntFlag]) -> str:
    """Return the names of values as a Lua table."""
    rows = (f'[{int(each)}] = "{each.name}"' for each in kind)
    return f"{{{', '.join(rows)}}}"


def field_table(field: Field) -> str:
    """Return a field as a Lua table, with what the facts say about its value."""
    return f"{{{', '.join(_field(field))}}}"


def _field(field: Field) -> Iterator[str]:
    assert field.shape is not None
    facts = field.facts
    yield f'name = "{field.name}"'
    yield f'leaf = "{leaf(field.shape)}"'
    yield f"shape = {table(field.shape)}"
    if field.const is not None:
        raw = field.const.hex() if isinstance(field.const, bytes) else ""
        yield f'const = "{raw}"' if raw else f"const = {field.const!r}"
    if facts.bounds:
        yield f"low = {facts.bounds[0]}, high = {facts.bounds[1]}"
    if facts.closed:
        yield "closed = true"
    if facts.since is not None:
        yield f"since = {facts.since}"
    if facts.until is not None:
        yield f"until_ = {facts.until}"
    if facts.checksum:
        yield f'guards = "{facts.checksum.over}"'
    if facts.enum:
        yield f"names = {names(facts.enum)}"
    yield f"doc = {json.dumps(f'{facts.doc} ({facts.section})')}"


def _parts(shape: Shape) -> Iterator[str]:
    match shape:
        case Number():
            sign = str(shape.code.islower()).lower()
            little = str(shape.little).lower()
            yield f'kind = "number", size = {shape.minimum}, signed = {sign}, little = {little}'
        case Varint():
            yield f'kind = "varint", zigzag = {str(shape.zigzag).lower()}'
        case Raw():
            yield f'kind = "raw", size = {shape.size}'
        case Blob():
            yield from _blob(shape)
        case Measured():
            yield f'kind = "measured", field = "{shape.field}", minus = {shape.minus}'
        case Nested():
            yield f'kind = "nested", message = "{snake(shape.name)}"'
        case Choice():
            yield f'kind = "choice", tag = "{shape.tag}", cases = {_cases(shape)}'
        case Maybe() | Many() | Filled() | Sized() | Each():
            yield from _container(shape)
        case _:
            yield from _column(shape)


def _blob(shape: Blob) -> Iterator[str]:
    yield f'kind = "{"text" if shape.text else "blob"}", prefix = {table(shape.prefix)}'
    if shape.nullable:
        yield "nullable = true"


def _container(shape: Maybe | Many | Filled | Sized | Each) -> Iterator[str]:
    yield f'kind = "{_ITEMS[type(shape)]}"'
    if isinstance(shape, Many):
        yield f"prefix = {table(shape.count)}, least = {shape.item.minimum}"
    if isinstance(shape, Sized):
        yield f"prefix = {table(shape.prefix)}"
    if isinstance(shape, Each):
        yield f"least = {shape.item.minimum}"
    yield f"item = {table(shape.item)}"


def _column(shape: Shape) -> Iterator[str]:
    match shape:
        case PerValue():
            yield f'kind = "per_value", size = {shape.size}, bits_field = "{shape.bits}"'
        case Timestamps():
            yield f'kind = "times", encoding = "{shape.encoding}"'
        case Elements():
            yield f'kind = "elements", dims = "{shape.dims}", size = {shape.size}'
        case Sections():
            yield f'kind = "sections", of = "{shape.of}", tag = "{shape.tag}"'
            yield f'rows = "{shape.rows}", cases = {_cases(shape)}'
        case _:
            yield _BARE[type(shape)]


def _cases(shape: Choice | Sections) -> str:
    rows = (f'[{tag}] = "{snake(nested.name)}"' for tag, nested in shape.cases)
    return f"{{{', '.join(rows)}}}"
