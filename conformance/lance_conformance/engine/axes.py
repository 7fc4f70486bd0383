"""Axes on which a rule may hold only sometimes: which rules are asked along each, and why not.

A cell is a rule on an axis. The file ``axes.toml`` says which rules an axis applies to, and why it
does not apply to the others; where it applies there are usual cases, or a reason.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any

from lance_conformance.engine.suite import Suite


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis.

    Attributes:
        name: As it stands in the file.
        about: On what a rule depends along it.
        cases: Globs of its cases.
        rules: Keys of the rules that it applies to.
        otherwise: Why it does not apply to the others.
        reasons: Why a rule that it applies to has no case, by the rule's key.
    """

    name: str
    about: str
    cases: Sequence[str]
    rules: frozenset[str]
    otherwise: str
    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cell:
    """One rule on one axis.

    Attributes:
        cases: Usual cases that ask about the rule there.
        applies: Whether the rule can be wrong along this axis.
        reason: Why there is no case; empty where there is one, or where nobody said why.
    """

    cases: tuple[str, ...]
    applies: bool
    reason: str


def axes_of(suite: Suite) -> Sequence[Axis]:
    """The axes of a suite; none where it is not asked along any."""
    if not suite.axes:
        return ()
    text = files(suite.axes).joinpath("axes.toml").read_text(encoding="utf-8")
    return [_axis(name, row) for name, row in tomllib.loads(text).items()]


def _axis(name: str, row: Mapping[str, Any]) -> Axis:
    reasons: Mapping[str, str] = row.get("reasons", {})
    return Axis(name, row["about"], row["cases"], frozenset(row["rules"]) | reasons.keys(),
                row["otherwise"], reasons)  # fmt: skip


def cells(suite: Suite) -> Mapping[str, Mapping[str, Cell]]:
    """Every cell of a suite, by the key of the rule and the name of the axis."""
    asked: dict[str, list[str]] = {}
    for case in suite.cases:
        asked.setdefault(case.clause.key, [])
        if not case.thorough:
            asked[case.clause.key].append(case.id)
    axes = axes_of(suite)
    return {
        key: {axis.name: _cell(axis, key, cases) for axis in axes} for key, cases in asked.items()
    }


def _cell(axis: Axis, rule: str, cases: Sequence[str]) -> Cell:
    found = tuple(case for case in cases if any(fnmatchcase(case, glob) for glob in axis.cases))
    applies = rule in axis.rules
    why = axis.reasons.get(rule, "") if applies else axis.otherwise
    return Cell(found, applies, "" if found else why)


def in_words(suite: Suite) -> Iterator[str]:
    """Yield the table for people: how many usual cases each rule has on each axis."""
    axes = axes_of(suite)
    yield f"{'':<36}" + "".join(f"{axis.name[:8]:>9}" for axis in axes)
    for rule, row in cells(suite).items():
        shown = (str(len(cell.cases)) if cell.cases else "?" if cell.applies else "-"
                 for cell in row.values())  # fmt: skip
        yield f"{rule:<36}" + "".join(f"{each:>9}" for each in shown)
    yield "-: the axis does not apply to the rule; ?: it does, and --json says why no case asks"
