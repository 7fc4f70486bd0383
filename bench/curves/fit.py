"""Slopes on logarithmic axes: how a cost grows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

TOLERANCE = 0.25
"""By how much the end of a curve may be steeper than it should be: what noise makes of it."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How steep a curve is.

    Attributes:
        whole: the slope fitted to all points: 0 stays the same, 1 grows like the axis.
        end: the slope from the last point but one to the last.
    """

    whole: float
    end: float

    def steeper_than(self, slope: float) -> bool:
        """Whether the curve ends steeper than that, and not by noise alone.

        The end decides: whatever is bad grows in the end faster than at the beginning, where what
        is the same for all points hides it.
        """
        return self.end > slope + TOLERANCE


def growth(points: Sequence[float], costs: Sequence[float]) -> Growth:
    """Return the slopes of a curve.

    Args:
        points: values on the axis, rising, two at least.
        costs: what was measured at each, over zero.

    Raises:
        ValueError: there are fewer than two points, or a figure is not over zero.
    """
    if len(points) < 2:
        raise ValueError(f"{len(points)} points have no slope")
    x, y = [math.log(each) for each in points], [math.log(each) for each in costs]
    middle, height = sum(x) / len(x), sum(y) / len(y)
    spread = sum((each - middle) ** 2 for each in x)
    whole = sum((a - middle) * (b - height) for a, b in zip(x, y, strict=True)) / spread
    return Growth(whole, (y[-1] - y[-2]) / (x[-1] - x[-2]))
