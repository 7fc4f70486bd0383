"""Explaining one message of another system, by watching its codec read."""

from dataclasses import dataclass, is_dataclass
from typing import Any, TypeVar

from lance_spec.checksum import Buffer
from lance_spec.composed_codecs import codec
from lance_spec.errors import DecodeError
from lance_spec.explain._model import Explanation, Part, Row, Verdict
from lance_spec.explain._values import hexadecimal, size, text, written
from lance_spec.families import foreign
from lance_spec.ir import Family, Field
from lance_spec.messages._cursor import Codec, Source

T = TypeVar("T")

_MOST = 1000


def explain_message(name: str, data: Buffer, version: int = 0, *, most: int = _MOST) -> Explanation:
    """Explain bytes as one message of another system.

    Never raises for what the bytes are: it goes as far as they make sense and names the fault.

    Args:
        name: family and message, for example ``fluvio.ProduceRequest``.
        data: the message, without what frames it.
        version: version of the protocol that it is written in, where there are versions.
        most: show at most this many fields.

    Raises:
        KeyError: no family has such a message.
    """
    family = foreign().get(name.partition(".")[0])
    if family is None:
        raise KeyError(f"no family for {name!r}; there are {', '.join(foreign())}")
    watched = Watched(family, data, version)
    family.message(name.partition(".")[2])
    try:
        codec(name).read(watched)
    except DecodeError as error:
        watched.blame(error)
    else:
        watched.expect_end(name)
    shown = watched.found[:most]
    hidden = len(watched.found) - len(shown)
    title = f"{name}, {size(len(watched.whole))}" + (f"; {hidden} fields not shown" * bool(hidden))
    return Explanation(len(watched.whole), None, (Part(title, tuple(shown)),))


@dataclass(slots=True)
class _Step:
    """A field that is being read: its place, its rows and how many values it gave so far."""

    message: str
    field: str
    path: str
    start: int
    row: int
    values: int = 0


class Watched(Source):
    """Bytes that are being read, with a row for each field that was.

    Attributes:
        family: the family of the message.
        whole: all bytes, also where `data` ends earlier for a while.
        found: the rows so far, in the order of the bytes.
    """

    __slots__ = ("_steps", "family", "found", "whole")

    def __init__(self, family: Family, data: Buffer, version: int) -> None:
        super().__init__(data, version)
        self.family = family
        self.whole = self.data
        self.found: list[Row] = []
        self._steps: list[_Step] = []

    def take(self, message: str, field: str, codec: Codec[T]) -> T:
        """Read one field and keep a row for it."""
        step = self._enter(message, field)
        self._steps.append(step)
        value = super().take(message, field, codec)
        self._steps.pop()
        self.found[step.row] = self._row(step, self.place, value)
        self._judge(step, value)
        return value

    def blame(self, error: DecodeError) -> None:
        """Put the error on the field that was being read."""
        remark = f"expected {error.expected}, got {error.got}"
        for step in self._steps:
            self.found[step.row] = self._row(step, self._first(step, self.place), None)
        if self._steps:
            last = self._steps[-1].row
            self.found[last] = self.found[last].judged("fault", remark)
        else:
            self.found.append(Row(error.offset, "", error.message, "", "", "", "fault", remark))

    def expect_end(self, name: str) -> None:
        """Add a row for bytes behind the message, where there are any."""
        if self.left:
            raw = self.data[self.place :]
            row = Row(self.place, hexadecimal(raw), "extra", size(len(raw)), "Bytes behind it", "")
            self.found.append(row.judged("fault", f"expected the end of {name}"))

    def _enter(self, message: str, field: str) -> _Step:
        above = self._steps[-1] if self._steps else None
        path = f"{above.path}.{field}" if above else field
        if above and (above.message, above.field) == (message, field):
            path = f"{above.path}[{above.values}]"
            above.values += 1
        self.found.append(Row(self.place, "", path, "", "", ""))
        return _Step(message, field, path, self.place, len(self.found) - 1)

    def _first(self, step: _Step, end: int) -> int:
        """Return where the fields inside a field begin, or its end where there are none."""
        inside = self.found[step.row + 1 :]
        return min([end, *(row.offset for row in inside[:1])])

    def _row(self, step: _Step, end: int, value: object) -> Row:
        field = self.family.message(step.message).field(step.field)
        raw = self.whole[step.start : self._first(step, end)]
        facts = field.facts
        shown = _shown(field, value)
        return Row(step.start, hexadecimal(raw), step.path, shown, facts.doc, facts.section)

    def _judge(self, step: _Step, value: Any) -> None:
        """Say of a message with a checksum whether it is right."""
        if not hasattr(value, "crc_ok"):
            return
        verdict: Verdict = "ok" if value.crc_ok() else "fault"
        remark = "the checksum is right" if value.crc_ok() else "expected another checksum"
        for number in range(step.row + 1, len(self.found)):
            if self.found[number].field == f"{step.path}.crc":
                self.found[number] = self.found[number].judged(verdict, remark)


def _shown(field: Field, value: object) -> str:
    """Return a value as people write it; what has fields of its own only by its kind."""
    if is_dataclass(value):
        return type(value).__name__
    if isinstance(value, list):
        return "1 value" if len(value) == 1 else f"{len(value)} values"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return written(field, value) if field.is_integer else str(value)
    if isinstance(value, bytes):
        return text(value)
    return "" if value is None else repr(value)
