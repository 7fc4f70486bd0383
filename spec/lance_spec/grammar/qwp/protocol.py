"""QWP version 1 as its published senders speak it: messages with inline column definitions.

Two flags of a message decide how its payload is laid out, so there are four payloads. Published
senders always send the dictionary of symbols that are new (flag 0x08, `PAYLOAD`) and never let
columns of timestamps say how they are written (flag 0x04).
"""

from enum import IntEnum, IntFlag
from typing import Final

from construct import Bytes, Const, Int8ul, Int16ul, Int32ul, Int64sl, Rebuild, len_, this

from lance_spec.grammar._columns import Sections
from lance_spec.grammar._composed import LEB128, Filled, Many, Nested
from lance_spec.grammar._vocab import Declaration, Grammar
from lance_spec.grammar.qwp import columns, symbol_dictionary
from lance_spec.grammar.qwp.columns import (
    LOCAL_SYMBOL_COLUMN,
    SECTIONS,
    STRING,
    TIMESTAMP_COLUMN,
    ColumnType,
    qwp_field,
    qwp_message,
)


class MessageFlag(IntFlag):
    """Properties of a message."""

    DEFER_COMMIT = 0x01
    """The rows are committed by a later message without this flag."""
    GORILLA = 0x04
    """Columns of timestamps say how they are written; published senders never set it."""
    DELTA_DICTIONARY = 0x08
    """The payload opens with symbols that are new; published senders always set it."""


class Status(IntEnum):
    """Why a message was refused."""

    SCHEMA_MISMATCH = 0x03
    """A column does not have the type that its table gives it."""
    PARSE_ERROR = 0x05
    """The message cannot be read."""
    INTERNAL_ERROR = 0x06
    """The server failed inside."""
    SECURITY_ERROR = 0x08
    """The sender may not do this."""
    WRITE_ERROR = 0x09
    """The rows could not be written."""
    CANCELLED = 0x0A
    """A query was cancelled; senders never see it."""
    LIMIT_EXCEEDED = 0x0B
    """A query asked too much; senders never see it."""
    NOT_WRITABLE = 0x0C
    """The server takes no rows for the time being."""
    DICTIONARY_GAP = 0x0D
    """Symbols are missing between those sent and these."""


MAX_ERROR_TEXT: Final = 1024
"""Most bytes of the text of an error."""


MESSAGE = qwp_message(
    "QwpMessage",
    qwp_field("magic", Const(b"QWP1"), "The letters QWP1"),
    qwp_field("version", Const(1, Int8ul), "Version of the protocol"),
    qwp_field("flags", Int8ul, "Properties of the message", flags=MessageFlag),
    qwp_field("table_count", Int16ul, "How many tables; 0 for a dictionary or a commit alone"),
    qwp_field(
        "payload_length",
        Rebuild(Int32ul, len_(this.payload)),
        "Length of the payload",
        unit="bytes",
    ),
    qwp_field("payload", Bytes(this.payload_length), "A dictionary and tables"),
    doc="What a sender puts into one WebSocket message",
)
DICTIONARY = qwp_message(
    "Dictionary",
    qwp_field("start_id", LEB128, "Id of the first symbol here; the next not yet sent"),
    qwp_field("symbols", Many(LEB128, STRING), "The symbols, with ids that follow each other"),
    doc="Symbols that are new since the last message",
)


COLUMN = qwp_message(
    "ColumnDefinition",
    qwp_field("name", STRING, "Name of the column; empty for the designated timestamp"),
    qwp_field("type", Int8ul, "What the column holds", enum=ColumnType, closed=True),
    doc="Defines a column of a table",
)


def _table(name: str, sections: dict[int, Declaration], doc: str) -> Declaration:
    return qwp_message(
        name,
        qwp_field("name", STRING, "Name of the table"),
        qwp_field("row_count", LEB128, "How many rows", unit="rows"),
        qwp_field("columns", Many(LEB128, Nested(COLUMN)), "The columns"),
        qwp_field(
            "sections",
            Sections("columns", "type", "row_count", sections),
            "The values of each column, in the order of the definitions",
        ),
        doc=doc,
    )


_TIMES: Final = dict.fromkeys((ColumnType.TIMESTAMP, ColumnType.TIMESTAMP_NANOS), TIMESTAMP_COLUMN)
_LOCAL: Final = {ColumnType.SYMBOL: LOCAL_SYMBOL_COLUMN}
_ROWS: Final = "Rows of one table, column by column"
TABLE = _table("TableBlock", SECTIONS, _ROWS)
GORILLA_TABLE = _table("GorillaTable", SECTIONS | _TIMES, f"{_ROWS}, with flag GORILLA")
LOCAL_TABLE = _table("LocalTable", SECTIONS | _LOCAL, f"{_ROWS}, without DELTA_DICTIONARY")
LOCAL_GORILLA_TABLE = _table(
    "LocalGorillaTable",
    SECTIONS | _TIMES | _LOCAL,
    f"{_ROWS}, without DELTA_DICTIONARY and with GORILLA",
)


def _payload(name: str, table: Declaration, flags: str, *, dictionary: bool) -> Declaration:
    tables = qwp_field("tables", Filled(Nested(table)), "The tables, as many as the message says")
    symbols = qwp_field("dictionary", Nested(DICTIONARY), "Symbols that are new")
    fields = (symbols, tables) if dictionary else (tables,)
    return qwp_message(name, *fields, doc=f"Payload of a message with {flags}")


PAYLOAD = _payload("Payload", TABLE, "flag DELTA_DICTIONARY", dictionary=True)
GORILLA_PAYLOAD = _payload(
    "GorillaPayload", GORILLA_TABLE, "flags DELTA_DICTIONARY and GORILLA", dictionary=True
)
LOCAL_PAYLOAD = _payload("LocalPayload", LOCAL_TABLE, "neither flag", dictionary=False)
LOCAL_GORILLA_PAYLOAD = _payload(
    "LocalGorillaPayload", LOCAL_GORILLA_TABLE, "flag GORILLA alone", dictionary=False
)

_TABLE_SEQUENCE = qwp_message(
    "TableSequence",
    qwp_field(
        "name_length",
        Rebuild(Int16ul, len_(this.name)),
        "Length of the name",
        unit="bytes",
        minimum=1,
        maximum=2**16 - 1,
    ),
    qwp_field("name", Bytes(this.name_length), "Name of the table in UTF-8"),
    qwp_field("sequence", Int64sl, "Number of the table's last transaction"),
    doc="How far a table has come",
)
_SEQUENCES: Final = qwp_field(
    "tables", Many(Int16ul, Nested(_TABLE_SEQUENCE)), "How far each table is"
)
_WIRE_SEQUENCE: Final = qwp_field(
    "wire_sequence", Int64sl, "Number of the message on its connection, from 0", unit="messages"
)
OK = qwp_message(
    "OkResponse",
    qwp_field("status", Const(0, Int8ul), "0"),
    _WIRE_SEQUENCE,
    _SEQUENCES,
    doc="Says that messages up to a number are taken",
)
DURABLE_ACK = qwp_message(
    "DurableAck",
    qwp_field("status", Const(2, Int8ul), "2"),
    _SEQUENCES,
    doc="Says how far tables are safe on storage",
)
ERROR = qwp_message(
    "ErrorResponse",
    qwp_field("status", Int8ul, "Why, with others unknown", enum=Status, minimum=3, maximum=255),
    _WIRE_SEQUENCE,
    qwp_field(
        "text_length",
        Rebuild(Int16ul, len_(this.text)),
        "Length of the text",
        unit="bytes",
        minimum=0,
        maximum=MAX_ERROR_TEXT,
    ),
    qwp_field("text", Bytes(this.text_length), "Why, for people, in UTF-8"),
    doc="Refuses a message; the connection takes none after it",
)

GRAMMAR: Final = Grammar(
    name="qwp",
    doc="QWP messages: what senders send in columns, and what servers answer.",
    sources=tuple(
        f"lance_spec/grammar/qwp/{part}.py" for part in ("protocol", "columns", "symbol_dictionary")
    ),
    messages=(
        MESSAGE,
        DICTIONARY,
        *columns.MESSAGES,
        COLUMN,
        TABLE,
        GORILLA_TABLE,
        LOCAL_TABLE,
        LOCAL_GORILLA_TABLE,
        PAYLOAD,
        GORILLA_PAYLOAD,
        LOCAL_PAYLOAD,
        LOCAL_GORILLA_PAYLOAD,
        _TABLE_SEQUENCE,
        OK,
        DURABLE_ACK,
        ERROR,
        *symbol_dictionary.MESSAGES,
    ),
    composed=True,
)
