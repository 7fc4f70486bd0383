"""Records in: fetched ahead of the application, across any cut (LWP section 5.8, AMB-19).

One Fetch is outstanding at a time, and none is sent while enough data waits for the
application, so memory is bounded by ``prefetch_bytes`` and one answer. At the end of the log
the server is asked to push, where it does (AMB-21); when the application falls behind, the
subscription is ended and fetching goes on.

Wherever reading is taken up again, after a lost connection or from a stored offset, the
records before that place are read once more and compared first (AMB-30, AMB-31).
"""

import math
from collections.abc import Callable
from typing import Final

from lance_sdk._core.acked import commit_call
from lance_sdk._core.answer import Answer
from lance_sdk._core.answers import AnswersOnly
from lance_sdk._core.asking import Asking
from lance_sdk._core.backoff import Backoff
from lance_sdk._core.calls import Call, Caller
from lance_sdk._core.connection import Connection
from lance_sdk._core.course import Course
from lance_sdk._core.detour import Detour
from lance_sdk._core.events import Event, Fetched, Notice
from lance_sdk._core.fetch_settings import FetchSettings, Moment, Start
from lance_sdk._core.lookup import CommitLookup
from lance_sdk._core.outcome import Outcome
from lance_sdk._core.proof import Evidence, Proof
from lance_sdk._core.subscription import Phase, Subscription
from lance_sdk._core.supply import Supply
from lance_sdk._core.trouble import changed, no_push, no_times
from lance_sdk._tree import LanceError
from lance_sdk.errors import InvalidPayload, RemoteProtocolError, ServerError
from lance_sdk.types import RecordBatch
from lance_spec.bodies import TopicInfo
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command

_ON_THE_WAY: Final = 64 * 1024 * 1024
"""Bytes that may still be pushed after the subscription was ended: more than any system's
socket buffers hold."""


class Fetcher(AnswersOnly):
    """The application of a consumer's session.

    Args:
        start: where to begin.
        settings: how to fetch.
        progress: called whenever data arrives, to reset the session's backoff.
        retry: delays after errors and CATCHING_UP.
        events: where gates are announced.

    Attributes:
        topic: what the server told of the topic on the last connection, if it was asked.
        fetches: requests sent so far.
        pushes: answers that were pushed so far.
        paused: whether nothing is handed out.
        calls: control requests beside the fetching, for example commits.
    """

    def __init__(
        self,
        start: Start,
        settings: FetchSettings,
        *,
        progress: Callable[[], object],
        retry: Backoff,
        events: list[Event],
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._events = events
        self._asking = Asking(settings.topic_id, self._on_error, self.fail)
        self._course = Course(settings, retry, events)
        self._push = Subscription(
            settings.subscriber,
            on_push=self._on_push,
            on_begun=self._on_begun,
            on_refused=self._on_push_refused,
        )
        self._may_push = False
        self._held = settings.held
        self._gate: Outcome | None = None
        self._lookup: CommitLookup | None = None
        self._closing = False
        self._push_dialect = SPECIFIED
        self.topic: TopicInfo | None = None
        self.fetches = 0
        self.pushes = 0
        self.paused = False
        self.calls = Caller(timeout=settings.request_timeout, progress=progress, events=events)
        self._course.seek(start)

    def __repr__(self) -> str:
        return f"<Fetcher {self._course!r} {self._push!r}>"

    # What the face calls

    def begin(self, where: Start, evidence: Evidence | None, now: float) -> None:
        """Begin to fetch, where that was held up; the records before may have to be proved."""
        self._held = False
        self.seek(where, now)
        self._course.proof = None if evidence is None else Proof(evidence)

    def seek(self, where: Start, now: float) -> None:
        """Go on from somewhere else; what was fetched ahead is dropped."""
        self._asking.forget()
        self._push.end(now, drop=True)
        self._course.seek(where)

    def look_up(self, consumer_id: int) -> CommitLookup:
        """Ask the server how far a consumer has come; while that is held up (AMB-36)."""
        assert self._held, "a subscription of its own may stand in the way later"
        self._lookup = CommitLookup(consumer_id, self._events)
        return self._lookup

    def commit(self, consumer_id: int, offset: int, now: float) -> Call:
        """Commit an offset at the server (LWP section 5.14)."""
        call = commit_call(self._asking.topic_id, consumer_id, offset)
        self.calls.submit(call, now)
        return call

    def take(self) -> RecordBatch | None:
        """Take the next batch, if one is there."""
        return None if self.paused else self._course.supply.take()

    def pause(self, rest: RecordBatch | None, now: float) -> None:
        """Hand nothing out and fetch nothing; ``rest`` was handed out and goes back."""
        self.paused = True
        self._push.end(now)
        if rest is not None:
            self._course.supply.put_back(rest)

    def resume(self) -> None:
        """Go on after a pause."""
        self.paused = False
        self._open_gate()

    def hold_back(self, now: float) -> None:
        """Have nothing pushed for now: enough of other topics waits to be taken."""
        self._push.end(now)

    @property
    def supply(self) -> Supply:
        """What was received, and waits to be taken."""
        return self._course.supply

    @property
    def end(self) -> int | None:
        """Offset behind the last byte of the log, as far as it is known."""
        return self._course.end

    @property
    def error(self) -> LanceError | None:
        """Why there will be no more records; raised once the buffered ones are taken."""
        return self._course.error

    @property
    def detour(self) -> Detour | None:
        """What is to be read in another dialect now (AMB-27)."""
        return self._course.detour

    @property
    def pushing(self) -> bool:
        """Whether the server pushes at the moment."""
        return self._push.phase is Phase.ACTIVE

    @property
    def ended(self) -> bool:
        """Whether everything up to the end was taken (``stop_at_end``)."""
        return self._course.complete and not self._course.supply

    @property
    def offset(self) -> int | None:
        """Offset of the next record that `take` will give, once it is known."""
        known = self._course.known and not self._held
        return self._course.supply.offset if known else None

    def gate(self) -> Outcome:
        """Return an outcome that settles when there is something to take, or to raise."""
        if self._gate is None or self._gate.done:
            self._gate = Outcome()
        return self._gate

    # What the session calls

    @property
    def drained(self) -> bool:
        """A consumer that closes leaves nothing behind."""
        return self._closing

    def ready(self, connection: Connection, topic: TopicInfo | None, now: float) -> None:
        """Use this connection; refuse a topic that is not the one it was (AMB-30)."""
        del now
        self._may_push = self._settings.mode != "poll" and connection.dialect.push
        if self._settings.mode == "push" and not self._may_push and self.detour is None:
            raise no_push(f"of dialect {connection.dialect.name!r}")
        if topic is None:
            return
        before, self.topic = self.topic, topic
        if before is not None and _identity(before) != _identity(topic):
            raise changed(topic, self._course.supply.pieces.offset)
        self._asking.topic_id = topic.id

    def fill(self, connection: Connection, now: float) -> None:
        """Ask for the end, for data, for pushes, or for nothing."""
        self.calls.fill(connection, now)
        if self._lookup is not None and not self._lookup.done:
            self._lookup.fill(connection, self._asking.topic_id, now)
        course = self._course
        if course.error is not None or now < course.resume_at or self._held:
            return
        if self._push.phase is not Phase.NONE:
            self._look_after_push(now)
        elif course.to_time is not None:
            self._ask_time(connection, course.to_time, now)
        elif course.proof is not None:
            self._ask_proof(connection, course.proof, now)
        else:
            self._ask_end_and_data(connection, now)

    def _look_after_push(self, now: float) -> None:
        if self._course.supply.buffered >= self._settings.prefetch_bytes:
            self._push.end(now)
        self._push.check(now)

    def _ask_end_and_data(self, connection: Connection, now: float) -> None:
        if self._asking.end is None and self._wants_end(now):
            self._asking.fetch_end(connection, self._on_end, now)
        if self._asking.data is not None or self.paused or not self._course.wants_data:
            return
        if self._asking.end is None and self._wants_push():
            self._subscribe(connection, now)
        else:
            self._ask_data(connection, now)

    def _wants_end(self, now: float) -> bool:
        course = self._course
        if course.to_end or course.wants_stop:
            return True
        streaming = self._asking.data is None and course.wants_data and not course.at_tail
        return streaming and course.end_is_old(now)

    def _wants_push(self) -> bool:
        at_tail = self._course.at_tail and not self._course.supply.pieces.held
        return at_tail and self._may_push and self._push.works and not self._settings.stop_at_end

    def _subscribe(self, connection: Connection, now: float) -> None:
        self._course.at_tail = False
        offset, size = self._course.supply.pieces.offset, self._settings.max_fetch_bytes
        self._push_dialect = connection.dialect
        self._push.begin(connection, self._asking.topic_id, offset, size, now)

    def _ask_data(self, connection: Connection, now: float) -> None:
        asked = self._course.next_fetch(connection.dialect)

        def on_data(answer: Answer, at: float) -> None:
            size = len(answer.data)
            if size:
                self._progress()
            self._course.take_data(answer, asked, at)
            self._events.append(Fetched(asked.start, size, at - now, self.end))
            self._judge_push(size)
            self._open_gate()

        self._asking.fetch(connection, asked.start, asked.size, on_data, now)
        self.fetches += 1

    def _judge_push(self, found: int) -> None:
        """See whether a server that was to push has kept something back."""
        worked = self._push.works
        self._push.caught_up(found=found)
        if not worked or self._push.works:
            return
        if self._settings.mode == "push":
            self._course.fail(no_push("that takes Subscribe and then sends nothing"))
        else:
            text = "the server takes Subscribe and does not push: polling instead"
            self._events.append(Notice(text, "push"))

    def _ask_proof(self, connection: Connection, proof: Proof, now: float) -> None:
        def on_data(answer: Answer, at: float) -> None:
            self._course.take_proof(proof, answer, at)
            self._open_gate()

        if self._asking.data is None:
            size = min(proof.missing, connection.dialect.max_fetch_data)
            self._asking.fetch(connection, proof.next_fetch, size, on_data, now)
            self.fetches += 1

    def _ask_time(self, connection: Connection, moment: Moment, now: float) -> None:
        def refused(error: ServerError, at: float) -> None:
            if isinstance(error, InvalidPayload):
                self.fail(no_times(error))
            else:
                self._on_error(error, at)

        if self._asking.data is None:
            time_ns, place = moment.time_ns, self._course.place
            self._asking.offset_for_time(
                connection, time_ns, lambda offset, _: place(offset), refused, now
            )

    def _on_end(self, answer: Answer, now: float) -> None:
        self._course.take_end(answer, now)
        self._open_gate()

    def _on_error(self, error: ServerError, now: float) -> None:
        try:
            self._course.take_error(error, now)
        finally:
            self._open_gate()

    # Pushes

    def _on_begun(self, offset: int, now: float) -> None:
        if offset != self._course.supply.pieces.next_fetch:
            self._push.end(now, drop=True)  # a Fetch will say what is wrong there

    def _on_push(self, payload: memoryview, now: float) -> None:
        if self.supply.buffered > self._settings.prefetch_bytes + _ON_THE_WAY:
            raise RemoteProtocolError("the server goes on pushing although it was asked to stop")
        start = self._course.supply.pieces.next_fetch
        answer = self._asking.read(Command.FETCH_RESPONSE, payload, self._push_dialect)
        if answer is not None:
            self.pushes += 1
            self._progress()
            self._course.take_data(answer, None, now)
            self._events.append(Fetched(start, len(answer.data), None, self.end))
        self._open_gate()

    def _on_push_refused(self, error: ServerError, now: float) -> None:
        if error.retryable:
            self._on_error(error, now)
            return
        self._push.works = False  # what is really wrong, if anything, the next Fetch will tell
        if self._settings.mode == "push":
            self.fail(no_push(f"that answers {error.message!r}"))

    def refused(self, error: ServerError, now: float) -> None:
        """Take an error that answers no request: it ends the subscription, if there is one."""
        if self._push.phase is Phase.NONE:
            super().refused(error, now)
        else:
            self._push.ended_by_server()
            self._on_error(error, now)

    # Ends

    def fail(self, error: LanceError) -> None:
        """End the stream: what is buffered can still be taken, then ``error`` is raised."""
        self._course.fail(error)
        self._open_gate()

    def _open_gate(self) -> None:
        something = self._course.supply and not self.paused
        over = self.error is not None or self.ended
        if (something or over) and self._gate is not None and self._gate.settle():
            self._events.append(self._gate)

    def lost(self, now: float) -> None:
        """Forget what was asked: it is asked again on the next connection, after a comparison."""
        self._asking.forget()
        self._push.lost()
        self.calls.lost(now)
        if self._lookup is not None:
            self._lookup.lost()
        self._course.lost()

    def next_deadline(self) -> float:
        """Return when to ask again after a pause."""
        resume_at = self._course.resume_at
        pause = resume_at if resume_at > -math.inf else math.inf
        return min(pause, self._push.next_deadline(), self.calls.next_deadline())

    def handle_timeout(self, now: float) -> None:
        """End a pause."""
        self.calls.handle_timeout(now)
        if now >= self._course.resume_at:
            self._course.resume_at = -math.inf

    def close(self, now: float) -> None:
        """Ask for nothing more, and let go who waits."""
        self._closing = True
        self._course.supply.clear()
        self.calls.close(now)
        if self._gate is not None and self._gate.settle():
            self._events.append(self._gate)

    def abort(self, error: LanceError, now: float) -> None:
        """End the stream with this error."""
        self.calls.abort(error, now)
        if self._lookup is not None and self._lookup.settle(0, error):
            self._events.append(self._lookup)
        self.fail(error)


def _identity(topic: TopicInfo) -> tuple[int, int, int]:
    return topic.id, topic.created_at, topic.topic_epoch
