"""Batches out, acknowledgements in: window, retries, identity, deadlines.

Order: batches leave in the order in which they were sealed, and those that a lost connection
left unacknowledged leave again before anything newer. Each is sent with the same batch id,
timestamp and bytes every time, so a server with a duplicate window stores it once (AMB-25).
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from lance_sdk._core.backoff import Backoff
from lance_sdk._core.batcher import Batcher
from lance_sdk._core.connection import Connection
from lance_sdk._core.delivery import Batch
from lance_sdk._core.events import Event, Notice, Sent, Throttled
from lance_sdk._core.failures import FailureLog, expired, kept_in_journal
from lance_sdk._core.handover import Handover
from lance_sdk._core.journaling import Spill
from lance_sdk._core.outcome import Outcome
from lance_sdk._core.send_settings import SendSettings
from lance_sdk._core.suspicion import Suspicion
from lance_sdk._core.window import Window
from lance_sdk._tree import LanceError
from lance_sdk.errors import (
    DeliveryError,
    DeliveryFailed,
    NotLeader,
    RateLimited,
    RecordTooLarge,
    RemoteProtocolError,
    ServerError,
    StillInJournal,
    Unsupported,
)
from lance_spec.bodies import TopicInfo

_COUNTER_BITS: Final = 40
"""Of a batch id, below the nonce (AMB-25)."""


class Sender:
    """The application of a producer's session.

    Args:
        batcher: where batches come from.
        settings: how to send.
        backoff: reset upon every acknowledgement.
        retry: delays before a refused batch is sent again.
        clock_ns: wall clock in nanoseconds since the epoch, for header timestamps.
        events: where settled batches are announced.
        spill: the journal, where there is one.

    Attributes:
        failures: what was not delivered.
        handover: what goes through the journal.
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
        settings: SendSettings,
        backoff: Backoff,
        retry: Backoff,
        clock_ns: Callable[[], int],
        events: list[Event],
        spill: Spill | None = None,
    ) -> None:
        self._batcher = batcher
        self._settings = settings
        self._topic_id = settings.topic_id
        self._nonce = settings.nonce << _COUNTER_BITS
        self._counter = 0
        self._backoff = backoff
        self._retry = retry
        self._clock_ns = clock_ns
        self._events = events
        self._connection: Connection | None = None
        self._in_flight: dict[int, Batch] = {}
        self._again: deque[Batch] = deque()
        self._paused_until = -math.inf
        self._suspicion = Suspicion(self._convict)
        self._gate: Outcome | None = None
        self._closing = False
        self.handover = Handover(
            spill,
            always=settings.journal_always,
            events=events,
            stored=self._stored,
            settled=self._delivered,
        )
        self.failures = FailureLog()
        self.window = Window(settings.max_in_flight)
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
        batches = (
            *self.handover.batches,
            *self._in_flight.values(),
            *self._again,
            *self._batcher.queue,
        )
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
            if self.handover.possible:
                self.spill()
        return self._gate

    def spill(self) -> None:
        """Go through the journal from now on, with all that is not acknowledged first (SF-33)."""
        if not self.handover.active:
            self._requeue(self._in_flight.values())
            self._in_flight.clear()
            self._suspicion.drop()
            self.handover.begin(self._again)
            self._again.clear()
            self._events.append(
                Notice("records go through the journal until it is drained", "spill")
            )

    def settle_journal(self, now: float) -> None:
        """Take note of what the journal has delivered; the rest stays in it."""
        self.handover.look(now)
        for batch in self.handover.clear():
            self._finish(batch, now, kept_in_journal(batch))

    # What the session calls

    @property
    def drained(self) -> bool:
        """Nothing is left to do."""
        waiting = self._in_flight or self._again or self._batcher.queue
        return not waiting and self.handover.idle

    @property
    def pinned(self) -> bool:
        """Some batch was sent and not acknowledged, so the dialect must stay."""
        return bool(self._in_flight or self._again)

    def ready(self, connection: Connection, topic: TopicInfo | None, now: float) -> None:
        """Use this connection; what was unacknowledged goes first."""
        del now
        if self._settings.compression == "lz4" and not connection.dialect.lz4:
            raise Unsupported(
                f"compression='lz4': a server of dialect {connection.dialect.name!r} stores "
                f"compressed batches as they are, and no consumer could read them (AMB-20); "
                f"use 'auto' or 'none'"
            )
        self._connection = connection
        self._topic_id = self._topic_id if topic is None else topic.id
        self._batcher.fit(connection.dialect)

    def fill(self, connection: Connection, now: float) -> None:
        """Send batches as far as the window allows.

        Where nothing is in flight the open batch leaves as it is: waiting for more records could
        only delay it. What is sent meanwhile gathers until the answer comes.
        """
        if now < self._paused_until or self._suspicion.error or self.handover.active:
            return
        while len(self._in_flight) < self.window.size and (batch := self._next()) is not None:
            self._send(batch, connection, now)
        if not self._in_flight:
            self._batcher.seal()
            if (batch := self._batcher.next_sealed()) is not None:
                self._send(batch, connection, now)

    def _next(self) -> Batch | None:
        return self._again.popleft() if self._again else self._batcher.next_sealed()

    def _send(self, batch: Batch, connection: Connection, now: float) -> None:
        if not batch.batch_id:
            self._counter += 1
            batch.batch_id = self._nonce | self._counter
            batch.timestamp_ns = self._clock_ns()
            batch.prepare(self._settings.compression, connection.dialect)
        flags, payload = batch.wire()
        limit = connection.dialect.max_payload
        if batch.size > limit:
            too_large = RecordTooLarge(f"batch of {batch.size} bytes: this server takes {limit}")
            self._finish(batch, now, too_large)
            return
        batch.topic_id = self._topic_id
        batch.attempts += 1
        batch.sent_at = now
        self.retries += batch.attempts > 1
        self._in_flight[batch.batch_id] = batch
        identity = (batch.batch_id, batch.timestamp_ns, batch.count, batch.topic_id)
        connection.ingest(*identity, payload, flags=flags)
        self._events.append(Sent(batch, batch.attempts, len(payload), now - batch.created))

    def lost(self, now: float) -> None:
        """Queue everything unacknowledged again, in its first order."""
        self._connection = None
        self._suspicion.drop()
        self._requeue(self._in_flight.values())
        self._in_flight.clear()
        self._spill_if_closing(now)

    def _spill_if_closing(self, now: float) -> None:
        """Keep what there is no server for: whoever closes will not wait for one."""
        if self._closing and self.handover.possible and self._connection is None:
            self.spill()
            self._feed(now)

    def _requeue(self, batches: Iterable[Batch]) -> None:
        self._again = deque(sorted([*batches, *self._again], key=lambda batch: batch.batch_id))

    def acked(self, batch_id: int, now: float) -> None:
        """Settle an acknowledged batch."""
        batch = self._in_flight.pop(batch_id, None)
        if batch is None:
            self._judge_stray(batch_id)
            return
        self.window.grow()
        self._backoff.reset()
        self._retry.reset()
        self._finish(batch, now)

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
        self._events.append(Throttled(self.window.size))

    def refused(self, error: ServerError, now: float) -> None:
        """Take an ErrorResponse: about the batch it names, or about one of those in flight."""
        batch_id = error.details.get("batch_id")
        if isinstance(batch_id, int):
            if (batch := self._in_flight.pop(batch_id, None)) is not None:
                self._judge(batch, error, now)
        elif len(self._in_flight) == 1:
            _, batch = self._in_flight.popitem()
            self._judge(batch, error, now)
        elif self._in_flight and self._connection is not None:
            self._suspicion.arise(error, self._connection, now)
        elif not self.handover.active:
            raise RemoteProtocolError(f"the server sent an error in answer to nothing: {error}")

    def _judge(self, batch: Batch, error: ServerError, now: float) -> None:
        if not self._settings.worth_another_try(error, batch.attempts):
            self._fail(batch, error, now, maybe_applied=error.maybe_applied)
            return
        wait = error.retry_after if isinstance(error, RateLimited) else None
        self._paused_until = now + max(wait or 0.0, self._retry.next_delay())
        self._requeue([batch])
        self._events.append(Notice(f"a refused batch is sent again: {error}", "refused"))
        if isinstance(error, NotLeader):
            raise RemoteProtocolError(str(error)) from error

    def _convict(self, error: ServerError, now: float) -> None:
        """Fail what is still unacknowledged behind the barriers (AMB-10)."""
        for batch in self._in_flight.values():
            self._fail(batch, error, now, maybe_applied=True)
        self._in_flight.clear()

    def _fail(self, batch: Batch, cause: LanceError, now: float, *, maybe_applied: bool) -> None:
        failure = DeliveryFailed(cause, batch_id=batch.batch_id, maybe_applied=maybe_applied)
        self._finish(batch, now, failure)

    def _finish(self, batch: Batch, now: float, failure: DeliveryError | None = None) -> None:
        if not batch.finish(now, failure):
            return
        if batch.ticket is None:
            self._batcher.release(batch)
        if failure is None:
            self.acked_batches += 1
            self.acked_records += batch.count
        elif isinstance(failure, StillInJournal):
            self.failures.journaled += batch.count
        else:
            self.failures.add(batch)
        self._events.append(batch)
        self._open_gate()

    def _stored(self, batch: Batch) -> None:
        """Let a batch's bytes go: the journal has them."""
        batch.let_go()
        self._batcher.release(batch)
        self._open_gate()

    def _delivered(self, batch: Batch, error: LanceError | None, now: float) -> None:
        if error is None or isinstance(error, StillInJournal):
            self._finish(batch, now, error)
        else:
            self._fail(batch, error, now, maybe_applied=error.maybe_applied)

    def _open_gate(self) -> None:
        gate = self._gate
        if gate is not None and self._batcher.roomy and gate.settle():
            self._events.append(gate)

    def next_deadline(self) -> float:
        """Return when a batch is to be sealed, sent again, or given up."""
        due = min((batch.deadline for batch in self._oldest()), default=math.inf)
        if self._paused_until > -math.inf:
            due = min(due, self._paused_until)
        return min(due, self._batcher.next_deadline(), self.handover.next_deadline())

    def _oldest(self) -> list[Batch]:
        """Return the heads of the places where batches wait, each in order of age."""
        places = (self._in_flight.values(), self._again, self.handover.journaled.values())
        heads = [next(iter(place), None) for place in places]
        heads.append(self._batcher.queue[0] if self._batcher.queue else None)
        return [batch for batch in heads if batch is not None]

    def handle_timeout(self, now: float) -> None:
        """Seal what has lingered, give up what is too old, feed the journal."""
        self._batcher.handle_timeout(now)
        if now >= self._paused_until:
            self._paused_until = -math.inf
        if any(now >= batch.deadline for batch in self._oldest()):
            self._expire(now)
        self._feed(now)

    def _feed(self, now: float) -> None:
        if self.handover.active:
            while (batch := self._batcher.next_sealed()) is not None:
                self.handover.waiting.append(batch)
            self.handover.step(now)

    def _expire(self, now: float) -> None:
        self._batcher.seal()  # the open batch may be the one; sealed, it can be accounted for
        for batch in self.outstanding():
            if now >= batch.deadline and self._forget(batch):
                kept = None if batch.ticket is None else kept_in_journal(batch)
                self._finish(batch, now, kept or expired(batch, now))

    def _forget(self, batch: Batch) -> bool:
        """Take a batch out of wherever it waits; what is on its way to the journal goes on."""
        if batch.ticket is not None:
            return self.handover.journaled.pop(batch.ticket, None) is not None
        if self._in_flight.pop(batch.batch_id, None) is not None:
            return True
        for place in (self._again, self._batcher.queue, self.handover.waiting):
            if batch in place:
                place.remove(batch)
                return True
        return False

    def close(self, now: float) -> None:
        """Send what is there."""
        self._closing = True
        self._batcher.seal()
        self._spill_if_closing(now)

    def abort(self, error: LanceError, now: float) -> None:
        """Fail everything that is left, and take nothing more."""
        self._batcher.refuse(error)
        for batch in self.outstanding():
            if batch.ticket is not None:
                self._finish(batch, now, kept_in_journal(batch))
            else:
                doubtful = batch.attempts > 0 or self.handover.storing(batch)
                self._fail(batch, error, now, maybe_applied=doubtful)
        self.handover.clear()
        self._in_flight.clear()
        self._again.clear()
        self._batcher.queue.clear()
        if self._gate is not None and self._gate.settle():
            self._events.append(self._gate)
