"""The client under test: something that carries out one operation at a time."""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

Request = Mapping[str, Any]
Response = Mapping[str, Any]


class DriverDiedError(Exception):
    """A driver ended, or said something that is not an answer; the sentence tells which."""


class Driver(Protocol):
    """One client. After an exception, or a cancelled call, it is not asked again."""

    async def call(self, request: Request) -> Response:
        """Carry out one operation.

        Raises:
            DriverDiedError: There is no answer, and will be none.
        """

    async def end(self) -> None:
        """Let go of it; never raises."""


Maker = Callable[[], Awaitable[Driver]]


class Drivers:
    """Drivers that wait to be used; each serves one case at a time.

    Args:
        make: Starts another one.
    """

    def __init__(self, make: Maker) -> None:
        self._make = make
        self._idle: deque[Driver] = deque()

    def __repr__(self) -> str:
        return f"<Drivers idle={len(self._idle)}>"

    async def take(self) -> Driver:
        """A driver that nobody else uses.

        Raises:
            DriverDiedError: None can be started.
        """
        return self._idle.pop() if self._idle else await self._make()

    def give(self, driver: Driver) -> None:
        """Take one back that has answered everything that it was asked."""
        self._idle.append(driver)

    async def end(self) -> None:
        """Let go of all."""
        while self._idle:
            await self._idle.pop().end()
