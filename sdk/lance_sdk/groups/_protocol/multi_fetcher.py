"""Many topics, each read over the connection of its host.

They begin on the connection to a server of the URL. Where that names another host for a topic
(LWP section 12.4), the topic goes on over a connection to this host, which serves all topics for
which it was named and ends with the last of them. When the connection is lost, its topics go back
to where they began, and are asked for there.

Hosts name others, and connections end, while a driver has the core. Topics move when the
application looks for records: `MultiFetcher.move`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.consume.fetch_response import read_answer
from lance_sdk._protocol.consume.fetch_settings import Start
from lance_sdk._protocol.events import Event, Notice
from lance_sdk._protocol.hosts import Endpoint
from lance_sdk._protocol.request_tracker import PendingRequest
from lance_sdk.errors import NotLeader, ServerError, Unsupported
from lance_sdk.groups._protocol.host_fetcher import (
    CommitFingerprint,
    HostFetcher,
    TopicFetch,
    TopicFetcher,
)
from lance_sdk.offsets.contract import Commit, TopicIdentity
from lance_sdk.types import RecordBatch
from lance_spec.bodies import decode_topic
from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import Command
from lance_spec.limits import END_OFFSET
from lance_spec.messages.lwp import Fetch, GetTopic

MakeFetcher: TypeAlias = Callable[[TopicIdentity, Callable[[], object]], TopicFetcher]
"""Makes the fetcher of a topic that calls the function whenever data arrives."""


class MultiFetcher:
    """Reads several topics, over as many connections as they have hosts.

    Args:
        make: makes the fetcher of a topic.
        retry: makes the delays of a topic after errors that may pass.
        prefetch_bytes: data of all topics that is held ahead of the application; when it is
            reached, only topics with nothing to take are asked for more.
        timeout: seconds that a call may take.
        progress: called upon every answer of the server of the URL.
        events: where outcomes collect.

    Attributes:
        fetches: the topics, by number.
        home: reads those that no other host was named for, and makes the calls.
        events: where outcomes collect.
    """

    def __init__(
        self,
        make: MakeFetcher,
        retry: Callable[[], Backoff],
        prefetch_bytes: int,
        *,
        timeout: float,
        progress: Callable[[], object],
        events: list[Event],
    ) -> None:
        self._make = make
        self._retry = retry
        self._prefetch_bytes = prefetch_bytes
        self._timeout = timeout
        self._progress = progress
        self.events = events
        self.fetches: dict[int, TopicFetch] = {}
        self.home = HostFetcher(self, "", timeout=timeout, progress=progress, events=events)
        self._hosts: dict[str, HostFetcher] = {}
        self._used: set[HostFetcher] = set()
        """Hosts that had topics when these were last moved."""
        self._order: deque[TopicFetch] = deque()
        self._taken_of: TopicFetch | None = None
        self._gate: Completion | None = None
        self._unsettled = False

    def __repr__(self) -> str:
        return f"<MultiFetcher topics={len(self.fetches)} {self.home!r} {[*self._hosts]}>"

    # What the application does

    def add(self, topic: TopicIdentity, where: Start, commit: Commit | None, now: float) -> None:
        """Read one more topic, from a place, or after a commit whose records are compared first."""
        self.remove(topic.id, now)
        fetcher = self._make(topic, partial(self._progressed, topic.id))
        fetch = TopicFetch(topic, fetcher, self.home, self._retry())
        fetcher.on_ready = self._open
        fetcher.on_named = partial(self.name_host, fetch)
        if commit is not None and commit.fingerprint is not None:
            fetch.fingerprint = CommitFingerprint(commit)
        fetcher.finding = not isinstance(where, int) and where != "beginning"
        fetcher.begin(where, fetch.fingerprint, now)
        self.fetches[topic.id] = fetch
        self._order.append(fetch)

    def _progressed(self, topic_id: int) -> None:
        """Take note of data: from another host it says nothing of the server of the URL."""
        fetch = self.fetches.get(topic_id)
        if fetch is not None and fetch.host is self.home:
            self._progress()

    def remove(self, topic_id: int, now: float) -> None:
        """Read a topic no more."""
        fetch = self.fetches.pop(topic_id, None)
        if fetch is not None:
            fetch.fetcher.seek("beginning", now)  # answers to requests in flight are dropped
            self._order.remove(fetch)
            self._unsettled = True

    def seek(self, topic_id: int, where: Start, now: float) -> None:
        """Go on from somewhere else in a topic, also after its error."""
        fetch = self.fetches[topic_id]
        fetch.fingerprint = None
        fetch.fetcher.finding = not isinstance(where, int) and where != "beginning"
        fetch.fetcher.seek(where, now)

    def fail(self, error: LanceError, topic_id: int) -> None:
        """End the reading of a topic."""
        self.fetches[topic_id].fetcher.fail(error)

    def submit(self, call: PendingRequest, now: float) -> None:
        """Queue a call that any server answers."""
        self.home.submit(call, now)

    def submit_all(self, calls: Mapping[int, PendingRequest], now: float) -> None:
        """Queue calls about topics, each where its topic is read."""
        for topic_id, call in calls.items():
            fetch = self.fetches.get(topic_id)
            (self.home if fetch is None else fetch.host).submit(call, now)

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
        found = ((fetch.topic, fetch.error) for fetch in self.fetches.values())
        return {topic: error for topic, error in found if error is not None}

    def take(self, arrived: RecordBatch | None) -> tuple[TopicIdentity, RecordBatch] | None:
        """Take the next batch of some topic; topics take turns.

        Args:
            arrived: the batch that was taken before; another one, whose taking Ctrl-C cut short,
                comes again.
        """
        if self._taken_of is not None:
            self._taken_of.fetcher.reclaim(arrived)
        for _ in range(len(self._order)):
            fetch = self._taken_of = self._order[0]
            self._order.rotate(-1)
            if (batch := fetch.fetcher.take()) is not None:
                return fetch.topic, batch
        return None

    def put_back(self, topic_id: int, batch: RecordBatch) -> None:
        """Put what is left of a batch before everything else of its topic."""
        self.fetches[topic_id].fetcher.fetch_buffer.put_back(batch)

    def pause(self, topic_id: int, rest: RecordBatch | None, now: float) -> None:
        """Hand nothing of a topic out, and fetch nothing; ``rest`` goes back."""
        self.fetches[topic_id].fetcher.pause(rest, now)

    def resume(self, topic_id: int) -> None:
        """Go on after a pause."""
        self.fetches[topic_id].fetcher.resume()

    def found(self) -> list[tuple[int, int]]:
        """Return the places that were looked for and found, until they are `noted`."""
        found = ((each.topic.id, each.fetcher) for each in self.fetches.values())
        return [
            (topic_id, fetcher.offset)
            for topic_id, fetcher in found
            if fetcher.finding and fetcher.offset is not None
        ]

    def noted(self, places: Iterable[tuple[int, int]]) -> None:
        """Tell of these places no more."""
        for topic_id, _ in places:
            self.fetches[topic_id].fetcher.finding = False

    def reads(self, topic_id: int) -> bool:
        """Return whether a topic is read."""
        return topic_id in self.fetches

    def fetcher(self, topic_id: int) -> TopicFetcher:
        """Return the fetcher of a topic."""
        return self.fetches[topic_id].fetcher

    def position(self, topic_id: int) -> int | None:
        """Return where the next record of a topic begins; None where it is not read or known."""
        fetch = self.fetches.get(topic_id)
        return None if fetch is None else fetch.fetcher.offset

    def fetchers(self) -> list[TopicFetcher]:
        """Return the fetchers of all topics."""
        return [fetch.fetcher for fetch in self.fetches.values()]

    def paused(self) -> list[TopicIdentity]:
        """Return the topics that are paused."""
        return [fetch.topic for fetch in self.fetches.values() if fetch.fetcher.paused]

    @property
    def ended(self) -> bool:
        """Whether every topic is at its end (``stop_at_end``)."""
        return bool(self.fetches) and all(each.fetcher.ended for each in self.fetches.values())

    @property
    def crowded(self) -> bool:
        """Whether enough data of all topics waits for the application."""
        waiting = sum(each.fetcher.fetch_buffer.buffered for each in self.fetches.values())
        return waiting >= self._prefetch_bytes

    def gate(self) -> Completion:
        """Return an outcome that settles when there is something to take, to raise, or to do."""
        if self._gate is None or self._gate.done:
            self._gate = Completion()
        return self._gate

    def _open(self) -> None:
        if self._gate is not None and self._gate.settle():
            self.events.append(self._gate)

    # Where topics are read

    def move(self) -> tuple[set[HostFetcher], set[HostFetcher]] | None:
        """Move topics to the hosts that were named for them, once there are any.

        Returns:
            Hosts that a session is needed for now, and those that have no topic left.
        """
        if not self._unsettled:
            return None
        self._unsettled = False
        for fetch in self.fetches.values():
            if fetch.named is not None:
                fetch.send_to(self._host(fetch.named))
        before, self._used = self._used, {each.host for each in self.fetches.values()} - {self.home}
        self._hosts = {each.address: each for each in self._used}
        return self._used - before, before - self._used

    def _host(self, address: str) -> HostFetcher:
        """Return what reads the topics of a host."""
        home = self.home.situation()
        if home.ready and home.server == address:
            return self.home
        if address not in self._hosts:
            self._hosts[address] = HostFetcher(
                self, address, timeout=self._timeout, progress=lambda: None, events=[]
            )
        return self._hosts[address]

    def name_host(self, fetch: TopicFetch, error: NotLeader, now: float) -> None:
        """Take note that another host has a topic; where none is named, ask again later."""
        fetch.lost(now)
        fetch.retry_at = now + fetch.retry.next_delay()
        there = None if error.leader is None else Endpoint.parse(error.leader)
        if there is not None:
            fetch.named = str(there)
            self._look()

    def host_failed(self, host: HostFetcher, error: LanceError, now: float) -> None:
        """Take note that a host cannot be used: its topics are looked for at home.

        Where it refuses this client, they cannot be read.
        """
        if host is self.home:
            for fetch in self.fetches.values():
                fetch.fetcher.abort(error, now)
            self._open()
            return
        back = self._back_home(host, now)
        if isinstance(error, ServerError) and not error.retryable:
            for fetch in back:
                fetch.fetcher.fail(error)
        elif back:
            for fetch in back:
                fetch.retry_at = now + fetch.retry.next_delay()
            text = f"{host.address} has topics and cannot be used, looking for another: {error}"
            self.events.append(Notice(text, f"host {host.address}"))

    def host_closes(self, host: HostFetcher, now: float) -> None:
        """Take note that a session is closed: at home it was the last one."""
        if host is not self.home:
            self._back_home(host, now)
            return
        for fetch in self.fetches.values():
            fetch.fetcher.close(now)
        self._open()

    def _back_home(self, host: HostFetcher, now: float) -> list[TopicFetch]:
        back = [each for each in self.fetches.values() if each.host is host]
        for fetch in back:
            fetch.lost(now)
            fetch.send_to(self.home)
        if self._hosts.get(host.address) is host:
            del self._hosts[host.address]
        self._look()
        return back

    def _look(self) -> None:
        """Have the application look: topics are to be moved."""
        self._unsettled = True
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
        raise Unsupported("the server does not report where topics end, so the lag is unknown")
    return int(call.value)


def _end_of_topic(payload: Buffer) -> int | None:
    return decode_topic(payload).end_offset
