"""Drawing the columns of tables; part of `lance_spec.strategies.composed`."""

from collections.abc import Callable, Mapping
from itertools import accumulate
from math import prod
from typing import Any, Final

from hypothesis import strategies as st

from lance_spec.ir.nodes import Field, Message
from lance_spec.ir.shapes import (
    BitPerValue,
    Choice,
    Each,
    Elements,
    PerValue,
    Sections,
    Shape,
    Slices,
    Timestamps,
)
from lance_spec.qwp import gorilla

_MOST_ROWS: Final = 10
_MOST_BYTES: Final = 12


def depends(field: Field) -> bool:
    """Whether a field can be drawn only when those before it are there."""
    per_value = PerValue | Timestamps | BitPerValue | Each | Slices | Elements
    return isinstance(field.shape, Choice | Sections | per_value)


def count(bits: bytes | None, rows: int) -> int:
    """Return how many of the first rows are null."""
    return (int.from_bytes(bits or b"", "little") & ((1 << rows) - 1)).bit_count()


def nulls(rows: int) -> st.SearchStrategy[bytes | None]:
    """Return null bits for so many rows, or none."""
    size = (rows + 7) // 8
    return st.none() | st.binary(min_size=size, max_size=size)


def small(subject: Message, field: Field) -> st.SearchStrategy[Any] | None:
    """Return small values for what says how large something else is."""
    for each in subject.fields:
        if isinstance(each.shape, Sections) and each.shape.rows == field.name:
            return st.integers(0, _MOST_ROWS)
        if isinstance(each.shape, Elements) and each.shape.dims == field.name:
            return st.lists(st.integers(0, 2), min_size=1, max_size=3)
    return None


def values(
    field: Field,
    given: Mapping[str, Any],
    present: int,
    item: Callable[[Shape], st.SearchStrategy[Any]],
) -> st.SearchStrategy[Any]:
    """Return what a column holds for the rows that are not null."""
    match field.shape:
        case PerValue(size=size, bits=bits):
            return _exactly(present * (size or (given[bits] + 7) // 8))
        case Timestamps(encoding=encoding):
            return _times(present) if given[encoding] else _exactly(8 * present)
        case BitPerValue():
            return _exactly((present + 7) // 8)
        case Elements(dims=dims, size=size):
            return _exactly(prod(given[dims]) * size)
        case Each(item=shape):
            return st.lists(item(shape), min_size=present, max_size=present)
    octets = st.binary(max_size=_MOST_BYTES)
    return st.lists(octets, min_size=present, max_size=present)


def _times(count: int) -> st.SearchStrategy[bytes]:
    """Return packed times whose steps change by anything that fits."""
    changes = st.integers(-(2**13), 2**13) | st.integers(-(2**31), 2**31 - 1)
    return st.lists(changes, min_size=count, max_size=count).map(_packed)


def _packed(changes: list[int]) -> bytes:
    packed = gorilla.pack(list(accumulate(accumulate(changes))))
    assert packed is not None, "every change fits into 32 bits"
    return packed


def _exactly(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)
