"""The keyword arguments of the faces, for type checkers and editors.

They mirror the fields of `lance_sdk.config`; a test keeps them equal.
"""

import ssl
from typing import Literal, TypedDict

from lance_sdk._units import Duration
from lance_spec.dialect import Dialect

__all__ = ["ClientOptions", "ConsumerOptions", "ProducerOptions"]


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
    token: str | None
    tls: ssl.SSLContext | None


class ProducerOptions(ClientOptions, total=False):
    """Keywords of `Producer`; see `lance_sdk.config.ProducerConfig`."""

    create_topic: bool
    linger: Duration
    batch_bytes: int
    batch_records: int
    buffer_bytes: int
    max_in_flight: int
    delivery_timeout: Duration
    on_full: Literal["block", "raise"]
    block_timeout: Duration
    allow_unsafe_types: bool


class ConsumerOptions(ClientOptions, total=False):
    """Keywords of `Consumer`; see `lance_sdk.config.ConsumerConfig`."""

    start: Literal["beginning", "end"] | int
    stop_at_end: bool
    max_fetch_bytes: int
    prefetch_bytes: int
    poll_interval: Duration
    on_truncation: Literal["raise", "reset"]
