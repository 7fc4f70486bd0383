"""Single faults: a valid message and the same with exactly one thing wrong.

What can be wrong with a field follows from what the grammar says about it: a constant that is
another, a number beyond its limits, a length or count that is not true, text that is not UTF-8, a
checksum that does not fit, bytes that end too early or go on too long.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from lance_spec.codec import composed as composed_codecs
from lance_spec.errors import DecodeError
from lance_spec.explain._walk import walk
from lance_spec.explain._watched import Watched
from lance_spec.ir.families import composed, families, message, messages
from lance_spec.ir.nodes import Field, Rest
from lance_spec.ir.shapes import Blob, Filled, Many, Maybe, Number, Remainder, Shape, Sized, Varint


@dataclass(frozen=True, slots=True)
class Fault:
    """A message with one fault.

    Attributes:
        field: path of the field at fault; empty where bytes follow the message.
        kind: ``constant``, ``limits``, ``name``, ``truth``, ``length``, ``text``, ``checksum``,
            ``cut`` or ``trailing``.
        valid: the message it was made from.
        data: the message with the fault.
    """

    field: str
    kind: str
    valid: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class _Location:
    """A field in the bytes of a message."""

    field: Field
    path: str
    start: int
    end: int


def faults(name: str, data: bytes, version: int = 0) -> Iterator[Fault]:
    """Return the faults that can be made in a valid message, each of them one.

    Args:
        name: a flat message (``Header``), or family and message (``fluvio.Batch``).
        data: the message.
        version: version of the protocol that it is written in, where there are versions.

    Raises:
        KeyError: there is no such message.
        DecodeError: the message is not valid.
    """
    spots = list(_nested(name, data, version) if "." in name else _flat(name, data))
    for spot in spots:
        for kind, start, raw in _wrong(spot, data):
            broken = data[:start] + raw + data[start + len(raw) :]
            if broken != data:
                yield Fault(spot.path, kind, data, broken)
        if spot.end > spot.start and not _takes_rest(spot.field):
            yield Fault(spot.path, "cut", data, data[: spot.end - 1])
    if not any(_takes_rest(each.field) for each in spots):
        yield Fault("", "trailing", data, data + b"\0")


def _flat(name: str, data: bytes) -> Iterator[_Location]:
    codec_of(name).decode(data)
    found = walk(message(name), memoryview(data), 0, len(data))
    ends = [*(row.offset for row in found.rows.values()), found.end][1:]
    for field, row, end in zip(message(name).fields, found.rows.values(), ends, strict=True):
        yield _Location(field, field.name, row.offset, end)


def _nested(name: str, data: bytes, version: int) -> Iterator[_Location]:
    watched = Watched(composed()[name.partition(".")[0]], data, version)
    codec_of(name).read(watched)
    if watched.left:
        raise DecodeError(name, "", watched.place, "the end", f"{watched.left} more bytes")
    for field, path, start, end in watched.spans:
        yield _Location(field, path, start, end)


def codec_of(name: str) -> Any:
    """Return the generated class of a message.

    Raises:
        KeyError: there is none.
    """
    if "." in name:
        return composed_codecs.codec(name)
    for family, each in families().items():
        if name in {known.name for known in each.messages}:
            return composed_codecs.codec(f"{family}.{name}")
    raise KeyError(f"no message {name!r}; there are {', '.join(messages())}")


def _takes_rest(field: Field) -> bool:
    return isinstance(field.length, Rest) or isinstance(field.shape, Remainder | Filled)


def _wrong(spot: _Location, data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Return kinds of faults, with where which bytes make them."""
    raw, facts = data[spot.start : spot.end], spot.field.facts
    if "[" in spot.path.rpartition(".")[2] or not raw:
        return  # a value of a list: the field itself has its turn
    if spot.field.const is not None:
        yield "constant", spot.start, bytes([raw[0] ^ 1])
    elif facts.checksum:
        yield "checksum", spot.start, bytes([raw[0] ^ 1])
    elif facts.boolean:
        yield "truth", spot.start, b"\2"
    elif number := _number(spot.field):
        yield from ((kind, spot.start, _packed(number, value)) for kind, value in _values(spot))
    elif spot.field.shape is not None:
        yield from ((kind, spot.start, each) for kind, each in _shaped(spot.field.shape, raw))


def _number(field: Field) -> Number | None:
    """Return how a field's number is written, if it is one of fixed size."""
    if isinstance(field.shape, Number):
        return field.shape
    flat = field.shape is None and field.is_integer
    return Number(field.code, little=True) if flat else None


def _packed(number: Number, value: int) -> bytes:
    order: Literal["little", "big"] = "little" if number.little else "big"
    return value.to_bytes(number.minimum, order, signed=number.code.islower())


def _values(spot: _Location) -> Iterator[tuple[str, int]]:
    """Return numbers that a field must not have."""
    number = _number(spot.field)
    assert number is not None
    lowest, highest = number.limits
    facts = spot.field.facts
    if facts.closed and facts.enum:
        named = {int(each) for each in facts.enum}
        yield "name", next(each for each in range(highest, lowest, -1) if each not in named)
    elif facts.bounds:
        low, high = facts.bounds
        yield from (("limits", each) for each in (low - 1, high + 1) if lowest <= each <= highest)
    elif spot.field.length_of:
        yield "length", highest


def _shaped(shape: Shape, raw: bytes) -> Iterator[tuple[str, bytes]]:
    match shape:
        case Maybe():
            yield "truth", b"\2"
        case Blob(prefix=Number() as prefix, text=text):
            yield "length", _packed(prefix, prefix.limits[1])
            size = prefix.minimum
            if text and len(raw) > size:
                yield "text", raw[:size] + b"\xff" + raw[size + 1 :]
        case Blob(prefix=Varint(), text=True) if len(raw) > 1 and raw[0] < 0x80:
            yield "text", raw[:1] + b"\xff" + raw[2:]
        case Many(count=Number() as prefix) if prefix.minimum > 1:
            yield "length", _packed(prefix, prefix.limits[1])
        case Sized(prefix=Number() as prefix):
            yield "length", _packed(prefix, prefix.limits[1])


KINDS: Final = (
    *("constant", "limits", "name", "truth", "length", "text"),
    *("checksum", "cut", "trailing"),
)
"""Every kind of fault."""
