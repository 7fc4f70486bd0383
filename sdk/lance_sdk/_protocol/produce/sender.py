"""Batches out, acknowledgements in: window, retries, identity, deadlines.

Order: batches leave in the order in which they were sealed, and those that a lost connection
left unacknowledged leave again before anything newer. Each is sent with the same batch id,
timestamp and bytes every time, so a server with a duplicate window stores it once (AMB-25).
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.connection import Connection
from lance_sdk._protocol.events import Event, Notice, Sent, Throttled
from lance_sdk._protocol.produce.batcher import Batcher
from lance_sdk._protocol.produce.delivery import Batch
from lance_sdk._protocol.produce.delivery_failures import (
    Destination,
    FailureLog,
    expired,
    kept_in_journal,
)
from lance_sdk._protocol.produce.error_attribution import ErrorAttribution
from lance_sdk._protocol.produce.in_flight_limiter import InFlightLimiter
from lance_sdk._protocol.produce.journal_seam import Spill
from lance_sdk._protocol.produce.journal_spooler import JournalSpooler
from lance_sdk._protocol.produce.send_settings import SendSettings
from lance_sdk._protocol.situation import Situation
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
from lance_spec.limits import BATCH_COUNTER_BITS

_SMALL: Final = 64 * 1024
"""Bytes of a batch that the thread of a program may send itself."""
_FEW_EVENTS: Final = 64
"""Events that nobody waits for may stay so many before they are announced."""


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
        situation: tells how the session stands, for the texts of errors.
        failures: what was not delivered.
        spooler: what goes through the journal.
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
        self._nonce = settings.nonce << BATCH_COUNTER_BITS
        self._counter = 0
        self._backoff = backoff
        self._retry = retry
        self._clock_ns = clock_ns
        self._events = events
        self._connection: Connection | None = None
        self._in_flight: dict[int, Batch] = {}
        self._again: deque[Batch] = deque()
        self._paused_until = -math.inf
        self._error_attribution = ErrorAttribution(self._attributed)
        self._gate: Completion | None = None
        self._closing = False
        self._orphans: set[int] = set()
        """Batches that expired while the connection at hand still owed an answer about them."""
        self.situation: Callable[[], Situation] = Situation
        self.spooler = JournalSpooler(
            spill,
            always=settings.journal_always,
            events=events,
            stored=self._stored,
            settled=self._delivered,
        )
        self.failures = FailureLog()
        self.window = InFlightLimiter(settings.max_in_flight)
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

    # What the client calls

    @property
    def in_flight(self) -> int:
        """Batches sent and not acknowledged."""
        return len(self._in_flight)

    def outstanding(self) -> list[Batch]:
        """Return every batch that is not settled, oldest first."""
        batches = (
            *self.spooler.batches,
            *self._in_flight.values(),
            *self._again,
            *self._batcher.queue,
        )
        return [batch for batch in batches if batch.count or batch.values]

    def flush(self) -> list[Batch]:
        """Seal the open batch and return what is outstanding."""
        self._batcher.seal()
        return self.outstanding()

    def gate(self, size: int) -> Completion:
        """Return an outcome that settles when ``size`` bytes of records may be tried again."""
        if self._batcher.fits(size):
            gate = Completion()
            gate.settle()
            return gate
        if self._gate is None or self._gate.done:
            self._gate = Completion()
            self._batcher.seal()  # whoever waits for room must not also wait for a linger
            if self.spooler.possible:
                self.spill()
        return self._gate

    def spill(self) -> None:
        """Go through the journal from now on, with all that is not acknowledged first (SF-33)."""
        if not self.spooler.active:
            self._leave_unanswered()
            self._requeue(self._in_flight.values())
            self._in_flight.clear()
            self._error_attribution.drop()
            self.spooler.begin(self._again)
            self._again.clear()
            self._events.append(
                Notice("records go through the journal until it is drained", "spill")
            )

    def settle_journal(self, now: float) -> None:
        """Take note of what the journal has delivered; the rest stays in it."""
        self.spooler.look(now)
        for batch in self.spooler.clear():
            self._finish(batch, now, kept_in_journal(batch))

    # What sends a lone batch on the thread that waits for it calls

    def about_to_leave(self) -> Batch | None:
        """Return the open batch, where it is small and would leave at once and alone."""
        queue = self._batcher.queue
        if self._connection is None or self._in_flight or self._again or len(queue) != 1:
            return None
        if self.spooler.possible or self._error_attribution.error or self._paused_until > -math.inf:
            return None
        return queue[0] if self._batcher.buffered <= _SMALL else None

    def is_alone(self, batch: Completion) -> bool:
        """Whether a batch is all that is under way."""
        if len(self._in_flight) != 1 or self._again or self._batcher.queue:
            return False
        return next(iter(self._in_flight.values())) is batch

    def is_answer(self, data: bytes, batch: Completion) -> bool:
        """Whether bytes are the acknowledgement of a batch in flight, and nothing else."""
        connection = self._connection
        if connection is None or not isinstance(batch, Batch):
            return False
        sent = self._in_flight.get(batch.batch_id) is batch
        return sent and connection.is_ack(data, batch.batch_id)

    def has_news(self, batch: Completion) -> bool:
        """Whether there is to be done, or announced, more than that a batch is settled."""
        events = self._events
        if self._closing or self._batcher.queue or self._again or len(events) > _FEW_EVENTS:
            return True
        return bool(events) and (events[-1] is not batch or batch.awaited)

    def mend(self, batch: Completion, now: float, *, answered: bool) -> None:
        """Complete a step that an exception cut short: sending a batch, or settling it.

        Args:
            batch: what `about_to_leave`, or `is_answer`, was asked about.
            now: the time.
            answered: whether it was being settled.
        """
        assert isinstance(batch, Batch)
        if batch.done:
            if not any(event is batch for event in self._events):
                self._account(batch)
            self._open_gate()
            if self._gate is not None and self._gate.done and self._gate not in self._events:
                self._events.append(self._gate)  # announcing it twice does no harm
        elif answered:
            self._in_flight[batch.batch_id] = batch
            self.acked(batch.batch_id, now)
        elif batch.batch_id not in self._in_flight and batch not in self._batcher.queue:
            self._batcher.queue.appendleft(batch)

    # What the session calls

    @property
    def drained(self) -> bool:
        """Nothing is left to do."""
        waiting = self._in_flight or self._again or self._batcher.queue
        return not waiting and self.spooler.idle

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
        if topic is not None:
            self._use_topic(topic)
        if not self._topic_id and not connection.dialect.strict:
            text = "records in topic 0 of a published server cannot be read (AMB-34)"
            self._events.append(Notice(f"{text}: name a topic", "topic-0"))
        self._batcher.fit(connection.dialect)

    def _use_topic(self, topic: TopicInfo) -> None:
        before, self._topic_id = self._topic_id, topic.id
        if before not in {0, topic.id}:
            waiting = sum(batch.count or len(batch.values) for batch in self.outstanding())
            self._events.append(
                Notice(
                    f"topic {self._settings.label!r} was deleted and created again (it is number "
                    f"{topic.id} now, before {before}); unacknowledged records ({waiting}) go into "
                    f"the later one",
                    "topic",
                )
            )

    def fill(self, connection: Connection, now: float) -> None:
        """Send batches as far as the window allows.

        Where nothing is in flight the open batch leaves as it is: waiting for more records could
        only delay it. What is sent meanwhile gathers until the answer comes.
        """
        if now < self._paused_until or self._error_attribution.error or self.spooler.active:
            return
        if self._again and self._again[0].too_late(now):
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
        dialect = connection.dialect
        if not batch.batch_id:
            batch.timestamp_ns = self._clock_ns()
            batch.prepare(self._settings.compression, dialect)
            self._counter += 1
            batch.batch_id = self._nonce | self._counter
        flags, payload = batch.wire()
        limit = dialect.max_payload
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
        self._error_attribution.drop()
        self._orphans.clear()
        self._leave_unanswered()
        self._requeue(self._in_flight.values())
        self._in_flight.clear()
        self._spill_if_closing(now)

    def _leave_unanswered(self) -> None:
        """Take note that nobody will hear what became of the attempts under way."""
        cause = self.situation().cause
        for batch in self._in_flight.values():
            batch.doubtful = True
            batch.last_error = cause

    def _spill_if_closing(self, now: float) -> None:
        """Keep what there is no server for: whoever closes will not wait for one."""
        if self._closing and self.spooler.possible and self._connection is None:
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
            raise RemoteProtocolError(
                f"the server acknowledged batch {batch_id:#x}, which was never sent"
            )
        self._orphans.discard(batch_id)
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
            self._orphans.discard(batch_id)
            if (batch := self._in_flight.pop(batch_id, None)) is not None:
                self._judge(batch, error, now)
        elif len(self._in_flight) == 1 and not self._orphans:
            _, batch = self._in_flight.popitem()
            self._judge(batch, error, now)
        elif self._in_flight and self._connection is not None:
            self._error_attribution.begin(error, self._connection, now)
        elif self._orphans:
            self._orphans.pop()
        elif not self.spooler.active:
            raise RemoteProtocolError(f"the server sent an error that answers no request: {error}")

    def _judge(self, batch: Batch, error: ServerError, now: float) -> None:
        batch.doubtful = batch.doubtful or error.maybe_applied
        batch.last_error = error
        if not self._settings.retry.allows(error, batch.attempts):
            self._fail(batch, error, now, maybe_applied=batch.doubtful)
            return
        self._requeue([batch])
        if isinstance(error, NotLeader):  # the session follows the redirect, and pauses if it must
            raise RemoteProtocolError(str(error)) from error
        wait = error.retry_after if isinstance(error, RateLimited) else None
        self._paused_until = now + max(wait or 0.0, self._retry.next_delay())
        self._events.append(Notice(f"a refused batch is sent again: {error}", "refused"))

    def _attributed(self, error: ServerError, now: float) -> None:
        """Fail every batch that is still unacknowledged after the barriers (AMB-10)."""
        for batch in self._in_flight.values():
            self._fail(batch, error, now, maybe_applied=True)
        self._in_flight.clear()

    def _fail(self, batch: Batch, cause: LanceError, now: float, *, maybe_applied: bool) -> None:
        place = self.place()
        failure = DeliveryFailed(
            cause,
            batch_id=batch.batch_id,
            maybe_applied=maybe_applied,
            topic=place.topic,
            server=place.situation.server,
            attempts=batch.attempts,
            advice=place.why(cause, batch),
        )
        self._finish(batch, now, failure)

    def place(self) -> Destination:
        """Return where the records go, for the texts of errors."""
        return Destination(self._settings.label, self.situation())

    def count_delivered(self) -> int:
        """Return the number of records acknowledged so far."""
        return self.acked_records

    def oldest(self) -> Batch | None:
        """Return the batch that waits longest for its acknowledgement."""
        return min(self._heads(), key=lambda batch: batch.created, default=None)

    def _finish(self, batch: Batch, now: float, failure: DeliveryError | None = None) -> None:
        if batch.finish(now, failure):
            self._account(batch)
            self._open_gate()

    def _account(self, batch: Batch) -> None:
        """Count a settled batch and have it announced; only the last step is not for twice."""
        failure = batch.failure()
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
        due = self._paused_until if self._paused_until > -math.inf else math.inf
        for batch in self._heads():
            due = min(due, batch.deadline)
        if self.spooler.active:
            due = min(due, self.spooler.next_deadline())
        return min(due, self._batcher.next_deadline())

    def _heads(self) -> list[Batch]:
        """Return the first of each place where batches wait in order of age."""
        heads: list[Batch] = []
        for place in (
            self._in_flight.values(),
            self._again,
            self.spooler.journaled.values(),
            self._batcher.queue,
        ):
            for batch in place:
                heads.append(batch)
                break
        return heads

    def handle_timeout(self, now: float) -> None:
        """Seal what has lingered, give up what is too old, feed the journal."""
        self._batcher.handle_timeout(now)
        if now >= self._paused_until:
            self._paused_until = -math.inf
        for batch in self._heads():
            if now >= batch.deadline:
                self._expire(now)
                break
        self._feed(now)

    def _feed(self, now: float) -> None:
        if self.spooler.active:
            while (batch := self._batcher.next_sealed()) is not None:
                self.spooler.waiting.append(batch)
            self.spooler.step(now)

    def _expire(self, now: float) -> None:
        self._batcher.seal()  # the open batch may be the one; sealed, it can be accounted for
        for batch in self.outstanding():
            if now >= batch.deadline and self._forget(batch):
                kept = None if batch.ticket is None else kept_in_journal(batch)
                self._finish(batch, now, kept or self._expired(batch, now))

    def _expired(self, batch: Batch, now: float) -> DeliveryError:
        in_flight = batch.batch_id in self._orphans
        return expired(batch, now, self.place(), in_flight=in_flight)

    def _forget(self, batch: Batch) -> bool:
        """Take a batch out of wherever it waits; what is on its way to the journal goes on."""
        if batch.ticket is not None:
            return self.spooler.journaled.pop(batch.ticket, None) is not None
        if self._in_flight.pop(batch.batch_id, None) is not None:
            self._orphans.add(batch.batch_id)
            return True
        for place in (self._again, self._batcher.queue, self.spooler.waiting):
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
                under_way = batch.batch_id in self._in_flight or self.spooler.storing(batch)
                doubtful = batch.doubtful or under_way
                self._fail(batch, error, now, maybe_applied=doubtful)
        self.spooler.clear()
        self._in_flight.clear()
        self._again.clear()
        self._batcher.queue.clear()
        if self._gate is not None and self._gate.settle():
            self._events.append(self._gate)
