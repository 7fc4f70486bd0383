"""Settings as frozen dataclasses: one for what all faces share, one per kind of face.

Every field is also a keyword of the face and a key of the URL's query, except where
`lance_sdk.url` says otherwise. Durations are seconds or a ``timedelta``; sizes are bytes.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from lance_sdk._units import Duration, seconds, shorten
from lance_sdk.errors import ConfigError
from lance_spec.dialect import DIALECTS, Dialect
from lance_spec.limits import (
    END_OFFSET,
    IDLE_TIMEOUT,
    KEEPALIVE_INTERVAL,
    MAX_PAYLOAD,
    RECORD_HEADER_SIZE,
)

if TYPE_CHECKING:
    import ssl

__all__ = ["ClientConfig", "ConsumerConfig", "ProducerConfig"]

_PLAIN: Final = (bool, int)
"""Types of settings whose values are checked for being exactly that."""
_SIZES: Final = range(2**63)
"""What a number of bytes, records or batches can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """What every connection needs.

    Attributes:
        dialect: ``auto`` tries ``specified``, then ``deployed``; or one of these names, or a
            `Dialect` of your own.
        fetch_header: bytes before the data of a FetchResponse, 16 or 24, where the server differs
            from its dialect (AMB-05).
        connect_timeout: for each of dns, tcp, tls and handshake of one attempt.
        open_timeout: how long ``open()`` keeps trying after every host was tried once; 0
            means one round.
        request_timeout: for the answer to one control request.
        close_timeout: how long leaving a ``with`` block waits for deliveries.
        keepalive_interval: quiet time after which a Keepalive is sent (LWP section 2.3).
        idle_timeout: silence of the server after which a connection counts as dead.
        backoff_base: first reconnect delay (AMB-42).
        backoff_cap: largest delay before jitter doubles it at most.
        token: sent with Authenticate on every connection, when set.
        tls: context for ``lances://``; by default the system's trust store.
    """

    dialect: str | Dialect = "auto"
    fetch_header: Literal[16, 24] | None = None
    connect_timeout: Duration = 10.0
    open_timeout: Duration = 0.0
    request_timeout: Duration = 30.0
    close_timeout: Duration = 30.0
    keepalive_interval: Duration = KEEPALIVE_INTERVAL
    idle_timeout: Duration = IDLE_TIMEOUT
    backoff_base: Duration = 0.1
    backoff_cap: Duration = 30.0
    token: str | None = dataclasses.field(default=None, repr=False)
    tls: "ssl.SSLContext | None" = dataclasses.field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Turn durations into seconds and refuse what cannot work.

        Raises:
            ConfigError: naming the field and what it must be.
        """
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is Duration:
                object.__setattr__(self, field.name, seconds(field.name, value))
            elif field.type in _PLAIN:
                _require_plain(field.name, value, field.type)
        self._check()

    def _check(self) -> None:
        if not isinstance(self.dialect, Dialect):
            _require_one_of("dialect", self.dialect, ("auto", *DIALECTS))
        if self.fetch_header is not None:
            _require_one_of("fetch_header", self.fetch_header, (16, 24))
        if not isinstance(self.token, str | None):
            raise ConfigError(f"token: expected text, got {type(self.token).__name__}")
        if self.tls is not None:
            _require_context(self.tls)
        for name in ("connect_timeout", "request_timeout", "keepalive_interval", "backoff_base"):
            _require_positive(self, name)
        _require_order(self, "keepalive_interval", "idle_timeout")
        _require_order(self, "backoff_base", "backoff_cap")

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """The dialects to try, in order."""
        if isinstance(self.dialect, Dialect):
            chosen = [self.dialect]
        elif self.dialect == "auto":
            chosen = list(DIALECTS.values())
        else:
            chosen = [DIALECTS[self.dialect]]
        if self.fetch_header is None:
            return tuple(chosen)
        return tuple(dataclasses.replace(each, fetch_header=self.fetch_header) for each in chosen)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some settings changed.

        Raises:
            ConfigError: when a value is not allowed.
            TypeError: when there is no such setting.
        """
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """Settings of a producer, beside those of `ClientConfig`.

    Attributes:
        create_topic: create the topic when it does not exist.
        linger: how long a batch waits for more records, from its first one on; a full batch
            never waits.
        batch_bytes: payload size at which a batch is full.
        batch_records: number of records at which a batch is full.
        buffer_bytes: bytes that may wait for acknowledgement, sent or not.
        max_in_flight: batches that may be sent and not yet acknowledged.
        delivery_timeout: time after which an unacknowledged batch fails.
        on_full: what ``send`` does when the buffer is full: ``block`` or ``raise``.
        block_timeout: how long ``send`` blocks before it raises all the same.
        allow_unsafe_types: send types 0x00 and 0xFF to servers that cannot keep them (AMB-13).
    """

    create_topic: bool = False
    linger: Duration = 0.005
    batch_bytes: int = 64 * 1024
    batch_records: int = 16_384
    buffer_bytes: int = 32 * 1024 * 1024
    max_in_flight: int = 64
    delivery_timeout: Duration = 120.0
    on_full: Literal["block", "raise"] = "block"
    block_timeout: Duration = 60.0
    allow_unsafe_types: bool = False

    def _check(self) -> None:
        ClientConfig._check(self)  # noqa: SLF001 - super() does not work in a slots dataclass
        for name in ("batch_records", "max_in_flight", "delivery_timeout"):
            _require_positive(self, name)
        if not RECORD_HEADER_SIZE <= self.batch_bytes <= MAX_PAYLOAD:
            raise ConfigError(
                f"batch_bytes={self.batch_bytes!r}: expected {RECORD_HEADER_SIZE} to {MAX_PAYLOAD}"
            )
        if self.buffer_bytes < self.batch_bytes:
            raise ConfigError(f"buffer_bytes={self.buffer_bytes!r} must be at least batch_bytes")
        _require_one_of("on_full", self.on_full, ("block", "raise"))
        _require_order(self, "linger", "delivery_timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """Settings of a consumer, beside those of `ClientConfig`.

    Attributes:
        start: ``beginning``, ``end``, or the byte offset of a record.
        stop_at_end: end the iteration at the end the log had when it began.
        max_fetch_bytes: data asked for in one Fetch; grows for a record that is larger.
        prefetch_bytes: data held ahead of the application.
        poll_interval: pause between Fetches at the end of the log.
        on_truncation: what to do when the log ends before the position and does not grow
            (AMB-31): ``raise``, or ``reset`` to its end with a warning in the log.
    """

    start: Literal["beginning", "end"] | int = "beginning"
    stop_at_end: bool = False
    max_fetch_bytes: int = 1024 * 1024
    prefetch_bytes: int = 4 * 1024 * 1024
    poll_interval: Duration = 0.05
    on_truncation: Literal["raise", "reset"] = "raise"

    def _check(self) -> None:
        ClientConfig._check(self)  # noqa: SLF001 - super() does not work in a slots dataclass
        check_start(self.start)
        if not RECORD_HEADER_SIZE <= self.max_fetch_bytes <= MAX_PAYLOAD:
            raise ConfigError(
                f"max_fetch_bytes={self.max_fetch_bytes!r}: "
                f"expected {RECORD_HEADER_SIZE} to {MAX_PAYLOAD}"
            )
        for name in ("prefetch_bytes", "poll_interval"):
            _require_positive(self, name)
        _require_one_of("on_truncation", self.on_truncation, ("raise", "reset"))


def check_start(start: object) -> None:
    """Refuse what is no place in a log.

    Raises:
        ConfigError: unless it is ``beginning``, ``end`` or an offset.
    """
    if isinstance(start, str) and start in {"beginning", "end"}:
        return
    if isinstance(start, bool) or not isinstance(start, int) or not 0 <= start < END_OFFSET:
        raise ConfigError(f"start={shorten(start)}: expected 'beginning', 'end' or a byte offset")


def _require_plain(name: str, value: object, kind: object) -> None:
    if type(value) is not kind:
        expected = "True or False" if kind is bool else "a whole number"
        raise ConfigError(f"{name}={shorten(value)}: expected {expected}")
    if value not in _SIZES:
        raise ConfigError(f"{name}={shorten(value)}: expected 0 to {_SIZES[-1]}")


def _require_one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed:
        names = " or ".join(map(repr, allowed))
        raise ConfigError(f"{name}={shorten(value)}: expected {names}")


def _require_context(tls: object) -> None:
    import ssl  # noqa: PLC0415 - costs 10 ms, and whoever brings a context has it already

    if not isinstance(tls, ssl.SSLContext):
        raise ConfigError(f"tls={shorten(tls)}: expected an ssl.SSLContext")


def _require_positive(config: ClientConfig, name: str) -> None:
    if not getattr(config, name) > 0:
        raise ConfigError(f"{name}={getattr(config, name)!r} must be more than 0")


def _require_order(config: ClientConfig, less: str, more: str) -> None:
    if getattr(config, more) < getattr(config, less):
        raise ConfigError(
            f"{more}={getattr(config, more)!r} must be at least {less}={getattr(config, less)!r}"
        )
