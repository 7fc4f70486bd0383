"""What happens in a run: events at times, made from a seed."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, TypeAlias

_MILD_SEEDS: Final = 5
CALM: Final = 4.0
"""Seconds in which members get going before anything happens."""
SESSION: Final = 4.0
"""Session timeout of the members, in seconds."""
SPAN: Final = 40.0
"""Seconds in which things happen."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is set up.

    Attributes:
        topics: how many.
        start: where the group begins.
        auto_commit: of the members.
        named: whether members keep their names when they are started again.
        rebalance: rebalance timeout, in seconds.
        request_timeout: seconds that a member waits for an answer of the coordinator; a commit
            may so outlive the assignment that it belongs to, or not.
        span: seconds in which things happen.
        hosts: nodes that have the topics; each redirects where another one has a topic.
    """

    topics: int = 4
    start: str = "beginning"
    auto_commit: str = "processed"
    named: bool = True
    rebalance: float = 3.0
    request_timeout: float = 3.0
    span: float = SPAN
    hosts: int = 1


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happens.

    Attributes:
        at: when, in seconds.
        name: what; `World` has a method ``do_NAME``.
        arguments: of it.
    """

    at: float
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.at:6.2f} {self.name}({words})"


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
        return replace(self, happenings=happenings)


_WEIGHTS: Final = {
    "append": 6,
    "member": 3,
    "leave": 2,
    "kill": 2,
    "stop": 3,
    "suspend": 2,
    "cut": 3,
    "silence": 3,
    "coordinator": 3,
    "old_file": 1,
    "server": 2,
    "slow_store": 2,
    "broken_store": 1,
    "create_again": 1,
    "slow_network": 1,
}
MILD: Final = ("append", "member", "leave", "cut", "silence")
"""What must take a topic from no member that goes on: connections are made again in time."""
EXTEND: Final = "extend"
"""Adds a partition, which takes no topic from a member that goes on either."""
_EXTENDING_SEEDS: Final = (8, 4)
"""Of so many seeds the plan of this one has a partitioned topic that gets partitions."""
_PATIENT_SEEDS: Final = (6, 1)
"""Of so many seeds the plan of this one has commits that outlive a session."""
_SEVERAL_HOSTS: Final = (9, 8)
"""Of so many seeds the plan of this one has nodes that redirect, and die and come back."""
_Step: TypeAlias = tuple[str, float, dict[str, Any]]
_TEMPLATES: Final[tuple[tuple[_Step, ...], ...]] = (
    (("stop", 0.0, {}), ("coordinator", 0.5, {}), ("append", 1.0, {})),
    (("suspend", 0.0, {}), ("member", 0.2, {}), ("coordinator", 3.0, {}), ("append", 3.5, {})),
    (("silence", 0.0, {}), ("append", 1.0, {}), ("cut", 2.0, {})),
    (
        ("slow_store", 0.0, {"seconds": 3.0}),
        ("append", 0.1, {}),
        ("cut", 0.4, {"host": "coordinator"}),
        ("cut", 0.9, {"host": "coordinator"}),
        ("append", 1.0, {}),
    ),
    (
        ("create_again", 0.0, {}),
        ("member", 0.5, {}),
        ("append", 0.7, {}),
        ("coordinator", 2.0, {}),
    ),
    (("member", 0.0, {}), ("server", 0.1, {}), ("append", 6.0, {})),
    (("create_again", 0.0, {}), ("append", 0.1, {}), ("kill", 0.3, {}), ("member", 1.0, {})),
    (("leave", 0.0, {}), ("append", 0.3, {}), ("member", 0.8, {})),
    (
        ("append", 0.0, {}),
        ("stop", 0.1, {"seconds": 3.2}),
        ("member", 0.2, {}),
        ("append", 1.4, {}),
        ("coordinator", 2.6, {"seconds": 0.5}),
    ),
    (
        ("slow_store", 0.0, {"seconds": 8.0}),
        ("append", 0.1, {}),
        ("member", 1.0, {}),
        ("append", 1.2, {}),
    ),
)
"""Faults that have to come together: uniform ones rarely do."""
_OF_PATIENT_SEEDS: Final[tuple[tuple[_Step, ...], ...]] = (
    (
        ("slow_network", 0.0, {"seconds": 4.0}),
        ("append", 0.05, {}),
        ("cut", 0.6, {"host": "coordinator"}),
        ("cut", 1.9, {"host": "coordinator"}),
    ),
    (
        ("append", 0.0, {}),
        ("cut", 0.16, {"host": "coordinator"}),
        ("stop", 0.16, {"seconds": 5.5}),
        ("append", 4.8, {}),
        ("slow_network", 5.5, {"seconds": 4.0}),
        ("cut", 6.8, {"host": "coordinator"}),
    ),
)
"""Commits that are answered late, and whose answers get lost."""


def is_mild(plan: Plan) -> bool:
    """Whether nothing happens that may cost a member its topics."""
    return plan.settings.rebalance > 1.0 and all(
        each.name in {*MILD, EXTEND} for each in plan.happenings
    )


def make_plan(seed: int) -> Plan:
    """Return the plan of a seed; that of every tenth is mild, every eighth adds partitions."""
    random = Random(seed)
    mild = seed % 10 == _MILD_SEEDS
    settings = Settings(
        topics=random.randint(1, 5),
        start=random.choice(["beginning", "beginning", "end"]),
        auto_commit=random.choice(["processed", "off"]),
        named=random.random() < 0.6,
        rebalance=random.choice([3.0, 20.0] if mild else [1.0, 3.0, 8.0]),
        request_timeout=3 * SESSION if _is_one_of(_PATIENT_SEEDS, seed) else 3.0,
        hosts=2 if _is_one_of(_SEVERAL_HOSTS, seed) else 1,
    )
    happenings = [
        Happening(round(0.1 * number, 2), "member", {"who": number})
        for number in range(random.randint(1, 3))
    ]
    templates = _TEMPLATES
    if _is_one_of(_PATIENT_SEEDS, seed):
        templates += _OF_PATIENT_SEEDS
    for _ in range(random.randint(2, 14)):
        at = CALM + random.random() * (SPAN - CALM)
        if mild:
            happenings.append(_happening(random, random.choice(MILD), at, {}))
        elif random.random() < 0.5:
            template = random.choice(templates)
            happenings += [
                _happening(random, name, at + after, known) for name, after, known in template
            ]
        else:
            [name] = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
            happenings.append(_happening(random, name, at, {}))
    if _is_one_of(_EXTENDING_SEEDS, seed):
        happenings += [
            Happening(round(random.uniform(CALM, SPAN), 2), EXTEND, {"count": random.randint(0, 9)})
            for _ in range(random.randint(1, 3))
        ]
    if settings.hosts > 1:
        happenings += _of_second_host(random)
    happenings.sort(key=lambda each: each.at)
    return Plan(seed, settings, tuple(happenings))


def _of_second_host(random: Random) -> list[Happening]:
    """Return what happens to the second node, and to connections with it."""
    made = []
    for name in ("cut", "silence", "server", "server"):
        at = CALM + random.random() * (SPAN - CALM)
        made.append(_happening(random, name, at, {"host": "server2"}))
    return made


def _is_one_of(seeds: tuple[int, int], seed: int) -> bool:
    every, rest = seeds
    return seed % every == rest


def _happening(random: Random, name: str, at: float, known: dict[str, Any]) -> Happening:
    arguments: dict[str, Any] = {}
    if name in {"member", "leave", "kill", "stop", "suspend"}:
        arguments["who"] = random.randint(0, 4)
    if name in {"cut", "silence"}:
        arguments = {"who": random.randint(0, 4), "host": random.choice(["coordinator", "server"])}
    if name in {"append", "create_again"}:
        arguments = {"topic": random.randint(0, 4)}
    if name == "append":
        arguments["count"] = random.randint(1, 40)
    if name in {"stop", "suspend"}:
        arguments["seconds"] = round(random.choice([0.5, 3.0, 5.0, 9.0]) * random.random() + 0.1, 2)
    if name in {"coordinator", "old_file", "server", "slow_store", "broken_store", "slow_network"}:
        arguments["seconds"] = round(random.choice([0.2, 2.0, 8.0]) * random.random(), 2)
    return Happening(round(at, 2), name, arguments | known)
