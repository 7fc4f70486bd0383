"""Which cases to ask."""

import random
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from lance_conformance import __version__
from lance_conformance.engine.conditions import USUAL_SEED
from lance_conformance.engine.registry import Case
from lance_conformance.engine.report.reading import read_lines
from lance_conformance.spec.clauses import Level

LIGHT = 18
"""The most that a case may weigh (`Case.weight`) to be sampled."""


class NothingSelectedError(Exception):
    """No case is left, or a pattern names none: the sentence says which."""


def matches(case: Case, pattern: str) -> bool:
    """Whether a pattern names a case: an area, a whole id, a glob, or a section (``§5.8``)."""
    if pattern.startswith("§"):
        return case.clause.section == pattern[1:]
    return pattern in (case.id, case.area, case.clause.key) or fnmatchcase(case.id, pattern)


def expanded(patterns: Sequence[str]) -> list[str]:
    """Patterns, with those of the file in place of each ``@FILE``.

    A file has one pattern a line; a run file means its cases that neither passed nor were skipped.

    Raises:
        NothingSelectedError: A file cannot be read, or has no pattern.
    """
    found: list[str] = []
    for pattern in patterns:
        found += _patterns_in(Path(pattern[1:])) if pattern.startswith("@") else [pattern]
    return found


def _patterns_in(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise NothingSelectedError(f"no patterns can be read from {path}: {problem}") from problem
    if lines and lines[0].startswith("{"):
        cases = read_lines(lines, str(path)).cases.items()
        patterns = [name for name, case in cases if case["verdict"] not in ("PASS", "SKIP")]
    else:
        words = (line.partition("#")[0].strip() for line in lines)
        patterns = [word for word in words if word]
    if not patterns:
        raise NothingSelectedError(f"{path} names no case")
    return patterns


def select(
    cases: Sequence[Case],
    *,
    patterns: Sequence[str] = (),
    skip: Sequence[str] = (),
    levels: Collection[Level] = tuple(Level),
    quick: bool = False,
    thorough: bool = True,
    seed: int = USUAL_SEED,
) -> list[Case]:
    """The cases that all conditions let through.

    Args:
        cases: The cases to choose from.
        patterns: Each must name a case; all cases without any. ``@FILE`` stands for those in it.
        skip: Patterns of cases to leave out; each must name a case, too.
        levels: The levels wanted.
        quick: Only the quick profile, unless a pattern names a case by its whole id.
        thorough: Whether all cases of a thorough run are wanted, and not only those among them
            that the seed chooses (`sampled`) or a pattern names by its whole id.
        seed: Chooses.

    Raises:
        NothingSelectedError: A pattern names no case, or no case is left.
    """
    patterns, skip = expanded(patterns), expanded(skip)
    for pattern in (*patterns, *skip):
        if not any(matches(case, pattern) for case in cases):
            raise NothingSelectedError(
                f"no case matches {pattern!r}; 'lance-conformance list' shows all of them"
            )
    sample = sampled(cases, seed) if not thorough else frozenset()
    chosen = [
        case
        for case in cases
        if (not patterns or any(matches(case, p) for p in patterns))
        and not any(matches(case, p) for p in skip)
        and case.level in levels
        and (case.quick or not quick or case.id in patterns)
        and (thorough or not case.thorough or case.id in sample or case.id in patterns)
    ]
    if not chosen:
        raise NothingSelectedError(
            "the patterns, --skip, --level and --profile together leave no case"
        )
    return chosen


SAMPLE = 4
"""Cases of a thorough run that a usual one takes."""


def sampled(cases: Sequence[Case], seed: int) -> frozenset[str]:
    """Ids of cases of a thorough run that a usual one takes, too: few, and cheap ones.

    The same seed chooses the same; another version of the kit may choose others.
    """
    rows = [
        case.id for case in cases if case.thorough and case.weight <= LIGHT and not case.seconds
    ]
    choice = random.Random(f"{__version__}/{seed}")  # noqa: S311 - a repeatable choice
    return frozenset(choice.sample(rows, min(SAMPLE, len(rows))))


def shuffled(cases: Sequence[Case], seed: int) -> list[Case]:
    """The cases in an order that depends on the seed only."""
    order = list(cases)
    random.Random(seed).shuffle(order)  # noqa: S311 - a repeatable order, not a secret
    return order
