"""The parts of the server that the HTTP port reads."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from lance_server.config.settings import Address, ServerConfig
from lance_server.http.http_messages import Response
from lance_server.log.log_manager import LogManager
from lance_server.log.recovery.recovery_report import RecoveryReport
from lance_server.lwp.service import Service
from lance_server.network.connection_manager import ConnectionManager


class ObservedServer(Protocol):
    """A running server, as `lance_server.server.Server` is one."""

    config: ServerConfig
    address: Address
    storage_rates: dict[str, float]
    repeated_writes: int

    @property
    def actions(self) -> Mapping[str, Callable[[Any], Response]]:
        """Further changes over HTTP, by their paths."""

    @property
    def engine(self) -> LogManager:
        """The log."""

    @property
    def service(self) -> Service:
        """What connections share."""

    @property
    def connection_manager(self) -> ConnectionManager:
        """The connections."""

    @property
    def report(self) -> RecoveryReport:
        """What the start found."""

    def addresses(self) -> list[tuple[str, Address]]:
        """Return what is served where."""
