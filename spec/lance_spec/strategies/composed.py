"""Hypothesis strategies for messages that nest (needs the ``test`` extra).

Values are instances of the generated classes, so that whatever is drawn can be encoded.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from hypothesis import strategies as st

from lance_spec.ir import families
from lance_spec.ir.nodes import Family, Field, Message
from lance_spec.ir.shapes import (
    Blob,
    Choice,
    Filled,
    Many,
    Maybe,
    Measured,
    Nested,
    Nulls,
    Number,
    Raw,
    Sections,
    Shape,
    Sized,
    Varint,
)
from lance_spec.strategies import columns
from lance_spec.strategies.columns import count as _count
from lance_spec.strategies.columns import depends

_MOST_BYTES: Final = 12
_MOST_VALUES: Final = 3


def composed(name: str, version: int = 0) -> st.SearchStrategy[Any]:
    """Return instances of the class called ``family.Message``.

    Args:
        name: family and message.
        version: version of the protocol; fields that it does not write keep their default.
    """
    family, _, message = name.partition(".")
    return Drawing(families.composed()[family], _module(family), version).message(message)


class Drawing:
    """Draws messages of one family in one version.

    Attributes:
        family: the family.
        module: its generated classes.
        version: the version to draw for.
        rows: rows of the table whose columns are drawn.
    """

    def __init__(self, family: Family, module: ModuleType, version: int, rows: int = 0) -> None:
        self.family, self.module, self.version, self.rows = family, module, version, rows

    def message(self, name: str) -> st.SearchStrategy[Any]:
        """Return instances of one class; a checksum is right."""
        subject, cls = self.family.message(name), getattr(self.module, name)
        if any(each.facts.checksum for each in subject.fields):
            return self._plain(subject, cls).map(lambda value: value.with_crc())
        return self._plain(subject, cls)

    def _plain(self, subject: Message, cls: type[Any]) -> st.SearchStrategy[Any]:
        drawn = {
            each.name: self._field(subject, each)
            for each in subject.given
            if each.facts.carried(self.version) and not depends(each)
        }
        built = st.fixed_dictionaries(drawn)
        if any(depends(each) for each in subject.given):
            return built.flatmap(lambda given: self._chosen(subject, given)).map(lambda v: cls(**v))
        return built.map(lambda given: cls(**given))

    def _chosen(
        self, subject: Message, given: Mapping[str, Any]
    ) -> st.SearchStrategy[dict[str, Any]]:
        """Draw what depends on fields that are already there."""
        dependent = {
            each.name: self._dependent(each, given) for each in subject.given if depends(each)
        }
        return st.fixed_dictionaries(dependent).map(lambda more: {**given, **more})

    def _dependent(self, field: Field, given: Mapping[str, Any]) -> st.SearchStrategy[Any]:
        if isinstance(field.shape, Choice):
            return self._case(field.shape, given[field.shape.tag])
        if isinstance(field.shape, Sections):
            return self._sections(field.shape, given)
        present = self.rows - _count(given.get("nulls"), self.rows)
        return columns.values(field, given, present, self._shape)

    def _sections(self, shape: Sections, given: Mapping[str, Any]) -> st.SearchStrategy[Any]:
        """Draw one section for each column, of as many rows as the table has."""
        inside = Drawing(self.family, self.module, self.version, given[shape.rows])
        names = [dict(shape.cases)[getattr(each, shape.tag)].name for each in given[shape.of]]
        return st.tuples(*(inside.message(name) for name in names)).map(list)

    def _case(self, shape: Choice, tag: int) -> st.SearchStrategy[Any]:
        chosen = dict(shape.cases).get(tag)
        return self.message(chosen.name) if chosen else st.none()

    def _field(self, subject: Message, field: Field) -> st.SearchStrategy[Any]:
        assert field.shape is not None
        facts = field.facts
        if (special := self._special(subject, field)) is not None:
            return special
        if facts.boolean:
            return st.booleans()
        if facts.closed and facts.enum:
            return st.sampled_from(list(facts.enum)).map(getattr(self.module, facts.enum.__name__))
        if facts.bounds:
            return _integers(*facts.bounds)
        return self._shape(field.shape)

    def _special(self, subject: Message, field: Field) -> st.SearchStrategy[Any] | None:
        """Return values of a field that other fields lean on, if it is one."""
        if isinstance(field.shape, Measured):
            return _measured(subject.field(field.shape.field))
        if isinstance(field.shape, Nulls):
            return columns.nulls(self.rows)
        return columns.small(subject, field)

    def _shape(self, shape: Shape) -> st.SearchStrategy[Any]:
        match shape:
            case Number() | Varint():
                return _integers(*shape.limits)
            case Blob():
                return _blobs(shape)
            case Maybe() | Many() | Filled() | Sized():
                return self._container(shape)
            case Nested():
                return self.message(shape.name)
        return _octets(shape.size) if isinstance(shape, Raw) else _octets()

    def _container(self, shape: Maybe | Many | Filled | Sized) -> st.SearchStrategy[Any]:
        item = self._shape(shape.item)
        if isinstance(shape, Maybe):
            return st.none() | item
        return item if isinstance(shape, Sized) else st.lists(item, max_size=_MOST_VALUES)


def _module(family: str) -> ModuleType:
    return import_module(f"lance_spec.messages.{family}")


def _blobs(shape: Blob) -> st.SearchStrategy[str | bytes | None]:
    plain = st.text(max_size=_MOST_BYTES) if shape.text else _octets()
    return st.none() | plain if shape.nullable else plain


def _measured(length: Field) -> st.SearchStrategy[bytes]:
    """Draw bytes whose length its field may state."""
    if length.facts.bounds is None:
        return _octets()
    smallest, largest = length.facts.bounds
    return st.binary(
        min_size=max(0, smallest - length.plus), max_size=min(_MOST_BYTES, largest - length.plus)
    )


def _octets(size: int | None = None) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size or 0, max_size=_MOST_BYTES if size is None else size)


def _integers(smallest: int, largest: int) -> st.SearchStrategy[int]:
    edges = [smallest, largest, *({0, 1, -1} & set(range(max(smallest, -1), min(largest, 1) + 1)))]
    return st.sampled_from(edges) | st.integers(smallest, largest)
