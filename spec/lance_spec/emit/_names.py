"""How generated Python names and types things."""

import builtins

from lance_spec.emit._words import snake
from lance_spec.ir.nodes import Field, Fixed, Message, Var

_LOCALS = frozenset({"cls", "data", "end", "self", "sink", "source", "struct"})


def layouts(message: Message) -> list[tuple[str, Fixed]]:
    """Return the runs of fixed fields, each under the name of its `Layout`."""
    runs = [each for each in message.segments if isinstance(each, Fixed)]
    base = f"_{snake(message.name).upper()}"
    if len(runs) == 1:
        return [(base, runs[0])]
    return [
        (f"{base}_{part.upper()}", run) for part, run in zip(parts(len(runs)), runs, strict=True)
    ]


def parts(count: int) -> list[str]:
    """Return names for the runs of fixed fields in a message."""
    if count <= 2:
        return ["head", "tail"][:count]
    return [f"part_{number}" for number in range(1, count + 1)]


def local(field: Field) -> str:
    """Return the local variable that holds a decoded field."""
    if field.name in _LOCALS or hasattr(builtins, field.name):
        return f"{field.name}_"
    return field.name


def python_type(field: Field) -> str:
    """Return the annotation of a field's value."""
    if field.facts.boolean:
        return "bool"
    if field.is_integer:
        return "int"
    return "Buffer" if field.facts.borrowed else "bytes"


def constants(message: Message) -> list[Field]:
    """Return the fields with one value that means something."""
    return [f for f in message.fields if f.const is not None and not f.facts.reserved]


def sealing(message: Message) -> Field | None:
    """Return the checksum field that the codec can compute: the last one, of a fixed algorithm."""
    last = message.fields[-1] if message.fields else None
    checksum = last.facts.checksum if last else None
    return last if checksum and checksum.algorithm != "dialect" else None


def literal(field: Field) -> str:
    """Return a field's constant as source; long runs of zeros as ``bytes(n)``."""
    if isinstance(field.const, bytes) and not any(field.const):
        return f"bytes({len(field.const)})"
    return quoted(field.const)


def quoted(value: object) -> str:
    """Return a value as source, text and bytes in the quotes that the formatter prefers."""
    if not isinstance(value, str | bytes):
        return repr(value)
    text = value if isinstance(value, str) else value.decode("latin-1")
    body = text.encode("unicode_escape").decode("ascii")
    mark = "'" if body.count('"') > body.count("'") else '"'
    prefix = "b" if isinstance(value, bytes) else ""
    return f"{prefix}{mark}{body.replace(mark, chr(92) + mark)}{mark}"


def last_var(message: Message) -> Var | None:
    """Return the variable field that ends a message."""
    last = message.segments[-1] if message.segments else None
    return last if isinstance(last, Var) else None
