"""The journal's own threads: one reserves segments, one syncs and trims.

They are two, because a slow sync must not keep a producer from its next segment. Neither knows
of the network.
"""

import threading
from collections.abc import Callable

from lance_sdk._api.interruptible import Latch, join


class Worker:
    """A thread that runs a piece of work when it is woken, and again after a delay it asks for."""

    def __init__(
        self,
        name: str,
        work: Callable[[], float | None],
        broken: Callable[[BaseException], None],
    ) -> None:
        self._work = work
        self._broken = broken
        self._woken = Latch()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __repr__(self) -> str:
        return f"<Worker {self._thread.name}, alive: {self._thread.is_alive()}>"

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Ask for a run."""
        self._woken.set()

    def stop(self, timeout: float) -> bool:
        """End the thread; return whether it ended in time."""
        self._ended = True
        self._woken.set()
        return join(self._thread, timeout)

    def _run(self) -> None:
        delay: float | None = 0.0
        while True:
            self._woken.wait(threading.TIMEOUT_MAX if delay is None else delay)
            self._woken = Latch()  # before the look: who wakes it now is not missed
            if self._ended:
                return
            try:
                delay = self._work()
            except Exception as error:  # noqa: BLE001 - a dead worker would hang producers
                self._broken(error)
                return
