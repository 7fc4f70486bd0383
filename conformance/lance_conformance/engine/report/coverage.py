"""Which clauses are asked about, by which cases, and how each case is proven."""

from collections.abc import Iterator
from typing import Any

from lance_conformance.engine.selftest.matrix import committed
from lance_conformance.engine.suite import Suite


def coverage(suite: Suite) -> list[dict[str, Any]]:
    """Return every clause with its cases and the broken servers that each of them catches."""
    kills = killers(suite)
    rows: list[dict[str, Any]] = []
    for key, clause in sorted(suite.clauses().items(), key=lambda item: _order(item[1].section)):
        cases = [case.id for case in suite.cases if case.clause.key == key]
        rows.append(
            {
                "clause": key,
                "section": clause.section,
                "level": clause.level.value,
                "rule": clause.text,
                "untested": clause.untested,
                "cases": {case: kills.get(case, []) for case in cases},
            }
        )
    return rows


def killers(suite: Suite) -> dict[str, list[str]]:
    """Return the broken servers that fail each case, from the committed kill matrix."""
    found: dict[str, set[str]] = {}
    for mutants in committed(suite).values():
        for name, cases in mutants.items():
            for case in cases:
                found.setdefault(case, set()).add(name)
    return {case: sorted(names) for case, names in found.items()}


def in_words(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the table for people."""
    for row in rows:
        cases = row["cases"]
        proven = sum(bool(names) for names in cases.values())
        reason = f"no case of its own: {row['untested']}"
        told = f"{len(cases)} cases, {proven} proven able to fail" if cases else reason
        yield f"{row['level']:<6} {row['clause']:<28} {told}"
    tested = sum(bool(row["cases"]) for row in rows)
    asked = sum(len(row["cases"]) for row in rows)
    yield f"{tested} of {len(rows)} clauses are asked about, by {asked} cases"


def _order(section: str) -> tuple[tuple[int, str], ...]:
    """Sort 5.10 after 5.9."""
    parts = section.split(".")
    return tuple((int(part), "") if part.isdecimal() else (0, part) for part in parts)
