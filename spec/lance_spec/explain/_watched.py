"""Watching a codec read: a row for each field of a message that nests."""

from dataclasses import dataclass, is_dataclass
from typing import Any, TypeVar

from lance_spec.checksum import Buffer
from lance_spec.errors import DecodeError
from lance_spec.explain._model import Part, Row, Verdict
from lance_spec.explain._values import hexadecimal, size, text, written
from lance_spec.ir.nodes import Family, Field
from lance_spec.messages._cursor import Codec, Composed, Source
from lance_spec.messages.fluvio import Batch

T = TypeVar("T")

MOST = 1000
"""Fields shown, unless more or fewer are asked for."""


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
        spans: each field that was read, its path, where it begins and where it ends.
        batches: each batch of Fluvio's that was read, its path and where it begins.
    """

    __slots__ = ("_steps", "batches", "family", "found", "spans", "whole")

    def __init__(self, family: Family, data: Buffer, version: int) -> None:
        super().__init__(data, version)
        self.family = family
        self.whole = self.data
        self.found: list[Row] = []
        self.spans: list[tuple[Field, str, int, int]] = []
        self.batches: list[tuple[str, int, Batch]] = []
        self._steps: list[_Step] = []

    def take(self, message: str, field: str, codec: Codec[T]) -> T:
        """Read one field and keep a row for it."""
        step = self._enter(message, field)
        self._steps.append(step)
        value = super().take(message, field, codec)
        self._steps.pop()
        declared = self.family.message(message).field(field)
        self.spans.append((declared, step.path, step.start, self.place))
        self.found[step.row] = self._row(step, self.place, value)
        self.judge(value, f"{step.path}.crc", step.row + 1)
        self._keep(step.path, value)
        return value

    def explain(
        self, title: str, cls: type[Composed], start: int, *, whole: str = "", most: int = MOST
    ) -> Part:
        """Read a message from ``start`` on; ``place`` becomes where it ends, if it does.

        Args:
            title: the title of what is shown.
            cls: the message's class.
            start: where it begins.
            whole: its name, where nothing may follow it.
            most: show at most this many fields.
        """
        self.place = start
        try:
            value = cls.read(self)
        except DecodeError as error:
            self.blame(error)
            self.place = len(self.whole)
        else:
            self.judge(value, "crc", 0)
            self._keep("", value)
            if whole:
                self.expect_end(whole)
        hidden = len(self.found) - most
        named = f"{title}; {hidden} fields not shown" if hidden > 0 else title
        return Part(named, tuple(self.found[:most]))

    def _keep(self, path: str, value: object) -> None:
        if isinstance(value, Batch):
            self.batches.append((path, self.place - Batch.MIN_SIZE - len(value.records), value))

    def judge(self, value: Any, field: str, first: int) -> None:
        """Say of a message with a checksum, whose rows begin at ``first``, whether it is right."""
        if not hasattr(value, "crc_ok"):
            return
        verdict: Verdict = "ok" if value.crc_ok() else "fault"
        remark = "the checksum is right" if value.crc_ok() else "expected another checksum"
        for number in range(first, len(self.found)):
            if self.found[number].field == field:
                self.found[number] = self.found[number].judged(verdict, remark)

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
        """Add a row for bytes after the message, where there are any."""
        if self.left:
            raw = self.data[self.place :]
            row = Row(self.place, hexadecimal(raw), "extra", size(len(raw)), "Bytes after it", "")
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
