"""The interface of a server that offers copies of its data directory: a node of a cluster."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from lance_server.errors import ConfigError
from lance_server.runtime.completion import Completion


class Offer(NamedTuple):
    """A copy that is offered.

    Attributes:
        id: its name.
        identity: of the log that the node's data came from.
        files: bytes of each file, by its path within the copy.
    """

    id: str
    identity: str
    files: dict[str, int]


class CopyGoneError(ConfigError):
    """The copy is not offered any more, or never had such a file."""


class CopyOffers(ABC):
    """Offers copies, one at a time. Belongs to the event loop's thread."""

    @abstractmethod
    def take(self) -> Completion[Offer]:
        """Make a copy and offer it; the outcome fails where the node or its disk refuses.

        Raises:
            ConfigError: another one is offered, and was asked for lately.
        """

    @abstractmethod
    def piece(self, copy: str, name: str, start: int, size: int) -> Completion[bytes]:
        """Read a piece of a file; fewer bytes come at its end.

        Args:
            copy: the copy's id.
            name: the file's path within the copy.
            start: of the piece, in bytes.
            size: of the piece, in bytes; a larger one than the node hands out is cut.

        Raises:
            CopyGoneError: there is no such copy any more, or no such file.
        """

    @abstractmethod
    def end(self, copy: str) -> None:
        """Remove a copy that nobody needs any more; the log keeps for a while what follows it."""
