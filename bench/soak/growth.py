"""From samples to figures: what a process has at full rate, and how much it grew."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.soak.memory import Resident

SETTLED = 0.2
"""The part of a soak after which a process should have all it needs: 2 of 10 minutes."""
BAR = 0.01
"""How much a process may grow, as a part of what it had."""
STEP = 1 << 20
"""Python takes memory from the system in arenas of this many bytes: one of them is not growth."""


@dataclass(frozen=True, slots=True)
class Samples:
    """What a process had.

    Attributes:
        load: at full rate, from `SETTLED` on.
        settled: at rest, when it was settled.
        end: at rest, at the end.
    """

    load: Sequence[Resident]
    settled: Sequence[Resident]
    end: Sequence[Resident]


@dataclass(frozen=True, slots=True)
class Figures:
    """What became of a process.

    Attributes:
        load: the median at full rate.
        highest: the most private memory at full rate, in bytes.
        settled: the least private memory at rest, when it was settled, in bytes.
        end: the least private memory at rest, at the end, in bytes.
    """

    load: Resident
    highest: int
    settled: int
    end: int

    @property
    def growth(self) -> float:
        """How much private memory grew from rest to rest, as a part of it; 0.01 is 1 %."""
        return self.end / self.settled - 1

    @property
    def grew(self) -> bool:
        """Whether it grew by more than `BAR`, and by more than a `STEP`."""
        return self.end - self.settled > max(BAR * self.settled, STEP)


def figures(samples: Samples) -> Figures:
    """Return the figures of a process.

    At rest the least counts: what is more at one rest than at another is room that the
    allocators of Python and C have kept, not what the process needs.

    Raises:
        statistics.StatisticsError: there is no look at full rate.
        ValueError: there is none at rest.
    """
    return Figures(
        load=Resident(
            private=round(statistics.median(each.private for each in samples.load)),
            mapped=round(statistics.median(each.mapped for each in samples.load)),
        ),
        highest=max(each.private for each in samples.load),
        settled=min(each.private for each in samples.settled),
        end=min(each.private for each in samples.end),
    )
