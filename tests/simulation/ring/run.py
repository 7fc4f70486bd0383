"""Carrying out a plan for a ring."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from tests.simulation.disk import Folder, Move, SimDisk
from tests.simulation.faults import Fault
from tests.simulation.model import ViolationError
from tests.simulation.mount import Mount
from tests.simulation.ring.files import RingFiles
from tests.simulation.ring.model import RingModel
from tests.simulation.ring.plan import RingPlan
from tests.simulation.ring.threads import simulated
from tests.simulation.world import StuckError, World

from lance_sdk.errors import LanceError
from lance_sdk.journal import (
    Durability,
    Journal,
    JournalConfig,
    JournalFailed,
    JournalFull,
    NotYetDurable,
    SlotLocked,
)

SLOT: Final = Path("/data/slot")
_LONG: Final = 5.0
_MOST_TRIES: Final = 100
_SEGMENTS: Final = 8


@dataclass(slots=True)
class RingResult:
    """What came of a run; see `tests.simulation.store.story.Result`."""

    violation: str | None = None
    appended: int = 0
    opened: int = 0
    crashes: int = 0
    fired: Counter[str] = field(default_factory=Counter)


class RingRun:
    """Carries out a plan.

    Args:
        plan: what happens.
    """

    def __init__(self, plan: RingPlan) -> None:
        self.plan = plan
        self.slot = SLOT
        self.result = RingResult()
        self.world = World(Random(plan.seed), plan.settings.pace)
        self.disk = SimDisk()
        self.disk.root.change(Move(None, SLOT.parent.name, Folder()))
        self.disk.root.sync()
        self.model = RingModel()
        self.faults: list[Fault] = []
        self.locked: dict[Path, Mount] = {}
        self.boot = 1
        self.number = 0
        self.mount: Mount | None = None
        self.journal: Journal | None = None
        self.stopped: str | None = None
        self.busy = False
        """Whether the producer has not returned yet."""
        self.troubled = False
        """Whether something went wrong in this life: errors may be told later."""

    def carry_out(self) -> RingResult:
        """Do all of it; what was broken stands in the result."""
        try:
            with simulated(self.world):
                for operation in self.plan.operations:
                    self.world.random = Random(operation.seed)
                    getattr(self, f"do_{operation.name}")(**operation.arguments)
                    self._look_around()
                self.world.random = Random(self.plan.seed)
                self._finale()
        except (ViolationError, StuckError, AssertionError) as error:
            self.result.violation = str(error) or repr(error)
        finally:
            self._end_life()
        for fault in self.faults:
            self._count(fault)
        return self.result

    def _count(self, fault: Fault) -> None:
        if fault.fired:
            self.result.fired[f"{fault.error} {fault.method}"] += 1

    # Threads and lives -----------------------------------------------------------------------

    def _look_around(self) -> None:
        """Note what is promised by now, errors that nobody caught, and the end of a life."""
        self.troubled |= self._trouble()
        self.model.names_unsure |= any(SLOT in fault.paths for fault in self.faults)
        if self.journal is not None:
            self.model.promised = max(self.model.promised, self.journal.durable_fsn)
        if self.world.errors:
            error = self.world.errors[0]
            if isinstance(error, ViolationError):
                raise error
            raise ViolationError(f"a thread raised {type(error).__name__}: {error}")
        if self.stopped is not None:
            kind, self.stopped = self.stopped, None
            self._crash(kind)

    def _thread(self, work: Callable[[], None]) -> None:
        """Let a thread of the application do something, for a while or to its end."""
        self.world.spawn(work)
        if self.world.random.random() < 0.5:
            self.world.run(until=self.world.now + 1.0)
        else:
            self.world.run(steps=self.world.random.randrange(40), until=self.world.now + 0.01)

    def _wait(self, done: Callable[[], bool] | None = None) -> None:
        """Let time pass until something is done, or was given time enough."""
        for _ in range(_MOST_TRIES):
            self.world.run(until=self.world.now + _LONG)
            if done is None or done() or self.stopped or self.world.errors:
                return

    def _trouble(self) -> bool:
        return self.disk.room is not None or any(fault.struck for fault in self.faults)

    def _end_life(self) -> None:
        if self.mount is not None:
            self.mount.dead = True
        self.mount = self.journal = None
        self.busy = self.troubled = False
        self.world.end()

    def _crash(self, kind: str) -> None:
        if self.journal is not None:
            self.model.promised = max(self.model.promised, self.journal.durable_fsn)
        self._end_life()
        self.result.crashes += 1
        if kind == "power" or self.disk.has_lost():
            self.model.lose_memory()
        if kind == "power":
            self.boot += 1
            self.disk.power(self.world.random)
        else:
            self.disk.kill(self.world.random)

    def _stop(self, kind: str) -> None:
        self.stopped = kind
        if self.mount is not None:
            self.mount.dead = True

    def _new_mount(self) -> Mount:
        mount = Mount(self.disk, self.world, "dsync", self._stop)
        mount.faults = self.faults
        return mount

    def _config(self) -> JournalConfig:
        """Return the settings of the journal."""
        settings = self.plan.settings
        return JournalConfig(
            segment_bytes=settings.segment_bytes,
            max_total_bytes=_SEGMENTS * settings.segment_bytes,
            durability=Durability(settings.durability),
            background=settings.background,
            append_timeout=30.0,
        )

    def _files(self, mount: Mount) -> RingFiles:
        """Return what a process sees of the file system."""
        holes = self.plan.settings.holes
        return RingFiles(self.disk, mount, self.locked, self.boot, holes=holes)

    def _open(self, mount: Mount) -> Journal:
        files = self._files(mount)
        clock = self.world.seconds
        wall = lambda: self.world.wall_ns() / 1e9  # noqa: E731
        return Journal.open(SLOT, self._config(), files=files, clock=clock, wall_clock=wall)

    def _opened(self, journal: Journal, found: dict[int, bytes]) -> None:
        """Do what a program does right after it has opened its journal."""
        self.model.judge_opened(journal.acked_fsn, journal.next_fsn, found)

    # What the application does -----------------------------------------------------------------

    def do_open(self) -> None:
        """Open the slot, as the next process does."""
        if self.journal is not None:
            return
        mount = self.mount = self._new_mount()
        opened: list[Journal] = []
        errors: list[Exception] = []

        def work() -> None:
            try:
                journal = self._open(mount)
                found = dict(journal.read_from(journal.acked_fsn + 1))
                self._opened(journal, found)
                opened.append(journal)
            except (OSError, LanceError) as error:
                errors.append(error)

        self.world.spawn(work)
        self._wait(lambda: bool(opened or errors))
        if self.stopped:
            return
        if opened:
            self.journal = opened[0]
            self.result.opened += 1
        elif self.world.errors:
            return
        elif errors and self._trouble():
            self._crash("kill")
        else:
            raise ViolationError(f"the slot was not opened: {errors}")

    def do_append(self, count: int, size: int) -> None:
        """Append frames, as the producer."""
        if self.journal is None:
            return
        self._finish_append()
        if not self.busy:
            self.busy = True
            journal = self.journal
            self._thread(lambda: self._append(journal, count, size))

    def _finish_append(self) -> None:
        if self.busy:
            self._wait(lambda: not self.busy)

    def _append(self, journal: Journal, count: int, size: int) -> None:
        for _ in range(count):
            self.number += 1
            payload = b"%06d" % self.number + bytes([65 + self.number % 26]) * size
            self.model.tried[payload] = None
            try:
                fsn = journal.append(payload)
            except NotYetDurable as late:
                self.model.appended(late.fsn, payload)
                break
            except (JournalFull, JournalFailed, LanceError) as error:
                self._refused(error)
                break
            self.result.appended += 1
            self.model.appended(fsn, payload)
            if self.plan.settings.durability == "append":
                self.model.promised = max(self.model.promised, fsn)
        self.busy = False

    def _refused(self, error: LanceError) -> None:
        if isinstance(error, JournalFailed) and not (self._trouble() or self.troubled):
            raise ViolationError(f"a healthy disk: {error}")

    def do_flush(self) -> None:
        """Flush, or see that it is refused."""
        self._promise(lambda journal: journal.flush(), "flush")

    def do_sync(self) -> None:
        """Sync, whatever the durability."""
        self._promise(lambda journal: journal.sync(), "sync")

    def _promise(self, call: Callable[[Journal], object], name: str) -> None:
        journal = self.journal
        if journal is None:
            return

        def work() -> None:
            last = journal.next_fsn - 1
            try:
                call(journal)
            except NotYetDurable:
                return
            except LanceError as error:
                self._refused(error)
                return
            if name == "sync" or self.plan.settings.durability in {"flush", "append"}:
                self.model.promised = max(self.model.promised, last)

        self._thread(work)

    def do_maintain(self) -> None:
        """Do what the ring's threads would do."""
        journal = self.journal
        if journal is not None and not self.plan.settings.background:
            self._thread(lambda: self._quietly(journal.maintain))
        else:
            self._wait()

    def _quietly(self, work: Callable[[], object]) -> None:
        with suppress(OSError, LanceError):
            work()

    def do_drain(self, share: float) -> None:
        """Send some of what is there, and have it acknowledged."""
        journal = self.journal
        if journal is None:
            return

        def work() -> None:
            found = self._read(journal)
            numbers = sorted(found)
            if numbers and not journal._state.refusing:
                upto = numbers[min(len(numbers) - 1, int(share * len(numbers)))]
                self.model.acked = max(self.model.acked, upto)
                self._quietly(lambda: journal.ack(upto))

        self._thread(work)

    def do_look(self) -> None:
        """See that every frame is delivered under its number."""
        journal = self.journal
        if journal is not None:
            self._thread(lambda: self._look(journal))

    def _look(self, journal: Journal) -> None:
        self._read(journal)

    def _read(self, journal: Journal) -> dict[int, bytes]:
        wanted = self.model.at_this_time()
        start = journal.acked_fsn + 1
        try:
            found = dict(journal.read_from(start))
        except (OSError, LanceError):
            overtaken = start <= journal.acked_fsn  # by another reader, and the files went
            if overtaken or self._trouble() or self.troubled or journal._state.ended:
                return {}
            raise
        acked = journal.acked_fsn  # it may have gone on meanwhile, and files with it
        wanted.judge_running(max(start, acked + 1), found)
        return found

    def do_second(self) -> None:
        """Open the slot in another process, which must be refused."""
        if self.journal is None or self._trouble():
            return
        mount = self._new_mount()
        mount.faults = []
        refused: list[bool] = []

        def work() -> None:
            try:
                self._open(mount)
            except SlotLocked:
                refused.append(True)

        self.world.spawn(work)
        self._wait()
        mount.dead = True
        if self.stopped is None and self.journal is not None and not refused:
            raise ViolationError("two processes have one slot")

    def do_close(self) -> None:
        """Close it in order."""
        journal = self.journal
        if journal is None:
            return
        self._finish_append()
        closed: list[bool] = []

        def work() -> None:
            last = journal.next_fsn - 1
            try:
                journal.close()
                self.model.promised = max(self.model.promised, last)
            except (OSError, LanceError) as error:
                if not self._trouble() and not self.troubled:
                    raise ViolationError(f"a close failed: {error}") from None
            closed.append(True)

        self.world.spawn(work)
        self._wait(lambda: bool(closed))
        self._look_around()
        if self.journal is journal:
            if not closed:
                raise ViolationError("a close never ended")
            self._end_life()
            if self.disk.has_lost():
                self.model.lose_memory()

    # Trouble -----------------------------------------------------------------------------------

    def do_kill(self) -> None:
        """End the process."""
        self.stopped = "kill"

    def do_power(self) -> None:
        """End the machine."""
        self.stopped = "power"

    def do_fault(self, **arguments: object) -> None:
        """Plan a fault."""
        self.faults.append(Fault(**arguments))  # type: ignore[arg-type]

    def do_fill(self, room: int) -> None:
        """Let the disk fill up."""
        self.disk.room = room

    def do_heal(self) -> None:
        """End all faults."""
        self.troubled |= self._trouble()
        for fault in self.faults:
            self._count(fault)
        self.faults.clear()
        self.disk.room = None

    def do_wait(self, seconds: float) -> None:
        """Let time pass."""
        self.world.run(until=self.world.now + seconds)

    def _finale(self) -> None:
        """See that the slot takes and keeps frames after all faults."""
        self.do_heal()
        self._wait()
        self._look_around()
        self.do_close()
        self._look_around()
        self.do_open()
        self._look_around()
        self.do_drain(1.0)
        self._wait()
        before = self.result.appended
        self.do_append(3, 60)
        self._finish_append()
        if self.result.appended != before + 3:
            raise ViolationError("the ring takes nothing after all faults")
        self.do_sync()
        self._wait()
        self.do_look()
        self._wait()
        self._look_around()
        if self.model.promised < max(self.model.frames):
            raise ViolationError("nothing is durable after all faults")
        self._crash("power")
        self.do_open()
        self._look_around()


def carry_out(plan: RingPlan) -> RingResult:
    """Carry out a plan."""
    return RingRun(plan).carry_out()
