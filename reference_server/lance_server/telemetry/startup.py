"""Telemetry, where it was asked for."""

from typing import TYPE_CHECKING

from lance_server.errors import ConfigError

if TYPE_CHECKING:
    from lance_server.lwp.service import Service
    from lance_server.telemetry.otel import Telemetry


def open_telemetry(service: "Service") -> "Telemetry | None":
    """Begin to export what a server does, or return None when that is not wanted.

    Raises:
        ConfigError: what it needs is not installed.
    """
    if service.config.otel is None:
        return None
    try:
        from lance_server.telemetry.otel import Telemetry  # noqa: PLC0415 - an extra

        return Telemetry(service.config.otel, service)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise ConfigError(f"telemetry needs {error.name}: pip install 'lance-sdk[otel]'") from error
