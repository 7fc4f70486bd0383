"""What all cases of one run have in common."""

import secrets
from dataclasses import dataclass, field

from lance_conformance.dialect import Dialect


@dataclass(frozen=True, slots=True)
class Target:
    """Where the server under test listens.

    Attributes:
        host: A name or an address, as it was given.
        port: The port.
        address: The address that the name stands for, once it has answered there.
    """

    host: str
    port: int
    address: str | None = None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _run_id() -> str:
    return secrets.token_hex(4)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the cases of one run are held to, and how they reach the target.

    Attributes:
        target: Where the server listens.
        dialect: The dialect it was found to speak; bytes are built and read in it.
        demanded: The dialect it is held to: the one asked for, else the document's.
        pinned: A dialect was asked for, so speaking another one is a fault.
        budget: Seconds that one case may take.
        prefix: Beginning of the name of every topic that the kit creates.
        run_id: Keeps the names of two runs apart.
        seed: Source of record values and order; the same seed asks the same questions.
    """

    target: Target
    dialect: Dialect
    demanded: Dialect
    pinned: bool = True
    budget: float = 1.0
    prefix: str = "lance-conformance"
    run_id: str = field(default_factory=_run_id)
    seed: int = 0
