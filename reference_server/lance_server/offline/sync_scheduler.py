"""A log without an event loop: everything is done by whoever asks for it."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lance_server.errors import DataDirError
from lance_server.log.clock import Clock
from lance_server.log.log_manager import LogManager, LogOptions
from lance_server.log.recovery.recovery_report import Finding
from lance_server.runtime.completion import Completion, T
from lance_server.runtime.directory_lock import DataDirLock
from lance_server.runtime.scheduling import Job
from lance_server.storage.contract import StorageBackend
from lance_server.storage.pwritev import PwritevStorage
from lance_server.storage.wal_replay import repeat, with_held


class _NoTimer:
    def cancel(self) -> None:
        """Nothing was started."""


class SyncScheduler:
    """Runs worker jobs at once and the loop's jobs when asked; time does not pass."""

    def __init__(self) -> None:
        self._soon: deque[Job] = deque()

    def call_soon(self, job: Job) -> object:
        """Note a job for `settle`."""
        self._soon.append(job)
        return job

    def call_later(self, delay: float, job: Job) -> _NoTimer:
        """Do not run it: no time passes."""
        del delay, job
        return _NoTimer()

    def run(self, pool: str, work: Callable[[], T]) -> Completion[T]:
        """Run ``work`` now."""
        del pool
        outcome: Completion[T] = Completion()
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - whoever waits for the outcome gets it
            outcome.fail(error)
        else:
            outcome.settle(value)
        return outcome

    def run_due(self) -> None:
        """Run everything that is due."""
        while self._soon:
            self._soon.popleft()()

    def settle(self, outcome: Completion[T]) -> T:
        """Run what is due until an outcome is there, and return it."""
        while self._soon and not outcome.done:
            self._soon.popleft()()
        return outcome.result()


@contextmanager
def opened(
    data_dir: Path, options: LogOptions | None = None
) -> Iterator[tuple[LogManager, SyncScheduler]]:
    """Open the log of a data directory, as a server does at its start, and close it cleanly.

    Raises:
        DataDirBusyError: a server is using it.
        DataDirError: it cannot be used.
    """
    with DataDirLock(data_dir), opened_on(PwritevStorage(), data_dir, options) as log:
        yield log


@contextmanager
def opened_on(
    storage: StorageBackend,
    data_dir: Path,
    options: LogOptions | None = None,
    clock: Clock = time.time_ns,
) -> Iterator[tuple[LogManager, SyncScheduler]]:
    """Do what `opened` does on a storage backend; the caller holds the data directory.

    Raises:
        DataDirError: it cannot be used.
    """
    scheduler = SyncScheduler()
    try:
        replayed = repeat(storage, data_dir)
        storage = with_held(storage, data_dir, replayed)
        engine = LogManager.open(data_dir, storage, scheduler, options, clock)
        for each in replayed.damage:
            engine.report.add(Finding("damage", None, *each))
    except OSError as error:
        raise DataDirError(f"cannot use '{data_dir}' as data directory: {error}") from error
    try:
        yield engine, scheduler
        scheduler.settle(engine.close())
    finally:
        engine.release()


def existing(data_dir: Path) -> Path:
    """Return the path of an existing data directory.

    Raises:
        DataDirError: there is none at this place.
    """
    if not (data_dir / "segments").is_dir():
        raise DataDirError(
            f"'{data_dir}' is not a data directory: it has no folder 'segments'; "
            "name the folder that lance-server was given as --data-dir"
        )
    return data_dir
