"""Threads that take turns, and time that passes when nobody has anything to do.

Threads are greenlets. A thread goes on until it pauses, sleeps, or waits for a lock, a queue or a
job; then the world picks the next one at random. All randomness of a run comes from one generator,
so a seed gives the same interleaving each time.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from types import TracebackType
from typing import Any, Final, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from lance_server.runtime.completion import Completion
from lance_server.runtime.scheduling import Job
from lance_server.runtime.sync import Primitives

T = TypeVar("T")
POOLS: Final = {"flush": 2, "read": 2, "meta": 1, "wal": 1}
"""Threads of each pool of the server."""
EPOCH_NS: Final = 1_700_000_000_000_000_000
_MOST_STEPS: Final = 200_000
_LONGEST_REST: Final = 5000.0
_WEIGHT: Final = 4
"""How much likelier a pause is at a lock or a queue than at a storage call."""


class StuckError(Exception):
    """The world went on for too long without an end in sight."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often threads are interrupted, and for how long.

    Attributes:
        pause: how likely a pause is at a place where there may be one.
        far: how likely a pause is a long one.
        longest: seconds of a long pause, at most.
    """

    pause: float = 0.1
    far: float = 0.1
    longest: float = 0.2


class World:
    """A world of threads.

    Args:
        random: decides.
        pace: how often threads are interrupted.

    Attributes:
        marks: random bytes that no choice depends on.
        random: decides; a run puts another one here before each of its operations.
        pace: how often threads are interrupted.
        now: seconds since it began.
        jump_ns: nanoseconds that the wall clock is ahead of the time that passed.
        errors: what threads raised and nobody caught.
    """

    def __init__(self, random: Random, pace: Pace) -> None:
        self.random = random
        self.marks = Random(0)
        self.pace = pace
        self.now = 0.0
        self.jump_ns = 0
        self.errors: list[BaseException] = []
        self._hub = getcurrent()
        self._ready: list[greenlet] = []
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._threads: dict[greenlet, None] = {}
        self._count = 0
        self._ending = False
        self.napping = 0
        """Threads that sleep."""

    # Time ------------------------------------------------------------------------------------

    def wall_ns(self) -> int:
        """Return what the wall clock shows, in nanoseconds; each look takes a microsecond."""
        self.now += 1e-6
        return EPOCH_NS + round(self.now * 1e9) + self.jump_ns

    def seconds(self) -> float:
        """Return the seconds that passed."""
        return self.now

    def nanoseconds(self) -> int:
        """Return the nanoseconds that passed."""
        return round(self.now * 1e9)

    def call_later(self, delay: float, job: Job) -> "Alarm":
        """Do something after a while, between the turns of threads."""
        alarm = Alarm(job)
        self._count += 1
        heapq.heappush(self._later, (self.now + delay, self._count, alarm.ring))
        return alarm

    # Threads ---------------------------------------------------------------------------------

    def spawn(self, work: Callable[[], None]) -> greenlet:
        """Start a thread."""
        thread = greenlet(lambda: self._run_thread(work), self._hub)
        self._threads[thread] = None
        self._ready.append(thread)
        return thread

    def _run_thread(self, work: Callable[[], None]) -> None:
        try:
            work()
        except GreenletExit:
            pass
        except Exception as error:  # noqa: BLE001 - the run judges it
            self.errors.append(error)

    def pause(self, weight: int = 1) -> None:
        """Let another thread go on here, perhaps; called by threads and by the hub.

        Args:
            weight: how much likelier than elsewhere.
        """
        pace = self.pace
        if self.random.random() >= weight * pace.pause or getcurrent() is self._hub:
            return
        if self._ending:
            raise GreenletExit
        if self.random.random() < pace.far:
            self.sleep(self.random.random() * pace.longest)
        else:
            self._ready.append(getcurrent())
            self._hub.switch()

    def sleep(self, seconds: float) -> None:
        """Wait until time has passed (a thread only)."""
        thread = getcurrent()
        self.napping += 1
        self.call_later(seconds, lambda: self._end_nap(thread))
        self._hub.switch()

    def _end_nap(self, thread: greenlet) -> None:
        self.napping -= 1
        self.wake(thread)

    def wait(self) -> None:
        """Wait until someone calls `wake` (a thread only)."""
        if self._ending:
            raise GreenletExit
        self._hub.switch()

    def wake(self, thread: greenlet) -> None:
        """Let a thread that waits go on."""
        self._ready.append(thread)

    def step(self) -> bool:
        """Let one thread take its turn, or time pass; return whether anything was left to do."""
        ready = self._ready
        if ready:
            number = self.random.randrange(len(ready)) if len(ready) > 1 else 0
            ready[number], ready[-1] = ready[-1], ready[number]
            ready.pop().switch()
            return True
        if not self._later:
            return False
        due, _, ring = heapq.heappop(self._later)
        self.now = max(self.now, due)
        ring()
        return True

    def run(self, *, steps: int = _MOST_STEPS, until: float | None = None) -> None:
        """Let threads go on until nothing is left, for some steps, or up to some time.

        Raises:
            StuckError: it never ended.
        """
        bounded = steps < _MOST_STEPS
        for _ in range(steps):
            if until is not None and not self._ready and self._past(until):
                self.now = max(self.now, until)
                return
            if not self.step():
                return
        if not bounded:
            raise StuckError(f"no end after {steps} steps, at {self.now:.3f} s")

    def rest(self, seconds: float) -> None:
        """Let threads go on until none has anything to do, and all timers of some time are over.

        Raises:
            StuckError: it never ended.
        """
        until = self.now + seconds
        latest = until + _LONGEST_REST  # what is tried again and again never rests for good
        for _ in range(_MOST_STEPS):
            if self.napping and self.now < latest:
                until = max(until, self.now + seconds)
            elif not self._ready and self._past(until):
                self.now = max(self.now, until)
                return
            if not self.step():
                return
        raise StuckError(f"no rest at {self.now:.3f} s")

    def _past(self, until: float) -> bool:
        return not self._later or self._later[0][0] > until

    def end(self) -> None:
        """End all threads where they are, in the order in which they began."""
        threads, self._threads = self._threads, {}
        self._ready.clear()
        self._later.clear()
        self.napping = 0
        self._ending = True
        for thread in threads:
            if not thread.dead:
                thread.throw(GreenletExit)
        self._ending = False
        self._ready.clear()
        self._later.clear()

    def primitives(self) -> Primitives:
        """Return locks and queues of this world."""
        return Primitives(lambda: SimLock(self), lambda: SimQueue(self))


class Alarm:
    """A call that has not happened yet."""

    def __init__(self, job: Job) -> None:
        self._job: Job | None = job

    def cancel(self) -> None:
        """Do not make it."""
        self._job = None

    def ring(self) -> None:
        """Make it."""
        job, self._job = self._job, None
        if job is not None:
            job()


class SimLock:
    """A lock; a thread may be interrupted before it takes it and after it has let it go."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._held = False
        self._waiting: deque[greenlet] = deque()

    def __enter__(self) -> bool:
        self._world.pause(_WEIGHT)
        while self._held:
            self._waiting.append(getcurrent())
            self._world.wait()
        self._held = True
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self._held = False
        if self._waiting:
            self._world.wake(self._waiting.popleft())
        if kind is None:
            self._world.pause(_WEIGHT)


class SimQueue:
    """A queue; a thread may be interrupted before it takes an item and after it has put one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._items: deque[Any] = deque()
        self._waiting: deque[greenlet] = deque()

    def put(self, item: Any) -> None:
        """Add an item."""
        self._items.append(item)
        if self._waiting:
            self._world.wake(self._waiting.popleft())

    def get(self) -> Any:
        """Remove and return the oldest item."""
        self._world.pause(_WEIGHT)
        while not self._items:
            self._waiting.append(getcurrent())
            self._world.wait()
        item = self._items.popleft()
        self._world.pause(_WEIGHT)
        return item


class Pools:
    """The worker threads of a server.

    Args:
        world: what its threads live in.
        post: runs a job on the thread of the event loop.
    """

    def __init__(self, world: World, post: Callable[[Job], object]) -> None:
        self._world = world
        self._post = post
        self._queues = {name: SimQueue(world) for name in POOLS}
        for name, size in POOLS.items():
            for _ in range(size):
                world.spawn(lambda queue=self._queues[name]: _work(queue))  # type: ignore[misc]

    def run(self, pool: str, work: Callable[[], T]) -> Completion[T]:
        """Run work on a thread of a pool."""
        outcome: Completion[T] = Completion()
        self._queues[pool].put(lambda: self._perform(work, outcome))
        return outcome

    def _perform(self, work: Callable[[], T], outcome: Completion[T]) -> None:
        self._world.pause()
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - whoever waits for the outcome gets it
            self._world.pause()
            self._post(lambda problem=error: outcome.fail(problem))  # type: ignore[misc]
        else:
            self._world.pause()
            self._post(lambda: outcome.settle(value))


class Loop:
    """The server's event loop and its worker threads: the `Scheduler` of the log.

    Args:
        world: what its threads live in.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._soon: deque[Job] = deque()
        self._asleep: greenlet | None = None
        self._thread = world.spawn(self._serve)
        self._pools = Pools(world, self.post)

    def is_current(self) -> bool:
        """Whether the loop's own thread asks."""
        return getcurrent() is self._thread

    def _serve(self) -> None:
        while True:
            while self._soon:
                job = self._soon.popleft()
                try:
                    job()
                except Exception as error:  # noqa: BLE001 - as asyncio does; the run judges it
                    self._world.errors.append(error)
            self._asleep = getcurrent()
            self._world.wait()

    def post(self, job: Job) -> None:
        """Run a job on the loop's thread (any thread)."""
        self._soon.append(job)
        if self._asleep is not None:
            asleep, self._asleep = self._asleep, None
            self._world.wake(asleep)

    def call_soon(self, job: Job) -> object:
        """Run a job on the loop's thread, after what is due."""
        self.post(job)
        return job

    def call_later(self, delay: float, job: Job) -> Alarm:
        """Run a job on the loop's thread after a while."""
        return self._world.call_later(delay, lambda: self.post(job))

    def run(self, pool: str, work: Callable[[], T]) -> Completion[T]:
        """Run work on a thread of a pool."""
        return self._pools.run(pool, work)


def _work(queue: SimQueue) -> None:
    while True:
        queue.get()()
