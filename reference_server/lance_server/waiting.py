"""Waiting for what the log does."""

import asyncio
from typing import TypeVar

from lance_server.outcome import Outcome

T = TypeVar("T")


async def settled(outcome: Outcome[T]) -> T:
    """Wait for an outcome and return its value, or raise its error."""
    if not outcome.done:
        done = asyncio.Event()
        outcome.wake(done.set)
        await done.wait()
    return outcome.result()
