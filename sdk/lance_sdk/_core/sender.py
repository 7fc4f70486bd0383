"""Batches out, acknowledgements in: window, retries, identity, deadlines.

Order: batches leave in the order in which they were sealed, and those that a lost connection
left unacknowledged leave again before anything newer. Each is sent with the same batch id,
timestamp and content every time, so a server with a duplicate window stores it once (AMB-25).
"""

import math
from collections import deque
from collections.abc import Callable, Iterable

from lance_sdk._core.backoff import Backoff, Dice
from lance_sdk._core.batcher import Batcher
from lance_sdk._core.connection import Connection
from lance_sdk._core.delivery import Batch
from lance_sdk._core.events import Event, Notice
from lance_sdk._core.failures import FailureLog
from lance_sdk._core.outcome import Outcome
from lance_sdk._core.window import Window
from lance_sdk._tree import LanceError
from lance_sdk.errors import (
    DeliveryError,
    DeliveryExpired,
    DeliveryFailed,
    NotLeader,
    RateLimited,
    RecordTooLarge,
    RemoteProtocolError,
    ServerError,
)
from lance_spec.bodies import TopicInfo

_COUNTER_BITS = 40
_NONCE_BITS = 24
_BARRIERS = 2
"""Keepalives to pass before an unacknowledged batch is known to be the refused one: the
deployed server may write an answer before the acks of earlier frames of the same read, but
not before those of an earlier read (AMB-10)."""


def draw_nonce(dice: Dice) -> int:
    """Return a producer nonce: 24 random bits, never 0 (AMB-25)."""
    while not (nonce := dice.getrandbits(_NONCE_BITS)):
        pass
    return nonce


class Sender:
    """The application of a producer's session.

    Args:
        batcher: where batches come from.
        topic_id: the topic's number when it is not resolved by name.
        nonce: upper 24 bits of every batch id.
        max_in_flight: batches that may be unacknowledged.
        backoff: reset upon every acknowledgement.
        retry: delays before a refused batch is sent again.
        clock_ns: wall clock in nanoseconds since the epoch, for header timestamps.
        events: where settled batches are announced.

    Attributes:
        failures: what was not delivered.
        window: how many batches may be unacknowledged.
        acked_records: records acknowledged so far.
        acked_batches: batches acknowledged so far.
        retries: batches sent more than once.
        backpressure: Backpressure frames received.
        stray_acks: acknowledgements of batches that were settled already.
    """

    def __init__(
        self,
        batcher: Batcher,
        *,
        topic_id: int,
        nonce: int,
        max_in_flight: int,
        backoff: Backoff,
        retry: Backoff,
        clock_ns: Callable[[], int],
        events: list[Event],
    ) -> None:
        self._batcher = batcher
        self._topic_id = topic_id
        self._nonce = nonce << _COUNTER_BITS
        self._counter = 0
        self._backoff = backoff
        self._retry = retry
        self._clock_ns = clock_ns
        self._events = events
        self._connection: Connection | None = None
        self._in_flight: dict[int, Batch] = {}
        self._again: deque[Batch] = deque()
        self._paused_until = -math.inf
        self._doubt: ServerError | None = None
        self._gate: Outcome | None = None
        self.failures = FailureLog()
        self.window = Window(max_in_flight)
        self.acked_records = 0
        self.acked_batches = 0
        self.retries = 0
        self.backpressure = 0
        self.stray_acks = 0

    def __repr__(self) -> str:
        return (
            f"<Sender in_flight={len(self._in_flight)} again={len(self._again)} "
            f"window={self.window.size} {self._batcher!r}>"
        )

    # What the face calls

    @property
    def in_flight(self) -> int:
        """Batches sent and not acknowledged."""
        return len(self._in_flight)

    def outstanding(self) -> list[Batch]:
        """Return every batch that is not settled, oldest first."""
        batches = (*self._in_flight.values(), *self._again, *self._batcher.queue)
        return [batch for batch in batches if batch.count or batch.values]

    def flush(self) -> list[Batch]:
        """Seal the open batch and return what is outstanding."""
        self._batcher.seal()
        return self.outstanding()

    def gate(self, size: int) -> Outcome:
        """Return an outcome that settles when a record of ``size`` bytes may be tried again."""
        if self._batcher.fits(size):
            gate = Outcome()
            gate.settle()
            return gate
        if self._gate is None or self._gate.done:
            self._gate = Outcome()
            self._batcher.seal()  # whoever waits for room must not also wait for a linger
        return self._gate

    # What the session calls

    @property
    def drained(self) -> bool:
        """Nothing is left to do."""
        return not (self._in_flight or self._again or self._batcher.queue)

    @property
    def pinned(self) -> bool:
        """Some batch was sent and not acknowledged, so the dialect must stay."""
        return bool(self._in_flight or self._again)

    def ready(self, connection: Connection, topic: TopicInfo | None, now: float) -> None:
        """Use this connection; what was unacknowledged goes first."""
        del now
        self._connection = connection
        self._topic_id = self._topic_id if topic is None else topic.id
        self._batcher.fit(connection.dialect)

    def fill(self, connection: Connection, now: float) -> None:
        """Send batches as far as the window allows."""
        if now < self._paused_until or self._doubt is not None:
            return
        while len(self._in_flight) < self.window.size and (batch := self._next()) is not None:
            self._send(batch, connection)

    def _next(self) -> Batch | None:
        return self._again.popleft() if self._again else self._batcher.next_sealed()

    def _send(self, batch: Batch, connection: Connection) -> None:
        payload = batch.payload()
        if len(payload) > connection.dialect.max_payload:
            limit = connection.dialect.max_payload
            failure = RecordTooLarge(f"batch of {len(payload)} bytes: this server takes {limit}")
            self._finish(batch, failure)
            return
        if not batch.batch_id:
            self._counter += 1
            batch.batch_id = self._nonce | self._counter
            batch.timestamp_ns = self._clock_ns()
        batch.topic_id = self._topic_id
        batch.attempts += 1
        self.retries += batch.attempts > 1
        self._in_flight[batch.batch_id] = batch
        connection.ingest(batch.batch_id, batch.timestamp_ns, batch.count, batch.topic_id, payload)

    def lost(self, now: float) -> None:
        """Queue everything unacknowledged again, in its first order."""
        del now
        self._connection = None
        self._doubt = None
        self._requeue(self._in_flight.values())
        self._in_flight.clear()

    def _requeue(self, batches: Iterable[Batch]) -> None:
        self._again = deque(sorted([*batches, *self._again], key=lambda batch: batch.batch_id))

    def acked(self, batch_id: int, now: float) -> None:
        """Settle an acknowledged batch."""
        del now
        batch = self._in_flight.pop(batch_id, None)
        if batch is None:
            self._judge_stray(batch_id)
            return
        self.acked_batches += 1
        self.acked_records += batch.count
        self.window.grow()
        self._backoff.reset()
        self._retry.reset()
        self._finish(batch)

    def _judge_stray(self, batch_id: int) -> None:
        """Accept an ack for what was settled meanwhile; no other batch was ever sent."""
        if not self._nonce < batch_id <= self._nonce | self._counter:
            raise RemoteProtocolError(f"the server acknowledged batch {batch_id:#x}, never sent")
        self.stray_acks += 1

    def slow_down(self, now: float) -> None:
        """Halve the window."""
        del now
        self.backpressure += 1
        self.window.halve(len(self._in_flight))

    def refused(self, error: ServerError, now: float) -> None:
        """Take an ErrorResponse: about the batch it names, or about one of those in flight."""
        batch_id = error.details.get("batch_id")
        if isinstance(batch_id, int):
            if (batch := self._in_flight.pop(batch_id, None)) is not None:
                self._judge(batch, error, now)
        elif len(self._in_flight) == 1:
            _, batch = self._in_flight.popitem()
            self._judge(batch, error, now)
        elif self._in_flight:
            self._suspect(error, now)
        else:
            raise RemoteProtocolError(f"the server sent an error in answer to nothing: {error}")

    def _judge(self, batch: Batch, error: ServerError, now: float) -> None:
        if not error.retryable:
            self._fail(batch, error, maybe_applied=error.maybe_applied)
            return
        wait = error.retry_after if isinstance(error, RateLimited) else None
        self._paused_until = now + max(wait or 0.0, self._retry.next_delay())
        self._requeue([batch])
        self._events.append(Notice(f"the server refused a batch and it is sent again: {error}"))
        if isinstance(error, NotLeader):
            raise RemoteProtocolError(str(error)) from error

    def _suspect(self, error: ServerError, now: float) -> None:
        """Stop sending and find out which batch a text error was about (AMB-10)."""
        if self._doubt is None:
            self._doubt = error
            self._pass_barrier(_BARRIERS, now)

    def _pass_barrier(self, left: int, now: float) -> None:
        if self._doubt is None or self._connection is None:
            return
        if left:
            self._connection.ping(now, lambda at: self._pass_barrier(left - 1, at))
            return
        error, self._doubt = self._doubt, None
        for batch in self._in_flight.values():
            self._fail(batch, error, maybe_applied=True)
        self._in_flight.clear()

    def _fail(self, batch: Batch, cause: LanceError, *, maybe_applied: bool) -> None:
        failure = DeliveryFailed(cause, batch_id=batch.batch_id, maybe_applied=maybe_applied)
        self._finish(batch, failure)

    def _finish(self, batch: Batch, failure: DeliveryError | None = None) -> None:
        if not batch.finish(failure):
            return
        self._batcher.release(batch)
        if failure is not None:
            self.failures.add(batch)
        self._events.append(batch)
        self._open_gate()

    def _open_gate(self) -> None:
        gate = self._gate
        if gate is not None and self._batcher.roomy and gate.settle():
            self._events.append(gate)

    def next_deadline(self) -> float:
        """Return when a batch is to be sealed, sent again, or given up."""
        due = min((batch.deadline for batch in self._oldest()), default=math.inf)
        if self._paused_until > -math.inf:
            due = min(due, self._paused_until)
        return min(due, self._batcher.next_deadline())

    def _oldest(self) -> list[Batch]:
        """Return the heads of the three places where batches wait, each in order of age."""
        heads = [next(iter(place), None) for place in (self._in_flight.values(), self._again)]
        heads.append(self._batcher.queue[0] if self._batcher.queue else None)
        return [batch for batch in heads if batch is not None]

    def handle_timeout(self, now: float) -> None:
        """Seal what has lingered, give up what is too old."""
        self._batcher.handle_timeout(now)
        if now >= self._paused_until:
            self._paused_until = -math.inf
        if any(now >= batch.deadline for batch in self._oldest()):
            self._expire(now)

    def _expire(self, now: float) -> None:
        self._batcher.seal()  # the open batch may be the one; sealed, it can be accounted for
        for batch in self.outstanding():
            if now >= batch.deadline:
                self._forget(batch)
                self._finish(batch, _expired(batch, now))

    def _forget(self, batch: Batch) -> None:
        """Take a batch out of wherever it waits."""
        if self._in_flight.pop(batch.batch_id, None) is None:
            for place in (self._again, self._batcher.queue):
                if batch in place:
                    place.remove(batch)

    def close(self, now: float) -> None:
        """Send what is there."""
        del now
        self._batcher.seal()

    def abort(self, error: LanceError, now: float) -> None:
        """Fail everything that is left, and take nothing more."""
        del now
        self._batcher.refuse(error)
        for batch in self.outstanding():
            self._fail(batch, error, maybe_applied=batch.attempts > 0)
        self._in_flight.clear()
        self._again.clear()
        self._batcher.queue.clear()
        if self._gate is not None and self._gate.settle():
            self._events.append(self._gate)


def _expired(batch: Batch, now: float) -> DeliveryExpired:
    waited = now - batch.created
    sent = f"sent {batch.attempts} times" if batch.attempts else "never sent: no connection"
    return DeliveryExpired(
        f"not acknowledged within {waited:.1f} s (delivery_timeout); {sent}",
        batch_id=batch.batch_id,
        maybe_applied=batch.attempts > 0,
    )
