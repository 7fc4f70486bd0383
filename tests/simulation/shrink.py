"""Making a failing plan short: operations are deleted as long as it fails in the same way."""

import re
from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

from tests.simulation.plan import Operation


class Shrinkable(Protocol):
    """A plan that can be made shorter."""

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What happens, in order."""
        ...

    def keeping(self, operations: tuple[Operation, ...]) -> Self:
        """Return the same plan with other operations."""
        ...


PlanT = TypeVar("PlanT", bound=Shrinkable)


def kind_of(violation: str) -> str:
    """Return what kind of violation it is: its words, without names and numbers."""
    words = re.sub(r"/\S+|\(.*?\)|'.*?'", "", violation)
    words = re.sub(r"\bdefault\b|\btopic[- ]\d+", "topic", words)
    return re.sub(r"[-\d.\[\],]+|\s+", " ", words)[:60]


def shrink(plan: PlanT, carry_out: Callable[[PlanT], Any], tries: int = 600) -> PlanT:
    """Return a shorter plan that fails in the same way.

    Args:
        plan: one that fails.
        carry_out: carries it out.
        tries: runs that it may cost.
    """
    violation = carry_out(plan).violation
    assert violation is not None, "it fails"
    kind, size = kind_of(violation), max(1, len(plan.operations) // 2)
    while size and tries > 0:
        place, shorter = 0, False
        while place < len(plan.operations) and tries > 0:
            tries -= 1
            candidate = plan.keeping(plan.operations[:place] + plan.operations[place + size :])
            found = carry_out(candidate).violation
            if found is not None and kind_of(found) == kind:
                plan, shorter = candidate, True
            else:
                place += size
        size = size if shorter and size == 1 else size // 2
    return plan
