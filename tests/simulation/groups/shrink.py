"""Making a failing plan short, and telling of it."""

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from tests.simulation.groups.world import carry_out

AnyPlan: TypeAlias = Any
"""A plan of the search at hand: it has happenings, and ``keeping`` returns it with some alone."""


def kind_of(violation: str) -> str:
    """Return what kind of violation it is: its first words, without names and numbers."""
    return re.sub(r"\bt\d+\b|\bm\d+\b|[-\d.\[\],]+|\s+", " ", violation)[:40]


def shrink(
    plan: AnyPlan, tries: int = 150, run: Callable[[AnyPlan], str | None] = carry_out
) -> AnyPlan:
    """Return a shorter plan that fails in the same way.

    Args:
        plan: one that fails.
        tries: runs that it may cost.
        run: carries a plan out.
    """
    violation = run(plan)
    assert violation is not None, "it fails"
    kind, size = kind_of(violation), max(1, len(plan.happenings) // 2)
    while size and tries > 0:
        place, shorter = 0, False
        while place < len(plan.happenings) and tries > 0:
            tries -= 1
            kept = plan.happenings[:place] + plan.happenings[place + size :]
            found = run(plan.keeping(kept))
            if found is not None and kind_of(found) == kind:
                plan, shorter = plan.keeping(kept), True
            else:
                place += size
        size = size if shorter and size == 1 else size // 2
    return plan


def describe(
    plan: AnyPlan, run: Callable[[AnyPlan], str | None] = carry_out, search: str = "groups"
) -> str:
    """Return the shortest form of a failing plan, in words, and how to replay it.

    Args:
        plan: one that fails.
        run: carries a plan out.
        search: the folder of the search.
    """
    short = shrink(plan, run=run)
    command = f"python -m tests.simulation.{search} --seed {plan.seed}"
    return f"{run(short)}\n{short}\nreplay it: {command}"
