"""What happens in a run: events at times, made from a seed."""

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.simulation.groups.plan import Happening

SPAN: Final = 20.0
"""Seconds in which things happen."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is set up.

    Attributes:
        in_flight: batches that may be unacknowledged.
        delivery_timeout: seconds after which a batch fails.
        journal: whether a full buffer goes through a journal.
        deployed: whether the server speaks the published server's dialect.
        start: where the consumer begins.
    """

    in_flight: int = 4
    delivery_timeout: float = 60.0
    journal: bool = False
    deployed: bool = False
    start: str = "beginning"


@dataclass(frozen=True, slots=True)
class Plan:
    """A run.

    Attributes:
        seed: of everything that is decided at random meanwhile.
        settings: how it is set up.
        happenings: in the order of their times.
    """

    seed: int
    settings: Settings
    happenings: tuple[Happening, ...]

    def __str__(self) -> str:
        return "\n".join([str(self.settings), *map(str, self.happenings)])

    def keeping(self, happenings: tuple[Happening, ...]) -> "Plan":
        """Return the plan with these happenings alone."""
        return Plan(self.seed, self.settings, happenings)


_WEIGHTS: Final = {
    "send": 8,
    "flush": 3,
    "cut": 3,
    "silence": 2,
    "server": 3,
    "slow_sync": 3,
    "slow_network": 1,
    "refuse": 2,
    "limit": 2,
    "full_disk": 2,
    "other_dialect": 1,
    "consumer": 2,
    "kill_consumer": 2,
    "second_consumer": 1,
    "create_again": 1,
}
_LASTING: Final = frozenset(
    {
        "server",
        "consumer",
        "slow_sync",
        "slow_network",
        "refuse",
        "limit",
        "full_disk",
        "other_dialect",
    }
)
_TOGETHER: Final = (
    (("slow_sync", 0.0), ("send", 0.1), ("server", 0.4), ("send", 0.5)),
    (("slow_sync", 0.0), ("send", 0.1), ("cut", 0.3), ("send", 0.35), ("flush", 0.4)),
    (("slow_sync", 0.0), ("send", 0.1), ("server", 0.4), ("limit", 0.41), ("flush", 6.0)),
    (("full_disk", 0.0), ("server", 0.1), ("send", 0.2), ("send", 0.4), ("flush", 1.0)),
    (("slow_sync", 0.0), ("send", 0.1), ("other_dialect", 0.3), ("flush", 1.0)),
    (("slow_sync", 0.0), ("send", 0.1), ("create_again", 0.3), ("send", 1.0)),
    (("consumer", 0.0), ("send", 0.1), ("kill_consumer", 4.5)),
)
"""Faults that have to come together: uniform ones rarely do."""


def make_plan(seed: int) -> Plan:
    """Return the plan of a seed."""
    random = Random(seed)
    settings = Settings(
        in_flight=random.choice([1, 4, 16]),
        delivery_timeout=random.choice([5.0, 60.0]),
        journal=random.random() < 0.3,
        deployed=random.random() < 0.3,
        start=random.choice(["beginning", "beginning", "end"]),
    )
    happenings: list[Happening] = []
    for _ in range(random.randint(2, 14)):
        at = random.uniform(0.5, SPAN)
        if random.random() < 0.4:
            together = random.choice(_TOGETHER)
            happenings += [_happening(random, name, at + after) for name, after in together]
        else:
            [name] = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
            happenings.append(_happening(random, name, at))
    return Plan(seed, settings, tuple(sorted(happenings, key=lambda each: each.at)))


def _happening(random: Random, name: str, at: float) -> Happening:
    arguments: dict[str, Any] = {}
    if name == "send":
        arguments["count"] = random.randint(1, 30)
    if name in {"cut", "silence"}:
        arguments["who"] = random.choice(["producer", "consumer"])
    if name in _LASTING:
        arguments["seconds"] = round(random.choice([0.5, 2.0, 8.0]) * random.random(), 2)
    return Happening(round(at, 2), name, arguments)
