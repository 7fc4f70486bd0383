"""Conditions that all cases of one run share."""

import math
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from lance_conformance.engine.access import Access


@dataclass(frozen=True, slots=True)
class Target:
    """Where the server under test listens.

    Attributes:
        host: A name or an address, as it was given.
        port: The port; 0 while it is that of the protocol.
        address: The address that the name stands for, once it has answered there.
    """

    host: str
    port: int
    address: str | None = None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


USUAL_SEED = 1
"""What is drawn is drawn by it, unless the user says otherwise; the kill matrices hold for it."""


def _run_id() -> str:
    return secrets.token_hex(4)


Restart = Callable[[Target], Awaitable[None]]
"""Restarts a target. It raises OSError where that fails, and says why."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the cases of one run are held to, and how they reach the target.

    Attributes:
        target: Where the server listens.
        dialect: The dialect it was found to speak; bytes are built and read in it. Each protocol
            has its own kind of dialect; all of them have a name.
        demanded: The dialect it is held to: the one asked for, else the document's.
        pinned: A dialect was asked for, so speaking another one is a fault.
        budget: Seconds that one case may take.
        longest_silence: Seconds that a case waits for one answer, at most, however long it lasts.
        prefix: Beginning of the name of every topic that the kit creates.
        run_id: Keeps the names of two runs apart.
        seed: Source of record values and order; the same seed asks the same questions.
        access: How the kit gets in.
        read_only: Nothing may be created, stored, committed or deleted.
        capabilities: What the target is known to be able to do, beyond what every target must.
        without: Features and capabilities that are left out on purpose.
        missing: Features that the target was found not to serve.
        restart: How the target is restarted; it returns once the target has ended at least.
        fails_over: The second node is asked what follows a restart, while the target is down.
        pace: How many times their seconds cases wait that wait on purpose.
        one_by_one: Cases are asked one after the other, since the target is slow.
        restart_timeout: Seconds that a restart may take, beyond the budget.
        second: Another node of the target's cluster.
        third: One more.
        coordinator: Where consumer groups are coordinated.
    """

    target: Target
    dialect: Any
    demanded: Any
    pinned: bool = True
    budget: float = 1.0
    longest_silence: float = math.inf
    prefix: str = "lance-conformance"
    run_id: str = field(default_factory=_run_id)
    seed: int = USUAL_SEED
    access: Access = field(default_factory=Access)
    read_only: bool = False
    capabilities: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    restart: Restart | None = None
    fails_over: bool = False
    pace: float = 1.0
    one_by_one: bool = False
    restart_timeout: float = 60.0
    second: Target | None = None
    third: Target | None = None
    coordinator: Target | None = None
