"""Column types: what each becomes in the JSON of a record."""

import struct
from typing import Any

import pytest

from lance_server.listeners.qwp.refusals import QwpRefusal
from lance_server.listeners.qwp.values import _geohashes, column_values
from lance_spec.messages.qwp import (
    Array,
    ArrayColumn,
    BooleanColumn,
    Column1,
    Column2,
    Column4,
    Column8,
    Column16,
    Column32,
    ColumnDefinition,
    ColumnType,
    Decimal8,
    Decimal16,
    Decimal32,
    GeohashColumn,
    SliceColumn,
    SymbolColumn,
)

LEAST = -(2**63)


def values(kind: ColumnType, section: Any, rows: int, symbols: tuple[str, ...] = ()) -> list[Any]:
    """Return the values of a column of one type."""
    return [*column_values(ColumnDefinition(name="c", type=kind), section, rows, symbols)]


def packed(section: Any, code: str, *numbers: float) -> Any:
    """Return a section of plain numbers."""
    return section(nulls=None, values=struct.pack(f"<{len(numbers)}{code}", *numbers))


@pytest.mark.parametrize(
    ("kind", "section", "expected"),
    [
        (ColumnType.BOOLEAN, BooleanColumn(nulls=None, values=b"\x05"), [True, False, True]),
        (ColumnType.BYTE, packed(Column1, "b", -1, 127), [-1, 127]),
        (ColumnType.SHORT, packed(Column2, "h", -300, 0), [-300, 0]),
        (ColumnType.INT, packed(Column4, "i", -(2**31), 5), [None, 5]),
        (ColumnType.LONG, packed(Column8, "q", LEAST, 2**62), [None, 2**62]),
        (ColumnType.FLOAT, packed(Column4, "f", 0.5, float("nan")), [0.5, None]),
        (
            ColumnType.DOUBLE,
            packed(Column8, "d", 1e300, float("inf"), -float("inf")),
            [1e300, "Infinity", "-Infinity"],
        ),
        (
            ColumnType.TIMESTAMP,
            packed(Column8, "q", 1_700_000_000_123_456, LEAST),
            ["2023-11-14T22:13:20.123456Z", None],
        ),
        (
            ColumnType.TIMESTAMP_NANOS,
            packed(Column8, "q", -1),
            ["1969-12-31T23:59:59.999999999Z"],
        ),
        (ColumnType.DATE, packed(Column8, "q", 86_400_000), ["1970-01-02T00:00:00.000Z"]),
        (
            ColumnType.TIMESTAMP,
            packed(Column8, "q", 2**62),
            [f"{2**62} since 1970 in 1/1000000 s"],
        ),
        (ColumnType.CHAR, packed(Column2, "H", 0xE9, 0, 0xD800), ["é", None, "\ufffd"]),
        (ColumnType.IPV4, Column4(nulls=None, values=b"\4\3\2\1\0\0\0\0"), ["1.2.3.4", None]),
        (
            ColumnType.UUID,
            Column16(nulls=None, values=bytes(range(16))),
            ["0f0e0d0c-0b0a-0908-0706-050403020100"],
        ),
        (ColumnType.UUID, packed(Column16, "q", LEAST, LEAST), [None]),
        (
            ColumnType.LONG256,
            Column32(nulls=None, values=b"\x2a" + bytes(31)),
            ["0x" + "0" * 62 + "2a"],
        ),
        (ColumnType.VARCHAR, SliceColumn(nulls=None, values=["é".encode(), b""]), ["é", ""]),
        (ColumnType.BINARY, SliceColumn(nulls=None, values=[b"\xff\0"]), ["/wA="]),
        (
            ColumnType.DECIMAL64,
            Decimal8(nulls=None, scale=2, values=b"\x85" + b"\xff" * 7),
            ["-1.23"],
        ),
        (ColumnType.DECIMAL128, Decimal16(nulls=None, scale=0, values=b"\7" + bytes(15)), ["7"]),
        (
            ColumnType.DECIMAL256,
            Decimal32(nulls=None, scale=3, values=b"\1" + bytes(31) + bytes(31) + b"\x80"),
            ["0.001", None],
        ),
        (
            ColumnType.GEOHASH,
            GeohashColumn(nulls=None, precision=10, values=b"\x6f\x02\xff\xff"),
            ["mg", None],
        ),
        (ColumnType.GEOHASH, GeohashColumn(nulls=None, precision=3, values=b"\5"), ["101"]),
        (
            ColumnType.DOUBLE_ARRAY,
            ArrayColumn(
                nulls=None,
                values=[Array(dims=[2, 2], elements=struct.pack("<4d", 1, 2, 3, float("nan")))],
            ),
            [[[1.0, 2.0], [3.0, None]]],
        ),
        (
            ColumnType.LONG_ARRAY,
            ArrayColumn(nulls=None, values=[Array(dims=[2], elements=struct.pack("<2q", 1, 2))]),
            [[1, 2]],
        ),
    ],
)
def test_a_type_becomes_the_json_that_fits(
    kind: ColumnType, section: Any, expected: list[Any]
) -> None:
    """Numbers stay numbers, times are ISO 8601, what JSON lacks is text, and nulls are null."""
    assert values(kind, section, len(expected)) == expected


def test_null_bits_leave_values_out() -> None:
    """Only rows that are not null have a value."""
    section = Column8(nulls=b"\x05", values=struct.pack("<q", 9))
    assert values(ColumnType.LONG, section, 3) == [None, 9, None]


def test_symbols_are_looked_up() -> None:
    """An id stands for its text."""
    section = SymbolColumn(nulls=b"\x02", ids=[1, 0])
    assert values(ColumnType.SYMBOL, section, 3, ("a", "b")) == ["b", None, "a"]


@pytest.mark.parametrize("dims", [[], [1] * 33])
def test_dimensions_are_bounded(dims: list[int]) -> None:
    """An array has 1 to 32 dimensions."""
    section = ArrayColumn(nulls=None, values=[Array(dims=dims, elements=bytes(8))])
    with pytest.raises(QwpRefusal, match="dimensions"):
        values(ColumnType.DOUBLE_ARRAY, section, 1)


def test_an_array_of_nothing_takes_no_memory() -> None:
    """A dimension of 0 makes the whole array empty, however large the others say they are."""
    section = ArrayColumn(nulls=None, values=[Array(dims=[2**31 - 1, 0], elements=b"")])
    assert values(ColumnType.DOUBLE_ARRAY, section, 1) == [[]]


def test_text_that_is_no_utf8_is_refused() -> None:
    """The column is named."""
    with pytest.raises(QwpRefusal, match="column 'c'"):
        values(ColumnType.VARCHAR, SliceColumn(nulls=None, values=[b"\xff"]), 1)


def test_a_scale_beyond_all_digits_is_refused() -> None:
    """A scale of 255 would make texts of any length."""
    with pytest.raises(QwpRefusal, match="scale"):
        values(ColumnType.DECIMAL64, Decimal8(nulls=None, scale=255, values=bytes(8)), 1)


@pytest.mark.parametrize("bits", [8, 16, 24, 32, 40, 48, 56])
def test_a_geohash_with_every_bit_set_is_no_null(bits: int) -> None:
    """Its bytes have no bit to spare, so nothing tells it from null; it is the value."""
    section = GeohashColumn(nulls=None, precision=bits, values=b"\xff" * (bits // 8))
    (value,) = _geohashes(section)
    assert value is not None
    assert set(value) <= {"1", "z"}
