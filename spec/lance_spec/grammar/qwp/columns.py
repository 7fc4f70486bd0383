"""How QWP sends the values of each column type (QWP wire ingress).

A section opens with what is null; only the other rows have values in it.
"""

from enum import IntEnum
from typing import Any, Final

from construct import Construct, Int8ul, Int32sl

from lance_spec.grammar._columns import (
    BitPerValue,
    Each,
    Elements,
    Nulls,
    PerValue,
    Slices,
    Timestamps,
)
from lance_spec.grammar._composed import LEB128, Blob, Many, Nested
from lance_spec.grammar._vocab import Declaration, field, message

_INGRESS: Final = "QWP wire ingress"


class ColumnType(IntEnum):
    """What a column holds."""

    BOOLEAN = 0x01
    """True or false."""
    BYTE = 0x02
    """A signed integer of 8 bits."""
    SHORT = 0x03
    """A signed integer of 16 bits."""
    INT = 0x04
    """A signed integer of 32 bits."""
    LONG = 0x05
    """A signed integer of 64 bits."""
    FLOAT = 0x06
    """A floating-point number of 32 bits."""
    DOUBLE = 0x07
    """A floating-point number of 64 bits."""
    SYMBOL = 0x09
    """A text that occurs often, sent once."""
    TIMESTAMP = 0x0A
    """Microseconds since the Unix epoch."""
    DATE = 0x0B
    """Milliseconds since the Unix epoch."""
    UUID = 0x0C
    """A UUID, its lower half first."""
    LONG256 = 0x0D
    """An unsigned integer of 256 bits, its lowest 64 first."""
    GEOHASH = 0x0E
    """A place on earth as up to 60 bits."""
    VARCHAR = 0x0F
    """A text in UTF-8."""
    TIMESTAMP_NANOS = 0x10
    """Nanoseconds since the Unix epoch."""
    DOUBLE_ARRAY = 0x11
    """An array of floating-point numbers of 64 bits."""
    LONG_ARRAY = 0x12
    """An array of signed integers of 64 bits."""
    DECIMAL64 = 0x13
    """A decimal number in 64 bits."""
    DECIMAL128 = 0x14
    """A decimal number in 128 bits."""
    DECIMAL256 = 0x15
    """A decimal number in 256 bits."""
    CHAR = 0x16
    """One unit of UTF-16."""
    BINARY = 0x17
    """Any bytes."""
    IPV4 = 0x18
    """An IPv4 address, its last number first."""


class TimeEncoding(IntEnum):
    """How a column of timestamps is written where the message has flag GORILLA."""

    PLAIN = 0
    """8 bytes each."""
    GORILLA = 1
    """The first two in 8 bytes each, then the changes of their distances in a few bits."""


def qwp_field(name: str, parser: Construct, doc: str, **facts: Any) -> Construct:
    """Return a field of a QWP message."""
    return field(name, parser, doc=doc, section=_INGRESS, **facts)


def qwp_message(name: str, *fields: Construct, doc: str) -> Declaration:
    """Return the declaration of a QWP message."""
    return message(name, *fields, doc=doc, section=_INGRESS)


STRING: Final = Blob(LEB128, text=True)
_NULLS: Final = qwp_field(
    "nulls", Nulls(), "One bit for each row, 1 for null; none: every row has a value"
)


def _values(name: str, size: int, doc: str) -> Declaration:
    values = qwp_field("values", PerValue(size), "The values, low byte first, without the nulls")
    return qwp_message(name, _NULLS, values, doc=doc)


def _decimals(name: str, size: int) -> Declaration:
    return qwp_message(
        name,
        _NULLS,
        qwp_field("scale", Int8ul, "Digits after the point, also where every row is null"),
        qwp_field("values", PerValue(size), "The values in two's complement, low byte first"),
        doc=f"Section of a column of decimal numbers of {size} bytes",
    )


COLUMN_1 = _values("Column1", 1, "Section of a column of values of 1 byte")
COLUMN_2 = _values("Column2", 2, "Section of a column of values of 2 bytes")
COLUMN_4 = _values("Column4", 4, "Section of a column of values of 4 bytes")
COLUMN_8 = _values("Column8", 8, "Section of a column of values of 8 bytes")
COLUMN_16 = _values("Column16", 16, "Section of a column of values of 16 bytes")
COLUMN_32 = _values("Column32", 32, "Section of a column of values of 32 bytes")
BOOLEAN_COLUMN = qwp_message(
    "BooleanColumn",
    _NULLS,
    qwp_field("values", BitPerValue(), "One bit for each value, the lowest first"),
    doc="Section of a column of truth values",
)
SYMBOL_COLUMN = qwp_message(
    "SymbolColumn",
    _NULLS,
    qwp_field("ids", Each(LEB128), "Ids in the dictionary, without the nulls"),
    doc="Section of a column of symbols",
)
SLICE_COLUMN = qwp_message(
    "SliceColumn",
    _NULLS,
    qwp_field("values", Slices(), "The values, without the nulls"),
    doc="Section of a column of texts or bytes",
)
TIMESTAMP_COLUMN = qwp_message(
    "TimestampColumn",
    _NULLS,
    qwp_field("encoding", Int8ul, "How the values are written", enum=TimeEncoding, closed=True),
    qwp_field("values", Timestamps("encoding"), "The values, without the nulls"),
    doc="Section of a column of timestamps in a message with flag GORILLA",
)
LOCAL_SYMBOL_COLUMN = qwp_message(
    "LocalSymbolColumn",
    _NULLS,
    qwp_field("symbols", Many(LEB128, STRING), "The column's own symbols, with ids from 0"),
    qwp_field("ids", Each(LEB128), "Ids among them, without the nulls"),
    doc="Section of a column of symbols in a message without flag DELTA_DICTIONARY",
)
GEOHASH_COLUMN = qwp_message(
    "GeohashColumn",
    _NULLS,
    qwp_field("precision", LEB128, "Bits of a value", unit="bits", minimum=1, maximum=60),
    qwp_field("values", PerValue(bits="precision"), "The values in whole bytes, low byte first"),
    doc="Section of a column of geohashes",
)
ARRAY = qwp_message(
    "Array",
    qwp_field("dims", Many(Int8ul, Int32sl), "Size of each dimension"),
    qwp_field("elements", Elements("dims", 8), "The elements, low byte first"),
    doc="One value of an array column",
)
ARRAY_COLUMN = qwp_message(
    "ArrayColumn",
    _NULLS,
    qwp_field("values", Each(Nested(ARRAY)), "The arrays, without the nulls"),
    doc="Section of a column of arrays",
)
DECIMAL_8 = _decimals("Decimal8", 8)
DECIMAL_16 = _decimals("Decimal16", 16)
DECIMAL_32 = _decimals("Decimal32", 32)

SECTIONS: Final[dict[int, Declaration]] = {
    ColumnType.BOOLEAN: BOOLEAN_COLUMN,
    ColumnType.BYTE: COLUMN_1,
    ColumnType.SHORT: COLUMN_2,
    ColumnType.INT: COLUMN_4,
    ColumnType.LONG: COLUMN_8,
    ColumnType.FLOAT: COLUMN_4,
    ColumnType.DOUBLE: COLUMN_8,
    ColumnType.SYMBOL: SYMBOL_COLUMN,
    ColumnType.TIMESTAMP: COLUMN_8,
    ColumnType.DATE: COLUMN_8,
    ColumnType.UUID: COLUMN_16,
    ColumnType.LONG256: COLUMN_32,
    ColumnType.GEOHASH: GEOHASH_COLUMN,
    ColumnType.VARCHAR: SLICE_COLUMN,
    ColumnType.TIMESTAMP_NANOS: COLUMN_8,
    ColumnType.DOUBLE_ARRAY: ARRAY_COLUMN,
    ColumnType.LONG_ARRAY: ARRAY_COLUMN,
    ColumnType.DECIMAL64: DECIMAL_8,
    ColumnType.DECIMAL128: DECIMAL_16,
    ColumnType.DECIMAL256: DECIMAL_32,
    ColumnType.CHAR: COLUMN_2,
    ColumnType.BINARY: SLICE_COLUMN,
    ColumnType.IPV4: COLUMN_4,
}
"""How the values of each type are sent."""


MESSAGES: Final = (
    COLUMN_1,
    COLUMN_2,
    COLUMN_4,
    COLUMN_8,
    COLUMN_16,
    COLUMN_32,
    BOOLEAN_COLUMN,
    SYMBOL_COLUMN,
    LOCAL_SYMBOL_COLUMN,
    SLICE_COLUMN,
    TIMESTAMP_COLUMN,
    GEOHASH_COLUMN,
    ARRAY,
    ARRAY_COLUMN,
    DECIMAL_8,
    DECIMAL_16,
    DECIMAL_32,
)
"""The sections there are, the parts first."""
