"""The parts of a producer, put together from a URL and settings."""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lance_sdk._api.arguments.unit_parsing import seconds
from lance_sdk._api.factory import backoff_of, session_of, session_stats, show_rtt
from lance_sdk._api.spill_loader import Spill, open_spill
from lance_sdk._protocol.produce.batcher import Batcher, BatchLimits
from lance_sdk._protocol.produce.retry_policy import RetryRules
from lance_sdk._protocol.produce.send_settings import SendSettings, draw_nonce
from lance_sdk._protocol.produce.sender import Sender
from lance_sdk._protocol.reconnecting_session import Session
from lance_sdk.config import ProducerConfig
from lance_sdk.stats import ProducerStats
from lance_sdk.url import URL, parse_url

if TYPE_CHECKING:
    from lance_sdk._protocol.events import Event

_DICE: Final = random.SystemRandom()
ACK_SHARE: Final = 0.8
"""Of the time for closing: what a producer with a journal gives the server to acknowledge."""
DISK_GRACE: Final = 1.0
"""Seconds for what is then to be kept in the journal, however little time there is."""


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
        """Start connecting; with a journal it is not a failure that there is no server."""
        dial = self.config.journal is None or self.config.on_full == "journal"
        self.session.open(now, need=self.spill is None, dial=dial)

    def stats(self) -> ProducerStats:
        """Return the counters."""
        sender = self.sender
        return ProducerStats(
            **session_stats(self.session),
            acked_records=sender.acked_records,
            acked_batches=sender.acked_batches,
            failed_records=sender.failures.records,
            retries=sender.retries,
            backpressure=sender.backpressure,
            buffered_bytes=self.batcher.buffered,
            in_flight=sender.in_flight,
            window=sender.window.size,
            journaled_batches=len(sender.spooler.journaled),
        )

    def show(self, client: str, state: str) -> str:
        """Return the client's repr."""
        queued = f"buffered={self.batcher.buffered} in_flight={self.sender.in_flight}"
        return f"<{client} {self.url} {state} {queued}{show_rtt(self.session)}>"


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
    sender.situation = session.situation
    return ProducerCore(parsed, config, session, sender, batcher, spill)


def _send_settings(url: URL, config: ProducerConfig) -> SendSettings:
    return SendSettings(
        topic_id=url.topic_id or 0,
        nonce=draw_nonce(_DICE),
        max_in_flight=config.max_in_flight,
        compression=config.compression,
        retry=RetryRules(
            max_attempts=config.retry.max_attempts,
            also=config.retry.also,
            never=config.retry.never,
        ),
        journal_always=config.on_full != "journal" and config.journal is not None,
        label=url.label,
    )
