"""Options of the RustLog listener."""

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from lance_server.errors import ConfigError
from lance_server.security.authorizer import Security

Speech: TypeAlias = Literal["auto", "binary", "json"]
SPEECHES: tuple[Speech, ...] = ("auto", "binary", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class RustlogOptions:
    """Settings of a RustLog listener.

    Attributes:
        dialect: ``binary`` is what RustLog's programs speak, ``json`` what its specification
            describes; with ``auto`` the first byte of each request decides (RL-01).
        max_partitions: most partitions of a topic.
        max_connections: connections at once.
        max_memory: bytes that requests and answers may take together.
        max_groups: most groups that may commit offsets to a partition, and most offsets kept of
            topics that do not exist.
        idle_timeout: seconds without a request after which a connection ends.
        frame_timeout: seconds in which a begun request must be complete, a request must be
            carried out, and a client must take its answer.
        security: certificates and rules; None means that everyone may do everything in the clear.
    """

    dialect: Speech = "auto"
    max_partitions: int = 256
    max_connections: int = 256
    max_memory: int = 256 * 1024 * 1024
    max_groups: int = 10_000
    idle_timeout: float = 600.0
    frame_timeout: float = 60.0
    security: Security | None = None

    def __post_init__(self) -> None:
        if self.dialect not in SPEECHES:
            raise ConfigError(f"dialect must be one of {', '.join(SPEECHES)}, not {self.dialect!r}")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and not value > 0:
                raise ConfigError(f"{field.name} must be above 0, not {value}")
