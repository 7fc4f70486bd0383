"""QWP version 1 as its published senders speak it: messages with inline column definitions.

Senders always send a dictionary of symbols with what is new since the last message (flag 0x08),
and never compress timestamps (flag 0x04); other forms are no messages of this grammar.
"""

from enum import IntEnum, IntFlag
from typing import Any, Final

from construct import (
    Bytes,
    Const,
    Construct,
    Int8ul,
    Int16ul,
    Int32sl,
    Int32ul,
    Int64sl,
    Rebuild,
    len_,
    this,
)

from lance_spec.grammar._columns import (
    BitPerValue,
    Each,
    Elements,
    Nulls,
    PerValue,
    Sections,
    Slices,
)
from lance_spec.grammar._composed import LEB128, Blob, Filled, Many, Nested
from lance_spec.grammar._vocab import Declaration, Grammar, field, message

_INGRESS: Final = "QWP wire ingress"


class MessageFlag(IntFlag):
    """Properties of a message."""

    # The rows are committed by a later message without this flag.
    DEFER_COMMIT = 0x01
    # Timestamps are compressed; published senders never set it.
    GORILLA = 0x04
    # The payload opens with a dictionary; published senders always set it.
    DELTA_DICTIONARY = 0x08


class ColumnType(IntEnum):
    """What a column holds."""

    BOOLEAN = 0x01
    BYTE = 0x02
    SHORT = 0x03
    INT = 0x04
    LONG = 0x05
    FLOAT = 0x06
    DOUBLE = 0x07
    SYMBOL = 0x09
    TIMESTAMP = 0x0A
    DATE = 0x0B
    UUID = 0x0C
    LONG256 = 0x0D
    GEOHASH = 0x0E
    VARCHAR = 0x0F
    TIMESTAMP_NANOS = 0x10
    DOUBLE_ARRAY = 0x11
    LONG_ARRAY = 0x12
    DECIMAL64 = 0x13
    DECIMAL128 = 0x14
    DECIMAL256 = 0x15
    CHAR = 0x16
    BINARY = 0x17
    IPV4 = 0x18


class Status(IntEnum):
    """Why a message was refused."""

    SCHEMA_MISMATCH = 0x03
    PARSE_ERROR = 0x05
    INTERNAL_ERROR = 0x06
    SECURITY_ERROR = 0x08
    WRITE_ERROR = 0x09
    CANCELLED = 0x0A
    LIMIT_EXCEEDED = 0x0B
    NOT_WRITABLE = 0x0C
    DICTIONARY_GAP = 0x0D


MAX_ERROR_TEXT: Final = 1024
"""Most bytes of the text of an error."""


def _field(name: str, parser: Construct, doc: str, **facts: Any) -> Construct:
    return field(name, parser, doc=doc, section=_INGRESS, **facts)


def _message(name: str, *fields: Construct, doc: str) -> Declaration:
    return message(name, *fields, doc=doc, section=_INGRESS)


_STRING: Final = Blob(LEB128, text=True)
_NULLS: Final = _field(
    "nulls", Nulls(), "One bit for each row, 1 for null; none: every row has a value"
)

MESSAGE = _message(
    "QwpMessage",
    _field("magic", Const(b"QWP1"), "The letters QWP1"),
    _field("version", Const(1, Int8ul), "Version of the protocol"),
    _field("flags", Int8ul, "Properties of the message", flags=MessageFlag),
    _field("table_count", Int16ul, "How many tables; 0 for a dictionary or a commit alone"),
    _field(
        "payload_length",
        Rebuild(Int32ul, len_(this.payload)),
        "Length of the payload",
        unit="bytes",
    ),
    _field("payload", Bytes(this.payload_length), "A dictionary and tables"),
    doc="What a sender puts into one WebSocket message",
)
DICTIONARY = _message(
    "Dictionary",
    _field("start_id", LEB128, "Id of the first symbol here; the next not yet sent"),
    _field("symbols", Many(LEB128, _STRING), "The symbols, with ids that follow each other"),
    doc="Symbols that are new since the last message",
)


def _values(name: str, size: int, doc: str) -> Declaration:
    values = _field("values", PerValue(size), "The values, low byte first, without the nulls")
    return _message(name, _NULLS, values, doc=doc)


def _decimals(name: str, size: int) -> Declaration:
    return _message(
        name,
        _NULLS,
        _field("scale", Int8ul, "Digits behind the point, also where every row is null"),
        _field("values", PerValue(size), "The values in two's complement, low byte first"),
        doc=f"Section of a column of decimal numbers of {size} bytes",
    )


COLUMN_1 = _values("Column1", 1, "Section of a column of values of 1 byte")
COLUMN_2 = _values("Column2", 2, "Section of a column of values of 2 bytes")
COLUMN_4 = _values("Column4", 4, "Section of a column of values of 4 bytes")
COLUMN_8 = _values("Column8", 8, "Section of a column of values of 8 bytes")
COLUMN_16 = _values("Column16", 16, "Section of a column of values of 16 bytes")
COLUMN_32 = _values("Column32", 32, "Section of a column of values of 32 bytes")
BOOLEAN_COLUMN = _message(
    "BooleanColumn",
    _NULLS,
    _field("values", BitPerValue(), "One bit for each value, the lowest first"),
    doc="Section of a column of truth values",
)
SYMBOL_COLUMN = _message(
    "SymbolColumn",
    _NULLS,
    _field("ids", Each(LEB128), "Ids in the dictionary, without the nulls"),
    doc="Section of a column of symbols",
)
SLICE_COLUMN = _message(
    "SliceColumn",
    _NULLS,
    _field("values", Slices(), "The values, without the nulls"),
    doc="Section of a column of texts or bytes",
)
GEOHASH_COLUMN = _message(
    "GeohashColumn",
    _NULLS,
    _field("precision", LEB128, "Bits of a value", unit="bits", minimum=1, maximum=60),
    _field("values", PerValue(bits="precision"), "The values in whole bytes, low byte first"),
    doc="Section of a column of geohashes",
)
ARRAY = _message(
    "Array",
    _field("dims", Many(Int8ul, Int32sl), "Size of each dimension"),
    _field("elements", Elements("dims", 8), "The elements, low byte first"),
    doc="One value of an array column",
)
ARRAY_COLUMN = _message(
    "ArrayColumn",
    _NULLS,
    _field("values", Each(Nested(ARRAY)), "The arrays, without the nulls"),
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

COLUMN = _message(
    "ColumnDefinition",
    _field("name", _STRING, "Name of the column; empty for the designated timestamp"),
    _field("type", Int8ul, "What the column holds", enum=ColumnType, closed=True),
    doc="Defines a column of a table",
)
TABLE = _message(
    "TableBlock",
    _field("name", _STRING, "Name of the table"),
    _field("row_count", LEB128, "How many rows", unit="rows"),
    _field("columns", Many(LEB128, Nested(COLUMN)), "The columns"),
    _field(
        "sections",
        Sections("columns", "type", "row_count", SECTIONS),
        "The values of each column, in the order of the definitions",
    ),
    doc="Rows of one table, column by column",
)
PAYLOAD = _message(
    "Payload",
    _field("dictionary", Nested(DICTIONARY), "Symbols that are new"),
    _field("tables", Filled(Nested(TABLE)), "The tables, as many as the message says"),
    doc="Payload of a message with flag DELTA_DICTIONARY",
)

_TABLE_SEQUENCE = _message(
    "TableSequence",
    _field(
        "name_length",
        Rebuild(Int16ul, len_(this.name)),
        "Length of the name",
        unit="bytes",
        minimum=1,
        maximum=2**16 - 1,
    ),
    _field("name", Bytes(this.name_length), "Name of the table in UTF-8"),
    _field("sequence", Int64sl, "Number of the table's last transaction"),
    doc="How far a table has come",
)
_SEQUENCES: Final = _field(
    "tables", Many(Int16ul, Nested(_TABLE_SEQUENCE)), "How far each table is"
)
_WIRE_SEQUENCE: Final = _field(
    "wire_sequence", Int64sl, "Number of the message on its connection, from 0", unit="messages"
)
OK = _message(
    "OkResponse",
    _field("status", Const(0, Int8ul), "0"),
    _WIRE_SEQUENCE,
    _SEQUENCES,
    doc="Says that messages up to a number are taken",
)
DURABLE_ACK = _message(
    "DurableAck",
    _field("status", Const(2, Int8ul), "2"),
    _SEQUENCES,
    doc="Says how far tables are safe on storage",
)
ERROR = _message(
    "ErrorResponse",
    _field("status", Int8ul, "Why, with others unknown", enum=Status, minimum=3, maximum=255),
    _WIRE_SEQUENCE,
    _field(
        "text_length",
        Rebuild(Int16ul, len_(this.text)),
        "Length of the text",
        unit="bytes",
        minimum=0,
        maximum=MAX_ERROR_TEXT,
    ),
    _field("text", Bytes(this.text_length), "Why, for people, in UTF-8"),
    doc="Refuses a message; the connection takes none after it",
)

GRAMMAR: Final = Grammar(
    name="qwp",
    doc="QWP messages: what senders send in columns, and what servers answer.",
    sources=("lance_spec/grammar/qwp.py",),
    messages=(
        MESSAGE,
        DICTIONARY,
        COLUMN_1,
        COLUMN_2,
        COLUMN_4,
        COLUMN_8,
        COLUMN_16,
        COLUMN_32,
        BOOLEAN_COLUMN,
        SYMBOL_COLUMN,
        SLICE_COLUMN,
        GEOHASH_COLUMN,
        ARRAY,
        ARRAY_COLUMN,
        DECIMAL_8,
        DECIMAL_16,
        DECIMAL_32,
        COLUMN,
        TABLE,
        PAYLOAD,
        _TABLE_SEQUENCE,
        OK,
        DURABLE_ACK,
        ERROR,
    ),
    composed=True,
)
