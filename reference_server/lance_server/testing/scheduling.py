"""A scheduler and a clock that move only when a test says so."""

from collections import deque
from collections.abc import Callable

from lance_server.runtime.completion import Completion, T
from lance_server.runtime.scheduling import Job


class ManualClock:
    """The server's wall clock in nanoseconds.

    Attributes:
        now_ns: what it shows.
    """

    def __init__(self, now_ns: int = 1_700_000_000_000_000_000) -> None:
        self.now_ns = now_ns
        self._jumped_ns = 0

    def __call__(self) -> int:
        """Return the time, and let a microsecond pass."""
        self.now_ns += 1000
        return self.now_ns

    def boottime(self) -> int:
        """Return the time that passed, without the jumps."""
        return self.now_ns - self._jumped_ns

    def jump(self, seconds: float) -> None:
        """Set the wall clock to another time; no time passes."""
        self.now_ns += round(seconds * 1e9)
        self._jumped_ns += round(seconds * 1e9)


class _ManualTimer:
    def __init__(self, due: float, job: Job) -> None:
        self.due = due
        self.job: Job | None = job

    def cancel(self) -> None:
        self.job = None


class ManualScheduler:
    """Runs nothing by itself.

    Attributes:
        now: the loop's time in seconds.
        work: worker jobs that were asked for and not run yet.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.work: deque[Job] = deque()
        self._soon: deque[Job] = deque()
        self._timers: list[_ManualTimer] = []

    def call_soon(self, job: Job) -> object:
        """Note a job for `run_soon`."""
        self._soon.append(job)
        return job

    def call_later(self, delay: float, job: Job) -> _ManualTimer:
        """Note a job for `pass_time`."""
        timer = _ManualTimer(self.now + delay, job)
        self._timers.append(timer)
        return timer

    def run(self, pool: str, work: Callable[[], T]) -> Completion[T]:
        """Note worker work for `run_work`."""
        del pool
        outcome: Completion[T] = Completion()
        self.work.append(lambda: _perform(work, outcome))
        return outcome

    def run_soon(self) -> None:
        """Run what is due on the loop, but no worker job."""
        while self._soon:
            self._soon.popleft()()

    def run_work(self, count: int = 1) -> None:
        """Run worker jobs, oldest first, and what they lead to on the loop."""
        for _ in range(count):
            self.work.popleft()()
            self.run_soon()

    def run_all(self) -> None:
        """Run everything that needs no time."""
        self.run_soon()
        while self.work:
            self.run_work()

    def pass_time(self, seconds: float) -> None:
        """Let time pass and run the timers that come due."""
        self.now += seconds
        due = [timer for timer in self._timers if timer.due <= self.now]
        self._timers = [timer for timer in self._timers if timer.due > self.now]
        for timer in due:
            if timer.job is not None:
                timer.job()
        self.run_soon()


def _perform(work: Callable[[], T], outcome: Completion[T]) -> None:
    try:
        value = work()
    except Exception as error:  # noqa: BLE001 - whoever waits for the outcome gets it
        outcome.fail(error)
    else:
        outcome.settle(value)
