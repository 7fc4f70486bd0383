"""The kill matrix: which case tells which mutant from the golden server, and why."""

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # reading the matrix must not load everybody in it
    from lance_conformance.selftest.subjects import Findings
    from lance_conformance.selftest.trials import Trials

Matrix = dict[str, dict[str, dict[str, str]]]
"""Reason by dialect, mutant and case."""

KILLS = ("FAIL", "WARN")


def kills(findings: "Findings") -> dict[str, str]:
    """The cases that a subject failed, with the reason."""
    return {
        case: found.reason for case, found in sorted(findings.items()) if found.verdict in KILLS
    }


def matrix_of(trials: "Trials") -> Matrix:
    """The matrix that these trials make."""
    found: Matrix = {}
    for subject in sorted(trials, key=lambda s: (s.dialect, s.name)):
        if subject.kind == "mutant":
            found.setdefault(subject.dialect, {})[subject.name] = kills(trials[subject])
    return found


def committed() -> Matrix:
    """The matrix that is part of the package."""
    text = files("lance_conformance.mutants").joinpath("matrix.json").read_text(encoding="utf-8")
    matrix: Matrix = json.loads(text)
    return matrix


def write(matrix: Matrix) -> Path:
    """Make a matrix the committed one; only in a checkout.

    Raises:
        OSError: The package is installed where nobody may write.
    """
    path = Path(str(files("lance_conformance.mutants").joinpath("matrix.json")))
    path.write_text(json.dumps(matrix, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


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
        return [f"{who} is in the committed matrix but is no mutant any more"]
    if before is None:
        return [f"{who} is not in the committed matrix"]
    return [
        f"{who}: {case} gives {now.get(case, 'a pass')!r}, "
        f"the committed matrix says {before.get(case, 'a pass')!r}"
        for case in sorted({*now, *before})
        if now.get(case) != before.get(case)
    ]
