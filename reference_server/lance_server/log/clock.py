"""The server's clock, as the log uses it: a hybrid one (Design section 29, AMB-51).

The time of a batch is the wall clock's, or that of the topic's last batch where the wall clock
stands before it: it never falls. What tells batches of one time apart, the logical part, is the
sequence in their sort key (AMB-16). So nothing in a topic stands out of order by time, and a
search by time needs no window around its result.
"""

import logging
from collections.abc import Callable
from enum import IntEnum
from typing import Final, TypeAlias

_log = logging.getLogger(__name__)

Clock: TypeAlias = Callable[[], int]
"""Returns nanoseconds since the Unix epoch."""

DEGRADED_NS: Final = 100_000_000
CRITICAL_NS: Final = 1_000_000_000
"""How far behind the clock is when it is said to be so (Design section 29.3)."""
_SECOND: Final = 1e9


class ClockHealth(IntEnum):
    """Measures how far the clock is behind the times that batches got."""

    HEALTHY = 0
    """Less than 100 ms."""
    DEGRADED = 1
    """Less than a second."""
    CRITICAL = 2
    """A second or more: it was set back, or a topic came from a machine that was ahead."""


def health_of(behind_ns: int) -> ClockHealth:
    """Return what a distance means."""
    if behind_ns < DEGRADED_NS:
        return ClockHealth.HEALTHY
    return ClockHealth.DEGRADED if behind_ns < CRITICAL_NS else ClockHealth.CRITICAL


class ClockWatch:
    """Says once in the log that the clock is behind, and once that it has caught up.

    Attributes:
        told: the worst that was said since it was healthy.
    """

    def __init__(self) -> None:
        self.told = ClockHealth.HEALTHY

    def __repr__(self) -> str:
        return f"<ClockWatch {self.told.name}>"

    def note(self, behind_ns: int, topic: str) -> None:
        """Take note of how far the clock is behind a topic's last batch."""
        health = health_of(behind_ns)
        if health > self.told:
            self.told = health
            _log.warning(
                "the clock is %.1f s behind the last batch of topic %r: until it has caught up, "
                "batches there get that batch's time; check the machine's time service",
                behind_ns / _SECOND,
                topic,
            )

    def caught_up(self) -> None:
        """Take note that it is behind no topic any more."""
        if self.told is not ClockHealth.HEALTHY:
            self.told = ClockHealth.HEALTHY
            _log.info("the clock has caught up with every topic")
