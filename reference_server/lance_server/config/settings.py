"""Settings of the server, and how sizes and addresses are written."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from lance_server.errors import ConfigError
from lance_server.log.dedup import WindowLimits
from lance_server.log.flusher import FlushPolicy
from lance_server.log.log_options import LogOptions
from lance_server.log.segments.compaction import CompactionPolicy
from lance_server.runtime.circuit_breaker import BreakerPolicy
from lance_server.security.access import AccessConfig
from lance_server.security.tls import TlsConfig
from lance_server.security.tokens import AuthConfig
from lance_server.storage.backend_selection import BACKENDS, DURABILITIES
from lance_spec.dialect import DIALECTS, Dialect
from lance_spec.limits import IDLE_TIMEOUT

_SIZE: Final = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB)?", re.IGNORECASE)
_UNITS: Final = {"b": 1, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
_ADDRESS: Final = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>\d{1,5})")
_SMALLEST_PAYLOAD: Final = 1024
_LARGEST_PAYLOAD: Final = 256 * 1024 * 1024
_FRAMES_IN_BUDGET: Final = 3
_LARGEST_NODE_ID: Final = 65_535
_DISK_RESERVE: Final = 4 * 1024 * 1024
"""Bytes that are freed on a full disk, so that deletion and retention can record what they do."""
_LONE_BYTES: Final = 16 * 1024
"""Bytes of a batch up to which its sync takes most of the time of its commit."""
_AT_LEAST_ONE: Final = (
    "segment_size",
    "max_connections",
    "max_unacked_bytes",
    "max_topics",
    "max_queue",
)
_NOT_NEGATIVE: Final = (
    "dedup_entries",
    "dedup_max_age_secs",
    "drain_timeout",
    "consumer_rate",
    "segment_age_secs",
    "commit_retention_secs",
    "scrub_days",
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens.

    Attributes:
        host: a name or an IP address, without brackets.
        port: a TCP port; 0 lets the system choose.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read ``HOST:PORT`` or ``[IPV6]:PORT``.

        Raises:
            ConfigError: the text is something else.
        """
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"'{text}' is not an address: "
                "write HOST:PORT, for example 127.0.0.1:1992 or [::1]:1992"
            )
        port = int(match["port"])
        if port > 65535:
            raise ConfigError(f"'{text}': a port is at most 65535, not {port}")
        return cls(match["v6"] or match["host"], port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_size(text: str) -> int:
    """Read a number of bytes such as ``65536``, ``64KiB`` or ``1GiB``.

    Raises:
        ConfigError: the text is something else.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(
            f"'{text}' is not a size: write a number of bytes, or use KiB, MiB or GiB"
        )
    return int(match[1]) * _UNITS[(match[2] or "B").lower()]


def parse_names(text: str) -> tuple[str, ...]:
    """Read names that commas part."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


@dataclass(frozen=True, slots=True, kw_only=True)
class OtelConfig:
    """Where telemetry goes.

    Attributes:
        endpoint: the collector's gRPC address, for example ``http://localhost:4317``.
        interval: seconds between two exports.
        sample_rate: the share of requests that become a span, 0 to 1.
    """

    endpoint: str
    interval: float = 15.0
    sample_rate: float = 0.01

    def __post_init__(self) -> None:
        if not self.endpoint.startswith(("http://", "https://")):
            raise ConfigError(
                f"otel.endpoint must be a URL such as http://localhost:4317, not '{self.endpoint}'"
            )
        if not 0 <= self.sample_rate <= 1:
            raise ConfigError(f"otel.sample_rate must be 0 to 1, not {self.sample_rate}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Everything the server can be told.

    Attributes:
        data_dir: where topics are kept; created when it is not there.
        listen: the address to accept connections on; by default any free port, so that several
            servers can run in one program.
        dialect: ``specified``, ``deployed``, or ``auto``: each connection's first header decides.
        max_payload: largest payload to accept, in bytes; None means the dialect's limit.
        strict_topic_names: allow only letters, digits and ``-``; None means the dialect's rule.
        storage: ``io_uring``, ``pwritev2``, or ``auto``: the faster one in a short trial, which
            a server inside a program does not begin with by default.
        durability: when a batch counts as durable: ``auto`` on the disk, in a write-ahead log or
            where it belongs, as is quicker; ``fsync`` on the disk where it belongs; ``wal`` in a
            write-ahead log, unless it is large; ``os`` in the system's memory.
        inline_commits: whether a small batch that comes alone may be made durable by the event
            loop itself, which is quicker, as long as the disk usually takes less than 1 ms for it.
        validate_records: look at every record of a batch before it is stored (AMB-27); without
            it whoever reads the batch may find that it is not a chain of records.
        segment_size: bytes after which a segment is closed.
        segment_age_secs: seconds after which a segment is closed; 0 means never by age.
        compaction: whether small segments are merged.
        upkeep_interval: seconds between two looks at retention and compaction.
        dedup_entries: batches per topic that are recognised when sent again; 0 is off (AMB-25).
        dedup_max_age_secs: for how long, in seconds.
        scrub_days: in how many days closed segments are read once against their checksums; 0 means
            never.
        commit_retention_secs: seconds for which a consumer's commit is kept after it left; 0 means
            for ever.
        idle_timeout: seconds without a frame after which a connection is closed.
        slow_peer_timeout: seconds after which a connection is closed that reads nothing of what it
            is owed; one that is owed nothing may be quiet.
        drain_timeout: seconds for finishing what was received when the server stops.
        max_connections: connections served at once.
        max_memory: bytes that all clients together may make the server hold.
        max_unacked_bytes: bytes of unanswered requests after which a connection is not read.
        max_topics: most topics that may exist.
        shed_after: seconds after which a connection that holds memory and moves nothing is
            closed, when memory is short.
        consumer_rate: bytes per second that one connection may read; 0 means any number.
        max_queue: batches that may wait for the disk before producers are told to slow down.
        max_disk_latency: seconds that 99 of 100 syncs may take before they are told so.
        breaker: when writes are kept from a failing disk.
        node_id: this node's number, 0 to 65535.
        http: where to serve health, metrics and the status page; None means nowhere.
        admin: whether the HTTP port takes requests that change things, from this machine.
        consumer_names: names of consumers, which the HTTP port shows instead of their numbers.
        otel: where telemetry goes; None means nowhere.
        tls: certificates; None means plain connections.
        auth: tokens; None means that none is asked for.
        access: which client may use which topic; None means that all may use all.
    """

    data_dir: Path
    listen: Address = Address("127.0.0.1", 0)
    dialect: str = "auto"
    max_payload: int | None = None
    strict_topic_names: bool | None = None
    storage: str = "pwritev2"
    durability: str = "auto"
    validate_records: bool = True
    segment_size: int = 1024 * 1024 * 1024
    segment_age_secs: int = 7 * 24 * 3600
    inline_commits: bool = True
    compaction: bool = True
    upkeep_interval: float = 30.0
    dedup_entries: int = WindowLimits().entries
    dedup_max_age_secs: int = WindowLimits().max_age_secs
    commit_retention_secs: int = 30 * 24 * 3600
    scrub_days: float = 14.0
    idle_timeout: float = IDLE_TIMEOUT
    slow_peer_timeout: float = IDLE_TIMEOUT
    drain_timeout: float = 25.0
    max_connections: int = 4096
    max_memory: int = 256 * 1024 * 1024
    max_unacked_bytes: int = 32 * 1024 * 1024
    max_topics: int = 10_000
    shed_after: float = 5.0
    consumer_rate: int = 0
    max_queue: int = 10_000
    max_disk_latency: float = 1.0
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    node_id: int = 0
    http: Address | None = None
    admin: bool = False
    consumer_names: tuple[str, ...] = ()
    otel: OtelConfig | None = None
    tls: TlsConfig | None = None
    auth: AuthConfig | None = None
    access: AccessConfig | None = None

    def __post_init__(self) -> None:
        self._judge_choices()
        payload = self.max_payload
        if payload is not None and not _SMALLEST_PAYLOAD <= payload <= _LARGEST_PAYLOAD:
            raise ConfigError(f"max_payload must be 1 KiB to 256 MiB, not {payload} bytes")
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative, not {getattr(self, name)}")
        for name in (
            "idle_timeout",
            "slow_peer_timeout",
            "shed_after",
            "max_disk_latency",
            "upkeep_interval",
        ):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be above 0 seconds, not {getattr(self, name)}")
        if not 0 <= self.node_id <= _LARGEST_NODE_ID:
            raise ConfigError(f"node_id must be 0 to {_LARGEST_NODE_ID}, not {self.node_id}")
        self._judge_memory()

    def _judge_choices(self) -> None:
        choices: dict[str, tuple[str, ...]] = {
            "dialect": (*DIALECTS, "auto"),
            "storage": BACKENDS,
            "durability": DURABILITIES,
        }
        for name, known in choices.items():
            chosen = getattr(self, name)
            if chosen not in known:
                raise ConfigError(
                    f"there is no {name} '{chosen}'; choose one of {', '.join(known)}"
                )

    def _judge_memory(self) -> None:
        """Leave room for a few of the largest frames: one must fit while another is there."""
        least = _FRAMES_IN_BUDGET * max(dialect.max_payload for dialect in self.dialects)
        if self.max_memory < least:
            raise ConfigError(
                f"max_memory must be at least {_FRAMES_IN_BUDGET} times the largest payload, "
                f"{least} bytes, not {self.max_memory}; raise it or lower max_payload"
            )

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """The dialects a connection may speak, with this server's own limits in them."""
        names = DIALECTS if self.dialect == "auto" else (self.dialect,)
        return tuple(self._adjusted(DIALECTS[name]) for name in names)

    def _adjusted(self, dialect: Dialect) -> Dialect:
        strict = self.strict_topic_names
        return replace(
            dialect,
            max_payload=dialect.max_payload if self.max_payload is None else self.max_payload,
            strict_topic_names=dialect.strict_topic_names if strict is None else strict,
        )

    @property
    def log_options(self) -> LogOptions:
        """What concerns the log."""
        return LogOptions(
            segment_size=self.segment_size,
            segment_age_secs=self.segment_age_secs,
            compaction=CompactionPolicy() if self.compaction else None,
            node=self.node_id,
            synced=self.durability != "os",
            flush=FlushPolicy(lone_bytes=_LONE_BYTES if self.inline_commits else 0),
            window=WindowLimits(self.dedup_entries, self.dedup_max_age_secs),
            max_topics=self.max_topics,
            commit_retention_secs=self.commit_retention_secs,
            scrub_days=self.scrub_days,
            disk_reserve=_DISK_RESERVE,
        )
