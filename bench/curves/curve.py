"""What a cost curve is, and how its points are measured."""

import gc
import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TypeAlias

from bench.curves.bed import Bed
from bench.usage import Use


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run cost.

    Attributes:
        seconds: on the clock on the wall, for a unit.
        cpu: processor time of the process that is measured, for a unit.
        memory: the most private memory it had, in bytes.
    """

    seconds: float
    cpu: float
    memory: float

    @classmethod
    def of(cls, use: Use, units: float, seconds: float | None = None) -> "Sample":
        """Return what ``units`` cost, where they took ``seconds`` or the whole time."""
        wall = use.seconds if seconds is None else seconds
        return cls(wall / units, use.cpu / units, use.memory)


Run: TypeAlias = Callable[[], Sample]
"""Does the work at one point once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """How a cost grows.

    Attributes:
        name: ``work/axis``.
        axis: what grows, with its unit.
        unit: what the cost is of.
        process: whose processor time and memory are measured.
        points: values on the axis.
        large: more of them, when the time and the disk are given for it.
        steepest: the slope, on logarithmic axes, that the cost may have at the end: 0 for a cost
            that stays the same, 1 for one that grows like the axis.
        open: prepares a point and yields its `Run`.
    """

    name: str
    axis: str
    unit: str
    process: str
    points: tuple[int, ...]
    steepest: float
    open: Callable[[int, Bed], AbstractContextManager[Run]]
    large: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """A curve's figures: of each point the median over the rounds.

    Attributes:
        curve: which one.
        points: values on the axis.
        samples: what each cost.
    """

    curve: Curve
    points: tuple[int, ...]
    samples: tuple[Sample, ...]


def measure(curve: Curve, points: tuple[int, ...], rounds: int, bed: Bed) -> Measured:
    """Measure all points in turn, and that several times, first forwards, then backwards.

    So a machine that is slow for a while is slow for all points, and not for one end of the curve.

    Args:
        curve: what to measure.
        points: where; some of its.
        rounds: how often.
        bed: what many curves need.
    """
    taken: list[list[Sample]] = [[] for _ in points]
    with ExitStack() as stack:
        runs = [stack.enter_context(curve.open(point, bed)) for point in points]
        for run in runs:
            run()  # warm it up
        for turn in range(rounds):
            gc.collect()
            places = range(len(points))
            for place in places if turn % 2 == 0 else reversed(places):
                taken[place].append(runs[place]())
    return Measured(curve, points, tuple(map(_median, taken)))


def _median(samples: list[Sample]) -> Sample:
    return Sample(
        statistics.median(each.seconds for each in samples),
        statistics.median(each.cpu for each in samples),
        statistics.median(each.memory for each in samples),
    )
