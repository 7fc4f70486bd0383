"""Stored batches onto LWP connections: the application of a store-and-forward session.

Topics are looked up on each connection when the first frame needs one, and only while nothing
waits for an acknowledgement: so a text error can always be told apart (AMB-10). Every frame goes
out with the batch id, timestamp and records it was stored with, whatever the dialect, so a server
with a duplicate window stores it once (AMB-25, SF-32).
"""

import math
from collections import deque
from typing import TYPE_CHECKING, Final

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.connection import Connection, Request
from lance_sdk._protocol.events import Notice
from lance_sdk._protocol.produce.compression import Compression, compress
from lance_sdk._protocol.produce.in_flight_limiter import InFlightLimiter
from lance_sdk.errors import (
    ConnectionLost,
    NotLeader,
    RateLimited,
    RemoteProtocolError,
    ServerError,
    TopicDeleted,
    TopicNotFound,
)
from lance_sdk.journal._sending.outbox import Outbox
from lance_sdk.journal.lwp.frames import OutgoingBatch, read_frame, unsupported
from lance_sdk.journal.lwp.metadata import SlotMetadata
from lance_sdk.journal.lwp.refusals import category_of
from lance_sdk.journal.lwp.topic_ids import TopicIds, TopicMissing
from lance_sdk.journal.rejections import AfterRejection, Policy, Rejection
from lance_sdk.journal.transport import Outgoing
from lance_spec.bodies import ClusterStatus, TopicInfo
from lance_spec.enums import Command, Flag


def ask_window(connection: Connection, outbox: Outbox, now: float) -> None:
    """Ask for the duplicate window, and keep in the outbox whether there is one.

    Sending does not wait for the answer: it changes nothing of what is sent. The first server
    that states none is told to the log.
    """

    def found(stated: bool) -> None:
        if not stated and outbox.exactly_once is not False:
            text = "the server states no duplicate window: delivery is at least once (SF-34)"
            outbox.events.append(Notice(text))
        outbox.exactly_once = stated

    def answered(_code: int, payload: memoryview, _now: float) -> None:
        window = ClusterStatus.decode(payload).dedup_window
        found(window is not None and window.entries > 0)

    def refused(_error: ServerError, _now: float) -> None:
        found(False)

    expected = frozenset({Command.CLUSTER_STATUS_RESPONSE})
    request = Request(Command.GET_CLUSTER_STATUS, b"", expected, answered, refused)
    connection.ask(request, now)


if TYPE_CHECKING:
    from collections.abc import Callable

_BARRIERS: Final = 2
"""Keepalives to pass before what is unacknowledged is known to be refused (AMB-10)."""
_REMEMBERED: Final = 4096
"""Answered batch ids that a second answer may name without being a protocol error."""


class Forwarder:
    """Carries the frames of an outbox.

    Args:
        outbox: the frames.
        metadata: the slot's topics.
        routes: finds the topics' numbers at the server.
        retry: delays before a refused frame is sent again.
        allow_unsafe: whether record types go to servers that cannot keep them (AMB-13).
        compression: whether frames are compressed where the server understands it (AMB-20).

    Attributes:
        halt: ends the session; set by whoever makes it.
    """

    def __init__(
        self,
        outbox: Outbox,
        metadata: SlotMetadata,
        routes: TopicIds,
        retry: Backoff,
        *,
        allow_unsafe: bool = False,
        compression: Compression = "none",
    ) -> None:
        self._outbox = outbox
        self._metadata = metadata
        self._routes = routes
        self._retry = retry
        self._window = InFlightLimiter(outbox.limits.frames)
        self._allow_unsafe = allow_unsafe
        self._compression = compression
        self._connection: Connection | None = None
        self._waiting: dict[int, OutgoingBatch] = {}
        self._answered: deque[int] = deque(maxlen=_REMEMBERED)
        self._held: OutgoingBatch | None = None
        self._paused_until = -math.inf
        self._doubt: ServerError | None = None
        self._answer_due = math.inf
        self.halt: Callable[[LanceError, float], None] = _nobody

    def __repr__(self) -> str:
        return f"<Forwarder waiting={len(self._waiting)} held={self._held!r} {self._outbox!r}>"

    # What the session asks

    @property
    def drained(self) -> bool:
        """Nothing is left to do."""
        return self._outbox.drained

    @property
    def pinned(self) -> bool:
        """Frames are the same in every dialect, so a slot replays to any of them (SF-32)."""
        return False

    def ready(self, connection: Connection, topic: TopicInfo | None, now: float) -> None:
        """Use this connection; sending starts at the first frame that is not settled."""
        del topic
        self._connection = connection
        self._routes.forget()
        self._outbox.connected(now)
        if connection.dialect.strict:
            ask_window(connection, self._outbox, now)
        else:
            self._outbox.exactly_once = False

    def lost(self, now: float) -> None:
        """The connection is gone, and with it whatever was not answered."""
        self._connection = self._doubt = self._held = None
        self._waiting.clear()
        self._routes.forget()
        self._outbox.disconnected(now)

    def fill(self, connection: Connection, now: float) -> None:
        """Send frames as far as the window allows."""
        if now < self._paused_until or self._doubt is not None or self._routes.asking:
            return
        while len(self._waiting) < self._window.size:
            batch = self._held or self._next(now)
            self._held = None
            if batch is None or not self._send(batch, connection, now):
                break
        if self._outbox.failure is not None:
            self.halt(self._outbox.failure, now)

    def _next(self, now: float) -> OutgoingBatch | None:
        """Return the next frame that can be read as a batch."""
        while (frame := self._outbox.next_frame(now)) is not None:
            try:
                return read_frame(frame)
            except ValueError as error:
                self._refuse_unsent(frame, None, str(error), now)
        return None

    def _send(self, batch: OutgoingBatch, connection: Connection, now: float) -> bool:
        """Send a batch, or find out where to; return whether to go on with the next one."""
        topic_id = self._route(batch, connection, now)
        if topic_id is None:
            return self._held is None and not self._routes.asking
        problem = unsupported(batch, connection.dialect, allow_unsafe=self._allow_unsafe)
        if problem:
            self._refuse_unsent(batch.frame, batch.topic, problem, now)
            return self._outbox.failure is None
        stored = batch.stored
        if not self._waiting:
            self._answer_due = now + self._outbox.limits.ack_timeout
        self._waiting[stored.batch_id] = batch
        packed = compress(stored.records, self._compression, connection.dialect)
        connection.ingest(
            stored.batch_id,
            stored.timestamp_ns,
            stored.record_count,
            topic_id,
            stored.records if packed is None else packed,
            flags=Flag.BATCH_MODE if packed is None else Flag.BATCH_MODE | Flag.COMPRESSED,
        )
        return True

    def _route(self, batch: OutgoingBatch, connection: Connection, now: float) -> int | None:
        number = batch.stored.topic_number
        known = self._routes.get(number)
        if known is not None:
            return known
        topic = self._metadata.topic(number)
        if topic is None:
            text = f"the slot does not know topic {number}: its metadata was damaged"
            self._refuse_unsent(batch.frame, None, text, now)
            return None
        batch.topic = topic.name.decode(errors="replace") or f"#{topic.topic_id}"
        self._held = batch
        if not self._waiting:
            self._routes.ask(topic, connection, now, self._routed)
        found = self._routes.get(number)
        if found is not None:
            self._held = None
        return found

    def _routed(self, missing: TopicMissing | None, now: float) -> None:
        """Take what a look at the server's topics gave; `fill` goes on by itself."""
        if missing is None or self._held is None:
            return
        if missing.hold:
            self._paused_until = now + self._retry.next_delay()
            if missing.news:
                self._outbox.events.append(Notice(missing.text))
            return
        batch, self._held = self._held, None
        self._refuse_unsent(batch.frame, batch.topic, missing, now)

    def _refuse_unsent(
        self, frame: Outgoing, topic: str | None, why: TopicMissing | str, now: float
    ) -> None:
        if isinstance(why, str):
            why = TopicMissing(why)
        rejection = Rejection(
            category=why.category,
            message=why.text,
            first_fsn=frame.fsn,
            last_fsn=frame.fsn,
            table=topic,
        )
        policy = Policy.DEAD_LETTER if why.bury else None
        self._obey(self._outbox.rejected(rejection, now, policy=policy), why.text, now)

    def _obey(self, then: AfterRejection, text: str, now: float) -> None:
        if then is AfterRejection.HALT:
            assert self._outbox.failure is not None
            self.halt(self._outbox.failure, now)
        elif then is not AfterRejection.CONTINUE:
            raise RemoteProtocolError(f"a frame was rejected and is sent again: {text}")

    # What the connection tells

    def acked(self, batch_id: int, now: float) -> None:
        """Take an acknowledgement; one that names nothing that was sent ends the connection."""
        batch = self._waiting.pop(batch_id, None)
        if batch is None:
            if batch_id not in self._answered:
                text = f"the server acknowledged batch {batch_id:#x}, which was never sent (SF-35)"
                raise RemoteProtocolError(text)
            return
        self._answered.append(batch_id)
        self._answer_due = now + self._outbox.limits.ack_timeout
        self._window.grow()
        self._retry.reset()
        self._outbox.settled(batch.frame.fsn, now)

    def slow_down(self, now: float) -> None:
        """Halve the window (LWP section 4.4)."""
        del now
        self._window.halve(len(self._waiting))

    def refused(self, error: ServerError, now: float) -> None:
        """Take an ErrorResponse: about the batch it names, or about one of those in flight."""
        batch_id = error.details.get("batch_id")
        if isinstance(batch_id, int):
            if batch_id in self._waiting:
                self._judge(batch_id, error, now)
        elif len(self._waiting) == 1:
            self._judge(next(iter(self._waiting)), error, now)
        elif self._waiting:
            self._suspect(error, now)
        else:
            raise RemoteProtocolError(f"the server sent an error that answers no request: {error}")

    def _judge(self, batch_id: int, error: ServerError, now: float) -> None:
        batch = self._waiting.pop(batch_id)
        self._answered.append(batch_id)
        if isinstance(error, NotLeader):
            raise RemoteProtocolError(str(error)) from error
        if isinstance(error, TopicNotFound | TopicDeleted):
            self._routes.drop(batch.stored.topic_number)
            self._outbox.again(batch.frame.fsn)
        elif error.retryable:
            self._pause(error, now)
            self._outbox.again(batch.frame.fsn)
        else:
            rejection = Rejection(
                category=category_of(error),
                message=str(error),
                first_fsn=batch.frame.fsn,
                last_fsn=batch.frame.fsn,
                status=int(error.code),
                table=batch.topic,
            )
            self._obey(self._outbox.rejected(rejection, now), str(error), now)

    def _pause(self, error: ServerError, now: float) -> None:
        wait = error.retry_after if isinstance(error, RateLimited) else None
        self._paused_until = now + max(wait or 0.0, self._retry.next_delay())
        self._outbox.events.append(Notice(f"a frame is sent again: {error}"))

    def _suspect(self, error: ServerError, now: float) -> None:
        """Stop sending and find out which frame a text error was about (AMB-10).

        Behind two keepalives every frame that was taken is acknowledged. The others go out again
        one by one, so that the next error is about the only one on the wire.
        """
        if self._doubt is None:
            self._doubt = error
            self._pass_barrier(_BARRIERS, now)

    def _pass_barrier(self, left: int, now: float) -> None:
        if self._doubt is None or self._connection is None:
            return
        if left:
            self._connection.ping(now, lambda at: self._pass_barrier(left - 1, at))
            return
        self._doubt = None
        self._answered.extend(self._waiting)
        self._waiting.clear()
        self._held = None
        self._outbox.be_careful()

    # Time

    def next_deadline(self) -> float:
        """Return when a pause ends."""
        paused = self._paused_until if self._paused_until > -math.inf else math.inf
        answer = self._answer_due if self._waiting else math.inf
        return min(paused, answer, self._outbox.next_deadline())

    def handle_timeout(self, now: float) -> None:
        """End a pause, and look for frames: what that settles is announced with this step."""
        if now >= self._paused_until:
            self._paused_until = -math.inf
        self._outbox.handle_timeout(now)
        connection = self._connection
        if connection is None or connection.fault is not None:
            return
        if self._waiting and now >= self._answer_due:
            seconds = self._outbox.limits.ack_timeout
            connection.fault = ConnectionLost(f"nothing was acknowledged for {seconds:.1f} s")
        else:
            self.fill(connection, now)

    # The end

    def close(self, now: float) -> None:
        """Nothing to finish but what is there."""

    def abort(self, error: LanceError, now: float) -> None:
        """Send nothing more; frames stay in the journal."""
        del now
        self._outbox.failed(error)


def _nobody(error: LanceError, now: float) -> None:
    raise AssertionError(f"no session to halt at {now}: {error}")
