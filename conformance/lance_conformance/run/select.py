"""Which cases to ask."""

import random
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from lance_conformance.cases.registry import Case
from lance_conformance.spec.clauses import Level


class NothingSelectedError(Exception):
    """No case is left, or a pattern names none: the sentence says which."""


def matches(case: Case, pattern: str) -> bool:
    """Whether a pattern names a case: an area, a whole id, a glob, or a section (``§5.8``)."""
    if pattern.startswith("§"):
        return case.clause.section == pattern[1:]
    return pattern in (case.id, case.area, case.clause.key) or fnmatchcase(case.id, pattern)


def select(
    cases: Sequence[Case],
    *,
    patterns: Sequence[str] = (),
    skip: Sequence[str] = (),
    levels: Collection[Level] = tuple(Level),
    quick: bool = False,
) -> list[Case]:
    """The cases that all conditions let through.

    Args:
        cases: The cases to choose from.
        patterns: Each must name a case; all cases without any.
        skip: Patterns of cases to leave out; each must name a case, too.
        levels: The levels wanted.
        quick: Only the quick profile, unless a pattern names a case by its whole id.

    Raises:
        NothingSelectedError: A pattern names no case, or no case is left.
    """
    for pattern in (*patterns, *skip):
        if not any(matches(case, pattern) for case in cases):
            raise NothingSelectedError(
                f"no case matches {pattern!r}; 'lance-conformance list' shows all of them"
            )
    chosen = [
        case
        for case in cases
        if (not patterns or any(matches(case, p) for p in patterns))
        and not any(matches(case, p) for p in skip)
        and case.level in levels
        and (case.quick or not quick or case.id in patterns)
    ]
    if not chosen:
        raise NothingSelectedError(
            "the patterns, --skip, --level and --profile together leave no case"
        )
    return chosen


def shuffled(cases: Sequence[Case], seed: int) -> list[Case]:
    """The cases in an order that depends on the seed only."""
    order = list(cases)
    random.Random(seed).shuffle(order)  # noqa: S311 - a repeatable order, not a secret
    return order
