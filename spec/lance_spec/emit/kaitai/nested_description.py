"""Back end: Kaitai Struct specifications for families whose messages nest."""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from lance_spec.emit._enums import named_values
from lance_spec.emit._words import citation, snake, with_unit
from lance_spec.emit.kaitai._types import COLUMNS, FRAME, LEB128
from lance_spec.emit.kaitai.description import enum, head, text
from lance_spec.ir.nodes import Family, Field, Message
from lance_spec.ir.shapes import (
    BitPerValue,
    Blob,
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
    Prefix,
    Sections,
    Shape,
    Slices,
    Timestamps,
    Varint,
)

FAMILIES: Final = ("groups", "qwp")
"""The families that have a Kaitai form."""

_BARE: Final[Mapping[type, str]] = {
    Nulls: "type: nulls(rows)",
    BitPerValue: "size: (nulls.present + 7) / 8",
    Slices: "type: slices(nulls.present)",
}
"""Parts of columns that need nothing but the rows."""

Lines: TypeAlias = Iterator[str]


def render(family: Family) -> str:
    """Return ``lance_<family>.ksy``; a program reads the type of the message it has."""
    lines = [*head(family), "  bit-endian: le", f"doc: {text(family.doc)}", "types:"]
    if any(_is_varint(each.shape) for m in family.messages for each in m.fields):
        lines += [*LEB128.splitlines(), *COLUMNS.splitlines()]
    for message in family.messages:
        lines += _type(message)
    for message in family.messages:
        lines += [line for each in message.fields for line in _section_type(message, each)]
    lines += _texts(family)
    enums = [line for names in named_values(family) for line in enum(names)]
    lines += ["enums:", *enums] if enums else []
    return "\n".join(lines) + "\n"


def _is_varint(shape: Shape | None) -> bool:
    match shape:
        case Varint():
            return True
        case Blob(prefix=prefix) | Many(count=prefix):
            return isinstance(prefix, Varint)
    return False


def _is_columnar(message: Message) -> bool:
    return any(isinstance(each.shape, Nulls) for each in message.fields)


def _type(message: Message) -> Lines:
    yield f"  {snake(message.name)}:"
    yield f"    doc: {text(message.doc)}"
    yield f"    doc-ref: {text(citation(message.section, message.ambiguities))}"
    if _is_columnar(message):
        yield from _params("rows")
    if message.fields:
        yield "    seq:"
    lengths = {f.name: f.shape for f in message.fields if isinstance(f.shape, Number | Varint)}
    for field in message.fields:
        assert field.shape is not None
        yield from _field(field, field.shape, lengths)
    if message.name == "QwpMessage":
        yield from FRAME.splitlines()


def _params(*names: str) -> Lines:
    yield "    params:"
    for each in names:
        yield f"      - id: {each}"
        yield "        type: u8"


def _field(field: Field, shape: Shape, lengths: Mapping[str, Prefix]) -> Lines:
    match shape:
        case Blob():
            yield from _number(f"len_{field.name}", shape.prefix)
            kind = ["type: str", "encoding: UTF-8"] if shape.text else []
            yield from _entry(field, [f"size: {_value(f'len_{field.name}', shape.prefix)}", *kind])
        case Many():
            yield from _number(f"num_{field.name}", shape.count)
            count = _value(f"num_{field.name}", shape.count)
            yield from _entry(field, _repeated(shape.item, count))
        case Maybe():
            yield from _number(f"has_{field.name}", Number("B"))
            yield "        valid:"
            yield "          max: 1"
            yield from _entry(field, [_item(shape.item), f"if: has_{field.name} == 1"])
        case Elements():
            yield from _products(shape)
            yield from _entry(field, [f'size: "{_array_size(shape)}"'])
        case _:
            yield from _entry(field, _kind(field, shape, lengths))


def _entry(field: Field, kind: list[str]) -> Lines:
    yield f"      - id: {field.name}"
    yield from (f"        {line}" for line in (*kind, *_valid(field)))
    yield f"        doc: {text(with_unit(field))}"
    yield f"        doc-ref: {text(citation(field.facts.section, field.facts.ambiguities))}"


def _kind(field: Field, shape: Shape, lengths: Mapping[str, Prefix]) -> list[str]:
    if isinstance(field.const, bytes):
        return [f"contents: [{', '.join(map(str, field.const))}]"]
    match shape:
        case Number() | Varint() | Nested():
            return [_item(shape)]
        case Measured():
            return [f"size: {_value(shape.field, lengths[shape.field])}"]
        case Filled():
            return [_item(shape.item), "repeat: eos"]
    return _column(shape)


def _column(shape: Shape) -> list[str]:
    """Return how a part of a column is read; ``nulls`` knows how many values there are."""
    match shape:
        case PerValue():
            size = str(shape.size) if shape.size else f"(({shape.bits}.value + 7) / 8)"
            return [f"size: nulls.present * {size}"]
        case Each():
            return _repeated(shape.item, "nulls.present")
        case Timestamps():
            return [f"type: times({shape.encoding}.to_i, nulls.present)"]
        case Sections():
            made = (
                f"{_section_name(shape)}({shape.of}[_index].{shape.tag}.to_i, {shape.rows}.value)"
            )
            return [f"type: {made}", "repeat: expr", f"repeat-expr: {shape.of}.size"]
    if type(shape) in _BARE:
        return [_BARE[type(shape)]]
    raise ValueError(f"Kaitai has no form for {shape.type_name}; add one to the back end")


def _repeated(item: Shape, count: str) -> list[str]:
    return [_item(item), "repeat: expr", f"repeat-expr: {count}"]


def _item(shape: Shape) -> str:
    """Return the type of a value that may be repeated."""
    match shape:
        case Number():
            return f"type: {'u' if shape.code.isupper() else 's'}{shape.minimum}"
        case Varint(zigzag=False):
            return "type: leb128"
        case Nested():
            return f"type: {snake(shape.name)}"
        case Blob():
            return f"type: text_{shape.prefix.type_name}"
    raise ValueError(f"Kaitai has no form for {shape.type_name}; add one to the back end")


def _number(name: str, shape: Prefix) -> Lines:
    yield f"      - id: {name}"
    yield f"        {_item(shape)}"


def _value(name: str, shape: Prefix) -> str:
    return f"{name}.value" if isinstance(shape, Varint) else name


def _valid(field: Field) -> list[str]:
    facts = field.facts
    if isinstance(field.const, int):
        return [f"valid: {field.const}"]
    if facts.enum and facts.closed:
        return [f"enum: {snake(facts.enum.__name__)}", "valid:", "  in-enum: true"]
    if isinstance(field.shape, Elements | Many) and field.name == "dims":
        return ["valid:", "  min: 0"]
    if facts.bounds is None:
        return [f"enum: {snake(facts.enum.__name__)}"] if facts.enum else []
    low, high = facts.bounds
    if isinstance(field.shape, Varint):
        return ["valid:", f"  expr: _.value >= {low} and _.value <= {high}"]
    return ["valid:", f"  min: {low}", f"  max: {high}"]


def _products(shape: Elements) -> Lines:
    yield "      - id: products"
    yield "        type: product(_index)"
    yield "        repeat: expr"
    yield f"        repeat-expr: {shape.dims}.size"
    yield '        doc: "No bytes: how many elements the dimensions up to each make"'


def _array_size(shape: Elements) -> str:
    return f"({shape.dims}.size == 0 ? 1 : products.last.value) * {shape.size}"


def _section_name(shape: Sections) -> str:
    names = {nested.name for _, nested in shape.cases}
    local, gorilla = "LocalSymbolColumn" in names, "TimestampColumn" in names
    return f"{'local_' * local}{'gorilla_' * gorilla}section"


def _section_type(message: Message, field: Field) -> Lines:
    if not isinstance(field.shape, Sections):
        return
    of = next(each.shape for each in message.fields if each.name == field.shape.of)
    assert isinstance(of, Many)
    yield f"  {_section_name(field.shape)}:"
    yield '    doc: "The values of one column"'
    yield from _params("type", "rows")
    yield "    seq:"
    yield "      - id: section"
    yield "        type:"
    yield "          switch-on: type"
    yield "          cases:"
    for tag, nested in field.shape.cases:
        yield f"            {tag}: {snake(nested.name)}(rows)"


def _texts(family: Family) -> Lines:
    """Write the types of texts that stand in lists."""
    prefixes: dict[str, Prefix] = {}
    for message in family.messages:
        for field in message.fields:
            if isinstance(field.shape, Many | Filled) and isinstance(field.shape.item, Blob):
                prefixes[field.shape.item.prefix.type_name] = field.shape.item.prefix
    for name, prefix in prefixes.items():
        yield f"  text_{name}:"
        yield "    seq:"
        yield from _number("len", prefix)
        yield "      - id: value"
        yield f"        size: {_value('len', prefix)}"
        yield "        type: str"
        yield "        encoding: UTF-8"
