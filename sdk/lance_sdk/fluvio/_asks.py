"""What the client asks, as steps that both faces take: ask, await, and what comes of it.

Each function of `_topics`, `_producing` and `_consuming` that returns `Steps` is a generator: it
yields what it wants of a connection, and is sent the response or thrown the error that came
instead. So the logic stands there once, for threads and for tasks.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from lance_sdk._foreign import Address
from lance_spec.fluvio_apis import Server

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a request and wait for its response.

    Attributes:
        key: what is asked, see `lance_spec.fluvio_apis`.
        message: the body.
        at: the SPU that is asked; None asks the SC.
        kind: the type of object that it is about, or nothing.
        changes: whether the server may have changed something when no response comes.
    """

    key: int
    message: Any
    at: Address | None = None
    kind: str = ""
    changes: bool = False

    @property
    def server(self) -> Server:
        """Who is asked."""
        return "sc" if self.at is None else "spu"


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next step.

    Attributes:
        seconds: for how long.
    """

    seconds: float


Steps: TypeAlias = Generator[Ask | Pause, Any, T]
