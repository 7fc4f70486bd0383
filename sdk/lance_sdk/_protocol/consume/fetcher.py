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

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.connection import Connection
from lance_sdk._protocol.consume.committed_lookup import CommitLookup
from lance_sdk._protocol.consume.consume_errors import HostLagsError, changed, no_push, no_times
from lance_sdk._protocol.consume.consumer_acks import commit_call
from lance_sdk._protocol.consume.dialect_fallback import DialectFallback
from lance_sdk._protocol.consume.fetch_buffer import FetchBuffer
from lance_sdk._protocol.consume.fetch_requests import FetchRequests
from lance_sdk._protocol.consume.fetch_response import DecodedFetch
from lance_sdk._protocol.consume.fetch_settings import FetchSettings, Moment, Start
from lance_sdk._protocol.consume.fetch_state import FetchState
from lance_sdk._protocol.consume.relocation import Relocation
from lance_sdk._protocol.consume.subscription import Subscription, SubscriptionPhase
from lance_sdk._protocol.consume.truncation_check import LogFingerprint, TruncationCheck
from lance_sdk._protocol.events import Event, Fetched, Notice
from lance_sdk._protocol.read_only_handler import ReadOnlyHandler
from lance_sdk._protocol.request_tracker import PendingRequest, RequestTracker
from lance_sdk._protocol.situation import Situation
from lance_sdk.errors import InvalidPayload, NotLeader, RemoteProtocolError, ServerError
from lance_sdk.types import RecordBatch
from lance_spec.bodies import TopicInfo
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command

_MOST_FAULTS: Final = 3
_ON_THE_WAY: Final = 64 * 1024 * 1024
"""Bytes that may still be pushed after the subscription was ended: more than any system's
socket buffers hold."""


class Fetcher(ReadOnlyHandler):
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
        situation: tells how the session stands.
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
        self._fetch_requests = FetchRequests(settings.topic_id, self._on_error, self.fail)
        self._fetch_state = FetchState(settings, retry, events)
        self._push = Subscription(
            settings.subscriber,
            on_push=self._on_push,
            on_begun=self._on_begun,
            on_refused=self._on_push_refused,
        )
        self._may_push = False
        self._held = settings.held
        self._gate: Completion | None = None
        self._lookup: CommitLookup | None = None
        self._closing = False
        self._push_dialect = SPECIFIED
        self.topic: TopicInfo | None = None
        self.fetches = 0
        self.pushes = 0
        self.paused = False
        self.calls = RequestTracker(
            timeout=settings.request_timeout, progress=progress, events=events
        )
        self.situation: Callable[[], Situation] = Situation
        self._faults = 0
        """Connections in a row that ended because the server broke the protocol."""
        self._fetch_state.seek(start)

    def __repr__(self) -> str:
        return f"<Fetcher {self._fetch_state!r} {self._push!r}>"

    # What the client calls

    def begin(self, where: Start, fingerprint: LogFingerprint | None, now: float) -> None:
        """Begin to fetch, where that was held up; the records before may have to be proved."""
        self._held = False
        self.seek(where, now)
        self._fetch_state.truncation_check = (
            None if fingerprint is None else TruncationCheck(fingerprint)
        )

    def seek(self, where: Start, now: float) -> None:
        """Go on from somewhere else; what was fetched ahead is dropped."""
        self._fetch_requests.forget()
        self._push.end(now, drop=True)
        self._fetch_state.seek(where)

    def look_up(self, consumer_id: int) -> CommitLookup:
        """Ask the server how far a consumer has come; while that is held up (AMB-36)."""
        assert self._held, "a subscription of its own may stand in the way later"
        self._lookup = CommitLookup(consumer_id, self._events)
        return self._lookup

    def commit(self, consumer_id: int, offset: int, now: float) -> PendingRequest:
        """Commit an offset at the server (LWP section 5.14)."""
        call = commit_call(self._fetch_requests.topic_id, consumer_id, offset)
        self.calls.submit(call, now)
        return call

    def reclaim(self, arrived: RecordBatch | None) -> None:
        """Have the batch that was taken last back, unless it is the one that has arrived."""
        self._fetch_state.fetch_buffer.reclaim(arrived)

    def take(self) -> RecordBatch | None:
        """Take the next batch, if one is there."""
        return None if self.paused else self._fetch_state.fetch_buffer.take()

    def pause(self, rest: RecordBatch | None, now: float) -> None:
        """Hand nothing out and fetch nothing; ``rest`` was handed out and goes back."""
        self.paused = True
        self._push.end(now)
        if rest is not None:
            self._fetch_state.fetch_buffer.put_back(rest)

    def resume(self) -> None:
        """Go on after a pause."""
        self.paused = False
        self._open_gate()

    def hold_back(self, now: float) -> None:
        """Have nothing pushed for now: enough of other topics waits to be taken."""
        self._push.end(now)

    @property
    def fetch_buffer(self) -> FetchBuffer:
        """What was received, and waits to be taken."""
        return self._fetch_state.fetch_buffer

    @property
    def end(self) -> int | None:
        """Offset after the last byte of the log, as far as it is known."""
        return self._fetch_state.end

    @property
    def error(self) -> LanceError | None:
        """Why there will be no more records; raised once the buffered ones are taken."""
        return self._fetch_state.error

    @property
    def fallback(self) -> DialectFallback | None:
        """What is to be read in another dialect now (AMB-27)."""
        return self._fetch_state.fallback

    @property
    def pushing(self) -> bool:
        """Whether the server pushes at the moment."""
        return self._push.phase is SubscriptionPhase.ACTIVE

    @property
    def ended(self) -> bool:
        """Whether everything up to the end was taken (``stop_at_end``)."""
        return self._fetch_state.complete and not self._fetch_state.fetch_buffer

    @property
    def offset(self) -> int | None:
        """Offset of the next record that `take` will give, once it is known."""
        known = self._fetch_state.known and not self._held
        return self._fetch_state.fetch_buffer.offset if known else None

    def gate(self) -> Completion:
        """Return an outcome that settles when there is something to take, or to raise."""
        if self._gate is None or self._gate.done:
            self._gate = Completion()
        return self._gate

    # What the session calls

    @property
    def drained(self) -> bool:
        """A consumer that closes leaves nothing behind."""
        return self._closing

    def ready(self, connection: Connection, topic: TopicInfo | None, now: float) -> None:
        """Use this connection; refuse a topic that is not the one it was (AMB-30)."""
        del now
        self._fetch_state.stable = connection.dialect.strict
        self._may_push = self._settings.mode != "poll" and connection.dialect.push
        if self._settings.mode == "push" and not self._may_push and self.fallback is None:
            raise no_push(f"of dialect {connection.dialect.name!r}")
        number = self._fetch_requests.topic_id if topic is None else topic.id
        if not number and not connection.dialect.strict:
            text = "records in topic 0 of a published server cannot be read (AMB-34)"
            self._events.append(Notice(f"{text}: name a topic", "topic-0"))
        if topic is None:
            return
        before, self.topic = self.topic, topic
        if before is not None and _identity(before) != _identity(topic):
            raise changed(topic, self._fetch_state.fetch_buffer.pieces.offset)
        self._fetch_requests.topic_id = topic.id

    def fill(self, connection: Connection, now: float) -> None:
        """Ask for the end, for data, for pushes, or for nothing."""
        self.calls.fill(connection, now)
        if self._lookup is not None and not self._lookup.done:
            self._lookup.fill(connection, self._fetch_requests.topic_id, now)
        fetch_state = self._fetch_state
        if fetch_state.error is not None or now < fetch_state.resume_at or self._held:
            return
        if self._push.phase is not SubscriptionPhase.NONE:
            self._look_after_push(now)
        elif fetch_state.to_time is not None:
            self._ask_time(connection, fetch_state.to_time, now)
        elif fetch_state.relocation is not None:
            self._ask_relocation(connection, fetch_state.relocation, now)
        elif fetch_state.truncation_check is not None:
            self._ask_truncation_check(connection, fetch_state.truncation_check, now)
        else:
            self._ask_end_and_data(connection, now)

    def _look_after_push(self, now: float) -> None:
        if self._fetch_state.fetch_buffer.buffered >= self._settings.prefetch_bytes:
            self._push.end(now)
        self._push.check(now)

    def _ask_end_and_data(self, connection: Connection, now: float) -> None:
        if self._fetch_requests.end is None and self._wants_end(now):
            self._fetch_requests.fetch_end(connection, self._on_end, now)
        if self._fetch_requests.data is not None or self.paused or not self._fetch_state.wants_data:
            return
        if self._fetch_requests.end is None and self._wants_push():
            self._subscribe(connection, now)
        else:
            self._ask_data(connection, now)

    def _wants_end(self, now: float) -> bool:
        fetch_state = self._fetch_state
        if fetch_state.to_end or fetch_state.wants_stop:
            return True
        streaming = (
            self._fetch_requests.data is None and fetch_state.wants_data and not fetch_state.at_tail
        )
        return streaming and fetch_state.end_is_old(now)

    def _wants_push(self) -> bool:
        at_tail = self._fetch_state.at_tail and not self._fetch_state.fetch_buffer.pieces.held
        return at_tail and self._may_push and self._push.works and not self._settings.stop_at_end

    def _subscribe(self, connection: Connection, now: float) -> None:
        self._fetch_state.at_tail = False
        offset, size = self._fetch_state.fetch_buffer.pieces.offset, self._settings.max_fetch_bytes
        self._push_dialect = connection.dialect
        self._push.begin(connection, self._fetch_requests.topic_id, offset, size, now)

    def _ask_data(self, connection: Connection, now: float) -> None:
        asked = self._fetch_state.next_fetch(connection.dialect)

        def on_data(answer: DecodedFetch, at: float) -> None:
            size = len(answer.data)
            if size:
                self._progress()
                self._faults = 0
            self._fetch_state.take_data(answer, asked, at)
            self._events.append(Fetched(asked.start, size, at - now, self.end))
            self._judge_push(size)
            self._open_gate()

        self._fetch_requests.fetch(connection, asked.start, asked.size, on_data, now)
        self.fetches += 1

    def _judge_push(self, found: int) -> None:
        """See whether a server that was to push has kept something back."""
        worked = self._push.works
        self._push.caught_up(found=found)
        if not worked or self._push.works:
            return
        if self._settings.mode == "push":
            self._fetch_state.fail(no_push("that takes Subscribe and then sends nothing"))
        else:
            text = "the server takes Subscribe and does not push: polling instead"
            self._events.append(Notice(text, "push"))

    def _ask_truncation_check(
        self, connection: Connection, check: TruncationCheck, now: float
    ) -> None:
        def on_data(answer: DecodedFetch, at: float) -> None:
            self._fetch_state.take_truncation_check(check, answer, at)
            self._open_gate()

        if self._fetch_requests.data is None:
            size = min(check.missing, connection.dialect.max_fetch_data)
            self._fetch_requests.fetch(connection, check.next_fetch, size, on_data, now)
            self.fetches += 1

    def _ask_relocation(self, connection: Connection, search: Relocation, now: float) -> None:
        def on_data(answer: DecodedFetch, _at: float) -> None:
            self._fetch_state.take_relocation(search, answer)
            self._open_gate()

        if self._fetch_requests.data is None:
            size = min(search.missing, connection.dialect.max_fetch_data)
            self._fetch_requests.fetch(connection, search.next_fetch, size, on_data, now)
            self.fetches += 1

    def _ask_time(self, connection: Connection, moment: Moment, now: float) -> None:
        def refused(error: ServerError, at: float) -> None:
            if isinstance(error, InvalidPayload):
                self.fail(no_times(error))
            else:
                self._on_error(error, at)

        if self._fetch_requests.data is None:
            time_ns, place = moment.time_ns, self._fetch_state.place
            self._fetch_requests.offset_for_time(
                connection, time_ns, lambda offset, _: place(offset), refused, now
            )

    def _on_end(self, answer: DecodedFetch, now: float) -> None:
        self._fetch_state.take_end(answer, now)
        self._open_gate()

    def _on_error(self, error: ServerError, now: float) -> None:
        try:
            self._fetch_state.take_error(error, now)
        finally:
            self._open_gate()

    # Pushes

    def _on_begun(self, offset: int, now: float) -> None:
        if offset != self._fetch_state.fetch_buffer.pieces.next_fetch:
            self._push.end(now, drop=True)  # a Fetch will say what is wrong there

    def _on_push(self, payload: memoryview, now: float) -> None:
        if self.fetch_buffer.buffered > self._settings.prefetch_bytes + _ON_THE_WAY:
            raise RemoteProtocolError("the server goes on pushing although it was asked to stop")
        start = self._fetch_state.fetch_buffer.pieces.next_fetch
        answer = self._fetch_requests.read(Command.FETCH_RESPONSE, payload, self._push_dialect)
        if answer is not None:
            self.pushes += 1
            self._progress()
            self._fetch_state.take_data(answer, None, now)
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
        if self._push.phase is SubscriptionPhase.NONE:
            super().refused(error, now)
        else:
            self._push.ended_by_server()
            self._on_error(error, now)

    # Ends

    def fail(self, error: LanceError) -> None:
        """End the stream: what is buffered can still be taken, then ``error`` is raised."""
        self._fetch_state.fail(error)
        self._open_gate()

    def _open_gate(self) -> None:
        something = self._fetch_state.fetch_buffer and not self.paused
        over = self.error is not None or self.ended
        if (something or over) and self._gate is not None and self._gate.settle():
            self._events.append(self._gate)

    def lost(self, now: float) -> None:
        """Forget what was asked: it is asked again on the next connection, after a comparison."""
        self._judge_loss(self.situation().cause)
        self._fetch_requests.forget()
        self._push.lost()
        self.calls.lost(now)
        if self._lookup is not None:
            self._lookup.lost()
        self._fetch_state.lost()

    def _judge_loss(self, cause: Exception | None) -> None:
        """Give up a server whose answers break the protocol: asked again, they would again."""
        if not isinstance(cause, RemoteProtocolError) or isinstance(cause, HostLagsError):
            return
        if isinstance(cause.__cause__, NotLeader):
            return
        self._faults += 1
        if self._faults >= _MOST_FAULTS:
            place = self._fetch_state.fetch_buffer.pieces.next_fetch
            self.fail(
                RemoteProtocolError(
                    f"{self.situation().server} broke the protocol {self._faults} times in a row "
                    f"where it was asked for offset {place} of {self._settings.label!r}: {cause}"
                )
            )

    def next_deadline(self) -> float:
        """Return when to ask again after a pause."""
        resume_at = self._fetch_state.resume_at
        pause = resume_at if resume_at > -math.inf else math.inf
        return min(pause, self._push.next_deadline(), self.calls.next_deadline())

    def handle_timeout(self, now: float) -> None:
        """End a pause."""
        self.calls.handle_timeout(now)
        if now >= self._fetch_state.resume_at:
            self._fetch_state.resume_at = -math.inf

    def close(self, now: float) -> None:
        """Ask for nothing more, and let go who waits."""
        self._closing = True
        self._fetch_state.fetch_buffer.clear()
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
