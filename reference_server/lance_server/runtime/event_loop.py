"""The event loop that the server runs on: asyncio's own, or uvloop, which is quicker."""

import asyncio
from collections.abc import Callable
from typing import Final

from lance_server.errors import ConfigError

EVENT_LOOPS: Final = ("auto", "asyncio", "uvloop")
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def loop_factory(name: str) -> LoopFactory:
    """Return what makes the event loop.

    Args:
        name: one of `EVENT_LOOPS`; ``auto`` takes uvloop where it is installed.

    Raises:
        ConfigError: ``uvloop`` was asked for by name and is not installed.
    """
    if name == "asyncio":
        return asyncio.new_event_loop
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - optional
    except ModuleNotFoundError:
        if name == "uvloop":
            raise ConfigError(
                "the event loop uvloop is not installed: pip install 'lance-sdk[uvloop]', "
                "or choose --event-loop auto"
            ) from None
        return asyncio.new_event_loop
    made: LoopFactory = new_event_loop
    return made
