"""The client under test, in the place where a server suite has its target."""

from dataclasses import dataclass, field

from lance_conformance.client.driver import Driver, Drivers
from lance_conformance.engine.conditions import Target


async def _nobody() -> Driver:
    raise AssertionError("there is no client to drive")


@dataclass(frozen=True, slots=True)
class ClientTarget(Target):
    """The client under test.

    Attributes:
        line: The command line of its driver, or the name of a client in this process.
        drivers: How it is driven.
        known: Rules that it breaks in everything it does. Each is judged by its own case; the
            others go on, so that one deviation is one failing case.
        pause: Seconds between the pieces of an answer that is cut.
    """

    host: str = "127.0.0.1"
    port: int = 0
    line: str = ""
    drivers: Drivers = field(default_factory=lambda: Drivers(_nobody), compare=False)
    known: frozenset[str] = frozenset()
    pause: float = 0.0

    def __str__(self) -> str:
        return self.line


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long things may take, as parts of a case's budget.

    Args:
        budget: Seconds that a case gets.
    """

    budget: float

    @property
    def operation(self) -> float:
        """Seconds that a client is given for one operation."""
        return self.budget / 4

    @property
    def hang(self) -> float:
        """Seconds after which an operation that should have ended long ago is a hang."""
        return self.budget * 0.6
