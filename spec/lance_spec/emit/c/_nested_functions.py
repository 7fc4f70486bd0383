"""The C functions that take and put one nested message."""

from collections.abc import Iterator, Mapping
from typing import Final

from lance_spec.emit._words import c_bytes, snake
from lance_spec.ir.nodes import Field, Message
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

_LISTS: Final = dict.fromkeys((Many, Filled, Each, Sections), "lance_list")
_BYTES: Final = dict.fromkeys(
    (Blob, Measured, Nulls, PerValue, BitPerValue, Elements, Timestamps), "lance_bytes"
)
_STRUCTS: Final[Mapping[type, str]] = {**_LISTS, **_BYTES, Slices: "lance_slices"}
"""The struct that a shape's value is kept in."""


def is_columnar(message: Message) -> bool:
    """Whether a message is the section of a column, which depends on the rows of its table."""
    return any(isinstance(each.shape, Nulls) for each in message.fields)


def c_type(shape: Shape) -> str:
    """Return the C type of a value.

    Raises:
        ValueError: C has no form for the shape.
    """
    match shape:
        case Number():
            return f"{'u' if shape.code.isupper() else ''}int{8 * shape.minimum}_t"
        case Varint(zigzag=False):
            return "uint64_t"
        case Nested():
            return f"struct lance_{snake(shape.name)}"
        case Maybe():
            return c_type(shape.item)
    kind = _STRUCTS.get(type(shape))
    if kind is None or (isinstance(shape, Blob) and shape.nullable):
        raise ValueError(f"C has no form for {shape.type_name}; add one to the back end")
    return f"struct {kind}"


def taker(message: Message) -> Iterator[str]:
    """Write ``lance_<message>_take``, which reads one where a reader stands."""
    name = snake(message.name)
    rows = ", uint64_t rows" if is_columnar(message) else ""
    yield f"/* Take one {message.name}; variable parts point into what is read. */"
    yield f"static inline void lance_{name}_take("
    yield f"    struct lance_reader *in, struct lance_{name} *out{rows})"
    yield "{"
    if rows:
        yield "    uint64_t present = rows;"
    for each in message.fields:
        yield from _take(message, each)
    if not message.given:
        yield "    (void)in;"
        yield "    out->nothing = 0;"
    yield "}"


def putter(message: Message) -> Iterator[str]:
    """Write ``lance_<message>_put``, which writes one where a writer stands."""
    name = snake(message.name)
    yield f"/* Put one {message.name}; lists are put as the bytes they hold. */"
    yield f"static inline void lance_{name}_put("
    yield f"    struct lance_writer *out, const struct lance_{name} *in)"
    yield "{"
    for each in message.fields:
        yield from _put(each)
    if not message.given:
        yield "    (void)out;"
        yield "    (void)in;"
    yield "}"


def _take(message: Message, field: Field) -> Iterator[str]:
    assert field.shape is not None
    if isinstance(field.const, bytes):
        yield f"    lance_take_const(in, {c_bytes(field.const)}, {len(field.const)}u);"
    elif field.const is not None:
        yield f"    lance_require(&in->result, {_taken(field.shape)} == {field.const});"
    elif field.length_of:
        yield f"    {c_type(field.shape)} {field.name} = {_taken(field.shape)};"
        yield from _judged(field, field.name, "in")
    elif isinstance(field.shape, Number | Varint):
        yield f"    out->{field.name} = {_taken(field.shape)};"
        yield from _judged(field, f"out->{field.name}", "in")
    else:
        yield from _take_shape(message, field, field.shape)


def _take_shape(message: Message, field: Field, shape: Shape) -> Iterator[str]:
    target = f"out->{field.name}"
    match shape:
        case Blob():
            yield f"    {target} = lance_take(in, {_taken(shape.prefix)});"
            if shape.text:
                yield f"    lance_require_utf8(&in->result, {target});"
        case Measured():
            yield f"    {target} = lance_take(in, {shape.field});"
        case Nested():
            yield f"    lance_{snake(shape.name)}_take(in, &{target});"
        case Maybe():
            yield from _take_maybe(message, field, shape)
        case Many() | Filled() | Each():
            yield from _take_list(field, shape)
        case _:
            yield from _take_column(field, shape)


def _take_maybe(message: Message, field: Field, shape: Maybe) -> Iterator[str]:
    flag = f"out->has_{field.name}"
    yield f"    {flag} = (uint8_t)lance_take_uint(in, 1);"
    yield f"    lance_require(&in->result, {flag} <= 1);"
    yield f"    if ({flag} == 1) {{"
    yield from (f"    {line}" for line in _take_shape(message, field, shape.item))
    yield "    }"


def _take_list(field: Field, shape: Many | Filled | Each) -> Iterator[str]:
    target = f"out->{field.name}"
    start = f"{field.name}_at"
    count = "present" if isinstance(shape, Each) else "0"
    count = _taken(shape.count) if isinstance(shape, Many) else count
    yield f"    {target}.count = {count};"
    yield f"    const uint8_t *{start} = in->next;"
    if isinstance(shape, Filled):
        yield f"    for (; in->left > 0 && in->result == LANCE_OK; {target}.count++) {{"
    else:
        yield f"    if (lance_fits(in, {target}.count, {shape.item.minimum}u))"
        limit = f"n < {target}.count && in->result == LANCE_OK"
        yield f"        for (uint64_t n = 0; {limit}; n++) {{"
    yield from _skip(shape.item)
    yield "        }" if not isinstance(shape, Filled) else "    }"
    yield f"    {target}.bytes = lance_since(in, {start});"


def _skip(item: Shape) -> Iterator[str]:
    """Write what goes over one value of a list."""
    match item:
        case Nested():
            yield f"            struct lance_{snake(item.name)} each;"
            yield f"            lance_{snake(item.name)}_take(in, &each);"
        case Number() | Varint():
            yield f"            (void){_taken(item)};"
        case Blob():
            yield f"            struct lance_bytes each = lance_take(in, {_taken(item.prefix)});"
            yield "            lance_require_utf8(&in->result, each);"
        case _:
            raise ValueError(f"C has no list of {item.type_name}; add one to the back end")


def _take_column(field: Field, shape: Shape) -> Iterator[str]:
    target = f"out->{field.name}"
    match shape:
        case Nulls():
            yield f"    {target} = lance_take_nulls(in, rows, &present);"
        case PerValue():
            size = f"{shape.size}u" if shape.size else f"lance_padded(out->{shape.bits}, 8)"
            yield f"    {target} = lance_take_values(in, present, {size});"
        case BitPerValue():
            yield f"    {target} = lance_take(in, lance_padded(present, 8));"
        case Slices():
            yield f"    {target} = lance_take_slices(in, present);"
        case Timestamps():
            yield f"    {target} = lance_take_times(in, out->{shape.encoding}, present);"
        case Elements():
            yield f"    {target} = lance_take_elements(in, out->{shape.dims}, {shape.size}u);"
        case Sections():
            yield from _take_sections(field, shape)


def _take_sections(field: Field, shape: Sections) -> Iterator[str]:
    target, of = f"out->{field.name}", f"out->{shape.of}"
    yield f"    struct lance_reader definitions = lance_reader_of({of}.bytes);"
    yield f"    const uint8_t *{field.name}_at = in->next;"
    yield f"    {target}.count = {of}.count;"
    yield f"    for (uint64_t n = 0; n < {of}.count && in->result == LANCE_OK; n++) {{"
    yield "        struct lance_column_definition column;"
    yield "        struct lance_section each;"
    yield "        lance_column_definition_take(&definitions, &column);"
    taken = f"in, column.{shape.tag}, out->{shape.rows}, &each"
    yield f"        {section_function(shape)}_take({taken});"
    yield "    }"
    yield f"    {target}.bytes = lance_since(in, {field.name}_at);"


def section_function(shape: Sections) -> str:
    """Return what the functions for a way to lay out sections begin with."""
    names = dict(shape.cases)
    gorilla = any(each.name == "TimestampColumn" for each in names.values())
    local = any(each.name == "LocalSymbolColumn" for each in names.values())
    return f"lance_{'local_' * local}{'gorilla_' * gorilla}section"


def _put(field: Field) -> Iterator[str]:
    assert field.shape is not None
    if isinstance(field.const, bytes):
        yield f"    lance_put(out, {c_bytes(field.const)}, {len(field.const)}u);"
    elif field.const is not None:
        yield from _put_number(field.shape, str(field.const))
    elif field.length_of:
        length = f"in->{field.length_of}.size"
        yield from _judged(field, length, "out")
        yield from _put_number(field.shape, length)
    else:
        yield from _judged(field, f"in->{field.name}", "out")
        yield from _put_shape(field.name, field.shape)


def _put_shape(name: str, shape: Shape) -> Iterator[str]:
    value = f"in->{name}"
    match shape:
        case Number() | Varint():
            yield from _put_number(shape, value)
        case Nested():
            yield f"    lance_{snake(shape.name)}_put(out, &{value});"
        case Maybe():
            yield f"    lance_put_uint(out, in->has_{name} != 0, 1);"
            yield f"    if (in->has_{name}) {{"
            yield from (f"    {line}" for line in _put_shape(name, shape.item))
            yield "    }"
        case Blob():
            yield from _put_number(shape.prefix, f"{value}.size")
            if shape.text:
                yield f"    lance_require_utf8(&out->result, {value});"
            yield f"    lance_put(out, {value}.data, {value}.size);"
        case Many():
            yield from _put_number(shape.count, f"{value}.count")
            yield f"    lance_put(out, {value}.bytes.data, {value}.bytes.size);"
        case Filled() | Each() | Sections():
            yield f"    lance_put(out, {value}.bytes.data, {value}.bytes.size);"
        case Nulls():
            yield f"    lance_put_nulls(out, {value});"
        case Slices():
            yield f"    lance_put(out, {value}.offsets.data, {value}.offsets.size);"
            yield f"    lance_put(out, {value}.values.data, {value}.values.size);"
        case _:
            yield f"    lance_put(out, {value}.data, {value}.size);"


def _put_number(shape: Shape, value: str) -> Iterator[str]:
    if isinstance(shape, Varint):
        yield f"    lance_put_varint(out, {value});"
        return
    assert isinstance(shape, Number)
    if shape.minimum < 8 and not value.startswith("in->") and not value.isdigit():
        raise ValueError(f"cannot write {value}")
    if value.endswith((".size", ".count")) and shape.minimum < 8:
        yield f"    lance_require(&out->result, {value} <= {256**shape.minimum - 1}u);"
    yield f"    lance_put_uint(out, (uint64_t){value}, {shape.minimum}u);"


def _taken(shape: Prefix | Shape) -> str:
    if isinstance(shape, Varint):
        return "lance_take_varint(in)"
    assert isinstance(shape, Number)
    if not shape.little and shape.minimum > 1:
        raise ValueError("the C runtime reads numbers with their low byte first; extend it")
    return f"({c_type(shape)})lance_take_uint(in, {shape.minimum}u)"


def _judged(field: Field, value: str, place: str) -> Iterator[str]:
    facts = field.facts
    if facts.closed and facts.enum:
        allowed = " || ".join(f"{value} == {int(each)}" for each in facts.enum)
        yield f"    lance_require(&{place}->result, {allowed});"
    elif facts.bounds:
        limits = _limits(field, value, place)
        if limits:
            yield f"    lance_require(&{place}->result, {' && '.join(limits)});"


def _limits(field: Field, value: str, place: str) -> list[str]:
    """Return the comparisons that can fail; a value of another width is held against both ends."""
    assert isinstance(field.shape, Number | Varint)
    assert field.facts.bounds is not None
    lowest, highest = field.facts.bounds
    own = (0, 2**64 - 1) if place == "out" and field.length_of else field.shape.limits
    found = [f"{value} >= {lowest}u"] if lowest > own[0] else []
    return [*found, f"{value} <= {highest}u"] if highest < own[1] else found
