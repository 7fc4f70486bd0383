"""A watched disk: how long it takes, whether it may be used, whether it is still there."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lance_server.lwp.refusals import Refusal, is_disk_full
from lance_server.runtime.circuit_breaker import CircuitBreaker, CircuitState
from lance_server.storage.contract import StorageBackend, Write
from lance_server.storage.wrapper import WrapperStorage
from lance_server.telemetry.distribution import NANOSECOND_BOUNDS, Distribution
from lance_spec.checksum import Buffer
from lance_spec.enums import ErrorCode


class WatchedStorage(WrapperStorage):
    """A storage backend around another one that keeps an eye on it.

    Args:
        inner: does the work.
        breaker: keeps writes away after repeated failures.
        clock: returns nanoseconds, for how long the disk takes.

    Attributes:
        inner: does the work.
        name: of the backend that does the work.
        breaker: keeps writes away after repeated failures.
        latency: nanoseconds that syncs and writes took, by ``sync`` and ``write``.
        errors: how often the disk refused, by the number of the error.
        bytes_written: bytes of data and sidecars that flushes wrote.
        lost: why the data directory is no longer this server's, or None.
    """

    def __init__(
        self,
        inner: StorageBackend,
        breaker: CircuitBreaker | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        super().__init__(inner)
        self._clock = clock
        self.breaker = breaker or CircuitBreaker()
        self.latency = {name: Distribution(NANOSECOND_BOUNDS) for name in ("sync", "write")}
        self.errors: dict[int, int] = {}
        self.bytes_written = 0
        self._begun: list[int] = []  # one for each flush: a counter would need a lock
        self.lost: str | None = None
        self._check: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        return f"<WatchedStorage {self.name} {self.breaker!r} lost={self.lost}>"

    def use(self, inner: StorageBackend) -> None:
        """Go on with another backend, before anything was opened."""
        self.inner = inner
        self.name = inner.name

    def check_with(self, check: Callable[[], None]) -> None:
        """Call ``check`` before anything counts as durable; it raises `OSError` if it is not."""
        self._check = check

    @property
    def in_flight(self) -> int:
        """Flushes that the disk works on."""
        return len(self._begun)

    def refusal(self) -> Refusal | None:
        """Return why nothing is to be written now, or None when it may be."""
        if self.lost is not None:
            message = f"Nothing was stored: {self.lost}"
            return Refusal(ErrorCode.BACKPRESSURE, message, text=f"I/O error: {self.lost}")
        if not self.breaker.is_open or self.breaker.state is not CircuitState.OPEN:
            return None
        wait = self.breaker.retry_after
        return Refusal(
            ErrorCode.BACKPRESSURE,
            "Nothing was stored: the disk failed repeatedly, or its circuit was opened by hand; "
            f"it is tried again in {wait:.0f} s",
            details={"retry_after_ms": int(wait * 1000)},
            text="Rate limit exceeded: the disk failed repeatedly",
        )

    def _run(self, kind: str, work: Callable[[], None]) -> None:
        begun = self._clock()
        try:
            work()
        except OSError as error:
            self._note([error])
            raise
        self.latency[kind].observe(self._clock() - begun)

    def _note(self, errors: Sequence[OSError]) -> None:
        """Count errors, and one failure for all of them."""
        for error in errors:
            number = error.errno or 0
            self.errors[number] = self.errors.get(number, 0) + 1
        if not all(map(is_disk_full, errors)):
            self.breaker.failed()

    def _confirm(self) -> None:
        """Refuse to call durable what was written into a folder that is gone."""
        try:
            self._check()
        except OSError as error:
            self.lost = error.strerror or str(error)
            raise

    # What the log calls ------------------------------------------------------------------------

    def write(self, fd: int, data: Buffer, offset: int) -> None:
        """Write all of ``data`` at ``offset``, or raise."""
        self._run("write", lambda: self.inner.write(fd, data, offset))

    def sync(self, fd: int) -> None:
        """Make the file's bytes durable, in a folder that is still there."""
        self._run("sync", lambda: self.inner.sync(fd))
        self._confirm()
        self.breaker.succeeded()

    def commit(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files and make them durable, in a folder that is still there."""
        begun = self._clock()
        self._begun.append(begun)
        try:
            errors = self.inner.commit(writes)
        finally:
            self._begun.pop()
        if any(errors):
            self._note([error for error in errors if error is not None])
        else:
            self.latency["sync"].observe(self._clock() - begun)
            self.bytes_written += sum([len(data) for _, data, _ in writes])
            self.breaker.succeeded()
        try:
            self._confirm()
        except OSError as error:
            return [error] * len(writes)
        return errors

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        self.inner.sync_dir(path)
        self._confirm()
