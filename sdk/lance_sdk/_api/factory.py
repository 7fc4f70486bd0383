"""Clients' cores put together from URLs and settings: the same for both APIs.

Those of producers and of consumers stand in modules of their own, so that a program loads what it
uses.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from lance_sdk._api.arguments.unit_parsing import seconds
from lance_sdk._io.http_probe import speaks_http
from lance_sdk._io.tls import TlsSettings
from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.connection import ConnectionLimits
from lance_sdk._protocol.events import Event
from lance_sdk._protocol.handshake import Plan
from lance_sdk._protocol.hosts import Hosts
from lance_sdk._protocol.reconnecting_session import Session
from lance_sdk._protocol.request_tracker import PendingRequest, RequestTracker
from lance_sdk._protocol.session_handler import SessionHandler, SessionSettings
from lance_sdk._protocol.situation import Situation
from lance_sdk.config import ClientConfig
from lance_sdk.errors import DeadlineExceeded
from lance_sdk.hooks import CallEvent
from lance_sdk.stats import ClientStats
from lance_sdk.url import URL, parse_url

_DICE: Final = random.SystemRandom()
_OPEN_SLACK = 5.0
"""Seconds beyond the attempts' own deadlines after which `open` stops waiting for the driver."""


@dataclass(frozen=True, slots=True)
class ClientCore:
    """The parts of a client."""

    url: URL
    config: ClientConfig
    session: Session
    caller: RequestTracker

    def stats(self) -> ClientStats:
        """Return the counters."""
        return ClientStats(**session_stats(self.session))

    def show(self, client: str, state: str) -> str:
        """Return the client's repr."""
        return f"<{client} {self.url.server_url()} {state}{show_rtt(self.session)}>"


def build_client(
    url: str | URL,
    options: Mapping[str, Any],
    make: Callable[..., RequestTracker] = RequestTracker,
    kind: Callable[..., Session] = Session,
) -> ClientCore:
    """Put a client's core together; a topic in the URL is left aside.

    Args:
        url: where the server is.
        options: the keywords of the client.
        make: makes the session's application, with the keywords of `RequestTracker`.
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
    caller.situation = session.situation
    return ClientCore(parsed, config, session, caller)


def called(source: str, call: PendingRequest, began: float) -> CallEvent:
    """Return what hooks are told of a control request."""
    return CallEvent(
        source=source, command=call.name, seconds=time.monotonic() - began, error=call.error
    )


class Core(Protocol):
    """What the cores of clients, producers and consumers have in common."""

    @property
    def url(self) -> URL: ...

    @property
    def config(self) -> ClientConfig: ...


def driver_options(core: Core) -> dict[str, Any]:
    """Return the keywords of a core's driver, whichever it is."""
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


def not_opened(url: URL, timeout: float, situation: Situation) -> DeadlineExceeded:
    """Return the error of an ``open`` that came to no end by itself."""
    failure = DeadlineExceeded(f"cannot open {url} within {timeout:.1f} s. {situation.sentence()}")
    failure.__cause__ = situation.cause
    return failure


def no_answer(what: str, timeout: float, url: URL, situation: Situation) -> DeadlineExceeded:
    """Return the error of a request that was not answered in time; its effect is open."""
    text = f"no answer about {what} from {url} in {timeout:.1f} s (request_timeout); it may have "
    failure = DeadlineExceeded(f"{text}happened. {situation.sentence()}", maybe_applied=True)
    failure.__cause__ = situation.cause
    return failure


def backoff_of(config: ClientConfig) -> Backoff:
    """Return the delays that a client's settings name (AMB-42)."""
    base = seconds("backoff_base", config.backoff_base)
    return Backoff(base, seconds("backoff_cap", config.backoff_cap), _DICE)


def session_of(
    url: URL,
    config: ClientConfig,
    app: SessionHandler,
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
        create: create the topic when its name is unknown; None where that is not an option.
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
        speaks_http=speaks_http,
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


def session_stats(session: Session) -> dict[str, Any]:
    """Return the counters that every client has."""
    connection = session.connection
    return {
        "state": session.state.value,
        "peer_dialect": None if session.dialect is None else session.dialect.name,
        "connects": session.connects,
        "rtt": None if connection is None else connection.keepalive.rtt,
        "bytes_sent": session.sent_bytes,
        "bytes_received": session.received_bytes,
    }


def show_rtt(session: Session) -> str:
    """Return the last round trip for a client's repr, if one was measured."""
    rtt = None if session.connection is None else session.connection.keepalive.rtt
    return "" if rtt is None else f" rtt={rtt * 1000:.1f}ms"
