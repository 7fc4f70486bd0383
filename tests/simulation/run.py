"""Carrying out plans."""

import gc
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tests.simulation.disk import Folder, Move, SimDisk
from tests.simulation.model import ViolationError
from tests.simulation.plan import Operation, Plan
from tests.simulation.world import StuckError, World

from lance_server.runtime.sync import replaced

if TYPE_CHECKING:
    from tests.simulation.faults import Fault


class Outcome(Protocol):
    """What came of a run."""

    violation: str | None
    operations: int
    fired: Counter[str]


ResultT = TypeVar("ResultT", bound=Outcome)


class _Listener(logging.Handler):
    """Hears of exceptions that the server catches only to log them: there are to be none."""

    def __init__(self, errors: list[BaseException]) -> None:
        super().__init__(logging.ERROR)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the exception of a record."""
        if record.exc_info and record.exc_info[1] is not None:
            self._errors.append(record.exc_info[1])


@contextmanager
def heard(errors: list[BaseException]) -> Iterator[None]:
    """Collect the exceptions that the server logs; nothing is shown."""
    logger = logging.getLogger("lance_server")
    before = logger.handlers[:], logger.propagate, logger.level
    logger.handlers[:], logger.propagate = [_Listener(errors)], False
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.handlers[:], logger.propagate = before[:2]
        logger.setLevel(before[2])


class PlanRun(ABC, Generic[ResultT]):
    """Carries out a plan: it has a method ``do_NAME`` for each operation.

    Args:
        plan: what happens.
        result: what came of it, nothing yet.
        data_dir: the only folder on the disk.

    Attributes:
        plan: what happens.
        result: what came of it so far.
        world: whose threads run.
        disk: what they write to.
        faults: those of the disk that are planned.
        trouble: promises that were broken in the middle of something.
    """

    def __init__(self, plan: Plan[Any], result: ResultT, data_dir: Path) -> None:
        self.plan = plan
        self.result = result
        self.world = World(Random(plan.seed), plan.settings.pace)
        self.disk = SimDisk()
        self.disk.root.change(Move(None, data_dir.name, Folder()))
        self.disk.root.sync()
        self.faults: list[Fault] = []
        self.trouble: list[ViolationError] = []

    def carry_out(self) -> ResultT:
        """Do all of it; what was broken stands in the result."""
        gc.disable()
        try:
            with heard(self.world.errors), replaced(self.world.primitives()), self._inside():
                self._carry_out()
        except ViolationError as error:
            self.result.violation = str(error)
        except (StuckError, AssertionError, RecursionError) as error:
            self.result.violation = f"{type(error).__name__}: {error}"
        finally:
            self._end_life()
            gc.enable()
        self.count_faults()
        return self.result

    def _inside(self) -> AbstractContextManager[None]:
        """Return what else stands for the real world meanwhile."""
        return nullcontext()

    def count_faults(self) -> None:
        """Count the faults of the disk that happened."""
        for fault in self.faults:
            if fault.fired:
                self.result.fired[f"{fault.error} {fault.method}"] += 1

    def _carry_out(self) -> None:
        for operation in self.plan.operations:
            self.world.random = Random(operation.seed)
            self._do(operation)
            self.result.operations += 1
            self._check()
        self.world.random = Random(self.plan.seed)
        self._finale()

    def _do(self, operation: Operation) -> None:
        getattr(self, f"do_{operation.name}")(**operation.arguments)
        self._note_stop()

    @abstractmethod
    def _note_stop(self) -> None:
        """End the life that a fault has ended."""

    def _check(self) -> None:
        """Judge what can be judged after each operation."""
        if self.trouble:
            raise self.trouble[0]
        if self.world.errors:
            error = self.world.errors[0]
            raise ViolationError(f"a callback raised {type(error).__name__}: {error}")

    @abstractmethod
    def _end_life(self) -> None:
        """End what runs."""

    @abstractmethod
    def _finale(self) -> None:
        """Judge the end."""
