"""QWP written down a second time: its messages, columns and answers, with examples."""

from typing import Any

from generate.codec.columns import BitPerValue, Each, Elements, Nulls, PerValue, Sections, Slices
from generate.codec.cursor import Shape
from generate.codec.nested import Field, Filled, Many, Nested, Struct
from generate.codec.shapes import (
    I32LE,
    I64LE,
    LEB128,
    U8,
    U16LE,
    U32LE,
    Blob,
    Const,
    Fixed,
    Length,
    Measured,
    Varint,
)
from generate.composed import Example

SPEC = {"name": "QWP wire ingress", "version": "1", "revision": "inline column definitions"}
TEXT = Blob(LEB128, text=True)
NAME, NULLS = Field("name", TEXT), Field("nulls", Nulls())


def f(name: str, shape: Shape) -> Field:
    """Return a field."""
    return Field(name, shape)


def message(name: str, *fields: Field) -> Struct:
    """Return a message."""
    return Struct(name, fields)


def values(size: int) -> Struct:
    """Return the section of a column with values of one size."""
    return message(f"Column{size}", NULLS, f("values", PerValue(size)))


def decimals(size: int) -> Struct:
    """Return the section of a column of decimal numbers."""
    return message(f"Decimal{size}", NULLS, f("scale", U8), f("values", PerValue(size)))


MESSAGE = message(
    "QwpMessage",
    f("magic", Const(Fixed(4), b"QWP1")),
    f("version", Const(U8, 1)),
    f("flags", U8),
    f("table_count", U16LE),
    f("payload_length", Length(U32LE, "payload")),
    f("payload", Measured("payload_length")),
)
DICTIONARY = message("Dictionary", f("start_id", LEB128), f("symbols", Many(LEB128, TEXT)))
ARRAY = message("Array", f("dims", Many(U8, I32LE)), f("elements", Elements()))
BOOLEANS = message("BooleanColumn", NULLS, f("values", BitPerValue()))
SYMBOLS = message("SymbolColumn", NULLS, f("ids", Each(LEB128)))
SLICES = message("SliceColumn", NULLS, f("values", Slices()))
GEOHASHES = message(
    "GeohashColumn",
    NULLS,
    f("precision", Varint(limits=(1, 60))),
    f("values", PerValue(bits="precision")),
)
ARRAYS = message("ArrayColumn", NULLS, f("values", Each(Nested(ARRAY))))
CASES = {
    **dict.fromkeys((0x02,), values(1)),
    **dict.fromkeys((0x03, 0x16), values(2)),
    **dict.fromkeys((0x04, 0x06, 0x18), values(4)),
    **dict.fromkeys((0x05, 0x07, 0x0A, 0x0B, 0x10), values(8)),
    0x0C: values(16),
    0x0D: values(32),
    0x01: BOOLEANS,
    0x09: SYMBOLS,
    0x0E: GEOHASHES,
    **dict.fromkeys((0x0F, 0x17), SLICES),
    **dict.fromkeys((0x11, 0x12), ARRAYS),
    0x13: decimals(8),
    0x14: decimals(16),
    0x15: decimals(32),
}
"""The section of each type of column."""
COLUMN = message("ColumnDefinition", NAME, f("type", U8.but(names=sorted(CASES))))
TABLE = message(
    "TableBlock",
    NAME,
    f("row_count", LEB128),
    f("columns", Many(LEB128, Nested(COLUMN))),
    f("sections", Sections(CASES)),
)
PAYLOAD = message(
    "Payload", f("dictionary", Nested(DICTIONARY)), f("tables", Filled(Nested(TABLE)))
)
SEQUENCE = message(
    "TableSequence",
    f("name_length", Length(U16LE.but(limits=(1, 2**16 - 1)), "name")),
    f("name", Measured("name_length")),
    f("sequence", I64LE),
)
TABLES, WIRE = f("tables", Many(U16LE, Nested(SEQUENCE))), f("wire_sequence", I64LE)
OK = message("OkResponse", f("status", Const(U8, 0)), WIRE, TABLES)
DURABLE = message("DurableAck", f("status", Const(U8, 2)), TABLES)
ERROR = message(
    "ErrorResponse",
    f("status", U8.but(limits=(3, 255))),
    WIRE,
    f("text_length", Length(U16LE.but(limits=(0, 1024)), "text")),
    f("text", Measured("text_length")),
)

STATUSES = {
    0x03: b"schema",
    0x05: b"parse",
    0x06: b"internal",
    0x08: b"security",
    0x09: b"write",
    0x0A: b"cancelled",
    0x0B: b"limit",
    0x0C: b"not writable",
    0x0D: b"gap",
    0x04: b"a status without a name",
    0xFF: b"another one",
}
EIGHT, LOCALHOST = bytes(range(8)), b"\x01\0\0\x7f"
KINDS: tuple[tuple[str, int, dict[str, Any], dict[str, Any]], ...] = (
    ("boolean", 0x01, {"values": b"\x05"}, {"nulls": b"\x02", "values": b"\x03"}),
    ("byte", 0x02, {"values": b"\x01\x80\xff"}, {"nulls": b"\x02", "values": b"\x07\x09"}),
    ("short", 0x03, {"values": EIGHT[:6]}, {"nulls": b"\x05", "values": b"\x00\x80"}),
    ("int", 0x04, {"values": EIGHT + EIGHT[:4]}, {"nulls": b"\x07", "values": b""}),
    ("long", 0x05, {"values": EIGHT * 3}, {"nulls": b"\x01", "values": EIGHT * 2}),
    ("float", 0x06, {"values": EIGHT + EIGHT[:4]}, {"nulls": b"\x04", "values": EIGHT}),
    ("double", 0x07, {"values": EIGHT * 3}, {"nulls": b"\x03", "values": EIGHT}),
    ("symbol", 0x09, {"ids": [0, 127, 128]}, {"nulls": b"\x02", "ids": [2**63, 1]}),
    ("timestamp", 0x0A, {"values": EIGHT * 3}, {"nulls": b"\x02", "values": EIGHT * 2}),
    ("date", 0x0B, {"values": EIGHT * 3}, {"nulls": b"\x07", "values": b""}),
    ("uuid", 0x0C, {"values": EIGHT * 6}, {"nulls": b"\x06", "values": EIGHT * 2}),
    ("long256", 0x0D, {"values": EIGHT * 12}, {"nulls": b"\x06", "values": EIGHT * 4}),
    (
        "geohash",
        0x0E,
        {"precision": 20, "values": bytes(9)},
        {"nulls": b"\x07", "precision": 60, "values": b""},
    ),
    (
        "varchar",
        0x0F,
        {"values": ["größe".encode(), b"", b"c"]},
        {"nulls": b"\x02", "values": [b"", b"two"]},
    ),
    ("timestamp-ns", 0x10, {"values": EIGHT * 3}, {"nulls": b"\x01", "values": EIGHT * 2}),
    (
        "double-array",
        0x11,
        {"values": [{"dims": [1], "elements": EIGHT}, {"dims": [0, 2], "elements": b""},
                    {"dims": [2, 1], "elements": EIGHT * 2}]},
        {"nulls": b"\x05", "values": [{"dims": [], "elements": EIGHT}]},
    ),
    (
        "long-array",
        0x12,
        {"values": [{"dims": [1], "elements": EIGHT}] * 3},
        {"nulls": b"\x07", "values": []},
    ),
    (
        "decimal64",
        0x13,
        {"scale": 2, "values": EIGHT * 3},
        {"nulls": b"\x07", "scale": 2, "values": b""},
    ),
    (
        "decimal128",
        0x14,
        {"scale": 0, "values": EIGHT * 6},
        {"nulls": b"\x03", "scale": 38, "values": EIGHT * 2},
    ),
    (
        "decimal256",
        0x15,
        {"scale": 3, "values": EIGHT * 12},
        {"nulls": b"\x03", "scale": 76, "values": EIGHT * 4},
    ),
    ("char", 0x16, {"values": b"a\0b\0c\0"}, {"nulls": b"\x02", "values": b"a\0c\0"}),
    ("binary", 0x17, {"values": [b"\x00", b"\xff", b""]}, {"nulls": b"\x07", "values": []}),
    ("ipv4", 0x18, {"values": LOCALHOST * 3}, {"nulls": b"\x03", "values": LOCALHOST}),
)  # fmt: skip
"""Each type of column: three values, and three rows of which some are null."""


def named(name: str, comment: str, /, **value: Any) -> Example:
    """Return an example."""
    return Example(name, comment, value)


def table(kind: int, section: dict[str, Any], rows: int = 3) -> dict[str, Any]:
    """Return a table of one column."""
    columns = [{"name": "v", "type": kind}]
    return {"name": "t", "row_count": rows, "columns": columns, "sections": [section]}


PARTS: tuple[tuple[Struct, tuple[Example, ...]], ...] = (
    (
        MESSAGE,
        (
            named("commit", "A dictionary without symbols, and no table: a commit.", flags=8,
                  table_count=0, payload=b"\0\0"),
            named("deferred", "Rows that a later message commits.", flags=9, table_count=1,
                  payload=b"\0\0\x01t\0\0"),
            named("empty", "No payload.", flags=0, table_count=0, payload=b""),
            named("largest", "The largest count.", flags=8, table_count=2**16 - 1, payload=b"\0\0"),
        ),
    ),
    (
        DICTIONARY,
        (
            named("two", "Two symbols.", start_id=0, symbols=["A0", "größe"]),
            named("none", "None.", start_id=0, symbols=[]),
            named("later", "Symbols that follow earlier ones.", start_id=300, symbols=["s"]),
            named("empty", "A symbol without letters.", start_id=1, symbols=[""]),
        ),
    ),
    (
        COLUMN,
        (
            named("long", "A column of numbers.", name="v", type=5),
            named("designated", "The time of the row, without a name.", name="", type=0x10),
        ),
    ),
    (
        ARRAY,
        (
            named("two-by-two", "Two dimensions.", dims=[2, 2], elements=EIGHT * 4),
            named("empty", "A dimension of 0.", dims=[3, 0], elements=b""),
            named("scalar", "No dimension, one element.", dims=[], elements=EIGHT),
        ),
    ),
    (
        TABLE,
        (
            named("two-columns", "Two rows of two columns.", name="größe", row_count=2,
                  columns=[{"name": "a", "type": 2}, {"name": "b", "type": 9}],
                  sections=[{"nulls": None, "values": b"\x01\x01"},
                            {"nulls": b"\x01", "ids": [1]}]),
            named("no-columns", "Rows without columns.", name="t", row_count=1, columns=[],
                  sections=[]),
            named("nine-rows", "Null bits in two bytes.", **table(
                2, {"nulls": b"\xff\x00", "values": b"\x07"}, 9)),
        ),
    ),
    (
        PAYLOAD,
        (
            named("two-tables", "Two tables.", dictionary={"start_id": 0, "symbols": ["s"]},
                  tables=[table(2, {"nulls": None, "values": b"a"}, 1),
                          table(9, {"nulls": None, "ids": [0]}, 1)]),
            named("catch-up", "A dictionary alone.", dictionary={"start_id": 0, "symbols": ["a"]},
                  tables=[]),
        ),
    ),
    (SEQUENCE, (named("one", "A table.", name=b"t", sequence=1),
                named("long", "A long name.", name=b"t" * 300, sequence=-1))),
    (
        OK,
        (
            named("one", "A message for one table.", wire_sequence=0,
                  tables=[{"name": b"t", "sequence": 1}]),
            named("none", "A message without tables.", wire_sequence=2**63 - 1, tables=[]),
            named("two", "A message for two tables.", wire_sequence=3,
                  tables=[{"name": b"t", "sequence": 1}, {"name": b"u", "sequence": 9}]),
        ),
    ),
    (DURABLE, (named("one", "One table.", tables=[{"name": b"t", "sequence": 2}]),
               named("none", "None.", tables=[]))),
    (
        ERROR,
        (
            *(named(f"status-{status:02x}", "A refusal.", status=status, wire_sequence=1, text=text)
              for status, text in STATUSES.items()),
            named("no-text", "No text.", status=5, wire_sequence=0, text=b""),
            named("longest", "The longest text.", status=5, wire_sequence=0, text=b"x" * 1024),
        ),
    ),
)  # fmt: skip
"""Messages and their parts; the first example is the one that is spoilt."""
