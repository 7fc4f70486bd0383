"""The C functions that read and write one message."""

from collections.abc import Iterator

from lance_spec.emit._words import c_bytes, snake
from lance_spec.ir.nodes import Difference, Field, LengthField, Message


def c_type(field: Field) -> str:
    """Return the C type of a field's value."""
    return f"uint{8 * (field.size or 0)}_t" if field.is_integer else "struct lance_bytes"


def reader(message: Message) -> Iterator[str]:
    """Write ``lance_<message>_read``."""
    name = snake(message.name)
    yield f"/* Read a whole {message.name}; variable parts point into `data`. */"
    yield f"static inline enum lance_result lance_{name}_read("
    yield f"    struct lance_{name} *out, const uint8_t *data, size_t size)"
    yield "{"
    yield "    struct lance_reader in = {data, size, LANCE_OK};"
    for each in message.fields:
        yield from _read(message, each)
    if not message.given:
        yield "    out->nothing = 0;"
    yield "    return lance_finish_read(&in);"
    yield "}"


def writer(message: Message) -> Iterator[str]:
    """Write ``lance_<message>_write``."""
    name = snake(message.name)
    yield f"/* Write a {message.name} into `room` bytes; `size` receives how many it takes. */"
    yield f"static inline enum lance_result lance_{name}_write("
    yield f"    const struct lance_{name} *in, uint8_t *data, size_t room, size_t *size)"
    yield "{"
    yield "    struct lance_writer out = {data, room, LANCE_OK};"
    for each in message.fields:
        yield from _write(message, each)
    if not message.given:
        yield "    (void)in;"
    yield "    *size = room - out.left;"
    yield "    return out.result;"
    yield "}"


def _read(message: Message, field: Field) -> Iterator[str]:
    kind = c_type(field)
    taken = f"lance_take_uint(&in, {field.size}u)"
    if field.facts.reserved:
        yield f"    lance_take_zeros(&in, {field.size}u);"
    elif isinstance(field.const, bytes):
        yield f"    lance_take_const(&in, {c_bytes(field.const)}, {field.size}u);"
    elif field.const is not None:
        yield f"    lance_require(&in.result, {taken} == {field.const}u);"
    elif field.length_of:
        yield f"    {kind} {field.name} = ({kind}){taken};"
        yield from _bounded(field, "in", field.name)
    elif field.is_integer:
        yield f"    out->{field.name} = ({kind}){taken};"
        yield from _bounded(field, "in", f"out->{field.name}")
    else:
        yield from _read_bytes(message, field)


def _read_bytes(message: Message, field: Field) -> Iterator[str]:
    length = f"{field.size}u" if field.size is not None else "in.left"
    if isinstance(field.length, Difference):
        end, start = f"out->{field.length.end}", f"out->{field.length.start}"
        yield f"    lance_require(&in.result, {end} >= {start});"
        length = f"{end} - {start}"
    elif isinstance(field.length, LengthField):
        given = message.field(field.length.name).is_given
        length = f"out->{field.length.name}" if given else field.length.name
    yield f"    out->{field.name} = lance_take(&in, {length});"


def _write(message: Message, field: Field) -> Iterator[str]:
    if field.facts.reserved:
        yield f"    lance_put_zeros(&out, {field.size}u);"
    elif isinstance(field.const, bytes):
        yield f"    lance_put(&out, {c_bytes(field.const)}, {field.size}u);"
    elif field.const is not None:
        yield f"    lance_put_uint(&out, {field.const}u, {field.size}u);"
    elif field.length_of:
        length = f"in->{field.length_of}.size"
        yield f"    lance_require(&out.result, {length} <= {_largest(field)}u);"
        yield f"    lance_put_uint(&out, {length}, {field.size}u);"
    elif field.is_integer:
        yield from _bounded(field, "out", f"in->{field.name}")
        yield f"    lance_put_uint(&out, in->{field.name}, {field.size}u);"
    else:
        yield from _write_bytes(message, field)


def _write_bytes(message: Message, field: Field) -> Iterator[str]:
    stated = f"{field.size}u" if field.size is not None else ""
    if isinstance(field.length, Difference):
        stated = f"in->{field.length.end} - in->{field.length.start}"
    elif isinstance(field.length, LengthField) and message.field(field.length.name).is_given:
        stated = f"in->{field.length.name}"
    if stated:
        yield f"    lance_require(&out.result, in->{field.name}.size == {stated});"
    yield f"    lance_put(&out, in->{field.name}.data, in->{field.name}.size);"


def _bounded(field: Field, place: str, value: str) -> Iterator[str]:
    if bounds := field.facts.bounds:
        low = f"{value} >= {bounds[0]}u && " if bounds[0] else ""
        yield f"    lance_require(&{place}.result, {low}{value} <= {bounds[1]}u);"


def _largest(field: Field) -> int:
    return field.facts.bounds[1] if field.facts.bounds else 256 ** (field.size or 0) - 1
