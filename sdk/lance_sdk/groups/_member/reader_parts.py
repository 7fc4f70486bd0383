"""The parts that read the topics of a member: the same for both APIs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final, cast

from lance_sdk._api.consumer_core import as_start, fetch_settings
from lance_sdk._api.factory import (
    ClientCore,
    backoff_of,
    build_client,
    session_of,
    session_stats,
)
from lance_sdk._protocol.consume.fetch_session import FetchSession
from lance_sdk._protocol.events import Event
from lance_sdk._protocol.hosts import Endpoint
from lance_sdk._protocol.reconnecting_session import Session
from lance_sdk._protocol.request_tracker import PendingRequest
from lance_sdk.config import ClientConfig, ConsumerConfig
from lance_sdk.groups._protocol.host_fetcher import HostFetcher, HostSession, TopicFetcher
from lance_sdk.groups._protocol.multi_fetcher import MultiFetcher, end_call
from lance_sdk.hooks import RecordsEvent
from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.stats import ClientStats
from lance_sdk.types import RecordBatch
from lance_sdk.url import URL

_TRAFFIC: Final = ("connects", "bytes_sent", "bytes_received")


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
        events: list[Event], topic: TopicIdentity, progress: Callable[[], object]
    ) -> TopicFetcher:
        url = replace(server, topic=None, topic_id=topic.id)
        settings = replace(fetch_settings(url, config), label=topic.label, held=False)
        retry = backoff_of(config)
        start = as_start("beginning")
        return TopicFetcher(start, settings, progress=progress, retry=retry, events=events)

    def make(*, timeout: float, progress: Callable[[], object], events: list[Event]) -> HostFetcher:
        return MultiFetcher(
            partial(make_fetcher, events),
            partial(backoff_of, config),
            config.prefetch_bytes,
            timeout=timeout,
            progress=progress,
            events=events,
        ).home

    core = build_client(server, known, make, FetchSession)
    return core, cast("HostFetcher", core.caller).topics


def host_session(core: ClientCore, host: HostFetcher, now: float) -> Session:
    """Return a session with a host that was named for topics; it connects at once.

    Args:
        core: of the reader.
        host: reads the topics.
        now: the time.
    """
    endpoint = Endpoint.parse(host.address)
    assert endpoint is not None, "else it would not have been named"
    url = URL(endpoints=(endpoint,), tls=core.url.tls)
    backoff = backoff_of(core.config)
    session = session_of(url, core.config, host, backoff, host.events, kind=HostSession)
    host.situation = session.situation
    session.open(now)
    return session


def traffic(session: Session) -> Counter[str]:
    """Return the counters of a session that are added to those of others."""
    told = session_stats(session)
    return Counter({name: told[name] for name in _TRAFFIC})


def reader_stats(core: ClientCore, hosts: Counter[str]) -> ClientStats:
    """Return the counters of a reader.

    Args:
        core: of the reader.
        hosts: traffic of the sessions with hosts that were named for topics.
    """
    own = session_stats(core.session)
    return ClientStats(**own | {name: own[name] + hosts[name] for name in _TRAFFIC})


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
