"""Options of the QWP endpoint."""

from dataclasses import dataclass

from lance_server.errors import ConfigError
from lance_server.security.authorizer import Security


@dataclass(frozen=True, slots=True, kw_only=True)
class QwpOptions:
    """Settings of the QWP endpoint.

    Attributes:
        max_message: largest message to accept, in bytes; told to senders in
            ``X-QWP-Max-Batch-Size``.
        max_rows: most rows of a message.
        max_records: most bytes of records that a message may turn into.
        max_symbols: most symbols in the dictionary of a connection.
        max_connections: connections served at once.
        max_memory: bytes that unfinished messages, dictionaries, rows that wait for a commit
            and rows that wait for the disk may take together.
        max_unanswered: messages of a connection that may wait for the disk.
        idle_timeout: seconds without a message, or for a message to be complete, after which a
            connection is closed.
        handshake_timeout: seconds for the upgrade.
        security: certificates, tokens and rules; None means that everyone may write in the clear.
    """

    max_message: int = 16 * 1024 * 1024
    max_rows: int = 1_000_000
    max_records: int = 64 * 1024 * 1024
    max_symbols: int = 1_000_000
    max_connections: int = 256
    max_memory: int = 256 * 1024 * 1024
    max_unanswered: int = 128
    idle_timeout: float = 600.0
    handshake_timeout: float = 15.0
    security: Security | None = None

    def __post_init__(self) -> None:
        for name in ("max_message", "max_rows", "max_records", "max_connections", "max_memory"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("idle_timeout", "handshake_timeout"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be above 0 seconds, not {getattr(self, name)}")
