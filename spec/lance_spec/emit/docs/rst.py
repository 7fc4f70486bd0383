"""Back end: field tables in reStructuredText."""

from collections.abc import Iterator

from lance_spec.emit._words import citation, with_unit
from lance_spec.emit.docs._grid import length_words, offset_words
from lance_spec.ir.nodes import Field, LengthField, Message

_COLUMNS = ("Offset", "Size", "Type", "Field", "Meaning", "Defined in")


def table(message: Message) -> str:
    """Return the fields of a message as a ``list-table`` directive.

    Ids of the ambiguity register stand in plain text, for a page to turn into links. A message
    without fields has no table: the result is empty.
    """
    if not message.fields:
        return ""
    offsets = offset_words(message)
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 10 10 8 16 36 20", ""]
    lines += _row(_COLUMNS)
    for field in message.fields:
        lines += _row(
            (
                offsets[field.name],
                _size(field),
                field.type_name,
                f"``{field.name}``",
                f"{_meaning(field)}.",
                citation(field.facts.section, field.facts.ambiguities),
            )
        )
    return "\n".join(lines) + "\n"


def _row(columns: tuple[str, ...]) -> Iterator[str]:
    for number, column in enumerate(columns):
        yield f"   {'*' if number == 0 else ' '} - {column}"


def _size(field: Field) -> str:
    words = length_words(field)
    return f"``{words}``" if isinstance(field.length, LengthField) else words


def _meaning(field: Field) -> str:
    facts = field.facts
    parts = [with_unit(field, "; "), *_value(field), *_versions(field)]
    if names := facts.enum or facts.flags:
        parts.append(
            f"one of ``{names.__name__}``" if facts.enum else f"bits of ``{names.__name__}``"
        )
    return "; ".join(parts)


def _versions(field: Field) -> Iterator[str]:
    since, until = field.facts.since, field.facts.until
    if since is not None and since == until:
        yield f"in version {since} alone"
    elif since is not None:
        yield f"from version {since} on" if until is None else f"in versions {since} to {until}"
    elif until is not None:
        yield f"up to version {until}"


def _value(field: Field) -> Iterator[str]:
    if field.facts.reserved:
        yield "must be 0"
    elif isinstance(field.const, bytes):
        yield f"always ``{field.const.hex(' ').upper()}``"
    elif field.const is not None:
        yield f"always {field.const}"
    elif bounds := field.facts.bounds:
        yield f"{bounds[0]} to {bounds[1]}"
