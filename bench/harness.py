"""Fair measuring: both sides in turn, disturbed pairs repeated, ratios pair by pair."""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count as counting
from typing import TypeAlias

Rate: TypeAlias = Callable[[], float]
"""Runs one side once and returns its rate, in the scenario's unit."""

DISTURBED = 1.35
"""A pair during which the machine's speed moved by more than this factor is taken again."""
_SEVERAL = 3
_ENOUGH = 6
"""Pairs from which on the interval holds the true median in 95 of 100 runs; their range does."""
_LOOKS = 4
"""How often pairs are taken, at most, until a bar is missed surely or reached."""
_UNLIKELY = 0.05
"""How likely the true median may lie outside its confidence interval."""
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
        budget: seconds that all its pairs should take at most in a full run.
    """

    name: str
    unit: str
    other: str
    sides: Callable[[], AbstractContextManager[tuple[Rate, Rate]]]
    budget: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured.

    Attributes:
        pairs: how many of each scenario.
        least: how many even of a scenario whose budget is spent.
        share: of the scenarios' budgets that is given.
    """

    pairs: int
    least: int
    share: float


FULL = Effort(pairs=15, least=3, share=1.0)
QUICK = Effort(pairs=3, least=1, share=0.1)


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
        seconds: how long it all took, with what had to be set up.
    """

    scenario: str
    unit: str
    other: str
    ours: list[float]
    theirs: list[float]
    floor: float | None
    disturbed: int
    seconds: float = 0.0

    @property
    def ratios(self) -> list[float]:
        """Ours / theirs, pair by pair."""
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]

    @property
    def ratio(self) -> float:
        """The median ratio: the figure to quote."""
        return statistics.median(self.ratios)

    @property
    def noise(self) -> float:
        """How far a typical pair is from the median, as a part of it."""
        return statistics.median(abs(each / self.ratio - 1) for each in self.ratios)

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval (95 %) of the median ratio; of few pairs, their range."""
        return _interval(self.ratios)

    @property
    def passed(self) -> bool:
        """Whether the bar, if there is one, is reached, or cannot be told from the ratio."""
        return self.floor is None or self.judged >= self.floor

    @property
    def judged(self) -> float:
        """What is held against the bar: the upper end of the interval, of few pairs the median.

        Where both sides do the same the median lies below 1 in half of all runs.
        """
        return self.interval[1] if len(self.ratios) >= _ENOUGH else self.ratio

    @property
    def is_sure(self) -> bool:
        """Whether the bar lies outside the confidence interval, or there is none."""
        low, high = self.interval
        return self.floor is None or not low <= self.floor <= high


def _interval(ratios: list[float]) -> tuple[float, float]:
    """Return the confidence interval of the median.

    A pair is above the true median as often as below it, so their number is binomial.
    """
    ordered, pairs = sorted(ratios), len(ratios)
    outside, likely = -1, 0.0
    while (likely := likely + math.comb(pairs, outside + 1) / 2**pairs) <= _UNLIKELY / 2:
        outside += 1
    outside = max(outside, 0)
    return ordered[outside], ordered[-1 - outside]


@dataclass(slots=True)
class _Taking:
    """Takes pairs until there are enough, or the time is over."""

    effort: Effort
    limit: float
    floor: float | None
    clock: Callable[[], float]
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    disturbed: int = 0

    def run(self, us: Rate, them: Rate) -> None:
        """Take the pairs, and as many again while they leave open whether the bar is missed."""
        self._take(us, them, self.effort.pairs)
        for _ in range(_LOOKS - 1):
            if self.floor is None or not _unclear(self.ours, self.theirs, self.floor):
                break
            self._take(us, them, self.effort.pairs)

    def _take(self, us: Rate, them: Rate, pairs: int) -> None:
        end, taken, spare = self.clock() + self.limit, 0, pairs * RETRIES
        for calm, a, b in _pairs(us, them):
            late = self.clock() > end
            if not calm and spare and not late:
                spare -= 1
                self.disturbed += 1
                continue
            self.ours.append(a)
            self.theirs.append(b)
            taken += 1
            if taken == pairs or (late and taken >= self.effort.least):
                return


def _unclear(ours: list[float], theirs: list[float], floor: float) -> bool:
    """Whether the bar is missed, but not surely: by what the pairs tell, or by too few pairs."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    is_open = len(ratios) < _SEVERAL or _interval(ratios)[1] >= floor
    return statistics.median(ratios) < floor and is_open


def measure(
    scenario: Scenario,
    effort: Effort = FULL,
    floor: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Outcome:
    """Run both sides of a scenario in turn until enough undisturbed pairs are there.

    When the machine never calms down, the pairs that were taken stand, and the count of
    disturbed ones says so. When the median misses the bar, and its confidence interval does not or
    there are not even three pairs, as many are taken again, in as much time, up to three times. All
    of them count.

    Args:
        scenario: what to compare.
        effort: how many pairs, and how much time for them.
        floor: the least ratio that is accepted.
        clock: seconds, from anywhere.
    """
    started = clock()
    taking = _Taking(effort, scenario.budget * effort.share, floor, clock)
    with scenario.sides() as (us, them):
        us(), them()  # warm both up
        taking.run(us, them)
    return Outcome(
        scenario=scenario.name,
        unit=scenario.unit,
        other=scenario.other,
        ours=taking.ours,
        theirs=taking.theirs,
        floor=floor,
        disturbed=taking.disturbed,
        seconds=clock() - started,
    )


def _pairs(us: Rate, them: Rate) -> Iterator[tuple[bool, float, float]]:
    """Yield pairs without end: whether the machine was calm, our rate, their rate."""
    before = _machine_speed()
    for turn in counting():
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
    """Turn work on ``count`` units into a `Rate`.

    Raises:
        ValueError: there is nothing to do, so that every rate would be 0.
    """
    if count <= 0:
        raise ValueError(f"there is no rate of {count} units")

    def run() -> float:
        start = time.perf_counter()
        work()
        return count / (time.perf_counter() - start)

    return run
