"""Explanations of a case, for people and for programs."""

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from lance_conformance.engine.registry import Case
from lance_conformance.engine.report.style import Style
from lance_conformance.engine.selftest.matrix import committed
from lance_conformance.engine.suite import Suite
from lance_conformance.spec.clauses import Basis

BASES = {
    Basis.KEYWORD: "an RFC 2119 keyword in the document",
    Basis.TABLE: "a table in the document",
    Basis.FIGURE: "a figure in the document",
    Basis.PROSE: "plain words in the document",
    Basis.PROGRAMS: "what published programs do and rely on",
    Basis.REGISTER: "the ambiguity register alone; the document is silent or contradicts itself",
}


def entry(case: Case) -> dict[str, Any]:
    """One case as a program wants it."""
    clause = case.clause
    return {
        "id": case.id,
        "title": case.title,
        "details": case.details,
        "area": case.heading,
        "clause": clause.key,
        "section": clause.section,
        "rule": clause.text,
        "level": clause.level.value,
        "basis": clause.basis.value,
        "register": list(clause.register),
        "dialects": list(case.dialects),
        "pinned_only": case.pinned_only,
        "profile": "quick" if case.quick else "full",
        "twin_of": case.twin_of,
    }


def explain(suite: Suite, case: Case, style: Style) -> Iterator[str]:
    """One case as a person wants it."""
    clause = case.clause
    yield style.strong(case.id)
    yield from wrap(f"{case.title} {case.details}", 96, initial_indent="  ", subsequent_indent="  ")
    yield ""
    yield f"rule      {clause.text}"
    yield f"clause    {clause.key}, section {clause.section} of {suite.document}"
    yield f"level     {clause.level}, because of {BASES[clause.basis]}"
    if clause.register:
        yield f"register  {', '.join(clause.register)}"
    yield f"dialects  {', '.join(case.dialects)}" + (
        ", held to by name only" if case.pinned_only else ""
    )
    yield f"profile   {'quick and full' if case.quick else 'full'}"
    if case.twin_of is not None:
        yield f"twin of   {case.twin_of}, for another answer or value; the two count as one"
    yield from _proof(suite, case)


def _proof(suite: Suite, case: Case) -> Iterator[str]:
    matrix = committed(suite)
    names = {
        f"{name}: {kills[case.id]}"
        for mutants in matrix.values()
        for name, kills in mutants.items()
        if case.id in kills
    }
    yield f"proof     {len(names)} broken servers fail it:" if names else "proof     not scored"
    yield from (f"            {name}" for name in sorted(names))
