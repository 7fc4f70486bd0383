"""Answers in the order of their requests, whenever each becomes ready (AMB-28)."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from lance_server.lwp.acknowledgements import UnackedBatches, UnackedSpread
from lance_server.lwp.refusals import Refusal
from lance_server.lwp.responses import Answer, error_frame, explained
from lance_server.runtime.completion import Completion
from lance_server.telemetry.counters import Counters
from lance_spec.dialect import Dialect
from lance_spec.enums import ErrorCode
from lance_spec.frames import encode_acks

_OUT_LIMIT: Final = 256 * 1024
"""Bytes after which answers are handed over before another command is begun."""
_ANSWER_COST: Final = 64
_DENIALS: Final = (ErrorCode.AUTHENTICATION_REQUIRED, ErrorCode.ACCESS_DENIED)


class _PendingRequest:
    """A request whose answer an outcome decides; with the batch it is about, if any."""

    __slots__ = ("batch_id", "cost", "is_commit", "outcome")

    def __init__(self, outcome: Completion[Answer], cost: int, batch_id: int | None = None) -> None:
        self.is_commit = False
        self.outcome = outcome
        self.cost = cost
        self.batch_id = batch_id


class ResponseQueue:
    """What one connection is owed, and what is ready to be written.

    Args:
        counters: what the server counts.
        wake: called when an outcome that was added is settled.

    Attributes:
        waiting: answers that are not ready, or stand after one that is not.
        owed_bytes: memory that unanswered requests hold.
        ready_bytes: answers that are ready and were not taken yet.
        batches: Ingest frames that are not acknowledged yet.
        commits: commits of offsets among those that wait.
        command_running: whether one of the pending answers is a command's.
        last_refusal: the refusal after which nothing more is answered, or None.
    """

    def __init__(self, counters: Counters, wake: Callable[[], None]) -> None:
        self._counters = counters
        self._wake = wake
        self.waiting: deque[Answer | UnackedBatches | UnackedSpread | _PendingRequest] = deque()
        self._last: UnackedBatches | None = None
        self._ready: list[Answer] = []
        self.ready_bytes = 0
        self.owed_bytes = 0
        self.batches = 0
        self.commits = 0
        self.command_running = False
        self.last_refusal: Refusal | None = None

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def __repr__(self) -> str:
        return f"<ResponseQueue {len(self.waiting)} waiting, {self.ready_bytes} bytes ready>"

    @property
    def has_room(self) -> bool:
        """Whether so little is ready that another command may be begun."""
        return self.ready_bytes < _OUT_LIMIT

    def add(self, answer: Answer) -> None:
        """Add an answer after those before it."""
        self.waiting.append(answer)
        self.owed_bytes += _ANSWER_COST + len(answer)
        self._last = None

    def add_error(self, dialect: Dialect, refusal: Refusal, batch_id: int | None) -> None:
        """Add an ErrorResponse after the answers before it."""
        self._counters.errors += 1
        if refusal.code in _DENIALS:
            self._counters.denied += 1
        self.add(error_frame(dialect, refusal, batch_id))

    def add_batches(
        self, outcome: Completion[None], batch_ids: Sequence[int], cost: int, now: float
    ) -> None:
        """Add the acknowledgements of batches, which an outcome decides.

        Args:
            outcome: the batches'.
            batch_ids: the batches to acknowledge, in order.
            cost: memory that the requests hold until then, in bytes.
            now: the current time in seconds.
        """
        last = self._last
        if last is None or last.outcome is not outcome:
            last = self._last = UnackedBatches(outcome, now)
            self.waiting.append(last)
            outcome.wake_later(self._wake)
        last.ids.extend(batch_ids)
        last.cost += cost
        self.owed_bytes += cost
        self.batches += len(batch_ids)

    def add_spread(
        self, outcomes: Sequence[Completion[None]], ids: Sequence[int], cost: int, now: float
    ) -> None:
        """Add the acknowledgements of batches to several topics.

        Args:
            outcomes: each batch's.
            ids: the batches to acknowledge, in order.
            cost: memory that the requests hold until all are acknowledged, in bytes.
            now: the current time in seconds.
        """
        self.waiting.append(UnackedSpread(ids, outcomes, cost, now))
        self._last = None
        outcomes[0].wake_later(self._wake)  # `_settle_spread` waits for the others in turn
        self.owed_bytes += cost
        self.batches += len(ids)

    def add_command(self, outcome: Completion[Answer], cost: int) -> None:
        """Add the answer of a command, which an outcome decides."""
        self._wait_for(_PendingRequest(outcome, cost))
        self.command_running = True

    @property
    def only_commits(self) -> bool:
        """Whether nothing waits but commits of offsets, which another may join."""
        return self.commits == len(self.waiting)

    def add_commit(self, outcome: Completion[Answer], cost: int) -> None:
        """Add the answer of a commit; further commits share its write to the disk."""
        command = _PendingRequest(outcome, cost)
        command.is_commit = True
        self.commits += 1
        self._wait_for(command)

    def add_forwarded(self, outcome: Completion[Answer], cost: int, batch_id: int | None) -> None:
        """Add the answer of another server; what comes after it does not wait for it."""
        self._wait_for(_PendingRequest(outcome, cost, batch_id))

    def _wait_for(self, command: _PendingRequest) -> None:
        self.waiting.append(command)
        self._last = None
        self.owed_bytes += command.cost
        command.outcome.wake_later(self._wake)

    def send(self, answer: Answer) -> None:
        """Make a frame ready at once, ahead of everything that waits."""
        self._ready.append(answer)
        self.ready_bytes += len(answer)

    def collect(self, dialect: Dialect, now: float) -> bool:
        """Make the answers ready up to the first that is undecided; return if there was any."""
        waiting = self.waiting
        if not waiting:
            return False
        before = len(waiting)
        progress = False
        while waiting and self.last_refusal is None:
            head = waiting[0]
            if isinstance(head, UnackedBatches):
                if not head.outcome.done:
                    break
                self.owed_bytes -= head.cost
                self._answer_batches(head.ids, head.outcome.error, dialect, head.began, now)
            elif isinstance(head, UnackedSpread):
                settled = head.settled
                self._settle_spread(head, dialect, now)
                progress |= head.settled > settled
                if head.settled < len(head.ids):
                    break
                self.owed_bytes -= head.cost
            elif isinstance(head, _PendingRequest):
                if not head.outcome.done:
                    break
                self._settle_command(head, dialect)
                self._counters.answered += 1
            else:
                self.owed_bytes -= _ANSWER_COST + len(head)
                self.send(head)
                self._counters.answered += 1
            waiting.popleft()
        if not waiting:
            assert not self.owed_bytes, "a queue without requests owes nothing"
            assert not self.batches, "a queue without requests owes nothing"
            self._last = None
        return progress or len(waiting) != before

    def _settle_spread(self, spread: UnackedSpread, dialect: Dialect, now: float) -> None:
        """Answer batches of several topics up to the first that is undecided."""
        while spread.settled < len(spread.ids) and self.last_refusal is None:
            ids, error = spread.next_decided()
            if not ids:
                spread.outcomes[spread.settled].wake_later(self._wake)
                return
            self._answer_batches(ids, error, dialect, spread.began, now)
            spread.settled += len(ids)

    def _answer_batches(
        self,
        ids: Sequence[int],
        error: Exception | None,
        dialect: Dialect,
        began: float,
        now: float,
    ) -> None:
        """Acknowledge batches, or say why they are not stored.

        Args:
            ids: the batches, in order.
            error: why they are not stored; None: they are durable.
            dialect: of the connection.
            began: when they came, in seconds.
            now: the current time in seconds.
        """
        counters, count = self._counters, len(ids)
        self.batches -= count
        counters.answered += count
        if error is None:
            counters.batches_acked += count
            self.send(encode_acks(dialect, ids))
        else:
            self._refuse_batches(ids, explained(error), dialect)
        took_ns = int((now - began) * 1e9)
        counters.ack_latency.observe(took_ns)
        if counters.on_span is not None:
            counters.span("lance.ingest", took_ns, batches=count)

    def _refuse_batches(self, ids: Sequence[int], refusal: Refusal, dialect: Dialect) -> None:
        self._counters.errors += len(ids)
        for batch_id in ids:
            self.send(error_frame(dialect, refusal, batch_id))
        if refusal.ends_connection:
            self.last_refusal = refusal

    def _settle_command(self, command: _PendingRequest, dialect: Dialect) -> None:
        self.owed_bytes -= command.cost
        self.commits -= command.is_commit
        self.command_running = False
        if command.outcome.error is None:
            self.send(command.outcome.result())
        else:
            self._counters.errors += 1
            refusal = explained(command.outcome.error)
            self.send(error_frame(dialect, refusal, command.batch_id))
            if refusal.ends_connection:
                self.last_refusal = refusal

    def let_pass(self, frame: bytes) -> None:
        """Make every waiting frame that equals ``frame`` ready at once."""
        for _ in range(self.waiting.count(frame)):
            self.waiting.remove(frame)
            self.owed_bytes -= _ANSWER_COST + len(frame)
            self.send(frame)

    def take_ready(self) -> list[Answer]:
        """Return what is to be written now, and forget it."""
        ready, self._ready = self._ready, []
        self.ready_bytes = 0
        return ready

    def drop_waiting(self) -> None:
        """Forget every answer that is not ready."""
        self.waiting.clear()
        self._last = None
        self.owed_bytes = self.batches = self.commits = 0
