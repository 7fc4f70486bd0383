"""Lowers the words of composed messages to shapes; part of `lance_spec.ir.lowering`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from construct import Bytes, Const, FormatField, GreedyBytes, Rebuild

from lance_spec.grammar import _columns, _composed
from lance_spec.grammar._vocab import GrammarError
from lance_spec.ir import shapes
from lance_spec.ir.nodes import Field

_NUMBERS: Final = {"L": "I", "l": "i"}
_BARE: Final[Mapping[type, shapes.ColumnShape]] = {
    _columns.Nulls: shapes.Nulls(),
    _columns.BitPerValue: shapes.BitPerValue(),
    _columns.Slices: shapes.Slices(),
}
"""Shapes of columns without parameters."""
_LENGTH_OF: Final = re.compile(r"\(len_\(this\['(\w+)'\]\) \+ (\d+)\)|len_\(this\['(\w+)'\]\)")
_MEASURED: Final = re.compile(r"\(this\['(\w+)'\] - (\d+)\)|this\['(\w+)'\]")


@dataclass(frozen=True, slots=True)
class Found:
    """What a parser of a composed message says.

    Attributes:
        shape: what the field looks like.
        const: the only value allowed, or None.
        length_of: the field whose length it is.
        plus: what it counts beside that length.
    """

    shape: shapes.Shape
    const: int | bytes | None = None
    length_of: str = ""
    plus: int = 0


def shape_of(path: str, parser: Any, known: Mapping[str, int]) -> Found:
    """Return the shape of a field.

    Args:
        path: message and field, for errors.
        parser: the `construct` parser of the field.
        known: fewest bytes of each message declared before this one, by name.

    Raises:
        GrammarError: the parser is outside the vocabulary.
    """
    if type(parser) is Const:
        return Found(_shape(path, parser.subcon, known), const=parser.value)
    if type(parser) is Rebuild:
        name, plus = _measure(path, _LENGTH_OF, parser.func, "len_(this.field) + n")
        return Found(_shape(path, parser.subcon, known), length_of=name, plus=plus)
    return Found(_shape(path, parser, known))


def _shape(path: str, parser: Any, known: Mapping[str, int]) -> shapes.Shape:
    match parser:
        case _composed.Many() | _composed.Filled():
            return _list(path, parser, known)
        case _composed.Maybe() | _composed.Sized() | _columns.Each():
            return _container(path, parser, known)
        case _composed.Nested(declaration=declaration):
            return _nested(path, declaration.name, known)
        case _composed.Choice() | _columns.Sections():
            return _union(path, parser, known)
    return _per_value(parser) or _plain(path, parser)


def _container(
    path: str, parser: _composed.Maybe | _composed.Sized | _columns.Each, known: Mapping[str, int]
) -> shapes.Shape:
    item = _shape(path, parser.item, known)
    if isinstance(parser, _composed.Sized):
        return shapes.Sized(_prefix(path, parser.prefix), item)
    return shapes.Maybe(item) if isinstance(parser, _composed.Maybe) else shapes.Each(item)


def _union(
    path: str, parser: _composed.Choice | _columns.Sections, known: Mapping[str, int]
) -> shapes.Shape:
    cases = tuple((int(n), _nested(path, each.name, known)) for n, each in parser.cases.items())
    if isinstance(parser, _composed.Choice):
        return shapes.Choice(parser.tag, cases)
    return shapes.Sections(parser.of, parser.tag, parser.rows, cases)


def _per_value(parser: Any) -> shapes.ColumnShape | None:
    match parser:
        case _columns.PerValue(size=size, bits=bits):
            return shapes.PerValue(size, bits)
        case _columns.Timestamps(encoding=encoding):
            return shapes.Timestamps(encoding)
        case _columns.Elements(dims=dims, size=size):
            return shapes.Elements(dims, size)
    return _BARE.get(type(parser))


def _list(
    path: str, parser: _composed.Many | _composed.Filled, known: Mapping[str, int]
) -> shapes.Shape:
    item = _shape(path, parser.item, known)
    if not item.minimum:
        raise GrammarError(path, "a value of a list must take a byte; else a count bounds nothing")
    if isinstance(parser, _composed.Filled):
        return shapes.Filled(item)
    return shapes.Many(_prefix(path, parser.prefix), item)


def _plain(path: str, parser: Any) -> shapes.Shape:
    if parser is GreedyBytes:
        return shapes.Remainder()
    if type(parser) is Bytes and callable(parser.length):
        name, minus = _measure(path, _MEASURED, parser.length, "Bytes(this.field - n)")
        return shapes.Measured(name, minus)
    if type(parser) is Bytes and parser.length > 0:
        return shapes.Raw(parser.length)
    if isinstance(parser, _composed.Blob):
        return shapes.Blob(_prefix(path, parser.prefix), parser.text, parser.nullable)
    return _prefix(path, parser)


def _prefix(path: str, parser: Any) -> shapes.Prefix:
    if isinstance(parser, _composed.Varint):
        return shapes.Varint(parser.zigzag)
    if type(parser) is FormatField and parser.fmtstr[1:] in {*"bBhHlLqQ"}:
        order, code = parser.fmtstr
        return shapes.Number(_NUMBERS.get(code, code), little=order == "<")
    raise GrammarError(
        path,
        f"{parser!r} is outside the vocabulary of composed messages; use integers, Bytes, Const, "
        "Rebuild and the words of lance_spec.grammar._composed",
    )


def _nested(path: str, name: str, known: Mapping[str, int]) -> shapes.Nested:
    if name not in known:
        raise GrammarError(path, f"{name} must stand before the message that holds it")
    return shapes.Nested(name, known[name])


def _measure(path: str, pattern: re.Pattern[str], expression: Any, wanted: str) -> tuple[str, int]:
    match = pattern.fullmatch(repr(expression))
    if match is None:
        raise GrammarError(path, f"cannot read the expression {expression!r}; write {wanted}")
    return match[1] or match[3], int(match[2] or 0)


def check_shape(path: str, field: Field, before: Sequence[Field]) -> None:
    """Check what a composed field says against itself and the fields before it.

    Raises:
        GrammarError: they contradict each other.
    """
    if field.shape is None:
        return
    _check_limits(path, field)
    if before and isinstance(before[-1].shape, shapes.Remainder | shapes.Filled):
        raise GrammarError(path, f"nothing can follow {before[-1].name}, which takes all the rest")
    if field.facts.borrowed:
        raise GrammarError(path, "composed messages borrow no bytes")
    if field.facts.gated and not field.is_given:
        raise GrammarError(path, "a field that some versions leave out must be given by the caller")
    for name in _numbers_needed(field.shape):
        _referred(path, name, before)
    if isinstance(field.shape, shapes.Sections | shapes.Elements):
        _check_list(path, field.shape, before)
    if isinstance(field.shape, shapes.Choice):
        tag = _referred(path, field.shape.tag, before)
        values = {int(each) for each in tag.facts.enum or ()}
        if not tag.facts.closed or not {case for case, _ in field.shape.cases} <= values:
            raise GrammarError(path, f"{tag.name} must be closed and its enum name every case")


def _numbers_needed(shape: shapes.Shape) -> tuple[str, ...]:
    """Return the earlier fields that a shape takes numbers from."""
    match shape:
        case shapes.Measured(field=name):
            return (name,)
        case shapes.PerValue(bits=name) if name:
            return (name,)
        case shapes.Sections(rows=name) | shapes.Timestamps(encoding=name):
            return (name,)
    return ()


def _check_list(
    path: str, shape: shapes.Sections | shapes.Elements, before: Sequence[Field]
) -> None:
    name = shape.of if isinstance(shape, shapes.Sections) else shape.dims
    if not any(each.name == name and isinstance(each.shape, shapes.Many) for each in before):
        raise GrammarError(path, f"it refers to {name}, which is not a list before it")


def _check_limits(path: str, field: Field) -> None:
    facts = field.facts
    if facts.closed and facts.enum is None:
        raise GrammarError(path, "a closed field needs an enum, whose values it is closed to")
    if isinstance(field.shape, shapes.Number):
        lowest, highest = field.shape.limits
        for value in (*(facts.enum or ()), *(facts.bounds or ())):
            if not lowest <= value <= highest:
                raise GrammarError(path, f"the value {value} does not fit in {field.type_name}")


def _referred(path: str, name: str, before: Sequence[Field]) -> Field:
    for each in before:
        if each.name == name and each.is_integer and not each.facts.gated:
            return each
    raise GrammarError(path, f"it refers to {name}, which is not an integer before it")
