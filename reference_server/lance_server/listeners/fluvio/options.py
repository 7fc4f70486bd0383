"""Options of the Fluvio servers."""

from dataclasses import dataclass, fields
from typing import Final

from lance_server.config.settings import Address
from lance_server.errors import ConfigError
from lance_server.security.authorizer import Security

WILDCARDS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not bound
"""Where to listen for any address; nowhere to connect to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FluvioOptions:
    """Settings of both Fluvio servers.

    Attributes:
        max_frame: largest request to accept, in bytes.
        max_batch: most bytes that the records of a batch may take, decompressed and as records
            of the log.
        max_chunk: most bytes of the log that one response to a stream carries, unless a single
            record is larger.
        max_partitions: most partitions of a topic.
        max_connections: connections to each server at once.
        max_memory: bytes that requests and responses may take together.
        max_unanswered: requests of a connection that may wait for the disk.
        max_streams: streams and watches of a connection.
        idle_timeout: seconds without a request after which a connection without streams ends.
        frame_timeout: seconds in which a begun request must be complete, and in which a client
            must take what it is sent.
        refresh: seconds between two looks for topics that other protocols created.
        check_crc: whether batches whose checksum is wrong are refused; Fluvio's own servers do
            not look.
        spu_public: the SPU's address as clients reach it; None means where it listens.
        security: certificates and rules; None means that everyone may do everything in the clear.
    """

    max_frame: int = 16 * 1024 * 1024 + 64 * 1024
    max_batch: int = 16 * 1024 * 1024
    max_chunk: int = 1024 * 1024
    max_partitions: int = 256
    max_connections: int = 256
    max_memory: int = 256 * 1024 * 1024
    max_unanswered: int = 128
    max_streams: int = 256
    idle_timeout: float = 600.0
    frame_timeout: float = 60.0
    refresh: float = 0.25
    check_crc: bool = True
    spu_public: Address | None = None
    security: Security | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and not isinstance(value, bool) and not value > 0:
                raise ConfigError(f"{field.name} must be above 0, not {value}")
        public = self.spu_public
        if public is not None and (not public.port or public.host in WILDCARDS):
            raise ConfigError(
                f"no client can connect to {public}: name an address at which they reach the SPU"
            )
