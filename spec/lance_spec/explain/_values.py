"""How values are written for people."""

from datetime import UTC, datetime, timedelta
from enum import IntEnum, IntFlag

from lance_spec.checksum import Buffer
from lance_spec.ir.nodes import Field

_HEX_BYTES = 12
_TEXT_CHARACTERS = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def hexadecimal(data: Buffer) -> str:
    """Return bytes in hexadecimal, the first dozen of them."""
    shown = bytes(data[:_HEX_BYTES]).hex(" ")
    return f"{shown} …" if len(data) > _HEX_BYTES else shown


def written(field: Field, value: int | bytes) -> str:
    """Return a field's value with the names and units it has."""
    if isinstance(value, bytes):
        return text(value)
    if field.facts.checksum:
        return f"0x{value:08x}"
    if field.facts.flags:
        return flags(field.facts.flags, value)
    if field.facts.enum:
        return f"0x{value:02x} {name(field.facts.enum, value) or '(no name)'}"
    if field.facts.unit == "nanoseconds":
        return moment(value)
    return str(value)


def text(value: bytes) -> str:
    """Return bytes as text where they are some, otherwise how many there are."""
    try:
        decoded = value[: 4 * _TEXT_CHARACTERS].decode()
    except UnicodeDecodeError:
        return size(len(value))
    if not decoded or not decoded.isprintable():
        return size(len(value))
    if len(decoded) <= _TEXT_CHARACTERS and len(value) <= 4 * _TEXT_CHARACTERS:
        return repr(decoded)
    return f"{decoded[:_TEXT_CHARACTERS]!r}… ({size(len(value))})"


def flags(kind: type[IntFlag], value: int) -> str:
    """Return a flag field with the names of its bits; bits without a name stay numbers."""
    named = [bit for bit in kind if value & bit]
    rest = value & ~sum(named)
    names = [str(bit.name) for bit in named] + ([f"0x{rest:x}"] if rest else [])
    return f"0x{value:02x} {'|'.join(names) or 'none'}"


def name(kind: type[IntEnum], value: int) -> str:
    """Return the name of a value, or nothing."""
    return kind(value).name if value in {int(each) for each in kind} else ""


def moment(nanoseconds: int) -> str:
    """Return a time since the Unix epoch, with its date where it has one."""
    if not nanoseconds:
        return "0"
    try:
        date = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return str(nanoseconds)
    return f"{nanoseconds} ({date:%Y-%m-%dT%H:%M:%S.%f}Z)"


def size(count: int) -> str:
    """Return a number of bytes."""
    return "1 byte" if count == 1 else f"{count:,} bytes"
