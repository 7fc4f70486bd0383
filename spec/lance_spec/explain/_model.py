"""Parts of an explanation."""

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

Verdict: TypeAlias = Literal["", "ok", "note", "fault"]


@dataclass(frozen=True, slots=True)
class Row:
    """One field.

    Attributes:
        offset: where it starts, in bytes from the start of what was explained.
        hex: its bytes; long ones are cut short.
        field: its name.
        value: its value, as people write it.
        meaning: what it means.
        section: where that is defined.
        verdict: ``ok`` when something was checked, ``note`` when it is odd, ``fault`` when it
            breaks a rule, otherwise empty.
        remark: what was found, where there is a verdict.
    """

    offset: int
    hex: str
    field: str
    value: str
    meaning: str
    section: str
    verdict: Verdict = ""
    remark: str = ""

    def judged(self, verdict: Verdict, remark: str) -> Self:
        """Return the row with a verdict."""
        return dataclasses.replace(self, verdict=verdict, remark=remark)


@dataclass(frozen=True, slots=True)
class Part:
    """A header, a payload or a record: some neighbouring fields under a title."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that was found in some bytes.

    Attributes:
        size: how many bytes were explained.
        dialect: the dialect whose checksum the first header has, or None.
        parts: headers, payloads and records, in order.
    """

    size: int
    dialect: str | None
    parts: tuple[Part, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every field, in order."""
        return tuple(row for part in self.parts for row in part.rows)

    @property
    def broken(self) -> tuple[Row, ...]:
        """The fields that break a rule, in order; the first is where to look."""
        return tuple(row for row in self.rows if row.verdict == "fault")

    @property
    def faults(self) -> tuple[str, ...]:
        """What breaks a rule, one sentence each, with where the rule stands."""
        return tuple(
            f"{row.field} at byte {row.offset}: {row.remark}{_rule(row)}" for row in self.broken
        )

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain objects, for `json.dumps`."""
        return {
            "bytes": self.size,
            "dialect": self.dialect,
            "faults": list(self.faults),
            "firstBroken": dataclasses.asdict(self.broken[0]) if self.broken else None,
            "parts": [
                {"title": part.title, "rows": [dataclasses.asdict(row) for row in part.rows]}
                for part in self.parts
            ],
        }

    def __str__(self) -> str:
        if not self.size:
            return "There are no bytes to explain."
        lines: list[str] = []
        for part in self.parts:
            lines += [part.title, *_table(part.rows), ""]
        faults = [f"Fault: {fault}." for fault in self.faults]
        return "\n".join([*lines, *(faults or [f"No faults in {self.size:,} bytes."])])


def _rule(row: Row) -> str:
    cited = row.section in row.remark or _CITED.search(row.remark)
    return "" if cited else f" ({row.section})"


_CITED = re.compile(r"\((?:AMB|SF|FLV|RL)-\d\d")


_MARKS = {"": " ", "ok": " ", "note": "?", "fault": "!"}


def _table(rows: tuple[Row, ...]) -> list[str]:
    """Return the rows in columns as wide as what stands in them."""
    columns = [(str(row.offset), row.hex, row.field, row.value) for row in rows]
    widths = [max(map(len, column)) for column in zip(*columns, strict=True)]
    lines = []
    for row, (offset, *cells) in zip(rows, columns, strict=True):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        place = offset.rjust(widths[0])
        lines.append("  ".join([f"{_MARKS[row.verdict]} {place}", *padded, _comment(row)]).rstrip())
    return lines


def _comment(row: Row) -> str:
    found = f"{row.verdict}: {row.remark}. " if row.remark else ""
    defined = f" ({row.section})" if row.section else ""
    return f"{found}{row.meaning}{defined}"
