"""The HTTP port, where it was asked for."""

from typing import TYPE_CHECKING

from lance_server.errors import ConfigError

if TYPE_CHECKING:
    from lance_server.server import Server
    from lance_server.web.port import HttpPort


def open_web(server: "Server") -> "HttpPort | None":
    """Return the HTTP port of a server, not listening yet, or None when it is to have none.

    Raises:
        ConfigError: what it needs is not installed.
    """
    if server.config.http is None:
        return None
    try:
        from lance_server.web.port import HttpPort  # noqa: PLC0415 - needed on request only
        from lance_server.web.site import Site  # noqa: PLC0415 - needed on request only
    except ModuleNotFoundError as error:
        if error.name not in ("h11", "prometheus_client"):
            raise
        raise ConfigError(
            f"the HTTP port needs {error.name}: pip install 'lance-sdk[server]'"
        ) from error
    return HttpPort(server.config.http, Site(server).answer)
