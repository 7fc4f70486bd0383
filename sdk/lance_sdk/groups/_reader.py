"""The topics of a member, read over one connection to their server."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from time import monotonic
from typing import Any, TypeVar, cast

from lance_sdk._api import admin_steps
from lance_sdk._api.consumer_core import as_start, fetch_settings
from lance_sdk._api.factory import ClientCore, backoff_of, build_client
from lance_sdk._api.lifecycle import Lifecycle
from lance_sdk._protocol.consume.fetch_session import FetchSession
from lance_sdk._protocol.events import Event
from lance_sdk._protocol.request_tracker import PendingRequest
from lance_sdk._protocol.session import Session
from lance_sdk.client import Client
from lance_sdk.config import ClientConfig, ConsumerConfig
from lance_sdk.groups._protocol.multi_fetcher import MultiFetcher, TopicFetcher, end_call, end_told
from lance_sdk.hooks import RecordsEvent
from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.types import RecordBatch
from lance_sdk.url import URL
from lance_spec.bodies import TopicInfo

T = TypeVar("T")


def build_reader(server: URL, options: Mapping[str, Any]) -> tuple[ClientCore, MultiFetcher]:
    """Put together the session that reads topics.

    Args:
        server: where they are.
        options: fields of `lance_sdk.config.ConsumerConfig`.

    Raises:
        ConfigError: for an option that cannot be used.
    """
    config = server.configure(ConsumerConfig, options)
    names = {field.name for field in fields(ClientConfig)}
    known = {name: value for name, value in options.items() if name in names}

    def make_fetcher(
        progress: Callable[[], object], events: list[Event], topic: TopicIdentity
    ) -> TopicFetcher:
        url = replace(server, topic=None, topic_id=topic.id)
        settings = replace(fetch_settings(url, config), label=topic.label, held=False)
        retry = backoff_of(config)
        start = as_start("beginning")
        return TopicFetcher(start, settings, progress=progress, retry=retry, events=events)

    def make(
        *, timeout: float, progress: Callable[[], object], events: list[Event]
    ) -> MultiFetcher:
        return MultiFetcher(
            partial(make_fetcher, progress, events),
            backoff_of(config),
            config.prefetch_bytes,
            timeout=timeout,
            progress=progress,
            events=events,
        )

    core = build_client(server, known, make, FetchSession)
    return core, cast("MultiFetcher", core.caller)


def records_event(source: str, batch: RecordBatch, end: int | None) -> RecordsEvent:
    """Return what hooks are told of a batch."""
    return RecordsEvent(
        source=source,
        topic=batch.topic,
        offset=batch.offset,
        next_offset=batch.next_offset,
        records=batch.count,
        size=len(batch.data),
        lag=None if end is None else max(0, end - batch.next_offset),
    )


def end_calls(session: Session, topics: Iterable[TopicIdentity]) -> dict[int, PendingRequest]:
    """Return calls that ask where the logs of topics end, by number."""
    return {topic.id: end_call(topic.id, session.dialect) for topic in topics}


class TopicReader(Client):
    """Reads topics, and asks about them, for threads.

    Args:
        server: where they are.
        options: fields of `lance_sdk.config.ConsumerConfig`.
    """

    def __init__(self, server: URL, options: Mapping[str, Any]) -> None:
        self._core, self._topics = build_reader(server, options)
        Lifecycle.__init__(self, self._core)
        self._caller = self._core.caller

    def do(self, work: Callable[[MultiFetcher, float], T]) -> T:
        """Do something to the core, and have its thread look at it."""
        with self._driver.lock:
            self._driver.check()
            result = work(self._topics, monotonic())
        self._driver.wake()
        return result

    def look(self, work: Callable[[MultiFetcher], T]) -> T:
        """Look at the core."""
        with self._driver.lock:
            return work(self._topics)

    def arm(self, wake: Callable[[], object], armed: object) -> object:
        """Have ``wake`` called when there is something new; return what was armed."""
        with self._driver.lock:
            self._driver.check()
            gate = self._topics.gate()
        if gate is not armed and not self._driver.add_callback(gate, wake):
            wake()
        return gate

    def take(self) -> tuple[TopicIdentity, RecordBatch] | None:
        """Take the next batch of some topic.

        Raises:
            LanceError: a topic cannot be read on.
        """
        with self._driver.lock:
            self._topics.check()
            found = self._topics.take()
            end = None if found is None else self._topics.fetcher(found[0].id).end
        if found is None:
            return None
        self._driver.wake()  # there is room for another Fetch now
        if hooks := self._driver.dispatcher.hooks:
            hooks.call("on_records", records_event(self._name, found[1], end))
        return found

    def ends(self, topics: Iterable[TopicIdentity]) -> dict[int, int]:
        """Return where the logs of topics end, by number; asked all at once."""
        calls = end_calls(self._session, topics)
        self.do(lambda core, now: core.submit_all(calls.values(), now))
        for call in calls.values():
            self._driver.wait(call, None)  # the core settles it within request_timeout
        return {topic_id: end_told(call) for topic_id, call in calls.items()}

    def ask_for_topics(self, wake: Callable[[], object]) -> PendingRequest:
        """Ask for the topics of the server, without waiting; ``wake`` is called when they came."""
        call = admin_steps.topics_call()
        self.do(lambda core, now: core.submit(call, now))
        if not self._driver.add_callback(call, wake):
            wake()
        return call

    def find_topics(
        self, wanted: Sequence[str | int], pattern: re.Pattern[str] | None = None
    ) -> list[TopicInfo]:
        """Return topics by name, number or pattern; for a partitioned one its partitions.

        Raises:
            TopicNotFound: there is no topic of a name or number.
        """
        steps = admin_steps.find_topics(wanted, pattern, self._url.server_url())
        return self._run(steps)

    def check_open(self) -> None:
        """Refuse what needs a connection.

        Raises:
            UsageError: it is not open.
        """
        self._driver.check()

    @property
    def usable(self) -> bool:
        """Whether it is open."""
        return self._driver.guard is None

    def let_go(self) -> None:
        """Start closing without waiting; the member that it belongs to warns."""
        self._driver.let_go()

    def __del__(self) -> None:
        pass
