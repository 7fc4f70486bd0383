"""Reading a message field by field, as far as its bytes reach."""

from dataclasses import dataclass, field

from lance_spec.explain._model import Row, Verdict
from lance_spec.explain._values import hexadecimal, size, written
from lance_spec.ir.nodes import Difference, Field, LengthField, Message


@dataclass(slots=True)
class Walk:
    """What was read of a message.

    Attributes:
        start: offset of its first field.
        rows: one row for each field that was reached, by name.
        values: their values by name.
        end: offset after the last field that was there as a whole.
        whole: whether every field was.
    """

    start: int
    rows: dict[str, Row] = field(default_factory=dict)
    values: dict[str, int | bytes] = field(default_factory=dict)
    end: int = 0
    whole: bool = True

    def number(self, name: str) -> int:
        """Return an integer that was read, or 0."""
        value = self.values.get(name, 0)
        return value if isinstance(value, int) else 0

    def judge(self, name: str, verdict: Verdict, remark: str) -> None:
        """Put a verdict on a field that was read."""
        if name in self.values:
            self.rows[name] = self.rows[name].judged(verdict, remark)


def walk(message: Message, data: memoryview, start: int, stop: int) -> Walk:
    """Read a message from ``data[start:stop]``; never raises for what stands there."""
    found = Walk(start, end=start)
    for each in message.fields:
        length = _length(each, found, stop)
        if length < 0 or found.end + length > stop:
            found.rows[each.name] = _missing(each, data[found.end : stop], found.end, length)
            found.whole = False
            break
        raw = data[found.end : found.end + length]
        value = int.from_bytes(raw, "little") if each.is_integer else bytes(raw)
        found.values[each.name] = value
        found.rows[each.name] = _row(each, raw, value, found.end)
        found.end += length
    return found


def raw_row(data: memoryview, start: int, stop: int, name: str, meaning: str) -> Row:
    """Return a row for bytes that have no fields."""
    raw = data[start:stop]
    return Row(start, hexadecimal(raw), name, size(len(raw)), meaning, "")


def _length(each: Field, found: Walk, stop: int) -> int:
    if isinstance(each.length, LengthField):
        return found.number(each.length.name)
    if isinstance(each.length, Difference):
        return found.number(each.length.end) - found.number(each.length.start)
    return stop - found.end if each.size is None else each.size


def _row(each: Field, raw: memoryview, value: int | bytes, offset: int) -> Row:
    facts, bounds = each.facts, each.facts.bounds
    row = Row(offset, hexadecimal(raw), each.name, written(each, value), facts.doc, facts.section)
    if each.const is not None and value != each.const:
        return row.judged("fault", f"expected {written(each, each.const)}")
    if bounds and isinstance(value, int) and not bounds[0] <= value <= bounds[1]:
        return row.judged("fault", f"expected {bounds[0]} to {bounds[1]}")
    return row


def _missing(each: Field, left: memoryview, offset: int, length: int) -> Row:
    facts = each.facts
    row = Row(offset, hexadecimal(left), each.name, "", facts.doc, facts.section)
    if length < 0:
        return row.judged("fault", f"its length comes to {length}")
    there = f"{size(len(left))} left" if left else "none left"
    return row.judged("fault", f"needs {size(length)}, {there}")
