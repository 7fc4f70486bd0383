"""The HTTP port, where it was asked for."""

from typing import TYPE_CHECKING

from lance_server.errors import ConfigError
from lance_server.http.observed_server import ObservedServer

if TYPE_CHECKING:
    from lance_server.http.http_server import HttpServer


def open_web(server: ObservedServer) -> "HttpServer | None":
    """Return the HTTP port of a server, not listening yet, or None when it is to have none.

    Raises:
        ConfigError: what it needs is not installed.
    """
    if server.config.http is None:
        return None
    try:
        from lance_server.http.http_server import HttpServer  # noqa: PLC0415 - needed on request only
        from lance_server.http.routes import Routes  # noqa: PLC0415 - needed on request only
    except ModuleNotFoundError as error:
        if error.name not in ("h11", "prometheus_client"):
            raise
        raise ConfigError(
            f"the HTTP port needs {error.name}: pip install 'lance-sdk[server]'"
        ) from error
    return HttpServer(server.config.http, Routes(server).answer)
