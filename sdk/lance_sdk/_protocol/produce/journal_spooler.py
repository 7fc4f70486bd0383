"""Batches on their way into the journal (SF-32, SF-33).

Storing may take time, so it is an offloaded task: the driver runs it outside its lock. One
such task is under way at a time, which keeps the order. What became of the stored batches is
asked for from time to time, ever more rarely while nothing happens.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.events import Event, OffloadedTask, Spilled
from lance_sdk._protocol.produce.delivery import Batch
from lance_sdk._protocol.produce.delivery_failures import kept_in_journal
from lance_sdk._protocol.produce.journal_seam import Spill, SpilledBatch

_AT_ONCE: Final = 16
"""Batches stored in one task: enough to make the turn cheap, few enough to keep it short."""
_FIRST_LOOK: Final = 0.01
_LAST_LOOK: Final = 0.5
"""Seconds between two looks at what the journal has delivered."""
_RETRY: Final = 0.1
"""Seconds until a journal that was full is tried again."""


class JournalSpooler:
    """Hands batches to a journal in order, and keeps track of them there.

    Args:
        spill: the journal; None where there is none.
        always: everything goes through it, not only what does not fit in memory.
        events: where offloaded tasks are announced.
        stored: called with each batch that the journal has taken.
        settled: called with each batch that it has delivered, or given up with an error, and
            the time.

    Attributes:
        active: whether batches go to the journal now.
        waiting: batches that are to be stored, oldest first.
        journaled: by ticket, what it has stored and not yet delivered.
    """

    def __init__(
        self,
        spill: Spill | None,
        *,
        always: bool,
        events: list[Event],
        stored: Callable[[Batch], None],
        settled: Callable[[Batch, LanceError | None, float], None],
    ) -> None:
        self._spill = spill
        self._always = always
        self._events = events
        self._stored = stored
        self._settled = settled
        self._under_way: list[Batch] = []
        self._store_at = -math.inf
        self._look_at = math.inf
        self._pause = _FIRST_LOOK
        self.active = always
        self.waiting: deque[Batch] = deque()
        self.journaled: dict[int, Batch] = {}

    def __repr__(self) -> str:
        return (
            f"<JournalSpooler active={self.active} waiting={len(self.waiting)} "
            f"journaled={len(self.journaled)}>"
        )

    @property
    def possible(self) -> bool:
        """Whether there is a journal."""
        return self._spill is not None

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be stored."""
        return not (self.waiting or self._under_way)

    @property
    def batches(self) -> list[Batch]:
        """Everything that is not settled, oldest first."""
        return [*self.journaled.values(), *self._under_way, *self.waiting]

    def storing(self, batch: Batch) -> bool:
        """Whether a batch is being stored at this moment."""
        return batch in self._under_way

    def clear(self) -> list[Batch]:
        """Forget everything, and return it."""
        batches = self.batches
        self.journaled.clear()
        self._under_way.clear()
        self.waiting.clear()
        return batches

    def opened(self) -> None:
        """Take note that the journal is open; what it holds from before goes first (SF-33)."""
        self.active = self._always or (self._spill is not None and not self._spill.drained)
        self._look_at = -math.inf if self.active else math.inf

    def begin(self, batches: Iterable[Batch]) -> None:
        """Go through the journal from now on; these batches first."""
        self.active = True
        self.waiting.extend(batches)
        self._look_at = -math.inf

    def step(self, now: float) -> None:
        """Store what waits; look what was delivered; end when everything was."""
        if self._spill is None or not self.active or self._under_way:
            return  # what is being stored has no ticket yet by which its outcome could be known
        if now >= self._look_at:
            self.look(now)
        if self.waiting and now >= self._store_at:
            self._offload_spill(self._spill)

    def _offload_spill(self, spill: Spill) -> None:
        count = min(_AT_ONCE, len(self.waiting))
        self._under_way = [self.waiting.popleft() for _ in range(count)]
        frames = [_frame(batch) for batch in self._under_way]
        self._events.append(OffloadedTask(lambda: _store(spill, frames), self._returned))

    def _returned(
        self, result: tuple[list[int], LanceError | None], error: LanceError | None, now: float
    ) -> None:
        tickets, error = result if error is None else ([], error)
        under_way, self._under_way = self._under_way, []
        for batch, ticket in zip(under_way, tickets, strict=False):
            batch.ticket = ticket
            self.journaled[ticket] = batch
            self._events.append(Spilled(batch))
            self._stored(batch)
        rest = under_way[len(tickets) :]
        if error is not None and not error.retryable and rest:
            self._settled(rest.pop(0), error, now)
        elif error is not None:
            self._store_at = now + _RETRY
        self.waiting.extendleft(reversed(rest))
        self._pause, self._look_at = _FIRST_LOOK, now + _FIRST_LOOK

    def look(self, now: float) -> None:
        """See what was delivered; end when everything was."""
        if (spill := self._spill) is None:
            return
        outcomes = spill.take_settled()
        for outcome in outcomes:
            batch = self.journaled.pop(outcome.ticket, None)
            if batch is None:
                continue  # of an earlier process
            batch.batch_id, batch.topic_id = outcome.batch_id, outcome.topic_id
            error = kept_in_journal(batch, outcome.error) if outcome.kept else outcome.error
            self._settled(batch, error, now)
        self._pause = _FIRST_LOOK if outcomes else min(2 * self._pause, _LAST_LOOK)
        self._look_at = now + self._pause
        if not self._always and self.idle and not self.journaled and spill.drained:
            self.active = False

    def next_deadline(self) -> float:
        """Return when `step` may have something to do."""
        if not self.active or self._spill is None or self._under_way:
            return math.inf
        return min(self._store_at if self.waiting else math.inf, self._look_at)


def _frame(batch: Batch) -> SpilledBatch:
    return SpilledBatch(batch.count, batch.payload(), batch.batch_id, batch.timestamp_ns)


def _store(spill: Spill, frames: list[SpilledBatch]) -> tuple[list[int], LanceError | None]:
    """Store what can be stored; runs outside the lock."""
    tickets: list[int] = []
    for frame in frames:
        try:
            tickets.append(spill.append(frame))
        except LanceError as error:
            return tickets, error
    return tickets, None
