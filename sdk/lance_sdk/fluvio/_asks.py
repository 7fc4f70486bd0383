"""Requests as steps that the sync and the async API share.

Each function of `_topics`, `_producing` and `_consuming` that returns `Steps` is a generator: it
yields what it wants of a connection, and is sent the response or thrown the error that came
instead. So the logic stands there once.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from lance_sdk._api.other_systems import Address
from lance_sdk.errors import LanceError
from lance_sdk.fluvio._retries import Retries, is_passing
from lance_spec.fluvio.apis import Server

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a request and wait for its response.

    Attributes:
        key: the request's number, see `lance_spec.fluvio.apis`.
        message: the body.
        what: what is done, for errors: it names topic and partition.
        at: the SPU that is asked; None asks the SC.
        kind: the type of object that it is about, or nothing.
        changes: whether the server may have changed something when no response comes.
    """

    key: int
    message: Any
    what: str
    at: Address | None = None
    kind: str = ""
    changes: bool = False

    @property
    def server(self) -> Server:
        """Which of the two servers is asked."""
        return "sc" if self.at is None else "spu"


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next step.

    Attributes:
        seconds: for how long.
    """

    seconds: float


Steps: TypeAlias = Generator[Ask | Pause, Any, T]


def with_retries(steps: Callable[[], Steps[T]], retries: Retries, *, again: bool) -> Steps[T]:
    """Take steps again after each failure that may pass.

    Args:
        steps: begins them.
        retries: how long to go on.
        again: whether they may be taken again when they may have been carried out.
    """
    while True:
        try:
            return (yield from steps())
        except LanceError as error:
            if not is_passing(error, again=again):
                raise
            yield Pause(retries.after(error))
