# Written by sdk/options_from_config.py from lance_sdk/config.py: change that one.
"""The keyword arguments of the clients, for type checkers and editors.

They are the fields of the classes in `lance_sdk.config`.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypedDict

from lance_sdk._api.arguments.unit_parsing import Duration
from lance_sdk.config import Path, RetryPolicy, Token
from lance_sdk.hooks import Hooks
from lance_spec.dialect import Dialect

if TYPE_CHECKING:
    import ssl

    from lance_sdk.journal.config import JournalConfig
    from lance_sdk.offsets.contract import AsyncOffsetStore, OffsetStore
    from lance_sdk.values.contract import Codec

__all__ = ["ClientOptions", "ConsumerOptions", "ProducerOptions", "SendOptions"]


class ClientOptions(TypedDict, total=False):
    """Keywords of `Client`; see `lance_sdk.config.ClientConfig`."""

    dialect: str | Dialect
    fetch_header: Literal[16, 24] | None
    connect_timeout: Duration
    open_timeout: Duration
    request_timeout: Duration
    close_timeout: Duration
    keepalive_interval: Duration
    idle_timeout: Duration
    backoff_base: Duration
    backoff_cap: Duration
    token: Token | None
    tls: "ssl.SSLContext | None"
    tls_ca: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_key_password: str | None
    tls_server_name: str | None
    hooks: Hooks | Sequence[Hooks]


class SendOptions(ClientOptions, total=False):
    """Keywords of `Producer` without ``values=``; see `lance_sdk.config.ProducerConfig`."""

    create_topic: bool
    linger: Duration
    batch_bytes: int
    batch_records: int
    buffer_bytes: int
    max_in_flight: int
    delivery_timeout: Duration
    on_full: Literal["block", "raise", "journal"]
    block_timeout: Duration
    allow_unsafe_types: bool
    compression: Literal["none", "lz4", "auto"]
    retry: RetryPolicy
    journal: Path | None
    journal_settings: "JournalConfig | None"


class ProducerOptions(SendOptions, total=False):
    """Keywords of `Producer`; see `lance_sdk.config.ProducerConfig`."""

    values: "Codec | Callable[..., object] | str | None"


class ConsumerOptions(ClientOptions, total=False):
    """Keywords of `Consumer`; see `lance_sdk.config.ConsumerConfig`."""

    start: Literal["beginning", "end"] | int | datetime
    stop_at_end: bool
    stop_at: int | None
    max_fetch_bytes: int
    prefetch_bytes: int
    poll_interval: Duration
    on_truncation: Literal["raise", "reset"]
    on_opaque: Literal["raise", "skip", "bytes"]
    mode: Literal["auto", "push", "poll"]
    consumer: str | None
    offsets: "OffsetStore | AsyncOffsetStore | str | None"
    auto_commit: Literal["off", "interval", "processed"]
    commit_interval: Duration
    generation: int
    values: "Codec | Callable[..., object] | str | None"
