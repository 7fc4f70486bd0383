"""Code that the senders of both APIs share: their parts, and their counters."""

from pathlib import Path

from lance_sdk.errors import ClosedError, NotOpenError, UsageError
from lance_sdk.journal._sending.config import ForwardConfig
from lance_sdk.journal._sending.core import SenderCore
from lance_sdk.journal.config import Durability
from lance_sdk.journal.sender_stats import SenderReport, SenderStats
from lance_sdk.journal.transport import TransportFactory
from lance_sdk.journal.types import Problem
from lance_sdk.logs import DELIVERY


class SenderState:
    """The parts of a sender.

    Args:
        config: the settings.
        factory: makes the transport.
        name: for messages and threads.
    """

    def __init__(self, config: ForwardConfig, factory: TransportFactory, name: str) -> None:
        self._settings = config
        self._factory = factory
        self._name = name
        self._core: SenderCore | None = None
        self._report: SenderReport | None = None

    def __repr__(self) -> str:
        if self._core is None:
            return f"<{self._name} not open>"
        state = "CLOSED" if self._report else "OPEN"
        return f"<{self._name} {state} {self._core.outbox!r} {self._core.journal!r}>"

    def _prepared(self, core: SenderCore) -> None:
        """Look at the open journal before anything is sent; for derived classes."""

    def _check_new(self) -> None:
        if self._core is not None:
            raise UsageError(f"{self!r} was opened already; make another one")

    def _opened(self) -> SenderCore:
        """Return the core of a sender that was opened, also when it is closed."""
        if self._core is None:
            raise NotOpenError(f"{self._name} is not open: use it in a `with` block")
        return self._core

    def _usable(self) -> SenderCore:
        """Return the core of a sender that is open and sends.

        Raises:
            UsageError: it is not open, or was closed.
            LanceError: what halted it.
        """
        core = self._opened()
        if self._report is not None:
            raise ClosedError(f"{self._name} is closed; make a new one")
        core.check()
        return core

    def _drop_limit(self) -> tuple[float, ...]:
        """Return the seconds that it may still deliver once it was dropped; () means long."""
        return () if self._settings.path is None else (self._settings.close_timeout,)

    def _waited(self, core: SenderCore, seconds: float, *, done: bool) -> None:
        """Warn when closing did not wait long enough (SF client section 17)."""
        if done or core.outbox.failure is not None:
            return
        stats = core.journal.stats()
        fate = "are lost" if core.journal.path is None else f"stay in {core.journal.path}"
        DELIVERY.warning(
            "%s: closed although %d frames (%d bytes) were not acknowledged within %.1f s; they %s",
            self._name,
            stats.backlog_frames,
            stats.backlog_bytes,
            seconds,
            fate,
            extra={"lance": {"source": self._name, "frames": stats.backlog_frames}},
        )

    @property
    def path(self) -> Path | None:
        """The slot's folder, or None for frames in memory."""
        return self._settings.path

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was found damaged or missing when the slot was opened."""
        return self._opened().journal.problems

    @property
    def acked_fsn(self) -> int:
        """Every frame up to this number is acknowledged; -1 means none is."""
        return -1 if self._core is None else self._core.journal.acked_fsn

    @property
    def published_fsn(self) -> int:
        """Number of the last frame that is stored; -1 means none is."""
        return -1 if self._core is None else self._core.journal.next_fsn - 1

    @property
    def durability(self) -> Durability:
        """What a stored frame survives."""
        return self._settings.journal.durability

    def stats(self) -> SenderStats:
        """Return every counter; also after a failure and after `close`.

        Raises:
            NotOpenError: it was never opened, so there is nothing to count.
        """
        if self._report is not None:
            return self._report.stats
        return self._opened().stats()
