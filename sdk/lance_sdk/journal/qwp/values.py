"""Values of a cell: the column type of each Python value, and how it is stored until flush.

Most types follow from the value. The others are asked for with a function of this module, for
example ``columns={"level": short(3)}``.
"""

import datetime as dt
import ipaddress
import struct
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from lance_spec.messages.qwp import ColumnType

__all__ = [
    "Cell",
    "binary",
    "boolean",
    "byte",
    "char",
    "date",
    "decimal64",
    "decimal128",
    "decimal256",
    "double",
    "double_array",
    "float32",
    "geohash",
    "int32",
    "ipv4",
    "long",
    "long256",
    "long_array",
    "short",
    "symbol",
    "timestamp_micros",
    "timestamp_nanos",
    "uuid128",
    "varchar",
]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_BASE32: Final = {letter: value for value, letter in enumerate("0123456789bcdefghjkmnpqrstuvwxyz")}
_EXACT: Final = 2**53
"""Integers up to this size are exact as doubles."""
_MOST_DIMENSIONS: Final = 32
_MOST_SCALE: Final = 76
DECIMAL_BYTES: Final = {
    ColumnType.DECIMAL64: 8,
    ColumnType.DECIMAL128: 16,
    ColumnType.DECIMAL256: 32,
}


class Cell(NamedTuple):
    """A value with its column type.

    Attributes:
        type: the type of the column.
        value: what is stored: a number, text, bytes, or for decimals (unscaled, scale), for
            geohashes (number, bits), for arrays (dimensions, elements).
    """

    type: ColumnType
    value: Any


def cell(value: object) -> Cell:
    """Return the cell for a value; the column type follows from the value's.

    Raises:
        TypeError: no column holds such a value.
        ValueError: its column type cannot hold this one.
    """
    if isinstance(value, Cell):
        return value
    make = _MAKERS.get(type(value))
    if make is not None:
        return make(value)
    for kind, make in _MAKERS.items():
        if isinstance(value, kind):
            return make(value)
    return _foreign(value)


def _foreign(value: object) -> Cell:
    """Take values of NumPy, pandas and PyArrow by what they can do, without importing them."""
    if hasattr(value, "dtype") and getattr(value, "shape", ()) != ():
        return double_array(value)  # type: ignore[arg-type]  # it has tolist()
    for method in ("as_py", "to_pydatetime", "item"):
        convert = getattr(value, method, None)
        if callable(convert):
            plain = convert()
            if type(plain) is not type(value):
                return cell(plain)
    raise TypeError(
        f"no column holds a {type(value).__name__}; expected bool, int, float, str, bytes, "
        "datetime, date, Decimal, UUID, IPv4Address, a list of numbers, or a value made by "
        "lance_sdk.journal.qwp.values"
    )


# Numbers


def _integer(kind: ColumnType, bits: int) -> Callable[[int], Cell]:
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if kind in _LEAST_IS_NULL:
        least += 1

    def make(value: int) -> Cell:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"a {kind.name} column takes int, not {type(value).__name__}")
        if not least <= value <= most:
            raise ValueError(f"{value} does not fit in a {kind.name} column of {bits} bits")
        return Cell(kind, value)

    return make


_LEAST_IS_NULL: Final = {ColumnType.INT, ColumnType.LONG}
byte = _integer(ColumnType.BYTE, 8)
short = _integer(ColumnType.SHORT, 16)
int32 = _integer(ColumnType.INT, 32)
long = _integer(ColumnType.LONG, 64)


def boolean(value: bool) -> Cell:
    """Return a BOOLEAN cell."""
    return Cell(ColumnType.BOOLEAN, bool(value))


def double(value: float) -> Cell:
    """Return a DOUBLE cell."""
    return Cell(ColumnType.DOUBLE, float(value))


def float32(value: float) -> Cell:
    """Return a FLOAT cell; the value is rounded to 32 bits.

    Raises:
        ValueError: it is larger than they allow.
    """
    try:
        struct.pack("<f", value)
    except OverflowError:
        raise ValueError(f"{value} does not fit in a FLOAT column") from None
    return Cell(ColumnType.FLOAT, float(value))


def _decimal(kind: ColumnType) -> Callable[[Decimal], Cell]:
    def make(value: Decimal) -> Cell:
        sign, digits, exponent = value.as_tuple()
        if not value.is_finite():
            raise ValueError(f"{value} is not a number that a {kind.name} column holds")
        exponent = int(exponent)
        if exponent > _MOST_SCALE or -exponent > _MOST_SCALE:
            raise ValueError(f"{value}: a {kind.name} column has at most {_MOST_SCALE} places")
        number = int("".join(map(str, digits)) or "0") * 10 ** max(exponent, 0)
        number = -number if sign else number
        if not fits(number, kind):
            raise ValueError(f"{value} does not fit in a {kind.name} column")
        return Cell(kind, (number, max(-exponent, 0)))

    return make


def fits(number: int, kind: ColumnType) -> bool:
    """Return whether an unscaled number fits in a decimal column; the least value means null."""
    return abs(number) < 1 << (8 * DECIMAL_BYTES[kind] - 1)


decimal64 = _decimal(ColumnType.DECIMAL64)
decimal128 = _decimal(ColumnType.DECIMAL128)
decimal256 = _decimal(ColumnType.DECIMAL256)


def long256(value: int) -> Cell:
    """Return a LONG256 cell.

    Raises:
        ValueError: the number is negative or has more than 256 bits.
    """
    if not 0 <= value < 1 << 256:
        raise ValueError(f"{value} does not fit in a LONG256 column: expected 0 to 2^256-1")
    return Cell(ColumnType.LONG256, value.to_bytes(32, "little"))


# Words


def symbol(value: str) -> Cell:
    """Return a SYMBOL cell: text of which few values repeat often.

    Raises:
        ValueError: the text holds half of a surrogate pair, which UTF-8 cannot carry.
    """
    if not isinstance(value, str):
        raise TypeError(f"a SYMBOL column takes str, not {type(value).__name__}")
    return Cell(ColumnType.SYMBOL, varchar(value).value.decode())


def varchar(value: str) -> Cell:
    """Return a VARCHAR cell.

    Raises:
        ValueError: the text holds half of a surrogate pair, which UTF-8 cannot carry.
    """
    try:
        return Cell(ColumnType.VARCHAR, value.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"the text has a lone surrogate at character {error.start}") from None


def char(value: str) -> Cell:
    """Return a CHAR cell.

    Raises:
        ValueError: it is not exactly one UTF-16 unit.
    """
    if len(value) != 1 or not 0 < ord(value) < 0x10000 or 0xD800 <= ord(value) < 0xE000:
        raise ValueError(f"{value!r}: a CHAR column takes one character of the basic plane")
    return Cell(ColumnType.CHAR, ord(value))


def binary(value: bytes | bytearray | memoryview) -> Cell:
    """Return a BINARY cell."""
    return Cell(ColumnType.BINARY, bytes(value))


def uuid128(value: uuid.UUID | str) -> Cell:
    """Return a UUID cell; the low half comes first on the wire.

    Raises:
        ValueError: the text is not a UUID.
    """
    found = value if isinstance(value, uuid.UUID) else uuid.UUID(value)
    return Cell(ColumnType.UUID, found.int.to_bytes(16, "little"))


def ipv4(value: ipaddress.IPv4Address | str) -> Cell:
    """Return an IPV4 cell.

    Raises:
        ValueError: the text is not an address.
    """
    return Cell(ColumnType.IPV4, int(ipaddress.IPv4Address(value)))


def geohash(value: str, bits: int | None = None) -> Cell:
    """Return a GEOHASH cell.

    Args:
        value: its letters, or its bits as ``0`` and ``1`` where ``bits`` says how many.
        bits: the precision; None means 5 for each letter. A column has one precision.

    Raises:
        ValueError: a letter means nothing, or the precision is not 1 to 60 bits.
    """
    if bits is not None and len(value) == bits and set(value) <= {"0", "1"}:
        number = int(value, 2)
    else:
        try:
            number = sum(
                _BASE32[letter] << (5 * place)
                for place, letter in enumerate(reversed(value.lower()))
            )
        except KeyError as error:
            raise ValueError(f"{value!r}: {error.args[0]!r} is not a letter of a geohash") from None
        length = 5 * len(value)
        bits = length if bits is None else bits
        if not 0 <= length - bits < 5:
            raise ValueError(f"{value!r} has {length} bits, not {bits}")
        number >>= length - bits
    if not 1 <= bits <= 60:
        raise ValueError(f"{value!r}: a geohash has 1 to 60 bits")
    return Cell(ColumnType.GEOHASH, (number, bits))


# Times


def timestamp_micros(value: int | dt.datetime) -> Cell:
    """Return a TIMESTAMP cell: microseconds since the Unix epoch, or a datetime with a zone."""
    return Cell(ColumnType.TIMESTAMP, _time(value, "TIMESTAMP", 1))


def timestamp_nanos(value: int | dt.datetime) -> Cell:
    """Return a TIMESTAMP_NANOS cell: nanoseconds since the Unix epoch, or a datetime."""
    return Cell(ColumnType.TIMESTAMP_NANOS, _time(value, "TIMESTAMP_NANOS", 1000))


def date(value: int | dt.datetime | dt.date) -> Cell:
    """Return a DATE cell: milliseconds since the Unix epoch, a day, or a datetime."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if isinstance(value, dt.datetime):
        value = _time(value, "DATE", 1) // 1000
    return Cell(ColumnType.DATE, _time(value, "DATE", 1))


def _time(value: int | dt.datetime, kind: str, per_micro: int) -> int:
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise ValueError(
                f"{value!r} has no time zone; use value.replace(tzinfo=datetime.UTC), or "
                "value.astimezone() where it is local time"
            )
        value = (value - _EPOCH) // _MICROSECOND * per_micro
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a {kind} column takes int or datetime, not {type(value).__name__}")
    if not -(2**63) < value < 2**63:
        raise ValueError(f"{value} does not fit in a {kind} column of 64 bits")
    return value


# Arrays


def double_array(value: Sequence[Any]) -> Cell:
    """Return a DOUBLE_ARRAY cell from nested lists or a NumPy array."""
    return _array(ColumnType.DOUBLE_ARRAY, "d", value)


def long_array(value: Sequence[Any]) -> Cell:
    """Return a LONG_ARRAY cell from nested lists or a NumPy array."""
    return _array(ColumnType.LONG_ARRAY, "q", value)


def _array(kind: ColumnType, code: str, value: Any) -> Cell:
    if hasattr(value, "tolist"):
        value = value.tolist()
    dims = _dimensions(value)
    flat = _flat(value, dims)
    if code == "d" and any(isinstance(each, int) and abs(each) > _EXACT for each in flat):
        raise ValueError("an element of the array is an integer that a double cannot hold exactly")
    try:
        packed = struct.pack(f"<{len(flat)}{code}", *flat)
    except struct.error as error:
        raise ValueError(f"an element of the array does not fit in {kind.name}: {error}") from None
    return Cell(kind, (dims, packed))


def _dimensions(value: Any) -> list[int]:
    dims: list[int] = []
    while isinstance(value, list | tuple):
        dims.append(len(value))
        if len(dims) > _MOST_DIMENSIONS:
            raise ValueError(f"an array has at most {_MOST_DIMENSIONS} dimensions")
        if not value:
            break
        value = value[0]
    return dims


def _flat(value: Any, dims: Sequence[int]) -> list[Any]:
    if not dims:
        if isinstance(value, list | tuple):
            raise ValueError("the array is not rectangular")
        return [value]
    if not isinstance(value, list | tuple) or len(value) != dims[0]:
        raise ValueError("the array is not rectangular")
    return [each for part in value for each in _flat(part, dims[1:])]


_MAKERS: Final[dict[type, Callable[[Any], Cell]]] = {
    bool: boolean,
    int: long,
    float: double,
    str: varchar,
    bytes: binary,
    bytearray: binary,
    memoryview: binary,
    dt.datetime: timestamp_micros,
    dt.date: date,
    Decimal: decimal256,
    uuid.UUID: uuid128,
    ipaddress.IPv4Address: ipv4,
    list: double_array,
    tuple: double_array,
}
