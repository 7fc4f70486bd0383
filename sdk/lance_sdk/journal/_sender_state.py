"""What the senders of both faces share: their parts, and what can be read of them."""

from pathlib import Path
from typing import TYPE_CHECKING

from lance_sdk.errors import ClosedError, NotOpenError, UsageError
from lance_sdk.journal._engine import Engine
from lance_sdk.journal.config import Durability
from lance_sdk.journal.sender_config import ForwardConfig
from lance_sdk.journal.sender_stats import SenderReport, SenderStats
from lance_sdk.journal.transport import CarrierFactory
from lance_sdk.journal.types import Problem

if TYPE_CHECKING:
    from lance_sdk.journal.drainers import DrainerPool


class SenderState:
    """The parts of a sender.

    Args:
        config: the settings.
        factory: makes the carrier.
        name: for messages and threads.
    """

    def __init__(self, config: ForwardConfig, factory: CarrierFactory, name: str) -> None:
        self._settings = config
        self._factory = factory
        self._name = name
        self._engine: Engine | None = None
        self._drainers: DrainerPool | None = None
        self._report: SenderReport | None = None

    def __repr__(self) -> str:
        if self._engine is None:
            return f"<{self._name} not open>"
        state = "CLOSED" if self._report else "OPEN"
        return f"<{self._name} {state} {self._engine.outbox!r} {self._engine.journal!r}>"

    def _prepared(self, engine: Engine) -> None:
        """Look at the open journal before anything is sent; for derived classes."""

    def _check_new(self) -> None:
        if self._engine is not None:
            raise UsageError(f"{self!r} was opened already; make another one")

    def _opened(self) -> Engine:
        """Return the engine of a sender that was opened, also when it is closed."""
        if self._engine is None:
            raise NotOpenError(f"{self._name} is not open: use it in a `with` block")
        return self._engine

    def _usable(self) -> Engine:
        """Return the engine of a sender that is open and sends.

        Raises:
            UsageError: it is not open, or was closed.
            LanceError: what halted it.
        """
        engine = self._opened()
        if self._report is not None:
            raise ClosedError(f"{self._name} is closed")
        engine.check()
        return engine

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
        return -1 if self._engine is None else self._engine.journal.acked_fsn

    @property
    def published_fsn(self) -> int:
        """Number of the last frame that is stored; -1 means none is."""
        return -1 if self._engine is None else self._engine.journal.next_fsn - 1

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
        return self._opened().stats(self._drainers)
