"""Answers in the order of their requests, whenever each becomes ready (AMB-28)."""

import logging
from collections import deque
from typing import Final

from lance_server.answers import INTERNAL, Answer, as_refusal, error_frame
from lance_server.outcome import Outcome
from lance_server.refusals import Refusal
from lance_server.stats import Counters
from lance_spec.dialect import Dialect
from lance_spec.frames import encode_ack

_log = logging.getLogger(__name__)
_OUT_LIMIT: Final = 1024 * 1024


class _Batches:
    """Ingest frames in a row whose acknowledgement one outcome decides."""

    __slots__ = ("cost", "ids", "outcome")

    def __init__(self, outcome: Outcome[None]) -> None:
        self.outcome = outcome
        self.ids: list[int] = []
        self.cost = 0


class _Command:
    """A command whose answer an outcome decides."""

    __slots__ = ("cost", "outcome")

    def __init__(self, outcome: Outcome[Answer], cost: int) -> None:
        self.outcome = outcome
        self.cost = cost


class AnswerQueue:
    """What one connection is owed, and what is ready to be written.

    Attributes:
        owed_bytes: memory that unanswered requests hold.
        command_running: whether one of the pending answers is a command's.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._waiting: deque[Answer | _Batches | _Command] = deque()
        self._last: _Batches | None = None
        self._ready: list[Answer] = []
        self._ready_bytes = 0
        self.owed_bytes = 0
        self.command_running = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __repr__(self) -> str:
        return f"<AnswerQueue {len(self._waiting)} waiting, {self._ready_bytes} bytes ready>"

    @property
    def has_room(self) -> bool:
        """Whether so little is ready that another command may be begun."""
        return self._ready_bytes < _OUT_LIMIT

    def add(self, answer: Answer) -> None:
        """Add an answer behind those before it."""
        self._waiting.append(answer)
        self._last = None

    def add_error(self, dialect: Dialect, refusal: Refusal, batch_id: int | None) -> None:
        """Add an ErrorResponse behind the answers before it."""
        self._counters.errors += 1
        self.add(error_frame(dialect, refusal, batch_id))

    def add_batch(self, outcome: Outcome[None], batch_id: int, cost: int) -> bool:
        """Add the acknowledgement of a batch, which an outcome decides.

        Args:
            outcome: the batch's.
            batch_id: the batch to acknowledge.
            cost: memory that the request holds until then, in bytes.

        Returns:
            Whether this outcome is new here, so that somebody must wait for it.
        """
        last = self._last
        new = last is None or last.outcome is not outcome
        if last is None or new:
            last = self._last = _Batches(outcome)
            self._waiting.append(last)
        last.ids.append(batch_id)
        last.cost += cost
        self.owed_bytes += cost
        return new

    def add_command(self, outcome: Outcome[Answer], cost: int) -> None:
        """Add the answer of a command, which an outcome decides."""
        self._waiting.append(_Command(outcome, cost))
        self._last = None
        self.owed_bytes += cost
        self.command_running = True

    def send(self, answer: Answer) -> None:
        """Make a frame ready at once, ahead of everything that waits."""
        self._ready.append(answer)
        self._ready_bytes += len(answer)

    def collect(self, dialect: Dialect) -> bool:
        """Make the answers ready up to the first that is undecided; return if there was any."""
        waiting = self._waiting
        before = len(waiting)
        while waiting:
            head = waiting[0]
            if isinstance(head, _Batches):
                if not head.outcome.done:
                    break
                self._settle_batches(head, dialect)
            elif isinstance(head, _Command):
                if not head.outcome.done:
                    break
                self._settle_command(head, dialect)
            else:
                self.send(head)
            waiting.popleft()
        if not waiting:
            self._last = None
        return len(waiting) != before

    def _settle_batches(self, batches: _Batches, dialect: Dialect) -> None:
        self.owed_bytes -= batches.cost
        error = batches.outcome.error
        if error is None:
            self._counters.batches_acked += len(batches.ids)
            self.send(b"".join([encode_ack(dialect, batch_id) for batch_id in batches.ids]))
            return
        refusal = _explained(error)
        self._counters.errors += len(batches.ids)
        for batch_id in batches.ids:
            self.send(error_frame(dialect, refusal, batch_id))

    def _settle_command(self, command: _Command, dialect: Dialect) -> None:
        self.owed_bytes -= command.cost
        self.command_running = False
        if command.outcome.error is None:
            self.send(command.outcome.result())
        else:
            self._counters.errors += 1
            self.send(error_frame(dialect, _explained(command.outcome.error)))

    def let_pass(self, frame: bytes) -> None:
        """Make every waiting frame that equals ``frame`` ready at once."""
        for _ in range(self._waiting.count(frame)):
            self._waiting.remove(frame)
            self.send(frame)

    def take_ready(self) -> list[Answer]:
        """Return what is to be written now, and forget it."""
        ready, self._ready = self._ready, []
        self._ready_bytes = 0
        return ready

    def drop_waiting(self) -> None:
        """Forget every answer that is not ready."""
        self._waiting.clear()
        self._last = None
        self.owed_bytes = 0


def _explained(error: Exception) -> Refusal:
    try:
        return as_refusal(error)
    except Exception:  # noqa: BLE001 - the log gets the traceback, the client a short word
        _log.exception("a request failed by a mistake of this server")
        return INTERNAL
