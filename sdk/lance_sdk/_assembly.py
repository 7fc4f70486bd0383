"""Cores put together from URLs and settings: the same for both faces."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lance_sdk._checks import check_start
from lance_sdk._core.application import Application, SessionSettings
from lance_sdk._core.backoff import Backoff
from lance_sdk._core.batcher import Batcher, BatchLimits
from lance_sdk._core.calls import Call, Caller
from lance_sdk._core.connection import ConnectionLimits
from lance_sdk._core.events import Event
from lance_sdk._core.fetch_session import FetchSession
from lance_sdk._core.fetch_settings import FetchSettings, Moment, Start
from lance_sdk._core.fetcher import Fetcher
from lance_sdk._core.handshake import Plan
from lance_sdk._core.hosts import Hosts
from lance_sdk._core.send_settings import SendSettings, draw_nonce
from lance_sdk._core.sender import Sender
from lance_sdk._core.session import Session
from lance_sdk._io.tls import TlsSettings
from lance_sdk._spill import Spill, open_spill
from lance_sdk._units import seconds
from lance_sdk.config import ClientConfig, ConsumerConfig, ProducerConfig
from lance_sdk.hooks import CallEvent, RecordsEvent
from lance_sdk.offsets.contract import Fingerprint
from lance_sdk.stats import ClientStats, ConsumerStats, ProducerStats
from lance_sdk.types import RecordBatch
from lance_sdk.url import URL, parse_url
from lance_sdk.values.codecs import codec_for
from lance_sdk.values.keyed import as_time_ns

_DICE: Final = random.SystemRandom()
ACK_SHARE: Final = 0.8
"""Of the time for closing: what a producer with a journal gives the server to acknowledge."""
DISK_GRACE: Final = 1.0
"""Seconds for what is then to be kept in the journal, however little time there is."""
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
    spill: Spill | None

    def open_session(self, now: float) -> None:
        """Start connecting; with a journal it is no failure that there is no server."""
        dial = self.config.journal is None or self.config.on_full == "journal"
        self.session.open(now, need=self.spill is None, dial=dial)

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
            journaled_batches=len(sender.handover.journaled),
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
            records=fetcher.supply.records,
            fetches=fetcher.fetches,
            pushes=fetcher.pushes,
            pushing=fetcher.pushing,
            fetched_bytes=fetcher.supply.received_bytes,
            buffered_bytes=fetcher.supply.buffered,
            position=position,
            end=fetcher.end,
        )

    def handed_out(self, source: str, batch: RecordBatch) -> RecordsEvent:
        """Return what hooks are told of a batch."""
        end = self.fetcher.end
        return RecordsEvent(
            source=source,
            topic=batch.topic,
            offset=batch.offset,
            next_offset=batch.next_offset,
            records=batch.count,
            size=len(batch.data),
            lag=None if end is None else max(0, end - batch.next_offset),
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
    backoff = backoff_of(config)
    batcher = Batcher(
        BatchLimits(
            max_bytes=config.batch_bytes,
            max_records=config.batch_records,
            linger=seconds("linger", config.linger),
            capacity=config.buffer_bytes,
            delivery_timeout=seconds("delivery_timeout", config.delivery_timeout),
        )
    )
    spill = None if config.journal is None else open_spill(parsed, config)
    sender = Sender(
        batcher,
        settings=_send_settings(parsed, config),
        backoff=backoff,
        retry=backoff_of(config),
        clock_ns=time.time_ns,
        events=events,
        spill=spill,
    )
    session = session_of(parsed, config, sender, backoff, events, create=config.create_topic)
    return ProducerCore(parsed, config, session, sender, batcher, spill)


def _send_settings(url: URL, config: ProducerConfig) -> SendSettings:
    return SendSettings(
        topic_id=url.topic_id or 0,
        nonce=draw_nonce(_DICE),
        max_in_flight=config.max_in_flight,
        compression=config.compression,
        max_attempts=config.retry.max_attempts,
        retry_also=config.retry.also,
        retry_never=config.retry.never,
        journal_always=config.on_full != "journal" and config.journal is not None,
    )


def build_consumer(url: str | URL, options: Mapping[str, Any]) -> ConsumerCore:
    """Put a consumer's core together.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """
    parsed = parse_url(url)
    parsed.require_topic()
    config = parsed.configure(ConsumerConfig, options)
    events: list[Event] = []
    backoff = backoff_of(config)
    fetcher = Fetcher(
        as_start(config.start),
        fetch_settings(parsed, config),
        progress=backoff.reset,
        retry=backoff_of(config),
        events=events,
    )
    session = session_of(parsed, config, fetcher, backoff, events, kind=FetchSession)
    return ConsumerCore(parsed, config, session, fetcher)


def fetch_settings(url: URL, config: ConsumerConfig) -> FetchSettings:
    """Return how a consumer fetches from its topic."""
    return FetchSettings(
        label=url.label,
        topic_id=url.topic_id or 0,
        stop_at_end=config.stop_at_end,
        max_fetch_bytes=config.max_fetch_bytes,
        prefetch_bytes=config.prefetch_bytes,
        poll_interval=seconds("poll_interval", config.poll_interval),
        take_evidence=Fingerprint.of,
        reset_on_truncation=config.on_truncation == "reset",
        on_opaque=config.on_opaque,
        mode=config.mode,
        subscriber=_DICE.getrandbits(63) | 1,
        held=config.offsets is not None,
        request_timeout=seconds("request_timeout", config.request_timeout),
        codec=None if config.values is None else codec_for(config.values),
    )


def as_start(where: int | str | datetime) -> Start:
    """Return a place in a log in the core's words.

    Raises:
        ConfigError: it is none.
    """
    check_start(where)
    if isinstance(where, datetime):
        return Moment(as_time_ns("start", where))
    if isinstance(where, int):
        return where
    return "beginning" if where == "beginning" else "end"


def build_client(
    url: str | URL,
    options: Mapping[str, Any],
    make: Callable[..., Caller] = Caller,
    kind: Callable[..., Session] = Session,
) -> ClientCore:
    """Put a client's core together; a topic in the URL is left aside.

    Args:
        url: where the server is.
        options: the keywords of the face.
        make: makes the session's application, with the keywords of `Caller`.
        kind: makes the session, with the parameters of `Session`.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """
    parsed = parse_url(url)
    config = parsed.configure(ClientConfig, options)
    events: list[Event] = []
    backoff = backoff_of(config)
    timeout = seconds("request_timeout", config.request_timeout)
    caller = make(timeout=timeout, progress=backoff.reset, events=events)
    server = URL(endpoints=parsed.endpoints, tls=parsed.tls)
    session = session_of(server, config, caller, backoff, events, kind=kind)
    return ClientCore(parsed, config, session, caller)


def called(source: str, call: Call, began: float) -> CallEvent:
    """Return what hooks are told of a control request."""
    return CallEvent(
        source=source, command=call.name, seconds=time.monotonic() - began, error=call.error
    )


def pump_options(core: ProducerCore | ConsumerCore | ClientCore) -> dict[str, Any]:
    """Return the keywords of a core's pump, whichever it is."""
    config = core.config
    return {
        "tls": TlsSettings(
            context=config.tls,
            ca=config.tls_ca,
            cert=config.tls_cert,
            key=config.tls_key,
            password=config.tls_key_password,
            server_name=config.tls_server_name,
        ),
        "token": config.token if callable(config.token) else None,
        "hooks": config.hooks,
        "topic": core.url.label,
    }


def open_deadline(url: URL, config: ClientConfig) -> float:
    """Return the seconds in which ``open`` must have come to an end by itself."""
    phases = 5  # dns, tcp, tls, token, handshake
    tries = len(url.endpoints) * len(config.dialects) * phases
    attempts = tries * seconds("connect_timeout", config.connect_timeout)
    return seconds("open_timeout", config.open_timeout) + attempts + _OPEN_SLACK


def backoff_of(config: ClientConfig) -> Backoff:
    """Return the delays that a client's settings name (AMB-42)."""
    base = seconds("backoff_base", config.backoff_base)
    return Backoff(base, seconds("backoff_cap", config.backoff_cap), _DICE)


def session_of(
    url: URL,
    config: ClientConfig,
    app: Application,
    backoff: Backoff,
    events: list[Event],
    *,
    create: bool | None = None,
    kind: Callable[..., Session] = Session,
) -> Session:
    """Return a session that carries an application to the servers of a URL.

    Args:
        url: the servers, and the topic whose number is asked for before the application starts.
        config: how to connect, and how long to wait.
        app: what is carried.
        backoff: the delays between attempts; the application starts them over.
        events: where the session tells what happens.
        create: create the topic when its name is unknown; None where that is no option.
        kind: makes the session, with the parameters of `Session`.
    """
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
    token = config.token if isinstance(config.token, str) else None
    plan = Plan(url.server_url(), url.topic, url.topic_id, create, token)
    hosts = Hosts(url.endpoints, config.dialects)
    return kind(
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
