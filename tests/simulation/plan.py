"""Plans: lists of operations, some of which are faults, made from a seed."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, ClassVar, Generic, Self, TypeVar

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that happens.

    Attributes:
        name: which; a `PlanRun` has a method ``do_NAME``.
        seed: of what is decided at random meanwhile.
        arguments: what is known beforehand.
    """

    name: str
    seed: int
    arguments: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.name}({words})"


@dataclass(frozen=True, slots=True)
class Plan(Generic[S]):
    """What happens in a run.

    Attributes:
        seed: that it was made from.
        template: name of its template, or ``any``.
        settings: how what is tested is set up.
        operations: in order.
    """

    WHERE: ClassVar[str] = ""
    """What is tested, in a word before the seed."""

    seed: int
    template: str
    settings: S
    operations: tuple[Operation, ...]

    def keeping(self, operations: tuple[Operation, ...]) -> Self:
        """Return the same plan with other operations."""
        return replace(self, operations=operations)

    def __str__(self) -> str:
        head = f"{self.WHERE}seed {self.seed}, template {self.template}, {self.settings}"
        return "\n".join([head, *(f"  {each}" for each in self.operations)])


class PlanWriter:
    """Writes down operations, drawn at random.

    Attributes:
        random: decides.
        operations: what was added.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.operations: list[Operation] = []

    def add(self, name: str, /, **arguments: Any) -> None:
        """Add an operation."""
        self.operations.append(Operation(name, self.random.getrandbits(32), arguments))
