"""What the server can be told, and how sizes and addresses are written."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lance_server.errors import ConfigError
from lance_server.log.dedup import WindowLimits
from lance_server.log.engine import LogOptions
from lance_spec.dialect import DIALECTS, Dialect
from lance_spec.limits import IDLE_TIMEOUT

_SIZE: Final = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB)?", re.IGNORECASE)
_UNITS: Final = {"b": 1, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
_ADDRESS: Final = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>\d{1,5})")
_SMALLEST_PAYLOAD: Final = 1024
_LARGEST_PAYLOAD: Final = 256 * 1024 * 1024


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
                f"'{text}' is no address: write HOST:PORT, for example 127.0.0.1:1992 or [::1]:1992"
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
        raise ConfigError(f"'{text}' is no size: write a number of bytes, or use KiB, MiB or GiB")
    return int(match[1]) * _UNITS[(match[2] or "B").lower()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Everything the server can be told.

    Attributes:
        data_dir: where topics are kept; created when it is not there.
        listen: the address to accept connections on.
        dialect: ``specified``, ``deployed``, or ``auto``: each connection's first header decides.
        max_payload: largest payload to accept, in bytes; None means the dialect's limit.
        strict_topic_names: allow only letters, digits and ``-``; None means the dialect's rule.
        segment_size: bytes after which a segment is closed.
        dedup_entries: batches per topic that are recognised when sent again; 0 is off (AMB-25).
        dedup_max_age_secs: for how long, in seconds.
        idle_timeout: seconds without a frame after which a connection is closed.
        drain_timeout: seconds for finishing what was received when the server stops.
        max_connections: connections served at once.
        max_unacked_bytes: bytes of unanswered requests after which a connection is not read.
        max_pending_bytes: the same for all connections together.
        max_partial_bytes: bytes of unfinished frames that all connections may hold together.
        max_topics: most topics that may exist.
    """

    data_dir: Path
    listen: Address = Address("127.0.0.1", 0)
    dialect: str = "auto"
    max_payload: int | None = None
    strict_topic_names: bool | None = None
    segment_size: int = 1024 * 1024 * 1024
    dedup_entries: int = WindowLimits().entries
    dedup_max_age_secs: int = WindowLimits().max_age_secs
    idle_timeout: float = IDLE_TIMEOUT
    drain_timeout: float = 25.0
    max_connections: int = 4096
    max_unacked_bytes: int = 32 * 1024 * 1024
    max_pending_bytes: int = 256 * 1024 * 1024
    max_partial_bytes: int = 512 * 1024 * 1024
    max_topics: int = 10_000

    def __post_init__(self) -> None:
        if self.dialect != "auto" and self.dialect not in DIALECTS:
            known = ", ".join([*DIALECTS, "auto"])
            raise ConfigError(f"there is no dialect '{self.dialect}'; choose one of {known}")
        payload = self.max_payload
        if payload is not None and not _SMALLEST_PAYLOAD <= payload <= _LARGEST_PAYLOAD:
            raise ConfigError(f"max_payload must be 1 KiB to 256 MiB, not {payload} bytes")
        for name in ("segment_size", "max_connections", "max_unacked_bytes", "max_topics"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("dedup_entries", "dedup_max_age_secs", "drain_timeout"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative, not {getattr(self, name)}")
        if self.idle_timeout <= 0:
            raise ConfigError(f"idle_timeout must be above 0 seconds, not {self.idle_timeout}")

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
            window=WindowLimits(self.dedup_entries, self.dedup_max_age_secs),
            max_topics=self.max_topics,
        )
