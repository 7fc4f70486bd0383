"""The kill matrix: which case tells which mutant from the golden server, and why."""

import json
from collections.abc import Container, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from lance_conformance.engine.suite import Suite

if TYPE_CHECKING:  # reading the matrix must not load everybody in it
    from lance_conformance.engine.selftest.runs import Trials
    from lance_conformance.engine.selftest.targets import Asked, Findings

Matrix = dict[str, dict[str, dict[str, str]]]
"""Reason by dialect, mutant and case."""

KILLS = ("FAIL", "WARN")


def kills(findings: "Findings") -> dict[str, str]:
    """The cases that a subject failed, with the reason."""
    return {
        case: found.reason for case, found in sorted(findings.items()) if found.verdict in KILLS
    }


def merged(before: Matrix, trials: "Trials", asked: "Asked", known: Container[str]) -> Matrix:
    """The matrix of now: what was asked as it was found, the rest as it was before.

    Mutants and cases that there are no more are dropped.

    Args:
        before: The matrix of before.
        trials: What was found.
        asked: Which cases were put to whom, of these trials; nobody else is kept.
        known: The ids of all cases.
    """
    found: Matrix = {}
    for subject in sorted(asked, key=lambda s: (s.dialect, s.name)):
        if subject.kind == "mutant":
            old = before.get(subject.dialect, {}).get(subject.name, {})
            row = {c: r for c, r in old.items() if c not in asked[subject] and c in known}
            row |= kills(trials[subject])
            found.setdefault(subject.dialect, {})[subject.name] = dict(sorted(row.items()))
    return found


def committed(suite: Suite) -> Matrix:
    """The matrix of a suite that is part of the package."""
    text = files(suite.matrix).joinpath("matrix.json").read_text(encoding="utf-8")
    matrix: Matrix = json.loads(text)
    return matrix


def write(suite: Suite, matrix: Matrix) -> Path:
    """Make a matrix the committed one; only in a checkout.

    Raises:
        OSError: The package is installed where nobody may write.
    """
    path = Path(str(files(suite.matrix).joinpath("matrix.json")))
    whole = path.with_suffix(".new")  # whoever reads meanwhile gets the one or the other
    whole.write_text(json.dumps(matrix, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return whole.replace(path)


def differences(now: Matrix, before: Mapping[str, Mapping[str, Mapping[str, str]]]) -> list[str]:
    """What has changed, one sentence each."""
    changes = []
    for dialect in sorted({*now, *before}):
        mine, theirs = now.get(dialect, {}), before.get(dialect, {})
        for name in sorted({*mine, *theirs}):
            changes += _changes(f"{name} ({dialect})", mine.get(name), theirs.get(name))
    return changes


def _changes(
    who: str, now: Mapping[str, str] | None, before: Mapping[str, str] | None
) -> list[str]:
    if now is None:
        return [f"{who} is in the committed matrix but is not a mutant any more"]
    if before is None:
        return [f"{who} is not in the committed matrix"]
    return [
        f"{who}: {case} gives {now.get(case, 'a pass')!r}, "
        f"the committed matrix says {before.get(case, 'a pass')!r}"
        for case in sorted({*now, *before})
        if now.get(case) != before.get(case)
    ]
