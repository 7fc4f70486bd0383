"""Error codes with the fields that some of them carry (FLV-01).

A client that does not know a code cannot read on, so a server must send no others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from lance_conformance.fluvio.wire.primitives import Reader


class Code(IntEnum):
    """The codes that cases expect by name."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    OTHER = 2
    NOT_LEADER_FOR_PARTITION = 6
    OFFSET_EVICTED = 71
    TOPIC_NOT_FOUND = 2001
    TOPIC_ALREADY_EXISTS = 2002
    PARTITION_NOT_LEADER = 3001
    FETCH_SESSION_NOT_FOUND = 3002
    OFFSET_MANAGEMENT_DISABLED = 3004


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether something succeeded.

    Attributes:
        code: 0, or the error.
        fields: What the error carries.
    """

    code: int
    fields: tuple[Any, ...] = ()

    def __str__(self) -> str:
        shown = f" {self.fields}" if self.fields else ""
        return "no error" if not self.code else f"error {self.code}{shown}"


_BARE = {
    *(-1, 0, 1, 6, 10, 13, 56, 60, 61, 73),
    *range(1000, 1005),
    *range(2000, 2009),
    *(3000, 3001, 3002, 3004, 3005, 5000, 5001, 5002, 6000, 7000, 7001, 7002),
    *(8000, 8002, 9000, 10000),
    *range(11001, 11007),
}
_TEXT = {2, 3003, 6001, 6005, 6007, 8001, 8003, 10001}
_TWO_TEXTS = {6003, 12001, 12002}


def read_outcome(reader: Reader, field: str = "error_code") -> Outcome:
    """An error code with its fields.

    Raises:
        UnreadableError: Published clients do not know the code.
    """
    code = reader.number(2, field)
    if code in _BARE:
        return Outcome(code)
    if code in _TEXT:
        return Outcome(code, (reader.text(field),))
    if code in _TWO_TEXTS:
        return Outcome(code, (reader.text(field), reader.text(field)))
    if code not in _OTHERS:
        reader.fault(field, f"no published client knows the error {code}")
    return Outcome(code, _OTHERS[code](reader, field))


def _runtime_error(reader: Reader, field: str) -> tuple[Any, ...]:
    hint, offset, kind = reader.text(field), reader.number(8, field), reader.natural(1, field)
    key = reader.option(lambda: _octets(reader, field), field)
    return hint, offset, kind, key, _octets(reader, field)


def _octets(reader: Reader, field: str) -> bytes:
    return reader.take(reader.varint(field), field)


_OTHERS: dict[int, Callable[[Reader, str], tuple[Any, ...]]] = {
    7: lambda r, f: (r.natural(8, f), r.natural(1, f)),
    71: lambda r, f: (r.number(8, f), r.number(8, f)),
    72: lambda r, f: (r.text(f), r.natural(4, f)),
    6002: lambda r, f: (r.text(f), r.option(lambda: r.text(f), f)),
    6004: _runtime_error,
    6006: lambda r, f: (r.text(f),),
    6008: lambda r, f: (r.natural(8, f), r.natural(8, f)),
}
