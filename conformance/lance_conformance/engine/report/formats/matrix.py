"""Several runs side by side: a table of areas by target, and what each of them did not keep."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lance_conformance.engine.report.reading import Told, transcript
from lance_conformance.engine.run.verdict import Verdict

NOTHING = "·"
BROKEN = (Verdict.FAIL.value, Verdict.WARN.value)
LIMIT = 48
"""Bytes shown of a frame."""


@dataclass(frozen=True, slots=True)
class Column:
    """One run of the table.

    Attributes:
        name: How the target is called in it.
        run: What it did.
    """

    name: str
    run: Told


def rows(columns: Sequence[Column]) -> list[list[str]]:
    """The table, its head first: of each area how many cases passed, of how many asked.

    Args:
        columns: Runs of one suite.
    """
    found = [["", *(column.name for column in columns)]]
    for area, title in columns[0].run.suite.areas.items():
        cells = [_share(_of(column.run, area)) for column in columns]
        if any(cell != NOTHING for cell in cells):
            found.append([title, *cells])
    found.append(["all", *(_share(list(column.run.cases.values())) for column in columns)])
    found.append(["verdict", *(str(c.run.footer["verdict"]).split(":")[0] for c in columns)])
    return found


def _of(run: Told, area: str) -> list[Mapping[str, Any]]:
    return [case for name, case in run.cases.items() if name.startswith(f"{area}/")]


def _share(cases: Sequence[Mapping[str, Any]]) -> str:
    asked = [case for case in cases if case["verdict"] != Verdict.SKIP.value]
    passed = sum(case["verdict"] == Verdict.PASS.value for case in asked)
    return f"{passed}/{len(asked)}" if asked else NOTHING


def as_text(columns: Sequence[Column]) -> Iterator[str]:
    """The table for a terminal."""
    table = rows(columns)
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    for row in table:
        head, *cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join([head, *cells]).rstrip()


def as_json(columns: Sequence[Column]) -> dict[str, Any]:
    """The table for programs, with the verdict on each case."""
    return {
        column.name: {
            "target": column.run.header["target"],
            "dialect": column.run.header["dialect"],
            "kit": column.run.header["kit"],
            "exit_code": column.run.footer["exit_code"],
            "cases": {name: case["verdict"] for name, case in column.run.cases.items()},
        }
        for column in columns
    }


def as_rst(columns: Sequence[Column]) -> Iterator[str]:
    """The table and what was not kept, with its bytes, to be included in a page."""
    yield from as_table(columns)
    for column in columns:
        yield from _broken(column)


def as_table(columns: Sequence[Column]) -> Iterator[str]:
    """The table, to be included in a page."""
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield "   :stub-columns: 1"
    for row in rows(columns):
        yield ""
        yield from (f"   {'* -' if place == 0 else '  -'} {safe(c)}" for place, c in enumerate(row))


def _broken(column: Column) -> Iterator[str]:
    cases = [case for case in column.run.cases.values() if case["verdict"] in BROKEN]
    if not cases:
        return
    yield ""
    yield f".. rubric:: {safe(column.name)}: what was not kept"
    yield ""
    for rule, members in groupby(sorted(cases, key=_by_rule), key=_by_rule):
        kept = list(members)
        yield f"**{kept[0]['level']}** {safe(rule)}"
        yield ""
        for case in kept:
            yield f"- ``{case['id']}``: {safe(case['message'])}"
            yield from _bytes(case)
            yield ""


def _by_rule(case: Mapping[str, Any]) -> str:
    return str(case["rule"])


def _bytes(case: Mapping[str, Any]) -> Iterator[str]:
    """The last that was sent and the last that came on the connection it is about."""
    chunks = [c for c in transcript(case) if c.connection == case.get("connection")]
    shown = {
        direction: next((c.data for c in reversed(chunks) if c.direction == direction), b"")
        for direction in ("sent", "received")
    }
    if not any(shown.values()):
        return
    yield ""
    yield "  .. code-block:: text"
    yield ""
    for direction, data in shown.items():
        more = f" ... {len(data) - LIMIT} more bytes" if len(data) > LIMIT else ""
        yield f"     {direction:<9} {data[:LIMIT].hex(' ') or 'nothing'}{more}"


def safe(text: object) -> str:
    """Text in which nothing is markup."""
    told = " ".join(str(text).split())
    for mark in ("\\", "*", "`", "|", "_"):
        told = told.replace(mark, f"\\{mark}")
    return told
