"""Lowers the grammar to the intermediate representation.

`lower` accepts the vocabulary of `lance_spec.grammar` and refuses everything else, naming the
field: a back end that guessed would produce a codec that disagrees with its grammar.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from construct import Bytes, Const, Construct, FormatField, GreedyBytes, Rebuild, Renamed

from lance_spec.grammar._vocab import Crc, Declaration, Facts, Grammar, GrammarError, Meta
from lance_spec.ir.nodes import (
    INTEGER_SIZES,
    Difference,
    Family,
    Field,
    Fixed,
    Item,
    Length,
    LengthField,
    Message,
    Rest,
    Segment,
    Var,
)
from lance_spec.ir.shape_lowering import Found, check_shape, shape_of
from lance_spec.ir.shapes import Measured, Number, Raw, nested_in

_INTEGER_CODES: Final = {"<B": "B", "<H": "H", "<L": "I", "<Q": "Q"}
_FIELD: Final = re.compile(r"this\['(\w+)'\]")
_LENGTH_OF: Final = re.compile(r"len_\(this\['(\w+)'\]\)")
_DIFFERENCE: Final = re.compile(r"\(this\['(\w+)'\] - this\['(\w+)'\]\)")


def lower_grammar(grammar: Grammar) -> Family:
    """Lower every message of a grammar.

    Raises:
        GrammarError: a declaration is outside the vocabulary or contradicts itself.
    """
    known: dict[str, Message] = {}
    for each in grammar.messages:
        known[each.name] = lower(each, known if grammar.composed else None)
    _check_versions(grammar, known.values())
    return Family(
        name=grammar.name,
        doc=grammar.doc,
        sources=grammar.sources,
        messages=tuple(known.values()),
        frames=grammar.frames,
        composed=grammar.composed,
        versions=grammar.versions,
    )


def _any_versioned(fields: list[Field], known: Mapping[str, Message]) -> bool:
    parts = (name for each in fields if each.shape is not None for name in nested_in(each.shape))
    return any(each.facts.gated for each in fields) or any(known[name].versioned for name in parts)


def _check_versions(grammar: Grammar, lowered: Iterable[Message]) -> None:
    for message in lowered:
        if message.versioned and grammar.versions is None:
            raise GrammarError(message.name, "it depends on a version, and its grammar has none")


def lower(declaration: Declaration, known: Mapping[str, Message] | None = None) -> Message:
    """Lower one message.

    Args:
        declaration: what the grammar says.
        known: the messages lowered before it, which it may hold; None for a flat message.

    Raises:
        GrammarError: a field is outside the vocabulary or contradicts another.
    """
    _check_words(declaration.name, declaration.doc, declaration.section)
    fields: list[Field] = []
    for parser in declaration.fields:
        fields.append(_lower_field(declaration.name, parser, fields, known))
    message = Message(
        name=declaration.name,
        doc=declaration.doc,
        section=declaration.section,
        segments=_segments(fields),
        command=declaration.command,
        record_type=declaration.record_type,
        sender=declaration.sender,
        ambiguities=declaration.ambiguities,
        since=declaration.since,
        versioned=declaration.since is not None or _any_versioned(fields, known or {}),
    )
    _check_message(message)
    _check_size(message, declaration)
    return message


def _lower_field(
    message: str, parser: Construct, before: list[Field], known: Mapping[str, Message] | None
) -> Field:
    name = parser.name if type(parser) is Renamed else None
    if not name or type(parser.subcon) is not Meta:
        raise GrammarError(
            f"{message}[{len(before)}]",
            f"{parser!r} has no name or no facts; declare it with field()",
        )
    path = f"{message}.{name}"
    if any(name == each.name for each in before):
        raise GrammarError(path, "the name is taken; field names are unique within a message")
    facts: Facts = parser.subcon.facts
    _check_words(path, facts.doc, facts.section)
    offset = _next_offset(before)
    if known is None:
        field = _classify(path, name, parser.subcon.subcon, facts, offset)
    else:
        sizes = {each.name: each.minimum_size for each in known.values()}
        field = _compose(name, shape_of(path, parser.subcon.subcon, sizes), facts, offset)
    _check_facts(path, field)
    _check_references(path, field, before)
    check_shape(path, field, before)
    return field


def _classify(path: str, name: str, parser: Any, facts: Facts, offset: int | None) -> Field:
    known: dict[str, Any] = {"name": name, "facts": facts, "offset": offset}
    if type(parser) is Const:
        return Field(**known, **_fixed_size(path, parser.subcon), const=parser.value)
    if type(parser) is Rebuild:
        measured = _matched(path, _LENGTH_OF, parser.func, "Rebuild(…, len_(this.field))")[0]
        return Field(**known, **_fixed_size(path, parser.subcon), length_of=measured)
    if parser is GreedyBytes or (type(parser) is Bytes and callable(parser.length)):
        return Field(**known, code="", size=None, length=_length(path, parser))
    return Field(**known, **_fixed_size(path, parser))


def _compose(name: str, found: Found, facts: Facts, offset: int | None) -> Field:
    """Return a field of a composed message; gated fields have no fixed place."""
    fixed = isinstance(found.shape, Number | Raw) and not facts.gated
    return Field(
        name=name,
        code=found.shape.code if isinstance(found.shape, Number) else "",
        size=found.shape.minimum if fixed else None,
        offset=offset,
        facts=facts,
        const=found.const,
        length_of=found.length_of,
        shape=found.shape,
        plus=found.plus,
    )


def _fixed_size(path: str, parser: Any) -> dict[str, Any]:
    if type(parser) is FormatField and parser.fmtstr in _INTEGER_CODES:
        code = _INTEGER_CODES[parser.fmtstr]
        return {"code": code, "size": INTEGER_SIZES[code]}
    if type(parser) is Bytes and isinstance(parser.length, int) and parser.length > 0:
        return {"code": f"{parser.length}s", "size": parser.length}
    raise GrammarError(
        path,
        f"{parser!r} is outside the vocabulary; use Int8ul, Int16ul, Int32ul, Int64ul, Const, "
        "Bytes(n), Bytes(this.field), Bytes(this.end - this.start), GreedyBytes or "
        "Rebuild(integer, len_(this.field))",
    )


def _length(path: str, parser: Any) -> Length:
    if parser is GreedyBytes:
        return Rest()
    if difference := _DIFFERENCE.fullmatch(repr(parser.length)):
        return Difference(end=difference[1], start=difference[2])
    length = _matched(path, _FIELD, parser.length, "Bytes(this.field)")
    return LengthField(length[0])


def _matched(path: str, pattern: re.Pattern[str], expression: Any, wanted: str) -> tuple[str, ...]:
    match = pattern.fullmatch(repr(expression))
    if match is None:
        raise GrammarError(path, f"cannot read the expression {expression!r}; write {wanted}")
    return match.groups()


def _next_offset(before: list[Field]) -> int | None:
    if not before:
        return 0
    last = before[-1]
    return None if last.offset is None or last.size is None else last.offset + last.size


def _segments(fields: list[Field]) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    for field in fields:
        if field.shape is not None and field.size is None:
            segments.append(Item(field))
        elif field.size is None:
            segments.append(Var(field))
        elif segments and isinstance(segments[-1], Fixed):
            segments[-1] = Fixed((*segments[-1].fields, field))
        else:
            segments.append(Fixed((field,)))
    return tuple(segments)


def _check_words(path: str, doc: str, section: str) -> None:
    if not doc or doc != doc.strip() or doc.endswith("."):
        raise GrammarError(path, "doc must be one sentence without the full stop at its end")
    if not section:
        raise GrammarError(path, "section must say where the source defines this")


def _check_facts(path: str, field: Field) -> None:
    facts = field.facts
    names = facts.enum or facts.flags
    if field.shape is None and (facts.gated or facts.closed):
        raise GrammarError(path, "versions and closed enumerations belong to composed messages")
    if not field.is_integer and (names or facts.bounds or facts.boolean or facts.checksum):
        raise GrammarError(path, "enum, flags, limits and checksum belong to integers")
    if (facts.minimum is None) != (facts.maximum is None):
        raise GrammarError(path, "give both minimum and maximum, or neither")
    if field.size is not None:
        if facts.borrowed:
            raise GrammarError(path, "borrowed belongs to bytes of variable length")
        highest = max([*(names or ()), *(facts.bounds or ())], default=0)
        if field.code in INTEGER_SIZES and highest >= 256**field.size:
            raise GrammarError(path, f"the value {highest} does not fit in {field.type_name}")
    if facts.reserved and not _is_zero(field.const):
        raise GrammarError(path, "a reserved field is a Const of zeros")


def _is_zero(const: int | bytes | None) -> bool:
    return not any(const) if isinstance(const, bytes) else const == 0


def _check_references(path: str, field: Field, before: list[Field]) -> None:
    if before and isinstance(before[-1].length, Rest):
        raise GrammarError(path, f"nothing can follow {before[-1].name}, which takes all the rest")
    referred: tuple[str, ...] = ()
    if isinstance(field.length, LengthField):
        referred = (field.length.name,)
    elif isinstance(field.length, Difference):
        referred = (field.length.start, field.length.end)
    integers = {each.name for each in before if each.is_integer}
    for name in referred:
        if name not in integers:
            raise GrammarError(
                path, f"its length refers to {name}, which is not an integer before it"
            )


def _check_message(message: Message) -> None:
    for field in message.fields:
        path = f"{message.name}.{field.name}"
        if field.length_of:
            measured = next((f for f in message.fields if f.name == field.length_of), None)
            mirrored = (LengthField(field.name), Measured(field.name, field.plus))
            if measured is None or (measured.shape or measured.length) not in mirrored:
                raise GrammarError(path, f"{field.length_of} does not take its length from here")
        if field.facts.checksum:
            _check_coverage(path, field, field.facts.checksum)


def _check_coverage(path: str, field: Field, checksum: Crc) -> None:
    if isinstance(checksum.over, str):
        return
    start, end = checksum.over
    if not 0 <= start < end or field.offset is None or end > field.offset:
        raise GrammarError(path, f"a checksum covers bytes before it, not {start} to {end}")


def _check_size(message: Message, declaration: Declaration) -> None:
    """Hold the lowered formats against what `construct` computes for the same fields."""
    fixed = {f.name for s in message.segments if isinstance(s, Fixed) for f in s.fields}
    size = sum(each.sizeof() for each in declaration.fields if each.name in fixed)
    lowered = sum(each.size for each in message.segments if isinstance(each, Fixed))
    if size != lowered:
        raise GrammarError(
            message.name, f"lowered to {lowered} bytes where construct counts {size}"
        )
