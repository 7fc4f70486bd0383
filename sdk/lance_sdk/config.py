"""Settings as frozen dataclasses: one for what all clients share, one per kind of client.

Every field is also a keyword of the client and a key of the URL's query, except where
`lance_sdk.url` says otherwise. Durations are seconds or a ``timedelta``; sizes are bytes.
"""

import dataclasses
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

from lance_sdk._api.arguments.unit_parsing import Duration, seconds
from lance_sdk._api.arguments.validation import (
    check_codes,
    check_context,
    check_hooks,
    check_offset,
    check_one_of,
    check_order,
    check_path,
    check_plain,
    check_positive,
    check_start,
    check_text,
    check_token,
)
from lance_sdk.errors import ConfigError
from lance_sdk.hooks import Hooks
from lance_spec.dialect import DIALECTS, Dialect
from lance_spec.limits import IDLE_TIMEOUT, KEEPALIVE_INTERVAL, MAX_PAYLOAD, RECORD_HEADER_SIZE

if TYPE_CHECKING:
    import ssl

    from lance_sdk.journal.config import JournalConfig
    from lance_sdk.offsets.contract import AsyncOffsetStore, OffsetStore
    from lance_sdk.values.contract import Codec

__all__ = ["ClientConfig", "ConsumerConfig", "ProducerConfig", "RetryPolicy", "Token"]

_PLAIN: Final = (bool, int)
"""Types of settings whose values are checked for being exactly that."""

Token: TypeAlias = str | Callable[[], str] | Callable[[], Awaitable[str]]
"""A token, or what returns a fresh one for every connection."""
Path: TypeAlias = str | os.PathLike[str]


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
        token: sent with Authenticate on every connection, when set. A function, or with the
            async API an async one, is called for every connection, within ``connect_timeout``.
        tls: context for ``lances://``; by default one is made of the following.
        tls_ca: file of the certificates to trust, PEM; by default the system's trust store.
        tls_cert: file of this client's certificate chain, PEM, where the server asks for one.
        tls_key: file of its private key; by default it stands in ``tls_cert``.
        tls_key_password: opens ``tls_key``.
        tls_server_name: the name that the server's certificate must bear, where it is not the
            host of the URL. Certificate files are read again for every connection.
        hooks: what is told of everything that happens, see `lance_sdk.hooks`.
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
    token: Token | None = dataclasses.field(default=None, repr=False)
    tls: "ssl.SSLContext | None" = dataclasses.field(default=None, repr=False)
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_key_password: str | None = dataclasses.field(default=None, repr=False)
    tls_server_name: str | None = None
    hooks: Hooks | Sequence[Hooks] = ()

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
                check_plain(field.name, value, field.type)
            elif field.type == (Path | None):
                check_path(field.name, value)
        self._check()

    def _check(self) -> None:
        if not isinstance(self.dialect, Dialect):
            check_one_of("dialect", self.dialect, ("auto", *DIALECTS))
        if self.fetch_header is not None:
            check_one_of("fetch_header", self.fetch_header, (16, 24))
        check_token(self.token)
        check_hooks(self.hooks)
        check_text("tls_key_password", self.tls_key_password, secret=True)
        check_text("tls_server_name", self.tls_server_name)
        self._check_tls()
        for name in ("connect_timeout", "request_timeout", "keepalive_interval", "backoff_base"):
            check_positive(self, name)
        check_order(self, "keepalive_interval", "idle_timeout")
        check_order(self, "backoff_base", "backoff_cap")

    def _check_tls(self) -> None:
        files = [name for name in ("tls_ca", "tls_cert", "tls_key") if getattr(self, name)]
        if self.tls is not None:
            check_context(self.tls)
            if files:
                raise ConfigError(
                    f"tls= is a complete SSL context: load {files[0]} into it instead"
                )
        if self.tls_key is not None and self.tls_cert is None:
            raise ConfigError("tls_key= needs tls_cert=, the certificate that it belongs to")

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
class RetryPolicy:
    """Which refusals of the server are worth another try; the delivery deadline ends them all.

    A lost connection is not a refusal: what it left unacknowledged is always sent again.

    Attributes:
        max_attempts: how often a batch is sent at most; 0 means until ``delivery_timeout``.
        also: codes to try again although their class says that it will not help (LWP section
            12.4), for example ``ErrorCode.STORAGE_ERROR``.
        never: codes that fail the batch at once although their class says otherwise.
    """

    max_attempts: int = 0
    also: frozenset[int] = frozenset()
    never: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """Take any collection of codes.

        Raises:
            ConfigError: naming the field and what it must be.
        """
        check_plain("max_attempts", self.max_attempts, int)
        for name in ("also", "never"):
            object.__setattr__(self, name, check_codes(name, getattr(self, name)))
        if both := self.also & self.never:
            raise ConfigError(
                f"code {min(both):#04x} is in also= and in never=; leave it out of one of them"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """Settings of a producer, beside those of `ClientConfig`.

    Attributes:
        create_topic: create the topic when it does not exist.
        linger: how long a batch waits for more records at most, from its first one on, while
            another one of its topic is in flight; with none in flight, or full, it never waits.
        batch_bytes: payload size at which a batch is full.
        batch_records: number of records at which a batch is full.
        buffer_bytes: bytes that may wait for acknowledgement, sent or not.
        max_in_flight: batches that may be sent and not yet acknowledged.
        delivery_timeout: time after which an unacknowledged batch fails.
        on_full: what ``send`` does when the buffer is full: ``block``, ``raise``, or
            ``journal``: go through ``journal`` until that is drained (SF-33).
        block_timeout: how long ``send`` blocks before it raises all the same.
        allow_unsafe_types: send types 0x00 and 0xFF to servers that cannot keep them (AMB-13).
        compression: ``none``; ``lz4`` compresses every batch (AMB-20); ``auto`` compresses where
            the server understands it and the batch gets smaller.
        values: how ``send`` turns values into bytes: a codec of `lance_sdk.values`, or ``raw``,
            ``text``, ``json``, ``msgpack`` or ``avro``; or the class of the objects that are sent:
            a dataclass, or one of pydantic, msgspec, attrs or Protocol Buffers. None takes bytes.
        retry: which errors of the server are worth another try, and how many.
        journal: directory in which records are kept until the server has them. Everything goes
            through it, or with ``on_full="journal"`` only what does not fit in memory.
        journal_settings: how that directory is used; see `lance_sdk.journal.JournalConfig`.
    """

    create_topic: bool = False
    linger: Duration = 0.005
    batch_bytes: int = 64 * 1024
    batch_records: int = 16_384
    buffer_bytes: int = 32 * 1024 * 1024
    max_in_flight: int = 128
    delivery_timeout: Duration = 120.0
    on_full: Literal["block", "raise", "journal"] = "block"
    block_timeout: Duration = 60.0
    allow_unsafe_types: bool = False
    compression: Literal["none", "lz4", "auto"] = "none"
    values: "Codec | Callable[..., object] | str | None" = None
    retry: RetryPolicy = RetryPolicy()
    journal: Path | None = None
    journal_settings: "JournalConfig | None" = None

    def _check(self) -> None:
        ClientConfig._check(self)  # noqa: SLF001 - super() does not work in a slots dataclass
        for name in ("batch_records", "max_in_flight", "delivery_timeout"):
            check_positive(self, name)
        if not RECORD_HEADER_SIZE <= self.batch_bytes <= MAX_PAYLOAD:
            raise ConfigError(
                f"batch_bytes={self.batch_bytes!r}: expected {RECORD_HEADER_SIZE} to {MAX_PAYLOAD}"
            )
        if self.buffer_bytes < self.batch_bytes:
            raise ConfigError(
                f"buffer_bytes={self.buffer_bytes!r} must be at least "
                f"batch_bytes={self.batch_bytes}"
            )
        check_one_of("on_full", self.on_full, ("block", "raise", "journal"))
        check_one_of("compression", self.compression, ("none", "lz4", "auto"))
        check_order(self, "linger", "delivery_timeout")
        if not isinstance(self.retry, RetryPolicy):
            raise ConfigError(f"retry={self.retry!r}: expected a RetryPolicy(...)")
        if self.journal is None and self.on_full == "journal":
            raise ConfigError("on_full='journal' needs journal=, the directory to keep records in")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """Settings of a consumer, beside those of `ClientConfig`.

    Attributes:
        start: ``beginning``, ``end``, the byte offset of a record, or a ``datetime`` with a
            time zone (AMB-37). With ``offsets``: only where nothing is committed yet.
        stop_at_end: end the iteration at the end the log had when it began.
        stop_at: end it at this byte offset, at which a record ends, or at the end the log had when
            it began where that comes first; no byte after it is asked for.
        max_fetch_bytes: data asked for in one Fetch; grows for a record that is larger.
        prefetch_bytes: data held ahead of the application.
        poll_interval: pause between Fetches at the end of the log.
        on_truncation: what to do when the log ends before the position and does not grow
            (AMB-31), or holds other records than before: ``raise``, or ``reset`` to its end
            with a warning in the log.
        on_opaque: what to do at a batch that the server says does not parse as records (AMB-27):
            ``raise`` `OpaqueRecords`, ``skip`` it with a warning in the log, or hand its
            ``bytes`` out as `OpaqueBytes`, which the server must be ready to send (it is with
            ``--dialect auto``). A server of dialect ``deployed`` does not say so: there
            `CorruptRecord` is raised either way.
        mode: ``push`` has the server push new records once the log's end is reached (AMB-21);
            ``poll`` asks every ``poll_interval``; ``auto`` pushes where the server does.
        consumer: name under which positions are committed.
        offsets: where they are committed: a store, or its URL, see `lance_sdk.offsets`;
            ``server`` keeps them at the server. None commits nothing.
        auto_commit: ``processed`` and ``interval`` commit when the application comes for more,
            and when it closes. They differ where it leaves with an exception: ``interval``
            then commits also what it was working on. ``off`` leaves it to ``commit()``.
        commit_interval: least time between two automatic commits; while the application works
            on one record, or one batch of ``poll()``, none is made.
        generation: of the group's assignment, for members of groups; see `lance_sdk.groups`.
        values: how ``value`` of records is decoded: a codec of `lance_sdk.values`, its name, or
            the class of the objects, as for a producer. With None ``value`` is bytes, and
            ``values()`` goes by each record's type.
    """

    start: Literal["beginning", "end"] | int | datetime = "beginning"
    stop_at_end: bool = False
    stop_at: int | None = None
    max_fetch_bytes: int = 1024 * 1024
    prefetch_bytes: int = 4 * 1024 * 1024
    poll_interval: Duration = 0.05
    on_truncation: Literal["raise", "reset"] = "raise"
    on_opaque: Literal["raise", "skip", "bytes"] = "raise"
    mode: Literal["auto", "push", "poll"] = "auto"
    consumer: str | None = None
    offsets: "OffsetStore | AsyncOffsetStore | str | None" = None
    auto_commit: Literal["off", "interval", "processed"] = "processed"
    commit_interval: Duration = 5.0
    generation: int = 0
    values: "Codec | Callable[..., object] | str | None" = None

    def _check(self) -> None:
        ClientConfig._check(self)  # noqa: SLF001 - super() does not work in a slots dataclass
        check_start(self.start)
        if self.stop_at is not None:
            check_offset("stop_at", self.stop_at)
        if not RECORD_HEADER_SIZE <= self.max_fetch_bytes <= MAX_PAYLOAD:
            raise ConfigError(
                f"max_fetch_bytes={self.max_fetch_bytes!r}: "
                f"expected {RECORD_HEADER_SIZE} to {MAX_PAYLOAD}"
            )
        for name in ("prefetch_bytes", "poll_interval"):
            check_positive(self, name)
        check_one_of("on_truncation", self.on_truncation, ("raise", "reset"))
        check_one_of("on_opaque", self.on_opaque, ("raise", "skip", "bytes"))
        check_one_of("mode", self.mode, ("auto", "push", "poll"))
        check_one_of("auto_commit", self.auto_commit, ("off", "interval", "processed"))
        check_text("consumer", self.consumer)
        if self.offsets is not None and not self.consumer:
            raise ConfigError("offsets= needs consumer=, the name to commit positions under")
