"""Many topics over one connection: a fetcher for each, side by side.

Requests of all topics share the connection and are answered in order. Each topic has its own
position, its own pauses and its own error: one that cannot be read holds up no other.

Nothing is fetched on a connection on which anything is pushed (AMB-21). So topics are pushed
while all of them are at their ends; when one of them has to be fetched, the pushes of all are
ended first, and those that are at their ends are polled until none is left that is behind.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, TypeAlias, cast

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.connection import Connection, Request
from lance_sdk._protocol.consume.dialect_fallback import DialectFallback
from lance_sdk._protocol.consume.fetch_response import read_answer
from lance_sdk._protocol.consume.fetch_settings import Start
from lance_sdk._protocol.consume.fetcher import Fetcher
from lance_sdk._protocol.consume.subscription import SubscriptionPhase
from lance_sdk._protocol.events import Event
from lance_sdk._protocol.request_tracker import PendingRequest, RequestTracker
from lance_sdk.errors import (
    NotLeader,
    RemoteProtocolError,
    ServerError,
    TopicChanged,
    TopicDeleted,
    TopicNotFound,
    Unsupported,
)
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_sdk.types import RecordBatch
from lance_spec.bodies import TopicInfo, decode_topic
from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import Command
from lance_spec.limits import DEFAULT_TOPIC_ID, END_OFFSET
from lance_spec.messages.lwp import Fetch, GetTopic

Push: TypeAlias = Callable[[int, memoryview, float], None]
_NO_TOPIC: Final = (TopicNotFound, TopicDeleted)
_STAY_SECONDS: Final = 1.0
"""How long a server is read, at least, while another one has some of the topics."""


class Intent(Enum):
    """What the fetcher of a topic would do with the connection."""

    FETCH = "fetch, or wait for the answer"
    PUSH = "have records pushed"
    REST = "nothing for now"


class TopicFetcher(Fetcher):
    """The fetcher of one topic among others.

    Attributes:
        on_ready: called when there is something to take, to raise, or to learn.
        finding: whether the place to begin at is still to be told to the application.
        may_subscribe: whether the connection can be used for pushes now.
    """

    on_ready: Callable[[], object] = staticmethod(lambda: None)
    finding = False
    may_subscribe = True

    def intent(self, now: float) -> Intent:
        """Return what it would do with the connection."""
        fetch_state, requests = self._fetch_state, self._fetch_requests
        if self._push.phase is not SubscriptionPhase.NONE:
            return Intent.PUSH
        if requests.data is not None or requests.end is not None:
            return Intent.FETCH
        if fetch_state.error is not None or now < fetch_state.resume_at or self._held:
            return Intent.REST
        if (
            fetch_state.to_time is not None
            or fetch_state.truncation_check is not None
            or self._wants_end(now)
        ):
            return Intent.FETCH
        if self.paused or not fetch_state.wants_data:
            return Intent.REST
        return Intent.PUSH if super()._wants_push() else Intent.FETCH

    @property
    def subscribed(self) -> bool:
        """Whether something may still be pushed on this connection."""
        return self._push.phase is not SubscriptionPhase.NONE

    def _wants_push(self) -> bool:
        return self.may_subscribe and super()._wants_push()

    def _open_gate(self) -> None:
        super()._open_gate()
        something = self.fetch_buffer and not self.paused
        found = self.finding and self.offset is not None
        if something or found or self.error is not None or self.ended:
            self.on_ready()


class CommitFingerprint:
    """What the records before a commit are recognised by (AMB-30).

    Args:
        commit: it has a fingerprint.

    Attributes:
        start: byte offset of the first record.
        length: bytes of the records.
        changed: why they are others, once that is known.
    """

    def __init__(self, commit: Commit) -> None:
        assert commit.fingerprint is not None, "only such a commit can be compared"
        self._commit = commit
        self.start = commit.fingerprint.start
        self.length = commit.fingerprint.length
        self.changed: TopicChanged | None = None

    def matches(self, data: Buffer) -> bool:
        """Whether these bytes are the records."""
        try:
            self._commit.check_records(bytes(data))
        except TopicChanged as changed:
            self.changed = changed
            return False
        return True


class _TopicConnection:
    """A connection as the fetcher of one topic sees it: pushes of that topic are its own."""

    def __init__(self, connection: Connection, topic_id: int, pushes: dict[int, Push]) -> None:
        self._connection = connection
        self._topic_id = topic_id
        self._pushes = pushes
        self._mine: Push | None = None

    @property
    def dialect(self) -> Dialect:
        return self._connection.dialect

    def ask(self, request: Request, now: float) -> None:
        self._connection.ask(request, now)

    @property
    def on_push(self) -> Push | None:
        return self._pushes.get(self._topic_id)

    @on_push.setter
    def on_push(self, push: Push | None) -> None:
        if push is not None:
            self._mine = self._pushes[self._topic_id] = push
        elif self._pushes.get(self._topic_id) == self._mine:
            self._pushes.pop(self._topic_id, None)
        self._connection.on_push = self._pushed if self._pushes else None

    def _pushed(self, topic_id: int, payload: memoryview, now: float) -> None:
        if topic_id == 0:  # a server that pushes and does not name the topic
            if len(self._pushes) > 1:
                raise RemoteProtocolError("the server pushed records and named no topic")
            topic_id = next(iter(self._pushes))
        push = self._pushes.get(topic_id)
        if push is not None:  # else its subscription ended while this was under way
            push(topic_id, payload, now)


class TopicFetch:
    """One topic and how far it is.

    Args:
        topic: the topic.
        fetcher: reads it.

    Attributes:
        line: the connection, as this topic sees it; None while there is none.
        known: whether the server has said on this connection that it is still the same topic.
        asked: whether it was asked to.
        retry_at: when to ask again.
        elsewhere: whether the server has said on this connection that another one has the topic.
        fingerprint: of the records before the commit where it began.
    """

    __slots__ = (
        "asked",
        "elsewhere",
        "fetcher",
        "fingerprint",
        "known",
        "line",
        "retry_at",
        "topic",
    )

    def __init__(self, topic: TopicIdentity, fetcher: TopicFetcher) -> None:
        self.topic = topic
        self.fetcher = fetcher
        self.line: Connection | None = None
        self.fingerprint: CommitFingerprint | None = None
        self.retry_at = -math.inf
        self.known = self.asked = self.elsewhere = False

    @property
    def error(self) -> LanceError | None:
        """Why there will be no more of it, once what is there was taken."""
        if self.fetcher.error is None or (self.fetcher.fetch_buffer and not self.fetcher.paused):
            return None
        changed = None if self.fingerprint is None else self.fingerprint.changed
        return changed or self.fetcher.error

    def lost(self, now: float) -> None:
        """Take note that the connection is gone."""
        self.line, self.retry_at = None, -math.inf
        self.known = self.asked = self.elsewhere = False
        self.fetcher.lost(now)


class MultiFetcher(RequestTracker):
    """The application of a session that reads several topics, and asks about them.

    Args:
        make: makes the fetcher of a topic.
        retry: delays after errors that may pass.
        prefetch_bytes: data of all topics that is held ahead of the application; when it is
            reached, only topics with nothing to take are asked for more.
        timeout: seconds that a call may take.
        progress: called upon every answer.
        events: where outcomes collect.
    """

    def __init__(
        self,
        make: Callable[[TopicIdentity], TopicFetcher],
        retry: Backoff,
        prefetch_bytes: int,
        *,
        timeout: float,
        progress: Callable[[], object],
        events: list[Event],
    ) -> None:
        super().__init__(timeout=timeout, progress=progress, events=events)
        self._make = make
        self._retry = retry
        self._prefetch_bytes = prefetch_bytes
        self._fetches: dict[int, TopicFetch] = {}
        self._order: deque[TopicFetch] = deque()
        self._pushes: dict[int, Push] = {}
        self._gate: Completion | None = None
        self._closing = False

    def __repr__(self) -> str:
        return f"<MultiFetcher topics={len(self._fetches)} calls={super().__repr__()}>"

    # What the application does

    def add(self, topic: TopicIdentity, where: Start, commit: Commit | None, now: float) -> None:
        """Read one more topic, from a place, or after a commit whose records are compared first."""
        self.remove(topic.id, now)
        fetch = TopicFetch(topic, self._make(topic))
        fetch.fetcher.on_ready = self._open
        if commit is not None and commit.fingerprint is not None:
            fetch.fingerprint = CommitFingerprint(commit)
        fetch.fetcher.finding = not isinstance(where, int) and where != "beginning"
        fetch.fetcher.begin(where, fetch.fingerprint, now)
        self._fetches[topic.id] = fetch
        self._order.append(fetch)

    def remove(self, topic_id: int, now: float) -> None:
        """Read a topic no more."""
        fetch = self._fetches.pop(topic_id, None)
        if fetch is not None:
            fetch.fetcher.seek("beginning", now)  # what is under way falls into tombstones
            self._order.remove(fetch)

    def seek(self, topic_id: int, where: Start, now: float) -> None:
        """Go on from somewhere else in a topic, also after its error."""
        fetch = self._fetches[topic_id]
        fetch.fingerprint = None
        fetch.fetcher.finding = not isinstance(where, int) and where != "beginning"
        fetch.fetcher.seek(where, now)

    def fail(self, error: LanceError, topic_id: int | None = None) -> None:
        """End the reading of a topic; without one, of the one that is read in another dialect."""
        fetch = self._detouring if topic_id is None else self._fetches[topic_id]
        if fetch is not None:
            fetch.fetcher.fail(error)

    def submit_all(self, calls: Iterable[PendingRequest], now: float) -> None:
        """Queue calls."""
        for call in calls:
            self.submit(call, now)

    def check(self) -> None:
        """Raise the error of a topic, unless that is paused.

        Raises:
            LanceError: the topic cannot be read on; `seek` may help, `pause` leaves it alone.
        """
        for fetch in self._order:
            if fetch.error is not None and not fetch.fetcher.paused:
                raise fetch.error.with_traceback(None)

    def errors(self) -> dict[TopicIdentity, LanceError]:
        """Return why topics cannot be read on."""
        found = ((fetch.topic, fetch.error) for fetch in self._fetches.values())
        return {topic: error for topic, error in found if error is not None}

    def take(self) -> tuple[TopicIdentity, RecordBatch] | None:
        """Take the next batch of some topic; topics take turns."""
        for _ in range(len(self._order)):
            fetch = self._order[0]
            self._order.rotate(-1)
            if (batch := fetch.fetcher.take()) is not None:
                return fetch.topic, batch
        return None

    def put_back(self, topic_id: int, batch: RecordBatch) -> None:
        """Put what is left of a batch before everything else of its topic."""
        self._fetches[topic_id].fetcher.fetch_buffer.put_back(batch)

    def pause(self, topic_id: int, rest: RecordBatch | None, now: float) -> None:
        """Hand nothing of a topic out, and fetch nothing; ``rest`` goes back."""
        self._fetches[topic_id].fetcher.pause(rest, now)

    def resume(self, topic_id: int) -> None:
        """Go on after a pause."""
        self._fetches[topic_id].fetcher.resume()

    def found(self) -> list[tuple[int, int]]:
        """Return the places that were looked for and found, once each: topic and offset."""
        places = []
        for topic_id, fetch in self._fetches.items():
            if fetch.fetcher.finding and fetch.fetcher.offset is not None:
                fetch.fetcher.finding = False
                places.append((topic_id, fetch.fetcher.offset))
        return places

    def reads(self, topic_id: int) -> bool:
        """Return whether a topic is read."""
        return topic_id in self._fetches

    def fetcher(self, topic_id: int) -> TopicFetcher:
        """Return the fetcher of a topic."""
        return self._fetches[topic_id].fetcher

    def position(self, topic_id: int) -> int | None:
        """Return where the next record of a topic begins; None where it is not read or known."""
        fetch = self._fetches.get(topic_id)
        return None if fetch is None else fetch.fetcher.offset

    def fetchers(self) -> list[TopicFetcher]:
        """Return the fetchers of all topics."""
        return [fetch.fetcher for fetch in self._fetches.values()]

    def paused(self) -> list[TopicIdentity]:
        """Return the topics that are paused."""
        return [fetch.topic for fetch in self._fetches.values() if fetch.fetcher.paused]

    @property
    def ended(self) -> bool:
        """Whether every topic is at its end (``stop_at_end``)."""
        return bool(self._fetches) and all(each.fetcher.ended for each in self._fetches.values())

    def gate(self) -> Completion:
        """Return an outcome that settles when there is something to take, to raise, or to learn."""
        if self._gate is None or self._gate.done:
            self._gate = Completion()
        return self._gate

    def _open(self) -> None:
        if self._gate is not None and self._gate.settle():
            self._events.append(self._gate)

    # What the session calls

    @property
    def drained(self) -> bool:
        """A reader that closes leaves nothing behind."""
        return self._closing

    @property
    def fallback(self) -> DialectFallback | None:
        """What is to be read in another dialect now (AMB-27)."""
        fetch = self._detouring
        return None if fetch is None else fetch.fetcher.fallback

    @property
    def _detouring(self) -> TopicFetch | None:
        return next((fetch for fetch in self._fetches.values() if fetch.fetcher.fallback), None)

    def fill(self, connection: Connection, now: float) -> None:
        """Ask for whatever any topic needs."""
        super().fill(connection, now)
        fetches, detouring = self._fetches.values(), self._detouring
        crowded = (
            sum(each.fetcher.fetch_buffer.buffered for each in fetches) >= self._prefetch_bytes
        )
        chosen = fetches if detouring is None else (detouring,)
        for fetch in chosen:
            if not fetch.known:
                self._introduce(fetch, connection, now)
        known = [fetch for fetch in chosen if fetch.known]
        fetching = any(fetch.fetcher.intent(now) is Intent.FETCH for fetch in known)
        for fetch in fetches:
            if fetching or (crowded and fetch.fetcher.fetch_buffer):
                fetch.fetcher.hold_back(now)
        blocked = fetching and any(fetch.fetcher.subscribed for fetch in fetches)
        for fetch in known:
            fetch.fetcher.may_subscribe = not fetching
            if (
                fetch.line is not None
                and not blocked
                and not (crowded and fetch.fetcher.fetch_buffer)
            ):
                fetch.fetcher.fill(fetch.line, now)

    def _introduce(self, fetch: TopicFetch, connection: Connection, now: float) -> None:
        """See that it is still the topic that it was."""
        if fetch.asked or now < fetch.retry_at or fetch.fetcher.error is not None:
            return
        fetch.asked = True
        fetch.line = cast("Connection", _TopicConnection(connection, fetch.topic.id, self._pushes))
        if fetch.topic.id == DEFAULT_TOPIC_ID:
            self._use(fetch, None, now)
            return

        def known(_code: int, payload: memoryview, at: float) -> None:
            self._use(fetch, decode_topic(payload), at)

        def refused(error: ServerError, at: float) -> None:
            fetch.asked = False
            if isinstance(error, NotLeader):
                self._look_elsewhere(fetch, error, at)
            elif error.retryable:
                fetch.retry_at = at + self._retry.next_delay()
            else:
                fetch.fetcher.fail(_gone(fetch.topic, error))

        payload = GetTopic(topic_id=fetch.topic.id).encode()
        expects = frozenset({Command.TOPIC_RESPONSE})
        connection.ask(Request(Command.GET_TOPIC, payload, expects, known, refused), now)

    def _look_elsewhere(self, fetch: TopicFetch, error: NotLeader, now: float) -> None:
        """Go to the server that has a topic, once there is nothing more to fetch from this one.

        Raises:
            RemoteProtocolError: the session is to go there.
        """
        here = (each for each in self._fetches.values() if each.known)
        if fetch.elsewhere and not any(each.fetcher.intent(now) is Intent.FETCH for each in here):
            raise RemoteProtocolError(str(error)) from error
        fetch.elsewhere = True
        fetch.retry_at = now + max(_STAY_SECONDS, self._retry.next_delay())

    def _use(self, fetch: TopicFetch, topic: TopicInfo | None, now: float) -> None:
        assert fetch.line is not None, "it was asked over it"
        try:
            if topic is not None:
                _check_same(fetch.topic, topic)
            fetch.fetcher.ready(fetch.line, topic, now)
        except LanceError as error:
            fetch.asked = False  # after a seek it is looked at again
            fetch.fetcher.fail(error)
        else:
            fetch.known = True

    def lost(self, now: float) -> None:
        """Forget what was asked; it is asked again on the next connection."""
        super().lost(now)
        self._pushes.clear()
        for fetch in self._fetches.values():
            fetch.lost(now)

    def refused(self, error: ServerError, now: float) -> None:
        """Take an error that answers no request: it ends the subscription to a topic."""
        fetch = self._fetches.get(error.details.get("topic_id", -1))
        if fetch is None:
            super().refused(error, now)
        else:
            fetch.fetcher.refused(error, now)

    def next_deadline(self) -> float:
        """Return when something may be due."""
        due = super().next_deadline()
        for fetch in self._fetches.values():
            waits = fetch.retry_at if not fetch.known and not fetch.asked else -math.inf
            due = min(due, fetch.fetcher.next_deadline(), waits if waits > -math.inf else due)
        return due

    def handle_timeout(self, now: float) -> None:
        """Do what is due."""
        super().handle_timeout(now)
        for fetch in self._fetches.values():
            fetch.fetcher.handle_timeout(now)
            if now >= fetch.retry_at:
                fetch.retry_at = -math.inf

    def close(self, now: float) -> None:
        """Ask for nothing more, and let go who waits."""
        super().close(now)
        self._closing = True
        for fetch in self._fetches.values():
            fetch.fetcher.close(now)
        self._open()

    def abort(self, error: LanceError, now: float) -> None:
        """End everything with this error."""
        super().abort(error, now)
        for fetch in self._fetches.values():
            fetch.fetcher.abort(error, now)
        self._open()


def end_call(topic_id: int, dialect: Dialect | None) -> PendingRequest:
    """Return a call that asks where a log ends (AMB-06).

    Where the server pushes, no Fetch may be sent, but it tells the end with the topic (AMB-29).
    """
    if dialect is not None and dialect.push:
        asked = GetTopic(topic_id=topic_id).encode()
        return PendingRequest(
            Command.GET_TOPIC, asked, Command.TOPIC_RESPONSE, _end_of_topic, repeatable=True
        )

    def read(payload: Buffer) -> int:
        assert dialect is not None, "an answer came"
        return read_answer(Command.FETCH_RESPONSE, memoryview(payload), dialect).next_offset

    payload = Fetch(topic_id=topic_id, start_offset=END_OFFSET, max_bytes=1).encode()
    return PendingRequest(Command.FETCH, payload, Command.FETCH_RESPONSE, read, repeatable=True)


def end_told(call: PendingRequest) -> int:
    """Return what such a call was answered.

    Raises:
        Unsupported: the server does not tell the ends of topics.
        LanceError: there was no answer.
    """
    if call.error is not None:
        raise call.error.with_traceback(None)
    if call.value is None:
        raise Unsupported("the server does not tell where topics end: lag is not known")
    return int(call.value)


def _end_of_topic(payload: Buffer) -> int | None:
    return decode_topic(payload).end_offset


def _check_same(expected: TopicIdentity, topic: TopicInfo) -> None:
    difference = expected.difference(TopicIdentity.of(topic))
    if difference is not None:
        raise TopicChanged(
            f"topic {expected.label!r} is another one now: {difference}; join the group again to "
            f"read the later one",
            0,
        )


def _gone(topic: TopicIdentity, error: ServerError) -> LanceError:
    if not isinstance(error, _NO_TOPIC):
        return error
    return type(error)(
        f"topic {topic.label!r} (number {topic.id}) does not exist any more; it can be created "
        f"again, and is another topic then",
        details=error.details,
    )
