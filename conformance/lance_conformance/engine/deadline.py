"""The deadline of a case: it moves while the target answers as it must, however slowly."""

import asyncio
import math

from lance_conformance.engine.failures import Failure

GRACE = 0.5
"""Least seconds after its deadline after which a case is ended from outside."""
LONGEST = 200
"""How many times the time of one answer a deadline may move, at most: four thousand round trips."""
MOST_ANSWERS = 50_000
"""Right answers that one case takes. The largest case of a thorough run needs a tenth of them."""
MOST_BYTES = 512 * 1024 * 1024
"""Bytes that one case takes on all its connections; the largest one needs a quarter of them."""


class Deadline:
    """When a case ends.

    A target may take its time for each of a thousand frames. So each right answer moves the
    deadline to at least one step from now; where no answer comes, it stays. A target that goes on
    with right answers for ever holds no case for ever: the time by which the deadline moves, the
    number of answers and their bytes are all bounded.

    Args:
        at: The time of the event loop's clock.
        step: Seconds from a right answer until the next one is due, at least.
        longest: Seconds that one silence lasts, at most; the deadline stays where it is.

    Attributes:
        at: The time of the event loop's clock.
        last: The deadline never moves beyond this, in the time of the event loop's clock.
        grace: Seconds after it after which the case is ended from outside: as long as a step, so
            that a case which waits in vain can say so on a machine that is as busy as that.
        alarm: What ends the case from outside, a moment after the deadline.
        answers: Right answers so far.
    """

    def __init__(self, at: float, step: float = 0.0, longest: float = math.inf) -> None:
        self.at = at
        self.last = at + step * LONGEST
        self.alarm: asyncio.Timeout | None = None
        self.answers = 0
        self._bytes = 0
        self._step = step
        self._longest = longest
        self.grace = max(GRACE, step)

    def __repr__(self) -> str:
        return f"<Deadline {self.at:.3f} step={self._step} last={self.last:.3f}>"

    def due(self) -> float:
        """When the next bytes must have come, in the time of the event loop's clock."""
        return min(self.at, asyncio.get_running_loop().time() + self._longest)

    def heard(self, size: int) -> None:
        """Note bytes that came, right or not.

        Raises:
            Failure: They come without end.
        """
        self._bytes += size
        if self._bytes > MOST_BYTES:
            raise Failure("endless", f"{MOST_BYTES >> 20} MiB came, and the target still goes on")

    def progress(self) -> None:
        """Note a right answer.

        Raises:
            Failure: The target answers without end.
        """
        self.answers += 1
        if self.answers > MOST_ANSWERS:
            raise Failure(
                "endless", f"{MOST_ANSWERS} right answers came, and the target still goes on"
            )
        now = asyncio.get_running_loop().time()
        self.at = max(self.at, min(now + self._step, self.last))
        if self.alarm is not None and not self.alarm.expired():
            self.alarm.reschedule(self.at + self.grace)

    def restart(self, seconds: float) -> None:
        """Begin again, for what comes after the case itself.

        Args:
            seconds: Time until the new deadline, which moves as the first one did.
        """
        self.at = asyncio.get_running_loop().time() + seconds
        self.last = self.at + self._step * LONGEST
        self.answers = self._bytes = 0
