"""The topics that are read over one connection: a fetcher for each, side by side.

Requests of all topics share the connection and are answered in order. Each topic has its own
position, its own pauses and its own error: one that cannot be read holds up no other.

Nothing is fetched on a connection on which anything is pushed (AMB-21). So topics are pushed
while all of them are at their ends; when one of them has to be fetched, the pushes of all are
ended first, and those that are at their ends are polled until none is left that is behind.
"""

import math
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.connection import Connection, Request
from lance_sdk._protocol.consume.dialect_fallback import DialectFallback
from lance_sdk._protocol.consume.fetch_session import FetchSession
from lance_sdk._protocol.consume.fetcher import Fetcher
from lance_sdk._protocol.consume.subscription import SubscriptionPhase
from lance_sdk._protocol.events import Connected, Disconnected, Event
from lance_sdk._protocol.request_tracker import RequestTracker
from lance_sdk._protocol.session_handler import SessionState
from lance_sdk.errors import (
    ConnectFailed,
    NotLeader,
    RemoteProtocolError,
    ServerError,
    TopicChanged,
    TopicDeleted,
    TopicNotFound,
)
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_spec.bodies import TopicInfo, decode_topic
from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import Command
from lance_spec.limits import DEFAULT_TOPIC_ID
from lance_spec.messages.lwp import GetTopic

if TYPE_CHECKING:
    from lance_sdk.groups._protocol.multi_fetcher import MultiFetcher

Push: TypeAlias = Callable[[int, memoryview, float], None]
_NO_TOPIC: Final = (TopicNotFound, TopicDeleted)


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
        on_named: takes the answer that another host has the topic, and the time.
    """

    on_ready: Callable[[], object] = staticmethod(lambda: None)
    on_named: Callable[[NotLeader, float], object] = staticmethod(lambda _error, _now: None)
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

    def _on_error(self, error: ServerError, now: float) -> None:
        if not isinstance(error, NotLeader):
            super()._on_error(error, now)
        elif not self.subscribed:  # else the next Fetch will be answered so
            self.on_named(error, now)

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
        host: over whose connection.
        retry: delays after answers that may pass.

    Attributes:
        line: the connection, as this topic sees it; None while there is none.
        known: whether the host has said on this connection that it is still the same topic.
        asked: whether it was asked to.
        retry_at: when to ask again.
        named: the host that has the topic, where this one has named another; it goes there.
        fingerprint: of the records before the commit where it began.
    """

    __slots__ = (
        "asked",
        "fetcher",
        "fingerprint",
        "host",
        "known",
        "line",
        "named",
        "retry",
        "retry_at",
        "topic",
    )

    def __init__(
        self, topic: TopicIdentity, fetcher: TopicFetcher, host: "HostFetcher", retry: Backoff
    ) -> None:
        self.topic = topic
        self.fetcher = fetcher
        self.host = host
        self.retry = retry
        self.line: Connection | None = None
        self.named: str | None = None
        self.fingerprint: CommitFingerprint | None = None
        self.retry_at = -math.inf
        self.known = self.asked = False

    @property
    def error(self) -> LanceError | None:
        """Why there will be no more of it, once what is there was taken."""
        if self.fetcher.error is None or (self.fetcher.fetch_buffer and not self.fetcher.paused):
            return None
        changed = None if self.fingerprint is None else self.fingerprint.changed
        return changed or self.fetcher.error

    def lost(self, now: float) -> None:
        """Take note that the connection is gone, or is not to be used any more."""
        self.line, self.retry_at = None, -math.inf
        self.known = self.asked = False
        self.fetcher.lost(now)

    def send_to(self, host: "HostFetcher") -> None:
        """Read it over the connection of another host from now on."""
        self.host, self.named = host, None


class HostFetcher(RequestTracker):
    """The application of one session: reads the topics of its host, and asks about them.

    Args:
        topics: all topics that are read, over all connections.
        address: of the host; empty for the session that knows all servers of the URL.
        timeout: seconds that a call may take.
        progress: called upon every answer.
        events: where outcomes collect.

    Attributes:
        address: of the host.
        events: where outcomes collect.
    """

    def __init__(
        self,
        topics: "MultiFetcher",
        address: str,
        *,
        timeout: float,
        progress: Callable[[], object],
        events: list[Event],
    ) -> None:
        super().__init__(timeout=timeout, progress=progress, events=events)
        self.address = address
        self.topics = topics
        self.events = events
        self._pushes: dict[int, Push] = {}
        self._closing = False

    def __repr__(self) -> str:
        return f"<HostFetcher {self.address} topics={len(self._fetches)} {super().__repr__()}>"

    @property
    def _fetches(self) -> list[TopicFetch]:
        return [each for each in self.topics.fetches.values() if each.host is self]

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
        return next((fetch for fetch in self._fetches if fetch.fetcher.fallback), None)

    def fail(self, error: LanceError) -> None:
        """End the reading of the topic that is read in another dialect."""
        if (fetch := self._detouring) is not None:
            fetch.fetcher.fail(error)

    def fill(self, connection: Connection, now: float) -> None:
        """Ask for whatever any topic needs."""
        super().fill(connection, now)
        fetches, detouring = self._fetches, self._detouring
        crowded = self.topics.crowded
        chosen = fetches if detouring is None else [detouring]
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
        waits = fetch.asked or fetch.named is not None or now < fetch.retry_at
        if waits or fetch.fetcher.error is not None:
            return
        fetch.asked = True
        line = cast("Connection", _TopicConnection(connection, fetch.topic.id, self._pushes))
        fetch.line = line
        if fetch.topic.id == DEFAULT_TOPIC_ID:
            self._use(fetch, line, None, now)
            return

        def known(_code: int, payload: memoryview, at: float) -> None:
            if fetch.line is line:
                self._use(fetch, line, decode_topic(payload), at)

        def refused(error: ServerError, at: float) -> None:
            if fetch.line is line:
                self._refused(fetch, error, at)

        payload = GetTopic(topic_id=fetch.topic.id).encode()
        expects = frozenset({Command.TOPIC_RESPONSE})
        connection.ask(Request(Command.GET_TOPIC, payload, expects, known, refused), now)

    def _refused(self, fetch: TopicFetch, error: ServerError, now: float) -> None:
        fetch.asked = False
        if isinstance(error, NotLeader):
            self.topics.name_host(fetch, error, now)
        elif error.retryable:
            fetch.retry_at = now + fetch.retry.next_delay()
        else:
            fetch.fetcher.fail(_gone(fetch.topic, error))

    def _use(
        self, fetch: TopicFetch, line: Connection, topic: TopicInfo | None, now: float
    ) -> None:
        try:
            if topic is not None:
                _check_same(fetch.topic, topic)
            fetch.fetcher.ready(line, topic, now)
        except LanceError as error:
            fetch.asked = False  # after a seek it is looked at again
            fetch.fetcher.fail(error)
        else:
            fetch.known = True
            fetch.retry.reset()

    def lost(self, now: float) -> None:
        """Forget what was asked; it is asked again on the next connection."""
        super().lost(now)
        self._pushes.clear()
        for fetch in self._fetches:
            fetch.lost(now)

    def refused(self, error: ServerError, now: float) -> None:
        """Take an error that answers no request: it ends the subscription to a topic."""
        fetch = self.topics.fetches.get(error.details.get("topic_id", -1))
        if fetch is None or fetch.host is not self:
            super().refused(error, now)
        else:
            fetch.fetcher.refused(error, now)

    def next_deadline(self) -> float:
        """Return when something may be due."""
        due = super().next_deadline()
        for fetch in self._fetches:
            waits = fetch.retry_at if not fetch.known and not fetch.asked else -math.inf
            due = min(due, fetch.fetcher.next_deadline(), waits if waits > -math.inf else due)
        return due

    def handle_timeout(self, now: float) -> None:
        """Do what is due."""
        super().handle_timeout(now)
        for fetch in self._fetches:
            fetch.fetcher.handle_timeout(now)
            if now >= fetch.retry_at:
                fetch.retry_at = -math.inf

    def close(self, now: float) -> None:
        """Ask for nothing more, and let go who waits."""
        super().close(now)
        self._closing = True
        self.topics.host_closes(self, now)

    def abort(self, error: LanceError, now: float) -> None:
        """End everything with this error; the topics of a host are looked for elsewhere."""
        super().abort(error, now)
        self.topics.host_failed(self, error, now)


class HostSession(FetchSession):
    """The session with a host that another one has named: it ends with its connection.

    What happens to topics is announced by the driver that looks first, of this or another session.

    Args:
        app: reads the topics of the host.
        *args: those of `Session`.
        **options: likewise.
    """

    def __init__(self, app: HostFetcher, *args: Any, **options: Any) -> None:
        super().__init__(cast("Fetcher", app), *args, **options)
        self._shared = app.topics.events

    def take_events(self) -> list[Event]:
        """Take what happened, also to the topics, since the last call."""
        told, kept = list[Event](), list[Event]()
        for event in self._shared:
            (kept if isinstance(event, Connected | Disconnected) else told).append(event)
        self._shared[:] = kept
        return [*super().take_events(), *told]

    def _note_leader(self, error: ServerError) -> None:
        """Stay: each topic goes by itself where another host has it."""

    def _resume(
        self, now: float, cause: Exception, delay: float, redirect: str | None = None
    ) -> None:
        """End, where another session would pause and connect again."""
        super()._resume(now, cause, delay, redirect)
        if delay and self.state is SessionState.WAITING:
            self._events[-1] = Disconnected(cause, None)
            failed = ConnectFailed(self._target, list(self._attempts))
            self.fail(cause if isinstance(cause, LanceError) else failed, now)


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
