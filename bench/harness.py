"""Fair measuring: both sides in turn, disturbed pairs repeated, ratios pair by pair."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias

Rate: TypeAlias = Callable[[], float]
"""Runs one side once and returns its rate, in the scenario's unit."""

DISTURBED = 1.35
"""A pair during which the machine's speed moved by more than this factor is taken again."""
RETRIES = 2
"""How many extra pairs per asked-for pair a noisy machine is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One comparison.

    Attributes:
        name: ``area/what``.
        unit: of both rates; higher is better.
        other: who we are compared with, in words.
        sides: opens what both sides need and yields (ours, theirs).
    """

    name: str
    unit: str
    other: str
    sides: Callable[[], AbstractContextManager[tuple[Rate, Rate]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a scenario measured.

    Attributes:
        scenario: its name.
        unit: of the rates.
        other: who we were compared with.
        ours: our rates, one a pair.
        theirs: the other side's rates, one a pair.
        floor: the bar, if it has one.
        disturbed: pairs thrown away because the machine's speed moved meanwhile.
    """

    scenario: str
    unit: str
    other: str
    ours: list[float]
    theirs: list[float]
    floor: float | None
    disturbed: int

    @property
    def ratios(self) -> list[float]:
        """Ours / theirs, pair by pair."""
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]

    @property
    def ratio(self) -> float:
        """The median ratio: the figure to quote."""
        return statistics.median(self.ratios)

    @property
    def passed(self) -> bool:
        """Whether the bar, if there is one, is reached."""
        return self.floor is None or self.ratio >= self.floor


def measure(scenario: Scenario, pairs: int, floor: float | None = None) -> Outcome:
    """Run both sides of a scenario in turn until ``pairs`` undisturbed pairs are there.

    When the machine never calms down, the pairs that were taken stand, and the count of
    disturbed ones says so.
    """
    ours: list[float] = []
    theirs: list[float] = []
    disturbed = 0
    with scenario.sides() as (us, them):
        us(), them()  # warm both up
        for calm, a, b in _pairs(us, them, pairs * (1 + RETRIES)):
            if not calm and disturbed < pairs * RETRIES:
                disturbed += 1
                continue
            ours.append(a)
            theirs.append(b)
            if len(ours) == pairs:
                break
    return Outcome(
        scenario=scenario.name,
        unit=scenario.unit,
        other=scenario.other,
        ours=ours,
        theirs=theirs,
        floor=floor,
        disturbed=disturbed,
    )


def _pairs(us: Rate, them: Rate, most: int) -> Iterator[tuple[bool, float, float]]:
    before = _machine_speed()
    for turn in range(most):
        gc.collect()
        first, second = (us, them) if turn % 2 == 0 else (them, us)
        one, two = first(), second()
        after = _machine_speed()
        calm = max(before, after) / min(before, after) < DISTURBED
        before = after
        yield calm, *((one, two) if turn % 2 == 0 else (two, one))


def _machine_speed() -> float:
    """Return the speed of a fixed piece of work, the best of three tries."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        sum(range(200_000))
        best = min(best, time.perf_counter() - start)
    return 1 / best


def rate(count: int, work: Callable[[], object]) -> Rate:
    """Turn work on ``count`` units into a `Rate`."""

    def run() -> float:
        start = time.perf_counter()
        work()
        return count / (time.perf_counter() - start)

    return run
