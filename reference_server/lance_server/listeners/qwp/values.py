"""Converts the sections of a table's columns to values of JSON.

Values are made one row at a time: a message of a few MiB can stand for many more in Python.

Every type has a null: the null bit, or for senders that do not set bits, the value the type
reserves for it. Both become ``null``.
"""

import base64
import datetime as dt
import ipaddress
import math
import struct
import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from lance_server.listeners.qwp.refusals import bad_message, dictionary_gap
from lance_spec.messages.qwp import (
    Array,
    ArrayColumn,
    BooleanColumn,
    ColumnDefinition,
    ColumnType,
    Decimal8,
    Decimal16,
    Decimal32,
    GeohashColumn,
    LocalSymbolColumn,
    SliceColumn,
    SymbolColumn,
    TimeEncoding,
    TimestampColumn,
)
from lance_spec.qwp import gorilla

Values: TypeAlias = Iterable[Any]
Symbols: TypeAlias = Sequence[str]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LEAST: Final = -(2**63)
_BASE32: Final = "0123456789bcdefghjkmnpqrstuvwxyz"
_MAX_DIMENSIONS: Final = 32
_MAX_SCALE: Final = 76


def column_values(column: ColumnDefinition, section: Any, rows: int, symbols: Symbols) -> Values:
    """Return the values of a column, one for each row.

    Args:
        column: its definition.
        section: its section.
        rows: how many rows the table has.
        symbols: the connection's dictionary.

    Raises:
        QwpRefusal: a value means nothing.
    """
    present = rows
    if section.nulls is not None:
        bits = int.from_bytes(section.nulls, "little") & ((1 << rows) - 1)
        present -= bits.bit_count()
    values = _decode(column, section, present, symbols)
    if section.nulls is None:
        return values
    found = iter(values)
    nulls: bytes = section.nulls
    return (None if nulls[row >> 3] >> (row & 7) & 1 else next(found) for row in range(rows))


def _decode(column: ColumnDefinition, section: Any, count: int, symbols: Symbols) -> Values:
    match section:
        case SymbolColumn():
            values = _symbols(column, section.ids, symbols)
        case LocalSymbolColumn():
            values = _symbols(column, section.ids, section.symbols)
        case SliceColumn():
            values = _slices(column, section)
        case BooleanColumn():
            bits = section.values
            values = (bool(bits[each >> 3] >> (each & 7) & 1) for each in range(count))
        case GeohashColumn():
            values = _geohashes(section)
        case ArrayColumn():
            values = (_array(column, each) for each in section.values)
        case Decimal8() | Decimal16() | Decimal32():
            values = _decimals(column, section.scale, section.values, _DECIMALS[type(section)])
        case _ if column.type in _TIMES:
            values = _TIMES[column.type](instants(section, count))
        case _:
            values = _PLAIN[column.type](section.values)
    return values


# Numbers ---------------------------------------------------------------------------------------


def _integers(code: str, null: int | None) -> Callable[[bytes], Values]:
    def decode(raw: bytes) -> Values:
        return (None if each == null else each for (each,) in struct.iter_unpack(f"<{code}", raw))

    return decode


def _floats(code: str) -> Callable[[bytes], Values]:
    def decode(raw: bytes) -> Values:
        return (_float(each) for (each,) in struct.iter_unpack(f"<{code}", raw))

    return decode


def _float(value: float) -> float | str | None:
    """Return a number as JSON can hold it: there, infinity is not a number."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return None
    return "Infinity" if value > 0 else "-Infinity"


def _decimals(column: ColumnDefinition, scale: int, raw: bytes, size: int) -> Values:
    if scale > _MAX_SCALE:
        raise bad_message(f"column '{column.name}': scale {scale} is over {_MAX_SCALE}")
    null = -(1 << (8 * size - 1))
    numbers = (int.from_bytes(each, "little", signed=True) for each in _cut(raw, size))
    return (None if each == null else format(_scaled(each, scale), "f") for each in numbers)


def _scaled(number: int, scale: int) -> Decimal:
    sign, digits = ("-" if number < 0 else ""), str(abs(number))
    return Decimal(f"{sign}{digits}E-{scale}")


def _cut(raw: bytes, size: int) -> Iterable[bytes]:
    return (raw[at : at + size] for at in range(0, len(raw), size))


# Times -----------------------------------------------------------------------------------------


def timestamp_text(value: int, per_second: int, digits: int) -> str | None:
    """Return a time since the Unix epoch in ISO 8601, with as many digits as its unit has.

    Args:
        value: the time; the least of 64 bits stands for none.
        per_second: units in a second.
        digits: digits of the fraction.
    """
    if value == _LEAST:
        return None
    seconds, fraction = divmod(value, per_second)
    try:
        whole = _EPOCH + dt.timedelta(seconds=seconds)
    except OverflowError:
        return f"{value} since 1970 in 1/{per_second} s"
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{fraction:0{digits}d}Z"


def instants(section: Any, count: int) -> Iterable[int]:
    """Return the numbers of a column of times: of 8 bytes each, or packed.

    Args:
        section: the column's section.
        count: how many values it has.
    """
    if isinstance(section, TimestampColumn) and section.encoding == TimeEncoding.GORILLA:
        return gorilla.values(section.values, count)
    return (each for (each,) in struct.iter_unpack("<q", section.values))


def _times(per_second: int, digits: int) -> Callable[[Iterable[int]], Values]:
    def decode(numbers: Iterable[int]) -> Values:
        return (timestamp_text(each, per_second, digits) for each in numbers)

    return decode


# Words -----------------------------------------------------------------------------------------


def _symbols(column: ColumnDefinition, ids: Sequence[int], symbols: Symbols) -> Values:
    try:
        return [symbols[each] for each in ids]
    except IndexError:
        raise dictionary_gap(
            f"column '{column.name}' uses symbol {max(ids)}, and its dictionary has "
            f"{len(symbols)}; send the dictionary again from id 0"
        ) from None


def _slices(column: ColumnDefinition, section: SliceColumn) -> Values:
    if column.type == ColumnType.BINARY:
        return (base64.b64encode(each).decode() for each in section.values)
    return (_text(column, each) for each in section.values)


def _text(column: ColumnDefinition, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise bad_message(f"column '{column.name}': a text is not UTF-8: {error}") from None


def _characters(raw: bytes) -> Values:
    """Return UTF-16 units as texts; half of a pair means nothing on its own."""
    units = struct.iter_unpack("<H", raw)
    return (
        None if not each else "\ufffd" if 0xD800 <= each < 0xE000 else chr(each)
        for (each,) in units
    )


def _geohashes(section: GeohashColumn) -> Values:
    bits = section.precision
    size = (bits + 7) // 8
    # All ones stand for null only where they set more bits than a geohash of this precision has.
    null = (1 << 8 * size) - 1 if bits % 8 else None
    numbers = (int.from_bytes(each, "little") for each in _cut(section.values, size))
    return (None if each == null else _geohash(each, bits) for each in numbers)


def _geohash(number: int, bits: int) -> str:
    """Return the usual letters, or the bits where five do not make a letter."""
    number &= (1 << bits) - 1
    if bits % 5:
        return f"{number:0{bits}b}"
    return "".join(_BASE32[number >> at & 31] for at in range(bits - 5, -1, -5))


def _uuids(raw: bytes) -> Values:
    null = struct.pack("<qq", _LEAST, _LEAST)
    return (
        None if each == null else str(uuid.UUID(int=int.from_bytes(each, "little")))
        for each in _cut(raw, 16)
    )


def _long256s(raw: bytes) -> Values:
    null = struct.pack("<q", _LEAST) * 4
    return (
        None if each == null else f"0x{int.from_bytes(each, 'little'):064x}"
        for each in _cut(raw, 32)
    )


def _addresses(raw: bytes) -> Values:
    numbers = struct.iter_unpack("<I", raw)
    return (str(ipaddress.IPv4Address(each)) if each else None for (each,) in numbers)


# Arrays ----------------------------------------------------------------------------------------


def _array(column: ColumnDefinition, array: Array) -> list[Any]:
    if not 1 <= len(array.dims) <= _MAX_DIMENSIONS:
        raise bad_message(
            f"column '{column.name}': an array has 1 to {_MAX_DIMENSIONS} dimensions, "
            f"not {len(array.dims)}"
        )
    code = "d" if column.type == ColumnType.DOUBLE_ARRAY else "q"
    numbers = struct.unpack(f"<{len(array.elements) // 8}{code}", array.elements)
    values = [_float(each) for each in numbers] if code == "d" else list(numbers)
    if not values:
        return []
    for size in reversed(array.dims[1:]):
        values = [values[at : at + size] for at in range(0, len(values), size)]
    return values


_DECIMALS: Final = {Decimal8: 8, Decimal16: 16, Decimal32: 32}
_TIMES: Final[dict[int, Callable[[Iterable[int]], Values]]] = {
    ColumnType.TIMESTAMP: _times(1_000_000, 6),
    ColumnType.TIMESTAMP_NANOS: _times(1_000_000_000, 9),
    ColumnType.DATE: _times(1_000, 3),
}
_PLAIN: Final[dict[int, Callable[[bytes], Values]]] = {
    ColumnType.BYTE: _integers("b", None),
    ColumnType.SHORT: _integers("h", None),
    ColumnType.INT: _integers("i", -(2**31)),
    ColumnType.LONG: _integers("q", _LEAST),
    ColumnType.FLOAT: _floats("f"),
    ColumnType.DOUBLE: _floats("d"),
    ColumnType.UUID: _uuids,
    ColumnType.LONG256: _long256s,
    ColumnType.CHAR: _characters,
    ColumnType.IPV4: _addresses,
}
