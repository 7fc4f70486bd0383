"""Clients in this process. The self-test speaks of ports; theirs are numbers with nobody behind."""

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from lance_conformance.client.driver import Driver, Drivers
from lance_conformance.client.target import ClientTarget
from lance_conformance.engine.conditions import Target

_NUMBERS = itertools.count(1)
_STANDING: dict[int, ClientTarget] = {}


@asynccontextmanager
async def standing(name: str, make: Callable[[], Driver]) -> AsyncIterator[int]:
    """A client that can be asked for as long as the context lasts.

    Args:
        name: How reports call it.
        make: Makes a driver of it.

    Yields:
        Its number.
    """

    async def made() -> Driver:
        return make()

    number = next(_NUMBERS)
    client = ClientTarget(line=name, drivers=Drivers(made))
    _STANDING[number] = client
    try:
        yield number
    finally:
        del _STANDING[number]
        await client.drivers.end()


def client_of(target: Target) -> ClientTarget:
    """The client that a target stands for."""
    return target if isinstance(target, ClientTarget) else _STANDING[target.port]
