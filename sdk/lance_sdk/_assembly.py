"""Cores put together from URLs and settings: the same for both faces."""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lance_sdk._core.application import Application, SessionSettings
from lance_sdk._core.backoff import Backoff
from lance_sdk._core.batcher import Batcher, BatchLimits
from lance_sdk._core.calls import Caller
from lance_sdk._core.connection import ConnectionLimits
from lance_sdk._core.events import Event
from lance_sdk._core.fetch_settings import FetchSettings
from lance_sdk._core.fetcher import Fetcher
from lance_sdk._core.handshake import Plan
from lance_sdk._core.hosts import Hosts
from lance_sdk._core.sender import Sender, draw_nonce
from lance_sdk._core.session import Session
from lance_sdk._units import seconds
from lance_sdk.config import ClientConfig, ConsumerConfig, ProducerConfig
from lance_sdk.stats import ClientStats, ConsumerStats, ProducerStats
from lance_sdk.url import URL, parse_url

_DICE: Final = random.SystemRandom()
_OPEN_SLACK = 5.0
"""Seconds beyond the attempts' own deadlines after which `open` stops waiting for the pump."""


@dataclass(frozen=True, slots=True)
class ProducerCore:
    """The parts of a producer."""

    url: URL
    config: ProducerConfig
    session: Session
    sender: Sender
    batcher: Batcher

    def stats(self) -> ProducerStats:
        """Return the counters."""
        sender = self.sender
        return ProducerStats(
            **_session_stats(self.session),
            acked_records=sender.acked_records,
            acked_batches=sender.acked_batches,
            failed_records=sender.failures.records,
            retries=sender.retries,
            backpressure=sender.backpressure,
            buffered_bytes=self.batcher.buffered,
            in_flight=sender.in_flight,
            window=sender.window.size,
        )

    def show(self, face: str, state: str) -> str:
        """Return the face's repr."""
        queued = f"buffered={self.batcher.buffered} in_flight={self.sender.in_flight}"
        return f"<{face} {self.url} {state} {queued}{_show_rtt(self.session)}>"


@dataclass(frozen=True, slots=True)
class ConsumerCore:
    """The parts of a consumer."""

    url: URL
    config: ConsumerConfig
    session: Session
    fetcher: Fetcher

    def stats(self, position: int | None) -> ConsumerStats:
        """Return the counters."""
        fetcher = self.fetcher
        return ConsumerStats(
            **_session_stats(self.session),
            records=fetcher.records,
            fetches=fetcher.fetches,
            fetched_bytes=fetcher.fetched_bytes,
            buffered_bytes=fetcher.buffered,
            position=position,
            end=fetcher.end,
        )

    def show(self, face: str, state: str, position: int | None) -> str:
        """Return the face's repr."""
        place = f"position={position} end={self.fetcher.end}"
        return f"<{face} {self.url} {state} {place}{_show_rtt(self.session)}>"


@dataclass(frozen=True, slots=True)
class ClientCore:
    """The parts of a client."""

    url: URL
    config: ClientConfig
    session: Session
    caller: Caller

    def stats(self) -> ClientStats:
        """Return the counters."""
        return ClientStats(**_session_stats(self.session))

    def show(self, face: str, state: str) -> str:
        """Return the face's repr."""
        return f"<{face} {self.url.server_url()} {state}{_show_rtt(self.session)}>"


def build_producer(url: str | URL, options: Mapping[str, Any]) -> ProducerCore:
    """Put a producer's core together.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """
    parsed = parse_url(url)
    parsed.require_topic()
    config = parsed.configure(ProducerConfig, options)
    events: list[Event] = []
    backoff = _backoff(config)
    batcher = Batcher(
        BatchLimits(
            max_bytes=config.batch_bytes,
            max_records=config.batch_records,
            linger=seconds("linger", config.linger),
            capacity=config.buffer_bytes,
            delivery_timeout=seconds("delivery_timeout", config.delivery_timeout),
        )
    )
    sender = Sender(
        batcher,
        topic_id=parsed.topic_id or 0,
        nonce=draw_nonce(_DICE),
        max_in_flight=config.max_in_flight,
        backoff=backoff,
        retry=_backoff(config),
        clock_ns=time.time_ns,
        events=events,
    )
    session = _session(parsed, config, sender, backoff, events, create=config.create_topic)
    return ProducerCore(parsed, config, session, sender, batcher)


def build_consumer(url: str | URL, options: Mapping[str, Any]) -> ConsumerCore:
    """Put a consumer's core together.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """
    parsed = parse_url(url)
    parsed.require_topic()
    config = parsed.configure(ConsumerConfig, options)
    events: list[Event] = []
    backoff = _backoff(config)
    settings = FetchSettings(
        label=parsed.label,
        topic_id=parsed.topic_id or 0,
        stop_at_end=config.stop_at_end,
        max_fetch_bytes=config.max_fetch_bytes,
        prefetch_bytes=config.prefetch_bytes,
        poll_interval=seconds("poll_interval", config.poll_interval),
        reset_on_truncation=config.on_truncation == "reset",
    )
    fetcher = Fetcher(
        config.start,
        settings,
        progress=backoff.reset,
        retry=_backoff(config),
        events=events,
    )
    session = _session(parsed, config, fetcher, backoff, events)
    return ConsumerCore(parsed, config, session, fetcher)


def build_client(url: str | URL, options: Mapping[str, Any]) -> ClientCore:
    """Put a client's core together; a topic in the URL is left aside.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """
    parsed = parse_url(url)
    config = parsed.configure(ClientConfig, options)
    events: list[Event] = []
    backoff = _backoff(config)
    timeout = seconds("request_timeout", config.request_timeout)
    caller = Caller(timeout=timeout, progress=backoff.reset, events=events)
    server = URL(endpoints=parsed.endpoints, tls=parsed.tls)
    session = _session(server, config, caller, backoff, events)
    return ClientCore(parsed, config, session, caller)


def open_deadline(url: URL, config: ClientConfig) -> float:
    """Return the seconds in which ``open`` must have come to an end by itself."""
    phases = 4  # dns, tcp, tls, handshake
    tries = len(url.endpoints) * len(config.dialects) * phases
    attempts = tries * seconds("connect_timeout", config.connect_timeout)
    return seconds("open_timeout", config.open_timeout) + attempts + _OPEN_SLACK


def _backoff(config: ClientConfig) -> Backoff:
    base = seconds("backoff_base", config.backoff_base)
    return Backoff(base, seconds("backoff_cap", config.backoff_cap), _DICE)


def _session(
    url: URL,
    config: ClientConfig,
    app: Application,
    backoff: Backoff,
    events: list[Event],
    *,
    create: bool | None = None,
) -> Session:
    limits = ConnectionLimits(
        request_timeout=seconds("request_timeout", config.request_timeout),
        keepalive_interval=seconds("keepalive_interval", config.keepalive_interval),
        idle_timeout=seconds("idle_timeout", config.idle_timeout),
    )
    settings = SessionSettings(
        tls=url.tls,
        connect_timeout=seconds("connect_timeout", config.connect_timeout),
        open_timeout=seconds("open_timeout", config.open_timeout),
        connection=limits,
    )
    plan = Plan(url.server_url(), url.topic, url.topic_id, create, config.token)
    hosts = Hosts(url.endpoints, config.dialects)
    return Session(
        app,
        plan,
        hosts=hosts,
        settings=settings,
        backoff=backoff,
        events=events,
        target=str(url),
    )


def _session_stats(session: Session) -> dict[str, Any]:
    connection = session.connection
    return {
        "state": session.state.value,
        "peer_dialect": None if session.dialect is None else session.dialect.name,
        "connects": session.connects,
        "rtt": None if connection is None else connection.keepalive.rtt,
        "bytes_sent": 0 if connection is None else connection.sent_bytes,
        "bytes_received": 0 if connection is None else connection.received_bytes,
    }


def _show_rtt(session: Session) -> str:
    rtt = None if session.connection is None else session.connection.keepalive.rtt
    return "" if rtt is None else f" rtt={rtt * 1000:.1f}ms"
