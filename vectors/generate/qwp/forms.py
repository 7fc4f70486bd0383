"""QWP tables in the forms that flags of their message ask for: Gorilla times, local symbols."""

from typing import Any

from generate.codec.columns import Each, Nulls, Sections
from generate.codec.cursor import Reader, Shape, Writer
from generate.codec.nested import Field, Filled, Many, Nested, Seal, Struct
from generate.codec.shapes import I64LE, LEB128, U8, U32LE, Const, Fixed, Length, Measured
from generate.composed import Example
from generate.qwp.grammar import CASES, COLUMN, DICTIONARY, NAME, TEXT

WIDTHS = (0, 7, 9, 12, 32)
"""Bits of a change of the distance, by the number of ones that stand before it."""


class Times(Shape):
    """Times of 8 bytes each, or packed: two of them, then how their distances change."""

    def write(self, value: Any, writer: Writer) -> bytes:
        """Return the bytes, which are given as they are packed."""
        del writer
        return bytes(value)

    def read(self, reader: Reader) -> bytes:
        """Return as many bytes as the values take."""
        start = reader.place
        if not reader.record["encoding"]:
            return reader.take(8 * reader.present)
        if reader.present - 2 > 8 * reader.left:
            raise reader.refused("short")
        size = self._size(reader)
        if size > reader.left:
            raise reader.refused("short", start)
        return reader.take(size)

    def _size(self, reader: Reader) -> int:
        """Return the bytes of packed values, as far as they can be known."""
        bits = "".join(f"{byte:08b}"[::-1] for byte in reader.data[reader.place : reader.end])
        place = 64 * min(reader.present, 2)
        for _ in range(reader.present - 2):
            ones = len(bits[place : place + 4]) - len(bits[place : place + 4].lstrip("1"))
            place += min(ones + 1, 4) + WIDTHS[ones]
        return (place + 7) // 8 if place <= len(bits) else reader.left + 1


def packed(*values: int) -> bytes:
    """Return times as Gorilla packs them, bit by bit."""
    bits = ""
    for before, middle, after in zip(values, values[1:], values[2:], strict=False):
        change = after - 2 * middle + before
        ones = next(n for n, width in enumerate(WIDTHS) if _fits(change, width))
        opening = "1" * ones + ("0" if ones < 4 else "")
        low = f"{change % 2 ** WIDTHS[ones]:0{WIDTHS[ones]}b}"[::-1] if ones else ""
        bits += opening + low
    bits += "0" * (-len(bits) % 8)
    octets = bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))
    return b"".join(I64LE.raw(each) for each in values[:2]) + octets


def _fits(change: int, width: int) -> bool:
    return -(2**width) // 2 <= change < max(2**width // 2, 1)


TIMES = Struct(
    "TimestampColumn",
    (Field("nulls", Nulls()), Field("encoding", U8.but(names=(0, 1))), Field("values", Times())),
)
LOCAL_SYMBOLS = Struct(
    "LocalSymbolColumn",
    (
        Field("nulls", Nulls()),
        Field("symbols", Many(LEB128, TEXT)),
        Field("ids", Each(LEB128)),
    ),
)
SECTIONS = {
    "GorillaTable": CASES | dict.fromkeys((0x0A, 0x10), TIMES),
    "LocalTable": CASES | {0x09: LOCAL_SYMBOLS},
    "LocalGorillaTable": CASES | dict.fromkeys((0x0A, 0x10), TIMES) | {0x09: LOCAL_SYMBOLS},
}


def table(name: str) -> Struct:
    """Return a table in one of the forms."""
    return Struct(
        name,
        (
            NAME,
            Field("row_count", LEB128),
            Field("columns", Many(LEB128, Nested(COLUMN))),
            Field("sections", Sections(SECTIONS[name])),
        ),
    )


def payload(name: str, of: str, *, dictionary: bool) -> Struct:
    """Return the payload of a message with such tables."""
    symbols = (Field("dictionary", Nested(DICTIONARY)),) if dictionary else ()
    return Struct(name, (*symbols, Field("tables", Filled(Nested(table(of))))))


NOON = 1_706_918_400_000_000
HEADER = Struct(
    "SymbolDictionaryHeader",
    (
        Field("magic", Const(Fixed(4), b"SYD1")),
        Field("version", Const(U8, 1)),
        Field("reserved", Const(Fixed(3), bytes(3))),
    ),
)
SYMBOLS = Struct("Symbols", (Field("symbols", Filled(TEXT)),))
CHUNK = Struct(
    "SymbolChunk",
    (
        Field("entry_count", LEB128),
        Field("entry_bytes", Length(LEB128, "entries")),
        Field("entries", Measured("entry_bytes")),
        Field("crc", U32LE),
    ),
    Seal("crc", 0, -4, "little"),
)
SYMBOL_FILE: tuple[tuple[Struct, tuple[Example, ...]], ...] = (
    (HEADER, (Example("one", "Letters, version and zeros.", {}),)),
    (
        SYMBOLS,
        (
            Example("two", "Two symbols.", {"symbols": ["A0", "größe"]}),
            Example("none", "None.", {"symbols": []}),
        ),
    ),
    (
        CHUNK,
        (
            Example("one", "One symbol.", {"entry_count": 1, "entries": b"\x02A0"}),
            Example(
                "long",
                "A length of two bytes.",
                {"entry_count": 1, "entries": b"\xc8\x01" + b"s" * 200},
            ),
        ),
    ),
)
"""The parts of a symbol dictionary with their examples."""
STEADY = tuple(NOON + 1_000_000 * n for n in range(5))
EDGES = (0, -64, 63, 64, -256, 255, -257, -2048, 2047, 2048, -(2**31), 2**31 - 1)
"""Changes at the ends of each number of bits."""


def changing(*changes: int) -> tuple[int, ...]:
    """Return times whose distances change so."""
    times = [NOON, NOON + 1000]
    for change in changes:
        times.append(2 * times[-1] - times[-2] + change)
    return tuple(times)


def times(name: str, comment: str, values: tuple[int, ...], *, encoding: int = 1) -> Example:
    """Return a table with a column of times."""
    raw = packed(*values) if encoding else b"".join(I64LE.raw(each) for each in values)
    section = {"nulls": None, "encoding": encoding, "values": raw}
    return Example(name, comment, _rows(0x0A, section, len(values)))


def _rows(kind: int, section: dict[str, Any], rows: int) -> dict[str, Any]:
    columns = [{"name": "v", "type": kind}]
    return {"name": "t", "row_count": rows, "columns": columns, "sections": [section]}


def symbols(name: str, comment: str, rows: int, **section: Any) -> Example:
    """Return a table with a column of symbols of its own."""
    return Example(name, comment, _rows(0x09, {"nulls": None} | section, rows))


GORILLA = (
    times("edges", "Changes at the ends of each width.", changing(*EDGES)),
    times("steady", "Times at equal distances: one bit each.", STEADY),
    times("two", "Two times: nothing is packed.", STEADY[:2]),
    times("one", "One time.", STEADY[:1]),
    times("none", "No rows.", ()),
    times("three", "Three times, of which one is packed.", changing(-65)),
    times("plain", "Times that are not packed.", STEADY, encoding=0),
)
LOCAL = (
    symbols("one", "One symbol in two rows.", 2, symbols=["A"], ids=[0, 0]),
    symbols("two", "Two symbols in three rows.", 3, symbols=["A0", "größe"], ids=[0, 1, 0]),
    symbols("nulls", "A row without one.", 3, nulls=b"\x02", symbols=["A0"], ids=[0, 0]),
    symbols("none", "No row has one.", 3, nulls=b"\x07", symbols=[], ids=[]),
)
FORMS: tuple[tuple[Struct, tuple[Example, ...]], ...] = (
    (table("GorillaTable"), GORILLA),
    (table("LocalTable"), LOCAL),
    (table("LocalGorillaTable"), (*LOCAL[:1], *GORILLA[:1])),
    (
        payload("GorillaPayload", "GorillaTable", dictionary=True),
        (
            Example("one", "One table.", {
                "dictionary": {"start_id": 0, "symbols": []}, "tables": [GORILLA[1].value]}),
        ),
    ),
    (
        payload("LocalPayload", "LocalTable", dictionary=False),
        (Example("one", "One table.", {"tables": [LOCAL[0].value]}),),
    ),
    (
        payload("LocalGorillaPayload", "LocalGorillaTable", dictionary=False),
        (Example("two", "Two tables.", {"tables": [LOCAL[0].value, GORILLA[1].value]}),),
    ),
)  # fmt: skip
"""Tables and payloads with their examples."""
