"""The interface of listeners: other protocols over the same log."""

from typing import Protocol, runtime_checkable

from lance_server.config.settings import Address, ServerConfig
from lance_server.log.log_manager import LogManager


class Listener(Protocol):
    """Serves another protocol from the server's log, in the server's event loop.

    Attributes:
        name: the protocol, as it is called in logs and messages.
        address: where it listens; after `start` with the port that was bound.
    """

    name: str
    address: Address

    async def start(self, engine: LogManager) -> None:
        """Listen, and serve the log to whoever connects.

        Raises:
            ListenError: the address cannot be listened on.
        """
        ...

    async def stop(self, deadline: float) -> None:
        """Stop accepting, answer what was received until `deadline` (loop time), then close."""
        ...


@runtime_checkable
class Reloading(Protocol):
    """A listener that takes new certificates, tokens and rules while it serves."""

    def reload(self, config: ServerConfig) -> None:
        """Take those of a configuration; nothing else of it.

        Raises:
            ConfigError: one of them cannot be used; all stay as they were.
        """
        ...
