"""The LANCE reference server: a durable log on one node, in every dialect of LWP.

Run it as ``lance-server --data-dir D``, or inside a program::

    from lance_server import running

    with running() as server:
        print(server.url)

Names load when they are first used, so that the command decides what Ctrl-C means before it
loads the server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance_server.config.settings import Address, OtelConfig, ServerConfig
    from lance_server.embedded import EmbeddedServer, running
    from lance_server.security.access import AccessConfig, ClientAccess, TopicAccess
    from lance_server.security.tls import TlsConfig
    from lance_server.security.tokens import AuthConfig

__all__ = [
    "AccessConfig",
    "Address",
    "AuthConfig",
    "ClientAccess",
    "EmbeddedServer",
    "OtelConfig",
    "ServerConfig",
    "TlsConfig",
    "TopicAccess",
    "running",
]

_HOME_OF = {
    "AccessConfig": "lance_server.security.access",
    "Address": "lance_server.config.settings",
    "AuthConfig": "lance_server.security.tokens",
    "ClientAccess": "lance_server.security.access",
    "EmbeddedServer": "lance_server.embedded",
    "OtelConfig": "lance_server.config.settings",
    "ServerConfig": "lance_server.config.settings",
    "TlsConfig": "lance_server.security.tls",
    "TopicAccess": "lance_server.security.access",
    "running": "lance_server.embedded",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its home module at first use (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
