"""The topics of a member, read over a connection to each of their hosts, for tasks."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, TypeVar

from lance_sdk._api import admin_steps
from lance_sdk._api.factory import driver_options
from lance_sdk._protocol.reconnecting_session import Session
from lance_sdk._protocol.request_tracker import PendingRequest
from lance_sdk.aio._lifecycle import AsyncLifecycle
from lance_sdk.aio.client import AsyncClient
from lance_sdk.groups._member.reader_parts import (
    build_reader,
    end_calls,
    host_session,
    reader_stats,
    records_event,
    traffic,
)
from lance_sdk.groups._protocol.host_fetcher import HostFetcher
from lance_sdk.groups._protocol.multi_fetcher import MultiFetcher, end_told
from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.stats import ClientStats
from lance_sdk.types import RecordBatch
from lance_sdk.url import URL
from lance_spec.bodies import TopicInfo

T = TypeVar("T")


class AsyncTopicReader(AsyncClient):
    """Reads topics, and asks about them, for tasks.

    Args:
        server: where they are.
        options: fields of `lance_sdk.config.ConsumerConfig`.
    """

    def __init__(self, server: URL, options: Mapping[str, Any]) -> None:
        self._core, self._topics = build_reader(server, options)
        AsyncLifecycle.__init__(self, self._core)
        self._caller = self._core.caller
        self._sessions: dict[HostFetcher, Session] = {}
        self._past: Counter[str] = Counter()
        """Traffic of hosts that have no topics any more."""
        self._hosts: dict[HostFetcher, Any] = {}
        """By host that was named for topics, what drives the session with it."""

    def do(self, work: Callable[[MultiFetcher, float], T]) -> T:
        """Do something to the core, and have its tasks look at it."""
        with self._driver.lock:
            self._driver.check()
            result = work(self._topics, monotonic())
        self.wake()
        return result

    def wake(self) -> None:
        """Have all that read look at the core again."""
        for driver in (self._driver, *self._hosts.values()):
            driver.wake()

    def look(self, work: Callable[[MultiFetcher], T]) -> T:
        """Look at the core."""
        with self._driver.lock:
            return work(self._topics)

    def stats(self) -> ClientStats:
        """Return the counters of all connections, and the state of the one to the URL's server."""
        with self._driver.lock:
            hosts = sum(map(traffic, self._sessions.values()), self._past)
            return reader_stats(self._core, hosts)

    def arm(self, wake: Callable[[], object], armed: object) -> object:
        """Have ``wake`` called when there is something new; return what was armed."""
        with self._driver.lock:
            self._driver.check()
            moved = self._topics.move()
            gate = self._topics.gate()
        if moved is not None:
            self._follow(*moved)
        if gate is not armed and not self._driver.add_callback(gate, wake):
            wake()
        return gate

    def _follow(self, named: Iterable[HostFetcher], unused: Iterable[HostFetcher]) -> None:
        """Connect to hosts that were named for topics, and leave those that have none left."""
        for host in unused:
            if host in self._hosts:
                self._past += traffic(self._sessions.pop(host))
                self._hosts.pop(host).let_go(0.0)
        for host in named:
            session = host_session(self._core, host, monotonic())
            driver = self._drive(session)
            driver.lock = self._driver.lock
            driver.start()
            self._hosts[host], self._sessions[host] = driver, session
        self.wake()

    def _drive(self, session: Session) -> Any:
        """Return what drives a session as the reader's own is driven."""
        return type(self._driver)(session, self._name, **driver_options(self._core))

    def take(self, arrived: RecordBatch | None) -> tuple[TopicIdentity, RecordBatch] | None:
        """Take the next batch of some topic.

        Args:
            arrived: the batch that was taken before.

        Raises:
            LanceError: a topic cannot be read on.
        """
        with self._driver.lock:
            self._topics.check()
            found = self._topics.take(arrived)
            end = None if found is None else self._topics.fetcher(found[0].id).end
        if found is None:
            return None
        self.wake()  # there is room for another Fetch now
        if hooks := self._driver.dispatcher.hooks:
            hooks.call("on_records", records_event(self._name, found[1], end))
        return found

    async def ends(self, topics: Iterable[TopicIdentity]) -> dict[int, int]:
        """Return where the logs of topics end, by number; asked all at once."""
        calls = end_calls(self._session, topics)
        self.do(lambda core, now: core.submit_all(calls, now))
        for call in calls.values():
            await self._driver.wait(call, None)  # the core settles it within request_timeout
        return {topic_id: end_told(call) for topic_id, call in calls.items()}

    def ask_for_topics(self, wake: Callable[[], object]) -> PendingRequest:
        """Ask for the topics of the server, without waiting; ``wake`` is called when they came."""
        call = admin_steps.topics_call()
        self.do(lambda core, now: core.submit(call, now))
        if not self._driver.add_callback(call, wake):
            wake()
        return call

    async def find_topics(
        self, wanted: Sequence[str | int], pattern: re.Pattern[str] | None = None
    ) -> list[TopicInfo]:
        """Return topics by name, number or pattern; for a partitioned one its partitions.

        Raises:
            TopicNotFound: there is no topic of a name or number.
        """
        steps = admin_steps.find_topics(wanted, pattern, self._url.server_url())
        return await self._run(steps)

    def check_open(self) -> None:
        """Refuse what needs a connection.

        Raises:
            UsageError: it is not open.
        """
        self._driver.check()

    @property
    def usable(self) -> bool:
        """Whether it is open."""
        return self._driver.usage_error is None

    def let_go(self) -> None:
        """Start closing without waiting; the member that it belongs to warns."""
        for driver in (self._driver, *self._hosts.values()):
            driver.let_go()

    async def _finish(self, until: float, *, failed: bool) -> float:
        """Leave the hosts that were named for topics."""
        hosts, self._hosts = self._hosts, {}
        for driver in hosts.values():
            await driver.close(max(0.0, until - monotonic()))
        return await super()._finish(until, failed=failed)

    def __del__(self) -> None:
        pass
