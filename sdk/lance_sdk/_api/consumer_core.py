"""The parts of a consumer, put together from a URL and settings."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from lance_sdk._api.arguments.unit_parsing import seconds
from lance_sdk._api.arguments.validation import check_start
from lance_sdk._api.factory import backoff_of, session_of, session_stats, show_rtt
from lance_sdk._protocol.consume.fetch_session import FetchSession
from lance_sdk._protocol.consume.fetch_settings import FetchSettings, Moment, Start
from lance_sdk._protocol.consume.fetcher import Fetcher
from lance_sdk._protocol.reconnecting_session import Session
from lance_sdk.config import ConsumerConfig
from lance_sdk.hooks import RecordsEvent
from lance_sdk.offsets.contract import Fingerprint
from lance_sdk.stats import ConsumerStats
from lance_sdk.types import RecordBatch
from lance_sdk.url import URL, parse_url
from lance_sdk.values.codecs import codec_for
from lance_sdk.values.keyed import as_moment_ns

if TYPE_CHECKING:
    from lance_sdk._protocol.events import Event

_DICE: Final = random.SystemRandom()


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
            **session_stats(self.session),
            records=fetcher.fetch_buffer.records,
            fetches=fetcher.fetches,
            pushes=fetcher.pushes,
            pushing=fetcher.pushing,
            fetched_bytes=fetcher.fetch_buffer.received_bytes,
            buffered_bytes=fetcher.fetch_buffer.buffered,
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

    def show(self, client: str, state: str, position: int | None) -> str:
        """Return the client's repr."""
        place = f"position={position} end={self.fetcher.end}"
        return f"<{client} {self.url} {state} {place}{show_rtt(self.session)}>"


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
    fetcher.situation = session.situation
    return ConsumerCore(parsed, config, session, fetcher)


def fetch_settings(url: URL, config: ConsumerConfig) -> FetchSettings:
    """Return how a consumer fetches from its topic."""
    return FetchSettings(
        label=url.label,
        topic_id=url.topic_id or 0,
        stop_at_end=config.stop_at_end or config.stop_at is not None,
        stop_at=config.stop_at,
        max_fetch_bytes=config.max_fetch_bytes,
        prefetch_bytes=config.prefetch_bytes,
        poll_interval=seconds("poll_interval", config.poll_interval),
        take_fingerprint=Fingerprint.of,
        hosts=len(url.endpoints),
        reset_on_truncation=config.on_truncation == "reset",
        on_opaque=config.on_opaque,
        mode=config.mode,
        subscriber=_DICE.getrandbits(63) | 1,
        held=config.offsets is not None,
        request_timeout=seconds("request_timeout", config.request_timeout),
        codec=None if config.values is None else codec_for(config.values),
    )


def as_start(where: int | str | datetime, shown: str = "start={}") -> Start:
    """Return a place in a log in the core's words.

    Args:
        where: the place.
        shown: how it was given, for the error.

    Raises:
        ConfigError: ``where`` is not a start position.
    """
    check_start(where, shown)
    if isinstance(where, datetime):
        return Moment(as_moment_ns("start", where))
    if isinstance(where, int):
        return where
    return "beginning" if where == "beginning" else "end"
